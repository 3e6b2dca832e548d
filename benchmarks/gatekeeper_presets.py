"""Every preset of the Gatekeeper attacked on real people: how near an app comes to where they look,
and how many of them it recognises.

    python benchmarks/gatekeeper_presets.py --page docs/howto/gatekeeper/threat-model.md

Recordings of GazeCom (24 people at a screen) and EyeNavGS (12 people in a headset) go through an
embedded Gatekeeper at the coarse level, each as a session of one app with all that the preset
allows. The attacker sees everything that the app is told: values, order, times; and has raw
recordings of all other people.

* Place: what was told is turned into a guess for every moment, and the guess is moved by how far
  other people's gaze lies, on average, from the same guess after the same step, with or without the
  time since the step. The figure is the least median error over all moments, and the share of
  moments for which there is a guess. The first row is an attacker who is told nothing and guesses
  where other people look on average.
* People: the strong battery on the guesses as if they were recordings, three splits, chosen on the
  other splits.
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gazeveil
from gazeveil.gatekeeper import (
    PRESETS,
    Denied,
    DeviceLimits,
    Gatekeeper,
    Ledger,
    Policy,
    Subscription,
    Target,
)
from gazeveil.gatekeeper.core.app import App
from gazeveil.gatekeeper.core.area_metrics import AT_YOU_DEG
from gazeveil.gatekeeper.core.selection import LEAST_DWELL_MS
from gazeveil.gatekeeper.policy.grant import CURRENCIES
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere, haversine_deg
from gazeveil.gaze.recording import Recording
from lines import markdown, put_into

COHORTS = {"screen": "gazecom", "headset": "eyenavgs_nthu"}
#: Things of an app that asks for choices all over the view, again and again.
COLUMNS, ROWS = 8, 4

_STREAM = "gaussian:sigma_deg=1"

#: A first guess for each region, in degrees from the middle of the view; closed eyes tell no place.
_BEYOND_DEG = 1.5 * AT_YOU_DEG
REGIONS = {
    "at-you": (0.0, 0.0),
    "left": (-_BEYOND_DEG, 0.0),
    "right": (_BEYOND_DEG, 0.0),
    "up": (0.0, -_BEYOND_DEG),
    "down": (0.0, _BEYOND_DEG),
    "closed": (np.nan, np.nan),
}

#: Rate of the recordings that the battery gets, in Hz; what is told has ticks of 100 ms.
CLOCK_HZ = 60.0

#: Bounds between times since a step that are told apart, in seconds.
_SINCE_S = (0.1, 0.3, 1.0, 3.0)

Floats = NDArray[np.float64]


@dataclass
class View:
    """What an app was told of one recording, as a guess for each of its samples; NaN where none."""

    x_deg: Floats
    y_deg: Floats

    @property
    def known(self) -> NDArray[np.bool_]:
        """Samples with a guess."""
        return np.isfinite(self.x_deg)


def seen(recording: Recording, preset: str) -> View:
    """Push a recording and write down what the app gets."""
    plenty = dict.fromkeys(CURRENCIES, Fraction(10**15))
    grant = PRESETS[preset].grant(budgets=plenty, calls_per_minute=10**9)
    now = [10**18]
    with Ledger.open("sqlite://") as ledger:
        keeper = Gatekeeper(
            Policy({"app": grant}, DeviceLimits(**plenty), consent=True),
            ledger,
            rate_hz=recording.rate_hz,
            space=recording.space,
            clock_ns=lambda: now[0],
        )
        watch = {"choose": _choices, "follow": _regions}.get(preset, _events)
        return watch(recording, keeper, keeper.app("app"), now)


def _pushed(
    recording: Recording, keeper: Gatekeeper, now: list[int], each: Callable[[int], None]
) -> None:
    """Push tick by tick by the recording's clock; `each` hears how many samples have been
    pushed.
    """
    step = max(1, round(0.1 * recording.rate_hz))
    for begin in range(0, len(recording.t_ns), step):
        part = slice(begin, begin + step)
        now[0] = 10**18 + int(recording.t_ns[part][-1] - recording.t_ns[0])
        keeper.push(
            recording.t_ns[part],
            recording.x_deg[part],
            recording.y_deg[part],
            recording.valid[part],
        )
        each(min(begin + step, len(recording.t_ns)))


def _choices(recording: Recording, keeper: Gatekeeper, app: App, now: list[int]) -> View:
    """The last thing that was chosen, from the rest that chose it until the next."""
    space, n = recording.space, len(recording.t_ns)
    w, h = space.width_deg / COLUMNS, space.height_deg / ROWS
    left, top = _corner(recording)
    targets = [
        Target(f"{i} {j}", left + i * w, top + j * h, w, h)
        for i in range(COLUMNS)
        for j in range(ROWS)
    ]
    x, y = np.full(n, np.nan), np.full(n, np.nan)
    chosen: list[str] = []
    opened: list[Subscription] = []
    back = round(LEAST_DWELL_MS / 1000 * recording.rate_hz)

    def again(end: int) -> None:
        while chosen:
            i, j = map(int, chosen.pop().split())
            x[max(0, end - back) :], y[max(0, end - back) :] = (
                left + (i + 0.5) * w,
                top + (j + 0.5) * h,
            )
        if not opened or opened[-1].ended is not None:
            with suppress(Denied):  # until the minute is over
                opened.append(
                    app.select(targets, chosen.append, by="dwell", dwell_ms=LEAST_DWELL_MS)
                )

    again(0)
    _pushed(recording, keeper, now, again)
    return View(x, y)


def _corner(recording: Recording) -> tuple[float, float]:
    """Left upper corner of the space in degrees."""
    space = recording.space
    return (
        (0.0, 0.0) if isinstance(space, Sphere) else (-space.width_deg / 2, -space.height_deg / 2)
    )


def _regions(recording: Recording, keeper: Gatekeeper, app: App, now: list[int]) -> View:
    shown, done = ["closed"], [0]
    app.on_region(lambda region, t_ms: shown.__setitem__(0, region))
    middle = (180.0, 90.0) if isinstance(recording.space, Sphere) else (0.0, 0.0)
    n = len(recording.t_ns)
    x, y = np.full(n, np.nan), np.full(n, np.nan)

    def each(end: int) -> None:
        across, down = REGIONS[shown[0]]
        x[done[0] : end], y[done[0] : end] = middle[0] + across, middle[1] + down
        done[0] = end

    _pushed(recording, keeper, now, each)
    return View(x, y)


def _events(recording: Recording, keeper: Gatekeeper, app: App, now: list[int]) -> View:
    """Fixations in areas over the whole view; where samples are given, their mean in each."""
    space, scopes = recording.space, PRESETS[_name_of(app)].grant().scopes
    left, top = _corner(recording)
    area = app.register_area("all", left, top, space.width_deg, space.height_deg)
    got: list[tuple[Floats, Floats]] = []
    if "samples" in scopes:
        app.open_private_stream(_STREAM, lambda t, x, y, v: got.append((x, y)))
    _pushed(recording, keeper, now, lambda end: None)
    keeper.lost()
    n = len(recording.t_ns)
    x, y = np.full(n, np.nan), np.full(n, np.nan)
    stream = [np.concatenate(part) for part in zip(*got, strict=True)] if got else None
    t_ms = (recording.t_ns - recording.t_ns[0]) / 1e6
    for event in app.get_fixations(area.id):
        inside = (t_ms >= event.t_ms) & (t_ms <= event.t_ms + event.duration_ms)
        if stream is None or len(stream[0]) != n:
            x[inside], y[inside] = event.x_deg, event.y_deg
        elif inside.any():
            x[inside], y[inside] = np.nanmean(stream[0][inside]), np.nanmean(stream[1][inside])
    return View(x, y)


def _name_of(app: App) -> str:
    grant = app._state.policy.apps[app.name]
    return next(name for name, preset in PRESETS.items() if preset.grant().scopes == grant.scopes)


def nothing(recording: Recording) -> View:
    """The view of an attacker who is told nothing."""
    same = np.zeros(len(recording.t_ns))
    return View(same, same)


def place(views: list[tuple[Recording, View]]) -> str:
    """The least median error in degrees, and the share of moments with a guess."""
    errors = [np.concatenate(improved(views, timed)) for timed in (False, True)]
    valid = sum(int(recording.valid.sum()) for recording, _ in views)
    least = min(float(np.median(one)) for one in errors)
    return f"{least:.1f}° ({100 * len(errors[0]) / valid:.0f} %)"


def improved(views: list[tuple[Recording, View]], timed: bool) -> list[Floats]:
    """Errors of the guesses of each recording, moved by how far others' gaze lies from the same
    guess after the same step; `timed`: so long after it.
    """
    sums: dict[int, dict[str, Floats]] = defaultdict(dict)
    keys = [_keys(view, recording.rate_hz, timed) for recording, view in views]
    for (recording, view), key in zip(views, keys, strict=True):
        ok = view.known & recording.valid
        dx = (recording.x_deg - view.x_deg + 180) % 360 - 180
        for k in set(key[ok].tolist()):
            here = ok & (key == k)
            add = np.array([here.sum(), dx[here].sum(), (recording.y_deg - view.y_deg)[here].sum()])
            own = sums[k].setdefault(recording.person, np.zeros(3))
            own += add
    errors = []
    for (recording, view), key in zip(views, keys, strict=True):
        ok = view.known & recording.valid
        x, y = view.x_deg.copy(), view.y_deg.copy()
        for k in set(key[ok].tolist()):
            others = sum(
                (v for person, v in sums[k].items() if person != recording.person), np.zeros(3)
            )
            if others[0]:
                here = key == k
                x[here] += others[1] / others[0]
                y[here] += others[2] / others[0]
        errors.append(_apart(recording, x, y)[ok])
    return errors


def _keys(view: View, rate_hz: float, timed: bool) -> NDArray[np.int64]:
    """A number for each guess, the one before it and, if asked for, the time since it came."""
    rounded = np.round(view.x_deg * 10) * 10_000 + np.round(view.y_deg * 10)
    place = np.where(view.known, rounded, -1).astype(np.int64)
    changes = np.flatnonzero(np.diff(place, prepend=place[0] - 1))
    before = np.zeros_like(place)
    for last, begin in itertools.pairwise(changes):
        before[begin:] = place[last]
    keys = place * 7919 + before
    if not timed:
        return keys
    begin = np.maximum.accumulate(
        np.where(np.diff(place, prepend=place[0] - 1), np.arange(len(place)), 0)
    )
    return keys * 8 + np.searchsorted(_SINCE_S, (np.arange(len(place)) - begin) / rate_hz)


def _apart(recording: Recording, x: Floats, y: Floats) -> Floats:
    if isinstance(recording.space, Sphere):
        return np.asarray(
            haversine_deg(recording.x_deg, recording.y_deg, x % 360, np.clip(y, 0, 180))
        )
    return np.hypot(recording.x_deg - x, recording.y_deg - y)


def _told(recording: Recording, view: View) -> Recording:
    """What was told as a recording: on a clock of its own, because apps never see the tracker's."""
    t_ns = recording.t_ns - recording.t_ns[0]
    clock_ns = np.arange(0, t_ns[-1] + 1, round(1e9 / CLOCK_HZ))
    at = np.searchsorted(t_ns, clock_ns, side="right") - 1
    return Recording(
        recording.person,
        recording.stimulus,
        clock_ns,
        view.x_deg[at],
        view.y_deg[at],
        view.known[at],
        recording.space,
        CLOCK_HZ,
    )


def recognised(views: list[tuple[Recording, View]]) -> str:
    """People found by the strong battery on what the app was told."""
    told = [_told(recording, view) for recording, view in views]
    results = gazeveil.evaluate(Cohort(told), [], "strong", repetitions=3, seed=1, executor=1)
    best = results.strongest_against().row(0, named=True)
    rate, low, high = (100 * best[name] for name in ("chosen", "chosen_low", "chosen_high"))
    return f"{rate:.0f} % ({low:.0f}-{high:.0f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    data = Path(os.environ["GAZEVEIL_DATA"])
    cohorts = {name: list(gazeveil.read(data / folder)) for name, folder in COHORTS.items()}
    rows = [["(no app)", "nothing"]]
    for recordings in cohorts.values():
        views = [(r, nothing(r)) for r in recordings]
        rows[0] += [place(views), recognised(views)]
    print(rows[0], flush=True)
    for preset in PRESETS:
        cells = []
        for name, recordings in cohorts.items():
            views = [(r, seen(r, preset)) for r in recordings]
            cells += [place(views), recognised(views)]
            print(preset, name, cells[-2:], flush=True)
        rows.append([f"`{preset}`", PRESETS[preset].sentence, *cells])
    columns = [
        "preset",
        "told to the wearer",
        *(f"{what}, {c}" for c in COHORTS for what in ("place", "people")),
    ]
    text = markdown(columns, rows)
    print(text)
    if given.page is not None:
        put_into(given.page, "presets attacked", text)


if __name__ == "__main__":
    main()
