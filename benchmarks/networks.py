"""The papers' networks: gaze predicted and activities recognised, beside floors and a forest, with
and without the head, on raw and on protected gaze; and how fast they train.

    python benchmarks/networks.py export eyenavgs.npz
    python benchmarks/networks.py prediction eyenavgs.npz [--mechanism none] [--folds 4]
    python benchmarks/networks.py activity [--mechanism none] [--people 24] [--window 10]
    python benchmarks/networks.py speed
    python benchmarks/networks.py smoke
    python benchmarks/networks.py page FILE... (writes the tables of docs/results/networks.md)

`export` reads EyeNavGS under `GAZEVEIL_DATA`; the others need that file, torch and no reader, and
use a GPU where there is one. Prediction: four folds of people, each tested by a network that saw
the other nine. Activity: simulated people and stimuli that nobody trained on. Differences are
paired, person by person; their intervals are Student's, 95 %, over people.

The tables of the page, from protected gaze; activities in windows of 10 s (and `--window 5`); and
activities under noise:

    ... prediction eyenavgs.npz --folds 2 --runs 1 --scenes 4 --steps 500 --mechanism NAME
    ... activity --mechanism none --people 40 --seed 29 --draws 1 --test-share 0.4 --steps 250
        --window 10
    ... activity --mechanism gaussian:sigma_deg=10,reading=published --private --people 16
        --draws 1 --test-share 0.5 --steps 120 --models 1 2

Trained on raw gaze and tested on releases, with `-m` for each mechanism:

    gazeveil evaluate scenes/ --format eyenavgs --no-attacks --repetitions 1 --scenario raw/private
        -u prediction:model=dgaze
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import gazeveil
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.models.headset.dgaze import dgaze_plan, train_dgaze
from gazeveil.models.headset.ehtask import ehtask_plan, train_ehtask
from gazeveil.models.training import best_device
from gazeveil.utility.classify import Activity
from gazeveil.utility.prediction import Prediction
from lines import Lines

#: Folds of people in prediction.
FOLDS = 4

#: Mechanisms of the papers' tables.
MECHANISMS = (
    "gaussian:sigma_deg=10,reading=published",
    "temporal:K=3,reading=published",
    "spatial:L=64,reading=published",
)

#: Activities of simulated people, and the seconds of each recording.
TASKS, SECONDS, STIMULI = ("free-viewing", "search", "video", "tracking"), 60.0, 6

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FoldPrediction(Prediction):
    """Prediction that tests every n-th person, from number `seed` on.

    Parameters
    ----------
    folds : int
        Every how manieth.
    """

    folds: int = FOLDS

    def split(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        people = raw.persons
        tested = people[seed % self.folds :: self.folds]
        return tuple(p for p in people if p not in tested), tested


def export(file: Path) -> None:
    """EyeNavGS as plain arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    cohort = gazeveil.read(Path(os.environ["GAZEVEIL_DATA"]) / "eyenavgs_nthu")
    for i, r in enumerate(cohort):
        assert r.head_deg is not None
        gaze = np.stack((r.x_deg, r.y_deg), axis=1)
        arrays[f"{i}/key"] = np.array([*r.key, repr(r.rate_hz)])
        arrays[f"{i}/t_ns"], arrays[f"{i}/valid"] = r.t_ns, r.valid
        arrays[f"{i}/deg"] = np.concatenate((gaze, r.head_deg), axis=1).astype(np.float32)
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def recordings(file: Path) -> Iterator[Recording]:
    """What `export` wrote."""
    with np.load(file, allow_pickle=False) as archive:
        for i in range(sum(name.endswith("/key") for name in archive.files)):
            person, stimulus, session, task, rate = archive[f"{i}/key"].tolist()
            deg, valid = archive[f"{i}/deg"].astype(np.float64), archive[f"{i}/valid"]
            yield Recording(
                person,
                stimulus,
                archive[f"{i}/t_ns"],
                np.mod(deg[:, 0], 360.0),
                np.clip(deg[:, 1], 0.0, np.nextafter(180.0, 0.0)),
                valid,
                rate_hz=float(rate),
                session=session,
                task=task,
                head_deg=deg[:, 2:],
            )


def interval(values: Floats) -> tuple[float, float, float]:
    """Mean and Student's 95 % interval over people."""
    mean = float(values.mean())
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return round(mean, 3), round(mean - half, 3), round(mean + half, 3)


def protected(raw: RecordingSet, mechanism: str, seed: int) -> RecordingSet:
    """One release of all recordings."""
    assert raw.cohort is not None
    made = gazeveil.mechanism(mechanism).release(raw.cohort, seed=seed).data
    return RecordingSet(made, None, raw.pipeline)


def errors(
    utility: FoldPrediction, raw: RecordingSet, train: RecordingSet, test: RecordingSet, runs: int
) -> dict[str, Floats]:
    """Each person's errors by name, of the first so many folds together."""
    found: dict[str, dict[str, float]] = {}
    for fold in range(runs):
        for result in utility.measure(raw, train, test, fold):
            named = found.setdefault(result.metric, {})
            named.update(zip(result.names, result.parts.tolist(), strict=True))
    return {m: np.array([named[p] for p in sorted(named)]) for m, named in found.items()}


def prediction(
    everything: Cohort, steps: int, lines: Lines, mechanisms: Sequence[str], folds: int, runs: int
) -> None:
    """Errors on EyeNavGS, raw, then protected with the head as recorded or unseen; `runs` of the
    folds alone, for somebody in a hurry: then only ours, with the head, trained on releases.
    """
    raw = RecordingSet(everything)
    ours = FoldPrediction(model="dgaze", steps=steps, folds=folds)
    models = {"dgaze, ours": ours}
    scenarios = ["private/private"]
    if runs == folds:
        models["dgaze, ours, without head"] = replace(ours, head="none")
        # Its batches are a quarter of ours.
        models["dgaze, published"] = replace(ours, steps=4 * steps, reading="published")
        models["ridge"] = FoldPrediction(model="ridge", folds=folds)
        scenarios.insert(0, "raw/private")
    for mechanism in mechanisms:
        if mechanism == "none":
            for name, model in models.items():
                got = errors(model, raw, raw, raw, runs)
                _prediction_line(name, "none", "raw/raw", got, lines)
            continue
        test, train = protected(raw, mechanism, 1), protected(raw, mechanism, 2)
        learnt = {"raw/private": raw, "private/private": train}
        for name in list(models)[:2]:
            for scenario in scenarios:
                got = errors(models[name], raw, learnt[scenario], test, runs)
                _prediction_line(name, mechanism, scenario, got, lines)


def _prediction_line(
    name: str, mechanism: str, scenario: str, got: dict[str, Floats], lines: Lines
) -> None:
    row: dict[str, object] = {
        "figure": name,
        "mechanism": mechanism,
        "scenario": scenario,
        "people": len(got["error_deg"]),
        "error_deg": interval(got["error_deg"]),
    }
    for floor in ("hold", "linear", "kalman"):
        if f"{floor}_error_deg" in got:
            row[f"{floor}_deg"] = interval(got[f"{floor}_error_deg"])
            row[f"less_than_{floor}_deg"] = interval(got[f"{floor}_error_deg"] - got["error_deg"])
    lines.keep(row)


def activities(people: int, seconds: float, first_stimulus: int, seed: int) -> Cohort:
    """Simulated people at four activities, with half of the stimuli."""
    made: list[Recording] = []
    for task in TASKS:
        cohort = gazeveil.simulate(people, STIMULI, seconds, 100.0, task=task, seed=seed)
        names = cohort.stimuli[first_stimulus : first_stimulus + STIMULI // 2]
        made += list(cohort.select(stimuli=names))
    return Cohort(made)


@dataclass(frozen=True)
class Asked:
    """Who is asked about what: people, the seed that makes them, draws, the share that is tested,
    seconds of a window, batches, and numbers of the models beside the forest,
    and whether models that were trained on raw gaze are asked about releases too.
    """

    people: int
    seed: int
    draws: int
    test_share: float
    window_s: float
    steps: int
    models: Sequence[int]
    raw_trained: bool


def activity(asked_for: Asked, lines: Lines, mechanisms: Sequence[str]) -> None:
    """Accuracies on simulated people; nobody and no stimulus is both trained on and tested."""
    people, seed, steps = asked_for.people, asked_for.seed, asked_for.steps
    window_s = asked_for.window_s
    pipeline = FeaturePipeline("is5t", {}, window_s=window_s, step_s=window_s / 2)
    train = RecordingSet(activities(people, SECONDS, 0, seed), None, pipeline)
    test = RecordingSet(activities(people, SECONDS, STIMULI // 2, seed), None, pipeline)
    assert train.cohort is not None
    assert test.cohort is not None
    both = RecordingSet(Cohort([*train.cohort, *test.cohort]), None, pipeline)
    models = {
        "forest": Activity(),
        "ehtask, ours": Activity(classifier="ehtask", steps=steps),
        "ehtask, ours, without head": Activity(classifier="ehtask", steps=steps, head="none"),
        "ehtask, published": Activity(classifier="ehtask", steps=steps, reading="published"),
    }
    share = asked_for.test_share
    some = [list(models.items())[number] for number in (0, *asked_for.models)]
    models = {name: replace(model, test_share=share) for name, model in some}
    materials: list[tuple[str, str, RecordingSet, RecordingSet]] = []
    for mechanism in mechanisms:
        if mechanism == "none":
            materials.append((mechanism, "raw/raw", train, test))
            continue
        asked, learnt = protected(test, mechanism, 1), protected(train, mechanism, 2)
        if asked_for.raw_trained:
            materials.append((mechanism, "raw/private", train, asked))
        materials.append((mechanism, "private/private", learnt, asked))
    for mechanism, scenario, known, asked in materials:
        forest: dict[str, float] = {}
        for name, model in models.items():
            if scenario != "raw/raw" and name == "ehtask, published":
                continue
            got = _by_person(model, both, known, asked, asked_for.draws)
            forest = forest or got
            mine = np.array([got[p] for p in sorted(got)])
            theirs = np.array([forest[p] for p in sorted(got)])
            lines.keep(
                {
                    "figure": name,
                    "mechanism": mechanism,
                    "scenario": scenario,
                    "window_s": window_s,
                    "people": len(mine),
                    "accuracy": interval(mine),
                    "above_forest": interval(mine - theirs),
                }
            )


def _by_person(
    model: Activity, raw: RecordingSet, known: RecordingSet, asked: RecordingSet, draws: int
) -> dict[str, float]:
    """Each person's accuracy, mean over the draws of a quarter of the people that test them."""
    found: dict[str, list[float]] = {}
    for seed in range(draws):
        result = model.measure(raw, known, asked, seed)[0]
        for person, value in zip(result.names, result.parts.tolist(), strict=True):
            found.setdefault(person, []).append(value)
    return {p: float(np.mean(v)) for p, v in found.items()}


def speed(lines: Lines, seconds: float) -> None:
    """Rows per second in training, by batch, and how busy the GPU is."""
    device = best_device()
    rng = np.random.default_rng(0)
    history, target = rng.normal(size=(8192, 6, 50)), rng.normal(size=(8192, 2))
    windows, classes = rng.normal(size=(8192, 6, 250)), rng.integers(0, 4, 8192)
    wide = device == "cuda"
    for batch in (64, 256, 4096) if wide else (64, 256):
        for name in ("dgaze", "ehtask"):
            ticks: list[float] = []

            def told(done: int, total: int, ticks: list[float] = ticks) -> None:
                enough = len(ticks) > 20 and time.perf_counter() - ticks[10] > seconds
                if enough or len(ticks) == 10:
                    settle(device)
                ticks.append(time.perf_counter())
                # Training ends when enough was seen, without waiting for the planned steps.
                if enough:
                    raise StopIteration

            with BusyMeter(wide) as busy, contextlib.suppress(StopIteration):
                if name == "dgaze":
                    plan = dgaze_plan("corrected", 10**6, 0)
                    train_dgaze(history, target, plan, batch=batch, device=device, progress=told)
                else:
                    plan = ehtask_plan("corrected", 10**6, 0)
                    train_ehtask(windows, classes, plan, batch=batch, device=device, progress=told)
            step_s = (ticks[-1] - ticks[10]) / (len(ticks) - 11)
            lines.keep(
                {
                    "figure": f"training {name}",
                    "device": device_name(device),
                    "batch": batch,
                    "rows_per_s": round(batch / step_s),
                    "ms_per_step": round(1e3 * step_s, 2),
                    "gpu_busy_percent": busy.percent(),
                }
            )


def smoke(lines: Lines) -> None:
    """Each network on a few simulated people: it beats its floor, in how many seconds of processor
    time, with the making of the people and of their windows.
    """
    import torch

    # Two threads of so small a network mostly wait for one another, and waiting counts as work.
    torch.set_num_threads(1)
    begin = time.process_time()
    few = RecordingSet(gazeveil.simulate(8, 1, 20.0, 60.0, seed=3))
    got = FoldPrediction(model="dgaze", steps=100).measure(few, few, few, 0)
    found = {r.metric: r.value for r in got}
    lines.keep(
        {
            "figure": "smoke dgaze",
            "error_deg": round(found["error_deg"], 2),
            "hold_deg": round(found["hold_error_deg"], 2),
            "met": found["error_deg"] < found["hold_error_deg"],
            "cpu_s": round(time.process_time() - begin, 1),
        }
    )
    begin = time.process_time()
    pipeline = FeaturePipeline("is5t", {}, window_s=4.0, step_s=4.0)
    train, test = (
        RecordingSet(activities(6, 20.0, first, 3), None, pipeline) for first in (0, STIMULI // 2)
    )
    made = Activity(classifier="ehtask", steps=40).measure(test, train, test, 0)[0]
    lines.keep(
        {
            "figure": "smoke ehtask",
            "accuracy": round(made.value, 2),
            "met": made.value > 0.5,
            "cpu_s": round(time.process_time() - begin, 1),
        }
    )


def settle(device: str) -> None:
    """Wait until a GPU has done all that it was told to do."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


class BusyMeter:
    """How busy a GPU is, as nvidia-smi says five times a second."""

    def __init__(self, wanted: bool) -> None:
        self.wanted, self.text = wanted, ""

    def __enter__(self) -> BusyMeter:
        if self.wanted:
            query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "200"]
            self.process = subprocess.Popen(
                ["nvidia-smi", *query], stdout=subprocess.PIPE, text=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.wanted:
            self.process.terminate()
            self.text = self.process.communicate()[0]

    def percent(self) -> float | None:
        """The median of what was read."""
        read = [float(word) for word in self.text.split() if word.isdigit()]
        return float(np.median(read)) if read else None


def device_name(device: str) -> str:
    """What the device calls itself."""
    if device == "cpu":
        return f"CPU, {os.cpu_count()} cores"
    import torch

    return torch.cuda.get_device_name()


def page(files: Sequence[Path]) -> None:
    """The figures of some runs as Markdown tables."""
    rows = [json.loads(line) for f in files for line in f.read_text().splitlines()]
    for key, columns in (
        (
            "error_deg",
            (
                "error_deg",
                "hold_deg",
                "less_than_hold_deg",
                "less_than_linear_deg",
                "less_than_kalman_deg",
            ),
        ),
        ("accuracy", ("accuracy", "above_forest")),
    ):
        some = [r for r in rows if key in r]
        print("| model | mechanism | train/test | " + " | ".join(columns) + " |")
        print("|" + "---|" * (len(columns) + 3))
        for r in some:
            cells = [_cell(r.get(c)) for c in columns]
            name = r["mechanism"].removesuffix(",reading=published")
            print("| " + " | ".join([r["figure"], f"`{name}`", r["scenario"], *cells]) + " |")
        print()


def _cell(value: Sequence[float] | None) -> str:
    if value is None:
        return ""
    return f"{value[0]:.2f} ({value[1]:.2f}\N{EN DASH}{value[2]:.2f})"


WHAT = ("export", "prediction", "activity", "speed", "smoke", "page")


def main() -> None:
    parser = argparse.ArgumentParser(description="See the docstring.")
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--people", type=int, default=24)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--scenes", type=int, default=0)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--test-share", type=float, default=0.25)
    parser.add_argument("--window", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--private", action="store_true")
    parser.add_argument("--models", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--mechanism", nargs="*", default=["none", *MECHANISMS])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    lines = Lines(None)
    if given.what == "export":
        export(given.files[0])
    elif given.what == "prediction":
        folds = given.folds, given.runs or given.folds
        cohort = Cohort(list(recordings(given.files[0])))
        cohort = cohort.select(stimuli=cohort.stimuli[: given.scenes or None])
        prediction(cohort, given.steps or 3000, lines, given.mechanism, *folds)
    elif given.what == "activity":
        asked_for = Asked(
            given.people, given.seed, given.draws, given.test_share, given.window,
            given.steps or 600, given.models, not given.private,
        )  # fmt: skip
        activity(asked_for, lines, given.mechanism)
    elif given.what == "speed":
        speed(lines, given.seconds)
    elif given.what == "smoke":
        smoke(lines)
    else:
        page(given.files)
    if given.json is not None:
        given.json.write_text("".join(json.dumps(row) + "\n" for row in lines.rows))


if __name__ == "__main__":
    main()
