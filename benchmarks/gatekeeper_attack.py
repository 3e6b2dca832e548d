"""What ten colluding apps learn through the Gatekeeper, against what its level tells by itself, on
real people.

    python benchmarks/gatekeeper_attack.py [--json FILE]
    [--page docs/howto/gatekeeper/threat-model.md] [--clips 6] [--repetitions 10]

The 24 people of gazecom (under GAZEVEIL_DATA) are replayed as trackers, each through a Gatekeeper
of their own. Ten apps ask for all they can: five register different areas and query them, one
follows tiles, two listen to events, two have protected streams. What they collected is put
together, recordings are rebuilt from it (one sample every 10 ms: the eye rests where the event log
says and goes straight between), and the RBF network, linkage, `steps`, `rocket` and `fusion` try to
find people by them. Beside it stand the same attacks on the whole event log, written without any
app in between: the level's own figure. The coalition must lie within that figure's interval, and so
must what two apps make of their streams together, against one release of the finer mechanism.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import gazeveil
from gazeveil.gatekeeper import LEVELS, Gatekeeper, Grant, Ledger, Policy, PublicEvent, SaccadeStart
from gazeveil.gatekeeper.core.quantise import EventQuantiser
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Grid
from gazeveil.gaze.recording import Recording

sys.path.insert(0, str(Path(__file__).parent))
from lines import Lines, markdown, put_into

ATTACKS = ("rbfn", "linkage", "steps", "rocket", "fusion")
SIGMA_DEG, COARSER_DEG = 3, 6
STEP_MS = 10
LONGEST_SACCADE_MS = 200
CLIP_MS = 60_000  # clips begin at whole minutes of the session, as the app that shows them knows

#: Kinds with a place and a duration.
LOOKS = ("fixation", "pursuit")

#: t_ms, duration_ms, x_deg, y_deg of one of these.
Stay = tuple[int, int, float, float]
Samples = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def event_log(recording: Recording, level: str) -> list[Stay]:
    """The whole event log of one recording, without apps and without a policy."""
    how = LEVELS[level]
    grid = Grid(recording.space, how.resolution_deg)
    quantiser = EventQuantiser(recording.rate_hz, recording.space, grid, how.tick_ms)
    told = (
        quantiser.block(recording.t_ns, recording.x_deg, recording.y_deg, recording.valid)
        + quantiser.close()
    )
    tick = how.tick_ms
    return [
        (e.onset_tick * tick, (e.offset_tick - e.onset_tick) * tick, *grid.centre(*e.cell))
        for e in told
        if e.kind in LOOKS and e.cell is not None
    ]


def rebuilt(recording: Recording, rests: Iterable[Stay], tick_ms: int) -> Recording:
    """A recording made of rests of the eye: it stays at each place as long as the event log says
    and goes straight to the next.

    Longer gaps than a saccade and a tick are lost samples. This found more people than jumps
    without time in between did.
    """
    steps = max(2, int((recording.t_ns[-1] - recording.t_ns[0]) // (STEP_MS * 10**6)) + 1)
    x, y = np.full(steps, np.nan), np.full(steps, np.nan)
    last, from_x, from_y = -(10**9), 0.0, 0.0
    for t_ms, duration_ms, a, b in sorted(rests):
        begin, end = t_ms // STEP_MS, min(steps, max(t_ms + duration_ms, t_ms + STEP_MS) // STEP_MS)
        gap = begin - last
        if 0 < gap * STEP_MS <= LONGEST_SACCADE_MS + tick_ms:
            share = np.arange(1, gap + 1) / (gap + 1)
            x[last:begin], y[last:begin] = (
                from_x + share * (a - from_x),
                from_y + share * (b - from_y),
            )
        x[begin:end], y[begin:end] = a, b
        last, from_x, from_y = end, a, b
    t = np.arange(steps, dtype=np.int64) * STEP_MS * 10**6
    return _recording(recording, t, x, y, np.isfinite(x), 1000.0 / STEP_MS)


def _recording(
    like: Recording, t: np.ndarray, x: np.ndarray, y: np.ndarray, valid: np.ndarray, rate_hz: float
) -> Recording:
    return Recording(
        like.person,
        like.stimulus,
        t_ns=t,
        x_deg=x,
        y_deg=y,
        valid=valid,
        space=like.space,
        rate_hz=rate_hz,
        session=like.session,
        task=like.task,
    )


class Coalition:
    """Ten apps of one wearer that keep what they get."""

    def __init__(self, keeper: Gatekeeper, listeners: bool) -> None:
        self.keeper = keeper
        self.looks: dict[int, PublicEvent] = {}
        self.tiles: list[tuple[int | None, int]] = []
        self.starts: list[int] = []
        self.asked = 0
        self.streams: tuple[list[Samples], list[Samples]] = ([], [])
        width, height = keeper.space.width_deg, keeper.space.height_deg
        left, top = -width / 2, -height / 2
        rng = np.random.default_rng(1)
        self.areas: list[tuple[Any, int]] = []
        for name in "abcde":
            app = keeper.app(name)
            # Some large ones that cover the screen, shifted from app to app, and as many small ones
            # as fit.
            places = [
                (
                    left - 8 + 2 * "abcde".index(name) + i * width / 4,
                    top + j * height / 2,
                    width / 4 + 10,
                    height / 2,
                )
                for i in range(5)
                for j in range(2)
            ]
            places += [
                (left + rng.uniform(0, width - 11), top + rng.uniform(0, height - 11), 10.0, 10.0)
                for _ in range(6)
            ]
            for place in places:
                try:
                    self.areas.append((app, app.register_area("x", *place).id))
                except gazeveil.gatekeeper.Denied:
                    continue  # outside the screen
        keeper.app("f").on_tile(lambda tile, t_ms: self.tiles.append((tile, t_ms)))
        if listeners:
            for kind in LOOKS:
                keeper.app("g").add_event_listener(kind, self._heard)
            keeper.app("h").add_event_listener("saccade", self._heard, mode="start-stop")
        for name, sigma, kept in (
            ("i", SIGMA_DEG, self.streams[0]),
            ("j", COARSER_DEG, self.streams[1]),
        ):
            keeper.app(name).open_private_stream(
                f"gaussian:sigma_deg={sigma}",
                lambda t, x, y, v, kept=kept: kept.append((t, x, y, v)),
            )

    def _heard(self, event: PublicEvent | SaccadeStart) -> None:
        if isinstance(event, SaccadeStart):
            self.starts.append(event.t_ms)
        elif event.kind in LOOKS:
            self.looks[event.number] = event

    def query(self) -> None:
        """Ask for everything new in all areas."""
        for app, area in self.areas:
            for event in app.get_fixations(area, after=self.asked):
                known = self.looks.setdefault(event.number, event)
                assert known == event, "two apps were told different things about one event"
            app.get_saccades(area, after=self.asked)
            app.metrics(area)
        self.asked = max(self.looks, default=0)

    def rests(self, clip: int) -> list[Stay]:
        """What all of them together know of a clip."""
        begin = clip * CLIP_MS
        return [
            (e.t_ms - begin, e.duration_ms, e.x_deg, e.y_deg)
            for e in self.looks.values()
            if begin <= e.t_ms < begin + CLIP_MS
        ]


def policy() -> Policy:
    """Everything for ten apps."""
    scopes = frozenset({"areas", "fixations", "saccades", "events", "tile", "samples"})
    grant = Grant(
        scopes,
        tuple(f"gaussian:sigma_deg={sigma}" for sigma in (SIGMA_DEG, COARSER_DEG)),
        areas=100,
        calls_per_minute=10**9,
        budgets={"rho": Fraction(10**9)},
    )
    return Policy(dict.fromkeys("abcdefghij", grant), consent=True)


def replay(
    recordings: Sequence[Recording], level: str, listeners: bool
) -> tuple[list[Recording], list[Recording]]:
    """One wearer's clips through one Gatekeeper: what the coalition rebuilds of them, and what its
    streams give together.
    """
    events, streamed = [], []
    first = recordings[0]
    with (
        Ledger.open("sqlite://") as ledger,
        Gatekeeper(
            policy(), ledger, rate_hz=first.rate_hz, space=first.space, level=level
        ) as keeper,
    ):
        coalition = Coalition(keeper, listeners)
        for clip, recording in enumerate(recordings):
            for kept in coalition.streams:
                kept.clear()
            t = recording.t_ns - recording.t_ns[0] + clip * CLIP_MS * 10**6
            for part in np.array_split(np.arange(len(t)), max(1, len(t) // 500)):
                keeper.push(
                    t[part], recording.x_deg[part], recording.y_deg[part], recording.valid[part]
                )
            keeper.lost()
            coalition.query()
            events.append(rebuilt(recording, coalition.rests(clip), LEVELS[level].tick_ms))
            streamed.append(_together(recording, coalition.streams))
    return events, streamed


def _together(recording: Recording, streams: tuple[list[Samples], list[Samples]]) -> Recording:
    """Two streams averaged with the weights that are best for independent noise."""
    fine, coarse = (
        tuple(np.concatenate(columns) for columns in zip(*blocks, strict=True))
        for blocks in streams
    )
    weight = COARSER_DEG**2 / (SIGMA_DEG**2 + COARSER_DEG**2)
    x, y = weight * fine[1] + (1 - weight) * coarse[1], weight * fine[2] + (1 - weight) * coarse[2]
    return _recording(recording, fine[0], x, y, fine[3], recording.rate_hz)


def rates(cohort: Cohort, repetitions: int) -> dict[str, dict[str, Any]]:
    """Identification rates by attack."""
    frame = gazeveil.evaluate(
        cohort, mechanisms=[], attacks=list(ATTACKS), repetitions=repetitions, seed=1, executor=1
    ).frame
    rows = frame.filter(pl.col("metric") == "identification_rate").to_dicts()
    return {row["attack"]: row for row in rows}


def study(cohort: Cohort, repetitions: int, lines: Lines) -> list[list[str]]:
    """All rows: name, then rate and interval for every attack."""
    by_person: dict[str, list[Recording]] = {}
    for recording in cohort:
        by_person.setdefault(recording.person, []).append(recording)
    table: list[list[str]] = []

    def row(
        name: str, recordings: list[Recording], within: dict[str, dict[str, Any]] | None = None
    ) -> dict[str, dict[str, Any]]:
        found = rates(Cohort(recordings), repetitions)
        cells = []
        for attack in ATTACKS:
            r = found[attack]
            met = within is None or within[attack]["low"] <= r["value"] <= within[attack]["high"]
            lines.keep(
                {
                    "figure": name,
                    "attack": attack,
                    "value": r["value"],
                    "low": r["low"],
                    "high": r["high"],
                    "chance": r["chance"],
                    "met": met,
                }
            )
            cells.append(f"{r['value']:.2f} [{r['low']:.2f}, {r['high']:.2f}]")
        table.append([name, *cells])
        return found

    everybody = [r for person in by_person.values() for r in person]
    row("raw samples, no Gatekeeper", everybody)
    for level in ("fine", "coarse"):
        own = row(
            f"{level}: the whole event log (the level's own figure)",
            [rebuilt(r, event_log(r, level), LEVELS[level].tick_ms) for r in everybody],
        )
        both = [replay(person, level, listeners=True) for person in by_person.values()]
        row(f"{level}: ten apps together", [r for events, _ in both for r in events], own)
        if level == "coarse":
            areas = [replay(person, level, listeners=False)[0] for person in by_person.values()]
            row(
                "coarse: ten apps without event listeners",
                [r for events in areas for r in events],
                own,
            )
            alone = (
                gazeveil.mechanism(f"gaussian:sigma_deg={SIGMA_DEG}")
                .release(Cohort(everybody), seed=1)
                .data
            )
            one = row(
                f"stream gaussian, sigma {SIGMA_DEG}: one release (the mechanism's own figure)",
                list(alone),
            )
            row(
                f"streams with sigma {SIGMA_DEG} and {COARSER_DEG} averaged by two apps",
                [r for _, streamed in both for r in streamed],
                one,
            )
    return table


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, help="a page of the manual to put the table into")
    parser.add_argument("--clips", type=int, default=6)
    parser.add_argument("--repetitions", type=int, default=10)
    arguments = parser.parse_args()
    folder = (
        Path(
            os.environ.get("GAZEVEIL_DATA", Path(__file__).parent / ".." / ".." / "shared" / "data")
        )
        / "gazecom"
    )
    if not folder.exists():
        sys.exit("This needs gazecom under GAZEVEIL_DATA.")
    cohort = gazeveil.read(folder)
    lines = Lines(arguments.json)
    table = study(
        cohort.select(stimuli=cohort.stimuli[: arguments.clips]), arguments.repetitions, lines
    )
    text = markdown(["what the attacker has", *ATTACKS], table)
    print(text)
    if arguments.page is not None:
        put_into(arguments.page, "gatekeeper attack", text)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
