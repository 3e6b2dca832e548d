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
    on_front, ends, tried = front(section), between(section), "strong battery, 10 splits"
    return {
        text: Newest(12, *on_front[text], tried, FRONT, note, *ends.get(text, ()))
        for text, note in _NOTES.items()
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
