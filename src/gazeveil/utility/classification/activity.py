"""Activity recognition: by a forest from window features, or by a network from samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.models.classifiers import CLASSIFIERS
from gazeveil.models.headset.ehtask import FEWEST_STEPS
from gazeveil.models.headset.layers import HEADS, READINGS
from gazeveil.models.headset.weights import TrainedRecogniser, load_ehtask
from gazeveil.models.train import best_device
from gazeveil.utility.base import Utility, UtilityResult
from gazeveil.utility.classification.eye_head_windows import RATE_HZ, NetworkClassifier, window_rows
from gazeveil.utility.classification.rows import LABELS, Rows, class_by, rows_of
from gazeveil.utility.classification.splits import (
    Classifier,
    check_classifier,
    people_apart,
    people_share,
)
from gazeveil.utility.stretches import need_lasting_names
from gazeveil.utility.trained_weights import (
    NONE,
    check_weights,
    named_if_trained_on,
    need_same,
    origin_of,
    trained_people,
)

#: The network among the classifiers.
NETWORK = "ehtask"

#: Most moments of a window that weights from a file may ask for: 10 minutes.
MOST_STEPS = 15_000


@dataclass(frozen=True)
class Activity(Utility):
    """Activity recognition from windows, on held-out people (David-John et al.'s (2023) split).

    Parameters
    ----------
    classifier, vote, every, gamma
        As for :class:`gazeveil.utility.classification.classify.Document`; the windows are the
        study's (EHTask has 10 s). `ehtask` is a network in the manner of EHTask, which sees samples
        of the eye, the head and gaze in place of features of windows.
    label : str
        `task` (default): the recording's task, or the stimulus's name without its number where no
        task is named; `stimulus`: always the latter.
    test_share : float
        Share of people to test on.
    trees : int
        For `forest`.
    reading : {"corrected", "published"}
        Of `ehtask`: ours, or trained as its authors do.
    head : {"recorded", "none"}
        Whether `ehtask` looks at the head, which is that of the recording also beside protected
        gaze.
    steps : int
        Batches that `ehtask` is trained with.
    weights : str
        File of `gazeveil train --network ehtask`, used as it is, on windows of the length it was
        trained with; everybody is then tested but those it was trained on, as far as it is known.
        `none` trains here.
    """

    classifier: str = "forest"
    vote: bool = False
    every: int = 1
    gamma: str = "scale"
    label: str = "task"
    test_share: float = 0.25
    trees: int = 100
    reading: str = "corrected"
    head: str = "recorded"
    steps: int = 600
    weights: str = NONE

    name: ClassVar[str] = "activity"
    needs: ClassVar[tuple[str, ...]] = ("window",)
    trains: ClassVar[bool] = True

    def check(self) -> None:
        """Check the words, the counts and the share."""
        network = self.classifier == NETWORK
        check_classifier(
            self, self.classifier, self.gamma, self.vote, self.every, (*CLASSIFIERS, NETWORK)
        )
        checks.one_of(self.name, "label", self.label, LABELS)
        self.store("test_share", people_share(self.name, self.test_share))
        self.store("trees", checks.count(self.name, "trees", self.trees))
        checks.one_of(self.name, "reading", self.reading, READINGS)
        checks.one_of(self.name, "head", self.head, HEADS)
        self.store("steps", checks.count(self.name, "steps", self.steps))
        if self.reading == "published" and not network:
            checks.refuse(
                self.name,
                "reading",
                "corrected for this classifier",
                self.reading,
                f"Use classifier={NETWORK}.",
            )
        check_weights(self.name, self.weights, network, f"Use classifier={NETWORK}.")
        if network:
            # No table of windows is made for a classifier that does not read it.
            self.store("needs", ("samples",))

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Accuracy and macro F1 over windows, or over recordings
        with `vote`; see :class:`Utility`.
        """
        need_lasting_names(self.name, train, test)
        how, known, asked = self.sides(raw, train, test, seed)
        trained = trained_by(how, raw)
        found = people_apart(
            self.name, how, known, asked, self.test_share, "activity from windows", trained
        )
        return self.with_origin(found, raw, how, trained)

    def with_origin(
        self,
        results: tuple[UtilityResult, ...],
        raw: RecordingSet,
        how: Classifier,
        trained: frozenset[str],
    ) -> tuple[UtilityResult, ...]:
        """The same figures; where weights came from a file, notes say whom they were trained on."""
        if not isinstance(how, NetworkClassifier) or how.weights is None:
            return results
        weights = how.weights
        said = f"windows of {weights.given.window_s:g} s, {origin_of(self.weights, weights.about)}"
        told = tuple(replace(r, note=f"{r.note}; {said}") for r in results)
        return named_if_trained_on(told, raw, trained)

    def sides(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[Classifier, Rows, Rows]:
        """The classifier, what it may learn from and what it may be asked about."""
        label = class_by(self.label)
        if self.classifier != NETWORK:
            forest = Classifier(self.classifier, self.gamma, self.vote, seed, self.trees)
            known, asked = (rows_of(m.windows, label, self.every) for m in (train, test))
            return forest, known, asked
        weights = self._loaded() if self.weights != NONE else None
        network = NetworkClassifier(
            f"{NETWORK}, {self.reading} reading, head {self.head}",
            self.gamma,
            self.vote,
            seed,
            reading=self.reading,
            steps=self.steps,
            weights=weights,
        )
        how = (label, self.every, self.reading, self.head)
        asked = window_rows(raw, test, *how, None if weights is None else weights.given)
        # Weights from a file learn nothing here, and the training side is not looked at.
        return network, asked if weights is not None else window_rows(raw, train, *how), asked

    def _loaded(self) -> TrainedRecogniser:
        """The weights, if they are those of this task.

        Raises
        ------
        FormatError
            For a file that holds none.
        ParameterError
            For weights of another task.
        """
        weights = load_ehtask(self.weights, best_device())
        for name in ("reading", "head"):
            need_same(self, name, getattr(weights.given, name), self.weights)
        steps = weights.given.window_s * RATE_HZ
        if weights.given.rate_hz != RATE_HZ or not FEWEST_STEPS <= steps <= MOST_STEPS:
            raise FormatError(
                self.weights,
                "these weights see other windows than this version makes",
                "Train them again with `gazeveil train --network ehtask`.",
            )
        return weights


def trained_by(how: Classifier, raw: RecordingSet) -> frozenset[str]:
    """Participants known to be in the training set of a weights file; empty where the classifier
    learns here.
    """
    weights = how.weights if isinstance(how, NetworkClassifier) else None
    return frozenset() if weights is None else trained_people(raw, weights.marks)
