"""What is not gaze: blinks, tracker jumps and looks off the screen, for the `auto` detector.

A blink starts before the tracker loses the eye and ends after it has found it again: the lid drags
the pupil's centre, which looks like one or more fast saccades. The core of an artefact is what
cannot be gaze (lost samples, impossible speed, a place beside the screen); it grows over the
saccades, and what the network takes for no gaze, near it. Two further rules: trackers that code a
lost eye as the corner (0, 0) in pixels are recognised; and a saccade that covers its whole way
within one sample, at a rate at which it could not, is a tracker jump.

A dropout of a few samples is no blink: it is bridged (see :mod:`gazeveil.events.trace`). A somewhat
longer one is a blink only if the lid moved, that is, if bridging it makes a saccade.

The default detector: fixation, saccade, pursuit, pso, blink and noise, on screen and sphere,
from 32 Hz to 2 kHz.

Its stages: a network says how likely each sample is a fixation, a saccade, its settling, a pursuit
or no gaze (:mod:`gazeveil.events.auto.network`, :mod:`gazeveil.events.auto.network`); saccades get
their boundaries from the speed at the tracker's own rate (:mod:`gazeveil.events.auto.boundaries`);
what cannot be gaze takes in what is near it; and each interval between saccades is fixation or
pursuit as a whole (:mod:`gazeveil.events.auto.network`).

One set of parameters in ms, deg and deg/s serves all recordings; noise is measured in each of them.
From `pso_from_hz` on, the settling after a saccade can be seen, so it is an event of its own and
small saccades count too; below, the settling belongs to the saccade. `docs/reference/events.md` has
the figures on datasets that the network never saw.

A recording outside what the detector was shown to handle, slower or very noisy, gets fixations by
dispersion instead (:mod:`gazeveil.events.quality`), with a warning; the events' source says
so.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Codes, Floats, Singles
from gazeveil.compiled import compiled
from gazeveil.events.auto.boundaries import mark_coarse, mark_fine, saccade_probabilities
from gazeveil.events.auto.network import (
    CLASSES,
    SPEED_REACH,
    STRIDE,
    Network,
    close_short_fixations,
    distance,
    grid_factor,
    mark_pursuit,
    motion,
    noise_deg,
    noise_on_grid,
    shipped,
    smoothed,
    smoothing_samples,
    speeds,
    to_grid,
)
from gazeveil.events.auto.network import REACH as NETWORK_REACH
from gazeveil.events.quality import detect_by_dispersion, outside
from gazeveil.events.trace import (
    BLINK,
    BLINK_S,
    FIXATION,
    NOISE,
    PSO,
    SACCADE,
    BridgedGaze,
    runs,
    to_events,
)
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording

#: Core codes: gaze, eye lost, beside the screen, and a short loss that may be either blink or
#: dropout.
GAZE, LOST, BESIDE, SHORT = range(4)


def corner_coded(recording: Recording) -> Bools:
    """Samples that sit exactly in the top-left corner of a screen: (0, 0) in pixels, which trackers
    write for "no eye".
    """
    space = recording.space
    if not isinstance(space, Screen):
        return np.zeros(len(recording), dtype=np.bool_)
    corner_x, corner_y = space.from_px([0.0], [0.0])
    return (np.abs(recording.x_deg - corner_x[0]) < 1e-6) & (
        np.abs(recording.y_deg - corner_y[0]) < 1e-6
    )


def beside_screen(recording: Recording, margin_deg: float) -> Bools:
    """Samples further outside the screen than `margin_deg`; none on a sphere."""
    space = recording.space
    if not isinstance(space, Screen):
        return np.zeros(len(recording), dtype=np.bool_)
    return (np.abs(recording.x_deg) > space.width_deg / 2 + margin_deg) | (
        np.abs(recording.y_deg) > space.height_deg / 2 + margin_deg
    )


@compiled
def mark_cores(
    points: Floats,
    valid: Bools,
    beside: Bools,
    rate_hz: float,
    fastest: float,
    interval_s: float,
    dropout: float,
    short: float,
) -> Codes:
    """Core codes per sample; lost runs of at most `dropout` samples stay GAZE, those of at most
    `short` become SHORT.

    Speed above `fastest` over `interval_s` (at least one step) is impossible: the samples at both
    ends of it are LOST.
    """
    n = len(valid)
    cores = np.zeros(n, dtype=np.int8)
    start = -1
    for i in range(n + 1):
        gone = i < n and not valid[i]
        if gone and start < 0:
            start = i
        elif not gone and start >= 0:
            if i - start > dropout:
                cores[start:i] = SHORT if i - start <= short else LOST
            start = -1
        if i < n and valid[i] and beside[i]:
            cores[i] = BESIDE
    span = max(1, int(interval_s * rate_hz))
    limit = fastest * span / rate_hz
    for i in range(span, n):
        j = i - span
        if valid[i] and valid[j] and distance(points, j, i) > limit:
            cores[j : i + 1] = LOST
    return cores


def settle_short(codes: Codes, reach: int, cores: Codes) -> None:
    """SHORT runs with a saccade or noise in them or within `reach` samples become LOST, the others
    GAZE.
    """
    moved = (codes == SACCADE) | (codes == NOISE)
    for first, stop in runs(cores == SHORT):
        near = moved[max(0, first - reach) : stop + reach]
        cores[first:stop] = LOST if near.any() else GAZE


def mark_jumps(points: Floats, share: float, least_deg: float, codes: Codes) -> None:
    """Saccades of at least `least_deg` that cover more than `share` of their way in one step become
    NOISE.
    """
    for first, stop in runs(codes == SACCADE):
        path = points[:, first:stop]
        way = float(np.linalg.norm(path[:, -1] - path[:, 0]))
        if way >= least_deg and (np.linalg.norm(np.diff(path), axis=0) > share * way).any():
            codes[first:stop] = NOISE


@compiled
def grow_artefacts(
    cores: Codes,
    join: int,
    near_lost: int,
    near_beside: int,
    flank: int,
    longest_blink: float,
    codes: Codes,
) -> None:
    """Cores at most `join` samples apart become one artefact, which takes in the saccades near it,
    again and again.

    `near_lost` and `near_beside` are the reach in samples; what begins more than `flank` samples
    from the core is left alone. An artefact with a LOST core of at most `longest_blink` samples is
    a BLINK, any other NOISE.
    """
    n = len(codes)
    i = 0
    while i < n:
        if cores[i] == GAZE:
            i += 1
            continue
        first, last, lost = i, i, cores[i] == LOST
        j = i + 1
        while j < n and j - last <= join + 1:
            if cores[j] != GAZE:
                last = j
                lost = lost or cores[j] == LOST
            j += 1
        reach = near_lost if lost else near_beside
        first, last = _absorb(codes, first, last, reach, flank)
        code = BLINK if lost and last - first + 1 <= longest_blink else NOISE
        codes[first : last + 1] = code
        i = last + 1


@compiled
def _absorb(codes: Codes, first: int, last: int, reach: int, flank: int) -> tuple[int, int]:
    n = len(codes)
    least, most = first - flank, last + flank
    k, calm = first - 1, 0
    while k >= 0 and calm <= reach and (k >= least or calm == 0):
        if codes[k] == FIXATION:
            calm += 1
        elif k >= least or codes[k] == codes[k + 1]:
            first, calm = k, 0
        else:
            break
        k -= 1
    k, calm = last + 1, 0
    while k < n and calm <= reach and (k <= most or calm == 0):
        if codes[k] == FIXATION:
            calm += 1
        elif k <= most or codes[k] == codes[k - 1]:
            last, calm = k, 0
        else:
            break
        k += 1
    return first, last


#: What becomes of the settling after a saccade.
PSO_CHOICES = ("separate", "saccade", "fixation")

# Grid samples that are computed at once, and what is computed beside them.
_PIECE = 16384
_OVERLAP = NETWORK_REACH + -(-SPEED_REACH // STRIDE) * STRIDE

# The most by which a boundary moves out of the network's run below `pso_from_hz`, and the longest
# rest of such a run that is dropped, in ms.
_COARSE_MARGIN_MS, _COARSE_REST_MS = 12.0, 16.0

# Half the stretch around a saccade's peak that gives its direction, in ms.
_DIRECTION_MS = 4.0


@dataclass(frozen=True)
class AutoParameters:
    """Parameters of the default detector, all above or equal to zero.

    Parameters
    ----------
    smooth_ms : float
        Standard deviation of the Gaussian over positions, for a quiet tracker.
    speed_noise_deg_s : float
        A noisy recording is smoothed more, until its noise adds no more than this to the speed.
    widest_ms, fine_widest_ms : float
        Where that takes a wider Gaussian, the network's own boundaries stay: below and from
        `pso_from_hz`.
    speed_from_hz : float
        Below this rate they stay too.
    interval_ms : float
        Interval over which speed is measured.
    fast_deg_s : float
        Gaze this fast is a saccade whatever the network says.
    min_probability, fine_min_probability : float
        Chance of a saccade that is enough, below and from `pso_from_hz`, where small ones count.
    peak_deg_s, fine_peak_deg_s : float
        Least peak speed of a saccade, below and from `pso_from_hz`.
    onset_deg_s, fine_onset_deg_s : float
        Speed at which a saccade begins, below and from `pso_from_hz`.
    offset_deg_s, tail_ms : float
        Below `pso_from_hz` a saccade ends so many ms after its speed fell below this.
    ahead_deg_s : float
        From `pso_from_hz` a saccade ends when it p_saccade on in its own direction more slowly.
    second_share : float
        Another saccade in the same run of the network's reaches this share of the first one's peak.
    margin_ms, apart_ms : float
        From `pso_from_hz`: the most by which a boundary p_saccade out of the network's run, and the
        least distance of two saccades in one.
    min_fixation_ms : float
        Shorter fixations between two saccades join them.
    pso_from_hz : float
        Rate from which the settling is a class of its own.
    min_pso_ms : float
        A shorter pso is part of the fixation.
    fastest_deg_s : float
        Gaze cannot be faster, measured over 4 ms or one step.
    beside_deg : float
        Gaze further off the screen than this is noise.
    dropout_ms : float
        Lost runs up to this long are no blink: they are bridged.
    short_loss_ms, near_short_ms : float
        Lost runs up to `short_loss_ms` are a blink only if something moved within `near_short_ms`.
    join_ms : float
        Artefacts closer than this are one.
    near_lost_ms, near_beside_ms : float
        An artefact takes in saccades and noise this near to it.
    flank_ms : float
        None that begins further than this from the core is taken in.
    jump_share, jump_deg : float
        A saccade of at least so many degrees that covers more than this share in one step of at
        most 5 ms is a tracker jump.
    """

    smooth_ms: float = 1.4
    speed_noise_deg_s: float = 13.0
    widest_ms: float = 2.5
    fine_widest_ms: float = 10.0
    speed_from_hz: float = 200.0
    interval_ms: float = 9.0
    fast_deg_s: float = 150.0
    min_probability: float = 0.5
    fine_min_probability: float = 0.15
    peak_deg_s: float = 50.0
    fine_peak_deg_s: float = 35.0
    onset_deg_s: float = 22.0
    fine_onset_deg_s: float = 20.0
    offset_deg_s: float = 24.0
    tail_ms: float = 8.0
    ahead_deg_s: float = 8.0
    second_share: float = 0.7
    margin_ms: float = 8.0
    apart_ms: float = 6.0
    min_fixation_ms: float = 10.0
    pso_from_hz: float = 400.0
    min_pso_ms: float = 3.0
    fastest_deg_s: float = 1800.0
    beside_deg: float = 2.0
    dropout_ms: float = 10.0
    short_loss_ms: float = 40.0
    near_short_ms: float = 20.0
    join_ms: float = 150.0
    near_lost_ms: float = 20.0
    near_beside_ms: float = 40.0
    flank_ms: float = 150.0
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
    recording: Recording,
    pso: str | None = None,
    pursuit: bool = True,
    parameters: AutoParameters = DEFAULTS,
    network: Network | None = None,
) -> Events:
    """Detect all kinds of events with one set of parameters.

    Parameters
    ----------
    recording : Recording
        Any space and rate.
    pso : {"separate", "saccade", "fixation"}, optional
        What becomes of the oscillation after a saccade: an event of its own, a part of the saccade,
        or a part of the fixation. Default: its own from 400 Hz on, below that a part of the
        saccade, as human labellers have it. `separate` needs 100 Hz.
    pursuit : bool
        False leaves pursuit among the fixations, for stimuli in which nothing moves.
    parameters : AutoParameters
        Replace single ones with `dataclasses.replace(DEFAULTS, ...)`.
    network : Network, optional
        Other weights than those that come with the package.

    Returns
    -------
    Events
        A partition of the recording. Its source is `auto`, or `auto (idt)` with a
        :class:`~gazeveil.events.quality.QualityWarning` where the recording is outside what the
        detector was shown to handle.
    """
    owner = "detect auto"
    if pso is not None:
        checks.one_of(owner, "pso", pso, PSO_CHOICES)
    if not isinstance(parameters, AutoParameters):
        checks.refuse(owner, "parameters", "an AutoParameters", parameters)
    if not isinstance(pursuit, bool):
        checks.refuse(owner, "pursuit", "True or False", pursuit)
    if network is not None and not isinstance(network, Network):
        checks.refuse(owner, "network", "a Network, as Network.load gives it", network)
    trace = BridgedGaze.of(recording, recording.valid & ~corner_coded(recording))
    if len(trace.segments) == 0:
        return to_events(trace.codes, recording.t_ns, trace.cuts, "auto")
    noise = noise_deg(np.stack(trace.axes), trace.segments)
    if outside(trace.rate_hz, noise):
        return detect_by_dispersion(recording, trace.rate_hz, noise)
    found = stages(
        recording, trace, noise, pso, parameters, shipped("auto") if network is None else network
    )
    if pursuit:
        merge, split = grid_factor(trace.rate_hz)
        mark_pursuit(found.points, found.probabilities, merge, split, trace.rate_hz, found.codes)
    return to_events(found.codes, recording.t_ns, trace.cuts, "auto")


class Decoded(NamedTuple):
    """All stages but pursuit: smoothed positions, probabilities on the grid, and codes."""

    points: Floats
    probabilities: Singles
    codes: Codes


def stages(
    recording: Recording,
    trace: BridgedGaze,
    noise: float,
    pso: str | None,
    p: AutoParameters,
    network: Network,
) -> Decoded:
    """All stages but pursuit; `noise` is that of a sample, in deg per direction."""
    codes, rate, per_ms = trace.codes, trace.rate_hz, trace.rate_hz / 1000
    raw = np.stack(trace.axes)
    probabilities = class_probabilities(bridge_all_gaps(raw, trace), trace.seen, rate, network)
    # The tracker's own jitter is not a jump, however large it is.
    fastest = max(p.fastest_deg_s, 8 * noise / max(0.004, 1 / rate))
    cores = mark_cores(
        raw,
        trace.seen,
        beside_screen(recording, p.beside_deg) & trace.seen,
        rate,
        fastest,
        0.004,
        p.dropout_ms * per_ms,
        p.short_loss_ms * per_ms,
    )
    points = mark_all_saccades(raw, probabilities, cores == LOST, trace, noise, pso, p)
    if pso in ("saccade", "fixation"):
        codes[codes == PSO] = SACCADE if pso == "saccade" else FIXATION
    settle_short(codes, round(p.near_short_ms * per_ms), cores)
    if rate >= 200:
        mark_jumps(raw, p.jump_share, p.jump_deg, codes)
    grow_artefacts(
        cores,
        round(p.join_ms * per_ms),
        round(p.near_lost_ms * per_ms),
        round(p.near_beside_ms * per_ms),
        round(p.flank_ms * per_ms),
        BLINK_S * rate,
        codes,
    )
    close_short_fixations(trace.segments, p.min_fixation_ms * per_ms, codes)
    return Decoded(points, probabilities, codes)


def class_probabilities(points: Floats, seen: Bools, rate_hz: float, network: Network) -> Singles:
    """Probability of each class on the grid, shape (n, 5); `points` have no holes.

    Long recordings are cut into pieces that share what they need of one another, and several are
    computed at a time.
    """
    merge, split = grid_factor(rate_hz)
    grid, there = to_grid(points, seen, merge, split)
    noise, n = noise_on_grid(grid, there, split), len(there)
    result = np.empty((n, len(CLASSES)), dtype=np.float32)

    def fill(first: int) -> None:
        stop = min(n, first + _PIECE)
        # A multiple of the network's stride, so that pieces do not move its slow samples.
        low, high = max(0, first - _OVERLAP), min(n, stop + _OVERLAP)
        part = slice(low, high)
        noise_at = np.full(high - low, noise)
        features = motion(
            np.ascontiguousarray(grid[:, part]),
            there[part],
            rate_hz * split / merge,
            noise_at,
            False,
        )
        result[first:stop] = network.probabilities(features)[first - low : stop - low]

    starts = range(0, n, _PIECE)
    if len(starts) == 1:
        fill(0)
    elif len(starts) > 1:
        with ThreadPoolExecutor(min(len(starts), os.cpu_count() or 1)) as pool:
            list(pool.map(fill, starts))
    return result


def mark_all_saccades(
    raw: Floats,
    probabilities: Singles,
    lost: Bools,
    trace: BridgedGaze,
    noise: float,
    pso: str | None,
    p: AutoParameters,
) -> Floats:
    """Write FIXATION, SACCADE, PSO and NOISE into the segments; the smoothed positions."""
    rate, per_ms, codes = trace.rate_hz, trace.rate_hz / 1000, trace.codes
    p_saccade, p_pso = saccade_probabilities(
        probabilities, *grid_factor(rate), trace.segments, codes
    )
    width = smoothing_samples(noise, rate, p.smooth_ms * per_ms, max(1e-9, p.speed_noise_deg_s))
    points = smoothed(raw, trace.segments, width)
    speed = speeds(points, trace.segments, rate, p.interval_ms / 1000)
    # Gaze this fast is a saccade, whatever the network says.
    fast_deg_s = max(p.fast_deg_s, 8 * noise * rate / max(1.0, width))
    p_saccade[(speed >= fast_deg_s) & (codes == FIXATION)] = 1.0
    fine_from_hz = min(p.pso_from_hz, 100.0) if pso == "separate" else p.pso_from_hz
    # Below `pso_from_hz` an oscillation has few samples and drowns in less noise.
    widest_ms = p.fine_widest_ms if rate >= p.pso_from_hz else p.fine_widest_ms / 2
    if rate >= fine_from_hz and width <= widest_ms * per_ms:
        limits = (
            p.fine_min_probability,
            p.fine_peak_deg_s,
            p.fine_onset_deg_s,
            p.ahead_deg_s,
            p.second_share,
        )
        counts = (
            round(p.margin_ms * per_ms),
            max(1, round(_DIRECTION_MS * per_ms)),
            round(p.apart_ms * per_ms),
            round(p.min_pso_ms * per_ms),
        )
        mark_fine(points, p_saccade, p_pso, lost, trace.segments, rate, limits, counts, codes)
        return points
    clear = rate >= p.speed_from_hz and width <= p.widest_ms * per_ms
    onset, offset = (p.onset_deg_s, p.offset_deg_s) if clear else (0.0, 0.0)
    tail = 0.0 if pso == "fixation" else p.tail_ms
    mark_coarse(
        p_saccade,
        speed,
        lost,
        trace.segments,
        (p.min_probability, p.peak_deg_s, onset, offset),
        (round(tail * per_ms), round(_COARSE_MARGIN_MS * per_ms), round(_COARSE_REST_MS * per_ms)),
        codes,
    )
    return points


def bridge_all_gaps(points: Floats, trace: BridgedGaze) -> Floats:
    """Positions with the gaps between the segments bridged too: the network is told that nothing
    was seen there, and needs some number.
    """
    n = points.shape[1]
    first, stop = trace.segments[0, 0], trace.segments[-1, 1]
    if len(trace.segments) == 1 and first == 0 and stop == n:
        return points
    result = points.copy()
    result[:, :first] = points[:, first, None]
    result[:, stop:] = points[:, stop - 1, None]
    for (_, before), (after, _) in pairwise(trace.segments):
        share = np.arange(1, after - before + 1) / (after - before + 1)
        step = points[:, after] - points[:, before - 1]
        result[:, before:after] = points[:, before - 1, None] + step[:, None] * share
    return result
