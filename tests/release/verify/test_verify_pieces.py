"""Whatever says which pieces belong together is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gazeveil.gaze.geometry import Sphere
from gazeveil.release.verify.people import ReleasedRecording, check_pieces

WHOLE = tuple(
    ReleasedRecording(
        f"{s}-{k}-{i}", s, "1", "", 60.0, Sphere(), k * 6 * 10**9, 300, (), f"{s}{k}{i}"
    )
    for s in ("a", "b")
    for k in range(3)
    for i in range(4)
)


def test_pieces_that_are_alike_pass() -> None:
    assert check_pieces(WHOLE).passed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"person": WHOLE[5].person}, "more than one piece"),
        ({"session": "2"}, "differ in session"),
        ({"samples": 299}, "differ in session, length"),
        ({"rate_hz": 60.01}, "rate"),
        ({"start_ns": 1}, "different numbers"),
    ],
)
def test_one_piece_that_differs_is_found(change: dict[str, object], said: str) -> None:
    broken = (replace(WHOLE[0], **change), *WHOLE[1:])  # type: ignore[arg-type]
    (failure,) = check_pieces(broken).failures
    assert said in failure


def test_a_missing_piece_is_found() -> None:
    assert "different numbers" in check_pieces(WHOLE[1:]).failures[0]
