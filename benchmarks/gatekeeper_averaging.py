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

Those places lie so far apart that no cell belongs to two, so the attack cannot see what neighbours
tell of one another. The second attack, on real people's gaze over dense neighbouring cells, does:
what an app is told are landmarks, as if it knew nothing of where they are but a rough place, and it
looks for the injective map from landmarks to cells that makes their rough places and other people's
steps between cells likeliest (:func:`landmarks`). Its control is the mechanism that it took down:
each cell had one noisy place for a day, and every step between cells was told.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import gatekeeper_presets
import gazeveil
from gatekeeper_presets import COHORTS, COLUMNS, REGIONS, ROWS, View
from gazeveil.gatekeeper import PRESETS, DeviceLimits, Gatekeeper, Ledger, Policy, Target
from gazeveil.gatekeeper.core.areas import LEVELS
from gazeveil.gatekeeper.core.selection import LEAST_DWELL_MS
from gazeveil.gatekeeper.ledger.ledger import DAY_NS
from gazeveil.gatekeeper.policy.grant import CURRENCIES, Preset
from gazeveil.gaze.geometry import Screen, haversine_deg
from gazeveil.gaze.recording import Recording
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
    regions: list[Place] = field(default_factory=list)


def random_places(count: int, seed: int = 1) -> list[Place]:
    """Places anywhere around the horizon, no two in neighbouring cells."""
    return _around(count, seed, _CELL_DEG)


def worst_places(count: int, seed: int = 1) -> list[Place]:
    """Places near corners where four cells meet."""
    return _around(count, seed, 0.1)


def _around(count: int, seed: int, off_deg: float) -> list[Place]:
    """Places up to so far from corners of cells, which are so far apart that no cell belongs to
    two: what neighbours tell of one another is what :func:`landmarks` is for.
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
        self.region, self.offer = "closed", None
        if "region" in grant.scopes:
            self.app.on_region(lambda region, _: setattr(self, "region", region))
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
        if "select" in self.scopes:
            self._choose(seen)
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
        if "region" in self.scopes:
            across, down = REGIONS[self.region]
            seen.regions.append((180.0 + across, 90.0 + down))
        for text, blocks in kept.items():
            seen.streams[text].append(np.concatenate(blocks))
        for stream in opened:
            stream.close()
        self._away(place, seen)
        return early

    def _choose(self, seen: Seen) -> None:
        """Offer things all over the view, of which the next look chooses one."""
        self.now_ns += 60 * 10**9  # ten choices a minute
        sides = 360 / COLUMNS, 180 / ROWS
        middles = {
            f"{i} {j}": ((i + 0.5) * sides[0], (j + 0.5) * sides[1])
            for i in range(COLUMNS)
            for j in range(ROWS)
        }
        things = [
            Target(name, x - sides[0] / 2, y - sides[1] / 2, *sides)
            for name, (x, y) in middles.items()
        ]
        if self.offer is not None and self.offer.ended is None:
            self.offer.close()
        self.offer = self.app.select(
            things,
            lambda name: seen.cells.append(middles[name]),
            by="dwell",
            dwell_ms=LEAST_DWELL_MS,
        )

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
                    short.regions = list(seen.regions)
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
        if "region" in self.scopes:
            yield lambda seen: _of_cells(seen.regions)
        if self.scopes & {"events", "fixations", "select"}:
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


# --- landmarks
# --------------------------------------------------------------------------------------------------


#: Noise of a cell's place in the mechanism that was withdrawn: places lay 9.9 degrees off, in the
#: median.
NOISE_DEG = 8.2

#: Recordings of one person that follow one another: of GazeCom 3.3 minutes.
SESSION = 10

#: Rounds of annealing, what the likelihood of steps is divided by at its begin and its end, and how
#: often it begins anew.
ROUNDS, HEATS, TRIES = 400_000, (1000.0, 3.0), 3

#: People who are looked for.
WEARERS = 12


@dataclass
class Cells:
    """A grid over a screen, and how other people's gaze goes over it."""

    space: Screen
    side_deg: float = _CELL_DEG

    def __post_init__(self) -> None:
        self.columns, self.rows = (
            math.ceil(side / self.side_deg)
            for side in (self.space.width_deg, self.space.height_deg)
        )
        column, row = np.meshgrid(np.arange(self.columns), np.arange(self.rows))
        corner = -np.array([self.space.width_deg, self.space.height_deg]) / 2
        self.centres = corner + (np.stack((column.ravel(), row.ravel()), axis=1) + 0.5) * (
            self.side_deg
        )

    def of(self, x_deg: NDArray[np.float64], y_deg: NDArray[np.float64]) -> NDArray[np.int64]:
        """Numbers of cells; samples that are lost have one too."""
        column = np.nan_to_num((x_deg + self.space.width_deg / 2) // self.side_deg)
        row = np.nan_to_num((y_deg + self.space.height_deg / 2) // self.side_deg)
        column, row = np.clip(column, 0, self.columns - 1), np.clip(row, 0, self.rows - 1)
        return np.asarray(row * self.columns + column, dtype=np.int64)

    def steps(self, recordings: Iterable[Recording]) -> NDArray[np.float64]:
        """How often gaze went from each cell to each other."""
        counts = np.zeros((len(self.centres),) * 2)
        for recording in recordings:
            cell = self.of(recording.x_deg[recording.valid], recording.y_deg[recording.valid])
            went = np.flatnonzero(np.diff(cell))
            np.add.at(counts, (cell[went], cell[went + 1]), 1)
        return counts


def withdrawn(recordings: Sequence[Recording], cells: Cells, seed: int) -> list[View]:
    """What the withdrawn mechanism told of one person's day: each cell has one noisy place."""
    rng = np.random.default_rng(seed)
    places = cells.centres + rng.normal(0, NOISE_DEG, cells.centres.shape)
    told = []
    for recording in recordings:
        x, y = places[cells.of(recording.x_deg, recording.y_deg)].T.copy()
        x[~recording.valid] = y[~recording.valid] = np.nan
        told.append(View(x, y))
    return told


@njit
def _steps(
    mark: int, taken_for: NDArray[np.int64], went: NDArray[np.float64], likely: NDArray[np.float64]
) -> float:
    """What the steps from one landmark and to it add to the likelihood."""
    cell, total = taken_for[mark], 0.0
    for other in range(len(taken_for)):
        total += went[mark, other] * likely[cell, taken_for[other]]
        total += went[other, mark] * likely[taken_for[other], cell]
    return total


@njit
def _annealed(
    near: NDArray[np.float64],
    went: NDArray[np.float64],
    likely: NDArray[np.float64],
    taken_for: NDArray[np.int64],
    holds: NDArray[np.int64],
    heats: NDArray[np.float64],
    draws: NDArray[np.float64],
) -> tuple[float, NDArray[np.int64]]:
    """The likeliest map met on the way, and how much likelier it is than the first. Steps count
    little at first, so that the landmarks' own places say which way round the map is.
    """
    now, best, found = 0.0, 0.0, taken_for.copy()
    for i in range(len(heats)):
        mark, cell = int(draws[i, 0] * len(taken_for)), int(draws[i, 1] * len(holds))
        before, other = taken_for[mark], holds[cell]
        if cell == before:
            continue
        by_place = near[mark, cell] - near[mark, before]
        by_steps = -_steps(mark, taken_for, went, likely)
        there, back = 0.0, 0.0
        if other >= 0:
            by_place += near[other, before] - near[other, cell]
            by_steps -= _steps(other, taken_for, went, likely)
            # The steps between the two are counted twice, before and after.
            there, back = went[mark, other], went[other, mark]
            taken_for[other] = before
        taken_for[mark] = cell
        by_steps += (there - back) * (likely[before, cell] - likely[cell, before])
        by_steps += _steps(mark, taken_for, went, likely)
        if other >= 0:
            by_steps += _steps(other, taken_for, went, likely)
        if by_place + by_steps / heats[i] > np.log(draws[i, 2]):
            holds[cell], holds[before] = mark, other
            now += by_place + by_steps
            if now > best:
                best, found = now, taken_for.copy()
        else:
            taken_for[mark] = before
            if other >= 0:
                taken_for[other] = cell
    return best, found


def landmarks(
    views: Sequence[View],
    steps: NDArray[np.float64],
    cells: Cells,
    sd_deg: float,
    rounds: int = ROUNDS,
    seed: int = 1,
) -> list[View]:
    """What was told of one person, each landmark moved to the cell that it is taken for.

    The map is injective. It begins as the cheapest assignment by the landmarks' own places and how
    often they and the cells are visited, and is annealed: a landmark moves to another cell, and
    one that is there goes where it came from.

    Parameters
    ----------
    views : sequence of View
        What was told, in its order.
    steps : array
        Other people's steps between cells.
    cells : Cells
        The grid.
    sd_deg : float
        How far what is told lies from gaze, in each direction.
    """
    known = [np.stack((view.x_deg, view.y_deg), axis=1)[view.known] for view in views]
    places, all_marks = np.unique(np.concatenate(known), axis=0, return_inverse=True)
    marks = np.split(all_marks.ravel(), np.cumsum([len(one) for one in known])[:-1])
    went = np.zeros((len(places),) * 2)
    for mark in marks:
        at = np.flatnonzero(np.diff(mark))
        np.add.at(went, (mark[at], mark[at + 1]), 1)
    visits = steps.sum(axis=0) + 0.5
    # What nobody did before is not impossible: as likely as steps so far anywhere.
    apart = np.linalg.norm(cells.centres[:, None] - cells.centres[None], axis=2)
    usual = np.exp(-apart / 5.0) * visits
    usual /= usual.sum(axis=1, keepdims=True)
    likely = np.log((steps + 2 * usual) / (steps + 2 * usual).sum(axis=1, keepdims=True))
    near = -((places[:, None] - cells.centres[None]) ** 2).sum(axis=2) / (2 * sd_deg**2)
    often = (went.sum(axis=0) + 1)[:, None] * np.log(visits / visits.sum())[None]
    taken_for = linear_sum_assignment(-(near + 0.3 * often))[1]
    holds = np.full(len(cells.centres), -1)
    holds[taken_for] = np.arange(len(places))
    heats = np.geomspace(*HEATS, rounds)
    tried = [
        _annealed(near, went, likely, taken_for.copy(), holds.copy(), heats, draws)
        for draws in np.random.default_rng(seed).random((TRIES, rounds, 3))
    ]
    found = max(tried, key=lambda one: one[0])[1]
    moved = []
    for view, mark in zip(views, marks, strict=True):
        x, y = np.full(len(view.x_deg), np.nan), np.full(len(view.x_deg), np.nan)
        x[view.known], y[view.known] = cells.centres[found[mark]].T
        moved.append(View(x, y))
    return moved


def off_deg(recordings: Sequence[Recording], views: Sequence[View]) -> NDArray[np.float64]:
    """How far what is believed lies from gaze, at each moment."""
    return np.concatenate(
        [
            np.hypot(recording.x_deg - view.x_deg, recording.y_deg - view.y_deg)[
                recording.valid & view.known
            ]
            for recording, view in zip(recordings, views, strict=True)
        ]
    )


def attacked(
    people: Mapping[str, Sequence[Recording]],
    tell: Callable[[str], Sequence[View]],
    wearers: Sequence[str],
    cells: Cells,
    rounds: int = ROUNDS,
) -> tuple[float, float]:
    """Median errors over moments and people: of what is told, and of landmarks put on the map."""
    views = {name: list(tell(name)) for name in wearers}
    steps = {name: cells.steps(recordings) for name, recordings in people.items()}
    told = {name: off_deg(people[name], views[name]) for name in wearers}
    found = []
    for name in wearers:
        others = [told[other] for other in wearers if other != name]
        sd_deg = float(np.sqrt(np.mean(np.concatenate(others) ** 2) / 2))
        rest = sum((steps[other] for other in people if other != name), np.zeros_like(steps[name]))
        moved = landmarks(_on_cells(views[name], cells), rest, cells, sd_deg, rounds)
        found.append(float(np.median(off_deg(people[name], moved))))
    return float(np.median(np.concatenate(list(told.values())))), float(np.median(found))


def _on_cells(views: Sequence[View], cells: Cells) -> Sequence[View]:
    """The same, at middles of cells where it is more places than there are cells."""
    known = [np.stack((v.x_deg, v.y_deg), axis=1)[v.known] for v in views]
    if len(np.unique(np.concatenate(known), axis=0)) <= len(cells.centres):
        return views
    coarse = []
    for view in views:
        x, y = np.full(len(view.x_deg), np.nan), np.full(len(view.x_deg), np.nan)
        x[view.known], y[view.known] = cells.centres[
            cells.of(view.x_deg[view.known], view.y_deg[view.known])
        ].T
        coarse.append(View(x, y))
    return coarse


def landmark_table(data: Path, lines: Lines) -> list[list[str]]:
    """Rows: what is told, and the median errors as told and with the landmarks' map."""
    people: dict[str, list[Recording]] = defaultdict(list)
    for recording in gazeveil.read(data / COHORTS["screen"]):
        if len(people[recording.person]) < SESSION:
            people[recording.person].append(recording)
    wearers = sorted(people)[:WEARERS]
    cells = Cells(next(iter(people.values()))[0].space)
    rows = []
    for name in ("withdrawn", *PRESETS):
        if name == "withdrawn":
            seeds = {person: seed for seed, person in enumerate(wearers)}
            told, found = attacked(
                people, lambda p, s=seeds: withdrawn(people[p], cells, s[p]), wearers, cells
            )
        else:
            told, found = attacked(
                people,
                lambda p, n=name: [gatekeeper_presets.seen(r, n) for r in people[p]],
                wearers,
                cells,
            )
        lines.keep({"landmarks": name, "told_deg": round(told, 2), "found_deg": round(found, 2)})
        shown = "withdrawn: one noisy place a cell" if name == "withdrawn" else f"`{name}`"
        rows.append([shown, f"{told:.1f}°", f"{found:.1f}°"])
    return rows


def _stated_deg(preset: Preset, kind: str, after: str) -> float | None:
    """What the preset's sentence says about it; None where it says nothing."""
    if preset.steady is None:
        return None
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
    if "GAZEVEIL_DATA" in os.environ:
        found = landmark_table(Path(os.environ["GAZEVEIL_DATA"]), lines)
        text = markdown(["preset", "as told", "as landmarks"], found)
        print(text)
        if arguments.page is not None:
            put_into(arguments.page, "gatekeeper landmarks", text)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
