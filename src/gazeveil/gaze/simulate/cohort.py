"""`gazeveil.simulate`: a cohort of simulated people, made one recording at a time when it is asked
for.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.events import KINDS, Events
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.gaze.simulate.conditions import (
    DESK_TRACKER,
    DOCUMENTS,
    HEADSET_TRACKER,
    TASKS,
    Tracker,
    condition,
)
from gazeveil.gaze.simulate.people import RECORDING, Traits, person, stream, traits
from gazeveil.gaze.simulate.render import render
from gazeveil.gaze.simulate.stimuli import half_extent, stimulus
from gazeveil.gaze.simulate.truth import Truth

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
    tracker: Tracker | None = None,
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
    tracker : Tracker, optional
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
        :class:`~gazeveil.gaze.simulate.truth.Truth`.

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
    people, stimuli = (
        checks.count("simulate", "people", people),
        checks.count("simulate", "stimuli", stimuli),
    )
    seconds, rate_hz = (
        checks.positive("simulate", "seconds", seconds),
        checks.positive("simulate", "rate_hz", rate_hz),
    )
    task = checks.one_of("simulate", "task", task, TASKS)
    sessions = checks.count("simulate", "sessions", sessions)
    noise, jitter_ms = (
        checks.not_negative("simulate", "noise", noise),
        checks.not_negative("simulate", "jitter_ms", jitter_ms),
    )
    late = checks.not_negative("simulate", "late", late)
    if late > 0.9:
        checks.refuse("simulate", "late", "a number from 0 to 0.9", late)
    if space is None:
        space = DEFAULT_SCREEN if task in ("reading", "random-saccade") else Sphere()
    elif not isinstance(space, Sphere | Screen):
        checks.refuse("simulate", "space", "a Sphere or a Screen", space)
    if document is not None:
        checks.one_of("simulate", "document", document, DOCUMENTS)
        if task != "reading":
            checks.refuse("simulate", "document", "left out unless the task is reading", document)
    if seed is None:
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
    else:
        entropy = checks.count("simulate", "seed", seed, least=0)
    if tracker is None:
        tracker = HEADSET_TRACKER if isinstance(space, Sphere) else DESK_TRACKER
    elif not isinstance(tracker, Tracker):
        checks.refuse("simulate", "tracker", "a Tracker", tracker)
    if not all(np.isfinite(v) and v >= 0 for v in tracker) or tracker.coloured_s == 0:
        checks.refuse(
            "simulate",
            "tracker",
            "a Tracker of finite numbers, none below 0 and coloured_s above 0",
            tracker,
        )
    # Plain floats: another type would compile the whole loop anew.
    tracker = Tracker(*(float(v) for v in tracker))
    scaled = {
        n: getattr(tracker, n) * noise
        for n in ("white_deg", "coloured_deg", "head_white_deg", "mismatch_s")
    }
    tracker = tracker._replace(**scaled, quantum_deg=tracker.quantum_deg if noise else 0.0)
    names = [stimulus_name(task, document, j) for j in range(stimuli)]
    handles = [
        Handle(
            f"p{i + 1}",
            names[j],
            partial(
                make,
                entropy,
                i,
                j,
                s,
                seconds,
                rate_hz,
                task,
                space,
                document,
                tracker,
                jitter_ms,
                late,
                binocular,
            ),
            session=str(s + 1),
            task=task,
            source="simulated",
        )
        for i in range(people)
        for s in range(sessions)
        for j in range(stimuli)
    ]
    return Cohort(
        handles,
        {f"p{i + 1}": person(entropy, i).attributes for i in range(people)},
        name=f"simulated {task}",
    )


def stimulus_name(task: str, document: str | None, index: int) -> str:
    """`video-1`, or for reading `comic-1`, `newspaper-2`, `textbook-3`..."""
    if task == "reading":
        return f"{document or DOCUMENTS[index % len(DOCUMENTS)]}-{index + 1}"
    return f"{task}-{index + 1}"


def make(
    entropy: int,
    i: int,
    j: int,
    s: int,
    seconds: float,
    rate_hz: float,
    task: str,
    space: Space,
    document: str | None,
    tracker: Tracker,
    jitter_ms: float,
    late: float,
    binocular: bool,
) -> Recording:
    """The recording of person `i` at stimulus `j` in session `s` (all from 0): it depends on
    nothing but these parameters.
    """
    who = person(entropy, i)
    shown = stimulus(entropy, j, task, space, seconds, document)
    rng = stream(entropy, RECORDING, i, j, s, TASKS.index(task))
    how = condition(task, isinstance(space, Sphere))
    own = traits(entropy, who, s, rng, how.individual)
    n = max(1, round(seconds * rate_hz))
    ticks = np.arange(n)
    if late > 0:
        ticks = np.concatenate(([0], np.cumsum(1 + (rng.random(n - 1) < late))))
        ticks = ticks[ticks < n]
    t_ns = np.round(ticks * (1e9 / rate_hz)).astype(np.int64)
    if jitter_ms > 0:
        t_ns = _jittered(rng.standard_normal(len(t_ns)), t_ns, jitter_ms, rate_hz)
    sphere = isinstance(space, Sphere)
    gaze, clean, valid, code, event, pupil, head, eye = render(
        rng,
        t_ns / 1e9,
        own,
        how,
        tracker,
        sphere,
        half_extent(space),
        shown.spots,
        shown.weights,
        shown.sizes_deg,
        shown.motion,
        shown.words,
        shown.habits,
        shown.targets,
        shown.jumps_s,
        shown.light,
    )
    truth = Truth(
        _events(code, event, t_ns),
        own,
        traits(entropy, who, s, individual=how.individual),
        shown,
        space,
        clean,
    )
    left, right = _two_eyes(rng, gaze, space, tracker, own) if binocular else (None, None)
    return Recording(
        who.name,
        shown.name,
        t_ns,
        gaze[:, 0],
        gaze[:, 1],
        valid,
        space=space,
        rate_hz=rate_hz,
        session=str(s + 1),
        task=task,
        left_deg=left,
        right_deg=right,
        head_deg=head if sphere else None,
        eye_in_head_deg=eye if sphere else None,
        pupil=pupil,
        metadata=(
            {"source": "simulated", "pupil_unit": "mm", "document": shown.document}
            if shown.document
            else {"source": "simulated", "pupil_unit": "mm"}
        ),
        truth=truth,
    )


def _jittered(
    normal: NDArray[np.float64], t_ns: NDArray[np.int64], jitter_ms: float, rate_hz: float
) -> NDArray[np.int64]:
    """Times moved by noise, at most 45 % of a step so that they still increase, and starting at 0
    or later.
    """
    most = 0.45e9 / rate_hz
    moved = t_ns + np.round(np.clip(normal * jitter_ms * 1e6, -most, most)).astype(np.int64)
    return np.maximum(moved, 0)


def _events(code: NDArray[np.int8], event: NDArray[np.int32], t_ns: NDArray[np.int64]) -> Events:
    """Runs of equal code and number; every sample falls in one."""
    both = event.astype(np.int64) * len(KINDS) + code
    onset = np.concatenate(([0], np.flatnonzero(both[1:] != both[:-1]) + 1))
    offset = np.concatenate((onset[1:] - 1, [len(code) - 1]))
    return Events(
        _KIND_WORDS[code[onset]], onset, offset, t_ns[onset], t_ns[offset], source="simulated"
    )


def _two_eyes(
    rng: np.random.Generator, gaze: NDArray[np.float64], space: Space, tracker: Tracker, own: Traits
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
