"""Noise beside OpenDP, in the same run: one JSON line per figure.

    python benchmarks/noise.py [--json FILE] [--draws 1000000] [--peer-draws 100000]

Every sampler of ours is timed on a million draws with the system's randomness (keying included),
OpenDP's vectorised integer Laplace and Gaussian on a hundred thousand zeros. A figure is OpenDP's
time per value over ours. Each time is the best of a few runs after one that compiles. Figures
without a floor are there to be read.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from gazeveil.privacy.noise.blocks import gaussian_by_blocks
from gazeveil.privacy.noise.exact import discrete_gaussian, discrete_laplace
from gazeveil.privacy.noise.knorm import knorm
from gazeveil.privacy.noise.local import ORACLES
from gazeveil.privacy.noise.planar import planar_laplace
from gazeveil.privacy.randomness.rng import SystemSource, Words, source
from lines import Lines, best_s
from opendp_noise import opendp_gaussian, opendp_laplace

SCALES = (1, 10, 1000, 1_000_000)


def bench_scale(lines: Lines, scale: int, draws: int, peer_draws: int) -> None:
    """Exact Laplace at one scale."""
    measurement, zeros = opendp_laplace(float(scale)), [0] * peer_draws
    discrete_laplace(Fraction(scale), 10, Words(source(None)))
    exact = best_s(lambda: discrete_laplace(Fraction(scale), draws, Words(source(None)))) / draws
    peer = best_s(lambda: measurement(zeros), runs=3) / peer_draws
    lines.add(
        f"exact discrete Laplace, scale {scale}",
        20.0,
        peer / exact,
        "times the peer",
        peer="OpenDP vectorised integer Laplace",
        peer_version=version("opendp"),
        peer_ns=round(peer * 1e9, 1),
        scale=scale,
        ours_ns=round(exact * 1e9, 1),
    )


def bench_gaussian(lines: Lines, draws: int, peer_draws: int) -> None:
    """Exact Gaussian."""
    measurement, zeros = opendp_gaussian(100.0), [0] * peer_draws
    discrete_gaussian(100, 10, Words(source(None)))
    exact = best_s(lambda: discrete_gaussian(100, draws, Words(source(None)))) / draws
    peer = best_s(lambda: measurement(zeros), runs=2) / peer_draws
    lines.add(
        "exact discrete Gaussian, sigma 100",
        20.0,
        peer / exact,
        "times the peer",
        peer="OpenDP vectorised integer Gaussian",
        peer_version=version("opendp"),
        peer_ns=round(peer * 1e9, 1),
        ours_ns=round(exact * 1e9, 1),
    )


def _drawn(sampler: Callable[[int, int, Words], object], sigma: int, draws: int) -> None:
    sampler(sigma, draws, Words(source(None)))


def bench_blocks(lines: Lines, draws: int) -> None:
    """Gaussians by blocks beside those by rejection from Laplace, the same exact law."""
    for sigma in (100, 1024, 10_240, 1 << 20):
        gaussian_by_blocks(sigma, 10, Words(source(None)))
        rejection = best_s(partial(_drawn, discrete_gaussian, sigma, draws)) / draws
        blocks = best_s(partial(_drawn, gaussian_by_blocks, sigma, draws)) / draws
        lines.add(
            f"exact discrete Gaussian by blocks, sigma {sigma}",
            5.0,
            rejection / blocks,
            "times rejection from Laplace",
            ours_ns=round(blocks * 1e9, 1),
            rejection_ns=round(rejection * 1e9, 1),
        )


def bench_others(lines: Lines, draws: int) -> None:
    """What OpenDP has no vectorised sampler for."""
    truth = np.arange(draws // 10) % 100
    others: dict[str, tuple[int, Callable[[int, Words], object]]] = {
        "lattice planar Laplace, scale 100": (draws, lambda n, w: planar_laplace(100, n, w)),
        "l2 K-norm in 16 dimensions, scale 10000, vectors": (
            draws // 10,
            lambda n, w: knorm(16, 10_000, n, w),
        ),
    }
    for name, oracle in ORACLES.items():
        others[f"reports of {name}, 100 categories, epsilon 1"] = (
            len(truth),
            lambda n, w, o=oracle: o(1, 100).report(truth[:n], w),
        )
    for figure, (count, work) in others.items():
        work(10, Words(source(None)))
        seconds = best_s(
            lambda work=work, count=count: work(count, Words(source(None))),  # type: ignore[misc]
            runs=2,
        )
        lines.add(figure, 0.0, count / seconds / 1e6, "M/s", draws=count)


def bench_bits(lines: Lines) -> None:
    """The random bits themselves."""
    system = SystemSource()
    system.take(1000)
    ours = best_s(lambda: [system.take(1 << 16) for _ in range(64)])
    peer = best_s(lambda: [os.urandom(1 << 19) for _ in range(64)], runs=3)
    megabytes = 64 * (1 << 19) / 1e6
    lines.add(
        "random bytes, AES-256 counter stream",
        1.0,
        peer / ours,
        "times the peer",
        peer="os.urandom",
        peer_version=sys.platform,
        ours_mb_per_s=round(megabytes / ours),
        peer_mb_per_s=round(megabytes / peer),
    )


def main() -> None:
    """Run all figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--draws", type=int, default=1_000_000, help="draws of ours per figure")
    parser.add_argument(
        "--peer-draws", type=int, default=100_000, help="draws of OpenDP per figure"
    )
    arguments = parser.parse_args()
    lines = Lines(arguments.json)
    bench_bits(lines)
    for scale in SCALES:
        bench_scale(lines, scale, arguments.draws, arguments.peer_draws)
    bench_gaussian(lines, arguments.draws, arguments.peer_draws)
    bench_blocks(lines, arguments.draws)
    bench_others(lines, arguments.draws)
    if not lines.close():
        sys.exit("a floor was missed")


if __name__ == "__main__":
    main()
