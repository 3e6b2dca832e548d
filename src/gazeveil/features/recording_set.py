"""RecordingSet: the data of an attacker or an analyst: samples, tables of events, tables of
windows.

A release of samples gives samples, from which events and windows are found again; a release of
tables gives tables and nothing else. Tables are made on first use and kept, because every attacker
and every utility asks for the same ones.

Tables of a recording set; large ones lie in a scratch file until they are read.

Attackers look at a table a few times in a study and at their own vectors in between: with a
thousand people the tables of the sets that one of them holds would fill more memory than all else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, frozen
from gazeveil.errors import DataError
from gazeveil.events import detect
from gazeveil.events.quality import QualityWarning
from gazeveil.features.rows import fixation_and_saccade_features, window_features
from gazeveil.features.table import KEYS, FeatureTable, Keys
from gazeveil.gaze import scratch
from gazeveil.gaze.cohort import Attributes, Cohort, Handle
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.gaze.scratch import ScratchFile, set_aside

# Where an array begins in a file, its shape and its type.
_Place = tuple[int, tuple[int, ...], np.dtype[Any]]


class TableShelf(MutableMapping[str, FeatureTable]):
    """Tables by name. Those it begins with stay in memory; one that is put in later stays there if
    it is not above :data:`gazeveil.gaze.scratch.IN_MEMORY` bytes.
    """

    def __init__(self, tables: Mapping[str, FeatureTable]) -> None:
        self._held: dict[str, FeatureTable | _TableAside] = (
            dict(tables._held) if isinstance(tables, TableShelf) else dict(tables)
        )
        # A table in use is not read a second time.
        self._read: WeakValueDictionary[str, FeatureTable] = WeakValueDictionary()

    def __setitem__(self, name: str, table: FeatureTable) -> None:
        arrays = (table.values, *(table.keys[key] for key in KEYS))
        size = sum(array.nbytes for array in arrays)
        self._held[name] = _TableAside(table) if size > scratch.IN_MEMORY else table
        self._read[name] = table

    def take(self, name: str, other: TableShelf) -> None:
        """The same table as another shelf has, wherever it lies."""
        self._held[name] = other._held[name]

    def __getitem__(self, name: str) -> FeatureTable:
        held = self._held[name]
        if isinstance(held, FeatureTable):
            return held
        table = self._read.get(name)
        if table is None:
            table = self._read[name] = held.read()
        return table

    def __delitem__(self, name: str) -> None:
        del self._held[name]
        self._read.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def __len__(self) -> int:
        return len(self._held)

    # Another process gets the tables themselves: it may be on another machine.
    def __reduce__(self) -> tuple[type[TableShelf], tuple[dict[str, FeatureTable]]]:
        return TableShelf, (dict(self),)


class _TableAside:
    """A table in a scratch file of its own."""

    def __init__(self, table: FeatureTable) -> None:
        self._file = ScratchFile()
        self._values = self._put(table.values)
        self._keys = {key: self._put(table.keys[key]) for key in KEYS}
        # All that has no row for each event.
        self._columns, self._bounds, self._counts = table.columns, table.bounds, table.counts
        self._annotations = table.annotations

    def read(self) -> FeatureTable:
        """The table as it was."""
        keys = Keys(**{key: self._array(place) for key, place in self._keys.items()})
        values = frozen(self._array(self._values))
        return FeatureTable(
            values, self._columns, keys, self._bounds, self._counts, self._annotations
        )

    def _put(self, array: NDArray[Any]) -> _Place:
        return self._file.put_array(array), array.shape, array.dtype

    def _array(self, place: _Place) -> NDArray[Any]:
        return self._file.read_array(*place)


#: Where the events of released samples come from.
EVENTS = ("redetected", "carried")

#: The label under which :func:`carry` stores the events found on raw samples.
CARRIED = "carried_event"

#: The tables a recording set may hold.
TABLES = ("fixation", "saccade", "window")


@dataclass(frozen=True)
class FeaturePipeline:
    """How tables are made from samples; the same for everybody in a study.

    Parameters
    ----------
    method : str
        Detector, as in :func:`gazeveil.detect`; the papers' pipeline is `ivt` with
        `setting="george"`.
    parameters : mapping
        Its parameters.
    events : {"redetected", "carried"}
        Find events on the samples as they are, or take the labels that came with them (as
        David-John et al.'s (2021) stream of (x, y, t, e) does).
    window_s, step_s : float
        The windows of the 52 features, in seconds.
    """

    method: str = "ivt"
    parameters: Mapping[str, object] = field(default_factory=lambda: {"setting": "george"})
    events: str = "redetected"
    window_s: float = 30.0
    step_s: float = 0.5

    def __post_init__(self) -> None:
        checks.one_of("FeaturePipeline", "events", self.events, EVENTS)

    def events_of(self, recording: Recording) -> Events:
        """The events of one recording, found again or as carried."""
        if self.events == "redetected":
            with warnings.catch_warnings():
                # Releases are noisy on purpose, and the report says how they were made.
                warnings.simplefilter("ignore", QualityWarning)
                return detect(recording, self.method, **self.parameters)
        if CARRIED not in recording.labels:
            raise DataError(
                f"Recording {recording.person}, {recording.stimulus} carries no event labels. Use"
                " events='redetected', or a mechanism that passes labels on."
            )
        return Events.from_words(recording.labels[CARRIED], recording.t_ns)


def carry(cohort: Cohort, pipeline: FeaturePipeline) -> Cohort:
    """The cohort with its raw events written into the labels, so that a mechanism told to keep
    labels passes them on.
    """
    plain = FeaturePipeline(pipeline.method, pipeline.parameters)
    return set_aside(
        (r.with_(labels={**r.labels, CARRIED: plain.events_of(r).words(len(r))}) for r in cohort),
        cohort.people,
        cohort.name,
    )


class PieceWindow(NamedTuple):
    """Which part of a stimulus a piece of a recording shows.

    Parameters
    ----------
    stimulus : str
        Of the recording that was cut.
    window : int
        From 0, in order of time.
    begin_ns, end_ns : int
        Times of its first and last sample, from the beginning of the stimulus.
    """

    stimulus: str
    window: int
    begin_ns: int
    end_ns: int


class RecordingSet:
    """Samples and tables of recordings.

    Parameters
    ----------
    cohort : Cohort, optional
        The samples; None for a release of tables.
    tables : mapping of "fixation", "saccade", "window" to FeatureTable
        Tables as released; where there are samples, missing ones are computed on first use.
    pipeline : FeaturePipeline
        How tables are computed.
    people : mapping, optional
        Attributes of the people; default the cohort's.
    noise_scale_deg : callable, optional
        From a recording to the scale of the noise of each of its samples in degrees, as far as the
        mechanism that made the release makes it public; None where it does not.
    """

    def __init__(
        self,
        cohort: Cohort | None = None,
        tables: Mapping[str, FeatureTable] | None = None,
        pipeline: FeaturePipeline | None = None,
        people: Mapping[str, Attributes] | None = None,
        noise_scale_deg: Callable[[Recording], Floats | None] | None = None,
    ) -> None:
        self.cohort = cohort
        # Set by callers that take several parts of one set: per-recording results are computed
        # once, for the whole.
        self.part_of: RecordingSet | None = None
        # Of several sets put together: in which of them each recording is, and under which key.
        self.made_of: Mapping[RecordingKey, tuple[RecordingSet, RecordingKey]] | None = None
        # Of a release of pieces: whose each name is (the truth, which attackers never see), and
        # which part of which stimulus each piece shows (public); None where names last.
        self.origins: Mapping[str, RecordingKey] | None = None
        self.piece_windows: Mapping[RecordingKey, PieceWindow] | None = None
        self.noise_scale_deg = noise_scale_deg
        self.pipeline = pipeline or FeaturePipeline()
        self._tables = TableShelf(tables or {})
        for name in self._tables:
            checks.one_of("RecordingSet", "tables", name, TABLES)
        if cohort is None and not self._tables:
            raise DataError("A recording set needs samples or tables. Got neither.")
        self.people: Mapping[str, Attributes] = (
            people if people is not None else (cohort.people if cohort is not None else {})
        )

    def __repr__(self) -> str:
        return (
            f"RecordingSet({len(self.keys)} recordings,"
            f" {'samples' if self.cohort is not None else 'no samples'}, tables:"
            f" {', '.join(self._tables) or 'none yet'})"
        )

    @cached_property
    def keys(self) -> tuple[RecordingKey, ...]:
        """(person, stimulus, session, task) of each recording."""
        if self.cohort is not None:
            return self.cohort.keys
        return tuple(
            dict.fromkeys(key for table in self._tables.values() for key in table.recordings())
        )

    @property
    def persons(self) -> tuple[str, ...]:
        """Who is in it, sorted."""
        return tuple(sorted({key[0] for key in self.keys}))

    @property
    def stimuli(self) -> tuple[str, ...]:
        """What they saw, sorted."""
        return tuple(sorted({key[1] for key in self.keys}))

    @property
    def tables(self) -> dict[str, FeatureTable]:
        """The tables that are there now: those released, and those computed so far."""
        return dict(self._tables)

    def has(self, name: str) -> bool:
        """Whether a table is there or can be made."""
        return name in self._tables or self.cohort is not None

    @property
    def fixations(self) -> FeatureTable:
        """Features of fixations, one row each."""
        return self.table("fixation")

    @property
    def saccades(self) -> FeatureTable:
        """Features of saccades, one row each."""
        return self.table("saccade")

    @property
    def windows(self) -> FeatureTable:
        """The 52 window features, one row per window."""
        return self.table("window")

    def table(self, name: str) -> FeatureTable:
        """A table, computed on first use.

        Raises
        ------
        DataError
            If it was not released and there are no samples to compute it from.
        """
        checks.one_of("RecordingSet.table", "name", name, TABLES)
        if name not in self._tables:
            if self.cohort is None:
                raise DataError(
                    f"This release holds no {name} table and no samples to compute one from. It"
                    f" holds: {', '.join(sorted(self._tables))}."
                )
            source = self.pipeline.events_of
            if name == "window":
                p = self.pipeline
                self._tables[name] = window_features(
                    self.cohort, window_s=p.window_s, step_s=p.step_s, events=source
                )
            else:
                # By name, so that they are not read again at once.
                both = fixation_and_saccade_features(self.cohort, events=source)
                self._tables["fixation"], self._tables["saccade"] = both
        return self._tables[name]

    def prepared(self, names: Iterable[str]) -> RecordingSet:
        """Itself, with these tables computed now: so that parts taken from it share the work."""
        for name in names:
            if name not in self._tables and self.has(name):
                self.table(name)
        return self

    def select(
        self, people: Iterable[str] | None = None, stimuli: Iterable[str] | None = None
    ) -> RecordingSet:
        """The recordings of some people, of some stimuli, or both; unknown names are left out."""
        some_people = None if people is None else set(people)
        some_stimuli = None if stimuli is None else set(stimuli)
        part = self.where(
            lambda key: (
                (some_people is None or key[0] in some_people)
                and (some_stimuli is None or key[1] in some_stimuli)
            )
        )
        if some_people is not None:
            part.people = {p: a for p, a in self.people.items() if p in some_people}
        return part

    def where(self, predicate: Callable[[RecordingKey], bool]) -> RecordingSet:
        """The recordings whose (person, stimulus, session, task) `predicate` says yes to."""
        cohort = None
        if self.cohort is not None:
            items = [item for item in self.cohort.items if predicate(item.key)]
            remaining = {item.person for item in items}
            cohort = Cohort(
                items,
                {p: a for p, a in self.cohort.people.items() if p in remaining},
                name=self.cohort.name,
            )
        tables = TableShelf({})
        for name, table in self._tables.items():
            rows = np.zeros(len(table), dtype=np.bool_)
            for key, places in table.recordings().items():
                rows[places] = predicate(key)
            if rows.all():
                tables.take(name, self._tables)
            else:
                tables[name] = table.where(rows)
        part = RecordingSet(cohort, tables, self.pipeline, self.people, self.noise_scale_deg)
        part.origins = self.origins
        if self.piece_windows is not None:
            part.piece_windows = {k: w for k, w in self.piece_windows.items() if predicate(k)}
        return part

    def halves(self) -> tuple[RecordingSet, RecordingSet]:
        """The first and the second half of every recording.

        Samples are cut at the middle of the recording's time; of released tables the first half of
        each recording's rows goes first. Windows that reach over the middle are in neither half
        where there are samples: they would tell one half of the other.
        """
        if self.cohort is None:
            first = {name: _rows_of_half(table) for name, table in self._tables.items()}
            early = {name: self._tables[name].where(rows) for name, rows in first.items()}
            late = {name: self._tables[name].where(~rows) for name, rows in first.items()}
            return RecordingSet(None, early, self.pipeline, self.people), RecordingSet(
                None, late, self.pipeline, self.people
            )
        whole = self.cohort
        halves = (
            (r.slice(0, _middle(r)) for r in whole),
            (r.slice(_middle(r), len(r)) for r in whole),
        )
        early_set, late_set = (
            RecordingSet(
                set_aside(half, whole.people, whole.name),
                None,
                self.pipeline,
                self.people,
                self.noise_scale_deg,
            )
            for half in halves
        )
        return early_set, late_set

    @classmethod
    def together(cls, parts: Sequence[RecordingSet]) -> RecordingSet:
        """Several releases of the same recordings as one recording set: those of part i > 0 get the
        session suffix `~i`, so that they stay apart.
        """
        if not parts:
            raise DataError("RecordingSet.together needs at least one part.")
        if len(parts) == 1:
            return parts[0]
        cohort = None
        if all(p.cohort is not None for p in parts):
            # Most attackers ask each part and not the whole: nothing is read or written again.
            cohort = Cohort(
                [
                    item if i == 0 else _other_session(item, _session(item.session, i))
                    for i, p in enumerate(parts)
                    if p.cohort is not None
                    for item in p.cohort.items
                ],
                parts[0].people,
                name=parts[0].cohort.name if parts[0].cohort is not None else "",
            )
        names = [n for n in TABLES if all(n in p._tables for p in parts)]
        tables = TableShelf({})
        for n in names:
            tables[n] = FeatureTable.concat(
                [_renamed(p._tables[n], i) for i, p in enumerate(parts)]
            )
        first = parts[0]
        # An attacker who mixes raw recordings with released ones knows no scale that fits both.
        shared = all(p.noise_scale_deg == first.noise_scale_deg for p in parts)
        scale = first.noise_scale_deg if shared else None
        whole = cls(cohort, tables, first.pipeline, first.people, scale)
        whole.made_of = {
            (key[0], key[1], _session(key[2], i), key[3]): (p, key)
            for i, p in enumerate(parts)
            for key in p.keys
        }
        if all(p.piece_windows is not None for p in parts):
            whole.piece_windows = {
                (key[0], key[1], _session(key[2], i), key[3]): window
                for i, p in enumerate(parts)
                for key, window in (p.piece_windows or {}).items()
            }
        return whole


def _middle(recording: Recording) -> int:
    """Number of samples in the first half of the time."""
    t = recording.t_ns
    return (
        int(np.argmax(t >= int(t[0]) + (int(t[-1]) - int(t[0]) + 1) // 2)) if len(t) > 1 else len(t)
    )


def _rows_of_half(table: FeatureTable) -> Bools:
    first = np.zeros(len(table), dtype=np.bool_)
    for rows in table.recordings().values():
        first[rows[: len(rows) // 2]] = True
    return first


def _session(session: str, i: int) -> str:
    return session if i == 0 else f"{session}~{i}"


def _other_session(item: Recording | Handle, session: str) -> Handle:
    """The recording under another session, made on first access."""
    load = partial(_load_as, item, session)
    return Handle(item.person, item.stimulus, load, session, item.task)


def _load_as(item: Recording | Handle, session: str) -> Recording:
    return (item.load() if isinstance(item, Handle) else item).with_(session=session)


def _renamed(table: FeatureTable, i: int) -> FeatureTable:
    if i == 0:
        return table
    keys = Keys(
        **{  # type: ignore[arg-type]
            n: np.char.add(table.keys.session, f"~{i}") if n == "session" else table.keys[n]
            for n in KEYS
        }
    )
    return FeatureTable(table.values, table.columns, keys, table.bounds, table.counts)
