"""Which mechanism for which purpose, by a table measured on real recordings: `advice.csv` has one
line for each purpose, kind of recording and mechanism. `benchmarks/advice_table.py` makes it from
results of studies.

Advice is ordered for publishing data. Useful mechanisms come first, by lowest re-identification
rate, then by highest utility. A mechanism that was not attacked counts as rate 0 where its promise
is about whole people, and stands last otherwise.
"""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.privacy.publication.outputs import makes_pieces
from gazeveil.privacy.publication.page import LARGEST_SHARE
from gazeveil.release.recipe import PRESETS

#: Per cent of people found from which on a release is said to hide hardly anybody.
_HARDLY_HIDDEN = 50

#: Purpose -> use of the release.
PURPOSES: Mapping[str, str] = MappingProxyType(
    {
        "maps": "heat maps of where people look",
        "aoi": "how long people look at areas of interest",
        "events": "statistics of fixations and saccades",
        "samples": "where somebody looked at a given time",
        "ml": "features of windows to train models with",
        "teaching": "traces that look real, for courses and software",
    }
)

#: Kind -> the real recordings that its figures come from.
KINDS: Mapping[str, str] = MappingProxyType(
    {"screen": "participants in front of a screen", "vr": "participants in a headset"}
)


@dataclass(frozen=True)
class AdviceRow:
    """Measurements of one mechanism for one purpose.

    Parameters
    ----------
    purpose, kind : str
        Keys of :data:`PURPOSES` and :data:`KINDS`.
    mechanism : str
        `name:parameter=value,...`, as it was measured.
    words : str
        Its parameters for people: windows in seconds too.
    least_people : int
        The fewest people it can be used with, or was found usable with.
    promise : str
        The promise in plain words.
    metric : str
        What was measured; smaller is better.
    value, reference : float
        The error of an analyst who has the release, and of one who has a textbook. Of samples in
        headsets: of one who has the direction of the head and says that gaze is there, because on
        a sphere no direction is the middle and every constant one is far off.
    unit : str
        Of both.
    attacker : str
        The strongest; empty if there was no attack.
    found, guessing : float or None
        Per cent of people that it found, and that guessing finds.
    data : str
        The recordings.
    source : str
        Where the figures come from.
    tried : str
        Who attacked, and in how many splits; "strong battery, ..." where the whole battery did.
    note : str
        What must be known beside the figures: whom it needs, what it does not keep or hide.
    raw : float or None
        The error of raw recordings against others of the same people.
    low, high : float or None
        The 95 % interval of `found` over people, in per cent.
    """

    purpose: str
    kind: str
    mechanism: str
    words: str
    least_people: int
    promise: str
    metric: str
    value: float
    reference: float
    unit: str
    attacker: str
    found: float | None
    guessing: float | None
    data: str
    source: str
    tried: str = ""
    note: str = ""
    raw: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def share(self) -> float:
        """The error as a share of that of an analyst who has nothing."""
        return self.value / self.reference

    @property
    def reference_words(self) -> str:
        """Description of the reference analyst."""
        headset = (self.purpose, self.kind) == ("samples", "vr")
        return "with the head's direction alone" if headset else "without the data"

    @property
    def usable(self) -> bool:
        """Whether the release is clearly better than nothing."""
        return self.share <= LARGEST_SHARE

    @property
    def fully_attacked(self) -> bool:
        """Whether the whole strong battery attacked, in ten splits as all that is compared."""
        return self.tried == "strong battery, 10 splits"

    @property
    def of_people(self) -> bool:
        """Whether the promise is about all recordings of a participant."""
        return "all recordings of one participant" in self.promise

    @property
    def names_last(self) -> bool:
        """Whether everything of a person has one name; pieces have names of their own."""
        return not makes_pieces(self.mechanism.partition(":")[0])


@cache
def advice_rows() -> tuple[AdviceRow, ...]:
    """All lines of the table.

    Raises
    ------
    FormatError
        If the installed table is damaged.
    """
    file = Path(__file__).with_suffix(".csv")
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        return tuple(_row(line) for line in csv.DictReader(lines))
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(file, "the table is damaged", "Install Gazeveil again.") from error


def _row(line: Mapping[str, str]) -> AdviceRow:
    numbers = {name: float(line[name]) for name in ("value", "reference")}
    some = ("found", "guessing", "raw", "low", "high")
    rates = {n: float(line[n]) if line[n] else None for n in some}
    texts = {f.name: line[f.name] for f in fields(AdviceRow) if f.name not in {**numbers, **rates}}
    row: dict[str, Any] = {**texts, **numbers, **rates, "least_people": int(line["least_people"])}
    return AdviceRow(**row)


@dataclass(frozen=True)
class Advice:
    """Advice for one purpose: usable mechanisms, and those ruled out.

    Parameters
    ----------
    purpose, kind : str
        What was asked for.
    people : int
        How many people there are.
    usable : tuple of AdviceRow
        What keeps the purpose and one name for each person, best first.
    pieces : tuple of AdviceRow
        What keeps the purpose in pieces that each have a name of their own: shares of pieces are
        no shares of people.
    useless : tuple of AdviceRow
        What does not: the analyst is hardly better off than without the data.
    too_few : tuple of AdviceRow
        What needs more people.
    """

    purpose: str
    kind: str
    people: int
    usable: tuple[AdviceRow, ...]
    pieces: tuple[AdviceRow, ...]
    useless: tuple[AdviceRow, ...]
    too_few: tuple[AdviceRow, ...]


def advise(purpose: str, people: int, kind: str = "screen") -> Advice:
    """Rank what was measured.

    Parameters
    ----------
    purpose : str
        A key of :data:`~gazeveil.release.advice.PURPOSES`.
    people : int
        How many people there are.
    kind : str
        `screen` or `vr`.

    Examples
    --------
    >>> advise("maps", 24).usable[0].mechanism
    'event-synth-pd:k=4,gamma=4'
    """
    checks.one_of("advise", "purpose", purpose, PURPOSES)
    checks.one_of("advise", "kind", kind, KINDS)
    checks.count("advise", "people", people)
    rows = [r for r in advice_rows() if (r.purpose, r.kind) == (purpose, kind)]
    enough = [r for r in rows if r.least_people <= people]
    return Advice(
        purpose,
        kind,
        people,
        tuple(sorted((r for r in enough if r.usable and r.names_last), key=_order)),
        tuple(sorted((r for r in enough if r.usable and not r.names_last), key=_order)),
        tuple(sorted((r for r in enough if not r.usable), key=_order)),
        tuple(sorted((r for r in rows if r.least_people > people), key=_order)),
    )


def _order(row: AdviceRow) -> tuple[float, float]:
    if row.found is not None:
        return row.found, row.share
    return (0.0 if row.of_people else 101.0), row.share


def command_of(row: AdviceRow) -> str:
    """The command that makes such a release; presets by their name."""
    for preset in PRESETS.values():
        if (preset.purpose, preset.mechanism) == (row.purpose, row.mechanism):
            return f"gazeveil publish recordings/ published/ --preset {preset.name}"
    return f"gazeveil publish recordings/ published/ -m {row.mechanism}"


def kept(row: AdviceRow) -> str:
    """The error of an analysis, between raw recordings and no data."""
    unit = f" {row.unit}" if row.unit else ""
    raw = f"raw against raw {row.raw:.2g}; " if row.raw else ""
    return f"{row.metric} {row.value:.2g}{unit} ({raw}{row.reference_words} {row.reference:.2g})"


def attack(row: AdviceRow) -> str:
    """The re-identification rate of the strongest attacker."""
    if row.found is None:
        return "not attacked" + ("; the promise covers whole participants" * row.of_people)
    whom = "participants" if row.names_last else "pieces"
    between = "" if row.low is None else f"95 % CI {row.low:g} to {row.high:g}; "
    words = f"{row.found:g} % of {whom} ({between}chance {row.guessing:g} %)"
    if row.tried and not row.fully_attacked:
        words += f"; attackers: {row.tried}"
    return words + ("; hides hardly anyone" if row.found >= _HARDLY_HIDDEN else "")


def card(row: AdviceRow, rank: int) -> Iterator[str]:
    """One mechanism in lines of at most 80 columns."""
    yield from wrap(f"{rank}. {row.mechanism.partition(':')[0]}: {row.words}", "   ")
    for title, text in (
        ("Re-identified", attack(row)),
        ("Error", kept(row)),
        ("Promise", row.promise),
        ("Note", row.note),
    ):
        if text:
            yield from wrap(f"   {title}: {text}", "     ")
    yield f"   {command_of(row)}"
    yield ""


def wrap(text: str, indent: str) -> list[str]:
    """Lines of a text that fit a terminal of 80 columns."""
    return textwrap.wrap(text, 80, subsequent_indent=indent, break_on_hyphens=False)


def as_dict(advice: Advice) -> dict[str, object]:
    """The advice as JSON has it."""
    groups = {
        "usable": advice.usable,
        "pieces": advice.pieces,
        "no_use": advice.useless,
        "too_few": advice.too_few,
    }
    return {
        "purpose": advice.purpose,
        "kind": advice.kind,
        "people": advice.people,
        **{
            name: [{**asdict(row), "command": command_of(row)} for row in rows]
            for name, rows in groups.items()
        },
    }
