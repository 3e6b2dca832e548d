"""The default detector: fixation, saccade, pursuit, pso, blink and noise, on screen and sphere,
from 25 Hz to 2 kHz.

Its stages, each in a file of its own: what cannot be gaze (:mod:`gazeveil.events.auto.artefacts`),
saccades by two speed thresholds (:mod:`gazeveil.events.auto.saccades`), artefacts grown over the
saccades near them, settling after a saccade, and smooth pursuit among the intervals that remain
(:mod:`gazeveil.events.auto.pursuit`).

One set of parameters in ms, deg and deg/s serves all recordings. Two regimes by rate: from
`pso_from_hz` on, the settling after a saccade can be seen, so it is an event of its own and small
saccades count too (`fine_peak_deg_s`); below, the settling belongs to the saccade and `peak_deg_s`
applies. The values were chosen on the GazeCom people with odd numbers; `docs/reference/events.md`
has the figures on the others.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Codes, Floats
from gazeveil.events.auto.artefacts import (
    LOST,
    beside_screen,
    corner_coded,
    grow_artefacts,
    mark_cores,
    mark_jumps,
    mark_returns,
    settle_short,
)
from gazeveil.events.auto.pursuit import mark_pursuit
from gazeveil.events.auto.saccades import (
    close_short_fixations,
    mark_saccades,
    mark_saccades_and_pso,
    noise_deg,
    smoothed,
    smoothing_samples,
    speeds,
)
from gazeveil.events.trace import BLINK_S, BridgedGaze, to_events
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording


@dataclass(frozen=True)
class AutoParameters:
    """Parameters of the default detector, all above or equal to zero.

    Parameters
    ----------
    smooth_ms : float
        Standard deviation of the Gaussian over positions, for a quiet tracker.
    noise_share : float
        A noisy recording is smoothed more, until its sample noise adds no more than this share of a
        saccade's least peak to the speed.
    interval_ms, fine_interval_ms : float
        Interval over which speed is measured below and from `pso_from_hz`.
    peak_deg_s, fine_peak_deg_s : float
        Least peak speed of a saccade below and from `pso_from_hz`.
    onset_deg_s, offset_deg_s : float
        Speed at which a saccade begins and ends.
    tail_ms : float
        Settling that belongs to the saccade below `pso_from_hz`.
    min_saccade_ms, min_fixation_ms : float
        Shorter saccades are dropped; shorter fixations between two saccades join them.
    pso_from_hz : float
        Rate from which the settling is a class of its own.
    valley_share : float
        From `pso_from_hz`, a saccade also ends in the first dip of its speed below this share of
        its peak.
    settled_deg_s, pause_ms, max_pso_ms, min_pso_ms : float
        A pso ends when the speed stays below `settled_deg_s` for `pause_ms`.
    fastest_deg_s : float
        Gaze cannot be faster, measured over 4 ms or one step.
    beside_deg : float
        Gaze further off the screen than this is noise.
    dropout_ms : float
        Lost runs up to this long are no blink: they are bridged.
    short_loss_ms, near_short_ms : float
        Lost runs up to `short_loss_ms` are a blink only if there is a saccade within
        `near_short_ms`.
    join_ms : float
        Artefacts closer than this are one.
    near_lost_ms, near_beside_ms : float
        An artefact takes in saccades this near to it.
    flank_ms : float
        No saccade that begins further than this from the core is taken in.
    head_ms, blink_tail_ms : float
        Added before and after a blink.
    return_gap_ms, return_share, return_deg, return_ms : float
        Saccades at most so far apart that come back to within a share of their reach, of at least
        so many degrees and ms, are a blink.
    jump_share, jump_deg : float
        A saccade of at least so many degrees that covers more than this share in one step of at
        most 5 ms is a tracker jump.
    """

    smooth_ms: float = 1.4
    noise_share: float = 0.18
    interval_ms: float = 9.0
    fine_interval_ms: float = 5.0
    peak_deg_s: float = 73.0
    fine_peak_deg_s: float = 30.0
    onset_deg_s: float = 22.0
    offset_deg_s: float = 24.0
    tail_ms: float = 8.0
    min_saccade_ms: float = 4.0
    min_fixation_ms: float = 10.0
    pso_from_hz: float = 400.0
    valley_share: float = 0.35
    settled_deg_s: float = 10.0
    pause_ms: float = 9.0
    max_pso_ms: float = 30.0
    min_pso_ms: float = 3.0
    fastest_deg_s: float = 1800.0
    beside_deg: float = 0.5
    dropout_ms: float = 10.0
    short_loss_ms: float = 40.0
    near_short_ms: float = 20.0
    join_ms: float = 150.0
    near_lost_ms: float = 70.0
    near_beside_ms: float = 40.0
    flank_ms: float = 150.0
    head_ms: float = 4.0
    blink_tail_ms: float = 24.0
    return_gap_ms: float = 24.0
    return_share: float = 0.9
    return_deg: float = 1.0
    return_ms: float = 116.0
    jump_share: float = 0.8
    jump_deg: float = 1.6

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(
                self,
                field.name,
                checks.not_negative("detect auto", field.name, getattr(self, field.name)),
            )


#: The set that all recordings get.
DEFAULTS = AutoParameters()


def detect_auto(
    recording: Recording, parameters: AutoParameters = DEFAULTS, pursuit: bool = True
) -> Events:
    """Detect all kinds of events with one set of parameters.

    Parameters
    ----------
    recording : Recording
        Any space and rate.
    parameters : AutoParameters
        Replace single ones with `dataclasses.replace(DEFAULTS, ...)`.
    pursuit : bool
        False leaves pursuit among the fixations, for stimuli in which nothing moves.

    Returns
    -------
    Events
        A partition of the recording.
    """
    if not isinstance(parameters, AutoParameters):
        checks.refuse("detect auto", "parameters", "an AutoParameters", parameters)
    if not isinstance(pursuit, bool):
        checks.refuse("detect auto", "pursuit", "True or False", pursuit)
    trace, points, codes = stages(recording, parameters)
    if pursuit and len(trace.segments):
        mark_pursuit(points, trace.rate_hz, codes)
    return to_events(codes, recording.t_ns, trace.cuts, "auto")


def stages(recording: Recording, p: AutoParameters) -> tuple[BridgedGaze, Floats, Codes]:
    """All stages but pursuit: the trace, the smoothed positions and the codes."""
    valid = recording.valid & ~corner_coded(recording)
    trace = BridgedGaze.of(recording, valid)
    codes, rate = trace.codes, trace.rate_hz
    if len(trace.segments) == 0:
        return trace, np.empty((2, 0)), codes
    per_ms = rate / 1000
    raw = np.stack(trace.axes)
    beside = beside_screen(recording, p.beside_deg) & valid
    noise = noise_deg(raw, trace.segments)
    # The tracker's own jitter is not a jump, however large it is.
    fastest = max(p.fastest_deg_s, 8 * noise / max(0.004, 1 / rate))
    cores = mark_cores(
        raw, valid, beside, rate, fastest, 0.004, p.dropout_ms * per_ms, p.short_loss_ms * per_ms
    )
    fine = rate >= p.pso_from_hz
    peak = p.fine_peak_deg_s if fine else p.peak_deg_s
    width = smoothing_samples(noise, rate, p.smooth_ms * per_ms, max(1e-9, p.noise_share * peak))
    points = smoothed(raw, trace.segments, width)
    speed = speeds(
        points, trace.segments, rate, (p.fine_interval_ms if fine else p.interval_ms) / 1000
    )
    limits = (p.onset_deg_s, p.offset_deg_s, p.min_saccade_ms * per_ms)
    if fine:
        pause, longest = round(p.pause_ms * per_ms), round(p.max_pso_ms * per_ms)
        settling = (p.valley_share, p.settled_deg_s, pause, longest, p.min_pso_ms * per_ms)
        mark_saccades_and_pso(speed, cores == LOST, trace.segments, peak, limits, settling, codes)
    else:
        mark_saccades(
            speed, cores == LOST, trace.segments, peak, limits, round(p.tail_ms * per_ms), codes
        )
    settle_short(codes, round(p.near_short_ms * per_ms), cores)
    if rate >= 200:
        mark_jumps(raw, p.jump_share, p.jump_deg, codes)
    mark_returns(
        points,
        round(p.return_gap_ms * per_ms),
        p.return_share,
        p.return_deg,
        p.return_ms * per_ms,
        codes,
    )
    grow_artefacts(
        cores,
        round(p.join_ms * per_ms),
        round(p.near_lost_ms * per_ms),
        round(p.near_beside_ms * per_ms),
        round(p.flank_ms * per_ms),
        round(p.head_ms * per_ms),
        round(p.blink_tail_ms * per_ms),
        BLINK_S * rate,
        codes,
    )
    close_short_fixations(trace.segments, p.min_fixation_ms * per_ms, codes)
    return trace, points, codes
