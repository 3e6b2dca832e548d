"""What can still be recognised: the type of a document, gender, privacy sensitivity, an activity, a
task.

David-John et al. 2022 learns the document type on privatised first halves of readings and tests on
the raw second halves; Bozkir et al. 2021 leaves one person out and learns and tests on privatised
windows, for document type, gender and privacy sensitivity; David-John et al. 2023 recognises
activities of people it has not seen; Ren et al. 2024 learns tasks from raw recordings and names
those of private ones. Which material is raw and which private is the scenario's choice; the splits
are here.

A person whose name is in the training material is never trained on when tested with
`split="people"`, nor in `gender`, `privacy-sensitivity`, `activity` and `task`. A release under
fresh pseudonyms has no such names: it is trained on whole, and the note says so. A release of
pieces, each under a name of its own, is refused: a few seconds are no recording of a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Ints, Texts
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import recording_table
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Attributes
from gazeveil.gaze.recording import RecordingKey
from gazeveil.utility.base import Utility, UtilityResult, need_lasting_names
from gazeveil.utility.splits import (
    LABELS,
    Classifier,
    HalfSplit,
    check_classifier,
    class_by,
    left_out,
    other_rows,
    people_apart,
    people_share,
    rows_of,
)

#: How document type is split: halves of every reading (David-John et al. 2022), or one person left
#: out at a time (Bozkir et al. 2021).
SPLITS = ("halves", "people")

#: The column of a raw window table that says whether what was seen is private: 1, 0, or anything
#: else for unknown.
PRIVACY_COLUMN = "privacy_sensitive"


@dataclass(frozen=True)
class Document(Utility):
    """Classification of the type of document that is read.

    Parameters
    ----------
    classifier : str
        `svm`, `knn`, `tree` or `forest`.
    split : str
        `halves`: trained on the first half of every reading, tested on the second (David-John et
        al. 2022); `people`: on all other people (Bozkir et al. 2021).
    vote : bool
        One decision per reading, by majority over its windows, instead of one per window.
    every : int
        Keep every n-th window.
    gamma : str
        Kernel width of `svm`: `scale`, or `features` for David-John et al.'s (2022) one over the
        number of features.
    label : str
        `stimulus` (default): the type is the stimulus's name without its number; `task`: it is the
        task.
    gap : bool
        Leave windows of the second half out that share samples with the first; False keeps them, as
        published.
    """

    classifier: str = "svm"
    split: str = "halves"
    vote: bool = False
    every: int = 10
    gamma: str = "scale"
    label: str = "stimulus"
    gap: bool = True

    name: ClassVar[str] = "document"
    needs: ClassVar[tuple[str, ...]] = ("window",)
    trains: ClassVar[bool] = True

    def check(self) -> None:
        """Check the words and the count."""
        check_classifier(self, self.classifier, self.gamma, self.vote, self.every)
        checks.one_of(self.name, "split", self.split, SPLITS)
        checks.one_of(self.name, "label", self.label, LABELS)
        if not isinstance(self.gap, bool):
            checks.refuse(self.name, "gap", "True or False", self.gap)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Accuracy and macro F1 over windows, or over readings
        with `vote`; see :class:`Utility`.
        """
        need_lasting_names(self.name, train, test)
        label = class_by(self.label)
        how = Classifier(self.classifier, self.gamma, self.vote, seed)
        if self.split == "people":
            known, asked = (rows_of(m.windows, label, self.every) for m in (train, test))
            return left_out(self.name, how, known, asked, "document type of a person left out")
        halves = HalfSplit(raw, self.gap)
        known = rows_of(train.windows, label, self.every, halves.first)
        asked = rows_of(test.windows, label, self.every, halves.second)
        if len(asked) == 0 and len(test.windows) and self.gap:
            raise DataError(
                "No window of the second halves is free of samples of the first: the recordings are"
                " shorter than two windows. Use document:gap=false, split=people, or shorter"
                " windows."
            )
        note = "document type, first half of each recording against the second"
        return other_rows(self.name, how, known, asked, note)


@dataclass(frozen=True)
class Gender(Utility):
    """Classification of gender, or another attribute that is a word, on held-out people.

    Parameters
    ----------
    classifier, vote, every, gamma
        As for :class:`Document`.
    attribute : str
        The attribute; people without it are left out.
    """

    classifier: str = "svm"
    vote: bool = False
    every: int = 10
    gamma: str = "scale"
    attribute: str = "gender"

    name: ClassVar[str] = "gender"
    needs: ClassVar[tuple[str, ...]] = ("window",)
    trains: ClassVar[bool] = True

    def check(self) -> None:
        """Check the words and the count."""
        check_classifier(self, self.classifier, self.gamma, self.vote, self.every)
        if not isinstance(self.attribute, str) or not self.attribute:
            checks.refuse(self.name, "attribute", "the name of an attribute", self.attribute)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Accuracy and macro F1, leaving one person out; chance is the share of the most frequent
        class. See :class:`Utility`.
        """
        need_lasting_names(self.name, train, test)
        known, asked = (
            rows_of(m.windows, self._attribute(raw.people, m.people), self.every)
            for m in (train, test)
        )
        if len(known) == 0 or len(asked) == 0:
            raise DataError(
                f"{self.name} needs the attribute '{self.attribute}' of the people, and nobody in"
                f" the {'training' if len(known) == 0 else 'tested'} material has it together"
                " with windows. Give it in the cohort's people table."
            )
        how = Classifier(self.classifier, self.gamma, self.vote, seed)
        return left_out(self.name, how, known, asked, f"{self.attribute} of a person left out")

    def _attribute(self, *tables: Mapping[str, Attributes]) -> Callable[[RecordingKey, Ints], str]:
        def label(key: RecordingKey, index: Ints) -> str:
            for people in tables:
                value = people.get(key[0], {}).get(self.attribute)
                if value is not None and str(value).strip():
                    return str(value).strip().lower()
            return ""

        return label


@dataclass(frozen=True)
class PrivacySensitivity(Utility):
    """Detection of privacy-sensitive scenes, window by window (Bozkir et al. 2021, MPIIPrivacEye).

    The annotation is `privacy_sensitive` of the raw window table: one of its `annotations`, which
    mechanisms never see, or else a column (:func:`with_privacy_labels` puts it there), which they
    do. It is never a feature here, and what a release made of it is not looked at: a released
    window has the class of the raw window with the same keys, and is left out where there is none.

    Parameters
    ----------
    classifier, every, gamma
        As for :class:`Document`; Bozkir et al. 2021 keeps every 20th window.
    """

    classifier: str = "svm"
    every: int = 20
    gamma: str = "scale"

    name: ClassVar[str] = "privacy-sensitivity"
    needs: ClassVar[tuple[str, ...]] = ("window",)
    trains: ClassVar[bool] = True

    def check(self) -> None:
        """Check the words and the count."""
        check_classifier(self, self.classifier, self.gamma, False, self.every)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Accuracy and macro F1 over windows, leaving one person out; see :class:`Utility`."""
        need_lasting_names(self.name, train, test)
        table = raw.windows
        if PRIVACY_COLUMN not in (*table.annotations, *table.columns):
            raise DataError(
                f"{self.name} needs the annotation of each window as the column '{PRIVACY_COLUMN}'"
                " of the raw window table, and there is none. Add it with"
                " gazeveil.utility.classify.with_privacy_labels(table, labels)."
            )
        truth = (
            table.annotations[PRIVACY_COLUMN]
            if PRIVACY_COLUMN in table.annotations
            else table.column(PRIVACY_COLUMN)
        )
        labels = np.where(truth == 1, "private", np.where(truth == 0, "not private", ""))
        annotated = {
            key: dict(zip(table.keys.index[rows].tolist(), labels[rows].tolist(), strict=True))
            for key, rows in table.recordings().items()
        }

        def label(key: RecordingKey, index: Ints) -> Texts:
            by_window = annotated.get(key, {})
            return np.array([by_window.get(i, "") for i in index.tolist()], dtype=np.str_)

        known, asked = (
            rows_of(w.drop(PRIVACY_COLUMN) if PRIVACY_COLUMN in w.columns else w, label, self.every)
            for w in (train.windows, test.windows)
        )
        how = Classifier(self.classifier, self.gamma, False, seed)
        return left_out(self.name, how, known, asked, "privacy sensitivity, a person left out")


def with_privacy_labels(table: FeatureTable, labels: ArrayLike) -> FeatureTable:
    """A window table with the annotation `privacy_sensitive`, as :class:`PrivacySensitivity` looks
    for it.

    Parameters
    ----------
    table : FeatureTable
        Windows, for instance `mpii_features(path)`.
    labels : array, shape (rows,)
        1 for private, 0 for not, anything else for unknown; for instance
        `gazeveil.io.datasets.mpii.privacy_labels(path)`.

    Raises
    ------
    DataError
        If there is not one label per row.
    """
    column = np.asarray(labels, dtype=np.float64)
    if column.shape != (len(table),):
        raise DataError(
            f"with_privacy_labels needs one label per row, {len(table)} in all. Got shape"
            f" {column.shape}."
        )
    column = np.where((column == 0) | (column == 1), column, np.nan)
    bounds = None if table.bounds is None else np.concatenate([table.bounds, [[0.0, 1.0]]])
    return FeatureTable(
        np.column_stack([table.values, column]),
        (*table.columns, PRIVACY_COLUMN),
        table.keys,
        bounds,
        table.counts,
    )


@dataclass(frozen=True)
class Task(Utility):
    """Which task a recording is of, from means, deviations and rates of its events (Ren et al.
    2024: trained on raw recordings, asked about private ones).

    Parameters
    ----------
    classifier, gamma
        As for :class:`Document`.
    label : str
        As for :class:`gazeveil.utility.activity.Activity`.
    test_share : float
        Share of people to test on (Ren et al. 2024: 300 of 1004 recordings).
    trees : int
        For `forest`; Ren et al. 2024 does not say how many.
    """

    classifier: str = "forest"
    gamma: str = "scale"
    label: str = "task"
    test_share: float = 0.3
    trees: int = 100

    name: ClassVar[str] = "task"
    needs: ClassVar[tuple[str, ...]] = ("fixation", "saccade")
    trains: ClassVar[bool] = True

    def check(self) -> None:
        """Check the words, the count and the share."""
        check_classifier(self, self.classifier, self.gamma, False, 1)
        checks.one_of(self.name, "label", self.label, LABELS)
        self.store("test_share", people_share(self.name, self.test_share))
        self.store("trees", checks.count(self.name, "trees", self.trees))

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """Accuracy and macro F1 over recordings; one that the release left without events is asked
        about too. See :class:`Utility`.
        """
        need_lasting_names(self.name, train, test)
        label = class_by(self.label)
        how = Classifier(self.classifier, self.gamma, False, seed, self.trees)
        known, asked = (rows_of(recording_table(m), label) for m in (train, test))
        return people_apart(self.name, how, known, asked, self.test_share, "task of a recording")
