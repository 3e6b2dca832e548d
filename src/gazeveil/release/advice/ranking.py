"""Which rows of the measured table fit, best first.

The order is that of a data holder who wants to publish: first what is of use at all, and among it
what attackers get least from, and then what keeps most. A mechanism that nobody attacked counts as
found by nobody where its promise is about whole people, and stands last otherwise. Where only some
of the battery attacked, the others may find more, and the row says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from gazeveil import checks
from gazeveil.release.advice.rows import KINDS, PURPOSES, AdviceRow, advice_rows
from gazeveil.release.recipe import PRESETS


@dataclass(frozen=True)
class Advice:
    """What to take.

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
        A key of :data:`~gazeveil.release.advice.rows.PURPOSES`.
    people : int
        How many people there are.
    kind : str
        `screen` or `vr`.

    Examples
    --------
    >>> advise("events", 24).usable[0].mechanism
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
    return (0.0 if "everything of one person" in row.promise else 101.0), row.share


def command_of(row: AdviceRow) -> str:
    """The command that makes such a release; presets by their name."""
    for preset in PRESETS.values():
        if (preset.purpose, preset.mechanism) == (row.purpose, row.mechanism):
            return f"gazeveil publish recordings/ published/ --preset {preset.name}"
    return f"gazeveil publish recordings/ published/ --mechanism {row.mechanism}"
