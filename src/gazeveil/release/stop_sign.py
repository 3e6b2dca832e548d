"""The stop sign before a release: guesses of reading that decide who is who, which rows are one
recording, what is lost and how large a degree is.

Each is a question for the holder of the recordings. A yes is written into the `dataset.toml` beside
them, as what was guessed (`pattern`, `[screen]`) or, where no key says it, as `confirmed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import GUESSED, Doubt, Fact
from gazeveil.io.known import FILE_NAME, option_lines
from gazeveil.io.parsing.naming import COPY, NamingOptions, PatternError, question_of
from gazeveil.io.parsing.table import printable
from gazeveil.privacy.publication.alignment import Look

#: Topics of doubts that decide who is who, or which rows are one recording.
_DECISIVE = ("person", "session", COPY)

#: Share of a recording that reading may mark as lost.
MOST_LOST = 0.2

_SHOWN = 4


@dataclass(frozen=True)
class OpenQuestion:
    """One question: its topic, what reading took, why that may be wrong, the options that say it is
    right, and lines of a `dataset.toml` that say something else.
    """

    topic: str
    taken: str
    reason: str
    yes: dict[str, object] = field(default_factory=dict)
    otherwise: tuple[str, ...] = ()


def open_questions(
    cohort: Cohort, looks: Sequence[Look], source: Path | None = None
) -> tuple[OpenQuestion, ...]:
    """What must be answered before recordings that lie in `source` and were looked at are released;
    empty where everything is said by the files or by the user.
    """
    confirmed = () if cohort.read_as is None else cohort.read_as.confirmed
    found = (*_who(cohort, source), *_doubts(cohort, looks), *_lost(looks), *_screens(looks))
    return tuple(q for q in found if q.topic not in confirmed)


def confirming_lines(questions: Iterable[OpenQuestion]) -> list[str]:
    """The lines of a `dataset.toml` that answer questions with yes."""
    options: dict[str, object] = {}
    confirmed: dict[str, None] = {}
    for question in questions:
        options |= question.yes
        if not question.yes:
            confirmed[question.topic] = None
    if confirmed:
        options["confirmed"] = list(confirmed)
    return option_lines(options)


def refuse(questions: Sequence[OpenQuestion]) -> None:
    """Stop without anybody to ask."""
    if questions:
        said = " ".join(f"{q.topic}: {q.taken} ({q.reason})." for q in questions)
        lines = "; ".join(line for line in confirming_lines(questions) if line)
        raise DataError(
            f"Reading guessed what a release rests on. {said} If that is right, write into"
            f" {FILE_NAME} beside the recordings: {lines}"
        )


def _who(cohort: Cohort, source: Path | None) -> Iterator[OpenQuestion]:
    """Whether people are taken from paths."""
    items = [i for i in cohort.items if i.facts.get("person", Fact("", "")).origin == GUESSED]
    if len(cohort) < 2 or not items:
        return
    people = list(dict.fromkeys(i.person for i in cohort.items))
    names = ", ".join(f"'{p}'" for p in people[:_SHOWN]) + (", ..." if people[_SHOWN:] else "")
    taken = f"{counted(len(people), 'person')}: {names}"
    taken += f"; {counted(len(cohort.stimuli), 'stimulus')}"
    yes: dict[str, object] = {}
    lines: tuple[str, ...] = ()
    files = list(dict.fromkeys(Path(i.source) for i in items if i.source))
    kept = cohort.read_as is not None and cohort.read_as.format == "parquet"
    if source is not None and files and not kept:  # paths of Parquet files say nothing
        root = source if source.is_dir() else source.parent
        readings = question_of(files, root).readings
        own = {i.facts["person"].value for i in items}
        patterns = [*own, *(r.pattern for r in readings)]
        right = next((p for p in patterns if _fits(p, cohort, root)), None)
        yes = {} if right is None else {"pattern": right}
        lines = tuple(
            f"{option_lines({'pattern': r.pattern})[0]}  # {r.counts}"
            for r in readings
            if r.pattern != right
        )
    yield OpenQuestion("person", printable(taken, 400), "people are parts of paths", yes, lines)


def _fits(pattern: str, cohort: Cohort, root: Path) -> bool:
    """Whether a pattern gives the people, and the stimuli of paths, that were read."""
    try:
        options = NamingOptions(pattern=pattern)
        for item in cohort.items:
            names = options.names(Path(item.source), root)
            stimulus = item.facts.get("stimulus")
            of_path = stimulus is not None and stimulus.from_path
            if names.person != item.person or (of_path and names.stimulus != item.stimulus):
                return False
    except (PatternError, ValueError):
        return False
    return True


def _doubts(cohort: Cohort, looks: Sequence[Look]) -> Iterator[OpenQuestion]:
    """Questions of the reader that are decisive; those about paths are asked by :func:`_who`."""
    everything: list[Doubt] = [*cohort.doubts, *(d for look in looks for d in look.doubts)]
    asked = {d.remedy or d.sentence: d for d in reversed(everything) if d.topic in _DECISIVE}
    for doubt in reversed(asked.values()):
        if not doubt.remedy.startswith("pattern"):
            taken = {"session": "one recording", "person": "names of people"}
            lines = tuple(doubt.remedy.splitlines())
            words = taken.get(doubt.topic, "two recordings")
            yield OpenQuestion(doubt.topic, words, doubt.sentence, {}, lines)


def _lost(looks: Sequence[Look]) -> Iterator[OpenQuestion]:
    """Recordings of which reading lost more than may be."""
    shares = {look.key: look.faults / look.samples for look in looks if look.samples}
    lost = {key: share for key, share in shares.items() if share > MOST_LOST}
    if lost:
        worst = max(lost, key=lambda key: lost[key])
        taken = f"{counted(len(lost), 'recording')} with more than 20 % lost by reading"
        name = printable(" / ".join(n for n in worst[:2] if n), 60)
        reason = f"times repeat or go back, or no eye looks there; most in {name}:"
        yield OpenQuestion("loss", taken, f"{reason} {100 * lost[worst]:.0f} %")


def _screens(looks: Sequence[Look]) -> Iterator[OpenQuestion]:
    """Screens that were assumed."""
    assumed = [look for look in looks if look.screen is not None and look.screen.origin == GUESSED]
    if assumed:
        values = list(dict.fromkeys(look.screen.value for look in assumed if look.screen))
        taken = values[0] + (f", and {len(values) - 1} more" if len(values) > 1 else "")
        spaces = {look.space for look in looks}
        screen = spaces.pop() if len(spaces) == 1 and len(assumed) == len(looks) else None
        yes: dict[str, object] = {"screen": screen} if isinstance(screen, Screen) else {}
        yield OpenQuestion("screen", taken, "assumed: degrees depend on it", yes)


def counted(count: int, word: str) -> str:
    """A number and what is counted."""
    more = {"person": "people", "stimulus": "stimuli"}.get(word, word + "s")
    return f"{count:,} {word if count == 1 else more}"
