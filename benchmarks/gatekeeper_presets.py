"""Every preset of the Gatekeeper attacked on real people: how near an app comes to where they look,
and how many of them it recognises.

    python benchmarks/gatekeeper_presets.py --page docs/howto/gatekeeper/threat-model.md

Recordings of GazeCom (24 people at a screen) and EyeNavGS (12 people in a headset) go through an
embedded Gatekeeper at the coarse level, each as a session of one app with all that the preset
allows. The attacker sees everything that the app is told: values, order, times; and has raw
recordings of all other people.

* Place: what was told is turned into a guess for every moment, and the guess is moved by how far
  other people's gaze lies, on average, from the same guess after the same step. The figure is the
  median error over all moments, and the share of moments for which there is a guess.
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
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gazeveil
from gazeveil.gatekeeper import PRESETS, DeviceLimits, Gatekeeper, Ledger, Policy
from gazeveil.gatekeeper.core.app import App
from gazeveil.gatekeeper.core.areas import LEVELS
from gazeveil.gatekeeper.policy.grant import CURRENCIES
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere, haversine_deg
from gazeveil.gaze.recording import Recording
from lines import markdown, put_into

COHORTS = {"screen": "gazecom", "headset": "eyenavgs_nthu"}
TOLD = {
    "choose": "its own thing that was chosen",
    "follow": "the part of the view, of 8 across and 4 down",
    "count": "looks at its areas, as cells of 5 degrees",
    "study": "every event, and samples with little noise",
}
_STREAM = "gaussian:sigma_deg=1"

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
    with Ledger.open("sqlite://") as ledger:
        keeper = Gatekeeper(
            Policy({"app": grant}, DeviceLimits(**plenty), consent=True),
            ledger,
            rate_hz=recording.rate_hz,
            space=recording.space,
        )
        watch = _tiles if preset == "follow" else _events
        return watch(recording, keeper, keeper.app("app"))


def _pushed(recording: Recording, keeper: Gatekeeper, each: Callable[[int], None]) -> None:
    """Push tick by tick; `each` hears how many samples have been pushed."""
    step = max(1, round(0.1 * recording.rate_hz))
    for begin in range(0, len(recording.t_ns), step):
        part = slice(begin, begin + step)
        keeper.push(
            recording.t_ns[part],
            recording.x_deg[part],
            recording.y_deg[part],
            recording.valid[part],
        )
        each(min(begin + step, len(recording.t_ns)))


def _tiles(recording: Recording, keeper: Gatekeeper, app: App) -> View:
    now: list[int | None] = [None]
    app.on_tile(lambda tile, t_ms: now.__setitem__(0, tile))
    columns, rows = LEVELS["coarse"].tiles
    space, n = recording.space, len(recording.t_ns)
    left, top = (
        (0.0, 0.0) if isinstance(space, Sphere) else (-space.width_deg / 2, -space.height_deg / 2)
    )
    x, y, done = np.full(n, np.nan), np.full(n, np.nan), [0]

    def each(end: int) -> None:
        if now[0] is not None:
            row, column = divmod(now[0], columns)
            x[done[0] : end] = left + (column + 0.5) * space.width_deg / columns
            y[done[0] : end] = top + (row + 0.5) * space.height_deg / rows
        done[0] = end

    _pushed(recording, keeper, each)
    return View(x, y)


def _events(recording: Recording, keeper: Gatekeeper, app: App) -> View:
    """Fixations in areas over the whole view; where samples are given, their mean in each."""
    space, scopes = recording.space, PRESETS[_name_of(app)].grant().scopes
    left, top = (
        (0.0, 0.0) if isinstance(space, Sphere) else (-space.width_deg / 2, -space.height_deg / 2)
    )
    area = app.register_area("all", left, top, space.width_deg, space.height_deg)
    got: list[tuple[Floats, Floats]] = []
    if "samples" in scopes:
        app.open_private_stream(_STREAM, lambda t, x, y, v: got.append((x, y)))
    _pushed(recording, keeper, lambda end: None)
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


def improved(views: list[tuple[Recording, View]]) -> list[Floats]:
    """Errors of the guesses of each recording, moved by how far others' gaze lies from the same
    guess after the same step.
    """
    sums: dict[int, dict[str, Floats]] = defaultdict(dict)
    keys = [_keys(view) for _, view in views]
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


def _keys(view: View) -> NDArray[np.int64]:
    """A number for each pair of a guess and the one before it."""
    rounded = np.round(view.x_deg * 10) * 10_000 + np.round(view.y_deg * 10)
    place = np.where(view.known, rounded, -1).astype(np.int64)
    changes = np.flatnonzero(np.diff(place, prepend=place[0] - 1))
    before = np.zeros_like(place)
    for last, begin in itertools.pairwise(changes):
        before[begin:] = place[last]
    return place * 7919 + before


def _apart(recording: Recording, x: Floats, y: Floats) -> Floats:
    if isinstance(recording.space, Sphere):
        return np.asarray(
            haversine_deg(recording.x_deg, recording.y_deg, x % 360, np.clip(y, 0, 180))
        )
    return np.hypot(recording.x_deg - x, recording.y_deg - y)


def recognised(views: list[tuple[Recording, View]]) -> str:
    """People found by the strong battery on what the app was told."""
    told = [
        recording.with_(
            x_deg=view.x_deg, y_deg=view.y_deg, valid=view.known, events=None, labels={}
        )
        for recording, view in views
    ]
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
    rows = []
    for preset in PRESETS:
        cells = []
        for folder in COHORTS.values():
            if preset == "choose":
                cells += ["nothing", "nothing"]
                continue
            views = [(r, seen(r, preset)) for r in gazeveil.read(data / folder)]
            errors = np.concatenate(improved(views))
            valid = sum(int(r.valid.sum()) for r, _ in views)
            cells += [
                f"{np.median(errors):.1f}° ({100 * len(errors) / valid:.0f} %)",
                recognised(views),
            ]
            print(preset, folder, cells[-2:], flush=True)
        rows.append([f"`{preset}`", TOLD[preset], *cells])
    columns = ["preset", "told", *(f"{what}, {c}" for c in COHORTS for what in ("place", "people"))]
    text = markdown(columns, rows)
    print(text)
    if given.page is not None:
        put_into(given.page, "presets attacked", text)


if __name__ == "__main__":
    main()
