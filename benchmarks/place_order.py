"""What the order of looks tells beyond the noisy places of `gaussian-place`, on real people.

    python benchmarks/place_order.py [--people 24] [--repetitions 3] [--sigmas 2 5 8]

The promise of `gaussian-place` is about one cell; which cell follows which is told. Cells that
follow each other are near to each other more often than not, so an attacker can smooth noisy places
over the order of looks: a Gaussian model in which each place is its noisy place within sigma, each
pair of cells that follow each other lies within a few degrees, and gaze lies where other people's
gaze does. The weights of pairs and those few degrees are the best of many for the attacker. All
clips of a person of gazecom (under GAZEVEIL_DATA) are one period. Printed is the median over people
of their median error over time, in degrees.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gazeveil
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.stream.place.cell_walk import CellWalk
from gazeveil.privacy.stream.place.mechanism import GaussianPlace
from gazeveil.privacy.stream.place.noise import PlaceNoise

NEAR_DEG = (3.0, 5.0, 8.0, 12.0, 20.0, 40.0)

#: Gaze of one person: x and y of all good samples, shape (n, 2), and the numbers of their cells,
#: recording by recording.
Period = tuple[NDArray[np.float64], list[NDArray[np.int64]]]


def period(mechanism: GaussianPlace, cohort: Cohort, person: str) -> Period:
    """All recordings of a person as one period."""
    places, cells = [], []
    for r in cohort.select(people=[person]):
        walked = CellWalk(mechanism.grid(r.space), float(mechanism.hysteresis_deg or 0)).run(
            r.x_deg[None], r.y_deg[None], r.valid[None]
        )[0]
        places.append(np.stack((r.x_deg, r.y_deg), axis=1)[r.valid])
        cells.append(walked[r.valid])
    return np.concatenate(places), cells


def weights(
    cells: list[NDArray[np.int64]], numbers: dict[int, int]
) -> Iterator[NDArray[np.float64]]:
    """How much two cells that follow each other are held together: by how often, by the logarithm
    of that, or all alike.
    """
    often = np.zeros((len(numbers), len(numbers)))
    for one in cells:
        k = np.array([numbers[c] for c in one.tolist()])
        changes = np.flatnonzero(np.diff(k))
        np.add.at(often, (k[changes], k[changes + 1]), 1)
    often += often.T
    yield from (often, np.log1p(often), (often > 0).astype(float))


def estimates(
    told: NDArray[np.float64],
    sigma: float,
    pairs: NDArray[np.float64],
    others: tuple[NDArray[np.float64], float],
) -> Iterator[NDArray[np.float64]]:
    """The most likely places for each of :data:`NEAR_DEG`."""
    mean, spread = others
    pull = np.diag(pairs.sum(axis=1)) - pairs
    for near in NEAR_DEG:
        yield np.linalg.solve(
            np.eye(len(told)) * (1 / sigma**2 + 1 / spread**2) + pull / near**2,
            told / sigma**2 + mean / spread**2,
        )


def errors_deg(mechanism: GaussianPlace, cohort: Cohort, repetitions: int) -> dict[str, float]:
    """Median errors: of noisy places alone, with what is known of other people's gaze, with the
    order of looks too, of knowing nothing, and of all cells.
    """
    sigma, space = float(mechanism.sigma_deg), cohort[0].space
    grid, people = mechanism.grid(space), list(cohort.people)
    periods = {p: period(mechanism, cohort, p) for p in people}
    rows = []
    for person in people:
        true, cells = periods[person]
        elsewhere = np.concatenate([periods[p][0][::25] for p in people if p != person])
        mean, spread = elsewhere.mean(axis=0), float(elsewhere.std(axis=0).mean())
        numbers = {
            c: i for i, c in enumerate(sorted({int(c) for one in cells for c in np.unique(one)}))
        }
        at = np.array([numbers[c] for one in cells for c in one.tolist()])
        for _ in range(repetitions):
            noise = PlaceNoise(os.urandom(32))
            told = np.array([noise.place(grid, c, mechanism.sigma_deg) for c in numbers])
            centres = np.array([grid.centre_of(c) for c in numbers])
            tried = [
                told,
                (told / sigma**2 + mean / spread**2) / (1 / sigma**2 + 1 / spread**2),
                np.tile(mean, (len(told), 1)),
                centres,
            ]
            tried += [
                e
                for pairs in weights(cells, numbers)
                for e in estimates(told, sigma, pairs, (mean, spread))
            ]
            rows.append([float(np.median(np.hypot(*(e[at] - true).T))) for e in tried])
    found = np.median(rows, axis=0)
    names = (
        "noisy places",
        "and other people's gaze",
        "other people's gaze alone",
        "cells themselves",
    )
    return dict(zip(names, found[:4].tolist(), strict=True)) | {
        "and the order of looks": float(found[4:].min())
    }


def main(given: Sequence[str] | None = None) -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--people", type=int, default=24)
    asked.add_argument("--repetitions", type=int, default=3)
    asked.add_argument("--sigmas", nargs="*", default=["2", "5", "8"])
    options = asked.parse_args(given)
    cohort = gazeveil.read(Path(os.environ["GAZEVEIL_DATA"]) / "gazecom")
    assert isinstance(cohort, Cohort)
    some = Cohort(list(cohort.select(people=list(cohort.people)[: options.people])))
    for sigma in options.sigmas:
        print(
            f"sigma {sigma}: "
            + ", ".join(
                f"{k} {v:.1f}"
                for k, v in errors_deg(GaussianPlace(sigma), some, options.repetitions).items()
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
