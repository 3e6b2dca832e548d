"""Games against releases of mechanisms that tell a place once: all recordings of a person together,
and whether a cell ever shows a second place.

Everybody looks at one cell in several recordings of unequal rates; the change moves all of those
looks to another cell. If recordings had noise of their own, their mean would tell more than the
promise allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.black_box.claims import claim_of
from gazeveil.privacy.audit.black_box.streams import MOST_EPSILON
from gazeveil.privacy.audit.games import GAME_SCREEN, Game
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.stream.place.audit import evidence, two_cells
from gazeveil.privacy.stream.place.mechanism import GaussianPlace

_PEOPLE = 50  # in one release
_SAMPLES = 30
_RATES_HZ = (60.0, 90.0, 120.0, 1000.0)
_SPOTS: tuple[tuple[Space, tuple[float, float], float], ...] = (
    (Sphere(), (180.0, 90.0), -60.0),
    (GAME_SCREEN, (0.0, 0.0), -30.0),
)


@dataclass(frozen=True)
class PlaceGame:
    """One cell of each space, moved in all recordings of every person, played through
    `release(cohort)`. A spot is a space, the place where everybody looks, and how far to the left
    looks elsewhere are, in degrees.
    """

    mechanism: GaussianPlace
    spots: tuple[tuple[Space, tuple[float, float], float], ...]

    def recording(
        self, person: str, number: int, spot: tuple[Space, tuple[float, float], float], side: int
    ) -> Recording:
        """Looks at the cell and elsewhere in turn."""
        space, near, elsewhere = spot
        centres = two_cells(self.mechanism, space, near)
        x = np.where(_there(), centres[side][0], centres[0][0] + elsewhere)
        rate = _RATES_HZ[number]
        t = np.rint(np.arange(_SAMPLES) * (1e9 / rate)).astype(np.int64)
        return Recording(
            person,
            f"{type(space).__name__} {number}",
            t,
            x,
            np.full(_SAMPLES, centres[0][1]),
            space=space,
            rate_hz=rate,
        )

    def cohort(self, side: int, people: int) -> Cohort:
        """One of two neighbours, for many people at once."""
        return Cohort(
            [
                self.recording(f"p{i}", k, spot, side)
                for i in range(people)
                for spot in self.spots
                for k in range(len(_RATES_HZ))
            ]
        )

    def play(self, side: int, trials: int, seed: int | None) -> Floats:
        """The evidence of each person over all recordings, shape (trials, 3)."""
        rows: list[Floats] = []
        for begin in range(0, trials, _PEOPLE):
            people = min(_PEOPLE, trials - begin)
            released = self.mechanism.release(
                self.cohort(side, people), seed=None if seed is None else seed + 2 * begin + side
            ).data
            sums = np.zeros((people, 3))
            for space, _, _ in self.spots:
                x: dict[str, list[Floats]] = {f"p{i}": [] for i in range(people)}
                for r in released:
                    if r.space == space:
                        x[r.person].append(r.x_deg)
                sums += evidence(
                    *(
                        np.array([np.concatenate([looks[some] for looks in x[p]]) for p in x])
                        for some in (_there(), ~_there())
                    )
                )
            rows.append(sums)
        return np.concatenate(rows)


def _there() -> Bools:
    return np.arange(_SAMPLES) // 3 % 2 == 0


def place_games(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """A place in recordings of one space and of two; a second place for a cell."""
    if not isinstance(mechanism, GaussianPlace):
        return
    for spots in (_SPOTS[:1], _SPOTS):
        game = PlaceGame(mechanism, spots)
        moves = [two_cells(mechanism, space, near) for space, near, _ in spots]
        # A hair more, since centres of a screen's cells are not whole numbers.
        far = max(Fraction(b[0] - a[0]) for a, b in moves) + Fraction(1, 1 << 20)
        bound = claim_of(
            mechanism.release(game.cohort(0, 1)).guarantee,
            Change.place(far, cell_deg=mechanism.cell_deg),
            MOST_EPSILON,
        )
        if bound is not None:
            about = (
                f"A cell in {len(_RATES_HZ)} recordings of each of {len(spots)} spaces of a person,"
                f" moved by {float(far):.3g} degrees in all of them."
            )
            yield Game("place", bound[0], about, game.play, delta=bound[1])
    places = {
        (r.person, float(r.x_deg[i]), float(r.y_deg[i]))
        for r in mechanism.release(PlaceGame(mechanism, _SPOTS[:1]).cohort(0, 2)).data
        for i in (0, 6, -6)
    }
    broken = "A cell has several places, so their mean has less noise." if len(places) > 2 else ""
    yield Game(
        "place",
        None,
        "Two people who look at one cell several times in several recordings.",
        broken=broken,
    )
