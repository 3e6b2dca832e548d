"""Where a study's recordings come from: files, a simulator, a cohort or tables in memory; and a
fingerprint of what they hold.

The fingerprint is of the recordings alone, not of where they lie or which study asks: two studies
on the same recordings share finished cells, and a file that has changed shares none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

import joblib
import numpy as np

from gazeveil import __version__, checks
from gazeveil.errors import DataError
from gazeveil.features.recording_set import TABLES, FeaturePipeline, RecordingSet, carry
from gazeveil.features.table import KEYS, FeatureTable
from gazeveil.gaze.cohort import Cohort, Handle, natural
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.scratch import SetAside, is_set_aside, set_aside

#: Names of people or stimuli, how many of them (the first in natural order), or all.
Selection: TypeAlias = tuple[str, ...] | int | None

_CHANNELS = (
    "t_ns",
    "x_deg",
    "y_deg",
    "valid",
    "left_deg",
    "right_deg",
    "head_deg",
    "eye_in_head_deg",
    "pupil",
    "confidence",
)

#: Datasets that come as window features.
_MPII = ("mpiidpeye", "mpiiprivaceye")

# Sampling rates of one tracker that are measured recording by recording differ by less.
_SAME_RATE = 1.1

#: Files whose code has no part in a figure: changing them does not make finished cells stale.
_NO_PART = (
    *("cli/", "evaluation/report/", "evaluation/results.py", "gatekeeper/", "privacy/audit/"),
    "attacks/battery.py",
    *(
        f"papers/{word}"
        for word in ("citations", "comparison/", "drawing", "figure", "page", "published")
    ),
)


@dataclass(frozen=True)
class Files:
    """Recordings on disk.

    Parameters
    ----------
    path : str
        A file or a folder.
    format : str, optional
        As in :func:`gazeveil.read`.
    options : mapping
        Options of the format.
    table : str, optional
        `fixation`, `saccade` or `window`: the path holds rows of features and no samples (a table
        as Gazeveil writes it, or with the format `mpiidpeye` or `mpiiprivaceye` their feature
        files).
    """

    path: str
    format: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    table: str | None = None

    def __post_init__(self) -> None:
        if self.table is not None:
            checks.one_of("cohort", "table", self.table, TABLES)

    @property
    def description(self) -> str:
        """Where it is, for people."""
        return Path(self.path).name

    def open(self) -> Cohort | FeatureTable:
        """Index the files; samples are read later."""
        if self.table is None:
            from gazeveil.io.reading import read

            return read(self.path, self.format, **self.options)
        if self.format in _MPII:
            from gazeveil.features.mpii import mpii_features

            return mpii_features(self.path)
        if self.format is not None or self.options:
            raise DataError(
                f"A table in {self.path} is read by its suffix and takes no format but"
                f" {' or '.join(_MPII)}, and no options."
            )
        return FeatureTable.read(self.path)

    def people(self) -> dict[str, dict[str, object]]:
        """Attributes of the people of a table of features; recordings bring their own."""
        if self.format not in _MPII:
            return {}
        from gazeveil.features.mpii import mpii_people

        return mpii_people(self.path)


@dataclass(frozen=True)
class Simulated:
    """Simulated recordings, made when they are needed.

    Parameters
    ----------
    people, stimuli, seconds, rate_hz, task, seed
        As in :func:`gazeveil.simulate`; a study always has a seed.
    options : mapping
        Further arguments of it: sessions, noise, document...
    """

    people: int
    stimuli: int
    seconds: float
    rate_hz: float
    task: str = "free-viewing"
    seed: int = 0
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """What is simulated, for people."""
        return f"simulated {self.task}"

    def open(self) -> Cohort:
        """The lazy cohort."""
        from gazeveil.gaze.simulate import simulate

        return simulate(
            self.people,
            self.stimuli,
            self.seconds,
            self.rate_hz,
            self.task,
            seed=self.seed,
            **self.options,  # type: ignore[arg-type]
        )


Source: TypeAlias = Files | Simulated | Cohort | RecordingSet | FeatureTable


def opened(
    source: Source, people: Selection, stimuli: Selection, preparation: FeaturePipeline
) -> RecordingSet:
    """What a study has of its recordings before anything is protected; samples in files are not
    read yet.

    Raises
    ------
    DataError, ParameterError
        If nothing is there, or names of the selection are not.
    """
    data = source.open() if isinstance(source, Files | Simulated) else source
    if isinstance(data, FeatureTable):
        kind = (
            source.table
            if isinstance(source, Files) and source.table is not None
            else _kind_of(data)
        )
        attributes = source.people() if isinstance(source, Files) else None
        data = RecordingSet(None, {kind: data}, preparation, attributes)
    whole = RecordingSet(data, None, preparation) if isinstance(data, Cohort) else data
    if not whole.keys:
        raise DataError(
            "The study's cohort has no recordings. Check the path, or the selection of people and"
            " stimuli."
        )
    names = [_chosen("people", people, whole.persons), _chosen("stimuli", stimuli, whole.stimuli)]
    if names == [None, None]:
        return whole
    picked = whole.select(people=names[0], stimuli=names[1])
    if not picked.keys:
        raise DataError("The study's selection of people and stimuli leaves no recordings.")
    return picked


def loaded(recording_set: RecordingSet) -> RecordingSet:
    """Return the material with every sample read once, as the workers get it: in memory. Large
    material is in a scratch file that the workers of this machine share.
    """
    people = {
        p: dict(a) for p, a in recording_set.people.items()
    }  # read-only mappings cannot be sent to another process
    if recording_set.cohort is None:
        return RecordingSet(None, recording_set.tables, recording_set.pipeline, people)
    # What a simulator knows of its recordings is no part of them, and weighs more than they do.
    cohort = recording_set.cohort
    return RecordingSet(
        set_aside(map(_without_truth, cohort.items), cohort.people, cohort.name),
        recording_set.tables,
        recording_set.pipeline,
        people,
    )


def _without_truth(item: Recording | Handle) -> Recording | Handle:
    if is_set_aside(item):
        return item
    recording = item.load() if isinstance(item, Handle) else item
    return recording if recording.truth is None else recording.with_(truth=None)


def in_memory(recording_set: RecordingSet) -> RecordingSet:
    """The material with every sample in memory, for those who do not see this machine's disk."""
    if recording_set.cohort is None:
        return recording_set
    return RecordingSet(
        recording_set.cohort.load(),
        recording_set.tables,
        recording_set.pipeline,
        recording_set.people,
    )


def scratch_paths(recording_set: RecordingSet) -> frozenset[str]:
    """The scratch files that a worker with the material must be able to read."""
    cohort = recording_set.cohort
    loads = [getattr(item, "load", None) for item in cohort.items] if cohort is not None else []
    return frozenset(load.file.path for load in loads if isinstance(load, SetAside))


@dataclass(frozen=True)
class SampleCheck:
    """What one look at the samples of recordings shows.

    Parameters
    ----------
    usable : tuple of keys
        Recordings with at least two valid samples.
    events_alone : int
        How many recordings hold events and no samples, as datasets of fixations do.
    rates_note : str
        A sentence about sampling rates that differ; empty where they do not.
    """

    usable: tuple[tuple[str, str, str, str], ...]
    events_alone: int
    rates_note: str


def look_at_samples(recordings: Iterable[Recording]) -> SampleCheck:
    """Which recordings have gaze, and whether their sampling rates differ; they are read one after
    the other.
    """
    usable: list[tuple[str, str, str, str]] = []
    rates: dict[str, list[float]] = {}
    events_alone = 0
    for recording in recordings:
        events_alone += len(recording) == 0 and recording.events is not None
        if np.count_nonzero(recording.valid) > 1:
            usable.append(recording.key)
            if recording.rate_hz > 0:  # NaN where it is not known
                rates.setdefault(recording.person, []).append(float(recording.rate_hz))
    listed = [rate for own in rates.values() for rate in own]
    if not listed or max(listed) <= _SAME_RATE * min(listed):
        return SampleCheck(tuple(usable), events_alone, "")
    within = all(max(own) <= _SAME_RATE * min(own) for own in rates.values())
    note = (
        "The sampling rates of the recordings differ from"
        f" {'person to person' if within else 'recording to recording'} ({min(listed):.3g} to"
        f" {max(listed):.3g} Hz), so attackers may recognise the rate and not the gaze: bring all"
        " to one rate (Recording.resample), or study those of one rate alone."
    )
    return SampleCheck(tuple(usable), events_alone, note)


def with_events(recording_set: RecordingSet, events: str) -> RecordingSet:
    """The material with its events found again, or carried along as labels."""
    if recording_set.cohort is None:
        return recording_set
    p = recording_set.pipeline
    pipeline = FeaturePipeline(p.method, p.parameters, events, p.window_s, p.step_s)
    cohort = carry(recording_set.cohort, pipeline) if events == "carried" else recording_set.cohort
    return RecordingSet(
        cohort, recording_set.tables if events == p.events else None, pipeline, recording_set.people
    )


def fingerprint(source: Source, recording_set: RecordingSet) -> str:
    """SHA-256 of what the recordings hold.

    Simulated recordings follow from their parameters and the code (:func:`code`), so they are not
    made for it.
    """
    digest = hashlib.sha256()
    cohort, keys = recording_set.cohort, recording_set.keys
    if isinstance(source, Simulated):
        digest.update(_hashed("simulated", repr(source), keys))
        return digest.hexdigest()
    digest.update(_hashed({p: dict(a) for p, a in recording_set.people.items()}))
    for place in sorted(range(len(cohort)), key=lambda i: keys[i]) if cohort is not None else ():
        assert cohort is not None
        r = cohort[place]
        events = None if r.events is None else r.events.columns()
        channels = [getattr(r, name) for name in _CHANNELS]
        about = r.key, repr(r.rate_hz), repr(r.space)
        digest.update(_hashed(about, channels, dict(r.labels), events))
    for name, table in sorted(recording_set.tables.items()):
        columns = [table.keys[part] for part in KEYS]
        rows = table.columns, columns, table.values, table.bounds, dict(table.annotations)
        digest.update(_hashed(name, *rows))
    return digest.hexdigest()


def _hashed(*values: object) -> bytes:
    """A hash of plain values and arrays, in whatever order mappings hold them."""
    return str(joblib.hash(values)).encode()


@cache
def code() -> str:
    """The package's version and SHA-256 of the code that figures come from: cells of other code are
    never taken for finished.
    """
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(_NO_PART):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()[:16]}"


def _chosen(kind: str, wanted: Selection, known: tuple[str, ...]) -> tuple[str, ...] | None:
    if wanted is None:
        return None
    if isinstance(wanted, int):
        if checks.count("Study", kind, wanted) > len(known):
            raise DataError(f"The study asks for {wanted} {kind} and the cohort has {len(known)}.")
        return tuple(sorted(known, key=natural)[:wanted])
    for name in wanted:
        checks.one_of("Study", kind, name, known)
    return tuple(wanted)


def _kind_of(table: FeatureTable) -> str:
    """Which of the three tables this is, by its columns."""
    for kind, sign in (
        ("window", "fixation_rate"),
        ("saccade", "amplitude"),
        ("fixation", "dispersion"),
    ):
        if sign in table.columns:
            return kind
    raise DataError(
        "This feature table is not known as one of fixations, saccades or windows. Say which with"
        " RecordingSet(None, {'window': table})."
    )
