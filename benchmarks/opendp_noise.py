"""OpenDP's samplers, which ours are compared with in tests and benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.errors import MissingExtraError


def _opendp() -> Any:
    try:
        import opendp.prelude as prelude
    except ImportError as error:
        raise MissingExtraError("opendp", "dev") from error
    prelude.enable_features("contrib")
    return prelude


def opendp_laplace(scale: float) -> Any:
    """OpenDP's vectorised integer Laplace measurement: takes a list of integers, gives them back
    with noise.
    """
    dp = _opendp()
    return dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=float(scale)
    )


def opendp_gaussian(scale: float) -> Any:
    """OpenDP's vectorised integer Gaussian measurement."""
    dp = _opendp()
    return dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale=float(scale)
    )


def opendp_noise(measurement: Any, count: int) -> NDArray[np.int64]:
    """The noise that a measurement adds to zeros."""
    return np.array(measurement([0] * count), dtype=np.int64)
