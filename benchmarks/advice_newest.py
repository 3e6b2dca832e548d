"""Who attacked `mosaic`, and what must be known beside their figures: for the table of
`advice_table.py`. Rates come from the pages that say how they were made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FRONT = "docs/results/front.md"
HEADSETS = "docs/howto/vr.md"

EXCHANGE = "mosaic:epsilon=10,r_deg=2,piece_s=5/2,paths=exchange,segment_s=1/2"
OWN_2_S = "mosaic:epsilon=10,r_deg=2,piece_s=2,paths=own"
OWN_5_S = "mosaic:epsilon=10,r_deg=2,paths=own"

_NEEDS = (
    "Needs 12 people who saw the same stimulus. Every piece has a name of its own: nobody can"
    " follow a person from piece to piece, what lies between pieces is left out, and a second"
    " release of the same people is refused."
)
_KNOWN = "Somebody who knows where a person looked finds that person's piece."
_TWO = "steps and fusion, 4 splits"

_NOTES = {
    ("screen", EXCHANGE): f"{_NEEDS} Half of all samples lie within 1.5 degrees of the recorded"
    " gaze and a tenth beyond 14.9, because segments are exchanged. An attacker who holds raw"
    f" recordings and makes releases of them finds 8.9 %. {_KNOWN} The setting was found on the"
    " people it was measured with.",
    ("screen", OWN_2_S): f"{_NEEDS} Paths are people's own: whoever learns which pieces belong"
    f" together finds more (25 to 42 % of pieces of 5 s). {_KNOWN}",
    ("vr", EXCHANGE): "People who face different ways are no crowd: half of all samples lie within"
    " 4.9 degrees of the recorded gaze, but a tenth beyond 80.7, and nothing says which: it does"
    f" not say where somebody looked at a given time. {_NEEDS} {_KNOWN}",
    ("vr", OWN_5_S): f"{_NEEDS} Each piece was attacked by itself: paths are people's own, and"
    f" whoever joins pieces by place finds more. {_KNOWN}",
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


def newest(kind: str, section: str) -> dict[str, Newest]:
    """Mechanism text -> who attacked it, with what success."""
    on_front = front(section)
    if kind == "screen":
        rates = {
            EXCHANGE: (*on_front[EXCHANGE], "strong battery, 10 splits", FRONT),
            OWN_2_S: (*on_front[OWN_2_S], "strong battery, 10 splits", FRONT),
        }
    else:
        seen = headsets()
        rates = {
            EXCHANGE: (*on_front[EXCHANGE], "strong battery, 10 splits", FRONT),
            OWN_5_S: (*seen[OWN_5_S], _TWO, HEADSETS),
        }
    return {
        text: Newest(12, *rate, _NOTES[kind, text], *between(section).get(text, ()))
        for text, rate in rates.items()
    }


def front(section: str) -> dict[str, tuple[str, float]]:
    """Releases of pieces on the front: the strongest attacker and per cent of pieces named."""
    text = (ROOT / FRONT).read_text("utf-8")
    lines = text.split(f"<!-- begin {section} -->")[1].split("<!-- end")[0].splitlines()
    names, attackers, rates = {}, {}, {}
    for line in lines:
        cells = [c.strip() for c in line.strip("|").split("|")]
        row = re.match(r"(\d+) mosaic(?: \((.*)\))?$", cells[0])
        if row is None:
            continue
        if row[2] and cells[2].startswith("`"):
            names[row[1]], attackers[row[1]] = _mechanism(row[2]), cells[2].strip("`")
        # The table of what was asked for has the rate with a decimal.
        if rate := re.fullmatch(r"(\d+\.\d) (?:yes|no)", cells[1]):
            rates[row[1]] = float(rate[1])
    return {names[row]: (attackers[row], rate) for row, rate in rates.items()}


def _mechanism(parameters: str) -> str:
    """The text of `mosaic` with parameters as a page writes them."""
    return "mosaic:" + re.sub(r"(\w+)=(\S+) (deg|s)\b", r"\1_\3=\2", parameters).replace(" ", "")


def between(section: str) -> dict[str, tuple[float, float]]:
    """The intervals of the front's rates of pieces."""
    text = (ROOT / FRONT).read_text("utf-8")
    found = {}
    for line in text.split(f"<!-- begin {section} -->")[1].split("<!-- end")[0].splitlines():
        name = re.match(r"\| \d+ mosaic \((.*?)\) \| \d+ \((\d+)(?: to |\u2013)(\d+)\)", line)
        if name is not None:
            found[_mechanism(name[1])] = (float(name[2]), float(name[3]))
    return found


def headsets() -> dict[str, tuple[str, float]]:
    """Releases of gaze in the world in headsets: the stronger of two attackers and its rate."""
    found = {}
    for line in (ROOT / HEADSETS).read_text("utf-8").splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if cells[0] == "world" and cells[1].startswith("`"):
            rates = {"steps": float(cells[2].split()[0]), "fusion": float(cells[3].split()[0])}
            attacker = max(rates, key=lambda name: rates[name])
            found[cells[1].strip("`")] = (attacker, rates[attacker])
    return found
