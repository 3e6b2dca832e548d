"""event-synth-pd with fresh seeds: what the corrected reading draws for each stimulus, session and
task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.synthesis.events_pd.deniable_seeds import Drawn, draw, most_events
from gazeveil.privacy.synthesis.events_pd.plans import PLACE_SHARE, Coding, SyntheticRecording
from gazeveil.privacy.synthesis.events_pd.seeded_events import Rule
from gazeveil.privacy.synthesis.ksame.groups import Cell, Frame, common_frame, unknown_rates
from gazeveil.privacy.synthesis.motion import Motion


@dataclass(frozen=True)
class CorrectedSynthesis:
    """How the corrected reading runs.

    Parameters
    ----------
    rule : Rule
        Which events may be released.
    own : bool
        Whether a name's events are seeded by that person alone.
    place_deg : float or None
        Noise of places; None takes :data:`PLACE_SHARE` of the space.
    """

    rule: Rule
    own: bool
    place_deg: float | None

    def coding_for(self, coding: Coding, frame: Frame) -> Coding:
        """The coding of events in one space."""
        extent = min(frame.space.width_deg, frame.space.height_deg)
        place_deg = PLACE_SHARE * extent if self.place_deg is None else self.place_deg
        return replace(coding, place_deg=place_deg)


@dataclass(frozen=True, eq=False)
class CorrectedPlans:
    """What was drawn.

    Parameters
    ----------
    plans : mapping
        Synthetic recordings.
    drawn : list of Drawn
        Events of each of them.
    frames : mapping
        What the recordings of each stimulus, session and task have in common; those that fewer than
        k people have are left out.
    joint : array, shape (people, people)
        Row i: logarithm of the density of everything drawn for person i under each person.
    allowed : int
        Attempts that may be made at the most.
    """

    plans: dict[RecordingKey, SyntheticRecording]
    drawn: list[Drawn]
    frames: dict[Cell, Frame]
    joint: Floats = field(repr=False)
    allowed: int

    def notes(self, motions: Mapping[RecordingKey, Motion]) -> dict[str, int]:
        """Counts for the curator."""
        counts: dict[str, int] = {}
        for kind in ("fixations", "saccades"):
            rows = [getattr(d, kind) for d in self.drawn]
            counts[kind] = sum(map(len, rows))
            counts[f"{kind}_dropped"] = sum(int(np.isnan(r[:, -1]).sum()) for r in rows)
        return {
            **counts,
            "attempts": sum(d.attempts for d in self.drawn),
            "recordings_left_out": sum(key[1:] not in self.frames for key in motions),
            "recordings_of_unknown_rate": unknown_rates(motions),
        }


def corrected_plans(
    motions: Mapping[RecordingKey, Motion],
    people: list[str],
    coding: Coding,
    how: CorrectedSynthesis,
    source: Callable[[RecordingKey], Source],
) -> CorrectedPlans:
    """Synthetic recordings of everything that k people have, in an order that has nothing to do
    with their names. Recordings of unknown rate have no events; `source` gives the random words of
    one.
    """
    plans: dict[RecordingKey, SyntheticRecording] = {}
    all_drawn: list[Drawn] = []
    frames: dict[Cell, Frame] = {}
    joint, allowed = np.zeros((len(people), len(people))), 0
    for cell in sorted({key[1:] for key in motions}):
        # 2: in the pool, with or without events; 1: a recording whose rate is not known, which
        # tells nothing about time; 0: none.
        own = [motions.get((person, *cell)) for person in people]
        status = np.array([0 if m is None else 1 + (m.rate_hz > 0) for m in own])
        members = np.flatnonzero(status == 2)
        if len(members) < how.rule.k:
            continue
        pool = [motions[people[i], *cell] for i in members]
        frames[cell] = frame = common_frame(pool, how.rule.k)
        coded = how.coding_for(coding, frame)
        # The crowd seeds every person with a recording, so that an unknown rate does not show.
        seeded = members if how.own else np.flatnonzero(status)
        keys = [(people[i], *cell) for i in seeded]
        drawn = _draw(coded, keys, pool, frame, how, source)
        for key, events in zip(keys, drawn, strict=True):
            plans[key] = coded.plan(events, frame.space, frame.rate_hz, frame.samples)
        all_drawn += drawn
        pairs = most_events(frame.seconds, coded.clock(frame.space)) * len(keys)
        allowed += 2 * how.rule.attempts * pairs
        # A person without a recording there would have released none. A person with one of unknown
        # rate would have released only lost samples.
        joint += np.where(status[:, None] == status, 0.0, -np.inf)
        if how.own:
            joint[np.ix_(members, members)] += np.array([events.joint for events in drawn])
    return CorrectedPlans(plans, all_drawn, frames, joint, allowed)


def _draw(
    coding: Coding,
    keys: Sequence[RecordingKey],
    pool: Sequence[Motion],
    frame: Frame,
    how: CorrectedSynthesis,
    source: Callable[[RecordingKey], Source],
) -> list[Drawn]:
    """Events of the recordings of one stimulus; compiled code that lets other threads run."""
    records, clock = coding.records(pool), coding.clock(frame.space)

    def events(i: int) -> Drawn:
        own = i if how.own else -1
        return draw(*records, how.rule, clock, frame.seconds, source(keys[i]), own)

    # The first one alone, so that code is compiled once and not by all threads at a time.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as threads:
        return [events(0), *threads.map(events, range(1, len(keys)))]
