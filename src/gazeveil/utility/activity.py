"""Activity recognition: by a forest from window features, or by a network from samples.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Singles, Texts
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.features.window import whole_windows
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
    Rows,
    check_classifier,
    class_by,
    people_apart,
    people_share,
    rows_of,
)

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
