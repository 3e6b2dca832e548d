"""The corrected reading of event-synth-pd: what it learns from all people together (the generator
of saccades, the middles and units of events' numbers), and what it draws for each stimulus, session
and task.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.synthesis.events_pd.coding import (
    PLACE_SHARE,
    Coding,
    Drawn,
    SyntheticRecording,
    draw,
    fixation_numbers,
    saccade_numbers,
)
from gazeveil.privacy.synthesis.events_pd.saccade_models import (
    PPCA,
    Generator,
    conditions,
    fitted,
    moments,
)
from gazeveil.privacy.synthesis.events_pd.seeds import Rule
from gazeveil.privacy.synthesis.ksame.groups import Cell, Frame, common_frame, unknown_rates
from gazeveil.privacy.synthesis.motion import Motion


def by_content(motions: Mapping[RecordingKey, Motion]) -> list[str]:
    """People in an order that has nothing to do with their names: exchange two people's recordings,
    and the order of the recordings stays.
    """
    return sorted({key[0] for key in motions}, key=lambda person: _content(motions, person))


def _content(motions: Mapping[RecordingKey, Motion], person: str) -> bytes:
    """A fingerprint of everything a person did, without the name."""
    digest = hashlib.sha256()
    for key in sorted(k for k in motions if k[0] == person):
        m = motions[key]
        # Rates, lengths and spaces too: they are averaged in this order, and the last digit of a
        # mean depends on it.
        digest.update(
            "\x1f".join((*key[1:], repr(m.space), repr(m.rate_hz), str(m.samples))).encode()
        )
        for values in (m.fixations, m.saccades, m.profiles, m.onset):
            digest.update(values.tobytes())
    return digest.digest()


def saccades(
    motions: Mapping[RecordingKey, Motion], people: Sequence[str]
) -> tuple[Floats, Floats, Floats, Ints]:
    """Profiles, amplitudes and durations of all saccades, one person's after another's, and where
    each person's begin.

    Returns
    -------
    profiles_deg_s : array, shape (saccades, 30)
    amplitude_deg, duration_s : arrays, shape (saccades,)
    starts : array of int64, shape (people + 1,)
    """
    ordered = [
        [motions[key] for key in sorted(k for k in motions if k[0] == person)] for person in people
    ]
    flat = [m for mine in ordered for m in mine if len(m.saccades)]
    starts = np.concatenate(
        ([0], np.cumsum([sum(len(m.saccades) for m in mine) for mine in ordered]))
    ).astype(np.int64)
    if not flat:
        return np.empty((0, 30)), np.empty(0), np.empty(0), starts
    about = [conditions(m.profiles, m.saccades[:, 3] / m.rate_hz) for m in flat]
    return (
        np.concatenate([m.profiles for m in flat]),
        np.concatenate([a for a, _ in about]),
        np.concatenate([t for _, t in about]),
        starts,
    )


def closed_form(motions: Mapping[RecordingKey, Motion], people: Sequence[str]) -> PPCA:
    """Probabilistic PCA of all saccades."""
    return fitted(moments(*saccades(motions, people)))


def network(
    motions: Mapping[RecordingKey, Motion],
    people: Sequence[str],
    identity: Mapping[str, float] | None,
    source: Source,
) -> Generator:
    """David-John et al.'s (2023) C-VAE of all saccades; `identity` gives the number that stands for
    a person, None leaves it out.

    Raises
    ------
    DataError
        If there is no saccade.
    MissingExtraError
        Without torch.
    """
    from gazeveil.models.cvae import Layers, Schedule, trained

    profiles, amplitude, duration, starts = saccades(motions, people)
    who = np.repeat([0.0 if identity is None else identity[p] for p in people], np.diff(starts))
    # Training needs no secret, only a start that changes from release to release.
    seed = int(source.take(1)[0] >> np.uint64(33))
    return trained(
        profiles,
        amplitude,
        duration,
        who,
        layers=Layers(identity=identity is not None),
        schedule=Schedule(seed=seed),
    )[0]


def coding(
    generator: Generator, motions: Mapping[RecordingKey, Motion], people: Sequence[str]
) -> Coding:
    """Middles and units of events' numbers: those of all events together, or the public ones where
    there are hardly any.
    """
    ordered = [
        motions[key]
        for person in people
        for key in sorted(k for k in motions if k[0] == person)
        if motions[key].rate_hz > 0
    ]
    looks = np.concatenate([fixation_numbers(m) for m in ordered] or [np.empty((0, 3))])
    moves = np.concatenate([saccade_numbers(m) for m in ordered] or [np.empty((0, 2))])
    if len(looks) < 2 or len(moves) < 2:
        return Coding(generator, 1.0)
    # A unit of at least 0.1 keeps events of one and the same length apart by no more than what is
    # told apart anyhow.
    return Coding(
        generator,
        1.0,
        looks.mean(axis=0),
        np.maximum(looks.std(axis=0), 0.1),
        moves.mean(axis=0),
        np.maximum(moves.std(axis=0), 0.1),
    )


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
    """

    plans: dict[RecordingKey, SyntheticRecording]
    drawn: list[Drawn]
    frames: dict[Cell, Frame]

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
    rule: Rule,
    place_deg: float | None,
    source: Callable[[RecordingKey], Source],
) -> CorrectedPlans:
    """Synthetic recordings of everything that k people have, in an order that has nothing to do
    with their names. Recordings of unknown rate have no events; `source` gives the random words of
    one. Noise of places is `place_deg` wide, by default :data:`PLACE_SHARE` of the space.
    """
    plans: dict[RecordingKey, SyntheticRecording] = {}
    all_drawn: list[Drawn] = []
    frames: dict[Cell, Frame] = {}
    for cell in sorted({key[1:] for key in motions}):
        # 2: in the pool, with or without events; 1: a recording whose rate is not known, which
        # tells nothing about time; 0: none.
        own = [motions.get((person, *cell)) for person in people]
        status = np.array([0 if m is None else 1 + (m.rate_hz > 0) for m in own])
        members = np.flatnonzero(status == 2)
        if len(members) < rule.k:
            continue
        pool = [motions[people[i], *cell] for i in members]
        frames[cell] = frame = common_frame(pool, rule.k)
        extent = min(frame.space.width_deg, frame.space.height_deg)
        coded = replace(coding, place_deg=place_deg or PLACE_SHARE * extent)
        # Every person with a recording is seeded, so that an unknown rate does not show.
        keys = [(people[i], *cell) for i in np.flatnonzero(status)]
        drawn = _draw(coded, keys, pool, frame, rule, source)
        for key, events in zip(keys, drawn, strict=True):
            plans[key] = coded.plan(events, frame.space, frame.rate_hz, frame.samples)
        all_drawn += drawn
    return CorrectedPlans(plans, all_drawn, frames)


def _draw(
    coding: Coding,
    keys: Sequence[RecordingKey],
    pool: Sequence[Motion],
    frame: Frame,
    rule: Rule,
    source: Callable[[RecordingKey], Source],
) -> list[Drawn]:
    """Events of the recordings of one stimulus; compiled code that lets other threads run."""
    records, clock = coding.records(pool), coding.clock(frame.space)

    def events(i: int) -> Drawn:
        return draw(*records, rule, clock, frame.seconds, source(keys[i]))

    # The first one alone, so that code is compiled once and not by all threads at a time.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as threads:
        return [events(0), *threads.map(events, range(1, len(keys)))]
