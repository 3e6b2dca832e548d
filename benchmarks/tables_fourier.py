"""Speed of the Fourier mechanisms on a table as large as MPIIDPEye: one JSON line per figure.

    python benchmarks/tables_fourier.py [--json FILE] [--draws 100]

20 people, 3 documents, 1,200 windows, 48 features. `published`: 100 noisy releases of `fpa`, `cfpa`
and `dcfpa`, with the sensitivities over all pairs of participants and the best k of every document,
chunk and feature, all inside the time. Beside it a plain loop over cells (one numpy FFT, one noise
vector and one inverse per recording, feature and chunk) that is given k, and one that seeks it with
as many noisy runs per k, timed on a small part and scaled up. Limits in seconds are those of a
quiet aarch64 core, and longer where a fixed piece of work takes longer in the same run (`slower`);
all of them are processor seconds, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from time import process_time

import numpy as np

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.published import plan
from gazeveil.privacy.tables.recordings import sequences
from lines import Lines, slower

PEOPLE, DOCUMENTS, ROWS, FEATURES = 20, 3, 1200, 48


def made_up(people: int = PEOPLE) -> FeatureTable:
    """A table of slow random features, between 0 and 1."""
    rng = np.random.default_rng(5)
    names = [
        (f"p{p}", f"document{d}", "1", "reading") for p in range(people) for d in range(DOCUMENTS)
    ]
    steps = rng.standard_normal((len(names), ROWS, FEATURES)) * 0.02
    values = 0.5 + 0.4 * np.tanh(np.cumsum(steps, axis=1))
    keys = Keys.of_recordings(names, [np.arange(ROWS)] * len(names))
    return FeatureTable(
        values.reshape(-1, FEATURES),
        tuple(f"f{i}" for i in range(FEATURES)),
        keys,
        [[0.0, 1.0]] * FEATURES,
    )


def ours(
    table: FeatureTable, epsilon: float, chunk: int | None, difference: bool, draws: int
) -> tuple[float, float]:
    """Seconds of preparing and drawing, and the mean of the best k."""
    gc.collect()
    begin = process_time()
    work = plan("fpa", sequences("fpa", table), epsilon, chunk, None, difference)
    rng = np.random.default_rng(1)
    for _ in range(draws):
        work.draw(rng)
    return process_time() - begin, float(np.mean([b.k.mean() for b in work.batches]))


def plain(
    table: FeatureTable,
    epsilon: float,
    chunk: int | None,
    difference: bool,
    draws: int,
    search: bool,
) -> float:
    """Seconds a loop over cells would take, from a few cells; `search` has it seek k by noisy runs,
    for ten values of k.
    """
    rng = np.random.default_rng(1)
    values = table.values.reshape(-1, ROWS, FEATURES)
    n = chunk or ROWS
    cells, begin = 0, process_time()
    for recording in range(2):
        for feature in range(2):
            for start in range(0, min(ROWS, 4 * n), n):
                x = values[recording, start : start + n, feature]
                signal = np.diff(x, prepend=0.0) if difference else x
                delta = max(
                    float(np.linalg.norm(values[q, start : start + n, feature] - x))
                    for q in range(PEOPLE)
                )
                tried = (
                    np.unique(np.linspace(1, len(x) // 2 + 1, 10).astype(int)).tolist()
                    if search
                    else []
                )
                for k in [*tried, 1]:
                    for _ in range(draws):
                        spectrum = np.fft.rfft(signal)
                        spectrum[:k] += (
                            (rng.laplace(size=k) + 1j * rng.laplace(size=k))
                            * np.sqrt(n * k)
                            * delta
                            / epsilon
                        )
                        spectrum[k:] = 0
                        out = np.fft.irfft(spectrum, len(x))
                        noisy = np.cumsum(out) if difference else out
                        _ = (
                            np.mean((x - noisy) ** 2) / (x.mean() * noisy.mean())
                            if search
                            else noisy
                        )
                cells += 1
    return (process_time() - begin) / cells * len(values) * FEATURES * -(-ROWS // n)


def main() -> None:
    """Print the figures and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--draws", type=int, default=100)
    given = parser.parse_args()
    table = made_up()
    lines = Lines(given.json)

    def add(figure: str, limit_s: float, seconds: float, **more: object) -> None:
        times = slower(process_time)
        lines.keep(
            {
                "figure": figure,
                "value": round(seconds, 3),
                "unit": "s, at most",
                "limit": round(limit_s * times, 1),
                "met": seconds < limit_s * times,
                "slower": round(times, 2),
                **more,
            }
        )

    for epsilon in (1.0, 10.0):
        total = 0.0
        for name, chunk, difference in (
            ("fpa", None, False),
            ("cfpa", 32, False),
            ("dcfpa", 32, True),
        ):
            seconds, k = ours(table, epsilon, chunk, difference, given.draws)
            total += seconds
            loop, with_search = (
                plain(table, epsilon, chunk, difference, 10, search) * given.draws / 10
                for search in (False, True)
            )
            label = name if chunk is None else f"{name}, chunks of {chunk}"
            add(
                f"{given.draws} draws of published {label}, with optimal k, epsilon {epsilon:g}",
                20.0,
                seconds,
                mean_k=round(k, 2),
                plain_loop_s=round(loop),
                ratio=round(loop / seconds),
                plain_loop_with_noisy_search_s=round(with_search),
            )
        add(
            f"{given.draws} draws of all three, epsilon {epsilon:g}",
            20.0,
            total,
            table=f"{PEOPLE} x {DOCUMENTS} x {ROWS} x {FEATURES}",
        )
    for text in (
        "lpa:epsilon=1",
        "fpa:epsilon=1",
        "cfpa:epsilon=1,chunk=32",
        "dcfpa:epsilon=1,chunk=32",
        "dct-knorm:epsilon=10",
    ):
        m = mechanism(text)
        m.release(table.select(people="p0"))
        begin = process_time()
        m.release(table)
        seconds = process_time() - begin
        add(f"one corrected release, {text}", 5.0, seconds)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
