"""Regions and tiles at jumps of the eye that look like no saccade: one step of a mouse, steps
stretched by a machine that stalls.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from gazeveil.gaze.geometry import Screen, Sphere
from tests.support.wearers import Trace, keeper

SCREEN = Screen(1280, 720, 530, 298, 600)

#: Places a look goes to, in degrees from the middle, and their regions.
PLACES = (((-22.0, 0.0), "left"), ((22.0, 0.0), "right"), ((0.0, 0.0), "at-you"))


def stepped(steps: int, each: int, stall_s: float, space: Sphere | Screen) -> tuple[Trace, int]:
    """Rests of 1 s at the places, with so many steps between them of so many samples each, and a
    stall after each sample of a step; the samples of one rest come last.
    """
    middle = np.array((180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0))
    start = np.array((0.0, -8.0))
    path, waits = [start] * 45, [0.0] * 45
    for before, after in pairwise((start, *(np.array(place) for place, _ in PLACES))):
        for step in range(1, steps + 1):
            path += [before + (after - before) * step / (steps + 1)] * each
            waits += [stall_s] * each
        path += [after] * 60
        waits += [0.0] * 60
    t_s = np.cumsum(1 / 60 + np.array(waits))
    x_deg, y_deg = (np.array(path) + middle).T
    return (np.round(1e9 * t_s).astype(np.int64), x_deg, y_deg), steps * each + 60


@pytest.mark.parametrize("space", [Sphere(), SCREEN])
@pytest.mark.parametrize("stall_s", [0.0, 0.2])
@pytest.mark.parametrize("each", [2, 4])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_an_eye_that_rests_is_told_however_it_came_there(
    steps: int, each: int, stall_s: float, space: Sphere | Screen
) -> None:
    (t, x, y), length = stepped(steps, each, stall_s, space)
    with keeper("a", rate_hz=60.0, space=space) as k:
        regions: list[str] = []
        tiles: list[tuple[int | None, int]] = []
        k.app("a").on_region(lambda region, _: regions.append(region))
        k.app("a").on_tile(lambda tile, t_ms: tiles.append((tile, t_ms)))
        k.push(t[:45], x[:45], y[:45])
        for number, (_, region) in enumerate(PLACES):
            part = slice(45 + number * length, 45 + (number + 1) * length)
            for i in range(part.start, part.stop):
                k.push(int(t[i]), float(x[i]), float(y[i]))
            assert regions[-1] == region
        across = (x[-1] - (0.0 if isinstance(space, Sphere) else -space.width_deg / 2)) / (
            space.width_deg / 8
        )
        last, _ = tiles[-1]
        assert last is not None
        assert last % 8 in (int(across), int(across - 0.1)), "a look at an edge stays as it was"
        assert all(t_ms % 100 == 0 for _, t_ms in tiles)


def test_a_rest_is_told_alike_however_samples_are_cut() -> None:
    (t, x, y), _ = stepped(2, 2, 0.0, SCREEN)
    told = []
    for size in (1, 7, len(t)):
        with keeper("a", rate_hz=60.0, space=SCREEN) as k:
            regions: list[str] = []
            k.app("a").on_region(lambda region, _, heard=regions: heard.append(region))
            for i in range(0, len(t), size):
                k.push(t[i : i + size], x[i : i + size], y[i : i + size])
            told.append(regions)
    assert told[0] == told[1] == told[2]
    assert {"left", "right"} < set(told[0])


def test_eyes_that_are_first_seen_at_rest_are_open() -> None:
    with keeper("a", rate_hz=60.0, space=SCREEN) as k:
        heard: list[str] = []
        k.app("a").on_region(lambda region, _: heard.append(region))
        (t, x, y), _ = stepped(1, 1, 0.0, SCREEN)
        k.push(t[:30], x[:30], y[:30])
        assert heard == ["closed", "at-you"]


def test_what_an_eye_passes_without_resting_is_not_told() -> None:
    with keeper("a", rate_hz=60.0, space=SCREEN) as k:
        regions: list[str] = []
        k.app("a").on_region(lambda region, _: regions.append(region))
        t = (np.arange(150) * 1e9 / 60).astype(np.int64)
        x = np.clip((np.arange(150) - 60) * 20 / 60, 0.0, 21.0) - 21.0  # 20 degrees a second
        k.push(t[:110], x[:110], np.zeros(110))
        assert regions[-1] == "left", "an eye that follows something has not landed"
        k.push(t[110:], x[110:], np.zeros(40))
        assert regions[-1] == "at-you"
