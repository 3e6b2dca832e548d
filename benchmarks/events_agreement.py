"""Detectors against human labels, ours and the peers' on the same samples in one run.

    python benchmarks/events_agreement.py [--sixth] [--json FILE] [--no-peers] [--only TABLE]

Four tables. `datasets`: each labelled dataset, judged with a network that was trained without it
(`benchmarks/event_networks`, made by `events_training.py`), beside the network that comes with the
package, our other detectors, REMoDNaV, pymovements' I-VT and the experts among themselves. GazeCom
(250 Hz) is judged on the people with even numbers, once with the others in training and once
without any of GazeCom. `degraded`: the same recordings at lower rates and with white noise added,
beside I-VT. `online`: the causal twin. `webcam`: what becomes of gaze that no detector should be
trusted with.

All samples are pooled and every one counts. Where two experts labelled, a detector is judged
against both. The labels `unknown` and `noise` are classes of their own: a sample that a person
calls either and a detector calls fixation, saccade or pursuit is a false positive there. The online
detector calls the settling a part of the saccade, so labels of it are joined to saccades in its
table. `--sixth` takes every sixth GazeCom recording.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from agreement import Agreement, pool
from event_peers import remodnav
from gazeveil import Recording, detect, read
from gazeveil.events.auto.network import Network

Words = NDArray[np.str_]
Detector = Callable[[Recording], Words]
WORDS = ("fixation", "saccade", "pursuit", "pso")
TABLES = ("datasets", "degraded", "online", "webcam")
NETWORKS = Path(__file__).parent / "event_networks"

#: What the project set itself: (data, word) -> least sample F1 of `auto` with a network that never
#: saw the dataset (GazeCom: those people).
FLOORS = {
    ("gazecom, other people", "fixation"): 0.945,
    ("gazecom, other people", "saccade"): 0.88,
    ("gazecom, other people", "pursuit"): 0.70,
    ("lund2013 img", "fixation"): 0.95,
    ("lund2013 img", "saccade"): 0.86,
    ("lund2013 dots", "saccade"): 0.74,
    ("lund2013 dots", "pursuit"): 0.86,
    ("lund2013 video", "saccade"): 0.82,
    ("lund2013 video", "pursuit"): 0.75,
    ("irf S1", "saccade"): 0.88,
    ("irf S2", "saccade"): 0.95,
}


@dataclass(frozen=True)
class Labelled:
    """Recordings, their label columns, what the network was trained without, and whether the
    labellers had oscillations.
    """

    recordings: list[Recording]
    labels: tuple[str, ...]
    without: str
    pso: bool = True


def ours(method: str, **parameters: object) -> Detector:
    """One of our detectors, as one word per sample."""

    def run(recording: Recording) -> Words:
        return detect(recording, method, **parameters).words(len(recording))

    return run


def unseen(kind: str, without: str, **parameters: object) -> Detector:
    """`auto` or `online` with the network that was trained without a dataset."""
    network = Network.load(NETWORKS / f"{kind}_{without}.npz")
    return ours(kind, network=network, **parameters)


def pymovements_ivt(recording: Recording) -> Words:
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


OTHERS: dict[str, Detector] = {
    "gazeveil auto, all datasets": ours("auto"),
    "gazeveil ivt": ours("ivt"),
    "gazeveil ivt ren2024": ours("ivt", setting="ren2024"),
    "gazeveil idt": ours("idt"),
    "gazeveil dorr": ours("dorr"),
}
PEERS: dict[str, tuple[str, Detector]] = {
    "remodnav": ("remodnav", remodnav),
    "pymovements ivt 30 deg/s": ("pymovements", pymovements_ivt),
}


def datasets(data: Path, sixth: bool) -> dict[str, Labelled]:
    """All labelled recordings, by what they are called in the tables."""
    gazecom = read(data / "gazecom", format="gazecom")
    even = gazecom.select(people=[p for p in gazecom.people if int(p.removeprefix("obs")) % 2 == 0])
    chosen = list(even[::6] if sixth else even)
    final = ("handlabeller_final",)
    sets = {
        "gazecom, other people": Labelled(chosen, final, "gazecom-even", pso=False),
        "gazecom, none of it": Labelled(chosen, final, "gazecom", pso=False),
    }
    for task in ("img", "dots", "video"):
        trials = list(read(data / "lund2013" / task, format="lund2013"))
        sets[f"lund2013 {task}"] = Labelled(trials, ("MN", "RA"), "lund2013")
    for r in read(data / "irf_lookatpoint", format="irf"):
        sets[f"irf {r.person}"] = Labelled([r], ("expert",), "irf")
    sets["hmr"] = Labelled(list(read(data / "hmr")), ("label",), "hmr", pso=False)
    return sets


def judge(
    recordings: Iterable[Recording],
    labels: tuple[str, ...],
    detector: Detector,
    join: dict[str, str] | None = None,
) -> tuple[Agreement, float]:
    """Agreement over all recordings and labellers, and seconds spent detecting."""
    spent = 0.0

    def labelled() -> Iterator[tuple[Words, Words, NDArray[np.int64]]]:
        nonlocal spent
        for r in recordings:
            begin = perf_counter()
            found = detector(r)
            spent += perf_counter() - begin
            for label in labels:
                if label in r.labels:
                    yield r.labels[label], found, r.t_ns

    return pool(labelled(), join=join), spent


class Report:
    """Prints figures and keeps them as JSON rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def heading(self, text: str) -> None:
        """Begin a table."""
        print(f"\n{text}")
        print(
            f"{'detector':<40}{'fixation':>9}{'saccade':>9}{'pursuit':>9}{'pso':>9}{'kappa':>8}"
            f"{'saccade events: IoU':>21}{'overlap':>9}{'M samples/s':>13}",
            flush=True,
        )

    def line(
        self,
        figure: str,
        data: str,
        detector: str,
        release: str,
        found: Agreement,
        speed: float = float("nan"),
        judged: bool = False,
    ) -> None:
        """One line of the table and its JSON rows; `judged` compares it with the floors."""
        f1 = {
            word: found[word].f1
            if word in found.classes and found[word].samples_true
            else float("nan")
            for word in WORDS
        }
        event = found.classes.get("saccade")
        cells = "".join(f"{value:9.3f}" for value in f1.values())
        iou, overlap = (
            (event.event_f1, event.event_f1_overlap) if event else (float("nan"), float("nan"))
        )
        print(
            f"{detector:<40}{cells}{found.kappa:8.3f}{iou:21.3f}{overlap:9.3f}{speed:13.2f}",
            flush=True,
        )
        for word, value in f1.items():
            if np.isnan(value):
                continue
            scores = found[word]
            row: dict[str, object] = {
                "figure": figure,
                "data": data,
                "detector": detector,
                "version": release,
                "word": word,
                "f1": round(value, 4),
                "event_f1": round(scores.event_f1, 4),
                "event_f1_overlap": round(scores.event_f1_overlap, 4),
                "kappa": round(scores.kappa, 4),
                "onset_distance_ms": scores.onset_distance_ms,
                "offset_distance_ms": scores.offset_distance_ms,
                "samples": found.samples,
            }
            floor = FLOORS.get((data, word)) if judged else None
            if floor is not None:
                row |= {"floor": floor, "met": bool(value >= floor)}
            self.rows.append(row)


def compare(report: Report, sets: dict[str, Labelled], peers: bool) -> None:
    """Table `datasets`."""
    for name, given in sets.items():
        samples = sum(len(r) for r in given.recordings)
        report.heading(
            f"{name}: {len(given.recordings)} recordings, {samples} samples, against"
            f" {' and '.join(given.labels)}"
        )
        pair = ("handlabeller1", "handlabeller2") if "gazecom" in name else given.labels
        if len(pair) == 2:
            between, _ = judge(given.recordings, pair[:1], lambda r, other=pair[1]: r.labels[other])
            report.line("sample_f1", name, f"{pair[0]} against {pair[1]}", "", between)
        detectors: dict[str, tuple[str, Detector]] = {
            f"gazeveil auto, without {given.without}": ("gazeveil", unseen("auto", given.without))
        }
        detectors |= {n: ("gazeveil", d) for n, d in OTHERS.items()}
        if peers:
            detectors |= PEERS
        for detector, (package, run) in detectors.items():
            try:
                release = version(package)
            except PackageNotFoundError:
                print(f"{detector:<40}is not installed")
                continue
            run(given.recordings[0])  # compiles
            found, spent = judge(given.recordings, given.labels, run)
            judged = detector.startswith("gazeveil auto, without")
            report.line("sample_f1", name, detector, release, found, samples / spent / 1e6, judged)


def degraded(recording: Recording, rate_hz: float, noise_deg: float, seed: int) -> Recording:
    """Every k-th sample of a recording, with white noise."""
    step = max(1, round(recording.rate_hz / rate_hz))
    keep = np.arange(0, len(recording), step)
    rng = np.random.default_rng(seed)
    x, y = (
        axis[keep] + noise_deg * rng.standard_normal(len(keep))
        for axis in (recording.x_deg, recording.y_deg)
    )
    return recording.with_(
        t_ns=recording.t_ns[keep],
        x_deg=x,
        y_deg=y,
        valid=recording.valid[keep],
        rate_hz=recording.rate_hz / step,
        labels={name: words[keep] for name, words in recording.labels.items()},
        confidence=None,
        counts={},
    )


def compare_degraded(report: Report, sets: dict[str, Labelled]) -> None:
    """Table `degraded`: ours beside I-VT, with oscillations as an event of their own where the
    labellers had them.
    """
    for name, given in sets.items():
        if name in ("gazecom, none of it", "hmr"):
            continue
        run = unseen("auto", given.without, pso="separate" if given.pso else "saccade")
        report.heading(f"{name}, at lower rates and with noise")
        for rate_hz in dict.fromkeys((given.recordings[0].rate_hz, 250.0, 120.0, 60.0, 36.0)):
            for noise_deg in (0.0, 0.1, 0.3, 0.5):
                worse = [
                    degraded(r, rate_hz, noise_deg, seed) for seed, r in enumerate(given.recordings)
                ]
                where = f"{rate_hz:.0f} Hz, {noise_deg:g} deg"
                for detector, function in (("auto", run), ("ivt", ours("ivt"))):
                    found, _ = judge(worse, given.labels, function)
                    report.line("degraded", f"{name}, {where}", f"{where}: {detector}", "", found)


def compare_online(report: Report, sets: dict[str, Labelled]) -> None:
    """Table `online`: it calls the settling a part of the saccade."""
    for name, given in sets.items():
        report.heading(f"{name}, while samples arrive")
        for detector, function in (
            (f"online, without {given.without}", unseen("online", given.without, pursuit=True)),
            ("online, all datasets", ours("online", pursuit=True)),
        ):
            found, _ = judge(given.recordings, given.labels, function, {"pso": "saccade"})
            report.line("online", name, detector, "", found)


def webcam(report: Report, data: Path) -> None:
    """Table `webcam`: people who read, at 8 to 30 Hz, without labels."""
    shares, durations, rates = [], [], []
    for recording in read(data / "webqamgaze"):
        if len(recording) < 60:
            continue
        events = detect(recording)
        fixations = events.of("fixation")
        seconds = float(recording.t_ns[-1] - recording.t_ns[0]) / 1e9
        shares.append(float(np.mean(events.words(len(recording)) == "pursuit")))
        durations.append(float(np.median(fixations.duration_s)) if len(fixations) else 0.0)
        rates.append(len(fixations) / seconds)
    row: dict[str, object] = {
        "figure": "webcam",
        "recordings": len(shares),
        "pursuit_share": float(np.mean(shares)),
        "fixation_s": round(float(np.median(durations)), 3),
        "fixations_per_s": round(float(np.median(rates)), 2),
    }
    print(f"\nwebcam: {row}")
    report.rows.append(row)


def main() -> None:
    """Print the tables, and write JSON lines if asked."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--sixth", action="store_true", help="every sixth recording of GazeCom")
    arguments.add_argument("--json", type=Path, help="write one JSON line per figure")
    arguments.add_argument("--no-peers", action="store_true", help="leave the slow peers out")
    arguments.add_argument("--only", choices=TABLES, help="one table")
    given = arguments.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    data = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent / ".." / "shared" / "data")
    )
    sets = datasets(data, given.sixth)
    report = Report()
    wanted = TABLES if given.only is None else (given.only,)
    if "datasets" in wanted:
        compare(report, sets, not given.no_peers)
    if "degraded" in wanted:
        compare_degraded(report, sets)
    if "online" in wanted:
        compare_online(report, sets)
    if "webcam" in wanted:
        webcam(report, data)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text("".join(json.dumps(row) + "\n" for row in report.rows))
    missed = [
        f"{row['data']} {row['word']} {row['f1']}" for row in report.rows if row.get("met") is False
    ]
    print(
        "\nfloors of the default detector: "
        + ("all met" if not missed else "missed " + ", ".join(missed))
    )
    if missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
