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
  gaze as the target either way. Least squares would serve the few large saccades and lose to `hold`
  in the mean angle, which is what is measured; so after the first fit the moments are weighted by
  one over their error, a few times, which leads to the least mean angle.

`target` says what training aims at: `raw` gaze, as David-John et al. 2021 has it, or the `released`
one, which is all that an analyst of a published release has. `prediction:target=released` in the
scenario private/raw asks whether a model learnt from a release alone serves real people.

A release of pieces is learnt from and tested piece by piece; who is learnt from and who is tested
goes by the true names, so that nobody is both.

Who is tested differs from seed to seed, and people differ more than mechanisms do:
`error_over_hold` is the model's error divided by that of `hold` for the same person, 1 for a model
that knows no better than where gaze is now.

The floors `hold_error_deg` and `linear_error_deg` are always given, for the same people and moments
as `error_deg` of the model.

Geometry. Everything is measured in the plane that touches the sphere of directions at the newest
released sample (angle and bearing kept), axes right and down, so that there is no seam and no pole;
a screen is a part of that sphere.

Rates. The past is read at 50 equally spaced moments, each holding the newest released sample of
that time: a stream of fewer samples per second is held, nothing is interpolated into it. Raw gaze
between two samples is interpolated. A moment counts if the newest released sample is at most 75 ms
old (or 1.5 samples, where that is more), there is a sample before the whole past, and raw gaze is
known on both sides of the target within the same limit. A released sample is known at the time of
the raw sample it stands for, whatever its own time says, as in a live stream; only where a release
has neither every sample nor every K-th of the recording do its own times count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.features.columns import column_means
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.geometry import angle_deg
from gazeveil.gaze.recording import Recording
from gazeveil.utility.areas.scanpaths import need_samples
from gazeveil.utility.base import Utility, UtilityResult
from gazeveil.utility.stretches import viewer_by_viewer

MODELS = ("ridge", "linear", "hold")

TARGETS = ("raw", "released")

#: Moments at which the past is read.
LAGS = 50

#: How much of the past the straight line is fitted to.
LINE_S = 0.1

#: How old the newest sample may be.
LONGEST_GAP_S = 0.075

#: How often the model is fitted again with moments weighted by one over their error, and the
#: smallest error that counts as one.
ROUNDS = 8
FINEST_DEG = 0.1

#: Most moments that are learned from, spread evenly over recordings.
MOST_MOMENTS = 40_000


@dataclass(frozen=True, eq=False)
class Moments:
    """What is known at some moments of one recording, and what came.

    Parameters
    ----------
    past_deg : array of float64, shape (moments, lags, 2)
        The released gaze, newest first, right and down of the newest one (which is therefore 0).
    now : array of float64, shape (moments, 3)
        The newest released gaze as unit vectors.
    truth : array of float64, shape (moments, 3)
        The raw gaze to be told, as unit vectors.
    """

    past_deg: Floats
    now: Floats
    truth: Floats

    def __len__(self) -> int:
        return len(self.now)


def moments_of(
    recorded: Recording, release: Recording, horizon_s: float, past_s: float, every_s: float
) -> Moments:
    """The moments of one recording at which something can be told and checked."""
    t, v = _known(recorded, recorded.t_ns)
    s, u = _known(release, _arrivals(recorded, release))
    none = Moments(np.empty((0, LAGS, 2)), np.empty((0, 3)), np.empty((0, 3)))
    if len(t) < 2 or len(s) == 0:
        return none
    first, last = int(t[0]) + round(past_s * 1e9), int(t[-1]) - round(horizon_s * 1e9)
    if last < first:
        return none
    now = np.arange(first, last + 1, max(1, round(every_s * 1e9)))
    step_ns = past_s * 1e9 / LAGS
    moments = now[:, None] - np.round(np.arange(LAGS) * step_ns).astype(np.int64)[None, :]
    held = np.searchsorted(s, moments, side="right") - 1
    ok = (held[:, -1] >= 0) & (now - s[np.maximum(held[:, 0], 0)] <= _gap_ns(release))
    target = now + round(horizon_s * 1e9)
    after = np.minimum(np.searchsorted(t, target, side="left"), len(t) - 1)
    before = np.where(t[after] == target, after, np.maximum(after - 1, 0))
    ok &= t[after] - t[before] <= _gap_ns(recorded)
    if not ok.any():
        return none
    held, target, after, before = held[ok], target[ok], after[ok], before[ok]
    share = ((target - t[before]) / np.maximum(t[after] - t[before], 1))[:, None]
    truth = v[before] * (1.0 - share) + v[after] * share
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    newest = u[held[:, 0]]
    return Moments(to_plane(newest, u[held]), newest, truth)


def _known(recording: Recording, t_ns: Ints) -> tuple[Ints, Floats]:
    """Times and unit vectors of the valid samples."""
    valid = recording.valid
    return t_ns[valid], recording.space.vectors(
        recording.x_deg[valid], recording.y_deg[valid]
    ).reshape(-1, 3)


def _arrivals(recorded: Recording, release: Recording) -> Ints:
    """When each released sample is known, never decreasing."""
    stride = -(-len(recorded) // max(len(release), 1))
    if len(recorded) == 0 or -(-len(recorded) // stride) != len(release):
        # A release on a public clock begins at 0, whenever the recording did.
        on_clock = len(recorded) > 0 and len(release) > 0 and release.t_ns[0] == 0
        begin = recorded.t_ns[0] if on_clock else np.int64(0)
        return np.maximum.accumulate(release.t_ns + begin)
    t = recorded.t_ns
    if (np.diff(t) < 0).any():
        # Lost samples may carry wild times: they count as known when the next good one came, so
        # that nothing is known too early.
        t = np.minimum.accumulate(np.where(recorded.valid, t, np.iinfo(np.int64).max)[::-1])[::-1]
    return t[::stride]


def _gap_ns(recording: Recording) -> float:
    return 1e9 * max(LONGEST_GAP_S, 1.5 / recording.rate_hz if recording.rate_hz > 0 else 0.0)


def _axes(centre: Floats) -> tuple[Floats, Floats]:
    """Right and down at each direction; at a pole right is x."""
    flat = np.hypot(centre[:, 0], centre[:, 2])
    pole = flat < 1e-12
    safe = np.where(pole, 1.0, flat)
    right = np.stack(
        (
            np.where(pole, 1.0, centre[:, 2] / safe),
            np.zeros(len(centre)),
            np.where(pole, 0.0, -centre[:, 0] / safe),
        ),
        axis=1,
    )
    return right, np.cross(right, centre)


def to_plane(centre: Floats, directions: Floats) -> Floats:
    """Directions (n, m, 3) as degrees right and down of centres (n, 3), shape (n, m, 2): angle and
    bearing are kept.
    """
    right, down = _axes(centre)
    across = np.stack(
        (np.einsum("nmk,nk->nm", directions, right), np.einsum("nmk,nk->nm", directions, down)),
        axis=2,
    )
    sine = np.linalg.norm(across, axis=2)
    angle = np.degrees(np.arctan2(sine, np.einsum("nmk,nk->nm", directions, centre)))
    # Near 0 the ratio is 180 / pi; a direction opposite the centre has no bearing and gets none.
    scale = np.where(sine > 1e-12, angle / np.where(sine > 1e-12, sine, 1.0), np.degrees(1.0))
    return across * scale[:, :, None]


def from_plane(centre: Floats, offsets_deg: Floats) -> Floats:
    """Unit vectors (n, 3) of offsets (n, 2) in degrees right and down of centres: the way back from
    :func:`to_plane`.
    """
    right, down = _axes(centre)
    angle = np.radians(np.linalg.norm(offsets_deg, axis=1))[:, None]
    heading = np.radians(offsets_deg[:, :1]) * right + np.radians(offsets_deg[:, 1:]) * down
    return np.cos(angle) * centre + np.sinc(angle / np.pi) * heading


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


def _inputs(moments: Moments) -> Floats:
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


@dataclass(frozen=True)
class Prediction(Utility):
    """Gaze prediction.

    Parameters
    ----------
    model : {"ridge", "linear", "hold"}
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

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Mean angular errors in degrees of the model and the two floors, and the model's over that
        of `hold`, one part per test person.
        """
        need_samples(self.name, raw, train, test)
        learners, tested = self.split(raw, train, test, seed)
        notes = [
            f"{self.horizon_s:g} s ahead from {self.past_s:g} s",
            f"{len(tested)} people tested",
        ]
        weights = None
        if self.model == "ridge":
            weights = self._learned(raw, train, learners)
            notes.append(
                f"trained on {len(learners)} others"
                if weights is not None
                else "nothing to train on: the training material has no gaze to learn from"
            )
        errors_deg = self._errors_deg(raw, test, tested, weights)
        lost = int(np.isnan(errors_deg[:, 1]).sum())
        if lost:
            notes.append(f"{lost} people have no released gaze to go by and are left out")
        models = {"error_deg": self.model, "hold_error_deg": "hold", "linear_error_deg": "linear"}
        models["error_over_hold"] = f"{self.model} over hold"
        hold_deg = errors_deg[:, 1:2]
        over_hold = errors_deg[:, :1] / np.where(hold_deg > 0, hold_deg, np.nan)
        parts = np.concatenate((errors_deg, over_hold), axis=1)
        return tuple(
            UtilityResult(
                metric,
                float(column_means(part)),
                part.copy(),
                "person",
                tested,
                note="; ".join([model, *notes]),
            )
            for (metric, model), part in zip(models.items(), parts.T, strict=True)
        )

    def _errors_deg(
        self, raw: RecordingSet, test: RecordingSet, tested: tuple[str, ...], weights: Floats | None
    ) -> Floats:
        """Mean angular errors in degrees of the model, of `hold` and of `linear`, shape (people,
        3); NaN for somebody without released gaze, and for a model without weights.
        """
        line = line_weights(self.horizon_s, self.past_s)
        totals, counts = {p: np.zeros(3) for p in tested}, dict.fromkeys(tested, 0)
        for person, moments in self._moments(raw, test, tested):
            hold = np.zeros((len(moments), 2))
            linear = np.einsum("nlk,l->nk", moments.past_deg, line)
            if self.model == "ridge":
                own = None if weights is None else _inputs(moments) @ weights
            else:
                own = hold if self.model == "hold" else linear
            totals[person] += [
                np.nan
                if guess is None
                else float(angle_deg(from_plane(moments.now, guess), moments.truth).sum())
                for guess in (own, hold, linear)
            ]
            counts[person] += len(moments)
        return np.array(
            [totals[p] / counts[p] if counts[p] else np.full(3, np.nan) for p in tested]
        )

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

    def _learned(
        self, raw: RecordingSet, train: RecordingSet, people: tuple[str, ...]
    ) -> Floats | None:
        """Weights of the model; None where there is nothing to learn from."""
        quota = max(1, MOST_MOMENTS // max(1, sum(key[0] in people for key in raw.keys)))
        inputs, targets = [], []
        for _, moments in self._moments(raw, train, people, self.target):
            some = (
                np.unique(
                    np.linspace(0, len(moments) - 1, min(quota, len(moments))).astype(np.int64)
                )
                if len(moments)
                else np.empty(0, dtype=np.int64)
            )
            inputs.append(_inputs(moments)[some])
            targets.append(to_plane(moments.now[some], moments.truth[some, None, :])[:, 0])
        if not sum(map(len, inputs)):
            return None
        return fit(np.concatenate(inputs), np.concatenate(targets), self.penalty)

    def _moments(
        self,
        raw: RecordingSet,
        released: RecordingSet,
        people: tuple[str, ...],
        target: str = "raw",
    ) -> Iterator[tuple[str, Moments]]:
        origins = released.origins
        part = (
            released.select(people=people)
            if origins is None
            else released.where(lambda key: origins[key[0]][0] in people)
        )
        for recorded, release in viewer_by_viewer(raw.select(people=people), part):
            if recorded is not None and release is not None:
                truth = recorded if target == "raw" else release
                yield (
                    recorded.person,
                    moments_of(truth, release, self.horizon_s, self.past_s, self.every_s),
                )


def _viewers(recording_set: RecordingSet) -> set[str]:
    """Who is in it, by their true names."""
    origins = recording_set.origins
    return {p if origins is None else origins[p][0] for p in recording_set.persons}
