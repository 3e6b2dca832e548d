"""The page as one file: whole, and without anybody's gaze."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import ParameterError
from gazeveil.explore.board import Board, Limits, sliders, take
from gazeveil.explore.server import save, stand_ins
from tests.support.exploring import HOSTILE, board  # noqa: F401


def figures_in(path: Path) -> dict[str, object]:
    text = path.read_text(encoding="utf-8")
    held = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text)
    assert held is not None
    figures: dict[str, object] = json.loads(held[1])
    return figures


@pytest.fixture(scope="module")
def sent(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(board, tmp_path_factory.mktemp("sent") / "page.html")


def test_no_gaze_and_no_name_of_anybody_is_in_a_page_for_sending_on(
    board: Board, sent: Path
) -> None:
    figures = figures_in(sent)
    own = {
        json.dumps(board.picture([0, 1, 2, 3], p, s, text)[key])
        for p in range(4)
        for s in range(3)
        for text in (None, *board.sliders[0].texts)
        for key in ("trace", "map")
    }
    text = json.dumps(figures)
    assert not [gaze for gaze in own if gaze in text]
    assert HOSTILE not in sent.read_text(encoding="utf-8")
    assert not [name for name in (*board.people, *board.stimuli) if f'"{name}"' in text]


def test_the_pictures_do_not_depend_on_the_recordings(board: Board) -> None:
    screen = gazeveil.Screen(1920, 1080, 530, 300, 613.7)
    other = gazeveil.simulate(4, 3, 8, 61.3, task="reading", space=screen, seed=99)
    first, second = stand_ins(board.cohort), stand_ins(other)
    assert first[0].space == second[0].space
    assert second[0].rate_hz == 60
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.x_deg, two.x_deg)


def test_the_figures_of_attackers_are_those_of_the_people(board: Board, sent: Path) -> None:
    figures = figures_in(sent)
    values = figures["attacks"][0]["values"]  # type: ignore[index]
    assert values == [board.attack([0, 1, 2, 3], t) for t in board.sliders[0].texts]
    assert values[0]["n"] == 4


def test_a_refusal_in_a_page_for_sending_on_names_nobody(tmp_path: Path) -> None:
    made = gazeveil.simulate(3, 2, 5, 60, task="reading", seed=1)
    small = Board(take(made, Limits()), sliders(60.0, ["mosaic:epsilon=10,r_deg=2"]))
    try:
        own = str(small.attack([0, 1, 2], small.sliders[0].texts[0])["refusal"])
        assert made.stimuli[0] in own
        path = save(small, tmp_path / "page.html")
    finally:
        small.close()
    refused = figures_in(path)["attacks"][0]["values"][0]["refusal"]  # type: ignore[index]
    assert made.stimuli[0] not in refused


@pytest.mark.parametrize("name", ["page.txt", "page", "."])
def test_another_kind_of_file_is_refused(board: Board, tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match="HTML"):
        save(board, tmp_path / name)
