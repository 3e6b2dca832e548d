"""The dense network `ekyt`: how fast it trains, whom it recognises, and what head motion gives
away beside protected gaze. `verification.py` judges it on people it never saw.

    python benchmarks/ekyt_training.py export velocities.npz
    python benchmarks/ekyt_training.py speed velocities.npz [--json FILE]
    python benchmarks/ekyt_training.py people velocities.npz [--splits 10] [--steps 300]
    python benchmarks/ekyt_training.py head velocities.npz [--splits 10]

`export` reads GazeCom and EyeNavGS under `GAZEVEIL_DATA`, simulates people, makes the releases and
writes velocities; the others need that file, torch and nothing else, and use a GPU where there is
one.

`speed` compares training with a first, straightforward version of it: torch's `DataLoader` that
stacks windows on the host and copies each batch, float32, torch's own convolutions, and the loss
anchor by anchor as its authors published it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.models.ekyt.weights import (
    DILATIONS,
    GROWTH,
    NAMING,
    NUMBERS,
    WIDTH,
    BatchPlan,
    train_ekyt,
)
from gazeveil.models.ekyt.windows import VelocityInput, VelocityScale, WindowSet
from gazeveil.models.training import StepPlan, best_device
from lines import Lines

#: Releases of a random mechanism: a split takes two of them.
RELEASES = 5

#: Mechanisms on GazeCom, and on gaze of EyeNavGS whose head motion is released as it is.
ON_SCREEN = ("temporal:K=3", "gaussian:sigma_deg=10")
ON_HEAD = ("gaussian:sigma_deg=10", "spatial:L=64", "clock-render:epsilon=1,r_deg=2")

#: Simulated people: trained on and held out, stimuli, sessions, seconds, rates.
TRAINED, HELD_OUT, STIMULI, SESSIONS, SECONDS = 140, 60, 2, 3, 20.0
RATES = (125.0, 62.5, 31.25)

#: Batch of the speed figures: that of the paper.
PAPER = BatchPlan(16, 16)


class Bag:
    """Velocities by name, in and out of one file."""

    def __init__(self, arrays: dict[str, NDArray[Any]] | None = None) -> None:
        self.arrays = arrays if arrays is not None else {}

    @classmethod
    def read(cls, path: Path) -> Bag:
        with np.load(path, allow_pickle=False) as archive:
            return cls({name: archive[name] for name in archive.files})

    def put(self, name: str, recordings: Iterable[Any], setting: VelocityInput) -> None:
        windows = WindowSet.of(recordings, setting)
        self.arrays[f"{name}/keys"] = np.array(windows.keys, dtype=np.str_)
        self.arrays[f"{name}/lengths"] = windows.lengths
        self.arrays[f"{name}/setting"] = np.array(
            [setting.rate_hz, setting.window_s, float(setting.count)]
        )
        # Half precision is a thousandth of a velocity: far below a tracker's noise.
        self.arrays[f"{name}/values"] = windows.values.astype(np.float16)

    def get(self, name: str, channels: str = "gaze") -> WindowSet:
        rate_hz, window_s, _ = self.arrays[f"{name}/setting"]
        keys = [tuple(key) for key in self.arrays[f"{name}/keys"]]
        values = self.arrays[f"{name}/values"].astype(np.float64)
        setting = VelocityInput(float(rate_hz), float(window_s), channels)
        return WindowSet.joined(keys, self.arrays[f"{name}/lengths"], values, setting)


def export(path: Path) -> None:
    import gazeveil
    from gazeveil.gaze.cohort import Cohort

    root, bag = Path(os.environ["GAZEVEIL_DATA"]), Bag()
    gazecom = Cohort(list(gazeveil.read(root / "gazecom")))
    bag.put("gazecom/raw", gazecom, VelocityInput(125.0))
    for text in ON_SCREEN:
        mechanism = gazeveil.mechanism(text)
        for i in range(1 if text.startswith("temporal") else RELEASES):
            released = mechanism.release(gazecom, seed=i).data.load()
            rate = min(125.0, *(r.rate_hz for r in released))
            bag.put(f"gazecom/{text}/{i}", released, VelocityInput(rate))
    nthu = Cohort(list(gazeveil.read(root / "eyenavgs_nthu")))
    rate = min(r.rate_hz for r in nthu)
    bag.put("eyenavgs/raw", nthu, VelocityInput(rate))
    bag.put("eyenavgs/head", nthu, VelocityInput(rate, channels="head"))
    for text in ON_HEAD:
        for i in range(RELEASES):
            released = gazeveil.mechanism(text).release(nthu, seed=i).data.load()
            bag.put(f"eyenavgs/{text}/{i}", released, VelocityInput(rate))
    simulated = gazeveil.simulate(
        TRAINED + HELD_OUT, STIMULI, SECONDS, RATES[0], seed=1, sessions=SESSIONS
    )
    for rate in RATES:
        bag.put(f"simulated/{rate:g}", simulated, VelocityInput(rate))
    np.savez_compressed(path, **bag.arrays)  # type: ignore[arg-type]
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


# ---------------------------------------------------------------------------------------- speed


class _Windows:
    """A dataset as a first version has it: one window at a time, in host memory."""

    def __init__(self, values: NDArray[Any], starts: NDArray[Any], code: NDArray[Any], n: int):
        self.values, self.starts, self.code, self.n = values, starts, code, n

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, i: int) -> tuple[NDArray[Any], int]:
        return self.values[:, self.starts[i] : self.starts[i] + self.n], int(self.code[i])


def _plain_network(people: int) -> Any:
    from torch import nn

    layers, size = [], 2
    for k, d in enumerate(DILATIONS):
        before = [nn.BatchNorm1d(size), nn.ReLU()] if k else []
        layers.append(nn.Sequential(*before, nn.Conv1d(size, GROWTH, WIDTH, 1, d, d)))
        size += GROWTH
    return nn.ModuleDict(
        {
            "layers": nn.ModuleList(layers),
            "last": nn.Sequential(
                nn.BatchNorm1d(size), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                nn.Linear(size, NUMBERS),
            ),
            "classifier": nn.Sequential(
                nn.BatchNorm1d(NUMBERS), nn.ReLU(), nn.Linear(NUMBERS, people)
            ),
        }
    )  # fmt: skip


def plain_similarity_loss(embeddings: Any, people: Any) -> Any:
    """The multi-similarity loss anchor by anchor, as a reader of the paper writes it."""
    import torch

    unit = torch.nn.functional.normalize(embeddings, dim=1)
    cosines = unit @ unit.T
    total = embeddings.new_zeros(())
    for i in range(len(people)):
        same = people == people[i]
        other = ~same
        same = same.clone()
        same[i] = False
        positive, negative = cosines[i][same], cosines[i][other]
        if len(positive) == 0 or len(negative) == 0:
            continue
        kept_negative = negative[negative + 0.1 > positive.min()]
        kept_positive = positive[positive - 0.1 < negative.max()]
        total = total + torch.log1p(torch.exp(-2.0 * (kept_positive - 0.5)).sum()) / 2.0
        total = total + torch.log1p(torch.exp(50.0 * (kept_negative - 0.5)).sum()) / 50.0
    return total / len(people)


def _plain_steps(windows: WindowSet, code: NDArray[Any], steps: int, device: str) -> float:
    """Seconds per step of the straightforward version."""
    import torch
    from torch.utils.data import DataLoader

    values = VelocityScale.fit(windows.values).apply(windows.values)
    data: Any = _Windows(values, windows.starts, code, windows.setting.samples)
    people = int(code.max()) + 1
    network = _plain_network(people).to(device)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    rng = np.random.default_rng(0)

    def picked() -> list[int]:
        chosen = rng.permutation(people)[: PAPER.people]
        return [
            int(i) for p in chosen for i in rng.choice(np.flatnonzero(code == p), PAPER.windows)
        ]

    batches: Any = [picked() for _ in range(steps + 3)]
    began = 0.0
    for step, (batch, names) in enumerate(DataLoader(data, batch_sampler=batches)):
        if step == 3:
            _wait(device)
            began = time.perf_counter()
        joined, names = batch.to(device), names.to(device)
        optimiser.zero_grad()
        for layer in network["layers"]:
            joined = torch.cat((joined, layer(joined)), dim=1)
        embedded = network["last"](joined)
        loss = plain_similarity_loss(embedded, names) + NAMING * torch.nn.functional.cross_entropy(
            network["classifier"](embedded), names
        )
        loss.backward()
        optimiser.step()
        loss.item()
    _wait(device)
    return (time.perf_counter() - began) / steps


def _our_steps(windows: WindowSet, steps: int, device: str, compiled: bool) -> tuple[float, float]:
    """Seconds per step of ours, and seconds before the first (start and compiling)."""
    warm, times = 10, []

    def note(done: int, _: int) -> None:
        if done in (warm, warm + steps):
            _wait(device)
            times.append(time.perf_counter())

    began = time.perf_counter()
    plan = replace(PAPER, compiled=compiled)
    train_ekyt(windows, StepPlan(warm + steps), plan, device, note)
    return (times[1] - times[0]) / steps, times[0] - began


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


class _Use:
    """Use of the GPU while something runs, by nvidia-smi four times a second."""

    def __enter__(self) -> _Use:
        import subprocess

        # Without a shell, which would outlive its end and keep the pipe open.
        query = "--query-gpu=utilization.gpu,power.draw"
        self.process = subprocess.Popen(
            ["nvidia-smi", query, "--format=csv,noheader,nounits", "-lms", "250"],
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        text = self.process.communicate()[0]
        rows = [line.split(",") for line in text.splitlines() if "," in line]
        self.percent = float(np.median([float(r[0]) for r in rows])) if rows else float("nan")
        self.watts = float(np.median([float(r[1]) for r in rows])) if rows else float("nan")


def speed(bag: Bag, lines: Lines) -> None:
    import torch

    device = best_device()
    windows = bag.get("gazecom/raw")
    _, code = windows.people()
    gpu = device == "cuda"
    torch.backends.cuda.matmul.allow_tf32 = False
    per_step = PAPER.people * PAPER.windows * windows.setting.samples
    plain = _plain_steps(windows, code, 30 if gpu else 2, device)
    lines.keep({"figure": "plain", "ms": 1e3 * plain, "samples_per_s": per_step / plain})
    # A step multiplies 912 channels by 3 taps and 32 outputs at every sample, three times with the
    # gradients.
    operations = (
        2
        * 3
        * per_step
        * WIDTH
        * GROWTH
        * sum(2 + GROWTH * layer for layer in range(len(DILATIONS)))
    )
    for compiled in (False, True) if gpu else (False,):
        use = _Use() if gpu else None
        if use is not None:
            use.__enter__()
        ours, start = _our_steps(windows, 1500 if gpu else 3, device, compiled)
        if use is not None:
            use.__exit__()
        lines.keep(
            {
                "figure": "ours, compiled" if compiled else "ours",
                "ms": 1e3 * ours,
                "samples_per_s": per_step / ours,
                "tflops": operations / ours / 1e12,
                "times_faster": plain / ours,
                "start_s": start,
                "gpu_percent": None if use is None else use.percent,
                "gpu_watts": None if use is None else use.watts,
                "device": torch.cuda.get_device_name() if gpu else device,
            }
        )


# --------------------------------------------------------------------------------------- people


def _rank1(
    gallery: WindowSet, probe: WindowSet, seed: int, steps: int, batch: BatchPlan
) -> NDArray[Any]:
    """1 for each person of the probe who is named rightly, else 0."""
    model, _ = train_ekyt(gallery, StepPlan(steps, seed=seed), batch, best_device())
    people = tuple(sorted(set(gallery.persons)))
    known, _ = model.means(known_windows := gallery.every(2.5), known_windows.persons, people)
    asked = probe.every(2.5)
    probes = tuple(sorted(set(asked.persons)))
    means, _ = model.means(asked, asked.persons, probes)
    named = np.argmax(means @ known.T, axis=1)
    return np.array([people[n] == p for n, p in zip(named, probes, strict=True)], dtype=float)


def _split(stimuli: list[str], repetition: int, share: float = 0.75) -> Callable[[Any], bool]:
    rng = np.random.default_rng(1000 + repetition)
    learnt = {stimuli[i] for i in rng.permutation(len(stimuli))[: round(share * len(stimuli))]}
    return lambda key: key[1] in learnt


def _two(i: int) -> tuple[int, int]:
    """Two different releases for each split."""
    return i % RELEASES, (i + 1 + i // RELEASES) % RELEASES


def _identify(
    lines: Lines, name: str, pairs: Callable[[int], tuple[WindowSet, WindowSet]],
    splits: int, steps: int, batch: BatchPlan, **more: object,
) -> None:  # fmt: skip
    rates, began = [], time.perf_counter()
    for i in range(splits):
        first, second = pairs(i)
        learnt = _split(sorted({k[1] for k in first.keys}), i)
        probe = second.where(lambda k, learnt=learnt: not learnt(k))  # type: ignore[misc]
        rates.append(float(_rank1(first.where(learnt), probe, i, steps, batch).mean()))
    lines.keep(
        {
            "figure": name,
            "rank1": float(np.mean(rates)),
            "rates": rates,
            "seconds_per_split": (time.perf_counter() - began) / splits,
            "steps": steps,
            **more,
        }
    )


def people(bag: Bag, lines: Lines, splits: int, steps: int, batch: BatchPlan) -> None:
    raw = bag.get("gazecom/raw")
    shown = f"{batch.people} x {batch.windows}"
    _identify(lines, "gazecom raw", lambda _: (raw, raw), splits, steps, batch, in_batch=shown)
    for text in ON_SCREEN:
        sets = [
            bag.get(f"gazecom/{text}/{i}")
            for i in range(RELEASES)
            if f"gazecom/{text}/{i}/keys" in bag.arrays
        ]

        def pairs(i: int, sets: list[WindowSet] = sets) -> tuple[WindowSet, WindowSet]:
            a, b = _two(i)
            return sets[a % len(sets)], sets[b % len(sets)]

        _identify(lines, f"gazecom {text}", pairs, splits, steps, batch, in_batch=shown)


def _beside(gaze: WindowSet, head: WindowSet) -> WindowSet:
    """Velocities of gaze and of the head together."""
    assert gaze.keys == head.keys
    setting = replace(gaze.setting, channels="gaze+head")
    parts = []
    for a, b in zip(gaze.parts(), head.parts(), strict=True):
        n = max(a.shape[1], b.shape[1])
        parts.append(
            np.concatenate(
                [np.pad(p, ((0, 0), (0, n - p.shape[1])), constant_values=np.nan) for p in (a, b)]
            )
        )
    lengths = np.array([p.shape[1] for p in parts])
    return WindowSet.joined(gaze.keys, lengths, np.concatenate(parts, axis=1), setting)


def head(bag: Bag, lines: Lines, splits: int, steps: int, batch: BatchPlan) -> None:
    raw, alone = bag.get("eyenavgs/raw"), bag.get("eyenavgs/head", "head")
    both = _beside(raw, alone)
    for name, windows in (("gaze raw", raw), ("head raw", alone), ("gaze raw + head", both)):

        def same(_: int, windows: WindowSet = windows) -> tuple[WindowSet, WindowSet]:
            return windows, windows

        _identify(lines, f"eyenavgs {name}", same, splits, steps, batch)
    for text in ON_HEAD:
        sets = [bag.get(f"eyenavgs/{text}/{i}") for i in range(RELEASES)]
        joined = [_beside(s, alone) for s in sets]
        for name, chosen in ((text, sets), (f"{text} + head", joined)):

            def pairs(i: int, chosen: list[WindowSet] = chosen) -> tuple[WindowSet, WindowSet]:
                a, b = _two(i)
                return chosen[a], chosen[b]

            _identify(lines, f"eyenavgs {name}", pairs, splits, steps, batch)


def main() -> None:
    parser = argparse.ArgumentParser(description="See the docstring.")
    parser.add_argument("what", choices=("export", "speed", "people", "head"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--people", type=int, default=16)
    parser.add_argument("--windows", type=int, default=8)
    given = parser.parse_args()
    if given.what == "export":
        export(given.file)
        return
    bag = Bag.read(given.file)
    lines, batch = Lines(given.json), BatchPlan(given.people, given.windows)
    if given.what == "speed":
        speed(bag, lines)
    else:
        {"people": people, "head": head}[given.what](bag, lines, given.splits, given.steps, batch)
    if given.json is not None:
        given.json.write_text("".join(json.dumps(r) + "\n" for r in lines.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
