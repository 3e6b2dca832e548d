"""The main loop: a person's eyes, the head under them and the tracker before them, one sample at a
time.

A small machine alternates fixations (or pursuits) and saccades in continuous time; samples read its
state at their own times, so any rate, and uneven times, show the same kind of eye. On top of the
machine's direction lie, as small steps on the sphere: slow drift (an Ornstein-Uhlenbeck process),
tremor (a sinusoid), microsaccades, post-saccadic oscillation, then the tracker's white and
lingering noise and the calibration error. On a sphere the head follows gaze as a damped spring
pushed by noise, and gaze in the world slips by the share of head rotation that the eyes do not
cancel.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.gaze.simulate.conditions import FREE, JUMP, READ, TRACK, Condition, Tracker
from gazeveil.gaze.simulate.directions import (
    DEGREE,
    Triple,
    angle,
    arc,
    offset,
    right_of,
    step,
    turn,
    unit,
)
from gazeveil.gaze.simulate.people import Traits
from gazeveil.gaze.simulate.saccade import duration, share
from gazeveil.gaze.simulate.targets import moving_spot, next_word, propose, spot_at

# Codes of `Rendered.code`, in the order of gazeveil.gaze.events.KINDS.
FIXATION, SACCADE, PURSUIT, BLINK, PSO, NOISE = 0, 1, 2, 3, 4, 5

_FARTHEST_EYE = math.cos(38.0 * DEGREE)
_LONGEST_HEAD_STEP_S = 0.01
_HEAD_REST_DEG, _LEVEL = 6.0, 0.05
_MOOD_S, _MOOD_MM, _ROLL_S = 2.0, 0.15, 0.7
_ZEST_S, _ZEST, _ZEST_STEP_S, _HELD = 0.8, 0.75, 0.02, 0.25
_DRIFT_LAG_S, _SLIDE_S, _SCATTER = 0.06, 0.06, 0.12
_VISIBLE_PSO_DEG = 0.1
_LID_BEFORE_S, _LID_AFTER_S = 0.02, 0.03
_LAST_Y_DEG = float(np.nextafter(180.0, 0.0))


@compiled
def follow(
    rng: Generator,
    head: Triple,
    speed: Triple,
    goal: Triple,
    dt_s: float,
    k: float,
    keep: float,
    pull: float,
    push: float,
) -> tuple[Triple, Triple]:
    """Head direction and angular velocity (rad/s) after `dt_s` of following `goal`.

    `k` is the spring's natural frequency (rad/s), `keep` the share of speed kept over `dt_s`,
    `pull` the strength with which gaze turns the head and `push` the deviation of random
    acceleration (rad/s^1.5).
    """
    cx, cy, cz = (
        head[1] * goal[2] - head[2] * goal[1],
        head[2] * goal[0] - head[0] * goal[2],
        head[0] * goal[1] - head[1] * goal[0],
    )
    away = math.sqrt(cx * cx + cy * cy + cz * cz) / DEGREE
    # Small gaze shifts are left to the eyes: the pull fades below a few degrees.
    pulled = dt_s * k * k * pull * away / (away + _HEAD_REST_DEG)
    rx, rz = right_of(head)
    ux, uy, uz = head[1] * rz, head[2] * rx - head[0] * rz, -head[1] * rx
    pushed = push * math.sqrt(dt_s)
    p, q = pushed * rng.standard_normal(), pushed * rng.standard_normal()
    # A held head also swings back to the horizon.
    q += dt_s * _LEVEL * k * k * head[1]
    wx = keep * speed[0] + pulled * cx + p * ux + q * rx
    wy = keep * speed[1] + pulled * cy + p * uy
    wz = keep * speed[2] + pulled * cz + p * uz + q * rz
    return turn(head, wx * dt_s, wy * dt_s, wz * dt_s), (wx, wy, wz)


@compiled
def kept(dt_s: float, constant_s: float, deviation: float) -> tuple[float, float]:
    """An Ornstein-Uhlenbeck process over `dt_s`: the share that is kept, and the deviation of what
    comes new.
    """
    fade = math.exp(-dt_s / constant_s)
    return fade, deviation * math.sqrt(1.0 - fade * fade)


@compiled
def to_degrees(v: Triple, sphere: bool) -> tuple[float, float]:
    """Degrees (x, y) of a direction on a sphere or a screen."""
    if sphere:
        x = math.atan2(v[0], v[2]) / DEGREE + 180.0
        y = 90.0 - math.atan2(v[1], math.sqrt(v[0] * v[0] + v[2] * v[2])) / DEGREE
        return (x if x < 360.0 else 0.0), min(y, _LAST_Y_DEG)
    return math.atan(v[0] / v[2]) / DEGREE, math.atan(-v[1] / v[2]) / DEGREE


@compiled
def in_head(gaze: Triple, head: Triple, roll_deg: float) -> tuple[float, float]:
    """Tangent angles (right, down) of gaze in a head; the twin of geometry.eye_in_head."""
    tilt = roll_deg * DEGREE
    fx, fy, fz = head
    rx, rz = right_of(head)
    ux, uy, uz = fy * rz, fz * rx - fx * rz, -fy * rx
    right, up = gaze[0] * rx + gaze[2] * rz, gaze[0] * ux + gaze[1] * uy + gaze[2] * uz
    ahead = gaze[0] * fx + gaze[1] * fy + gaze[2] * fz
    if ahead <= 0.0:
        return math.nan, math.nan
    leaned_right, leaned_up = (
        math.cos(tilt) * right - math.sin(tilt) * up,
        math.cos(tilt) * up + math.sin(tilt) * right,
    )
    return math.atan(leaned_right / ahead) / DEGREE, math.atan(-leaned_up / ahead) / DEGREE


@compiled
def rounded(value: float, quantum: float) -> float:
    """`value` on a grid of `quantum`."""
    return value if quantum <= 0.0 else quantum * math.floor(value / quantum + 0.5)


@compiled
def render(
    rng: Generator,
    t_s: NDArray[np.float64],
    traits: Traits,
    condition: Condition,
    tracker: Tracker,
    sphere: bool,
    extent: tuple[float, float],
    spots: NDArray[np.float64],
    weights: NDArray[np.float64],
    sizes: NDArray[np.float64],
    motion: NDArray[np.float64],
    words: NDArray[np.float64],
    habits: NDArray[np.float64],
    targets: NDArray[np.float64],
    jumps: NDArray[np.float64],
    light: NDArray[np.float64],
) -> tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.bool_],
    NDArray[np.int8],
    NDArray[np.int32],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
]:
    """Samples at times `t_s` (from 0, increasing).

    Returns
    -------
    gaze : array, shape (n, 2)
        Degrees; NaN where gaze is lost.
    clean : array, shape (n, 3)
        Directions without the tracker's share.
    valid, code, event : array, shape (n,)
        What the tracker reports, what the eye does, and a running number that changes with every
        fixation, pursuit and saccade.
    pupil : array, shape (n,)
        Millimetres.
    head, eye : array, shape (n, 3) and (n, 2) on a sphere, else empty
        Head direction with roll, and gaze in the head.
    """
    n = len(t_s)
    gaze, clean = np.empty((n, 2)), np.empty((n, 3))
    valid, code, event = (
        np.ones(n, dtype=np.bool_),
        np.zeros(n, dtype=np.int8),
        np.zeros(n, dtype=np.int32),
    )
    pupil = np.empty(n)
    many = n if sphere else 0
    heads, eyes = np.empty((many, 3)), np.empty((many, 2))

    v_max, constant = (
        condition.v_max_deg_s * traits.v_max_factor,
        condition.constant_deg * traits.constant_factor,
    )
    median, spread = (
        condition.fixation_s * traits.fixation_factor * habits[2],
        condition.fixation_spread * traits.fixation_spread_factor,
    )
    recent, newest = np.zeros((4, 4)), 0
    word, target, spot = 0, 0, -1

    here = (0.0, 0.0, 1.0)
    if condition.code == READ:
        here = (words[0, 0], words[0, 1], words[0, 2])
    elif condition.code == JUMP:
        here = (targets[0, 0], targets[0, 1], targets[0, 2])
    elif condition.code == TRACK:
        here, spot = spot_at(spots, motion, 0, 0.0), 0
    a, b, aim, spot_start = here, here, here, here
    kind = PURSUIT if condition.code == TRACK else FIXATION
    start, end, number = 0.0, median * math.exp(spread * rng.standard_normal()), 0
    if condition.code == JUMP:
        end = (jumps[1] if len(jumps) > 1 else 1e9) + traits.latency_s
    pending, amplitude, to_right, to_down, bulge, skew = False, 0.0, 0.0, 0.0, 0.0, 0.0

    head, speed, roll, roll_speed = (
        here,
        (0.0, 0.0, 0.0),
        condition.roll_deg * rng.standard_normal(),
        0.0,
    )
    drift = condition.drift_deg * traits.drift_factor
    drift_x, drift_y = drift * rng.standard_normal(), drift * rng.standard_normal()
    lagged_x, lagged_y, drift_lag = drift_x, drift_y, 1.0
    slide_right, slide_down = 0.0, 0.0
    lingering = tracker.coloured_deg * traits.noise_factor
    tall = math.sqrt(traits.vertical_factor)
    white = tracker.white_deg * traits.noise_factor
    colour_x, colour_y = lingering * rng.standard_normal(), lingering * rng.standard_normal()
    micro_start, micro_s, micro_x, micro_y, micro_dx, micro_dy = -1.0, 1.0, 0.0, 0.0, 0.0, 0.0
    pso_start, pso_deg, pso_right, pso_down = -1.0, 0.0, 0.0, 0.0
    phase = 2 * math.pi * rng.random()
    tremor_x, tremor_y, tremor_cos, tremor_sin = (
        traits.tremor_deg * math.cos(phase),
        traits.tremor_deg * math.sin(phase),
        1.0,
        0.0,
    )
    light_x, light_y, light_cos, light_sin = (
        light[0] * math.cos(light[2]),
        light[0] * math.sin(light[2]),
        1.0,
        0.0,
    )
    blink_from = rng.exponential(1.0) / traits.blink_hz
    blink_to, blink_over = blink_from + traits.blink_s * math.exp(0.3 * rng.standard_normal()), -1.0
    lost_from, lost_to = (
        (rng.exponential(1.0) / tracker.dropout_hz if tracker.dropout_hz > 0 else 1e18),
        -1.0,
    )
    mood = _MOOD_MM * rng.standard_normal()
    last, last_dt = 0.0, -1.0
    zest, lively, zest_last, zest_due = _ZEST * rng.standard_normal(), 1.0, 0.0, 0.0
    flow_x, flow_y, flow_fade, flow_fresh = 0.0, 0.0, 1.0, 0.0
    held, before, parts, head_keep, head_pull = (
        0.0,
        here,
        1,
        1.0,
        traits.head_factor * condition.head_share,
    )
    slip = 1.0 - min(1.0, condition.vor_gain * traits.vor_factor)
    (
        drift_fade,
        drift_fresh,
        colour_fade,
        colour_fresh,
        mood_fade,
        mood_fresh,
        roll_fade,
        roll_fresh,
    ) = (1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0)

    for i in range(n):
        t = t_s[i]
        dt = t - last
        last = t
        if abs(dt - last_dt) > 1e-8:
            # Steps are nearly always equal, and exponentials are most of the cost of a sample.
            last_dt = dt
            drift_fade, drift_fresh = kept(dt, condition.drift_s, drift)
            drift_lag = math.exp(-dt / _DRIFT_LAG_S)
            colour_fade, colour_fresh = kept(dt, tracker.coloured_s, lingering)
            tremor_cos, tremor_sin = (
                math.cos(2 * math.pi * traits.tremor_hz * dt),
                math.sin(2 * math.pi * traits.tremor_hz * dt),
            )
            light_cos, light_sin = (
                math.cos(2 * math.pi * light[1] * dt),
                math.sin(2 * math.pi * light[1] * dt),
            )
            mood_fade, mood_fresh = kept(dt, _MOOD_S, _MOOD_MM)
            roll_fade, roll_fresh = kept(dt, 0.5 * _ROLL_S, condition.roll_deg / _ROLL_S)
            parts = max(1, math.ceil(dt / _LONGEST_HEAD_STEP_S))
            head_keep = math.exp(-2.0 * condition.head_rad_s * dt / parts)
            flow_fade, flow_fresh = kept(dt / parts, condition.flow_s, 1.0)
            held = (
                _HELD * min(1.0, max(0.0, dt * tracker.frame_hz - 1.0))
                if tracker.frame_hz > 0.0
                else 0.0
            )

        if sphere and dt > 0.0:
            if t >= zest_due:
                fade, fresh = kept(t - zest_last, _ZEST_S, _ZEST)
                zest = zest * fade + fresh * rng.standard_normal()
                lively = math.exp(zest)
                zest_last, zest_due = t, t + _ZEST_STEP_S
            part = dt / parts
            for _ in range(parts):
                head, speed = follow(
                    rng,
                    head,
                    speed,
                    b,
                    part,
                    condition.head_rad_s,
                    head_keep,
                    lively * head_pull,
                    lively * condition.head_push,
                )
                if kind == SACCADE or pending:
                    a = turn(
                        a, slip * part * speed[0], slip * part * speed[1], slip * part * speed[2]
                    )
                    aim = turn(
                        aim, slip * part * speed[0], slip * part * speed[1], slip * part * speed[2]
                    )
                b = turn(b, slip * part * speed[0], slip * part * speed[1], slip * part * speed[2])
                turning = (
                    math.sqrt(speed[0] * speed[0] + speed[1] * speed[1] + speed[2] * speed[2])
                    / DEGREE
                )
                flow_x, flow_y = (
                    flow_x * flow_fade + flow_fresh * rng.standard_normal(),
                    flow_y * flow_fade + flow_fresh * rng.standard_normal(),
                )
                if kind != SACCADE:
                    scale = (
                        (condition.flow_deg_s + condition.flow_share * turning)
                        * traits.head_factor
                        * part
                    )
                    b = step(b, scale * flow_x, scale * flow_y)
            # Roll is a damped spring too: its speed is what noise pushes.
            roll_speed = (
                roll_speed * roll_fade + roll_fresh * rng.standard_normal() - roll * dt / _ROLL_S**2
            )
            roll += roll_speed * dt
            if (
                kind == FIXATION
                and t < end
                and head[0] * b[0] + head[1] * b[1] + head[2] * b[2] < _FARTHEST_EYE
            ):
                end = t

        while t >= end:
            number += 1
            if kind == SACCADE:
                start = end
                pso_start, pso_deg, pso_right, pso_down = (
                    start,
                    traits.pso_share * min(amplitude, 12.0),
                    to_right,
                    to_down,
                )
                slide = condition.slide_share * amplitude
                own = (condition.slide_on + traits.slide_share) * amplitude
                slide_right, slide_down = (
                    own * to_right + slide * rng.standard_normal(),
                    own * to_down + slide * rng.standard_normal(),
                )
                kind, spot = FIXATION, -1
                lasting = median * math.exp(spread * rng.standard_normal())
                if pending:
                    lasting = 0.13 * math.exp(0.25 * rng.standard_normal())
                elif condition.code == JUMP:
                    on = target + 1
                    lasting = (
                        (jumps[on] if on < len(jumps) else 1e9)
                        - start
                        + traits.latency_s * math.exp(0.15 * rng.standard_normal())
                    )
                elif condition.code == TRACK:
                    kind, spot = PURSUIT, 0
                elif condition.code == FREE:
                    if (
                        len(targets) > 0
                        and angle(b, (targets[target, 0], targets[target, 1], targets[target, 2]))
                        < 2.0
                    ):
                        lasting *= 2.5
                        target = (target + 1) % len(targets)
                    if condition.pursuit > 0.0:
                        spot = moving_spot(spots, sizes, motion, b, start)
                        if spot >= 0 and rng.random() < condition.pursuit:
                            kind = PURSUIT
                    recent[newest, 0], recent[newest, 1], recent[newest, 2], recent[newest, 3] = (
                        b[0],
                        b[1],
                        b[2],
                        1.0,
                    )
                    newest = (newest + 1) % len(recent)
                if kind == PURSUIT:
                    lasting = condition.pursuit_s * math.exp(
                        condition.pursuit_spread * rng.standard_normal()
                    )
                    spot_start = spot_at(spots, motion, spot, start)
                end = start + max(lasting, 0.04)
                continue
            if kind == PURSUIT:
                now = spot_at(spots, motion, spot, end)
                g = traits.pursuit_gain
                b = unit(
                    b[0] + g * (now[0] - spot_start[0]),
                    b[1] + g * (now[1] - spot_start[1]),
                    b[2] + g * (now[2] - spot_start[2]),
                )
                spot_start = now
            if not pending:
                if condition.code == READ:
                    word = next_word(rng, word, len(words), habits)
                    aim = step(
                        (words[word, 0], words[word, 1], words[word, 2]),
                        habits[3] * rng.standard_normal(),
                        0.4 * habits[3] * rng.standard_normal(),
                    )
                elif condition.code == JUMP:
                    target += 1
                    aim = step(
                        (targets[target, 0], targets[target, 1], targets[target, 2]),
                        0.2 * rng.standard_normal(),
                        0.2 * rng.standard_normal(),
                    )
                elif condition.code == TRACK:
                    aim = spot_at(spots, motion, 0, end + 0.04)
                else:
                    aim = propose(
                        rng,
                        b,
                        head,
                        sphere,
                        extent,
                        traits,
                        condition,
                        spots,
                        weights,
                        sizes,
                        motion,
                        recent,
                        end,
                    )
            far_right, far_down = offset(b, aim)
            wanted = math.sqrt(far_right * far_right + far_down * far_down)
            if wanted < 0.15:
                # Already there: the eye stays with what it does.
                pending = False
                start, end = end, end + 0.5 * median
                continue
            gain = (
                1.0 if pending or condition.code == FREE else traits.saccade_gain
            ) + condition.landing_share * rng.standard_normal()
            side = 0.5 * condition.landing_share * rng.standard_normal()
            a = step(b, slide_right, slide_down)
            b = step(a, gain * far_right - side * far_down, gain * far_down + side * far_right)
            pending = (
                not pending
                and condition.code != TRACK
                and angle(b, aim) > 0.6
                and rng.random() < (0.1 if condition.code == FREE else 0.6)
            )
            far_right, far_down = offset(a, b)
            amplitude = math.sqrt(far_right * far_right + far_down * far_down)
            to_right, to_down = far_right / max(amplitude, 1e-9), far_down / max(amplitude, 1e-9)
            bulge = (traits.curvature + 0.015 * rng.standard_normal()) * amplitude
            skew = min(
                0.9,
                max(-0.9, traits.skew * (0.7 + amplitude / 25.0) + 0.05 * rng.standard_normal()),
            )
            slide_right, slide_down = 0.0, 0.0
            kind, start = SACCADE, end
            end = start + duration(amplitude, v_max, constant, skew) * math.exp(
                _SCATTER * rng.standard_normal()
            )

        # The eye.
        move_right, move_down = 0.0, 0.0
        at = b
        if kind == SACCADE:
            s = share((t - start) / (end - start), skew)
            at = arc(a, b, s)
            move_right, move_down = (
                -to_down * bulge * 4.0 * s * (1.0 - s),
                to_right * bulge * 4.0 * s * (1.0 - s),
            )
        elif kind == PURSUIT:
            now = spot_at(spots, motion, spot, t)
            g = traits.pursuit_gain
            at = unit(
                b[0] + g * (now[0] - spot_start[0]),
                b[1] + g * (now[1] - spot_start[1]),
                b[2] + g * (now[2] - spot_start[2]),
            )
        drift_x, drift_y = (
            drift_x * drift_fade + drift_fresh * rng.standard_normal(),
            drift_y * drift_fade + drift_fresh * rng.standard_normal(),
        )
        lagged_x, lagged_y = (
            drift_x + drift_lag * (lagged_x - drift_x),
            drift_y + drift_lag * (lagged_y - drift_y),
        )
        tremor_x, tremor_y = (
            tremor_cos * tremor_x - tremor_sin * tremor_y,
            tremor_sin * tremor_x + tremor_cos * tremor_y,
        )
        if (
            kind == FIXATION
            and t > micro_start + micro_s
            and t - start > 0.1
            and rng.random() < traits.microsaccade_hz * dt
        ):
            micro_x, micro_y = micro_x + micro_dx, micro_y + micro_dy
            size = traits.microsaccade_deg * math.exp(0.4 * rng.standard_normal())
            # Half of them undo where the last ones went, so they do not add up.
            way = (
                math.atan2(-micro_y, -micro_x)
                + (1.2 if rng.random() < 0.5 else 0.2) * rng.standard_normal()
            )
            micro_start, micro_s, micro_dx, micro_dy = (
                t,
                duration(size, v_max, constant, 0.2),
                size * math.cos(way),
                size * math.sin(way),
            )
        done = share((t - micro_start) / micro_s, 0.2)
        move_right += lagged_x / tall + micro_x + done * micro_dx + tremor_x
        move_down += lagged_y * tall + micro_y + done * micro_dy + tremor_y
        since = t - pso_start
        if kind != SACCADE and pso_start >= 0.0 and since < 6.0 * _SLIDE_S:
            # The slide begins where the saccade ended and goes on to where it leads.
            slid = 1.0 - math.exp(-since / _SLIDE_S)
            move_right, move_down = move_right + slid * slide_right, move_down + slid * slide_down
        elif kind != SACCADE:
            move_right, move_down = move_right + slide_right, move_down + slide_down
        if kind != SACCADE and pso_deg > 0.0 and since < 6.0 * traits.pso_decay_s:
            swing = (
                pso_deg
                * math.exp(-since / traits.pso_decay_s)
                * math.sin(2 * math.pi * traits.pso_hz * since)
            )
            move_right, move_down = move_right + swing * pso_right, move_down + swing * pso_down
        at = step(at, move_right, move_down)
        clean[i, 0], clean[i, 1], clean[i, 2] = at

        if held > 0.0:
            here = at
            at = unit(
                at[0] + held * (before[0] - at[0]),
                at[1] + held * (before[1] - at[1]),
                at[2] + held * (before[2] - at[2]),
            )
            before = here

        code[i], event[i] = kind, number
        if (
            kind == FIXATION
            and pso_deg > _VISIBLE_PSO_DEG
            and since < traits.pso_decay_s * math.log(pso_deg / _VISIBLE_PSO_DEG)
        ):
            code[i] = PSO

        # The lids.
        while t >= blink_to:
            blink_over = blink_to
            blink_from = blink_to + 0.1 + rng.exponential(1.0) / traits.blink_hz
            blink_to = blink_from + traits.blink_s * math.exp(0.3 * rng.standard_normal())
        lid = 0.0
        blinking = t >= blink_from
        if not blinking:
            if blink_from - t < _LID_BEFORE_S:
                lid = 1.0 - (blink_from - t) / _LID_BEFORE_S
            elif blink_over >= 0.0 and t - blink_over < _LID_AFTER_S:
                lid = 1.0 - (t - blink_over) / _LID_AFTER_S
        if blinking:
            code[i] = BLINK
        elif lid > 0.0:
            code[i] = NOISE

        # The tracker.
        while t >= lost_to and t >= lost_from:
            lost_to = lost_from + tracker.dropout_s * rng.exponential(1.0)
            lost_from = lost_to + rng.exponential(1.0) / tracker.dropout_hz
        lost = blinking or t < lost_to
        colour_x, colour_y = (
            colour_x * colour_fade + colour_fresh * rng.standard_normal(),
            colour_y * colour_fade + colour_fresh * rng.standard_normal(),
        )
        noise_x, noise_y = (
            white / tall * rng.standard_normal(),
            white * tall * rng.standard_normal(),
        )
        if sphere and tracker.mismatch_s > 0.0:
            # Head and eye are not measured at quite the same time, so gaze jumps to and fro along
            # the head's motion.
            late = tracker.mismatch_s * rng.standard_normal()
            rx, rz = right_of(head)
            noise_x += (
                late
                * (
                    speed[0] * head[1] * rz
                    + speed[1] * (head[2] * rx - head[0] * rz)
                    - speed[2] * head[1] * rx
                )
                / DEGREE
            )
            noise_y += late * (rx * speed[0] + rz * speed[2]) / DEGREE
        seen = step(
            at,
            traits.offset_right_deg + colour_x / tall + noise_x,
            traits.offset_down_deg + colour_y * tall + noise_y + tracker.lid_deg * lid * lid,
        )
        x, y = to_degrees(seen, sphere)
        if tracker.quantum_deg > 0.0 and not sphere:
            x, y = rounded(x, tracker.quantum_deg), rounded(y, tracker.quantum_deg)
        light_x, light_y = (
            light_cos * light_x - light_sin * light_y,
            light_sin * light_x + light_cos * light_y,
        )
        mood = mood * mood_fade + mood_fresh * rng.standard_normal()
        size = traits.pupil_mm + mood + light_y + 0.004 * rng.standard_normal()
        if sphere:
            shaken = step(
                head,
                tracker.head_white_deg * rng.standard_normal(),
                tracker.head_white_deg * rng.standard_normal(),
            )
            heads[i, 0], heads[i, 1] = to_degrees(shaken, True)
            heads[i, 2] = roll
            eyes[i, 0], eyes[i, 1] = in_head(seen, shaken, roll)
        if lost:
            valid[i] = False
            gaze[i, 0], gaze[i, 1] = math.nan, math.nan
            pupil[i] = math.nan
            if sphere:
                eyes[i, 0], eyes[i, 1] = math.nan, math.nan
        else:
            gaze[i, 0], gaze[i, 1] = x, y
            pupil[i] = max(size, 0.5)
    return gaze, clean, valid, code, event, pupil, heads, eyes
