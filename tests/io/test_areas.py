"""Areas of interest in files: boxes, their units and edges, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gazeveil import Screen, Sphere
from gazeveil.errors import DataError, FormatError
from gazeveil.io.areas import Area, grid, place, read_areas
from tests.support.recordings import ROOT

SCREEN = Screen(1000, 500, 400.0, 200.0, 600.0)


# --- boxes
# --------------------------------------------------------------------------------------------------


def test_a_box_holds_its_left_and_top_edge_and_not_the_others() -> None:
    box = place([Area("*", "a", 10, 20, 30, 40)], Sphere())
    assert box.hold([10, 30, 29.999, 10, 10], [20, 20, 39.999, 40, np.nan])[:, 0].tolist() == [
        True,
        False,
        True,
        False,
        False,
    ]


def test_a_box_over_the_seam_holds_both_sides_of_it_and_nothing_in_front() -> None:
    box = place([Area("*", "a", 350, 80, 10, 100)], Sphere())
    assert box.hold([350, 359.9, 0, 9.9, 10, 180, 349.9], [90] * 7)[:, 0].tolist() == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_a_box_of_a_whole_turn_holds_every_longitude() -> None:
    box = place([Area("*", "a", 0, 80, 360, 100)], Sphere())
    assert box.hold(np.linspace(0, 359.99, 50), np.full(50, 90.0)).all()


@pytest.mark.parametrize("space", [Sphere(), SCREEN])
def test_a_grid_covers_every_place_once(space: Sphere | Screen) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, space.width_deg, 2000), rng.uniform(0, space.height_deg, 2000)
    if isinstance(space, Screen):
        x, y = x - space.width_deg / 2, y - space.height_deg / 2
    assert (grid(space, 3, 5).hold(x, y).sum(axis=1) == 1).all()


def test_units_mean_the_same_place() -> None:
    deg = place([Area("*", "a", 90, 45, 270, 135)], Sphere())
    for other in (
        Area("*", "a", 0.25, 0.25, 0.75, 0.75, "fraction"),
        Area("*", "a", 1024, 512, 3072, 1536, "px", (4096, 2048)),
        Area("*", "a", -90, 45, 90, -45, "lonlat"),
    ):
        box = place([other], Sphere())
        for edge in ("left_deg", "top_deg", "right_deg", "bottom_deg"):
            np.testing.assert_allclose(getattr(box, edge), getattr(deg, edge), atol=1e-12)


def test_pixels_on_a_screen_are_the_screens_own_unless_the_picture_has_others() -> None:
    x, y = SCREEN.from_px([250, 750], [100, 400])
    for area in (
        Area("*", "a", 250, 100, 750, 400, "px"),
        Area("*", "a", 500, 400, 1500, 1600, "px", (2000, 2000)),
    ):
        box = place([area], SCREEN)
        np.testing.assert_allclose([box.left_deg[0], box.right_deg[0]], x, atol=1e-12)
        np.testing.assert_allclose([box.top_deg[0], box.bottom_deg[0]], y, atol=1e-12)


@pytest.mark.parametrize(
    ("area", "space", "words"),
    [
        (Area("s", "a", 10, 20, 30, 20), Sphere(), "is empty"),
        (Area("s", "a", 10, 40, 30, 20), Sphere(), "is empty"),
        (Area("s", "a", 10, 20, 5, 40), SCREEN, "is empty"),
        (Area("s", "a", 1000, 200, 1400, 400), Sphere(), "say so: unit"),
        (Area("s", "a", -10, 20, 10, 40), Sphere(), "say so: unit"),
        (Area("s", "a", 100, 20, 300, 40), SCREEN, "say so: unit"),
        (Area("s", "a", 10, 20, 30, 40, "px"), Sphere(), "size_px"),
        (Area("s", "a", -10, 20, 30, 10, "lonlat"), SCREEN, "on a screen"),
    ],
)
def test_a_box_that_has_no_place_is_refused_in_one_sentence(
    area: Area, space: Sphere | Screen, words: str
) -> None:
    with pytest.raises(DataError, match=words):
        place([area], space)


# --- files
# --------------------------------------------------------------------------------------------------

TOML = """
unit = "px"
size_px = [4096, 2048]
[[area]]
stimulus = "beach"
name = "boat"
left = 10
top = 20
right = 30
bottom = 40.5
[[area]]
name = "sky"
unit = "deg"
left = 0
top = 0
right = 360
bottom = 60
"""


def test_toml_json_and_csv_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(TOML)
    areas = [
        {"stimulus": "beach", "name": "boat", "left": 10, "top": 20, "right": 30, "bottom": 40.5}
    ]
    sky = {"name": "sky", "unit": "deg", "left": 0, "top": 0, "right": 360, "bottom": 60}
    areas.append(sky)  # type: ignore[arg-type]
    (tmp_path / "a.json").write_text(
        json.dumps({"unit": "px", "size_px": [4096, 2048], "area": areas})
    )
    (tmp_path / "a.csv").write_text(
        "stimulus;name;unit;width_px;height_px;left;top;right;bottom\n"
        "beach;boat;px;4096;2048;10;20;30;40.5\n"
        "*;sky;deg;4096;2048;0;0;360;60\n"
    )
    expected = (
        Area("beach", "boat", 10, 20, 30, 40.5, "px", (4096, 2048)),
        Area("*", "sky", 0, 0, 360, 60, "deg", (4096, 2048)),
    )
    for ending in ("toml", "json", "csv"):
        assert read_areas(tmp_path / f"a.{ending}") == expected, ending


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "image,aoi,x_min,y_min,x_max,y_max\nalley.png,door,1,2,3,4\n",
            [Area("alley.png", "door", 1, 2, 3, 4)],
        ),
        (
            "IMG_INDEX,AOI,Left_px,Top_px,Right_px,Bottom_px\n7,1,1,2,3,4\n",
            [Area("7", "1", 1, 2, 3, 4, "px")],
        ),
        ("img_index\tx\ty\twidth\theight\n7\t1\t2\t3\t4\n", [Area("7", "area 1", 1, 2, 4, 6)]),
        ("x1,y1,x2,y2\n1,2,3,4\n", [Area("*", "area 1", 1, 2, 3, 4)]),
        (
            "image,AOI1_x1,AOI1_y1,AOI1_x2,AOI1_y2,AOI2_x1,AOI2_y1,AOI2_x2,AOI2_y2\n"
            "alley,1,2,3,4,5,6,7,8\n"
            "beach,1,2,3,4,,,,\n",
            [
                Area("alley", "aoi1", 1, 2, 3, 4),
                Area("alley", "aoi2", 5, 6, 7, 8),
                Area("beach", "aoi1", 1, 2, 3, 4),
            ],
        ),
    ],
)
def test_tables_of_boxes_go_by_the_names_of_their_columns(
    tmp_path: Path, text: str, expected: list[Area]
) -> None:
    (tmp_path / "AOIs.csv").write_text(text)
    assert list(read_areas(tmp_path / "AOIs.csv")) == expected


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "unit = [", "not TOML"),
        ("a.toml", 'unit = "deg"', "no list 'area'"),
        ("a.toml", "[[area]]\nleft = 1\ntop = 2\nright = 3\n", "'bottom' of area 1 is missing"),
        (
            "a.toml",
            '[[area]]\nleft = "x"\ntop = 2\nright = 3\nbottom = 4\n',
            "'left' of area 1 is not a number",
        ),
        ("a.toml", "[[area]]\nlfet = 1\n", "'lfet' of area 1 is not known"),
        (
            "a.toml",
            'unt = "px"\n[[area]]\nleft = 1\ntop = 2\nright = 3\nbottom = 4\n',
            "'unt' is not known",
        ),
        (
            "a.toml",
            'unit = "cm"\n[[area]]\nleft = 1\ntop = 2\nright = 3\nbottom = 4\n',
            "the unit 'cm' is not known",
        ),
        ("a.toml", "size_px = 5\n[[area]]\nleft = 1\ntop = 2\nright = 3\nbottom = 4\n", "size_px"),
        ("a.json", '{"area": [', "not whole JSON"),
        ("a.json", "[1, 2]", "an object was expected"),
        ("a.json", '{"area": []}', "holds no area"),
        ("a.json", '{"img.jpg": {"target_bbox": [1, 2]}}', "has not 4 numbers"),
        ("a.csv", "stimulus,up,down\nbeach,1,2\n", "do not say where the boxes are"),
        ("a.csv", "left,top,right,bottom\n1,2,3\n", "row 2 has 3 cells"),
        ("a.csv", "left,top,right,bottom\n1,2,3,x\n", "'bottom' of row 2 is not a number"),
        ("a.csv", "left,top,right,bottom\n", "holds no area"),
        ("a.csv", "# nothing\n", "do not say where the boxes are"),
    ],
)
def test_a_file_that_holds_no_areas_is_refused_in_one_sentence(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=words):
        read_areas(tmp_path / name)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FormatError, match=r"nowhere\.toml"):
        read_areas("nowhere.toml")


def test_the_example_in_the_repository_can_be_placed_on_a_sphere() -> None:
    areas = read_areas(ROOT / "examples" / "areas.toml")
    assert len(place(areas, Sphere())) == len(areas) == 4
