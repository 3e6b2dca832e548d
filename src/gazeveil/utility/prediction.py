"""`prediction`: where gaze will be in 100 ms, told from the last 500 ms of the released stream
(David-John et al. 2021; DGaze, Hu et al. 2020).

Every `every_s` seconds of a recording the analyst has the released samples up to now and says where
gaze will be at now + `horizon_s`. The truth is always the raw gaze at that time, and the figure is
the mean angle between the two, per person.

* `hold`: where gaze is now (the newest released sample).
* `linear`: the straight line through the last 100 ms, by least squares, continued.
* `ridge`: a linear model of the whole past, trained on other people: `train_share` of the people,
  drawn by the seed. It learns from the material of the scenario (raw training: the release meets a
  model it was not made for; private training: the model is trained again on releases), with raw
  gaze as the target either way.
* `kalman`: place and speed by a Kalman filter, whose one ratio is chosen on the same people.
* `dgaze`: a network in the manner of DGaze, trained on the same people, which sees the head as
  recorded (`head=none`: gaze alone), objects and saliency where the recording has them. With
  `reading=published` it is trained as its authors do and everything, floors too, is measured on the
  headset's screen; `corrected` is ours, in the world. Beside it stands `kalman_error_deg`.

`target` says what training aims at: `raw` gaze, as David-John et al. 2021 has it, or the `released`
one, which is all that an analyst of a published release has. `prediction:target=released` in the
scenario private/raw asks whether a model learnt from a release alone serves real people.

A release of pieces is learnt from and tested piece by piece. The train/test split goes by the true
names, so no participant is on both sides.

Who is tested differs from seed to seed, and people differ more than mechanisms do:
`error_over_hold` is the model's error divided by that of `hold` for the same person, 1 for a model
that knows no better than where gaze is now.

The floors `hold_error_deg` and `linear_error_deg` are always given, for the same people and moments
as `error_deg` of the model.

Geometry and rates: see :mod:`gazeveil.utility.moments`.

What a predictor must beat is linear in the past, and the same for right and down: the straight line
through the last samples, and a Kalman filter. What a model learns is linear too, or the network
`dgaze`.

Least squares would serve the few large saccades and lose to `hold` in the mean angle, which is what
is measured; so after the first fit the moments are weighted by one over their error, a few times,
which leads to the least mean angle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import column_means
from gazeveil.gaze.geometry import angle_deg, from_tangents
from gazeveil.gaze.recording import Recording
from gazeveil.models.headset.dgaze import GazePredictor, dgaze_plan, train_dgaze
from gazeveil.models.training import HEADS, READINGS, StepPlan, best_device
from gazeveil.utility.base import Utility, UtilityResult, need_samples, viewer_by_viewer
from gazeveil.utility.moments import (
    LAGS,
    Histories,
    Moments,
    from_plane,
    histories,
    in_the_head,
    moments_of,
    seen_as_tangents,
)

#: How much of the past the straight line is fitted to.
LINE_S = 0.1

#: Ratios that the Kalman filter chooses from: spectral density of the acceleration's noise over the
#: variance of a reading, in 1/s^3. The smallest averages over the whole past, the largest follows
#: every sample.
RATIOS = tuple(10.0**power for power in range(-2, 9))


def line_weights(horizon_s: float, past_s: float) -> Floats:
    """How much each moment of the past weighs in the line through the last 100 ms, continued to the
    horizon; shape (lags,).
    """
    times = -np.arange(LAGS) * (past_s / LAGS)
    used = times >= -LINE_S - 1e-9
    used[:2] = True
    weights = np.zeros(LAGS)
    basis = np.stack((np.ones(int(used.sum())), times[used]), axis=1)
    weights[used] = np.array([1.0, horizon_s]) @ np.linalg.pinv(basis)
    return weights


def kalman_weights(ratio: float, horizon_s: float, past_s: float) -> Floats:
    """How much each moment of the past weighs in what a Kalman filter says of the horizon; shape
    (lags,).

    The filter knows place and speed, the speed changes at random (white noise of acceleration), it
    begins at the oldest moment without knowing a speed, and continues its last speed.

    Parameters
    ----------
    ratio : float
        One of :data:`RATIOS`: small for noisy readings.
    horizon_s, past_s : float
        How far ahead, and how long the past is, in seconds.
    """
    step = past_s / LAGS
    forward = np.array([[1.0, step], [0.0, 1.0]])
    drift = ratio * np.array([[step**3 / 3, step**2 / 2], [step**2 / 2, step]])
    # Rows: place and speed as weights of the moments, which are read from the oldest on.
    state, spread = np.zeros((2, LAGS)), np.diag([1.0, 1e6])
    state[0, -1] = 1.0
    for lag in range(LAGS - 2, -1, -1):
        state, spread = forward @ state, forward @ spread @ forward.T + drift
        gain = spread[:, 0] / (spread[0, 0] + 1.0)
        seen = np.zeros(LAGS)
        seen[lag] = 1.0
        state = state + gain[:, None] * (seen - state[0])[None, :]
        spread = spread - np.outer(gain, spread[0])
    return np.asarray(state[0] + horizon_s * state[1])


def best_kalman(
    past_deg: Sequence[Floats], target_deg: Sequence[Floats], horizon_s: float, past_s: float
) -> Floats:
    """The weights of the ratio with the least mean error on training moments; the middle one where
    there are none.

    Parameters
    ----------
    past_deg : sequence of arrays, shape (moments, lags, 2)
        Past gaze.
    target_deg : sequence of arrays, shape (moments, 2)
        Where gaze went.
    horizon_s, past_s : float
        In seconds.
    """
    choices = [kalman_weights(r, horizon_s, past_s) for r in RATIOS]
    if not sum(map(len, past_deg)):
        return choices[len(choices) // 2]
    past, target = np.concatenate(past_deg), np.concatenate(target_deg)
    errors = [
        float(np.linalg.norm(np.einsum("nlk,l->nk", past, w) - target, axis=1).mean())
        for w in choices
    ]
    return choices[int(np.argmin(errors))]


MODELS = ("ridge", "linear", "hold", "kalman", "dgaze")

TARGETS = ("raw", "released")

#: Most moments that a linear model learns from, spread evenly over recordings.
MOST_MOMENTS = 40_000


@dataclass(frozen=True)
class Prediction(Utility):
    """Gaze prediction.

    Parameters
    ----------
    model : {"ridge", "linear", "hold", "kalman", "dgaze"}
        What `error_deg` is the error of.
    horizon_s : float
        How far ahead, in seconds.
    past_s : float
        How much of the past is known, in seconds.
    every_s : float
        Seconds between the moments at which gaze is told.
    train_share : float
        Share of the people that a model is trained on; the others are tested.
    penalty : float
        How strongly ridge regression holds its weights back, in mean squares of its inputs.
    target : {"raw", "released"}
        Where gaze went, as training has it.
    reading : {"corrected", "published"}
        Of `dgaze`.
    head : {"recorded", "none"}
        Whether `dgaze` looks at the head.
    steps : int
        Batches that `dgaze` is trained with.
    """

    name: ClassVar[str] = "prediction"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    trains: ClassVar[bool] = True

    model: str = "ridge"
    horizon_s: float = 0.1
    past_s: float = 0.5
    every_s: float = 0.05
    train_share: float = 0.6
    penalty: float = 1e-3
    target: str = "raw"
    reading: str = "corrected"
    head: str = "recorded"
    steps: int = 1500

    def check(self) -> None:
        """A word, times, a share, a weight."""
        checks.one_of(self.name, "model", self.model, MODELS)
        for field in ("horizon_s", "past_s", "every_s"):
            self.store(field, checks.positive(self.name, field, getattr(self, field)))
        share = checks.positive(self.name, "train_share", self.train_share)
        if share >= 1:
            checks.refuse(self.name, "train_share", "above 0 and below 1", self.train_share)
        self.store("train_share", share)
        self.store("penalty", checks.not_negative(self.name, "penalty", self.penalty))
        checks.one_of(self.name, "target", self.target, TARGETS)
        checks.one_of(self.name, "reading", self.reading, READINGS)
        checks.one_of(self.name, "head", self.head, HEADS)
        self.store("steps", checks.count(self.name, "steps", self.steps))
        if self.reading == "published" and self.model != "dgaze":
            checks.refuse(
                self.name, "reading", "corrected for this model", self.reading, "Use model=dgaze."
            )

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Mean angular errors in degrees of the model and the floors, and the model's over that of
        `hold`, one part per test person.
        """
        need_samples(self.name, raw, train, test)
        learners, tested = self.split(raw, train, test, seed)
        learnt, notes = Learnt(), []
        if self.model in ("ridge", "kalman", "dgaze"):
            learnt = self.learnt(raw, train, learners, seed)
            own = {"ridge": learnt.ridge, "kalman": learnt.kalman, "dgaze": learnt.network}
            notes.append(
                f"trained on {len(learners)} others"
                if own[self.model] is not None
                else "nothing to train on: the training material has no gaze to learn from"
            )
        return self._judged(raw, test, tested, learnt, notes)

    def _judged(
        self,
        raw: RecordingSet,
        test: RecordingSet,
        tested: tuple[str, ...],
        learnt: Learnt,
        notes: Sequence[str],
    ) -> tuple[UtilityResult, ...]:
        """The figures of some people, from what was learnt from others."""
        said = [
            f"{self.horizon_s:g} s ahead from {self.past_s:g} s",
            f"{len(tested)} people tested",
            *notes,
        ]
        if self.model == "dgaze":
            where = "on the headset's screen" if self.reading == "published" else "in the world"
            said += [f"{self.reading} reading, {where}", f"head: {self.head}"]
        errors_deg = self._errors_deg(raw, test, tested, learnt)
        lost = int(np.isnan(errors_deg[:, 1]).sum())
        if lost:
            said.append(f"{lost} people have no released gaze to go by and are left out")
        models = {"error_deg": self.model, "hold_error_deg": "hold", "linear_error_deg": "linear"}
        if self.model == "dgaze":
            models["kalman_error_deg"] = "kalman"
        models["error_over_hold"] = f"{self.model} over hold"
        hold_deg = errors_deg[:, 1:2]
        over_hold = errors_deg[:, :1] / np.where(hold_deg > 0, hold_deg, np.nan)
        parts = np.concatenate((errors_deg[:, : len(models) - 1], over_hold), axis=1)
        return tuple(
            UtilityResult(
                metric,
                float(column_means(part)),
                part.copy(),
                "person",
                tested,
                note="; ".join([model, *said]),
            )
            for (metric, model), part in zip(models.items(), parts.T, strict=True)
        )

    def _errors_deg(
        self, raw: RecordingSet, test: RecordingSet, tested: tuple[str, ...], learnt: Learnt
    ) -> Floats:
        """Mean angular errors in degrees of the model, of `hold`, `linear` and `kalman`, shape
        (people, 4); NaN for a person without released gaze, and for a model that learnt nothing.
        """
        totals, counts = {p: np.zeros(4) for p in tested}, dict.fromkeys(tested, 0)
        for recorded, moments in self.moments(raw, test, tested):
            person = recorded.person
            totals[person] += [
                np.nan if told is None else float(angle_deg(told, moments.truth).sum())
                for told in (
                    self._told(model, recorded, moments, learnt)
                    for model in (self.model, "hold", "linear", "kalman")
                )
            ]
            counts[person] += len(moments)
        return np.array(
            [totals[p] / counts[p] if counts[p] else np.full(4, np.nan) for p in tested]
        )

    def _told(
        self, model: str, recorded: Recording, moments: Moments, learnt: Learnt
    ) -> Floats | None:
        """Where a model says that gaze will be, as unit vectors; None for one that learnt
        nothing.
        """
        if model == "dgaze":
            if learnt.network is None:
                return None
            seen = histories(recorded, moments, self.past_s, self.head, self.reading)
            return learnt.network.directions(seen)
        if model == "ridge":
            if learnt.ridge is None:
                return None
            return from_plane(moments.now, inputs_of(moments) @ learnt.ridge)
        weights: Floats | None = np.zeros(moments.past_deg.shape[1])
        if model == "linear":
            weights = line_weights(self.horizon_s, self.past_s)
        elif model == "kalman":
            weights = learnt.kalman
        if weights is None:
            return None
        return from_plane(moments.now, np.einsum("nlk,l->nk", moments.past_deg, weights))

    def split(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Who is learned from and who is tested."""
        people = sorted(_viewers(raw) & _viewers(train) & _viewers(test))
        if len(people) < 2:
            raise DataError(
                "Prediction trains on some people and tests others, so it needs at least 2 in raw"
                f" and released material. Got {len(people)}."
            )
        drawn = np.random.default_rng(seed).permutation(len(people))
        learners = min(max(round(self.train_share * len(people)), 1), len(people) - 1)
        first, rest = drawn[:learners], drawn[learners:]
        return tuple(people[i] for i in sorted(first)), tuple(people[i] for i in sorted(rest))

    def learnt(
        self, raw: RecordingSet, train: RecordingSet, people: tuple[str, ...], seed: int
    ) -> Learnt:
        """What the model, and the Kalman filter, learn from some people.

        Parameters
        ----------
        raw, train : RecordingSet
            As recorded, and what is learnt from.
        people : tuple of str
            Who is learnt from.
        seed : int
            Of a network.
        """
        trains = self.model == "dgaze"
        most = MOST_HISTORIES if trains else MOST_MOMENTS
        number = max(1, sum(key[0] in people for key in raw.keys))
        used: list[Moments] = []
        seen = []
        for recorded, moments in self.moments(raw, train, people, self.target):
            some = moments.where(spread(len(moments), max(1, most // number)))
            used.append(some)
            if trains:
                seen.append(histories(recorded, some, self.past_s, self.head, self.reading))
        some_gaze = any(len(m) for m in used)
        if self.model == "ridge" and some_gaze:
            inputs = np.concatenate([inputs_of(m) for m in used])
            target = np.concatenate([m.went_deg() for m in used])
            return Learnt(fit(inputs, target, self.penalty))
        kalman = None
        if some_gaze:
            past, target_deg = [m.past_deg for m in used], [m.went_deg() for m in used]
            kalman = best_kalman(past, target_deg, self.horizon_s, self.past_s)
        if not trains:
            return Learnt(None, kalman)
        plan = dgaze_plan(self.reading, self.steps, seed)
        return Learnt(None, kalman, learn(seen, [m.truth for m in used], self.reading, plan))

    def moments(
        self,
        raw: RecordingSet,
        released: RecordingSet,
        people: tuple[str, ...],
        target: str = "raw",
    ) -> Iterator[tuple[Recording, Moments]]:
        """Each recording of some people as recorded, and the moments of what was released of
        it.
        """
        origins = released.origins
        part = (
            released.select(people=people)
            if origins is None
            else released.where(lambda key: origins[key[0]][0] in people)
        )
        for recorded, release in viewer_by_viewer(raw.select(people=people), part):
            if recorded is None or release is None:
                continue
            truth, given = recorded if target == "raw" else release, release
            if self.reading == "published":
                truth, given = in_the_head(recorded, truth), in_the_head(recorded, release)
            yield (recorded, moments_of(truth, given, self.horizon_s, self.past_s, self.every_s))


def _viewers(recording_set: RecordingSet) -> set[str]:
    """Who is in it, by their true names."""
    origins = recording_set.origins
    return {p if origins is None else origins[p][0] for p in recording_set.persons}


#: How often the model is fitted again with moments weighted by one over their error, and the
#: smallest error that counts as one.
ROUNDS = 8
FINEST_DEG = 0.1


def inputs_of(moments: Moments) -> Floats:
    """The past without the newest sample, which is always 0, and a one; shape (moments, inputs)."""
    return np.concatenate(
        (moments.past_deg[:, 1:].reshape(len(moments), 2 * (LAGS - 1)), np.ones((len(moments), 1))),
        axis=1,
    )


def fit(x: Floats, y: Floats, penalty: float, rounds: int = ROUNDS) -> Floats:
    """Weights (inputs, 2) of the linear model with the least mean error |x w - y|, held back by
    ridge regression.

    Parameters
    ----------
    x : array of float64, shape (moments, inputs)
        The last input is the constant and is not held back.
    y : array of float64, shape (moments, 2)
        Where gaze went, in degrees right and down.
    penalty : float
        In mean squares of the inputs.
    rounds : int
        How often moments are weighted anew; 0 gives least squares.
    """
    importance = np.ones(len(x))
    size = x.shape[1]
    w: Floats = np.zeros((size, 2))
    for _ in range(rounds + 1):
        weighted = x * importance[:, None]
        inner = x.T @ weighted
        back = np.full(size, penalty * float(np.trace(inner[:-1, :-1])) / max(size - 1, 1) + 1e-9)
        back[-1] = 0.0
        w = np.asarray(np.linalg.solve(inner + np.diag(back), weighted.T @ y), dtype=np.float64)
        error = np.linalg.norm(x @ w - y, axis=1)
        importance = np.asarray(1.0 / np.maximum(error, FINEST_DEG), dtype=np.float64)
    return w


#: Most moments that a network learns from, spread evenly over recordings.
MOST_HISTORIES = 150_000


@dataclass(frozen=True, eq=False)
class LearntPredictor:
    """A trained network with the channels it looks at.

    Parameters
    ----------
    network : GazePredictor
        Trained.
    channels : array of int64
        Those that were not 0 all the time in training.
    map_size : int
        Numbers of the saliency maps that it looks at; 0 for none.
    """

    network: GazePredictor
    channels: Ints
    map_size: int

    def directions(self, seen: Histories) -> Floats:
        """Where gaze will be, as unit vectors of the frame of the moments, shape (moments, 3)."""
        maps = seen.saliency if self.map_size else None
        told = self.network.predict(seen.values[:, self.channels], maps)
        if self.network.reading == "published":
            return seen.outside(from_tangents(*np.clip(told, -89.0, 89.0).T))
        return seen.outside(from_plane(seen.centre, told))


def learn(
    seen: Sequence[Histories], truth: Sequence[Floats], reading: str, plan: StepPlan
) -> LearntPredictor | None:
    """Train on histories and on the directions gaze took, one array per recording; None where there
    are fewer than two moments.
    """
    if sum(map(len, truth)) < 2:
        return None
    values = np.concatenate([s.values for s in seen])
    target = np.concatenate([_target(s, t, reading) for s, t in zip(seen, truth, strict=True)])
    channels = np.flatnonzero((values != 0).any(axis=(0, 2)))
    if len(channels) == 0:
        channels = np.arange(2)
    given = [s.saliency for s in seen if s.saliency is not None]
    maps = np.concatenate(given) if len(given) == len(seen) else None
    network, _ = train_dgaze(values[:, channels], target, plan, maps, reading, device=best_device())
    return LearntPredictor(network, channels, 0 if maps is None else maps.shape[1])


def _target(seen: Histories, truth: Floats, reading: str) -> Floats:
    if reading == "published":
        return np.nan_to_num(seen_as_tangents(truth))
    return seen.offsets_deg(truth)


@dataclass(frozen=True, eq=False)
class Learnt:
    """What was learnt from the training people; None where there was nothing to learn from, or
    nothing is learnt.

    Parameters
    ----------
    ridge : array of float64, shape (inputs, 2), optional
        Weights of the linear model.
    kalman : array of float64, shape (lags,), optional
        Weights of the Kalman filter.
    network : LearntPredictor, optional
        The network.
    """

    ridge: Floats | None = None
    kalman: Floats | None = None
    network: LearntPredictor | None = None


def spread(count: int, quota: int) -> Ints:
    """At most `quota` of so many moments, spread evenly."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    return np.unique(np.linspace(0, count - 1, min(quota, count)).astype(np.int64))
