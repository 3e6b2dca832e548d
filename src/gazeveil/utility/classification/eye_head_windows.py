"""Windows of samples as the network of activities sees them: eye in head, head velocity and gaze in
the world, 25 times a second.

Windows begin and end as those of the window features do, so that a network and a forest are asked
about the same seconds. Each moment holds the newest sample of the release, at most 100 ms old (or
1.5 samples, where that is more); what is older is lost. The head is that of the recording, the eye
in it is worked out from released gaze (:mod:`gazeveil.utility.prediction.moments`).

As published, gaze in the world is longitude and latitude in degrees, so a window also encodes the
place in the scene. Ours is relative to the mean direction of the window. An activity recorded in
one place is then not recognised by that place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints, Singles, Texts
from gazeveil.errors import DataError
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.features.window import whole_windows
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.models.headset.ehtask import BRANCHES, ehtask_plan, train_ehtask
from gazeveil.models.headset.weights import RecogniserInput, TrainedRecogniser
from gazeveil.models.train import best_device
from gazeveil.utility.areas.scanpaths import need_samples, side_by_side
from gazeveil.utility.classification.rows import Rows
from gazeveil.utility.classification.splits import Classifier
from gazeveil.utility.prediction.moments import arrivals, eye_tangents, head_course, to_plane

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
    weights : TrainedRecogniser, optional
        A network that was trained before; then nothing is learnt here.
    """

    reading: str = "corrected"
    steps: int = 600
    weights: TrainedRecogniser | None = None

    @property
    def learns(self) -> bool:
        """Whether it learns from the known rows."""
        return self.weights is None

    def classes(self, known: Rows) -> tuple[str, ...]:
        """What it can name."""
        return super().classes(known) if self.weights is None else self.weights.given.classes

    def name_them(self, known: Rows, asked: Rows) -> Texts:
        """The classes of the rows asked about.

        Raises
        ------
        DataError
            For weights that know none of the classes asked about.
        """
        if self.weights is not None:
            named = self.weights.given.classes
            if not set(named) & set(asked.labels.tolist()):
                raise DataError(
                    f"These weights name {_some(named)}, and the windows asked about are of"
                    f" {_some(sorted(set(asked.labels.tolist())))}. Choose the label they were"
                    " trained with, or train weights on these activities."
                )
            codes = self.weights.network.name_them(window_array(asked))
            return np.asarray(np.array(named, dtype=np.str_)[codes])
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


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"'{name[:40]}'" for name in names[:3]) + more


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
    weights: RecogniserInput | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rows:
    """The windows of a recording set that have a class, as rows of a network.

    Parameters
    ----------
    raw : RecordingSet
        As recorded; the head is there.
    material : RecordingSet
        As released.
    label : callable
        The class of a recording, as in :func:`gazeveil.utility.classification.rows.rows_of`.
    every : int
        Keep every n-th window of each recording.
    reading : {"corrected", "published"}
        How gaze in the world is written.
    head : {"recorded", "none"}
        Whether the head is looked at; without it only gaze in the world is left.
    weights : RecogniserInput, optional
        What weights from a file must be given: windows are as long as they want them, whatever the
        study's are.
    progress : callable, optional
        Told (recordings done, all recordings).

    Raises
    ------
    DataError
        For recordings of a rate that the weights do not know.
    """
    need_samples("activity", raw, material)
    pipeline = material.pipeline
    if weights is not None:
        pipeline = replace(pipeline, window_s=weights.window_s)
    steps = max(1, round(pipeline.window_s * RATE_HZ))
    parts: list[Singles] = [np.empty((0, CHANNELS * steps), dtype=np.float32)]
    labels: list[str] = []
    persons: list[str] = []
    numbers: list[Ints] = [np.empty(0, dtype=np.int64)]
    pairs = side_by_side(raw, material)
    for number, (recorded, release) in enumerate(pairs):
        if progress is not None:
            progress(min(number, len(raw.keys)), len(raw.keys))
        if release is None:
            continue
        if weights is not None:
            weights.rates.check(recorded or release)
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
