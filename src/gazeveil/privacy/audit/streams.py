"""Games against releases of stream mechanisms: a cohort of unequal rates, spaces and lengths, and
every change its promise has a small loss for.

Everybody in the cohort has the same recordings, so one release is as many trials as there are
people: each recording has noise of its own. Gaze lies still; the change moves it by as much as the
change allows. What is released of the changed samples is judged by its mean along the move, which
is best for Gaussian noise, and by how much nearer new places are to one of the two places, which
for Laplace noise of one scale is the likelihood ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import GazeveilError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import GAME_SCREEN, Game, claim_of
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.promise.loss import Change
from gazeveil.privacy.stream.mechanism import StreamMechanism

#: Losses above this cannot be refuted with a few thousand releases.
MOST_EPSILON = 4.0

_PEOPLE = 100  # in one release


@dataclass(frozen=True)
class RecordingKind:
    """One recording that everybody has.

    Parameters
    ----------
    stimulus : str
        Its name.
    rate_hz : float
        Samples per second.
    space : Sphere or Screen
        What degrees mean.
    samples : int
        Its length.
    """

    stimulus: str
    rate_hz: float
    space: Space
    samples: int


def kinds(window: int) -> tuple[RecordingKind, ...]:
    """Recordings of unequal rates, spaces and lengths, one of them as long as a window of so many
    samples at the highest rate.
    """
    return (
        RecordingKind("slow", 60.0, Sphere(), max(60, min(window, 600))),
        RecordingKind("fast", 1000.0, Sphere(), max(60, min(window, 1000))),
        RecordingKind("screen", 120.0, GAME_SCREEN, 60),
    )


@dataclass(frozen=True)
class Places:
    """Where gaze lies, and where the change moves it to (x and y in degrees), on a sphere and on a
    screen.
    """

    before: tuple[float, float]
    after: tuple[float, float]


def places(space: Space, move_deg: float, pole: bool) -> Places:
    """Two places that far apart: in the middle of the space, or across a pole of the sphere."""
    if not isinstance(space, Sphere):
        return Places((0.0, 0.0), (min(move_deg, 80.0), 0.0))
    if pole:
        return Places((0.0, min(move_deg, 90.0) / 2), (180.0, min(move_deg, 90.0) / 2))
    return Places((90.0, 90.0), (90.0 + min(move_deg, 180.0), 90.0))


def still(person: str, kind: RecordingKind, spot: Places, changed: slice) -> Recording:
    """Gaze that lies still, moved in some samples."""
    x, y = np.full(kind.samples, spot.before[0]), np.full(kind.samples, spot.before[1])
    x[changed], y[changed] = spot.after
    t = np.rint(np.arange(kind.samples) * (1e9 / kind.rate_hz)).astype(np.int64)
    return Recording(person, kind.stimulus, t, x, y, space=kind.space, rate_hz=kind.rate_hz)


def evidence(released: Recording, spot: Places, changed: slice) -> tuple[float, float, float]:
    """Of the changed samples: how much nearer they are to the second place on average and new
    places in all, and how far they lie along the move.
    """
    x, y = released.x_deg[changed], released.y_deg[changed]
    good = np.isfinite(x)
    x, y = x[good], y[good]
    if not len(x):
        return 0.0, 0.0, 0.0
    if isinstance(released.space, Sphere):
        v = released.space.vectors(x, y)
        ends = [
            released.space.vectors(np.array([p[0]]), np.array([p[1]]))[0]
            for p in (spot.before, spot.after)
        ]
        near, far = (np.degrees(np.arccos(np.clip(v @ e, -1.0, 1.0))) for e in ends)
        along = v @ (ends[1] - ends[0])
    else:
        near, far = (np.hypot(x - p[0], y - p[1]) for p in (spot.before, spot.after))
        along = x
    lean = near - far
    fresh = np.concatenate(([True], (np.diff(x) != 0) | (np.diff(y) != 0)))
    return float(lean.mean()), float(lean[fresh].sum()), float(along.mean())


@dataclass(frozen=True)
class CohortGame:
    """One change in one or all recordings of every person, played through `release(cohort)`.

    Parameters
    ----------
    mechanism : StreamMechanism
        Under attack.
    all_kinds : tuple of RecordingKind
        What everybody has.
    changed : tuple of (RecordingKind, slice)
        Which samples of which recordings change.
    move_deg : float
        How far.
    pole : bool
        Whether gaze lies at a pole of the sphere.
    """

    mechanism: StreamMechanism
    all_kinds: tuple[RecordingKind, ...]
    changed: tuple[tuple[RecordingKind, slice], ...]
    move_deg: float
    pole: bool = False

    def cohort(self, side: int, people: int) -> Cohort:
        """One of two neighbours, for many people at once; one more person has all recordings, so
        that the promise is about all of them.
        """
        named = [
            (f"p{i}", kind, some if side else slice(0, 0))
            for i in range(people)
            for kind, some in self.changed
        ]
        named += [("other", kind, slice(0, 0)) for kind in self.all_kinds]
        return Cohort(
            [
                still(person, kind, places(kind.space, self.move_deg, self.pole), some)
                for person, kind, some in named
            ]
        )

    def play(self, side: int, trials: int, seed: int | None) -> Floats:
        """The evidence of each person, shape (trials, 3)."""
        rows: list[Floats] = []
        changed = {kind.stimulus: (kind, some) for kind, some in self.changed}
        for begin in range(0, trials, _PEOPLE):
            people = min(_PEOPLE, trials - begin)
            sums = {f"p{i}": np.zeros(3) for i in range(people)}
            for released in self.mechanism.release(
                self.cohort(side, people), seed=None if seed is None else seed + 2 * begin + side
            ).data:
                if released.person in sums:
                    kind, some = changed[released.stimulus]
                    # Where samples are left out, so are changed ones.
                    kept = slice(
                        some.start // self.mechanism.stride, -(-some.stop // self.mechanism.stride)
                    )
                    sums[released.person] += evidence(
                        released, places(kind.space, self.move_deg, self.pole), kept
                    )
            rows.append(np.array(list(sums.values())))
        return np.concatenate(rows)


def changes(guarantee: Guarantee) -> Iterator[tuple[str, Change]]:
    """The promise's own change, and the ones its sentence names besides."""
    own = guarantee.change
    assert own is not None
    move = own.move_deg if own.move_deg is not None else Fraction(1)
    yield "its own change", own
    yield "one sample", Change.sample(move, own.metric)
    samples = guarantee.numbers.get("w_samples")
    if samples is not None:
        yield (
            f"{samples} samples in a row",
            Change.window(int(samples), move_deg=move, metric=own.metric),
        )
    yield "a tenth of a second", Change.window(seconds="1/10", move_deg=move, metric=own.metric)
    yield "a recording", Change.recording(move, own.metric)
    yield "a person", Change.person(move, own.metric)


def changed_samples(change: Change, kind: RecordingKind) -> slice:
    """Which samples of a recording a change may touch, as many as it allows, away from the
    beginning where there is room.
    """
    if change.unit in ("recording", "user"):
        return slice(0, kind.samples)
    count = (
        1
        if change.unit == "sample"
        else (
            change.samples
            if change.samples is not None
            else math.ceil((change.seconds or 0) * Fraction(kind.rate_hz))
        )
    )
    count = min(count, kind.samples)
    begin = (kind.samples - count) // 2
    return slice(begin, begin + count)


def mixed_guarantee(mechanism: StreamMechanism, every: tuple[RecordingKind, ...]) -> Guarantee:
    """What a release of all these recordings promises."""
    return mechanism.release(
        Cohort([still("p0", kind, places(kind.space, 1.0, False), slice(0, 0)) for kind in every])
    ).guarantee


def cohort_games(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """Every change with a small promised loss, in the recording that loses most
    by its own promise.
    """
    if not isinstance(mechanism, StreamMechanism):
        return
    promise = mechanism.promise(100.0, Sphere())
    if promise.status != "proved" or promise.losses is None:
        return
    # Recordings must be as long as the windows that the promise speaks of, which are known once
    # there is one.
    taken = tuple(kind for kind in kinds(60) if _takes(mechanism, kind))
    if not taken:
        return
    window = mixed_guarantee(mechanism, taken).numbers.get("w_samples", Fraction(60))
    every = tuple(kind for kind in kinds(int(window)) if _takes(mechanism, kind))
    mixed = mixed_guarantee(mechanism, every)
    seen: set[tuple[object, ...]] = set()
    for extent, change in changes(mixed):
        bound = claim_of(mixed, change, MOST_EPSILON)
        if bound is None or change.move_deg is None:
            continue
        worst = every if change.unit == "user" else (_worst(mechanism, every, change),)
        group = tuple((kind, changed_samples(change, kind)) for kind in worst)
        where = tuple((kind.stimulus, some.start, some.stop) for kind, some in group)
        if (where, bound) in seen:
            continue
        seen.add((where, bound))
        names = " and ".join(
            f"{kind.samples} samples at {kind.rate_hz:g} Hz on a {_space_word(kind.space)}"
            for kind, _ in group
        )
        about = (
            f"A cohort of unequal rates and spaces: {extent} of {names}, moved by"
            f" {float(change.move_deg):g} degrees."
        )
        yield Game(
            change.unit,
            bound[0],
            about,
            CohortGame(mechanism, every, group, float(change.move_deg)).play,
            delta=bound[1],
        )
    # By the space's own distance a small move turns x by half a turn at a pole.
    near_pole = Change.sample(mixed.change.move_deg if mixed.change is not None else 1, "space")
    bound = claim_of(mixed, near_pole, MOST_EPSILON)
    if bound is not None and near_pole.move_deg is not None:
        game = CohortGame(
            mechanism, every, ((every[0], slice(30, 31)),), float(near_pole.move_deg), pole=True
        )
        yield Game(
            "sample",
            bound[0],
            "One sample, moved across a pole of the sphere.",
            game.play,
            delta=bound[1],
        )


def _takes(mechanism: StreamMechanism, kind: RecordingKind) -> bool:
    """Whether a mechanism takes recordings of that rate: some windows are too long for it."""
    try:
        mechanism.promise(kind.rate_hz, kind.space)
    except GazeveilError:
        return False
    return True


def _worst(
    mechanism: StreamMechanism, every: tuple[RecordingKind, ...], change: Change
) -> RecordingKind:
    """The recording whose own promise loses most for a change: a promise about all of them must not
    be below that.
    """

    def own(kind: RecordingKind) -> Fraction:
        alone = mechanism.promise(kind.rate_hz, kind.space).losses
        samples = changed_samples(change, kind)
        return (
            alone.loss(
                Change.window(
                    samples.stop - samples.start, move_deg=change.move_deg, metric=change.metric
                )
            ).amount
            if alone
            else Fraction(0)
        )

    return max(every, key=own)


def _space_word(space: Space) -> str:
    return "sphere" if isinstance(space, Sphere) else "screen"
