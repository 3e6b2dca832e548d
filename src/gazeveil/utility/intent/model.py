"""Who tells intents: a model of when and where, and the floors beside it.

When: logistic regression of "another area at the horizon" on the features of the moment, how near
the edge of its area gaze is, and how often training people left that area. Where: one score for
each other area, logistic regression on how far and in which direction it lies, how often training
people went there, from here and at all, and whether gaze came from there. Areas are scored by what
they are to a moment and not by their names, so that stimuli with areas of their own are learnt
together; how often an area was looked at is counted by stimulus and name. Which area it is then,
the present one among them: the same, for all moments, with what the first says about a change and
whether the newest sample, or the mean of the last 0.1 s, lies in the area. A release in which these
tell nothing of raw gaze is learnt to be one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.features.time_to_event import COLUMNS
from gazeveil.gaze.geometry import Sphere
from gazeveil.io.areas import Boxes
from gazeveil.utility.intent.moments import NOWHERE, IntentMoments, to_areas_deg

_TIMES = tuple(i for i, name in enumerate(COLUMNS) if name.endswith("_s") or "_deg" in name)
_DRIFT = (COLUMNS.index("drift_right_deg"), COLUMNS.index("drift_down_deg"))
_LAST = (COLUMNS.index("last_right"), COLUMNS.index("last_down"))

# Inputs of which area it is then.
_THEN = 11

# Moments of an area that the rate of all areas counts for.
_PRIOR = 30.0


@dataclass(frozen=True, eq=False)
class Watched:
    """Moments of one recording, and where its areas are.

    Parameters
    ----------
    person, stimulus : str
        Whose, and of what.
    boxes : Boxes
        The areas.
    moments : IntentMoments
        The moments.
    """

    person: str
    stimulus: str
    boxes: Boxes
    moments: IntentMoments

    def some(self, rows: Ints) -> Watched:
        """The same recording, some of its moments."""
        return replace(self, moments=self.moments.where(rows))


@dataclass(frozen=True, eq=False)
class Counts:
    """How often training people looked at areas, and went from one to another.

    Parameters
    ----------
    looks : Counter of (stimulus, area)
        Moments at whose horizon gaze was there.
    ways : Counter of (stimulus, from area, to area)
        Moments before a change, by where released gaze was and raw gaze went.
    stays : Counter of (stimulus, area)
        Moments before no change, by where released gaze was.
    """

    looks: Counter[tuple[str, str]] = field(default_factory=Counter)
    ways: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    stays: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, watched: Sequence[Watched]) -> Counts:
        """Count; each stimulus by itself, and all together under an empty name."""
        counts = cls()
        for one in watched:
            names, m = (*one.boxes.names, ""), one.moments
            for stimulus in (one.stimulus, ""):
                counts.looks.update((stimulus, names[a]) for a in m.then.tolist())
                changed = m.then != m.now
                ways = zip(m.here[changed].tolist(), m.then[changed].tolist(), strict=True)
                counts.ways.update((stimulus, names[a], names[b]) for a, b in ways)
                stayed = m.here[~changed].tolist()
                counts.stays.update((stimulus, names[a]) for a in stayed)
        return counts

    def popular(self, stimulus: str, names: Sequence[str]) -> Floats:
        """How often each area was looked at: on this stimulus, or anywhere if nobody saw it."""
        own = np.array([self.looks[stimulus, n] for n in names], dtype=np.float64)
        return own if own.any() else np.array([float(self.looks["", n]) for n in names])

    def followed(self, stimulus: str, names: Sequence[str]) -> Floats:
        """How often gaze went from each area (the last row: from nowhere) to each other one."""
        rows = (*names, "")
        own = np.array([[self.ways[stimulus, a, b] for b in names] for a in rows], dtype=np.float64)
        if own.any():
            return own
        return np.array([[float(self.ways["", a, b]) for b in names] for a in rows])

    def left(self, stimulus: str, names: Sequence[str]) -> Floats:
        """Log-odds of leaving each area (the last: nowhere), drawn towards those of all areas."""
        stays = np.array([self.stays[stimulus, n] for n in (*names, "")], dtype=np.float64)
        leaves = self.followed(stimulus, names).sum(axis=1)
        if not stays.any():
            stays = np.array([float(self.stays["", n]) for n in (*names, "")])
        whole = (leaves.sum() + 1) / (leaves.sum() + stays.sum() + 2)
        rate = (leaves + _PRIOR * whole) / (leaves + stays + _PRIOR)
        return np.asarray(np.log(rate / (1 - rate)))


@dataclass(frozen=True, eq=False)
class Told:
    """What is told at moments.

    Parameters
    ----------
    change : array of float64, shape (moments,)
        Log-odds of another area at the horizon.
    target : array of int64, shape (moments,)
        Which other area.
    area : array of int64, shape (moments,)
        Which area at the horizon, the present one among them.
    """

    change: Floats
    target: Ints
    area: Ints


@dataclass(frozen=True, eq=False)
class IntentModel:
    """A learnt model.

    Parameters
    ----------
    counts : Counts
        Of the training people.
    when, where, then : array of float64
        Weights of whether, of which other area and of which area, the last one without an input;
        None where there was nothing to learn from.
    scale : array of float64, shape (2, inputs)
        Mean and deviation of the inputs of `when`.
    """

    counts: Counts
    when: Floats | None
    where: Floats | None
    then: Floats | None
    scale: Floats

    @classmethod
    def learn(cls, watched: Sequence[Watched], most: int) -> IntentModel:
        """Learn from training people.

        Parameters
        ----------
        watched : sequence of Watched
            Their moments.
        most : int
            Most moments that the place is learnt from.
        """
        counts = Counts.of(watched)
        some = [one for one in watched if len(one.moments)]
        if not some:
            return cls(counts, None, None, None, np.zeros((2, 0)))
        rows = np.concatenate([when_inputs(one, counts) for one in some])
        changed = np.concatenate([one.moments.then != one.moments.now for one in some])
        deviation = rows.std(axis=0)
        scale = np.stack((rows.mean(axis=0), np.where(deviation > 1e-9, deviation, 1.0)))
        when = _logistic((rows - scale[0]) / scale[1], changed)
        inputs, right = _pairs(some, counts, most)
        first = cls(counts, when, _logistic(inputs, right), None, scale)
        step = max(1, -(-len(rows) // most))
        every = [one.some(np.arange(0, len(one.moments), step)) for one in some]
        areas = np.concatenate([first.then_inputs(one).reshape(-1, _THEN) for one in every])
        there = np.concatenate([_present(o.moments.then, len(o.boxes)).ravel() for o in every])
        return replace(first, then=_logistic(areas, there))

    def tell(self, one: Watched) -> Told:
        """What it says of the moments of a recording."""
        inputs = self.then_inputs(one)
        areas = inputs[:, :, 1] if self.then is None else inputs @ self.then[:-1]
        return Told(self.change(one), self.scores(one).argmax(axis=1), areas.argmax(axis=1))

    def change(self, one: Watched) -> Floats:
        """Log-odds of another area at the horizon."""
        if self.when is None:
            return np.zeros(len(one.moments))
        rows = (when_inputs(one, self.counts) - self.scale[0]) / self.scale[1]
        return np.asarray(np.clip(rows @ self.when[:-1] + self.when[-1], -8.0, 8.0))

    def then_inputs(self, one: Watched) -> Floats:
        """What each area is to each moment, the present one among them; shape (moments, areas,
        inputs).
        """
        m, many = one.moments, len(one.boxes)
        present = [_present(m.newest, many), _present(m.here, many)]
        odds = self.change(one)[:, None]
        own = np.stack([p * v for p in present for v in (np.ones_like(odds), odds)], axis=2)
        return np.concatenate((where_inputs(one, self.counts), own), axis=2)

    def scores(self, one: Watched) -> Floats:
        """One score for each moment and area; the present area has the lowest of all."""
        m = one.moments
        inputs = where_inputs(one, self.counts)
        scores = inputs[:, :, 1] if self.where is None else inputs @ self.where[:-1]
        return np.where(_present(m.here, len(one.boxes)), -1e9, scores)


def floor_targets(one: Watched, counts: Counts) -> tuple[Ints, Ints, Ints]:
    """What needs no model: the area most looked at; the most looked at but the present one; and
    where training people went most often from the present one.
    """
    names, m = one.boxes.names, one.moments
    popular = counts.popular(one.stimulus, names)
    most = np.full(len(m), int(popular.argmax()), dtype=np.int64)
    present = _present(m.here, len(names))
    other = np.where(present, -1.0, popular[None, :])
    followed = counts.followed(one.stimulus, names)[m.here]
    # Ways that nobody went are told by how often areas are looked at.
    next_one = np.where(present, -1.0, followed + 1e-6 * popular / max(1.0, popular.sum()))
    return most, other.argmax(axis=1), next_one.argmax(axis=1)


def when_inputs(one: Watched, counts: Counts) -> Floats:
    """The features of moments, times and sizes also as logarithms; how long gaze is here, how near
    the edge, and how often others leave.
    """
    m = one.moments
    logs = np.sign(m.timing[:, _TIMES]) * np.log1p(10 * np.abs(m.timing[:, _TIMES]))
    edge = edge_deg(one.boxes, m)
    left = counts.left(one.stimulus, one.boxes.names)[m.here]
    own = (m.since_area_s, np.log1p(10 * m.since_area_s), edge, np.log1p(edge), left)
    return np.concatenate((m.timing, logs, np.stack(own, axis=1)), axis=1)


def edge_deg(boxes: Boxes, moments: IntentMoments) -> Floats:
    """Degrees to the nearest edge of the area that gaze is in; 0 where it is in none."""
    inside = moments.here != NOWHERE
    x, y, at = moments.x_deg, moments.y_deg, moments.here
    left, right = x - boxes.left_deg[at], boxes.right_deg[at] - x
    if isinstance(boxes.space, Sphere):
        left = np.mod(left, 360.0)
        right = boxes.right_deg[at] - boxes.left_deg[at] - left
    down = np.minimum(y - boxes.top_deg[at], boxes.bottom_deg[at] - y)
    return np.where(inside, np.maximum(np.minimum(np.minimum(left, right), down), 0.0), 0.0)


def where_inputs(one: Watched, counts: Counts) -> Floats:
    """What each area is to each moment, shape (moments, areas, inputs)."""
    m, names = one.moments, one.boxes.names
    way = to_areas_deg(one.boxes, m.x_deg, m.y_deg)
    distance = np.linalg.norm(way, axis=2)
    unit = way / np.maximum(distance, 1e-9)[:, :, None]
    popular = np.log1p(counts.popular(one.stimulus, names))
    followed = np.log1p(counts.followed(one.stimulus, names))[m.here]
    shape = distance.shape
    return np.stack(
        (
            np.log1p(distance),
            np.broadcast_to(popular, shape),
            followed,
            np.einsum("nmk,nk->nm", unit, np.clip(m.timing[:, _DRIFT], -2.0, 2.0)),
            np.einsum("nmk,nk->nm", unit, m.timing[:, _LAST]),
            _present(m.before, shape[1]).astype(np.float64),
            distance / 20.0,
        ),
        axis=2,
    )


def _pairs(watched: Sequence[Watched], counts: Counts, most: int) -> tuple[Floats, Bools]:
    """Areas of moments before a change, and which of them gaze went to."""
    changes = sum(int((one.moments.then != one.moments.now).sum()) for one in watched)
    step = max(1, -(-changes // most))
    inputs, right = [], []
    for one in watched:
        part = one.some(np.flatnonzero(one.moments.then != one.moments.now)[::step])
        moments = part.moments
        other = ~_present(moments.here, len(one.boxes))
        inputs.append(where_inputs(part, counts)[other])
        right.append(_present(moments.then, len(one.boxes))[other])
    return np.concatenate(inputs), np.concatenate(right)


def _present(areas: Ints, many: int) -> Bools:
    return np.asarray(areas[:, None] == np.arange(many)[None, :])


def _logistic(inputs: Floats, right: Bools) -> Floats | None:
    """Weights of a logistic regression, the constant last; None where all answers are the same."""
    from sklearn.linear_model import LogisticRegression

    if len(right) == 0 or right.all() or not right.any():
        return None
    model = LogisticRegression(C=1.0, max_iter=300).fit(inputs, right)
    return np.concatenate((model.coef_[0], model.intercept_))
