"""What redirected walking and gaze guidance can do with the Gatekeeper's events, against samples.

    python benchmarks/event_apps.py [--clips 3] [--json FILE]
    [--page docs/results/event_apps.md]

Gaze of gazecom (under GAZEVEIL_DATA; hand-labelled saccades, 250 Hz) is replayed sample by sample
into the Gatekeeper of each level, and notices are taken at the time of the sample that brings them.
Two rules of such apps: the scene is turned after a
notice for what is left of a flight of 45 ms; the spot is steady from a notice on. Beside it stand
the same detector without ticks, as an app with raw samples has it, and the hand labels themselves.
Intervals are Student's, over people.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import gazeveil
from gazeveil.arrays import Floats
from gazeveil.events.online.detector import OnlineDetector
from gazeveil.gatekeeper import LEVELS, Gatekeeper, Grant, Ledger, Policy
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import distance_deg
from gazeveil.gaze.recording import Recording

sys.path.insert(0, str(Path(__file__).parent))
from lines import Lines, markdown, put_into

#: How fast the scene is turned (Sun et al. 2018), how long a flight lasts, and when it is found.
TURN_DEG_S, FLIGHT_MS, FOUND_MS = 12.6, 45.0, 8.0
#: How long a spot waits.
PATIENCE_MS = 1000.0
#: From where on a saccade may lead to something at the edge of the view.
FAR_DEG = 5.0


@dataclass(frozen=True, eq=False)
class Replay:
    """One recording: true flights, and when an app was told of beginnings, all in milliseconds.

    Parameters
    ----------
    begin_ms, end_ms, size_deg : array of float64, shape (saccades,)
        By hand.
    notice_ms, landing_ms : array of float64, shape (notices,)
        When an app was told of a beginning and of a landing.
    seconds : float
        Length of the recording.
    """

    begin_ms: Floats
    end_ms: Floats
    size_deg: Floats
    notice_ms: Floats
    landing_ms: Floats
    seconds: float


def left_ms(tick_ms: float) -> float:
    """Milliseconds of a flight that are left when its beginning is told."""
    return max(0.0, FLIGHT_MS - FOUND_MS - tick_ms / 2)


def flights(recording: Recording) -> tuple[Floats, Floats, Floats]:
    """Beginnings, ends and sizes of saccades, by hand."""
    labels = recording.labels["handlabeller_final"]
    saccades = Events.from_words(labels, recording.t_ns).of("saccade")
    first, last = np.maximum(saccades.onset - 1, 0), saccades.offset
    x, y = recording.x_deg, recording.y_deg
    size = distance_deg(recording.space, x[first], y[first], x[last], y[last])
    return saccades.onset_ns / 1e6, saccades.offset_ns / 1e6, size


def told_by_level(recording: Recording, level: str) -> tuple[Floats, Floats]:
    """When an app of a device is told of beginnings and of landings."""
    policy = Policy({"app": Grant(frozenset({"events"}))}, consent=True)
    heard: dict[str, list[float]] = {"saccade-start": [], "saccade": []}
    now = [0.0]
    with Ledger.open("sqlite://") as ledger:
        keeper = Gatekeeper(
            policy, ledger, rate_hz=recording.rate_hz, space=recording.space, level=level
        )
        app = keeper.app("app")
        app.add_event_listener("saccade", lambda e: heard[e.kind].append(now[0]), mode="start-stop")
        rows = (recording.t_ns, recording.x_deg, recording.y_deg, recording.valid)
        for t, x, y, ok in zip(*(column.tolist() for column in rows), strict=True):
            now[0] = t / 1e6
            keeper.push(t, x, y, ok)
    return np.array(heard["saccade-start"]), np.array(heard["saccade"])


def told_by_detector(recording: Recording) -> tuple[Floats, Floats]:
    """The same for an app that has raw samples and runs the same detector."""
    detector = OnlineDetector(recording.rate_hz, recording.space, pursuit=True)
    edges = detector.push(recording.t_ns, recording.x_deg, recording.y_deg, recording.valid)
    begun, ended = (
        [e.decided for e in edges if e.kind == "saccade" and e.edge == which]
        for which in ("onset", "offset")
    )
    return recording.t_ns[begun] / 1e6, recording.t_ns[ended] / 1e6


def turned_ms(replay: Replay, lasts_ms: float) -> tuple[float, float]:
    """How long the scene is turned while the eyes fly, and while they do not."""
    grid = np.arange(0.0, replay.seconds * 1000)
    flying, turning = np.zeros(len(grid), bool), np.zeros(len(grid), bool)
    for begin, end in zip(replay.begin_ms, replay.end_ms, strict=True):
        flying |= (grid >= begin) & (grid <= end)
    for notice in replay.notice_ms:
        turning |= (grid >= notice) & (grid < notice + lasts_ms)
    return float((turning & flying).sum()), float((turning & ~flying).sum())


def steady_ms(replay: Replay) -> float:
    """How long the spot is steady: from each beginning that is told to the next landing."""
    grid = np.arange(0.0, replay.seconds * 1000)
    steady = np.zeros(len(grid), bool)
    landings = np.append(replay.landing_ms, np.inf)
    for notice in replay.notice_ms:
        landing = landings[np.searchsorted(replay.landing_ms, notice)]
        steady |= (grid >= notice) & (grid < min(landing, notice + PATIENCE_MS))
    return float(steady.sum())


def delays_ms(replay: Replay) -> Floats:
    """How late the notice of each flight came; NaN where none came before the next flight."""
    following = np.append(replay.begin_ms[1:], np.inf)
    at = np.searchsorted(replay.notice_ms, replay.begin_ms)
    notice = np.append(replay.notice_ms, np.inf)[at]
    return np.where(notice < following, notice - replay.begin_ms, np.nan)


def figures(replays: Sequence[Replay], lasts_ms: float) -> dict[str, float]:
    """The figures of one person."""
    turned = np.array([turned_ms(r, lasts_ms) for r in replays]).sum(axis=0)
    whole = sum(float((r.end_ms - r.begin_ms).sum()) for r in replays)
    late = np.concatenate([delays_ms(r) for r in replays])
    lasted = np.concatenate([r.end_ms - r.begin_ms for r in replays])
    far = np.concatenate([r.size_deg for r in replays]) >= FAR_DEG
    minutes = sum(r.seconds for r in replays) / 60
    return {
        "delay_ms": float(np.nanmedian(late)),
        "turned_deg_per_min": turned[0] / 1000 * TURN_DEG_S / minutes,
        "share_of_flights": turned[0] / whole,
        "outside": turned[1] / max(1.0, turned.sum()),
        "moving": 1 - sum(map(steady_ms, replays)) / (60_000 * minutes),
        "steady_in_time": float((late <= lasted).mean()),
        "far_steady_in_time": float((late <= lasted)[far].mean()) if far.any() else np.nan,
    }


def interval(values: Floats) -> tuple[float, float, float]:
    """Mean and Student's 95 % interval over people."""
    from scipy.special import stdtrit

    own = values[np.isfinite(values)]
    half = float(stdtrit(len(own) - 1, 0.975)) * own.std(ddof=1) / np.sqrt(len(own))
    return float(own.mean()), float(own.mean() - half), float(own.mean() + half)


def measured(folder: Path, clips: int) -> list[dict[str, object]]:
    """One row per way of knowing."""
    cohort = gazeveil.read(folder / "gazecom", format="gazecom")
    part = cohort.select(stimuli=cohort.stimuli[:clips])
    ways = {f"events, {name} level": level.tick_ms for name, level in LEVELS.items()}
    people: dict[str, dict[str, list[Replay]]] = {}
    for recording in part:
        recording = recording.with_(t_ns=recording.t_ns - recording.t_ns[0])
        begin, end, size = flights(recording)
        told = {way: told_by_level(recording, way.split()[1]) for way in ways}
        told["raw samples, same detector"] = told_by_detector(recording)
        told["hand labels"] = begin, end
        for way, (notices, landings) in told.items():
            replay = Replay(begin, end, size, notices, landings, recording.duration_s)
            people.setdefault(way, {}).setdefault(recording.person, []).append(replay)
    rows = []
    for way, own in people.items():
        lasts_ms = left_ms(ways.get(way, 0.0))
        each = [figures(replays, lasts_ms) for replays in own.values()]
        row: dict[str, object] = {"way": way, "people": len(each), "turn_ms": lasts_ms}
        for name in each[0]:
            value, low, high = interval(np.array([one[name] for one in each]))
            row |= {name: value, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return rows


def table(rows: Sequence[dict[str, object]]) -> str:
    """The rows as markdown."""

    def words(row: dict[str, object], name: str, form: str) -> str:
        value, low, high = (form.format(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
        return f"{value} ({low}\N{EN DASH}{high})"

    return markdown(
        (
            "told by",
            "notice after, ms",
            "turned in flight, deg/min",
            "of all flight",
            "turned outside",
            "spot moves, of the time",
            "steady before landing",
            f"the same, saccades of {FAR_DEG:g} deg or more",
        ),
        [
            (
                str(row["way"]),
                words(row, "delay_ms", "{:.0f}"),
                words(row, "turned_deg_per_min", "{:.1f}"),
                words(row, "share_of_flights", "{:.0%}"),
                words(row, "outside", "{:.0%}"),
                words(row, "moving", "{:.0%}"),
                words(row, "steady_in_time", "{:.0%}"),
                words(row, "far_steady_in_time", "{:.0%}"),
            )
            for row in rows
        ],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args(arguments)
    rows = measured(Path(os.environ["GAZEVEIL_DATA"]), asked.clips)
    lines = Lines(asked.json)
    for row in rows:
        lines.keep(row | {"met": True})
    lines.close()
    if asked.page:
        put_into(asked.page, "event-apps", table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
