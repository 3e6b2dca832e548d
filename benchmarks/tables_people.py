"""Mechanisms over people: speed on a table as large as MPIIDPEye, and what `dp-k-same` keeps of
real features beside a release per person.

    python benchmarks/tables_people.py [--json FILE] [--no-errors]

**Speed.** 20 people x 3 documents x 1,200 windows x 48 features, random values. Beside each time
stands the ratio to a plain loop over cells, which is timed on one feature and multiplied.

**Errors.** Window features of GazeCom (windows of 5 s) and EyeNavGS (10 s), every 0.1 s, under
GAZEVEIL_DATA. Root mean square error of a release against each person's own values, in units of the
public range, in closed form (no noise is drawn; dp-k-same over five drawn partitions). At the same
epsilon and unit, all with the same public spectrum and Wiener shrinkage:

* `midpoint`: every value is the middle of its public bounds; no data needed;
* `per person`: dct-knorm;
* `per person, then averaged`: the same, averaged over the groups of dp-k-same afterwards and shrunk
  for that: what k-anonymity costs there;
* `dp-k-same`, k = 4.

A release that is not 1 % better than the midpoint says so: only the midpoint survives.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

import gazeveil
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.tables.dct_knorm import DCTKNorm, Design
from gazeveil.privacy.tables.dp_ksame import DPKSame, Sizes, plan
from gazeveil.privacy.tables.ksame import KSameSelect
from gazeveil.privacy.tables.marginals import Marginals
from lines import Lines, best_s, slower
from table_errors import expected_error

PEOPLE, DOCUMENTS, WINDOWS, FEATURES = 20, 3, 1200, 48
PARTITIONS = 5


def large_table() -> FeatureTable:
    """A table of MPIIDPEye's size."""
    rng = np.random.default_rng(1)
    names = [(f"{p:02}", f"document {d}", "", "") for p in range(PEOPLE) for d in range(DOCUMENTS)]
    keys = Keys.of_recordings(names, [np.arange(WINDOWS)] * len(names))
    return FeatureTable(
        rng.random((len(keys), FEATURES)),
        tuple(f"feature {i}" for i in range(FEATURES)),
        keys,
        [[0.0, 1.0]] * FEATURES,
    )


def plain_ksame(table: FeatureTable, k: int) -> None:
    """k-same of one feature, cell by cell."""
    value = {
        (p, s, i): v
        for p, s, i, v in zip(
            table.keys.person.tolist(),
            table.keys.stimulus.tolist(),
            table.keys.index.tolist(),
            table.values[:, 0].tolist(),
            strict=True,
        )
    }
    people = sorted({key[0] for key in value})
    random.shuffle(people)
    groups = [people[g :: len(people) // k] for g in range(len(people) // k)]
    out = {}
    for group in groups:
        for document in range(DOCUMENTS):
            for i in range(WINDOWS):
                mean = sum(value[p, f"document {document}", i] for p in group) / len(group)
                for p in group:
                    out[p, f"document {document}", i] = mean


def plain_marginals(table: FeatureTable, k: int, bins: int = 30) -> None:
    """Marginals of one feature with the test on every synthetic value, cell by cell."""
    for document in range(DOCUMENTS):
        values = [
            v
            for v, s in zip(table.values[:, 0].tolist(), table.keys.stimulus.tolist(), strict=True)
            if s == f"document {document}"
        ]
        low, high = min(values), max(values)
        counts = [0] * bins
        for v in values:
            counts[min(bins - 1, int(bins * (v - low) / (high - low)))] += 1
        out = []
        for _ in values:
            u, b = random.random() * len(values), 0
            while u >= counts[b]:
                u -= counts[b]
                b += 1
            for plausible, _ in enumerate(
                values, start=1
            ):  # every record gives the same probability; stop at k
                if plausible >= k:
                    break
            out.append(low + (b + random.random()) * (high - low) / bins)


def add(
    lines: Lines,
    figure: str,
    value: float,
    unit: str,
    floor: float | None,
    met: bool,
    **more: object,
) -> None:
    """One figure; floor is what it is held against."""
    shown = None if floor is None else float(f"{floor:.4g}")
    lines.keep(
        {
            "figure": figure,
            "value": float(f"{value:.4g}"),
            "unit": unit,
            "floor": shown,
            "met": met,
            **more,
        }
    )


def bench_speed(lines: Lines) -> None:
    """Times against their limits and against the plain loop."""
    table = large_table()
    begin = perf_counter()
    plain_ksame(table, 4)
    slow_ksame = (perf_counter() - begin) * FEATURES
    begin = perf_counter()
    plain_marginals(table, 4)
    slow_marginals = (perf_counter() - begin) * FEATURES
    cases: list[tuple[str, Mechanism[FeatureTable], float, float]] = [
        ("k-same-select, corrected", KSameSelect(4), 1.0, slow_ksame),
        ("k-same-select, published", KSameSelect(4, reading="published"), 1.0, slow_ksame),
        ("dp-k-same", DPKSame(4, 10), 1.0, slow_ksame),
        ("marginals, corrected, deterministic test", Marginals(4), 5.0, slow_marginals),
        (
            "marginals, published, deterministic test",
            Marginals(4, reading="published"),
            5.0,
            slow_marginals,
        ),
    ]
    for name, mechanism, limit, slow in cases:
        mechanism.release(table)
        seconds = best_s(lambda mechanism=mechanism: mechanism.release(table))  # type: ignore[misc]
        times = slower()
        add(
            lines,
            f"{name}: 20 people x 3 documents x 1,200 windows x 48 features",
            seconds,
            "s",
            limit * times,
            seconds < limit * times,
            wanted="below",
            slower=round(times, 2),
            plain_loop_s=round(slow, 1),
            times_faster=round(slow / seconds, 1),
        )


class Averaged(DPKSame):
    """A release per person, averaged over the groups afterwards: noise of variance 1/k instead of
    1/k**2.
    """

    def plan(self, sizes: Sizes) -> Design:
        """The best plan for that noise."""
        chosen = plan(sizes, float(self.budget), self.per, self.k, True, None, "separate")
        noise = chosen.noise._replace(variance=chosen.noise.variance * self.k)
        return replace(chosen, noise=noise)


def bench_errors(lines: Lines, name: str, window_s: float, data: Path) -> None:
    """Errors of one set of recordings at one epsilon after another."""
    table = gazeveil.window_features(gazeveil.read(data / name), window_s=window_s, step_s=0.1)
    low, high = table.bounds.T  # type: ignore[union-attr]
    midpoint = float(
        np.sqrt(np.mean(((np.clip(table.values, low, high) - low) / (high - low) - 0.5) ** 2))
    )
    people, recordings = len(np.unique(table.keys.person)), len(table.recordings())
    for per, budgets in (
        ("recording-feature", (0.01, 0.1, 1, 10, 100)),
        ("user", (1, 10, 100, 1000, 10000)),
    ):
        for epsilon in budgets:
            alone = DCTKNorm(epsilon, per=per)
            errors = {"per person": float(np.sqrt(expected_error(alone, table).mean()))}
            for label, cls in (("per person, then averaged", Averaged), ("dp-k-same", DPKSame)):
                m = cls(4, epsilon, per=per)
                errors[label] = float(
                    np.sqrt(
                        np.mean(
                            [expected_error(m, table, seed=s).mean() for s in range(PARTITIONS)]
                        )
                    )
                )
            ours, theirs = errors["dp-k-same"], errors["per person"]
            averaged = errors["per person, then averaged"]
            least = min(errors.values())
            # For whole people the noise is far above their differences up to a budget of a
            # thousand: there the plain release per person is to be beaten too.
            limit = min(averaged, theirs) if per == "user" and epsilon <= 1000 else averaged
            if least > 0.99 * midpoint:
                verdict = "only the midpoint survives"
            elif ours < theirs:
                verdict = "dp-k-same is better"
            else:
                verdict = (
                    "noise is below the differences between people: a release per person is better,"
                    " and has no k-anonymity"
                )
            add(
                lines,
                f"{name}: error of dp-k-same, k=4, epsilon={epsilon:g} per {per}",
                ours,
                "ranges",
                limit,
                ours <= limit * (1 + 1e-6),
                wanted="at most",
                midpoint=round(midpoint, 4),
                **{k.replace(",", "").replace(" ", "_"): round(v, 4) for k, v in errors.items()},
                verdict=verdict,
                people=people,
                recordings=recordings,
            )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--no-errors", action="store_true", help="speed alone")
    arguments = parser.parse_args()
    lines = Lines(arguments.json)
    bench_speed(lines)
    data = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
    )
    for name, window_s in (("gazecom", 5.0), ("eyenavgs_nthu", 10.0)):
        if arguments.no_errors or not (data / name).is_dir():
            print(f"{name}: errors not measured", file=sys.stderr)
            continue
        bench_errors(lines, name, window_s, data)
    if not lines.close():
        sys.exit("a figure was missed")


if __name__ == "__main__":
    main()
