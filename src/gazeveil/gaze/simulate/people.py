"""What a task on a space does to eyes, and what a tracker does to gaze.

The numbers of `video` on a screen and of `free-viewing` on a sphere are calibrated on GazeCom
(EyeLink II, 250 Hz, natural movies) and on EyeNavGS (Quest Pro, 36 and 72 Hz, walking through
scenes); `python docs/explain/simulator.py` prints the comparison. The other tasks keep these
trackers and change what the literature says differs: reading Rayner (1998), search Rayner (2009).

People: traits that stay, drift slowly from session to session, and vary a little from recording
to recording.

Each trait has a place in the population, a spread between people, a step between two sessions and a
spread between recordings of one session. Positive traits vary by factors (log-normal), the others
by amounts (normal). Age and gender shift a few of them; the shifts are small against the spread
between people, so that they can be guessed from gaze better than by chance, but not well.

Where the places come from: main sequence Bahill, Clark and Stark (1975), with v_max and c fitted to
GazeCom and EyeNavGS as :mod:`gazeveil.gaze.simulate.people` says; latency Carpenter and
Williams (1995); drift, tremor and microsaccades Martinez-Conde, Macknik and Hubel (2004); pursuit
gain Lisberger, Morris and Tychsen (1987); blinks Bentivoglio et al. (1997); post-saccadic
oscillation Hooge, Nyström, Cornelissen and Holmqvist (2015); gaze of older people Irving et al.
(2006) and, for the pupil, Winn et al. (1994). Spreads between people and recordings were set so
that the rates at which a plain linkage finds people again come near those on real recordings
(docs/explain/simulator.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence

# Codes of the tasks inside compiled code.
FREE, READ, JUMP, TRACK = 0, 1, 2, 3

TASKS = ("free-viewing", "video", "reading", "random-saccade", "search", "tracking")
DOCUMENTS = ("comic", "newspaper", "textbook")


class Condition(NamedTuple):
    """How people look in one task on one kind of space; every value is that
    of the median person.
    """

    individual: float  # how far people are apart
    code: int  # how the next target is found: FREE, READ, JUMP or TRACK
    fixation_s: float  # median fixation duration
    fixation_spread: float  # deviation of log duration
    amplitude_deg: float  # mean of the gamma distribution amplitudes are proposed from
    amplitude_shape: float
    shortest_deg: float  # smallest saccade that is aimed at something
    v_max_deg_s: float  # main sequence
    constant_deg: float
    attention: float  # exponent of the attention map, 0 ignores it
    pursuit: float  # probability to follow a moving thing one looks at
    pursuit_s: float  # median duration of following it
    pursuit_spread: float
    drift_deg: float  # deviation of the slow wandering of the eye
    drift_s: float  # its time constant
    # how far gaze goes on after a saccade, share of the amplitude: the head is still turning
    slide_on: float
    slide_share: float  # and how much that varies
    inhibition: float  # how much places looked at just before are avoided, 0 to 1
    landing_share: float  # scatter of landing points, share of the amplitude
    vor_gain: float  # share of head rotation that the eyes cancel
    head_rad_s: float  # how fast the head follows gaze, natural frequency
    head_share: float  # share of a gaze shift the head makes in the end
    head_push: float  # random head acceleration, rad/s^1.5
    roll_deg: float  # deviation of head roll
    # gaze that drifts with the scene as one walks: deviation of its speed per axis
    flow_deg_s: float
    flow_share: float  # and what every degree per second of head rotation adds to it
    flow_s: float  # its time constant


class TrackerModel(NamedTuple):
    """What a tracker adds.

    Parameters
    ----------
    white_deg : float
        Deviation per axis of noise that is new in every sample.
    coloured_deg, coloured_s : float
        Deviation per axis and time constant of noise that lingers.
    quantum_deg : float
        Step of the reported positions; 0 for none.
    dropout_hz, dropout_s : float
        How often gaze is lost without a blink, and for how long on average.
    lid_deg : float
        How far gaze is dragged down by a closing lid just before and after a blink.
    head_white_deg : float
        Deviation per axis of noise in head direction.
    frame_hz : float
        The tracker's own rate, 0 if it is that of the recording. A sample that comes later than one
        frame after the sample before holds a share of it, a quarter from two frames on. Faster
        recordings hold nothing: they are of a faster tracker with the same noise, and no frame is
        repeated.
    mismatch_s : float
        Deviation of the time between the measurements of head and of eye.
    """

    white_deg: float
    coloured_deg: float
    coloured_s: float
    quantum_deg: float
    dropout_hz: float
    dropout_s: float
    lid_deg: float
    head_white_deg: float = 0.0
    frame_hz: float = 0.0
    mismatch_s: float = 0.0


#: A video-based tracker on a desk; noise as in GazeCom (EyeLink II).
DESK_TRACKER = TrackerModel(
    white_deg=0.006,
    coloured_deg=0.012,
    coloured_s=0.008,
    quantum_deg=0.004,
    dropout_hz=0.02,
    dropout_s=0.06,
    lid_deg=3.0,
)

#: A headset; noise as in EyeNavGS (Quest Pro), dropouts and lids assumed, since that headset fills
#: both in.
HEADSET_TRACKER = TrackerModel(
    white_deg=0.06,
    coloured_deg=0.12,
    coloured_s=0.08,
    quantum_deg=0.0,
    dropout_hz=0.02,
    dropout_s=0.08,
    lid_deg=0.3,
    head_white_deg=0.02,
    frame_hz=72.0,
    mismatch_s=0.012,
)

# Movies on a screen, head on a rest: fitted to GazeCom.
_MOVIE = Condition(
    individual=1.2,
    code=FREE,
    fixation_s=0.265,
    fixation_spread=0.47,
    amplitude_deg=15.0,
    amplitude_shape=1.2,
    shortest_deg=0.5,
    v_max_deg_s=540.0,
    constant_deg=5.2,
    attention=1.0,
    pursuit=0.17,
    pursuit_s=0.40,
    pursuit_spread=0.5,
    drift_deg=0.24,
    drift_s=0.25,
    slide_on=0.0,
    slide_share=0.04,
    inhibition=0.0,
    landing_share=0.06,
    vor_gain=1.0,
    head_rad_s=4.0,
    head_share=0.0,
    head_push=0.0,
    roll_deg=0.0,
    flow_deg_s=0.0,
    flow_share=0.0,
    flow_s=0.032,
)

# Walking through scenes in a headset: fitted to EyeNavGS.
_WALK = _MOVIE._replace(
    individual=0.74,
    fixation_s=0.225,
    fixation_spread=0.68,
    amplitude_deg=29.0,
    amplitude_shape=0.9,
    v_max_deg_s=860.0,
    constant_deg=8.0,
    pursuit=0.0,
    drift_deg=0.20,
    slide_on=0.14,
    slide_share=0.03,
    vor_gain=0.88,
    head_rad_s=4.5,
    head_share=1.2,
    head_push=1.0,
    roll_deg=10.0,
    flow_deg_s=5.0,
    flow_share=0.4,
)

# Sitting in a headset: the same eyes, but the scene does not stream by and the head is calmer. Not
# fitted to recordings.
_SEAT = _WALK._replace(
    vor_gain=0.95, head_push=0.6, roll_deg=4.0, flow_deg_s=2.0, flow_share=0.1, slide_on=0.08
)


def condition(task: str, sphere: bool) -> Condition:
    """The condition of a task on a sphere or a screen."""
    if task == "free-viewing":
        # Assumed: a picture holds the eye a little less long than a movie, and nothing in it moves.
        return (
            _WALK if sphere else _MOVIE._replace(pursuit=0.0, fixation_s=0.95 * _MOVIE.fixation_s)
        )
    base = _SEAT if sphere else _MOVIE
    if task == "video":
        return base._replace(pursuit=0.5) if sphere else base
    if task == "search":
        return base._replace(
            fixation_s=0.8 * base.fixation_s,
            fixation_spread=0.85 * base.fixation_spread,
            attention=0.4,
            pursuit=0.0,
            inhibition=0.9,
        )
    if task == "reading":
        return base._replace(
            code=READ,
            fixation_s=0.215,
            fixation_spread=0.33,
            attention=0.0,
            pursuit=0.0,
            landing_share=0.04,
        )
    if task == "random-saccade":
        return base._replace(code=JUMP, attention=0.0, pursuit=0.0)
    return base._replace(code=TRACK, attention=0.0, pursuit=1.0, pursuit_s=0.45)


# First word of every spawn key: what the random stream is for. Never reuse a number.
PERSON, SESSION, STIMULUS, RECORDING, READER = 1, 2, 3, 4, 5


class Traits(NamedTuple):
    """How one person's eyes move, in one recording.

    Factors multiply what the condition (task and space) says; the rest are in the units of their
    names.
    """

    fixation_factor: float  # of the median fixation duration
    fixation_spread_factor: float  # of the deviation of log duration
    amplitude_factor: float  # of the mean saccade amplitude
    amplitude_shape_factor: float  # of the gamma shape
    v_max_factor: float  # of the main sequence's saturation
    constant_factor: float  # of the main sequence's constant
    skew: float  # time warp of the saccade profile, positive = early peak
    curvature: float  # sideways bulge as a share of the amplitude
    latency_s: float  # from a target's jump to the saccade
    saccade_gain: float  # share of the way to the target that the first saccade covers
    drift_factor: float  # of the slow wandering within fixations
    tremor_deg: float  # amplitude of tremor
    tremor_hz: float
    microsaccade_hz: float
    microsaccade_deg: float
    pursuit_gain: float
    blink_hz: float
    blink_s: float
    pso_share: float  # post-saccadic oscillation as a share of the amplitude
    pso_hz: float
    pso_decay_s: float
    pupil_mm: float
    noise_factor: float  # how well trackers see these eyes
    vertical_factor: float  # vertical drift and noise against horizontal
    slide_share: float  # slide on after a saccade (back if negative), share of the amplitude
    offset_right_deg: float  # error of calibration
    offset_down_deg: float
    horizontal: float  # preference for horizontal saccades, 0 none
    head_factor: float  # how much the head takes part, and how much gaze drifts with the scene
    vor_factor: float  # of the share of head motion that the eyes cancel


class _Law(NamedTuple):
    place: float
    people: float  # spread between people
    session: float  # step from one session to the next
    recording: float  # spread between recordings of one session
    log: bool  # factors (log-normal) or amounts (normal)


_LAWS: dict[str, _Law] = {
    "fixation_factor": _Law(1.0, 0.16, 0.04, 0.07, True),
    "fixation_spread_factor": _Law(1.0, 0.08, 0.02, 0.05, True),
    "amplitude_factor": _Law(1.0, 0.16, 0.03, 0.10, True),
    "amplitude_shape_factor": _Law(1.0, 0.10, 0.02, 0.05, True),
    "v_max_factor": _Law(1.0, 0.13, 0.02, 0.06, True),
    "constant_factor": _Law(1.0, 0.10, 0.02, 0.06, True),
    "skew": _Law(0.36, 0.11, 0.015, 0.02, False),
    "curvature": _Law(0.01, 0.03, 0.004, 0.005, False),
    "latency_s": _Law(0.19, 0.12, 0.03, 0.03, True),
    "saccade_gain": _Law(0.94, 0.02, 0.005, 0.005, False),
    "drift_factor": _Law(1.0, 0.22, 0.05, 0.14, True),
    "tremor_deg": _Law(0.004, 0.25, 0.05, 0.05, True),
    "tremor_hz": _Law(84.0, 0.06, 0.01, 0.01, True),
    "microsaccade_hz": _Law(0.6, 0.40, 0.08, 0.10, True),
    "microsaccade_deg": _Law(0.22, 0.20, 0.04, 0.05, True),
    "pursuit_gain": _Law(0.90, 0.04, 0.01, 0.01, False),
    "blink_hz": _Law(0.15, 0.55, 0.10, 0.20, True),
    "blink_s": _Law(0.15, 0.20, 0.04, 0.05, True),
    "pso_share": _Law(0.035, 0.50, 0.05, 0.06, True),
    "pso_hz": _Law(24.0, 0.14, 0.02, 0.02, True),
    "pso_decay_s": _Law(0.014, 0.20, 0.03, 0.03, True),
    "pupil_mm": _Law(3.8, 0.14, 0.03, 0.04, True),
    "noise_factor": _Law(1.0, 0.30, 0.06, 0.10, True),
    "vertical_factor": _Law(1.1, 0.22, 0.03, 0.06, True),
    "slide_share": _Law(0.01, 0.025, 0.004, 0.005, False),
    "offset_right_deg": _Law(0.0, 0.30, 0.20, 0.10, False),
    "offset_down_deg": _Law(0.0, 0.40, 0.25, 0.12, False),
    "horizontal": _Law(0.45, 0.20, 0.03, 0.06, False),
    "head_factor": _Law(1.0, 0.22, 0.05, 0.10, True),
    "vor_factor": _Law(1.0, 0.05, 0.01, 0.03, True),
}

# Units of the spread between people, per decade beyond 40 and for women against men (half each
# way).
_PER_DECADE = {
    "v_max_factor": -0.18,
    "latency_s": 0.25,
    "pursuit_gain": -0.22,
    "pupil_mm": -0.45,
    "fixation_factor": 0.08,
    "drift_factor": 0.10,
}
_GENDER = {
    "fixation_factor": -0.45,
    "amplitude_factor": 0.45,
    "blink_hz": 0.40,
    "pupil_mm": 0.25,
    "v_max_factor": 0.20,
    "horizontal": -0.30,
}

# Traits outside these make no sense however unlikely the draw.
_LIMITS = {
    "skew": (-0.3, 0.7),
    "saccade_gain": (0.8, 1.05),
    "pursuit_gain": (0.6, 1.05),
    "vor_factor": (0.5, 1.5),
    "horizontal": (0.0, 0.95),
}


_PLACE, _PEOPLE, _SESSION, _RECORDING = (
    np.array([law[i] for law in (_LAWS[n] for n in Traits._fields)]) for i in range(4)
)
_LOG = np.array([_LAWS[n].log for n in Traits._fields])
_LOW, _HIGH = (
    np.array([_LIMITS.get(n, (-np.inf, np.inf))[i] for n in Traits._fields]) for i in range(2)
)


@dataclass(frozen=True)
class Person:
    """A simulated person, of an age in years, who depends on the zero-based place in the cohort and
    the seed alone.
    """

    index: int
    name: str
    age: int
    gender: str
    scores: tuple[float, ...]

    @property
    def attributes(self) -> dict[str, object]:
        """What the cohort's table of people says."""
        return {"age": self.age, "gender": self.gender}


def stream(entropy: int, *key: int) -> Generator:
    """The random stream of one purpose; it depends on the seed and the key alone, never on how many
    others there are.
    """
    return np.random.Generator(np.random.PCG64(SeedSequence(entropy, spawn_key=key)))


@lru_cache(maxsize=1024)
def person(entropy: int, index: int) -> Person:
    """Person number `index` (from 0) of a seed."""
    rng = stream(entropy, PERSON, index)
    age = int(np.clip(round(18 + rng.gamma(2.2, 7.5)), 18, 80))
    gender = "female" if rng.random() < 0.5 else "male"
    scores = dict(
        zip(Traits._fields, rng.standard_normal(len(Traits._fields)).tolist(), strict=True)
    )
    for name, shift in _PER_DECADE.items():
        scores[name] += shift * (age - 40) / 10
    for name, shift in _GENDER.items():
        scores[name] += shift / 2 if gender == "female" else -shift / 2
    return Person(index, f"p{index + 1}", age, gender, tuple(scores.values()))


def traits(
    entropy: int,
    who: Person,
    session: int = 0,
    rng: Generator | None = None,
    individual: float = 1.0,
) -> Traits:
    """Traits of a person in session number `session` (from 0), and with `rng` in one recording of
    it.

    `individual` scales how far people are apart: what they do in a headset differs less from person
    to person than what they do with the head on a chin rest, and more from recording to recording.
    """
    away = individual * _PEOPLE * np.array(who.scores)
    for s in range(1, session + 1):
        away += (
            individual
            * _SESSION
            * stream(entropy, SESSION, who.index, s).standard_normal(len(away))
        )
    if rng is not None:
        away += _RECORDING / np.sqrt(individual) * rng.standard_normal(len(away))
    return Traits(
        *np.clip(
            np.where(_LOG, _PLACE * np.exp(np.where(_LOG, away, 0.0)), _PLACE + away), _LOW, _HIGH
        ).tolist()
    )
