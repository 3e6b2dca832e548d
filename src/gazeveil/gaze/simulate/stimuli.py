"""Stimuli: what everybody who looks at the same thing shares.

A stimulus is a set of places worth looking at (spots: a weight, a size, and for moving ones two
slow sinusoids), a page of words, or a list of targets that jump. Spots make the attention map sum_k
w_k exp((cos d_k - 1) / s_k^2), with d_k the angle to spot k: on small angles a Gaussian of
deviation s_k.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from gazeveil.arrays import Floats
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.simulate.people import DOCUMENTS, STIMULUS, TASKS, stream

#: Columns of `Stimulus.motion`: amplitude (deg), frequency (Hz) and phase (rad) to the right and
#: down.
MOTION = ("right_deg", "right_hz", "right_phase", "down_deg", "down_hz", "down_phase")


class Scene(NamedTuple):
    """A stimulus in its space, for compiled code; the arrays are those of :class:`Stimulus`."""

    sphere: bool
    half_extent_deg: tuple[float, float]
    spots: Floats
    weights: Floats
    sizes_deg: Floats
    motion: Floats
    words: Floats
    habits: Floats
    targets: Floats
    jumps_s: Floats
    light: Floats


@dataclass(frozen=True, eq=False)
class Stimulus:
    """One stimulus.

    Parameters
    ----------
    name : str
        Its name in the cohort.
    task : str
        The task it is made for.
    document : str
        `comic`, `newspaper` or `textbook` for reading, else empty.
    spots : array, shape (k, 3)
        Unit vectors of the places worth looking at (their centres of motion).
    weights, sizes_deg : array, shape (k,)
        How attractive and how large they are.
    motion : array, shape (k, 6)
        How they move, see :data:`MOTION`.
    words : array, shape (m, 3)
        Unit vectors of the words in reading order.
    habits : array, shape (4,)
        Reading this page: probability to skip a word, probability to go back, factor of fixation
        duration, scatter of landing (deg).
    targets : array, shape (j, 3)
        Unit vectors of the targets, in order: those that jump, or those hidden in a search.
    jumps_s : array, shape (j,)
        When each target appears.
    light : array, shape (3,)
        Pupil response shared by all who watch: amplitude (mm), frequency (Hz), phase (rad).
    """

    name: str
    task: str
    document: str
    spots: Floats = field(repr=False)
    weights: Floats = field(repr=False)
    sizes_deg: Floats = field(repr=False)
    motion: Floats = field(repr=False)
    words: Floats = field(repr=False)
    habits: Floats = field(repr=False)
    targets: Floats = field(repr=False)
    jumps_s: Floats = field(repr=False)
    light: Floats = field(repr=False)

    def scene(self, space: Space) -> Scene:
        """The stimulus as compiled code takes it."""
        arrays = (getattr(self, name) for name in Scene._fields[2:])
        return Scene(isinstance(space, Sphere), half_extent(space), *arrays)


@lru_cache(maxsize=256)
def stimulus(
    entropy: int, index: int, task: str, space: Space, seconds: float, document: str | None = None
) -> Stimulus:
    """Stimulus number `index` (from 0) of a seed; only the number of jumps depends on how long it
    is shown.
    """
    rng = stream(entropy, STIMULUS, TASKS.index(task), index)
    if task == "reading" and document is None:
        document = DOCUMENTS[index % len(DOCUMENTS)]
    light = np.array([rng.uniform(0.03, 0.10), rng.uniform(0.03, 0.12), rng.uniform(0, 2 * np.pi)])
    spots, weights, sizes, motion = _spots(rng, task, space)
    words, habits = (
        _page(rng, document or "textbook", space)
        if task == "reading"
        else (np.empty((0, 3)), np.array([0.0, 0.0, 1.0, 0.0]))
    )
    targets, jumps = _targets(rng, task, space, seconds)
    arrays = (spots, weights, sizes, motion, words, habits, targets, jumps, light)
    for array in arrays:
        # One stimulus is shared by the truth of many recordings.
        array.setflags(write=False)
    return Stimulus(f"{document or task}-{index + 1}", task, document or "", *arrays)


def half_extent(space: Space) -> tuple[float, float]:
    """Degrees from the centre to the edges that gaze keeps to: the screen, or what a turning head
    reaches with ease.
    """
    if isinstance(space, Screen):
        return space.width_deg / 2, space.height_deg / 2
    return 180.0, 75.0


def _vectors(space: Space, right: Floats, down: Floats) -> Floats:
    if isinstance(space, Sphere):
        return space.vectors(180.0 + right, 90.0 + down)
    return space.vectors(right, down)


def _spots(rng: Generator, task: str, space: Space) -> tuple[Floats, ...]:
    wide, high = half_extent(space)
    if task in ("reading", "random-saccade"):
        return np.empty((0, 3)), np.empty(0), np.empty(0), np.empty((0, len(MOTION)))
    sphere = isinstance(space, Sphere)
    if task == "tracking":
        reach = (25.0, 12.0) if sphere else (0.7 * wide, 0.7 * high)
        path = [
            rng.uniform(0.6, 1.0) * reach[0],
            rng.uniform(0.10, 0.22),
            rng.uniform(0, 2 * np.pi),
        ]
        path += [
            rng.uniform(0.4, 1.0) * reach[1],
            rng.uniform(0.14, 0.30),
            rng.uniform(0, 2 * np.pi),
        ]
        return _vectors(space, np.zeros(1), np.zeros(1)), np.ones(1), np.ones(1), np.array([path])
    many = 24 if task == "search" else 10
    if sphere:
        many *= 3
        right, down = rng.uniform(-180, 180, many), np.clip(rng.normal(10, 32, many), -70, 70)
        sizes = rng.uniform(4, 12, many)
    else:
        # People look at the middle of a picture more than at its edges (Tatler 2007).
        right = np.clip(rng.normal(0, 0.42 * wide, many), -0.9 * wide, 0.9 * wide)
        down = np.clip(rng.normal(0, 0.38 * high, many), -0.85 * high, 0.85 * high)
        sizes = rng.uniform(0.05, 0.16, many) * wide
    weights = rng.gamma(1.2, 1.0, many) + 0.1
    motion = np.zeros((many, len(MOTION)))
    if task == "video":
        moving = rng.random(many) < 0.6
        for column, low, top in ((0, 0.10, 0.35), (3, 0.04, 0.15)):
            scale = 40.0 if sphere else wide
            motion[:, column] = np.where(moving, rng.uniform(low, top, many) * scale, 0.0)
            motion[:, column + 1] = rng.uniform(0.06, 0.22, many)
            motion[:, column + 2] = rng.uniform(0, 2 * np.pi, many)
    return _vectors(space, right, down), weights / weights.sum(), sizes, motion


def _targets(rng: Generator, task: str, space: Space, seconds: float) -> tuple[Floats, Floats]:
    if task not in ("random-saccade", "search"):
        return np.empty((0, 3)), np.empty(0)
    # One target after the other, so that a longer recording begins with the same ones.
    wide, high = half_extent(space)
    wide, high = (
        (30.0, 18.0)
        if isinstance(space, Sphere) and task == "random-saccade"
        else (0.8 * min(wide, 120.0), 0.8 * min(high, 40.0))
    )
    drawn = rng.random((int(seconds) + 2, 3))
    places = _vectors(space, (2 * drawn[:, 0] - 1) * wide, (2 * drawn[:, 1] - 1) * high)
    return places, np.concatenate(([0.0], np.cumsum(1.0 + 0.5 * drawn[:-1, 2])))


def _page(rng: Generator, document: str, space: Space) -> tuple[Floats, Floats]:
    wide, high = half_extent(space)
    wide, high = (20.0, 14.0) if isinstance(space, Sphere) else (0.85 * wide, 0.85 * high)
    places: list[tuple[float, float]] = []
    if document == "textbook":
        for down in np.arange(-high, high, rng.uniform(1.1, 1.4)):
            places += _line(rng, -0.8 * wide, 0.8 * wide, float(down), 2.3)
        habits = [0.10, 0.16, 1.10, 0.35]
    elif document == "newspaper":
        columns = int(rng.integers(3, 5))
        width = 2 * wide / columns
        # Articles are read in an order of one's own, not from left to right.
        for column in rng.permutation(columns):
            left = -wide + column * width
            for down in np.arange(-high + rng.uniform(0, 0.5) * high, high, rng.uniform(0.8, 1.0)):
                places += _line(rng, left, left + 0.8 * width, float(down), 1.9)
        habits = [0.22, 0.10, 0.95, 0.40]
    else:
        rows, per_row = int(rng.integers(2, 4)), int(rng.integers(2, 4))
        for row in range(rows):
            for column in range(per_row):
                left, top = -wide + 2 * wide * column / per_row, -high + 2 * high * row / rows
                width, height = 2 * wide / per_row, 2 * high / rows
                for _ in range(int(rng.integers(1, 3))):
                    bubble = (
                        left + rng.uniform(0.05, 0.45) * width,
                        top + rng.uniform(0.03, 0.35) * height,
                    )
                    for line in range(int(rng.integers(1, 4))):
                        places += _line(
                            rng, bubble[0], bubble[0] + 0.42 * width, bubble[1] + 1.0 * line, 1.8
                        )
                    for _ in range(int(rng.integers(4, 9))):
                        places.append(
                            (
                                left + rng.uniform(0.1, 0.9) * width,
                                top + rng.uniform(0.25, 0.95) * height,
                            )
                        )
        habits = [0.12, 0.12, 1.15, 0.55]
    right, down = np.array(places).T
    return _vectors(space, np.clip(right, -wide, wide), np.clip(down, -high, high)), np.array(
        habits
    )


def _line(
    rng: Generator, left: float, right: float, down: float, pitch_deg: float
) -> list[tuple[float, float]]:
    """Words of one line; their spacing follows word length."""
    places = []
    at = left + 0.5 * pitch_deg * rng.uniform(0.4, 1.0)
    while at < right:
        places.append((at, down))
        at += pitch_deg * rng.gamma(7.0, 1 / 7.0)
    return places or [((left + right) / 2, down)]
