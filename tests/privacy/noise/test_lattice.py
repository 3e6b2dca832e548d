"""Noisy places on the lattice: the noise of Kaleido with one publication to a window, and exact
where doubles cannot settle it.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gazeveil import Screen, Sphere
from gazeveil.privacy.noise.lattice import LatticeLaw, lattice_bits, limits
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.stream.kaleido.stage import LatticeStage, plan
from gazeveil.privacy.stream.kaleido.step import UNIFORM

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


class Rare(TestStream):
    """Words of which every seventh says too little for double precision."""

    taken = 0

    def take(self, count: int) -> np.ndarray:
        words, place = super().take(count), np.arange(self.taken, self.taken + count)
        self.taken += count
        return np.where(place % 7 == 0, words >> np.uint64(30), words)

    def child(self, *keys: str | int) -> Rare:
        return Rare(self._seed, *self._keys, *keys)


def places(space: Any, rows: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-10, 10, (2, rows, count))
    if isinstance(space, Sphere):
        x, y = x + 180.0, y + 90.0
    return x, y, rng.random((rows, count)) > 0.1


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
@pytest.mark.parametrize("epsilon", ["30", "1", "1/50"])  # narrow and wide arcs
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(("source", "count"), [(TestStream, 3000), (Rare, 60)])
def test_noise_is_that_of_kaleido_with_one_publication_to_a_window(
    space: Any, epsilon: str, inside: bool, source: Any, count: int
) -> None:
    e, r = Fraction(epsilon), Fraction(2)
    made = plan(UNIFORM, space, e, 1, r, None, 1, 1, r)
    edges = zip(
        ("x_low", "x_high", "y_low", "y_high"), limits(space, lattice_bits(r), inside), strict=True
    )
    made = replace(made, settings=made.settings._replace(**dict(edges)))
    stage = LatticeStage(made, 2, [source(1), source(2)])
    there = places(space, 2, count)
    wanted = stage.run(np.zeros((2, count), dtype=np.int64), *(a.copy() for a in there))[1:]
    x, y, valid = (a.copy() for a in there)
    sampler = LatticeLaw(space, r, e, inside).sampler([source(1), source(2)])
    for part in (slice(0, count // 3), slice(count // 3, count)):
        own = [np.ascontiguousarray(a[:, part]) for a in (x, y, valid)]
        sampler.add(own[0], own[1], own[2])
        x[:, part], y[:, part], valid[:, part] = own
        sampler = pickle.loads(pickle.dumps(sampler))
    for ours, theirs in zip((x, y, valid), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert valid.any()


def test_noise_beyond_the_samplers_loses_all_places() -> None:
    x, y, valid = places(SCREEN, 1, 10)
    LatticeLaw(SCREEN, Fraction(2), Fraction(1, 10**9)).sampler([TestStream(1)]).add(x, y, valid)
    assert np.isnan(x).all()
    assert np.isnan(y).all()
    assert not valid.any()


def test_arrays_that_cannot_be_changed_in_place_are_refused() -> None:
    x, y, valid = places(SCREEN, 2, 10)
    sampler = LatticeLaw(SCREEN, Fraction(2), Fraction(1)).sampler([TestStream(1)])
    with pytest.raises(ValueError, match="contiguous"):
        sampler.add(x[:, ::2], y[:, ::2], valid[:, ::2])
