"""A Cohort: recordings of many people, in memory or lazily over files.

Iterating a lazy cohort loads one recording at a time, and forgets it. What is known without loading
(who, what, which session) is in the :class:`Handle`; so `len`, `people`, `stimuli` and `select`
never open a file.

Gaze relative to the world, or to the head.

On a sphere a recording gives gaze in the world, and so the direction of the head: places identify
people. Gaze in the head keeps the eye movements and leaves out the head. It is computed sample by
sample. A promise about samples that move therefore holds unchanged, with degrees in the head
instead of degrees in the world.

What is not offered: gaze relative to the mean direction of a recording. Every sample would depend
on all others, and a promise about a window of samples would no longer be about that window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, overload

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze import exchange
from gazeveil.gaze.exchange import Tabular
from gazeveil.gaze.geometry import Space, Sphere, eye_in_head, from_tangents
from gazeveil.gaze.recording import Doubt, Fact, Recording, RecordingKey, merged

Attributes: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class Handle:
    """A recording that is not loaded yet.

    Parameters
    ----------
    person, stimulus, session, task : str
        As the recording will say.
    load : callable
        Reads it; a module-level function or a `functools.partial` of one, so that worker processes
        can be sent it.
    source : str
        The file, for messages.
    chunks : callable, optional
        `chunks(size)` gives the recording in consecutive pieces of at most `size` samples, where
        the format can do that without loading it whole.
    facts : mapping of str to Fact
        What is known about the recording before it is loaded, with its origin.
    """

    person: str
    stimulus: str
    load: Callable[[], Recording]
    session: str = "1"
    task: str = ""
    source: str = ""
    chunks: Callable[[int], Iterator[Recording]] | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def key(self) -> RecordingKey:
        """(person, stimulus, session, task)."""
        return self.person, self.stimulus, self.session, self.task


@dataclass(frozen=True)
class Skipped:
    """A file a reader left alone, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class ReadAs:
    """What recordings were read as: a format, options of its reader with what was guessed, the
    questions that were left open, for tables the columns that were used (role to name) and those
    that were not; names of stimuli and tasks that the user calls public, and the topics that the
    user has confirmed.
    """

    format: str
    options: Mapping[str, object] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()
    used: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    stimuli: tuple[str, ...] | None = None
    confirmed: tuple[str, ...] = ()


class Cohort(Tabular):
    """Recordings plus what is known about the people.

    Parameters
    ----------
    recordings : iterable of Recording or Handle
        At most one per (person, stimulus, session, task).
    people : mapping of person to attributes, optional
        Age, gender and the like; people without an entry get an empty one.
    skipped : iterable of Skipped
        Files that were found but are not part of the cohort.
    name : str
        A name for tables and messages.
    read_as : ReadAs, optional
        How the files were laid out, where they came from files.

    Raises
    ------
    DataError
        If two recordings have the same person, stimulus, session and task.
    """

    def __init__(
        self,
        recordings: Iterable[Recording | Handle],
        people: Mapping[str, Attributes] | None = None,
        skipped: Iterable[Skipped] = (),
        name: str = "",
        read_as: ReadAs | None = None,
    ) -> None:
        if not isinstance(recordings, Iterable):
            checks.refuse("Cohort", "recordings", "an iterable of recordings", recordings)
        self._items: tuple[Recording | Handle, ...] = tuple(recordings)
        for item in self._items:
            if not isinstance(item, Recording | Handle):
                checks.refuse("Cohort", "recordings", "an iterable of recordings", item)
        self._refuse_clashes()
        attributes = _attributes(people)
        recorded = dict.fromkeys(item.person for item in self._items)
        self._people = MappingProxyType(
            {
                p: MappingProxyType(dict(attributes.get(p, {})))
                for p in sorted({*recorded, *attributes}, key=natural)
            }
        )
        self.skipped = tuple(skipped)
        self.name = name
        self.read_as = read_as

    def _refuse_clashes(self) -> None:
        first: dict[RecordingKey, int] = {}
        for number, item in enumerate(self._items):
            # By number, not by identity: one object given twice would be released twice.
            if first.setdefault(item.key, number) != number:
                earlier = self._items[first[item.key]]
                sources = [i.source or "memory" for i in (earlier, item)]
                raise DataError(
                    f"Two recordings say person '{item.person}', stimulus '{item.stimulus}',"
                    f" session '{item.session}': {sources[0]} and {sources[1]}. If these are two"
                    " people, read the folders one by one and rename; if one person came twice,"
                    " read with clash='session'."
                )

    # Pickling: mapping proxies cannot be pickled, and worker processes get cohorts.
    def __reduce__(self) -> tuple[type[Cohort], tuple[object, ...]]:
        return Cohort, (
            self._items,
            {p: dict(a) for p, a in self._people.items()},
            self.skipped,
            self.name,
            self.read_as,
        )

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Recording]:
        for item in self._items:
            yield item if isinstance(item, Recording) else item.load()

    @overload
    def __getitem__(self, index: int) -> Recording: ...
    @overload
    def __getitem__(self, index: slice) -> Cohort: ...
    def __getitem__(self, index: int | slice) -> Recording | Cohort:
        if isinstance(index, slice):
            return self._with(self._items[index])
        item = self._items[index]
        return item if isinstance(item, Recording) else item.load()

    def __repr__(self) -> str:
        return (
            f"Cohort({len(self)} recordings, {len(self.people)} people, {len(self.stimuli)}"
            " stimuli)"
        )

    @property
    def items(self) -> tuple[Recording | Handle, ...]:
        """The recordings as they are held: loaded ones and handles."""
        return self._items

    @property
    def keys(self) -> tuple[RecordingKey, ...]:
        """(person, stimulus, session, task) of each recording, without loading."""
        return tuple(item.key for item in self._items)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Questions that reading left open before any recording was loaded."""
        return () if self.read_as is None else self.read_as.doubts

    @property
    def facts(self) -> dict[str, dict[Fact, int]]:
        """Topic -> facts with the number of recordings each holds for, without loading."""
        return merged(item.facts for item in self._items)

    @property
    def people(self) -> Mapping[str, Attributes]:
        """Read-only mapping of person to attributes, in natural order."""
        return self._people

    @property
    def stimuli(self) -> tuple[str, ...]:
        """Names of the stimuli, in natural order."""
        return tuple(sorted({item.stimulus for item in self._items}, key=natural))

    @property
    def path_names(self) -> frozenset[str]:
        """Names of stimuli and tasks that were taken from paths, which may name people."""
        return frozenset(
            getattr(item, topic)
            for item in self._items
            for topic in ("stimulus", "task")
            if topic in item.facts and item.facts[topic].from_path
        )

    def select(
        self, people: Iterable[str] | str | None = None, stimuli: Iterable[str] | str | None = None
    ) -> Cohort:
        """The recordings of some people, of some stimuli, or both.

        Raises
        ------
        ParameterError
            For a name that is not in the cohort.
        """
        wanted_people = _names("people", people, self.people)
        wanted_stimuli = _names("stimuli", stimuli, self.stimuli)
        return self._with(
            item
            for item in self._items
            if (wanted_people is None or item.person in wanted_people)
            and (wanted_stimuli is None or item.stimulus in wanted_stimuli)
        )

    def _with(self, items: Iterable[Recording | Handle]) -> Cohort:
        kept = tuple(items)
        remaining = {item.person for item in kept}
        return Cohort(
            kept,
            {p: a for p, a in self.people.items() if p in remaining},
            self.skipped,
            self.name,
            self.read_as,
        )

    def load(self) -> Cohort:
        """The same cohort with every recording in memory."""
        return Cohort(list(self), self.people, self.skipped, self.name, self.read_as)

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        space: Space | None = None,
        people: Mapping[str, Attributes] | object | None = None,
        name: str = "",
        stimulus: str | None = None,
        session: str | None = None,
        task: str | None = None,
        rate_hz: float | None = None,
    ) -> Cohort:
        """A cohort from a data frame of samples, as :meth:`to_polars` makes one.

        Parameters
        ----------
        frame : polars, pandas or Arrow data frame
            Columns as :meth:`Recording.from_frame` takes them; rows of one person, stimulus,
            session and task are one recording, wherever they stand.
        space : Sphere or Screen, optional
            Of all recordings; needed where no column `space` says it.
        people : mapping of person to attributes, or data frame with a column `person`, optional
            What is known about the people.
        name : str
            A name for tables and messages.
        stimulus, session, task : str, optional
            Of all recordings, instead of the columns of these names.
        rate_hz : float, optional
            Of all recordings, instead of the column `rate_hz`.

        Raises
        ------
        DataError
            In one sentence, for a frame that does not hold recordings.
        """
        given = {
            "space": space,
            "people": people,
            "name": name,
            "stimulus": stimulus,
            "session": session,
            "task": task,
            "rate_hz": rate_hz,
        }
        return exchange.value_of("Cohort", frame, given)

    def write(self, path: str | Path) -> Path:
        """Write the cohort as a canonical Parquet folder, one recording at a time."""
        return exchange.write_cohort(self, path)


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts `user2` before `user10`."""
    parts: list[tuple[int, int, str]] = []
    digits = ""
    for ch in text + "\0":
        if ch.isascii() and ch.isdigit():
            digits += ch
            continue
        if digits:
            parts.append((0, int(digits), digits))
            digits = ""
        parts.append((1, 0, ch))
    return tuple(parts)


def _attributes(people: Mapping[str, Attributes] | None) -> dict[str, Attributes]:
    if people is None:
        return {}
    if not isinstance(people, Mapping) or not all(isinstance(a, Mapping) for a in people.values()):
        checks.refuse("Cohort", "people", "a mapping of person to a mapping of attributes", people)
    return dict(people)


def _names(
    name: str, chosen: Iterable[str] | str | None, known: Mapping[str, object] | Sequence[str]
) -> frozenset[str] | None:
    if chosen is None:
        return None
    names = (
        list(chosen) if isinstance(chosen, Iterable) and not isinstance(chosen, str) else [chosen]
    )
    for choice in names:
        checks.one_of("Cohort.select", name, choice, known)
    return frozenset(names)


#: What degrees are relative to.
FRAMES = ("world", "head")


def in_frame(recording: Recording, frame: str) -> Recording:
    """A recording with its gaze in a frame.

    Parameters
    ----------
    recording : Recording
        Gaze on a sphere; for `head` with the direction of the head or of the eye in it.
    frame : {"world", "head"}
        `world` is the recording as it is. `head`: straight ahead of the head is the middle of the
        sphere, (180, 90); channels of the head and of single eyes are left out, because together
        with gaze they would give the world back.

    Raises
    ------
    DataError
        Where there is no head to be relative to.
    """
    if checks.one_of("in_frame", "frame", frame, FRAMES) == "world":
        return recording
    if not isinstance(recording.space, Sphere):
        raise DataError(
            f"{recording.title} is on a screen, so its gaze is not relative to a head. Leave frame"
            " out."
        )
    eye = recording.eye_in_head_deg
    if eye is None and recording.head_deg is not None:
        vectors = recording.space.vectors(recording.x_deg, recording.y_deg)
        eye = np.stack(eye_in_head(vectors, recording.head_deg), axis=1)
    if eye is None:
        raise DataError(
            f"{recording.title} does not say where the head was, so gaze cannot be put in the head."
            " Leave frame out, or read recordings with the head's direction."
        )
    x_deg, y_deg = recording.space.degrees(from_tangents(eye[:, 0], eye[:, 1]))
    return recording.with_(
        x_deg=x_deg,
        y_deg=y_deg,
        valid=recording.valid & np.isfinite(x_deg) & np.isfinite(y_deg),
        head_deg=None,
        eye_in_head_deg=None,
        left_deg=None,
        right_deg=None,
        truth=None,
        metadata={**recording.metadata, "frame": frame},
    )


def cohort_in_frame(cohort: Cohort, frame: str) -> Cohort:
    """Every recording of a cohort in a frame; files are changed when they are loaded."""
    if checks.one_of("in_frame", "frame", frame, FRAMES) == "world":
        return cohort
    items: list[Recording | Handle] = [
        in_frame(item, frame)
        if isinstance(item, Recording)
        else replace(item, load=partial(_load, item.load, frame), chunks=None)
        for item in cohort.items
    ]
    return Cohort(items, cohort.people, cohort.skipped, cohort.name, cohort.read_as)


def _load(load: Any, frame: str) -> Recording:
    return in_frame(load(), frame)
