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

Activity recognition: by a forest from window features, or by a network from samples.

Windows of samples as the network of activities sees them: eye in head, head velocity and gaze in
the world, 25 times a second.

Windows begin and end as those of the window features do, so that a network and a forest are asked
about the same seconds. Each moment holds the newest sample of the release, at most 100 ms old (or
1.5 samples, where that is more); what is older is lost. The head is that of the recording, the eye
in it is worked out from released gaze (:mod:`gazeveil.utility.moments`).

As published, gaze in the world is longitude and latitude in degrees, so a window also encodes the
place in the scene. Ours is relative to the mean direction of the window. An activity recorded in
one place is then not recognised by that place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Singles, Texts
from gazeveil.errors import DataError
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.features.recordings import recording_table
from gazeveil.features.rows import whole_windows
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Attributes
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.models.classifiers import CLASSIFIERS
from gazeveil.models.headset.ehtask import BRANCHES, ehtask_plan, train_ehtask
from gazeveil.models.training import HEADS, READINGS, best_device
from gazeveil.utility.base import (
    Utility,
    UtilityResult,
    need_lasting_names,
    need_samples,
    side_by_side,
)
from gazeveil.utility.moments import arrivals, eye_tangents, head_course, to_plane
from gazeveil.utility.splits import (
    LABELS,
    Classifier,
    HalfSplit,
    Rows,
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
        As for :class:`gazeveil.utility.classify.Activity`.
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


#: The network among the classifiers.
NETWORK = "ehtask"


@dataclass(frozen=True)
class Activity(Utility):
    """Activity recognition from windows, on held-out people (David-John et al.'s (2023) split).

    Parameters
    ----------
    classifier, vote, every, gamma
        As for :class:`gazeveil.utility.classify.Document`; the windows are the
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
        return people_apart(self.name, how, known, asked, self.test_share, "activity from windows")

    def sides(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[Classifier, Rows, Rows]:
        """The classifier, what it may learn from and what it may be asked about."""
        label = class_by(self.label)
        if self.classifier != NETWORK:
            forest = Classifier(self.classifier, self.gamma, self.vote, seed, self.trees)
            known, asked = (rows_of(m.windows, label, self.every) for m in (train, test))
            return forest, known, asked
        network = NetworkClassifier(
            f"{NETWORK}, {self.reading} reading, head {self.head}",
            self.gamma,
            self.vote,
            seed,
            reading=self.reading,
            steps=self.steps,
        )
        how = (label, self.every, self.reading, self.head)
        return network, window_rows(raw, train, *how), window_rows(raw, test, *how)


#: Moments per second.
RATE_HZ = 25.0

#: How old the sample of a moment may be.
OLDEST_S = 0.1

#: Channels of a window: right and down of each signal.
CHANNELS = 2 * len(BRANCHES)


@dataclass(frozen=True)
class NetworkClassifier(Classifier):
    """The network `ehtask` in the place of a classifier of rows.

    Parameters
    ----------
    reading : {"corrected", "published"}
        How it is trained.
    steps : int
        Batches it is trained with.
    """

    reading: str = "corrected"
    steps: int = 600

    def name_them(self, known: Rows, asked: Rows) -> Texts:
        """The classes of the rows asked about."""
        classes, codes = np.unique(known.labels, return_inverse=True)
        if len(classes) == 1 or len(asked) == 0:
            return np.full(len(asked), classes[0], dtype=known.labels.dtype)
        network, _ = train_ehtask(
            window_array(known),
            codes.astype(np.int64),
            ehtask_plan(self.reading, self.steps, self.seed),
            self.reading,
            device=best_device(),
        )
        return np.asarray(classes[network.name_them(window_array(asked))])


def window_array(rows: Rows) -> Floats:
    """Rows as windows, shape (rows, 6, steps)."""
    return rows.values.reshape(len(rows), CHANNELS, -1)


def window_rows(
    raw: RecordingSet,
    material: RecordingSet,
    label: Callable[[RecordingKey, Ints], str | Texts],
    every: int = 1,
    reading: str = "corrected",
    head: str = "recorded",
) -> Rows:
    """The windows of a recording set that have a class, as rows of a network.

    Parameters
    ----------
    raw : RecordingSet
        As recorded; the head is there.
    material : RecordingSet
        As released.
    label : callable
        The class of a recording, as in :func:`gazeveil.utility.splits.rows_of`.
    every : int
        Keep every n-th window of each recording.
    reading : {"corrected", "published"}
        How gaze in the world is written.
    head : {"recorded", "none"}
        Whether the head is looked at; without it only gaze in the world is left.
    """
    need_samples("activity", raw, material)
    pipeline = material.pipeline
    steps = max(1, round(pipeline.window_s * RATE_HZ))
    parts: list[Singles] = [np.empty((0, CHANNELS * steps), dtype=np.float32)]
    labels: list[str] = []
    persons: list[str] = []
    numbers: list[Ints] = [np.empty(0, dtype=np.int64)]
    pairs = side_by_side(raw, material)
    for number, (recorded, release) in enumerate(pairs):
        if release is None:
            continue
        # Names of a release may be new: then nothing is known of the head.
        windows = windows_of(recorded or release, release, pipeline, reading, head)[::every]
        index = np.arange(len(windows)) * every
        classes = np.broadcast_to(np.asarray(label(release.key, index), dtype=np.str_), index.shape)
        kept = classes != ""
        parts.append(windows[kept].reshape(int(kept.sum()), CHANNELS * steps))
        labels += classes[kept].tolist()
        persons += [release.person] * int(kept.sum())
        numbers.append(np.full(int(kept.sum()), number))
    values: Singles = np.concatenate(parts)
    columns = tuple(f"c{i}" for i in range(CHANNELS * steps))
    texts = np.array(labels, dtype=np.str_), np.array(persons, dtype=np.str_)
    return Rows(values, columns, *texts, np.concatenate(numbers))  # type: ignore[arg-type]


def windows_of(
    recorded: Recording, release: Recording, pipeline: FeaturePipeline, reading: str, head: str
) -> Singles:
    """The windows of one recording, shape (windows, 6, steps); NaN where lost."""
    window_ns, step_ns = round(pipeline.window_s * 1e9), max(1, round(pipeline.step_s * 1e9))
    _, number = whole_windows(release, window_ns, step_ns)
    steps = max(1, round(pipeline.window_s * RATE_HZ))
    made = np.full((number, steps, CHANNELS), np.nan, dtype=np.float32)
    known = release.valid
    if number == 0 or not known.any():
        return np.ascontiguousarray(made.transpose(0, 2, 1))
    clock = arrivals(recorded, release)
    begins = int(clock[0]) + np.arange(number) * step_ns
    times = begins[:, None] + np.round(np.arange(steps) * (1e9 / RATE_HZ)).astype(np.int64)
    t = clock[known]
    # A sample on the moment counts, also where a tracker's clock jitters by half a sample.
    half_ns = 0.5e9 / release.rate_hz if release.rate_hz > 0 else 0.0
    held = np.searchsorted(t, times + round(half_ns), side="right") - 1
    oldest_ns = 1e9 * max(OLDEST_S, 1.5 / release.rate_hz if release.rate_hz > 0 else 0.0)
    lost = (held < 0) | (times - t[np.maximum(held, 0)] > oldest_ns)
    held = np.maximum(held, 0)
    course = head_course(recorded) if head == "recorded" else None
    made[:, :, 2:4] = 0.0
    made[:, :, 0:2] = 0.0
    if head == "recorded":
        made[:, :, 0:2] = eye_tangents(recorded, release)[known][held]
    if course is not None:
        made[:, :, 2:4] = course.velocity_deg_s[course.at(times)]
    made[:, :, 4:6] = _in_world(release, held, lost, reading)
    made[:, :, 0:2][lost] = np.nan
    made[:, :, 4:6][lost] = np.nan
    return np.ascontiguousarray(made.transpose(0, 2, 1))


def _in_world(release: Recording, held: Ints, lost: Bools, reading: str) -> Floats:
    """Gaze in the world of each moment, in degrees right and down, shape (windows, steps, 2)."""
    known = release.valid
    x_deg, y_deg = release.x_deg[known], release.y_deg[known]
    if isinstance(release.space, Screen):
        places = np.stack((x_deg, y_deg), axis=1)[held]
        if reading == "published":
            return places
        weight = ~lost[:, :, None]
        mean = (places * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1)
        return np.asarray(places - mean[:, None, :])
    if reading == "published":
        return np.stack((x_deg - 180.0, y_deg - 90.0), axis=1)[held]
    vectors = release.space.vectors(x_deg, y_deg)[held]
    middle = (vectors * ~lost[:, :, None]).sum(axis=1)
    length = np.linalg.norm(middle, axis=1, keepdims=True)
    middle = np.where(length > 1e-9, middle / np.maximum(length, 1e-9), vectors[:, 0])
    return to_plane(middle, vectors)
