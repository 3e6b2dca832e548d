"""What a hostile app learns through `select` alone: dwell targets all over the screen, opened again
after every choice.

    python benchmarks/gatekeeper_select.py [--json FILE]
    [--page docs/howto/gatekeeper/threat-model.md] [--clips 3] [--levels coarse]

People of gazecom (under GAZEVEIL_DATA) watch films and choose nothing. The app cuts the screen into
32 targets, asks for a short rest, and opens the next selection in the tick after a choice. Whatever
it is told, the wearer did not mean. Beside it stands how many fixations the scope `events` tells of
the same gaze; by gestures, which nobody makes, it must be told nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import gazeveil
from gazeveil.gatekeeper import (
    LEVELS,
    Denied,
    Gatekeeper,
    Grant,
    Ledger,
    Policy,
    Subscription,
    Target,
)
from gazeveil.gatekeeper.core.selection import DWELL_MS, DWELLS_PER_MINUTE, LEAST_DWELL_MS
from gazeveil.gaze.recording import Recording

sys.path.insert(0, str(Path(__file__).parent))
from lines import Lines, markdown, put_into

COLUMNS, ROWS = 8, 4
PAUSE_MS = 1000  # between two clips


class Hostile:
    """An app that never lets go."""

    def __init__(self, keeper: Gatekeeper, recording: Recording, by: str, dwell_ms: int) -> None:
        width, height = recording.space.width_deg, recording.space.height_deg
        w, h = width / COLUMNS, height / ROWS
        self.targets = [
            Target(f"{i} {j}", i * w - width / 2, j * h - height / 2, w, h)
            for i in range(COLUMNS)
            for j in range(ROWS)
        ]
        self.app, self.by, self.dwell_ms = keeper.app("hostile"), by, dwell_ms
        self.heard: list[str] = []
        self.refused = 0
        self.open: Subscription | None = None

    def again(self) -> None:
        """Open the next selection where the last has ended."""
        if self.open is None or self.open.ended is not None:
            try:
                self.open = self.app.select(
                    self.targets, self.heard.append, by=self.by, dwell_ms=self.dwell_ms
                )
            except Denied:
                self.refused += 1


def minute(recordings: Sequence[Recording], level: str, by: str, dwell_ms: int) -> dict[str, float]:
    """Choices and events of one person, each for a minute of watching."""
    first = recordings[0]
    now = [10**18]
    policy = Policy(
        {
            "hostile": Grant(frozenset({"select"}), calls_per_minute=10**6),
            "listener": Grant(frozenset({"events"})),
        },
        consent=True,
    )
    with (
        Ledger.open("sqlite://") as ledger,
        Gatekeeper(
            policy,
            ledger,
            rate_hz=first.rate_hz,
            space=first.space,
            level=level,
            clock_ns=lambda: now[0],
        ) as keeper,
    ):
        app = Hostile(keeper, first, by, dwell_ms)
        events: list[object] = []
        keeper.app("listener").add_event_listener("fixation", events.append)
        begin_ns, seconds = 0, 0.0
        for recording in recordings:
            t = recording.t_ns - recording.t_ns[0] + begin_ns
            ticks = (t - begin_ns) // (LEVELS[level].tick_ms * 10**6)
            for part in np.split(np.arange(len(t)), np.flatnonzero(np.diff(ticks)) + 1):
                now[0] = 10**18 + int(t[part[-1]])
                app.again()
                keeper.push(
                    t[part], recording.x_deg[part], recording.y_deg[part], recording.valid[part]
                )
            seconds += float(t[-1] - begin_ns) / 1e9
            begin_ns = int(t[-1]) + PAUSE_MS * 10**6
            keeper.lost()
    return {
        "heard": len(app.heard),
        "minutes": seconds // 60 + 1,
        "choices": 60 * len(app.heard) / seconds,
        "fixations": 60 * len(events) / seconds,
    }


def study(recordings: Sequence[Recording], levels: Sequence[str], lines: Lines) -> list[list[str]]:
    """A row of the table for each way of asking, over all people."""
    people: dict[str, list[Recording]] = {}
    for recording in recordings:
        people.setdefault(recording.person, []).append(recording)
    table = []
    for level in levels:
        for by, dwell_ms in (("dwell", LEAST_DWELL_MS), ("dwell", DWELL_MS), ("confirm", DWELL_MS)):
            # Less than a minute of a person would be blown up to one: those who lack a clip are
            # left out.
            most = max(map(len, people.values()))
            each = [
                minute(clips, level, by, dwell_ms)
                for clips in people.values()
                if len(clips) == most
            ]
            choices, fixations = (
                np.array([e["choices"] for e in each]),
                np.array([e["fixations"] for e in each]),
            )
            name = f"a rest of {dwell_ms} ms" if by == "dwell" else "a gesture, which nobody makes"
            met = all(
                e["heard"] <= (DWELLS_PER_MINUTE * e["minutes"] if by == "dwell" else 0)
                for e in each
            )
            figures = {
                "value": float(choices.mean()),
                "most": float(choices.max()),
                "fixations": float(fixations.mean()),
            }
            lines.keep(
                {
                    "figure": f"choices a minute by {name}",
                    "level": level,
                    "people": len(each),
                    **figures,
                    "met": met,
                }
            )
            table.append(
                [
                    level,
                    name,
                    f"{choices.mean():.1f} ({choices.max():.1f})",
                    f"{fixations.mean():.0f}",
                ]
            )
    return table


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, help="a page of the manual to put the table into")
    parser.add_argument("--clips", type=int, default=3)
    parser.add_argument(
        "--levels",
        nargs="+",
        choices=tuple(LEVELS),
        default=["coarse"],
        help="the fine one takes ten times as long",
    )
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
        list(cohort.select(stimuli=cohort.stimuli[: arguments.clips])), arguments.levels, lines
    )
    text = markdown(
        [
            "level",
            "32 targets over the screen, chosen by",
            "choices a minute, mean (most) of a person",
            "fixations a minute that `events` tells",
        ],
        table,
    )
    print(text)
    if arguments.page is not None:
        put_into(arguments.page, "gatekeeper select", text)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
