"""A newcomer with an empty environment sees what the page of the first ten minutes shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import newcomer


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("python", newcomer.PYTHONS)
def test_the_first_ten_minutes_from_a_wheel(python: str, tmp_path: Path) -> None:
    if (command := newcomer.find(python)) is None:
        pytest.skip(f"{python} is not installed")
    wheel = newcomer.build_wheel(tmp_path, python)
    assert newcomer.walk(command, wheel, tmp_path) == []


def test_what_was_compiled_is_found(tmp_path: Path) -> None:
    (tmp_path / "gaze_1").mkdir()
    assert newcomer.compiled_in(tmp_path) == []
    (tmp_path / "gaze_1" / "render.draw-3.py311.1.nbc").touch()
    assert newcomer.compiled_in(tmp_path) == ["compiled: render.draw-3.py311.1.nbc"]
