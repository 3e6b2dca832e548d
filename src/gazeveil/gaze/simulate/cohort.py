"""`gazeveil.simulate`: a cohort of simulated people, made one recording at a time when it is asked
for.

What the simulator knows about a recording it made.

How one reader goes through a document: as its kind is read, and as this reader reads anything.

A simulated page is all of one kind: long lines, narrow columns, or bubbles and pictures. Readers of
real documents of three kinds differ more from one another than the documents do: newspapers have
pictures, textbooks captions, and some people look at every picture and others at none, come nearer
or sit back, skip, go back and linger more or less than others, whatever they read. `alike` is the
share of passages whose kind follows from the reader and not from the document.

The spreads below were chosen by hand so that at `alike` = 0.6 twenty readers of three documents of
10 minutes give about what David-John et al. 2022 print in Fig. 2 for MPIIDPEye; which figures, and
how near they come, is in docs/explain/simulator.md. They are wider than those of readers of one
text: they stand for all that differs between recordings, light and sitting included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Codes, Floats, Ints, frozen
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.events import KINDS, Events
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.simulate.people import (
    DESK_TRACKER,
    DOCUMENTS,
    HEADSET_TRACKER,
    READER,
    RECORDING,
    TASKS,
    TrackerModel,
    Traits,
    condition,
    person,
    stream,
    traits,
)
from gazeveil.gaze.simulate.render import render
from gazeveil.gaze.simulate.stimuli import Scene, Stimulus, stimulus

#: Words of a passage: a line, or a bubble. A window of 30 s holds about twenty of them.
PASSAGE = 6

#: Passages of a reading before it starts again.
PASSAGES = 400

# How near readers' shares of the kinds are to thirds: the Dirichlet distribution's sum.
_NEARNESS = 1.0
# Deviations of logarithms over readers, and over recordings of one reader: the four habits of a
# page (skipping, going back, durations, scatter of landing), distances between words as they are
# seen, pupil size (with the light of the room), blink rate.
_READERS = np.array([0.75, 0.75, 0.225, 0.3, 0.375, 0.0, 0.0])
_RECORDINGS = np.array([0.75, 0.75, 0.24, 0.3, 0.3, 0.30, 0.9])


class SimulatedReader(NamedTuple):
    """Reading habits of one simulated person on one occasion.

    Parameters
    ----------
    shares : array, shape (3,)
        Of passages read as each kind of document is.
    habits : array, shape (4,)
        Factors of a page's habits.
    zoom : float
        Factor of the distances between words.
    pupil, blinks : float
        Factors of pupil size and blink rate.
    """

    shares: Floats
    habits: Floats
    zoom: float
    pupil: float
    blinks: float


def reader(own: Generator, occasion: Generator) -> SimulatedReader:
    """A reader on one occasion; the same generators give the same one."""
    kinds = len(DOCUMENTS)
    shares = own.dirichlet(np.full(kinds, _NEARNESS / kinds))
    away = _READERS * own.standard_normal(len(_READERS))
    away += _RECORDINGS * occasion.standard_normal(len(_RECORDINGS))
    habits, (zoom, pupil, blinks) = np.exp(away[:4]), np.exp(away[4:]).tolist()
    return SimulatedReader(shares, habits, zoom, pupil, blinks)


def as_read(
    scenes: Mapping[str, Scene], document: str, alike: float, who: SimulatedReader
) -> Scene:
    """A document, one of the pages of all kinds, as one reader reads it; `alike` is from 0
    (passages of its kind alone) to 1 (no matter which kind).

    Returns
    -------
    Scene
        With the words in the order of the reading, and habits between those of the kinds.
    """
    shares = alike * who.shares
    shares[DOCUMENTS.index(document)] += 1.0 - alike
    habits = shares @ np.stack([scenes[d].habits for d in DOCUMENTS]) * who.habits
    read = np.zeros(len(DOCUMENTS))
    passages = []
    for n in range(PASSAGES):
        # Kinds take turns, so that each has its share in every stretch of the reading.
        kind = int(np.argmax(shares * (n + 1) - read))
        words = scenes[DOCUMENTS[kind]].words
        first = int(read[kind]) * PASSAGE
        passage = np.take(words, np.arange(first, first + PASSAGE), 0, mode="wrap")
        passages.append(_zoomed(passage, who.zoom))
        read[kind] += 1
    # Frozen as those of a page are: compiled code takes arrays that can be written to for another
    # type, and would be compiled once more for it.
    whole = frozen(np.ascontiguousarray(np.concatenate(passages)))
    return scenes[document]._replace(words=whole, habits=frozen(habits))


def _zoomed(words: Floats, zoom: float) -> Floats:
    """Directions moved towards or away from their middle by a factor."""
    middle = words.mean(axis=0)
    moved = middle + zoom * (words - middle)
    out: Floats = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return out


@dataclass(frozen=True, eq=False)
class Truth:
    """The truth behind a simulated recording (`Recording.truth`).

    Parameters
    ----------
    events : Events
        What the eye did; every sample is in exactly one event. Microsaccades are part of fixations;
        `noise` is a lid that moves while the tracker still reports gaze.
    traits : Traits
        The person's traits in this recording.
    person_traits : Traits
        The person's traits in this session, without what changes from recording to recording.
    stimulus : Stimulus
        What was looked at, with its attention map and targets.
    space : Sphere or Screen
        What the degrees of the recording mean.
    vectors : array, shape (n, 3)
        Gaze without the tracker's noise, error and losses, as unit vectors; `x_deg` and `y_deg` are
        its degrees.
    """

    events: Events
    traits: Traits
    person_traits: Traits
    stimulus: Stimulus
    space: Space
    vectors: Floats = field(repr=False)

    @property
    def x_deg(self) -> Floats:
        """Clean gaze, first coordinate."""
        return self.space.degrees(self.vectors)[0]

    @property
    def y_deg(self) -> Floats:
        """Clean gaze, second coordinate."""
        return self.space.degrees(self.vectors)[1]


#: Where reading and random saccades take place unless a space is given: the screen of GazeBase and
#: BioEye.
DEFAULT_SCREEN = Screen(1680, 1050, 474.0, 297.0, 550.0)

_KIND_WORDS = np.array(KINDS)


def simulate(
    people: int,
    stimuli: int,
    seconds: float,
    rate_hz: float,
    task: str = "free-viewing",
    space: Space | None = None,
    seed: int | None = None,
    *,
    sessions: int = 1,
    document: str | None = None,
    alike: float = 0.0,
    noise: float = 1.0,
    late: float = 0.0,
) -> Cohort:
    """Recordings of simulated people looking at simulated stimuli.

    Parameters
    ----------
    people, stimuli : int
        How many; everybody looks at everything. Person and stimulus number i are the same however
        many others there are, and a person is the same in every task of one seed.
    seconds : float
        Length of each recording; it has max(1, round(seconds * rate_hz)) samples, fewer where
        frames come `late`.
    rate_hz : float
        Samples per second.
    task : str
        `free-viewing`, `video`, `reading`, `random-saccade`, `search` or `tracking`.
    space : Sphere or Screen, optional
        Default: a screen for `reading` and `random-saccade`, a sphere for the others.
    seed : int, optional
        The same seed gives the same cohort, in every process. Without one it comes from the
        operating system.
    sessions : int
        Recordings of each person and stimulus; traits drift from one session to the next.
    document : str, optional
        For reading: `comic`, `newspaper` or `textbook`. Default: the stimuli take turns; their
        names say which they are.
    alike : float
        For reading: how little the kind of a document shows in how it is read, 0 (pages of one kind
        throughout, the default) to 1 (not at all).
    noise : float
        Factor of all the tracker's noise (a desk's on a screen, a headset's on a sphere); 0 for a
        perfect tracker that still loses gaze.
    late : float
        Probability that a frame comes late, so that the time of one sample passes without one:
        headsets do this under load.

    Returns
    -------
    Cohort
        Lazy: a recording is made each time it is asked for, always the same one. Its `truth` is a
        :class:`~gazeveil.gaze.simulate.cohort.Truth`.

    Raises
    ------
    ParameterError
        For a parameter that is not allowed.

    Examples
    --------
    >>> cohort = simulate(3, 2, seconds=5, rate_hz=60, seed=1)
    >>> cohort
    Cohort(6 recordings, 3 people, 2 stimuli)
    >>> len(cohort[0])
    300
    """
    people = checks.count("simulate", "people", people)
    stimuli = checks.count("simulate", "stimuli", stimuli)
    sessions = checks.count("simulate", "sessions", sessions)
    task = checks.one_of("simulate", "task", task, TASKS)
    space = _space(space, task)
    late = checks.not_negative("simulate", "late", late)
    if late > 0.9:
        checks.refuse("simulate", "late", "a number from 0 to 0.9", late)
    if document is not None:
        checks.one_of("simulate", "document", document, DOCUMENTS)
        if task != "reading":
            checks.refuse("simulate", "document", "left out unless the task is reading", document)
    if not 0 <= checks.not_negative("simulate", "alike", alike) <= (1 if task == "reading" else 0):
        checks.refuse("simulate", "alike", "0, or for reading a number from 0 to 1", alike)
    simulation = Simulation(
        _entropy(seed),
        checks.positive("simulate", "seconds", seconds),
        checks.positive("simulate", "rate_hz", rate_hz),
        task,
        space,
        document,
        _tracker(space, checks.not_negative("simulate", "noise", noise)),
        late,
        float(alike),
    )
    handles = [
        Handle(
            f"p{i + 1}",
            stimulus_name(task, document, j),
            partial(simulation.recording, i, j, s),
            session=str(s + 1),
            task=task,
            source="simulated",
        )
        for i in range(people)
        for s in range(sessions)
        for j in range(stimuli)
    ]
    attributes = {f"p{i + 1}": person(simulation.entropy, i).attributes for i in range(people)}
    return Cohort(handles, attributes, name=f"simulated {task}")


def stimulus_name(task: str, document: str | None, index: int) -> str:
    """`video-1`, or for reading `comic-1`, `newspaper-2`, `textbook-3`..."""
    if task == "reading":
        return f"{document or DOCUMENTS[index % len(DOCUMENTS)]}-{index + 1}"
    return f"{task}-{index + 1}"


def _space(space: Space | None, task: str) -> Space:
    if space is None:
        return DEFAULT_SCREEN if task in ("reading", "random-saccade") else Sphere()
    if not isinstance(space, Sphere | Screen):
        checks.refuse("simulate", "space", "a Sphere or a Screen", space)
    return space


def _entropy(seed: int | None) -> int:
    if seed is not None:
        return checks.count("simulate", "seed", seed, least=0)
    entropy = np.random.SeedSequence().entropy
    assert isinstance(entropy, int)
    return entropy


def _tracker(space: Space, noise: float) -> TrackerModel:
    """The tracker with its noise scaled."""
    tracker = HEADSET_TRACKER if isinstance(space, Sphere) else DESK_TRACKER
    noisy = ("white_deg", "coloured_deg", "head_white_deg", "mismatch_s")
    scaled = {name: getattr(tracker, name) * noise for name in noisy}
    return tracker._replace(**scaled, quantum_deg=tracker.quantum_deg if noise else 0.0)


@dataclass(frozen=True)
class Simulation:
    """What all recordings of a simulated cohort share; see :func:`simulate`."""

    entropy: int
    seconds: float
    rate_hz: float
    task: str
    space: Space
    document: str | None
    tracker: TrackerModel
    late: float
    alike: float = 0.0

    def recording(self, i: int, j: int, s: int) -> Recording:
        """The recording of person `i` at stimulus `j` in session `s` (all from 0): it depends on
        nothing but these parameters.
        """
        sphere = isinstance(self.space, Sphere)
        subject = person(self.entropy, i)
        shown = stimulus(self.entropy, j, self.task, self.space, self.seconds, self.document)
        rng = stream(self.entropy, RECORDING, i, j, s, TASKS.index(self.task))
        viewing = condition(self.task, sphere)
        own = traits(self.entropy, subject, s, rng, viewing.individual)
        t_ns = self._times(rng)
        scene = shown.scene(self.space)
        if self.alike > 0:
            occasion = stream(self.entropy, READER, i, j, s)
            who = reader(stream(self.entropy, READER, i), occasion)
            scene = as_read(self._pages(j), shown.document, self.alike, who)
            own = own._replace(
                pupil_mm=own.pupil_mm * who.pupil, blink_hz=own.blink_hz * who.blinks
            )
        samples = render(rng, t_ns / 1e9, own, viewing, self.tracker, scene)
        truth = Truth(
            _events(samples.code, samples.event, t_ns),
            own,
            traits(self.entropy, subject, s, individual=viewing.individual),
            shown,
            self.space,
            samples.clean,
        )
        metadata = {"source": "simulated", "pupil_unit": "mm"}
        return Recording(
            subject.name,
            shown.name,
            t_ns,
            samples.gaze_deg[:, 0],
            samples.gaze_deg[:, 1],
            samples.valid,
            space=self.space,
            rate_hz=self.rate_hz,
            session=str(s + 1),
            task=self.task,
            head_deg=samples.head_deg if sphere else None,
            eye_in_head_deg=samples.eye_deg if sphere else None,
            pupil=samples.pupil_mm,
            metadata=metadata | ({"document": shown.document} if shown.document else {}),
            truth=truth,
        )

    def _pages(self, j: int) -> dict[str, Scene]:
        """Stimulus `j` as a document of every kind."""
        return {
            d: stimulus(self.entropy, j, self.task, self.space, self.seconds, d).scene(self.space)
            for d in DOCUMENTS
        }

    def _times(self, rng: np.random.Generator) -> Ints:
        n = max(1, round(self.seconds * self.rate_hz))
        ticks = np.arange(n)
        if self.late > 0:
            ticks = np.concatenate(([0], np.cumsum(1 + (rng.random(n - 1) < self.late))))
            ticks = ticks[ticks < n]
        return np.round(ticks * (1e9 / self.rate_hz)).astype(np.int64)


def _events(code: Codes, event: NDArray[np.int32], t_ns: Ints) -> Events:
    """Runs of equal code and number; every sample falls in one."""
    both = event.astype(np.int64) * len(KINDS) + code
    onset = np.concatenate(([0], np.flatnonzero(both[1:] != both[:-1]) + 1))
    offset = np.concatenate((onset[1:] - 1, [len(code) - 1]))
    return Events(
        _KIND_WORDS[code[onset]], onset, offset, t_ns[onset], t_ns[offset], source="simulated"
    )
