"""Averaging: how well an app finds where resting eyes are, with all that a preset allows, after 0.3
s, 10 s, ten sessions of a day and ten days.

The attack sees what an app sees. A Gatekeeper has one app with the preset's grant. Eyes rest
at a place, with the slow drift, tremor and tracker noise of a headset, then look elsewhere and come
back by a saccade from anywhere, again and again. The app opens every stream of its grant at the
least noise, follows the tile, listens to events and registers areas over the whole view. From what
it got it estimates the place in several ways:

* the mean of all samples of a stream, and the mean of the different places in it;
* the middle of the tile, or the border between several tiles that were told; the cell of the
  fixations it was told of, or the edge between several of them.

The figure is the median error over places of the way that does best. Places are random, or the
worst: within a tenth of a degree of where four cells meet, so that one look after the other may be
in any of four. Budgets and calls are not what the attack is about, so the app has enough of both.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazeveil.gatekeeper import PRESETS, DeviceLimits, Gatekeeper, Ledger, Policy
from gazeveil.gatekeeper.core.areas import LEVELS
from gazeveil.gatekeeper.ledger.ledger import DAY_NS
from gazeveil.gatekeeper.policy.grant import CURRENCIES, Preset
from gazeveil.gaze.geometry import haversine_deg
from lines import Lines, markdown, put_into

RATE_HZ = 120.0
SHORT_S, LONG_S = 0.3, 10.0
SESSIONS, DAYS = 10, 10
AFTER = ("0.3 s", "10 s", "ten sessions of a day", "ten days")

_DRIFT_DEG, _TREMOR_DEG, _TRACKER_DEG = 0.15, 0.02, 0.3
_SACCADE_S, _SACCADE_DEG = 0.05, 15.0
_AWAY_S = 0.4
_STEP_NS = round(1e9 / RATE_HZ)
_CELL_DEG = 5.0

Place = tuple[float, float]
Way = Callable[["Seen"], Place | None]


#: The weakest mechanism of each family: others of its family are views of it, or not open with it.
WEAKEST = ("gaussian:sigma_deg=1", "kaleido:epsilon=4,w=30,r_deg=1")


@dataclass
class Seen:
    """What the app got while eyes rested at one place, up to now."""

    streams: dict[str, list[NDArray[np.float64]]] = field(default_factory=lambda: defaultdict(list))
    tiles: list[int] = field(default_factory=list)
    cells: list[Place] = field(default_factory=list)


def random_places(count: int, seed: int = 1) -> list[Place]:
    """Places anywhere around the horizon, no two in neighbouring cells."""
    return _around(count, seed, _CELL_DEG)


def worst_places(count: int, seed: int = 1) -> list[Place]:
    """Places near corners where four cells meet."""
    return _around(count, seed, 0.1)


def _around(count: int, seed: int, off_deg: float) -> list[Place]:
    """Places up to so far from corners of cells, which are so far apart that no cell belongs to
    two.
    """
    rng = np.random.default_rng(seed)
    corners = rng.permutation([(x, y) for x in range(40, 325, 20) for y in (70, 90, 110)])[:count]
    return [
        (float(x), float(y)) for x, y in corners + rng.uniform(-off_deg, off_deg, corners.shape)
    ]


def resting(place: Place, seconds: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Eyes at rest, shape (samples, 2): drift that comes back, tremor, and
    what the tracker adds.
    """
    n = round(seconds * RATE_HZ)
    steps = rng.normal(0, _DRIFT_DEG * np.sqrt(2 / RATE_HZ), (n, 2))
    drift = np.empty((n, 2))
    now = rng.normal(0, _DRIFT_DEG, 2)
    for i in range(n):
        now = drift[i] = now * (1 - 1 / RATE_HZ) + steps[i]
    return np.asarray(place) + drift + rng.normal(0, np.hypot(_TREMOR_DEG, _TRACKER_DEG), (n, 2))


def arriving(place: Place, rng: np.random.Generator) -> NDArray[np.float64]:
    """A saccade to a place from anywhere around it: the samples on its way may be in cells that the
    place is not in.
    """
    n, angle = round(_SACCADE_S * RATE_HZ), rng.uniform(0, 2 * np.pi)
    way = np.outer(
        np.linspace(1, 0, n, endpoint=False),
        _SACCADE_DEG * np.array([np.cos(angle), np.sin(angle)]),
    )
    return np.asarray(place) + way + rng.normal(0, np.hypot(_TREMOR_DEG, _TRACKER_DEG), (n, 2))


class Attack:
    """One app with a preset's grant, and eyes that rest at one place after the other.

    Parameters
    ----------
    preset : str
        Which.
    level : str
        How coarse the device's sheet is.
    seed : int
        Of the eyes; the device's noise is its own.
    """

    def __init__(self, preset: str, level: str = "coarse", seed: int = 1) -> None:
        plenty = dict.fromkeys(CURRENCIES, Fraction(10**15))
        grant = PRESETS[preset].grant(budgets=plenty, calls_per_minute=10**9)
        self.scopes = grant.scopes
        self.mechanisms = [text for text in grant.mechanisms if text in WEAKEST]
        self.now_ns = 20_000 * DAY_NS + DAY_NS // 2
        self.ledger = Ledger.open("sqlite://")
        self.keeper = Gatekeeper(
            Policy({"app": grant}, DeviceLimits(**plenty), consent=True),
            self.ledger,
            rate_hz=RATE_HZ,
            level=level,
            clock_ns=lambda: self.now_ns,
        )
        self.app = self.keeper.app("app")
        self.rng = np.random.default_rng(seed)
        self.level, self.t = LEVELS[level], 0
        self.heard: list[Place] = []
        if "events" in grant.scopes:
            self.app.add_event_listener(
                "fixation", lambda event: self.heard.append((event.x_deg, event.y_deg))
            )  # type: ignore[union-attr]
        self.areas = (
            [self.app.register_area("", 90 * (i % 4), 45 * (i // 4), 90, 45) for i in range(16)]
            if "fixations" in grant.scopes
            else []
        )
        self.last: dict[int, int | None] = {area.id: None for area in self.areas}

    def _push(self, gaze: NDArray[np.float64]) -> None:
        t = (self.t + np.arange(len(gaze))) * _STEP_NS
        self.t += len(gaze)
        self.keeper.push(t, gaze[:, 0], gaze[:, 1])

    def session(self, place: Place, seen: Seen) -> Mapping[str, NDArray[np.float64]]:
        """One look of ten seconds; gives what each stream had told after the first 0.3 s."""
        opened, kept = [], {}
        for text in self.mechanisms:
            blocks: list[NDArray[np.float64]] = []
            opened.append(
                self.app.open_private_stream(
                    text,
                    lambda t, x, y, v, blocks=blocks: blocks.append(np.stack((x[v], y[v]), axis=1)),
                )
            )
            kept[text] = blocks
        self._push(arriving(place, self.rng))
        for blocks in kept.values():  # the app knows when the eyes rest
            blocks.clear()
        gaze = resting(place, LONG_S, self.rng)
        first = round(SHORT_S * RATE_HZ)
        self._push(gaze[:first])
        early = {text: np.concatenate(blocks) for text, blocks in kept.items()}
        self._push(gaze[first:])
        if "tile" in self.scopes and (tile := self.app.current_tile()) is not None:
            seen.tiles.append(tile)
        for text, blocks in kept.items():
            seen.streams[text].append(np.concatenate(blocks))
        for stream in opened:
            stream.close()
        self._away(place, seen)
        return early

    def _away(self, place: Place, seen: Seen) -> None:
        """Look elsewhere, so that the fixation is over and told."""
        self.heard.clear()
        self._push(
            resting((float((place[0] + self.rng.uniform(60, 300)) % 360), 90.0), _AWAY_S, self.rng)
            % (360.0, 180.0)
        )
        if (
            "tile" in self.scopes
            and not seen.tiles
            and (tile := self.app.current_tile()) is not None
        ):
            seen.tiles.append(tile)
        told = list(self.heard)
        for area in self.areas:
            events = self.app.get_fixations(area.id, after=self.last[area.id])
            self.last[area.id] = events[-1].number if events else self.last[area.id]
            told += [(event.x_deg, event.y_deg) for event in events]
        seen.cells += [cell for cell in told if _apart(cell, place) < 3 * _CELL_DEG]

    def run(
        self, places: Sequence[Place], days: bool = True, sessions: int = SESSIONS
    ) -> dict[str, float]:
        """Median errors in degrees, by how long the app watched."""
        found = [Seen() for _ in places]
        early = [Seen() for _ in places]
        errors = {}
        for number in range(sessions):
            for place, seen, short in zip(places, found, early, strict=True):
                told = self.session(place, seen)
                if number == 0:
                    short.tiles, short.cells = list(seen.tiles), list(seen.cells)
                    short.streams.update({text: [block] for text, block in told.items()})
            if number == 0:
                errors[AFTER[0]], errors[AFTER[1]] = (
                    self.best(places, early),
                    self.best(places, found),
                )
        errors[AFTER[2]] = self.best(places, found)
        if days:
            found = [Seen() for _ in places]
            for _ in range(DAYS):
                self.now_ns += DAY_NS
                for place, seen in zip(places, found, strict=True):
                    self.session(place, seen)
            errors[AFTER[3]] = self.best(places, found)
        return errors

    def best(self, places: Sequence[Place], found: Sequence[Seen]) -> float:
        """The median error of the way that does best."""
        medians = []
        for way in self.ways():
            guesses = [way(seen) for seen in found]
            # Who was told nothing of a place may still guess: half of the world away is as far off
            # as one can be.
            medians.append(
                float(
                    np.median(
                        [
                            180.0 if guess is None else _apart(guess, place)
                            for guess, place in zip(guesses, places, strict=True)
                        ]
                    )
                )
            )
        return min(medians, default=float("nan"))

    def ways(self) -> Iterable[Way]:
        """All ways to estimate a place."""
        for text in self.mechanisms:
            for of in (_all, _different):
                yield lambda seen, text=text, of=of: _mean(of(seen.streams[text]))
        if self.scopes & {"events", "fixations"}:
            yield lambda seen: _of_cells(seen.cells)
        if "tile" in self.scopes:
            yield lambda seen: self._tile_middle(seen)
            yield lambda seen: _of_cells([self._middle_of(tile) for tile in seen.tiles])

    def _tile(self, seen: Seen) -> tuple[Place, Place] | None:
        """Left, top and sides of the tile that was told most."""
        if not seen.tiles:
            return None
        row, column = divmod(max(set(seen.tiles), key=seen.tiles.count), self.level.tiles[0])
        sides = 360 / self.level.tiles[0], 180 / self.level.tiles[1]
        return (column * sides[0], row * sides[1]), sides

    def _middle_of(self, tile: int) -> Place:
        row, column = divmod(tile, self.level.tiles[0])
        return (column + 0.5) * 360 / self.level.tiles[0], (row + 0.5) * 180 / self.level.tiles[1]

    def _tile_middle(self, seen: Seen) -> Place | None:
        tile = self._tile(seen)
        return None if tile is None else (tile[0][0] + tile[1][0] / 2, tile[0][1] + tile[1][1] / 2)


def _all(blocks: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate(blocks) if blocks else np.empty((0, 2))


def _different(blocks: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.unique(_all(blocks), axis=0)


def _mean(told: NDArray[np.float64]) -> Place | None:
    """The mean; x goes round."""
    if not len(told):
        return None
    x = np.angle(np.mean(np.exp(1j * np.radians(told[:, 0])))) * 180 / np.pi
    return float(x % 360), float(np.mean(told[:, 1]))


def _of_cells(cells: list[Place]) -> Place | None:
    """The middle of the cell; where several neighbours were told, the edge
    or corner between them.
    """
    if not cells:
        return None
    x, y = (sorted({cell[axis] for cell in cells}) for axis in (0, 1))
    return (x[0] + x[-1]) / 2, (y[0] + y[-1]) / 2


def _apart(one: Place, other: Place) -> float:
    return float(haversine_deg(one[0], one[1], other[0], other[1]))


def _stated_deg(preset: Preset, kind: str, after: str) -> float | None:
    """What the preset's sentence says about it; None where it says nothing."""
    assert preset.steady is not None
    if kind == "worst":
        return preset.steady.worst_deg if after == AFTER[2] else None
    said = dict(
        zip(
            AFTER,
            (preset.steady.short_deg, preset.steady.long_deg, preset.steady.day_deg),
            strict=False,
        )
    )
    return said.get(after)


def table(count: int, lines: Lines) -> list[list[str]]:
    """Rows: preset and kind of place, then the error after each time."""
    rows = []
    for name, preset in PRESETS.items():
        if preset.steady is None:
            continue
        few = (
            min(count, 12) if "samples" in preset.grant().scopes else count
        )  # errors of fresh noise are much alike
        for kind, places in (("random", random_places(few)), ("worst", worst_places(few))):
            errors = Attack(name).run(places)
            for after, error in errors.items():
                stated = _stated_deg(preset, kind, after)
                met = stated is None or error >= 0.85 * stated
                lines.keep(
                    {
                        "preset": name,
                        "places": kind,
                        "after": after,
                        "error_deg": round(error, 3),
                        "stated_deg": stated,
                        "met": met,
                    }
                )
            rows.append([f"`{name}`", kind, *(f"{errors[after]:.2f}" for after in AFTER)])
    return rows


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path, help="a page of the manual to put the table into")
    parser.add_argument("--places", type=int, default=45)
    arguments = parser.parse_args()
    lines = Lines(arguments.json)
    text = markdown(["preset", "places", *AFTER], table(arguments.places, lines))
    print(text)
    if arguments.page is not None:
        put_into(arguments.page, "gatekeeper averaging", text)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
