"""`gazeveil.simulate`: a cohort of simulated people, made one recording at a time when it is asked
for.

What the simulator knows about a recording it made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.arrays import Codes, Floats, Ints
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.events import KINDS, Events
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.simulate.conditions import (
    DESK_TRACKER,
    DOCUMENTS,
    HEADSET_TRACKER,
    TASKS,
    TrackerModel,
    condition,
)
from gazeveil.gaze.simulate.people import READER, RECORDING, Traits, person, stream, traits
from gazeveil.gaze.simulate.reading import as_read, reader
from gazeveil.gaze.simulate.render import render
from gazeveil.gaze.simulate.stimuli import Scene, Stimulus, stimulus


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
    tracker: TrackerModel | None = None,
    noise: float = 1.0,
    jitter_ms: float = 0.0,
    late: float = 0.0,
    binocular: bool = False,
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
    tracker : TrackerModel, optional
        Default: a desk-mounted tracker on a screen, a headset's on a sphere.
    noise : float
        Factor of all the tracker's noise; 0 for a perfect tracker that still loses gaze.
    jitter_ms : float
        Deviation of the sample times from the regular ones; times still increase.
    late : float
        Probability that a frame comes late, so that the time of one sample passes without one:
        headsets do this under load.
    binocular : bool
        Whether to fill `left_deg` and `right_deg` too.

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
        _tracker(tracker, space, checks.not_negative("simulate", "noise", noise)),
        checks.not_negative("simulate", "jitter_ms", jitter_ms),
        late,
        binocular,
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


def _tracker(tracker: TrackerModel | None, space: Space, noise: float) -> TrackerModel:
    """The tracker with its noise scaled."""
    if tracker is None:
        tracker = HEADSET_TRACKER if isinstance(space, Sphere) else DESK_TRACKER
    elif not isinstance(tracker, TrackerModel):
        checks.refuse("simulate", "tracker", "a TrackerModel", tracker)
    if not all(np.isfinite(v) and v >= 0 for v in tracker) or tracker.coloured_s == 0:
        allowed = "a TrackerModel of finite numbers, none below 0 and coloured_s above 0"
        checks.refuse("simulate", "tracker", allowed, tracker)
    # Plain floats: another type would compile the whole loop anew.
    tracker = TrackerModel(*(float(v) for v in tracker))
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
    jitter_ms: float
    late: float
    binocular: bool
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
        left, right = (
            _two_eyes(rng, samples.gaze_deg, self.space, self.tracker, own)
            if self.binocular
            else (None, None)
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
            left_deg=left,
            right_deg=right,
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
        t_ns = np.round(ticks * (1e9 / self.rate_hz)).astype(np.int64)
        if self.jitter_ms > 0:
            return _jittered(rng.standard_normal(len(t_ns)), t_ns, self.jitter_ms, self.rate_hz)
        return t_ns


def _jittered(normal: Floats, t_ns: Ints, jitter_ms: float, rate_hz: float) -> Ints:
    """Times moved by noise, at most 45 % of a step so that they still increase, and starting at 0
    or later.
    """
    most = 0.45e9 / rate_hz
    moved = t_ns + np.round(np.clip(normal * jitter_ms * 1e6, -most, most)).astype(np.int64)
    return np.maximum(moved, 0)


def _events(code: Codes, event: NDArray[np.int32], t_ns: Ints) -> Events:
    """Runs of equal code and number; every sample falls in one."""
    both = event.astype(np.int64) * len(KINDS) + code
    onset = np.concatenate(([0], np.flatnonzero(both[1:] != both[:-1]) + 1))
    offset = np.concatenate((onset[1:] - 1, [len(code) - 1]))
    return Events(
        _KIND_WORDS[code[onset]], onset, offset, t_ns[onset], t_ns[offset], source="simulated"
    )


def _two_eyes(
    rng: np.random.Generator, gaze: Floats, space: Space, tracker: TrackerModel, own: Traits
) -> tuple[Floats, Floats]:
    """Two eyes whose mean is `gaze`: a small vergence error that stays, and noise of each eye's
    own.
    """
    n = len(gaze)
    spread = max(tracker.white_deg, tracker.coloured_deg) * own.noise_factor
    apart = np.radians(
        spread * rng.standard_normal((n, 2)) + np.array([0.4, 0.1]) * rng.standard_normal(2)
    )
    if isinstance(space, Screen):
        tangents = np.tan(np.radians(gaze))
        left, right = tangents - apart, tangents + apart
        return np.degrees(np.arctan(left)), np.degrees(np.arctan(right))
    v = space.vectors(gaze[:, 0], gaze[:, 1])
    flat = np.hypot(v[:, 0], v[:, 2])
    axis = np.stack((v[:, 2] / flat, np.zeros(n), -v[:, 0] / flat), axis=1)
    move = apart[:, :1] * axis - apart[:, 1:] * np.cross(v, axis)
    eyes = [
        np.stack(space.degrees(np.where(np.isfinite(v), w, np.nan)), axis=1)
        for w in (v - move, v + move)
    ]
    return eyes[0], eyes[1]
