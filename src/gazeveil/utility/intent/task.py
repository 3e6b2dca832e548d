"""`intent`: will gaze move to another area soon, and to which, told before the saccade begins.

David-John et al. (2022) name intent prediction as the next task to try on protected gaze, after
David-John et al. (2021): from a short past, when will the wearer act on something? What an app
prepares for is a look: the next area of interest. So the task is: every `every_s` seconds while raw
gaze rests in a fixation, tell from the released gaze up to now

* whether gaze will be in another area in `horizon_s` seconds: `change_auc`, the probability that a
  moment before a change scores above one that is not (chance 0.5). Beside it `dwell_auc`: by how
  long gaze has been in its area alone, whichever way round is better for the training people.
* to which other area it goes, at the moments before a change: `target_accuracy`. Beside it
  `successor_accuracy`, where training people went most often from the present area, and
  `popular_accuracy`, the area most looked at but the present one.
* in which area it is then, at all moments: `area_accuracy`. Beside it `hold_accuracy`, the area of
  the newest released sample, and `majority_accuracy`, the area most looked at.

An area is a box of a file or the dataset, or a tile of a public grid. Places outside of all areas
are passed over: the last area is held until gaze comes to the next. The truth is always the raw
gaze; the model learns from the material of the scenario with raw looks as answers, from
`train_share` of the people, and the others are tested. A release of pieces is refused: the model
counts how long gaze has been somewhere, which pieces cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats
from gazeveil.errors import DataError
from gazeveil.features.columns import column_means
from gazeveil.features.recording_set import RecordingSet
from gazeveil.utility.areas.area_utility import AreaUtility
from gazeveil.utility.areas.scanpaths import need_samples, scanpath_as_recorded, side_by_side
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.intent.model import IntentModel, Watched, floor_targets
from gazeveil.utility.intent.moments import intent_moments
from gazeveil.utility.stretches import need_lasting_names

#: Most moments before a change that the place is learnt from.
MOST_CHANGES = 4_000

#: Metric -> what it is the figure of, and chance where there is one.
METRICS = {
    "change_auc": ("model", 0.5),
    "dwell_auc": ("time in the area alone", 0.5),
    "target_accuracy": ("model", float("nan")),
    "successor_accuracy": ("where most went from the present area", float("nan")),
    "popular_accuracy": ("the other area most looked at", float("nan")),
    "area_accuracy": ("model", float("nan")),
    "hold_accuracy": ("the area of the newest sample", float("nan")),
    "majority_accuracy": ("the area most looked at", float("nan")),
}


@dataclass(frozen=True)
class Intent(AreaUtility):
    """Prediction of the next area.

    Parameters
    ----------
    horizon_s : float
        How far ahead, in seconds.
    every_s : float
        Seconds between the moments at which something is told.
    train_share : float
        Share of the people that the model is trained on; the others are tested.

    Examples
    --------
    >>> str(Intent(horizon_s=0.3))
    'intent:horizon_s=0.3'
    """

    name: ClassVar[str] = "intent"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    trains: ClassVar[bool] = True

    horizon_s: float = 0.5
    every_s: float = 0.1
    train_share: float = 0.6

    def check(self) -> None:
        """Areas, times, a share."""
        super().check()
        for field in ("horizon_s", "every_s"):
            self.store(field, checks.positive(self.name, field, getattr(self, field)))
        share = checks.positive(self.name, "train_share", self.train_share)
        if share >= 1:
            checks.refuse(self.name, "train_share", "above 0 and below 1", self.train_share)
        self.store("train_share", share)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Figures of the model and the floors, one part per test person; see :class:`Utility`."""
        need_samples(self.name, raw, train, test)
        need_lasting_names(self.name, train, test)
        learners, tested = self._split(raw, train, test, seed)
        learnt_from = list(self._watched(raw, train, learners))
        model = IntentModel.learn(learnt_from, MOST_CHANGES)
        longer_stays = _dwell_sign(learnt_from)
        answers: dict[str, list[Floats]] = {p: [] for p in tested}
        for one in self._watched(raw, test, tested):
            answers[one.person].append(_answers(one, model, longer_stays))
        parts = np.array([_figures(answers[p]) for p in tested]).reshape(len(tested), len(METRICS))
        note = self._note(len(learners), parts, model)
        return tuple(
            UtilityResult(
                metric,
                float(column_means(part)),
                part.copy(),
                "person",
                tested,
                chance,
                "higher",
                f"{what}; {note}",
            )
            for (metric, (what, chance)), part in zip(METRICS.items(), parts.T, strict=True)
        )

    def _note(self, learners: int, parts: Floats, model: IntentModel) -> str:
        notes = [
            f"{self.horizon_s:g} s ahead",
            f"areas: {self.where}",
            f"{len(parts)} people tested, trained on {learners} others",
        ]
        if model.when is None:
            notes.append("nothing to learn from: the training material has no change of area")
        lost = int(np.isnan(parts[:, 0]).sum())
        if lost:
            notes.append(f"{lost} people have no released gaze to go by, or never change areas")
        return "; ".join(notes)

    def _split(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Who is learnt from and who is tested."""
        people = sorted(set(raw.persons) & set(train.persons) & set(test.persons))
        if len(people) < 2:
            raise DataError(
                "Intent prediction trains on some people and tests others, so it needs at least 2"
                f" in raw and released material. Got {len(people)}."
            )
        drawn = np.random.default_rng(seed).permutation(len(people))
        many = min(max(round(self.train_share * len(people)), 1), len(people) - 1)
        first, rest = sorted(drawn[:many]), sorted(drawn[many:])
        return tuple(people[i] for i in first), tuple(people[i] for i in rest)

    def _watched(
        self, raw: RecordingSet, released: RecordingSet, people: Sequence[str]
    ) -> Iterator[Watched]:
        """The moments of some people's recordings.

        Raises
        ------
        DataError
            If no recording of theirs has areas.
        """
        lookup, bare, found = self.lookup, set(), False
        for recorded, release in side_by_side(raw.select(people), released.select(people)):
            if recorded is None or release is None:
                continue
            boxes = lookup.of(recorded)
            if boxes is None or len(boxes) < 2:
                bare.add(recorded.stimulus)
                continue
            found = True
            path = scanpath_as_recorded(raw, recorded)
            moments = intent_moments(recorded, release, path, boxes, self.horizon_s, self.every_s)
            if len(moments):
                yield Watched(recorded.person, recorded.stimulus, boxes, moments)
        if not found:
            raise DataError(
                self.no_areas(bare, lookup)
                + (" Intent needs at least two areas on a stimulus." if bare else "")
            )


def _dwell_sign(watched: Sequence[Watched]) -> float:
    """1 if training people who have been in an area longer are likelier to leave it, else -1."""
    if not watched:
        return 1.0
    here_s = np.concatenate([one.moments.since_area_s for one in watched])
    changed = np.concatenate([one.moments.then != one.moments.now for one in watched])
    area = rank_area(here_s, changed)
    return 1.0 if np.isnan(area) or area >= 0.5 else -1.0


def _answers(one: Watched, model: IntentModel, sign: float) -> Floats:
    """One row per moment: whether it changed, what `when` and dwell time say, and who was right
    about where; shape (moments, 9).
    """
    m = one.moments
    told = model.tell(one)
    most, other, successor = floor_targets(one, model.counts)
    return np.stack(
        (
            m.then != m.now,
            told.change,
            sign * m.since_area_s,
            told.target == m.then,
            successor == m.then,
            other == m.then,
            told.area == m.then,
            m.newest == m.then,
            most == m.then,
        ),
        axis=1,
    ).astype(np.float64)


def _figures(answers: list[Floats]) -> list[float]:
    """The figures of one person in the order of :data:`METRICS`; NaN where there is none."""
    rows = np.concatenate([*answers, np.empty((0, 9))])
    changed = rows[:, 0] > 0
    before = rows[changed, 3:6]
    where = before.mean(axis=0) if len(before) else np.full(3, np.nan)
    then = rows[:, 6:9].mean(axis=0) if len(rows) else np.full(3, np.nan)
    when = [rank_area(rows[:, i], changed) for i in (1, 2)]
    return [*when, *where.tolist(), *then.tolist()]


def rank_area(scores: Floats, positive: Bools) -> float:
    """Probability that a positive scores above a negative, ties half; NaN without one of each.

    Examples
    --------
    >>> rank_area(np.array([1.0, 2.0, 3.0]), np.array([False, False, True]))
    1.0
    """
    from scipy.stats import rankdata

    n, m = int(positive.sum()), int((~positive).sum())
    if n == 0 or m == 0:
        return float("nan")
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))
