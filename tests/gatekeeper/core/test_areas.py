"""The areas of apps: cells, edges that are moved outward, and the edge of the sphere."""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil.gatekeeper import Denied, PublicEvent
from gazeveil.gaze.geometry import Screen, Sphere, haversine_deg
from gazeveil.gaze.grid import Grid
from tests.support.wearers import keeper, looks

SCREEN = Screen(1920, 1080, 530, 300, 600)


# --- grid and areas
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resolution", [0.5, 1.0, 5.0, 7.3])
@pytest.mark.parametrize("space", [Sphere(), SCREEN])
def test_a_cell_holds_its_middle_and_is_nowhere_much_smaller_than_the_resolution(
    resolution: float, space: Sphere | Screen
) -> None:
    grid = Grid(space, resolution)
    rng = np.random.default_rng(1)
    x = grid.left_deg + rng.random(2000) * grid.width_deg
    y = grid.top_deg + rng.random(2000) * grid.height_deg
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        cell = grid.cell(a, b)
        assert cell is not None
        middle = grid.centre(*cell)
        assert grid.cell(*middle) == cell
    assert min(grid.column_deg, grid.row_deg) >= resolution
    if isinstance(space, Sphere):
        for row in range(1, grid.rows - 1):
            first, second = grid.cell(0.0, (row + 0.5) * grid.row_deg), None
            for column in range(grid.columns):
                other = grid.cell((column + 0.5) * grid.column_deg, (row + 0.5) * grid.row_deg)
                if other != first:
                    second = other
                    break
            assert first is not None
            if second is not None:
                apart = haversine_deg(*grid.centre(*first), *grid.centre(*second))
                assert apart >= 0.69 * resolution or apart > 100  # a row of two cells


def test_a_place_outside_a_screen_has_no_cell() -> None:
    grid = Grid(SCREEN, 5.0)
    assert grid.cell(-60.0, 0.0) is None
    assert grid.cell(0.0, 40.0) is None


def test_areas_are_snapped_outward_and_a_snapped_area_stays_as_it_is() -> None:
    k = keeper("a")
    area = k.app("a").register_area("shelf", 91.0, 62.0, 11.0, 12.0)
    assert (area.x_deg, area.y_deg, area.width_deg, area.height_deg) == (90.0, 60.0, 15.0, 15.0)
    again = k.app("a").register_area(
        "shelf", area.x_deg, area.y_deg, area.width_deg, area.height_deg
    )
    assert (again.x_deg, again.y_deg, again.width_deg, again.height_deg) == (90.0, 60.0, 15.0, 15.0)
    screen = keeper("a", space=SCREEN)
    first = screen.app("a").register_area("button", -3.0, -4.0, 10.0, 10.0)
    second = screen.app("a").register_area(
        "button", first.x_deg, first.y_deg, first.width_deg, first.height_deg
    )
    assert second == type(second)(
        2,
        *[
            getattr(first, n)
            for n in ("name", "x_deg", "y_deg", "width_deg", "height_deg", "since_ms")
        ],
    )
    assert first.x_deg <= -3.0
    assert first.x_deg + first.width_deg >= 7.0


def test_an_area_that_is_too_small_is_widened_around_its_middle() -> None:
    area = keeper("a").app("a").register_area("x", 100, 80, 0.1, 30)
    assert (area.x_deg, area.width_deg, area.y_deg, area.height_deg) == (95, 15, 80, 30)


@pytest.mark.parametrize(
    "rectangle",
    [
        (0, 0, 0, 20),
        (0, 0, -20, 20),
        (0, 0, float("nan"), 20),
        (float("inf"), 0, 20, 20),
        ("x", 0, 20, 20),
        (0, 178, 20, 20),
        (0, 400, 20, 20),
    ],
)
def test_areas_without_sides_or_nowhere_are_refused(
    rectangle: tuple[float, float, float, float],
) -> None:
    with pytest.raises(Denied) as no:
        keeper("a").app("a").register_area("x", *rectangle)
    assert no.value.code == "area"


def test_an_app_has_no_more_areas_than_its_grant_and_ids_are_not_used_again() -> None:
    app = keeper("a", grants={"areas": 2}).app("a")
    one, two = app.register_area("1", 0, 0, 10, 10), app.register_area("2", 20, 20, 10, 10)
    with pytest.raises(Denied, match="2 areas"):
        app.register_area("3", 40, 40, 10, 10)
    app.remove_area(one.id)
    assert app.areas() == (two,)
    assert app.register_area("3", 40, 40, 10, 10).id == 3


def test_an_area_that_goes_round_at_360_has_both_sides() -> None:
    k = keeper("a")
    app = k.app("a")
    area = app.register_area("behind", 350.0, 80.0, 20.0, 20.0)
    k.push(*looks([(352, 92), (8, 92), (92, 92), (358, 92), (180, 92)]))
    k.lost()
    assert [(f.x_deg, f.y_deg) for f in app.get_fixations(area.id)] == [
        (352.5, 92.5),
        (7.5, 92.5),
        (357.5, 92.5),
    ]
    assert app.metrics(area.id).visits == 2


def test_a_fixation_across_the_edge_of_the_sphere_is_where_it_was_and_not_on_the_other_side() -> (
    None
):
    t = np.arange(100) * 10_000_000
    x = np.where(np.arange(100) % 2, 359.0, 3.0)  # mean direction 1 degree, mean number 181
    k = keeper("a")
    app = k.app("a")
    seen: list[PublicEvent] = []
    app.add_event_listener("fixation", seen.append)
    quiet = np.convolve(np.where(x > 180, x - 360, x), np.ones(10) / 10, mode="same") % 360
    k.push(t, quiet, np.full(100, 92.0))
    k.lost()
    assert {e.x_deg for e in seen} == {2.5}
