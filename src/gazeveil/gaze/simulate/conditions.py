"""What a task on a space does to eyes, and what a tracker does to gaze.

The numbers of `video` on a screen and of `free-viewing` on a sphere are calibrated on GazeCom
(EyeLink II, 250 Hz, natural movies) and on EyeNavGS (Quest Pro, 36 and 72 Hz, walking through
scenes); `python docs/explain/simulator.py` prints the comparison. The other tasks keep these
trackers and change what the literature says differs: reading Rayner (1998), search Rayner (2009).
"""

from __future__ import annotations

from typing import NamedTuple

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
