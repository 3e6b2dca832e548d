"""Detectors against human labels, ours and the peers' on the same samples in one run.

    python benchmarks/events_agreement.py [--sixth] [--json FILE] [--no-peers]
    python benchmarks/events_agreement.py --refit

GazeCom (250 Hz, screen video): the people with even numbers, none of whom was used to choose a
parameter, against `handlabeller_final`; all samples pooled, every sample counts. The labels
`unknown` (0) and `noise` (4) are classes of their own: a sample that a person calls either and a
detector calls fixation, saccade or pursuit is a false positive there, and whatever else the
detector says of it is right. irf (1000 Hz, points to look at): both people. `--sixth` takes every
sixth GazeCom recording of those people. The two people who labelled GazeCom are compared with each
other as well.

`--refit` fits the pursuit rule again on the people with odd numbers, and prints it with its figures
on both halves.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from gazeveil import Recording, detect, read
from gazeveil.events.agreement import Agreement, pool
from gazeveil.events.auto.detector import DEFAULTS, stages
from gazeveil.events.auto.pursuit import FEATURES, RULE, fixation_runs, interval_features

Detector = Callable[[Recording], NDArray[np.str_]]
WORDS = ("fixation", "saccade", "pursuit", "pso")

#: What the project set itself: (data, word) -> least sample F1 of the default detector.
FLOORS = {
    ("gazecom", "fixation"): 0.93,
    ("gazecom", "saccade"): 0.86,
    ("gazecom", "pursuit"): 0.66,
    ("irf S1", "saccade"): 0.85,
    ("irf S2", "saccade"): 0.92,
}


def ours(method: str, **parameters: object) -> Detector:
    """One of our detectors, as one word per sample."""

    def run(recording: Recording) -> NDArray[np.str_]:
        return detect(recording, method, **parameters).words(len(recording))

    return run


def remodnav(recording: Recording) -> NDArray[np.str_]:
    """REMoDNaV with its defaults; the filter is made as long as its own check asks for (an odd
    number of samples above its order).
    """
    from remodnav.clf import EyegazeClassifier

    rate = recording.rate_hz
    samples = max(5, int(0.019 * rate) | 1)
    gaze = np.empty(len(recording), dtype=[("x", float), ("y", float)])
    seen = np.flatnonzero(recording.valid)
    for name, values in (("x", recording.x_deg), ("y", recording.y_deg)):
        gaze[name] = np.where(recording.valid, values, np.nan)
        # It stops where a loss touches either end of a recording: there the nearest gaze is held
        # for the length of the filter.
        for end in (slice(0, samples + 3), slice(len(gaze) - samples - 3, None)):
            gaze[name][end] = np.interp(np.arange(len(gaze))[end], seen, values[seen])
    classifier = EyegazeClassifier(px2deg=1.0, sampling_rate=rate)
    kinds = {
        "FIXA": "fixation",
        "PURS": "pursuit",
        "SACC": "saccade",
        "ISAC": "saccade",
        "HPSO": "pso",
        "IHPS": "pso",
        "LPSO": "pso",
        "ILPS": "pso",
    }
    words = np.full(len(recording), "undefined", dtype="<U12")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for event in classifier(classifier.preproc(gaze, savgol_length=(samples + 0.5) / rate)):
            words[round(event["start_time"] * rate) : round(event["end_time"] * rate)] = kinds[
                event["label"]
            ]
    return words


def pymovements_ivt(recording: Recording) -> NDArray[np.str_]:
    """Velocity threshold of pymovements at 30 deg/s, any duration; samples in no fixation are
    saccades.
    """
    import polars as pl
    import pymovements as pm

    screen = pm.Experiment(
        1280, 720, 40.0, 22.5, 45.0, origin="upper left", sampling_rate=recording.rate_hz
    )
    x, y = (np.where(recording.valid, a, np.nan) for a in (recording.x_deg, recording.y_deg))
    frame = pl.DataFrame({"time": np.arange(len(recording)), "x": x, "y": y})
    gaze = pm.Gaze(
        frame, experiment=screen, time_column="time", time_unit="ms", position_columns=["x", "y"]
    )
    gaze.pos2vel("smooth")
    gaze.detect("ivt", velocity_threshold=30.0, minimum_duration=1)
    words = np.full(len(recording), "saccade", dtype="<U12")
    for onset, offset in gaze.events.frame.select("onset", "offset").iter_rows():
        words[onset : offset + 1] = "fixation"
    words[~recording.valid] = "undefined"
    return words


OURS: dict[str, Detector] = {
    "gazeveil auto": ours("auto"),
    "gazeveil ivt": ours("ivt"),
    "gazeveil ivt ren2024": ours("ivt", setting="ren2024"),
    "gazeveil idt": ours("idt"),
    "gazeveil dorr": ours("dorr"),
    "gazeveil dorr larsson": ours("dorr", between="larsson"),
    "gazeveil is5t": ours("is5t"),
    "gazeveil online": ours("online"),
    "gazeveil online pursuit": ours("online", pursuit=True),
}
PEERS: dict[str, tuple[str, Detector]] = {
    "remodnav": ("remodnav", remodnav),
    "pymovements ivt 30 deg/s": ("pymovements", pymovements_ivt),
}


def judge(
    recordings: Iterable[Recording], label: str, detector: Detector
) -> tuple[Agreement, float]:
    """Agreement over all recordings, and seconds spent detecting."""
    spent = 0.0

    def labelled() -> Iterator[tuple[NDArray[np.str_], NDArray[np.str_], NDArray[np.int64]]]:
        nonlocal spent
        for r in recordings:
            begin = perf_counter()
            found = detector(r)
            spent += perf_counter() - begin
            yield r.labels[label], found, r.t_ns

    return pool(labelled()), spent


def main() -> None:
    """Print the table, and write JSON lines if asked."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--sixth", action="store_true", help="every sixth recording of GazeCom")
    arguments.add_argument("--json", type=Path, help="write one JSON line per figure")
    arguments.add_argument("--no-peers", action="store_true", help="leave the slow peers out")
    arguments.add_argument("--refit", action="store_true", help="fit the pursuit rule again")
    given = arguments.parse_args()
    logging.disable(logging.WARNING)
    data = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent / ".." / "shared" / "data")
    )
    cohort = read(data / "gazecom", format="gazecom")
    halves = [
        cohort.select(people=[p for p in cohort.people if int(p.removeprefix("obs")) % 2 == odd])
        for odd in (1, 0)
    ]
    if given.refit:
        refit(list(halves[0]), list(halves[1]))
        return
    sets: dict[str, tuple[list[Recording], str]] = {
        "gazecom": (list(halves[1][::6] if given.sixth else halves[1]), "handlabeller_final")
    }
    for r in read(data / "irf_lookatpoint", format="irf"):
        sets[f"irf {r.person}"] = ([r], "expert")
    rows: list[dict[str, object]] = []
    for name, (recordings, label) in sets.items():
        samples = sum(len(r) for r in recordings)
        print(
            f"\n{name}: {len(recordings)} recordings, {samples} samples, against {label}",
            flush=True,
        )
        print(
            f"{'detector':<32}{'fixation':>9}{'saccade':>9}{'pursuit':>9}{'pso':>9}{'kappa':>9}"
            f"{'saccade event F1':>18}{'M samples/s':>13}"
        )
        detectors: dict[str, tuple[str, Detector]] = {n: ("gazeveil", d) for n, d in OURS.items()}
        if not given.no_peers:
            detectors |= PEERS
        if name == "gazecom":
            other, _ = judge(recordings, "handlabeller1", lambda r: r.labels["handlabeller2"])
            report(rows, name, "labeller 1 against labeller 2", "", other, float("nan"), samples)
        for detector, (package, run) in detectors.items():
            try:
                release = version(package)
            except PackageNotFoundError:
                print(f"{detector:<32}is not installed")
                continue
            run(recordings[0])  # compiles
            found, spent = judge(recordings, label, run)
            report(rows, name, detector, release, found, spent, samples)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    missed = [f"{row['data']} {row['word']} {row['f1']}" for row in rows if row.get("met") is False]
    print(
        "\nfloors of the default detector: "
        + ("all met" if not missed else "missed " + ", ".join(missed))
    )


def report(
    rows: list[dict[str, object]],
    data: str,
    detector: str,
    release: str,
    found: Agreement,
    spent: float,
    samples: int,
) -> None:
    """One line of the table and its JSON rows."""
    f1 = {
        word: found[word].f1 if word in found.classes and found[word].samples_true else float("nan")
        for word in WORDS
    }
    event = found["saccade"].event_f1
    cells = "".join(f"{value:9.3f}" for value in (*f1.values(), found.kappa))
    print(f"{detector:<32}{cells}{event:18.3f}{samples / spent / 1e6:13.2f}", flush=True)
    for word, value in f1.items():
        if np.isnan(value):
            continue
        row: dict[str, object] = {
            "figure": "sample_f1",
            "data": data,
            "detector": detector,
            "version": release,
            "word": word,
            "f1": round(value, 4),
        }
        row |= {
            "event_f1": round(found[word].event_f1, 4),
            "kappa": round(found[word].kappa, 4),
            "samples": samples,
        }
        floor = FLOORS.get((data, word)) if detector == "gazeveil auto" else None
        rows.append(row | ({} if floor is None else {"floor": floor, "met": bool(value >= floor)}))


def refit(train: list[Recording], test: list[Recording]) -> None:
    """Fit the pursuit rule by weighted logistic regression, choose its threshold for pursuit F1,
    both on `train`.
    """
    x, counts = intervals(train)
    design = np.column_stack((np.ones(len(x)), x))
    weight = counts["pursuit"] + counts["fixation"]
    truth = (counts["pursuit"] > counts["fixation"]).astype(float)
    beta = np.zeros(design.shape[1])
    for _ in range(50):  # Newton's method
        chance = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weight * (truth - chance)) - 0.01 * beta
        curvature = (design * (weight * chance * (1 - chance))[:, None]).T @ design + 0.01 * np.eye(
            len(beta)
        )
        beta += np.linalg.solve(curvature, gradient)
    shifts = np.linspace(-1, 2, 61)
    best = max(shifts, key=lambda shift: pursuit_f1(train, counts, design @ beta + shift)[1])
    beta[0] += best
    print(
        "fitted:   "
        + ", ".join(
            f"{name}={value:.2f}"
            for name, value in zip(("intercept", *FEATURES), beta, strict=True)
        )
    )
    print(
        "in use:   "
        + ", ".join(f"{name}={getattr(RULE, name):.2f}" for name in ("intercept", *FEATURES))
    )
    used = np.array([RULE.intercept, *RULE.weights])
    for name, half in (("fitted on (odd)", train), ("held out (even)", test)):
        x, counts = intervals(half)
        for rule, weights in (("fitted", beta), ("in use", used)):
            fixation, pursuit = pursuit_f1(half, counts, weights[0] + x @ weights[1:])
            print(f"{name}, rule {rule}: fixation F1 {fixation:.3f}, pursuit F1 {pursuit:.3f}")


def intervals(
    recordings: list[Recording],
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Features of all intervals between saccades, how many samples of each label they hold, and
    whether they are long enough.
    """
    rows, counts = [], {word: [] for word in ("fixation", "pursuit", "all", "long")}
    for r in recordings:
        trace, points, codes = stages(r, DEFAULTS)
        runs = fixation_runs(codes)
        x = interval_features(points, runs, trace.rate_hz)
        rows.append(x)
        labels = r.labels["handlabeller_final"]
        for a, b in runs:
            part = labels[a : b + 1]
            counts["fixation"].append(np.count_nonzero(part == "fixation"))
            counts["pursuit"].append(np.count_nonzero(part == "pursuit"))
            counts["all"].append(b - a + 1)
            counts["long"].append(b - a + 1 >= RULE.min_ms * trace.rate_hz / 1000)
    return np.vstack(rows), {word: np.array(c, dtype=float) for word, c in counts.items()}


def pursuit_f1(
    recordings: list[Recording], counts: dict[str, NDArray[np.float64]], score: NDArray[np.float64]
) -> tuple[float, float]:
    """Sample F1 of fixation and pursuit for a score per interval."""
    total = {
        word: sum(np.count_nonzero(r.labels["handlabeller_final"] == word) for r in recordings)
        for word in ("fixation", "pursuit")
    }
    pursues = (score > 0) & (counts["long"] > 0)
    return (
        float(
            2
            * counts["fixation"][~pursues].sum()
            / (total["fixation"] + counts["all"][~pursues].sum())
        ),
        float(
            2 * counts["pursuit"][pursues].sum() / (total["pursuit"] + counts["all"][pursues].sum())
        ),
    )


if __name__ == "__main__":
    main()
