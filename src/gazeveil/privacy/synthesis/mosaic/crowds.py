"""Crowds: everybody who saw one stimulus, and the public windows they are cut into."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.stream.losses.public_clock import steps_of
from gazeveil.privacy.synthesis.ksame.groups import common_space, one_kind_of_space
from gazeveil.privacy.synthesis.mosaic.readings import PublicWindows

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.mosaic.mechanism import Mosaic

_NAMED = 3


@dataclass(frozen=True, eq=False)
class Crowd:
    """Recordings of one stimulus under one task, in the order of their keys; the space of the
    release, and the windows where pieces lie.
    """

    items: tuple[Recording | Handle, ...]
    space: Space
    windows: PublicWindows


@dataclass(frozen=True)
class _Known:
    """What is known of a recording before it is read."""

    person: str
    space: Space
    rate_hz: float
    seconds: Fraction


def crowds_of(mechanism: Mosaic, data: Cohort) -> list[Crowd]:
    """The crowds of a cohort, sorted by stimulus and task; recordings are loaded one at a time.

    Raises
    ------
    ParameterError, DataError
        See :meth:`Mosaic.release_with_origins`.
    """
    if not isinstance(data, Cohort):
        checks.refuse(
            mechanism.name,
            "data",
            "a Cohort",
            data,
            "Put recordings into one with gazeveil.Cohort(recordings).",
        )
    by_stimulus: dict[tuple[str, str], list[Recording | Handle]] = {}
    for item in sorted(data.items, key=lambda i: i.key):
        by_stimulus.setdefault((item.stimulus, item.task), []).append(item)
    _refuse_small(mechanism, by_stimulus)
    known = {item.key: _known(mechanism, item) for item in data.items}
    one_kind_of_space((key, k.space) for key, k in known.items())
    rate_hz = (
        float(np.median([k.rate_hz for k in known.values()]))
        if mechanism.clock_hz is None
        else float(mechanism.clock_hz)
    )
    crowds = []
    for (stimulus, _), items in sorted(by_stimulus.items()):
        own = [known[item.key] for item in items]
        windows = _windows(mechanism, stimulus, own, rate_hz)
        crowds.append(Crowd(tuple(items), common_space([k.space for k in own]), windows))
    return crowds


def _refuse_small(
    mechanism: Mosaic, by_stimulus: dict[tuple[str, str], list[Recording | Handle]]
) -> None:
    small = [
        f"'{stimulus}' ({len({i.person for i in items})})"
        for (stimulus, _), items in sorted(by_stimulus.items())
        if len({i.person for i in items}) < mechanism.crowd
    ]
    if not by_stimulus:
        raise DataError(f"{mechanism.name} needs recordings, and this cohort has none.")
    if small:
        more = f" and {len(small) - _NAMED} more" if len(small) > _NAMED else ""
        raise DataError(
            f"{mechanism.name} with crowd = {mechanism.crowd} needs at least {mechanism.crowd}"
            f" people for every stimulus. Too few saw {', '.join(small[:_NAMED])}{more}. Leave"
            " these stimuli out, or choose a smaller crowd. Nothing was released."
        )


def _known(mechanism: Mosaic, item: Recording | Handle) -> _Known:
    recording = item if isinstance(item, Recording) else item.load()
    if not recording.rate_hz > 0:
        raise DataError(
            f"The rate of {recording.title} is not known. Say it: recording.with_(rate_hz=...)."
            " Nothing was released."
        )
    rate_hz = recording.rate_hz if mechanism.clock_hz is None else float(mechanism.clock_hz)
    steps = steps_of(recording, rate_hz, None)[1]
    seconds = Fraction(steps) / Fraction(repr(rate_hz))
    return _Known(recording.person, recording.space, recording.rate_hz, seconds)


def _windows(
    mechanism: Mosaic, stimulus: str, known: list[_Known], rate_hz: float
) -> PublicWindows:
    # By person: a person with many long recordings would be alone in the last windows. All pieces
    # there would be made of that one person's readings.
    longest: dict[str, Fraction] = {}
    for k in known:
        longest[k.person] = max(k.seconds, longest.get(k.person, k.seconds))
    common_s = sorted(longest.values(), reverse=True)[mechanism.crowd - 1]
    duration_s = common_s if mechanism.duration_s is None else Fraction(mechanism.duration_s)
    slot = mechanism.reader.clock(rate_hz).length
    windows = PublicWindows.of(
        rate_hz, slot, Fraction(mechanism.piece_s), Fraction(mechanism.gap_s), duration_s
    )
    if windows.count == 0 or windows.duration_s > common_s + slot / Fraction(repr(rate_hz)):
        enough = f"recordings of stimulus '{stimulus}' by {mechanism.crowd} people"
        raise DataError(
            f"{mechanism.name} cuts pieces of {float(mechanism.piece_s):g} s out of"
            f" {float(duration_s):g} s, and {enough} last no longer than {float(common_s):g} s."
            " Choose shorter pieces or a shorter duration_s. Nothing was released."
        )
    return windows
