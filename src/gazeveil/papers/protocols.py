"""Protocols of single papers that are no attacker or utility of general use: Bozkir et al.'s (2021)
person identification by windows, David-John et al.'s (2023) demographic attack, and the published
splits of the arrays of DGaze and EHTask, whose rows have no participant names.

A study file names them as it names the others, `person-by-window:classifier=knn,vote=true` among
the utilities and `demographic:k=4` among the attacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.infer.people import demographic_attack
from gazeveil.attacks.registry import attack as attack_by_name
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import RecordingKey
from gazeveil.models.classifiers import CLASSIFIERS, predict
from gazeveil.privacy.demographics import Demographics
from gazeveil.registry import build, parse
from gazeveil.utility.base import Utility, UtilityResult
from gazeveil.utility.classify import Activity
from gazeveil.utility.prediction import Prediction
from gazeveil.utility.registry import utility as utility_by_name
from gazeveil.utility.splits import HalfSplit, aligned, other_rows, rows_of, score, voted

#: The papers' attacker to the letter, and ours of the same kind, which draws events and balances
#: people. Each paper's weights of fixations and saccades stand in its studies.
PAPERS_NETWORK = "rbfn:reading=published"
OUR_NETWORK = "rbfn:reading=corrected"

#: The papers' networks that predict gaze and recognise activities, trained as published.
PAPERS_PREDICTOR = "model=dgaze,reading=published"
PAPERS_RECOGNISER = "classifier=ehtask,reading=published"

#: The 2023 paper's weights: fixations 0.4, saccades 0.6.
WEIGHTS_2023 = "0.4/0.6"


@dataclass(frozen=True)
class PersonByWindow(Utility):
    """Bozkir et al.'s (2021) person identification: first halves of all recordings train, second
    halves are asked about, window by window.

    It stands among the utilities because its unit is the window or the recording, not the person;
    lower is better.

    Parameters
    ----------
    classifier : str
        `svm`, `knn`, `tree` or `forest`.
    vote : bool
        One decision per recording, by majority over its windows, instead of one per window.
    every : int
        Keep every n-th window: 5 for MPIIDPEye, 10 for MPIIPrivacEye.
    gap : bool
        Leave out windows that share samples with the first half; the paper keeps them.
    """

    classifier: str = "svm"
    vote: bool = False
    every: int = 5
    gap: bool = False

    name: ClassVar[str] = "person-by-window"
    needs: ClassVar[tuple[str, ...]] = ("window",)
    trains: ClassVar[bool] = True

    def check(self) -> None:
        """Check the words and the count."""
        checks.one_of(self.name, "classifier", self.classifier, CLASSIFIERS)
        self.store("every", checks.count(self.name, "every", self.every))
        for name in ("vote", "gap"):
            if not isinstance(getattr(self, name), bool):
                checks.refuse(self.name, name, "true or false", getattr(self, name))

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Accuracy and macro F1; see :class:`Utility`."""
        halves = HalfSplit(raw, self.gap)

        def person(key: RecordingKey, index: Ints) -> str:
            return key[0]

        known, asked = aligned(
            rows_of(train.windows, person, self.every, halves.first),
            rows_of(test.windows, person, self.every, halves.second),
        )
        named = predict(self.classifier, known.values, known.labels, asked.values, seed)
        truth, persons = asked.labels, asked.persons
        if self.vote:
            named, truth, persons = voted(named, truth, persons, asked.recordings, seed)
        results = score(
            truth,
            named,
            persons,
            "person, first half of each recording against the second,"
            f" {'vote' if self.vote else 'no vote'}",
        )
        chance = 1 / len(np.unique(known.labels))
        return tuple(
            UtilityResult(r.metric, r.value, r.parts, r.of, r.names, chance, "lower", r.note)
            for r in results
        )


#: Stimulus of the rows that the published arrays train on, and of those they test.
TRAINED_ON, TESTED_ON = "train", "test"


def _rows_of_split(*sets: RecordingSet) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rows of arrays that train and those that are tested, where every row has a name of its
    own.
    """
    learners, tested = (
        tuple(sorted(set.intersection(*({k[0] for k in s.keys if k[1] == split} for s in sets))))
        for split in (TRAINED_ON, TESTED_ON)
    )
    if not learners or not tested:
        raise DataError(
            "The arrays need rows to train on and rows to test. Put trainingX.npy, trainingY.npy,"
            " testX.npy and testY.npy into one folder."
        )
    return learners, tested


@dataclass(frozen=True)
class RowPrediction(Prediction):
    """Gaze prediction on published rows: those of `trainingX.npy` train, those of `testX.npy` are
    tested; parameters as in :class:`Prediction`.
    """

    name: ClassVar[str] = "prediction-of-rows"

    def split(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The rows as published."""
        return _rows_of_split(raw, train, test)


@dataclass(frozen=True)
class RowActivity(Activity):
    """Activities recognised in published rows: those of `trainingX.npy` train, those of `testX.npy`
    are tested; parameters as in :class:`Activity`.
    """

    name: ClassVar[str] = "activity-of-rows"

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Accuracy and macro F1 over the rows that are tested."""
        learners, tested = _rows_of_split(train, test)
        how, known, asked = self.sides(
            raw, train.select(people=learners), test.select(people=tested), seed
        )
        return other_rows(self.name, how, known, asked, "activity, rows split as published")


_UTILITIES: tuple[type[Utility], ...] = (PersonByWindow, RowPrediction, RowActivity)


@dataclass(frozen=True, kw_only=True)
class Demographic(Attack):
    """Filters a release by generalised age and gender, then recognises the gaze of those who are
    left.

    Parameters
    ----------
    k : int
        Smallest group of the released demographics.
    ranges : {"published", "corrected"}
        The supplement's ranges, or the most groups there can be.
    base : {"rbfn", "linkage"}
        Who looks at the gaze.
    reading : {"published", "corrected"}
        Of the RBF network: the paper's training to the letter, or ours.
    """

    name: ClassVar[str] = "demographic"
    needs: ClassVar[tuple[str, ...]] = ("fixation", "saccade")

    k: int = 4
    ranges: str = "published"
    base: str = "rbfn"
    reading: str = "published"

    def check(self) -> None:
        """Check the words and the count."""
        self.store("k", checks.count(self.name, "k", self.k, least=2))
        checks.one_of(self.name, "ranges", self.ranges, ("published", "corrected"))
        checks.one_of(self.name, "base", self.base, ("rbfn", "linkage"))
        checks.one_of(self.name, "reading", self.reading, ("published", "corrected"))

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """As :meth:`Attack.identify`, inside the group of each person asked about; others score
        minus infinity.
        """
        known = set(gallery.persons) | set(probe.persons)
        released = (
            Demographics(self.k, reading=self.ranges)
            .release({p: a for p, a in gallery.people.items() if p in known})
            .data
        )
        network = f"rbfn:weights={WEIGHTS_2023},reading={self.reading}"
        base_attack = attack_by_name(network if self.base == "rbfn" else "linkage")
        return demographic_attack(base_attack, gallery, probe, released, seed)[1]


def attack(text: str) -> Attack:
    """An attacker by name, those of this module too.

    Examples
    --------
    >>> str(attack("demographic:k=6"))
    'demographic:k=6'
    """
    if text.partition(":")[0] != Demographic.name:
        return attack_by_name(text)
    return build("attack", Demographic, parse(text, "attack")[1])


def utility(text: str) -> Utility:
    """A utility by name, those of this module too.

    Examples
    --------
    >>> str(utility("person-by-window:classifier=knn"))
    'person-by-window:classifier=knn'
    """
    own = next((u for u in _UTILITIES if u.name == text.partition(":")[0]), None)
    return (
        utility_by_name(text) if own is None else build("utility", own, parse(text, "utility")[1])
    )
