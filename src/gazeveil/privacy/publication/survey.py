"""A look at recordings before they are aligned: rates, lengths and screens, from which the public
ones are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.facts import Doubt, Fact
from gazeveil.gaze.geometry import Screen, Space
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.publication.alignment import Alignment, public_screens
from gazeveil.privacy.publication.choices import PublicationChoices

#: Rates that trackers are sold with, in Hz: to have one of them tells nothing.
USUAL_RATES_HZ = (
    *(25, 30, 50, 60, 72, 75, 90, 100, 120, 125, 150, 200, 240, 250, 300),
    *(500, 600, 1000, 1200, 1250, 2000),
)

#: How many recordings are looked at where lengths do not matter.
ENOUGH = 24

#: Wraps a loop, for a progress bar.
Progress = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True)
class Look:
    """What is seen of a recording; `faults` are samples that reading marked as lost, because their
    times go back or no eye can look there.
    """

    key: RecordingKey
    rate_hz: float
    samples: int
    valid: int
    duration_s: float
    space: Space
    events: int = 0
    in_head: bool = False
    faults: int = 0
    doubts: tuple[Doubt, ...] = ()
    screen: Fact | None = None


def look_at(
    cohort: Cohort,
    every: bool,
    progress: Progress = lambda numbers: numbers,
    also: Callable[[Recording], object] = lambda recording: None,
) -> tuple[Look, ...]:
    """Look at recordings, one in memory at a time.

    Parameters
    ----------
    cohort : Cohort
        Recordings or files.
    every : bool
        Whether all files are read, or :data:`ENOUGH` of them, spread over the cohort. What is in
        memory is always looked at.
    progress : callable
        Wraps the loop over files.
    also : callable
        Shown every recording that is looked at, while it is in memory.
    """
    files = [i for i, item in enumerate(cohort.items) if not isinstance(item, Recording)]
    stride = 1 if every else max(1, math.ceil(len(files) / ENOUGH))
    chosen = [i for i, item in enumerate(cohort.items) if isinstance(item, Recording)]
    looks = []
    for i in progress(sorted([*chosen, *files[::stride]])):
        recording = cohort[i]
        also(recording)
        looks.append(_look(recording))
    return tuple(looks)


def _look(recording: Recording) -> Look:
    return Look(
        recording.key,
        recording.rate_hz,
        len(recording),
        int(recording.valid.sum()),
        recording.duration_s,
        recording.space,
        0 if recording.events is None else len(recording.events),
        recording.metadata.get("frame") == "head",
        sum(int(str(recording.metadata.get(n, 0))) for n in ("time_faults", "impossible")),
        recording.doubts,
        recording.facts.get("screen"),
    )


def needs_every(choices: PublicationChoices) -> bool:
    """Whether public choices depend on all recordings."""
    return choices.durations == "common"


def public_alignment(looks: Sequence[Look], choices: PublicationChoices) -> Alignment:
    """The alignment of recordings that were looked at.

    Raises
    ------
    DataError
        Where no recording has a rate.
    ParameterError
        For the length of an unknown stimulus.
    """
    screens = public_screens(
        (look.key[0], look.space) for look in looks if isinstance(look.space, Screen)
    )
    in_head = bool(looks) and all(look.in_head for look in looks)
    if "times" in choices.keep:
        return Alignment(times_kept=True, screens=screens, in_head=in_head)
    rates = [look.rate_hz for look in looks if not math.isnan(look.rate_hz)]
    if not rates:
        raise DataError(
            "None of these recordings says its rate, so there is no public clock for them. Say it"
            " when they are read, or keep their times."
        )
    rate = choices.public_rate_hz
    if rate is None and "rate" not in choices.keep:
        rate = Fraction(usual_rate_hz(median(rates)))
    lengths = _lengths(looks, choices)
    return Alignment(rate, False, lengths, screens, min(rates), in_head)


def usual_rate_hz(rate_hz: float) -> int:
    """The usual rate nearest to a rate, by their ratio.

    Examples
    --------
    >>> usual_rate_hz(71.93), usual_rate_hz(254.0)
    (72, 250)
    """
    return min(USUAL_RATES_HZ, key=lambda usual: abs(math.log(rate_hz / usual)))


def _lengths(looks: Sequence[Look], choices: PublicationChoices) -> Mapping[str, Fraction]:
    if isinstance(choices.durations, Mapping):
        known = {look.key[1] for look in looks}
        for stimulus in choices.durations:
            checks.one_of("publication", "durations", stimulus, known)
        return {s: Fraction(d) for s, d in choices.durations.items()}
    if choices.durations == "keep":
        return {}
    lengths: dict[str, list[float]] = {}
    for look in looks:
        period = 0.0 if math.isnan(look.rate_hz) else 1.0 / look.rate_hz
        lengths.setdefault(look.key[1], []).append(look.duration_s + period)
    # Tenths of a second: a median to the nanosecond is one person's own length.
    return {s: Fraction(max(1, round(10 * median(own))), 10) for s, own in lengths.items()}
