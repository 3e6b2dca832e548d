"""What table mechanisms leave of the type of document simulated people read, beside who can still
be named (David-John et al. 2022, Figs 1 and 2).

    python benchmarks/document_order.py [--people 20] [--seconds 300] [--cohorts 3] [--json FILE]

Cohorts of MPIIDPEye's kind: everybody reads a comic, a newspaper and a textbook; 52 features of
windows of 30 s every 0.5 s. `document` is trained on the release of the first halves and tested on
the raw second halves (David-John et al. 2022: SVM, gamma one over features) or on everybody but one
(Bozkir et al.'s (2021) split). `person` is an SVM that learns names from the release of the first
halves and is asked about the raw second halves, one vote per person; a release under fresh
pseudonyms has none.

Two things decide where marginals stand. A "task" of David-John et al. 2022 is one document, and
marginals of readings that all say `task = reading` would be those of all documents together: the
key is cleared here. And simulated people read one document much alike: the last line says how much
of the variance of window features is between documents, between people, and neither.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import gazeveil
from gazeveil.errors import DataError
from gazeveil.features import without_minima
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.recording import RecordingKey
from gazeveil.models.classifiers import predict
from gazeveil.utility.registry import utility
from gazeveil.utility.splits import HalfSplit, class_of, rows_of, voted

MECHANISMS = (
    *(f"k-same-select:k={k}" for k in (2, 4, 8)),
    *(f"k-same-select:k={k},reading=published" for k in (2, 4, 8)),
    *(f"marginals:k=4,epsilon={e}" for e in ("0.1", "1", "10")),
    "marginals:k=4,reading=published",
    *(f"exponential-dp:epsilon={e}" for e in (1, 100)),
    *(f"exponential-dp:epsilon={e},reading=published" for e in (1, 2, 5, 10, 100)),
)

HALVES, PEOPLE = utility("document:gamma=features"), utility("document:split=people,gamma=features")


def cohort(people: int, seconds: float, seed: int) -> FeatureTable:
    """Windows of one cohort, without the four columns that are always 0 and without a task."""
    made = without_minima(
        RecordingSet(
            gazeveil.simulate(people, 3, seconds=seconds, rate_hz=120, task="reading", seed=seed)
        ).windows
    )
    k = made.keys
    return FeatureTable(
        made.values,
        made.columns,
        Keys(k.person, k.stimulus, k.session, np.full(len(k), ""), k.index),
        made.bounds,
    )


def named(raw: RecordingSet, release: RecordingSet) -> float:
    """Share of people whom an SVM on windows names; NaN where the release has no name of theirs."""
    halves = HalfSplit(raw, True)

    def person(key: RecordingKey, index: np.ndarray) -> str:
        return key[0]

    known, asked = (
        rows_of(release.windows, person, 10, halves.first),
        rows_of(raw.windows, person, 10, halves.second),
    )
    if not set(known.labels.tolist()) & set(asked.labels.tolist()):
        return float("nan")
    found = predict("svm", known.values, known.labels, asked.values, 0)
    decided, truth, _ = voted(
        found, asked.labels, asked.persons, np.unique(asked.persons, return_inverse=True)[1], 0
    )
    return float((decided == truth).mean())


def shares(table: FeatureTable) -> tuple[float, float, float]:
    """Share of the variance between documents, between people, and the rest; mean over features
    that vary.
    """
    deviation = table.values.std(axis=0)
    v = ((table.values - table.values.mean(axis=0)) / np.where(deviation > 0, deviation, 1))[
        :, deviation > 0
    ]
    k = table.keys
    kinds = np.array([class_of(("", s, "", ""), "stimulus") for s in k.stimulus.tolist()])
    means = np.stack(
        [
            [v[(kinds == d) & (k.person == p)].mean(axis=0) for d in np.unique(kinds)]
            for p in np.unique(k.person)
        ]
    )
    documents, people = (
        float(means.mean(axis=0).var(axis=0).mean()),
        float(means.mean(axis=1).var(axis=0).mean()),
    )
    return documents, people, 1 - documents - people


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--cohorts", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    tables = [cohort(given.people, given.seconds, 1 + i) for i in range(given.cohorts)]
    lines = []
    print(
        f"{given.cohorts} cohorts of {given.people} people, 3 documents of {given.seconds:g} s;"
        f" chance: document 0.333, person {1 / given.people:.3f}"
    )
    print(f"{'mechanism':46s} {'halves':>14s} {'people':>14s} {'person':>14s}")
    for text in ("none", *MECHANISMS):
        rows = []
        for i, table in enumerate(tables):
            raw = RecordingSet(None, {"window": table})
            try:
                release = (
                    raw
                    if text == "none"
                    else RecordingSet(
                        None, {"window": gazeveil.mechanism(text).release(table, seed=i).data}
                    )
                )
            except DataError as error:
                print(f"{text:46s} {error}")
                break
            rows.append(
                (
                    HALVES.measure(raw, release, raw, i)[0].value,
                    PEOPLE.measure(raw, release, raw, i)[0].value,
                    named(raw, release),
                )
            )
        if len(rows) == len(tables):
            mean, low, high = np.mean(rows, axis=0), np.min(rows, axis=0), np.max(rows, axis=0)
            print(
                f"{text:46s} "
                + " ".join(
                    f"{m:.2f} ({a:.2f}-{b:.2f})" for m, a, b in zip(mean, low, high, strict=True)
                ),
                flush=True,
            )
            lines.append(
                {
                    "mechanism": text,
                    **{
                        n: float(m)
                        for n, m in zip(("halves", "people", "person"), mean, strict=True)
                    },
                    "cohorts": len(rows),
                }
            )
    split = np.mean([shares(t) for t in tables], axis=0)
    print(
        f"variance of window features between documents {split[0]:.2f}, between people"
        f" {split[1]:.2f}, rest {split[2]:.2f}"
    )
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
