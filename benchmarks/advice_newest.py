"""Who attacked `mosaic`, and what must be known beside their figures: for the table of
`advice_table.py`. Rates come from the pages that say how they were made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FRONT = "docs/results/front.md"

EXCHANGE = "mosaic:epsilon=10,r_deg=2,piece_s=5/2,paths=exchange,segment_s=1/2"
OWN_2_S = "mosaic:epsilon=10,r_deg=2,piece_s=2,paths=own"

#: Columns of a table of holders of raw recordings.
WHITE_BOX = ("steps:knowledge=exemplars", "steps:knowledge=white-box", "relink:knowledge=white-box")

_NEEDS = (
    "Needs 12 people who saw the same stimulus. Every piece has a name of its own: nobody can"
    " follow a person from piece to piece, what lies between pieces is left out, and a second"
    " release of the same people is refused."
)
_KNOWN = "Somebody who knows where a person looked finds that person's piece."

_NOTES = {
    EXCHANGE: f"{_NEEDS} Half of all samples lie within 1.5 degrees of the recorded"
    " gaze and a tenth beyond 14.9, because segments are exchanged. An attacker who holds raw"
    f" recordings and makes releases of them finds 8.9 %. {_KNOWN} The setting was found on the"
    " people it was measured with.",
    OWN_2_S: f"{_NEEDS} Paths are people's own: whoever learns which pieces belong"
    f" together finds more (25 to 42 % of pieces of 5 s). {_KNOWN}",
}


@dataclass(frozen=True)
class Newest:
    """What is known of one mechanism on one kind of recordings."""

    least_people: int
    attacker: str
    found: float
    tried: str
    source: str
    note: str
    low: float | None = None
    high: float | None = None


def newest(section: str) -> dict[str, Newest]:
    """Mechanism text -> who attacked it, with what success."""
    found = front(section)
    return {
        text: Newest(12, *found[text][:3], FRONT, note, *found[text][3:])
        for text, note in _NOTES.items()
    }


def front(section: str) -> dict[str, tuple[str, float, str, float, float]]:
    """Releases of pieces on the front: the strongest attacker, holders of raw recordings included,
    per cent of pieces named, who was tried, and the interval.
    """
    text, found = (ROOT / FRONT).read_text("utf-8"), {}
    row = r"^\| \d+ mosaic \((.*?)\) \| (\d+) \((\d+)\D+(\d+)\) \| `(.*?)` \|"
    for name, *rate, attacker in re.findall(row, _marked(text, section), re.MULTILINE):
        value, low, high = map(float, rate)
        found[_mechanism(name)] = (attacker, value, "strong battery, 10 splits", low, high)
    for name, (attacker, *rate) in holders(_marked(text, f"{section}-white-box")).items():
        if (key := _mechanism(name)) in found and rate[0] > found[key][1]:
            found[key] = (attacker, rate[0], found[key][2], *rate[1:])
    return found


def holders(table: str) -> dict[str, tuple[str, float, float, float]]:
    """Parameters of pieces -> the strongest attacker of a table of holders of raw recordings, with
    its rate and interval.
    """
    best = {}
    for name, cells in re.findall(r"^\| mosaic \((.*?)\) \|((?:[^|]+\|){3})$", table, re.MULTILINE):
        # Of a cell `12.3 (10-14)`; none of `not run`.
        rates = [[*map(float, re.findall(r"\d[\d.]*", c))][:3] for c in cells.split("|")[:3]]
        value, who = max((rate, who) for rate, who in zip(rates, WHITE_BOX, strict=True) if rate)
        best[name] = (who, *value)
    return best


def _marked(text: str, name: str) -> str:
    return text.split(f"<!-- begin {name} -->")[1].split("<!-- end")[0]


def _mechanism(parameters: str) -> str:
    """The text of `mosaic` with parameters as a page writes them."""
    return "mosaic:" + re.sub(r"(\w+)=(\S+) (deg|s)\b", r"\1_\3=\2", parameters).replace(" ", "")
