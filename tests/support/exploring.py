"""A small board of simulated people, for tests of the interactive page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gazeveil
from gazeveil.explore.board import Board, Limits, sliders, take
from gazeveil.gaze.cohort import Cohort

MECHANISMS = ("gaussian:sigma_deg=1|10", "mosaic:piece_s=2,epsilon=10,r_deg=2,crowd=4")

#: Names that must be escaped on a page and must not be on one for sending on.
HOSTILE = "</script><img src=x onerror=alert(1)>"


def people() -> Cohort:
    """Four people, one with a hostile name, three stimuli."""
    made = gazeveil.simulate(4, 3, 8, 60, task="reading", seed=1)
    from dataclasses import replace

    first = next(iter(made.people))
    return Cohort([replace(r, person=HOSTILE) if r.person == first else r for r in made])


@pytest.fixture(scope="module")
def board() -> Iterator[Board]:
    made = Board(take(people(), Limits()), sliders(60.0, MECHANISMS))
    yield made
    made.close()
