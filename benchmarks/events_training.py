"""Train the network of the `auto` detector and its online twin, and cross-validate it by dataset.

    python benchmarks/events_training.py export labelled.npz
    python benchmarks/events_training.py train labelled.npz --out networks/ [--without lund2013]
        [--online] [--seconds 400]

`export` reads the labelled recordings under `GAZEVEIL_DATA` (GazeCom, Lund 2013, irf, hmr).
`train` needs the extra `deep`, uses a GPU where there is one, and writes one file of weights.
`--without` leaves a dataset out, so that it can be judged on it; `--without gazecom-even` leaves
out the people of GazeCom with even numbers. `docs/explain/event_network.md` is the model card.

Every recording is seen in many versions: its rate lowered to as little as 30 Hz, its noise raised
by up to 0.5 deg, white or coloured, its gain changed. Labels say what they can: datasets whose
labellers had no post-saccadic oscillations only say that a sample is one of saccade and
oscillation.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazeveil.compiled import compiled
from gazeveil.events.auto.network import (
    CLASSES,
    DELAY,
    DILATIONS,
    FEATURES,
    FIRST_NOISE_DEG,
    HIDDEN,
    MEDIAN_SQUARE,
    NOISE_STEP,
    STRIDE,
    WIDTH,
    grid_factor,
    motion,
    noise_on_grid,
    to_grid,
)

Floats = NDArray[np.float64]

#: The network's class of each word of `gazeveil.gaze.events.KINDS`; `undefined` says nothing.
CLASS_OF_KIND = np.array([0, 1, 3, 4, 2, 4, -1])

#: How often a dataset is drawn, how many versions are made of each of its labellings, and whether
#: its labellers knew post-saccadic oscillations.
SETS = {
    "gazecom": (4.0, 6, False),
    "hmr": (1.0, 12, False),
    "irf": (1.0, 48, True),
    "lund_img": (1.0, 48, True),
    "lund_dots": (0.5, 48, True),
    "lund_video": (1.0, 48, True),
}
CLASS_WEIGHT = (1.0, 1.3, 1.3, 1.5, 0.7)

WINDOW, BATCH = 2048, 48


@compiled
def running_noise(grid: Floats, there: NDArray[np.bool_], step: int) -> Floats:
    """The same noise at each grid sample from those before it: a median that is followed up and
    down by `NOISE_STEP` per sample.
    """
    axes, n = grid.shape
    result = np.empty(n)
    level = FIRST_NOISE_DEG
    for i in range(n):
        due = i >= 2 * step and i % step == 0
        if due and there[i] and there[i - step] and there[i - 2 * step]:
            square = 0.0
            for a in range(axes):
                bend = grid[a, i] - 2.0 * grid[a, i - step] + grid[a, i - 2 * step]
                square += bend * bend
            up = square > level * level * MEDIAN_SQUARE
            level = min(max(level * (1.0 + NOISE_STEP if up else 1.0 - NOISE_STEP), 1e-3), 10.0)
        result[i] = level
    return result


def export(path: Path) -> None:
    """Write all labelled recordings into one file."""
    from gazeveil import read
    from gazeveil.gaze.events import KINDS

    root = Path(os.environ["GAZEVEIL_DATA"])
    places = {
        "gazecom": ("gazecom", "gazecom", ("handlabeller_final",)),
        "irf": ("irf_lookatpoint", "irf", ("expert",)),
        "hmr": ("hmr", None, ("label",)),
        "lund_img": ("lund2013/img", "lund2013", ("MN", "RA")),
        "lund_dots": ("lund2013/dots", "lund2013", ("MN", "RA")),
        "lund_video": ("lund2013/video", "lund2013", ("MN", "RA")),
    }
    code = {word: i for i, word in enumerate(KINDS)}
    arrays: dict[str, Any] = {}
    for name, (folder, form, labellers) in places.items():
        for number, r in enumerate(read(root / folder, format=form)):
            key = f"{name}/{r.person}/{number}"
            arrays[f"{key}/xy"] = np.stack((r.x_deg, r.y_deg)).astype(np.float32)
            arrays[f"{key}/seen"] = r.valid
            arrays[f"{key}/rate"] = np.float64(r.rate_hz)
            arrays[f"{key}/labels"] = np.array(
                [[code[word] for word in r.labels[c]] for c in labellers if c in r.labels],
                dtype=np.int8,
            )
    np.savez_compressed(path, **arrays)


@dataclass(frozen=True)
class Labelled:
    """One labelled recording."""

    dataset: str
    person: str
    rate_hz: float
    points: Floats
    seen: NDArray[np.bool_]
    labels: NDArray[np.int8]


def load(path: Path) -> list[Labelled]:
    """The recordings of :func:`export`."""
    file = np.load(path)
    result = []
    for key in sorted({name.rpartition("/")[0] for name in file.files}):
        dataset, person, _ = key.split("/")
        points, seen = file[f"{key}/xy"].astype(np.float64), file[f"{key}/seen"]
        rate_hz = float(file[f"{key}/rate"])
        result.append(Labelled(dataset, person, rate_hz, points, seen, file[f"{key}/labels"]))
    return result


def version(
    one: Labelled, labels: NDArray[np.int8], seed: int, online: bool
) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Features and classes on the grid of one version of a recording; version 0 is as recorded."""
    rng = np.random.default_rng(seed)
    points, seen, rate = one.points, one.seen, one.rate_hz
    if seed % 1000:
        points = points * np.exp(0.15 * rng.standard_normal())
        if rng.random() < 0.6:
            step = max(1, round(rate / np.exp(rng.uniform(np.log(30.0), np.log(rate)))))
            first = int(rng.integers(step))
            points, seen, labels = points[:, first::step], seen[first::step], labels[first::step]
            rate /= step
        if rng.random() < 0.6:
            sigma = np.exp(rng.uniform(np.log(0.005), np.log(0.5)))
            points = points + coloured(rng, points.shape, sigma, rng.choice((0.0, 0.0, 0.5, 0.8)))
        if rng.random() < 0.2:
            seen = seen & ~losses(rng, len(seen), rate)
    merge, split = grid_factor(rate)
    points = held(points, seen) if online else bridged(points, seen)
    grid, there = to_grid(points, np.ascontiguousarray(seen), merge, split)
    if online:
        noise = running_noise(grid, there, split)
    else:
        noise = np.full(len(there), noise_on_grid(grid, there, split))
    features = motion(grid, there, rate * split / merge, noise, online)
    # The label of the sample in the middle of a block, or next to a point between two samples.
    nearest = (np.arange(len(there)) * merge + merge // 2 + split // 2) // split
    at = np.minimum(nearest, len(labels) - 1)
    classes = CLASS_OF_KIND[labels[at]].astype(np.int8)
    if online:
        classes = np.concatenate((np.full(DELAY, -1, np.int8), classes[:-DELAY]))[: len(classes)]
    return features, classes


def losses(rng: np.random.Generator, n: int, rate_hz: float) -> NDArray[np.bool_]:
    """About one loss of up to 0.1 s in each second."""
    result = np.zeros(n, dtype=np.bool_)
    for start in rng.integers(0, n, max(1, round(n / rate_hz))):
        result[start : start + round(rng.uniform(0.0, 0.1) * rate_hz)] = True
    return result


def bridged(points: Floats, seen: NDArray[np.bool_]) -> Floats:
    """Gaps as straight lines, as the detector of whole recordings sees them."""
    at = np.arange(len(seen))
    return np.stack([np.interp(at, at[seen], axis[seen]) for axis in points])


def held(points: Floats, seen: NDArray[np.bool_]) -> Floats:
    """Gaps as the last place seen, all that is known in a stream."""
    last = np.maximum.accumulate(np.where(seen, np.arange(len(seen)), np.argmax(seen)))
    return np.ascontiguousarray(points[:, last])


def coloured(rng: np.random.Generator, shape: tuple[int, ...], sigma: float, pole: float) -> Floats:
    """Noise of deviation `sigma` whose neighbours correlate by `pole`."""
    from scipy.signal import lfilter

    white = rng.standard_normal(shape)
    return np.asarray(sigma * lfilter([np.sqrt(1 - pole * pole)], [1.0, -pole], white, axis=1))


def left_out(one: Labelled, without: str) -> bool:
    """Whether a recording belongs to what is left out."""
    if without == "gazecom-even":
        return one.dataset == "gazecom" and int(one.person.removeprefix("obs")) % 2 == 0
    return bool(without) and one.dataset.startswith({"lund2013": "lund"}.get(without, without))


def network(online: bool) -> Any:
    """The network in PyTorch; :mod:`gazeveil.events.auto.network` runs its weights without it."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv1d(FEATURES, WIDTH, 3)
            self.down = nn.Conv1d(WIDTH, HIDDEN, STRIDE, stride=STRIDE)
            self.depthwise = nn.ModuleList(
                nn.Conv1d(HIDDEN, HIDDEN, 3, dilation=d, groups=HIDDEN) for d in DILATIONS
            )
            self.pointwise = nn.ModuleList(nn.Conv1d(HIDDEN, HIDDEN, 1) for _ in DILATIONS)
            self.up = nn.Conv1d(HIDDEN, WIDTH, 1)
            self.fuse = nn.Conv1d(WIDTH, WIDTH, 3)
            self.out = nn.Conv1d(WIDTH, len(CLASSES), 1)

        def forward(self, x: Any) -> Any:
            def pad(y: Any, d: int) -> Any:
                return functional.pad(y, (2 * d, 0) if online else (d, d))

            stem = torch.relu(self.stem(pad(x, 1)))
            g = torch.relu(self.down(stem))
            for i, d in enumerate(DILATIONS):
                g = g + torch.relu(self.pointwise[i](self.depthwise[i](pad(g, d))))
            u = self.up(g).repeat_interleave(STRIDE, dim=2)
            if online:
                # A block is whole with its last sample.
                u = functional.pad(u, (STRIDE - 1, 0))[:, :, : u.shape[2]]
            z = torch.relu(stem + u)
            z = z + torch.relu(self.fuse(pad(z, 1)))
            return self.out(z)

    return Network()


def train(path: Path, out: Path, without: str, online: bool, seconds: float, seed: int) -> None:
    """Train one network and write its weights."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    recordings = [one for one in load(path) if not left_out(one, without)]
    pools: dict[str, NDArray[np.int64]] = {}
    total, tables = 0, []
    for dataset in SETS:
        rows = []
        for one in (r for r in recordings if r.dataset == dataset):
            for labels in one.labels:
                for v in range(SETS[dataset][1]):
                    features, classes = version(one, labels, 1000 * len(tables) + v, online)
                    tables.append((features, classes))
                    rows.append((total, len(classes)))
                    total += len(classes)
        if rows:
            pools[dataset] = np.array(rows)
    x = torch.zeros((total + 1, FEATURES), dtype=torch.float32)
    y = torch.full((total + 1,), -1, dtype=torch.int64)
    at = 0
    for features, classes in tables:
        x[at : at + len(classes)] = torch.from_numpy(features)
        y[at : at + len(classes)] = torch.from_numpy(classes.astype(np.int64))
        at += len(classes)
    x, y = x.to(device), y.to(device)
    model, mean = network(online).to(device), network(online).to(device)
    mean.load_state_dict(model.state_dict())
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    weights = torch.tensor(CLASS_WEIGHT, device=device)
    rng = np.random.default_rng(seed)
    windows, ahead = Windows(pools), torch.arange(WINDOW, device=device)
    begin, step, progress = time.monotonic(), 0, 0.0
    while progress < 1.0:
        for group in optimiser.param_groups:
            group["lr"] = 3e-3 * 0.5 * (1 + np.cos(np.pi * progress)) * min(1.0, (step + 1) / 200)
        start, span, joined = (torch.from_numpy(a).to(device) for a in windows.draw(rng))
        index = start[:, None] + ahead
        index = torch.where((index >= span[:, :1]) & (index < span[:, 1:]), index, total)
        logits = model(x[index].transpose(1, 2))
        loss = partial_loss(logits, y[index], joined, weights)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        keep = min(0.998, step / (step + 100))
        with torch.no_grad():
            for a, b in zip(mean.parameters(), model.parameters(), strict=True):
                a.mul_(keep).add_(b, alpha=1 - keep)
        step += 1
        progress = (time.monotonic() - begin) / seconds
        if step % 500 == 0:
            print(f"{without or 'all'} {step} {progress:.2f} {loss.item():.4f}", flush=True)
    kind = "online" if online else "auto"
    out.mkdir(parents=True, exist_ok=True)
    state = {k: v.cpu().numpy().astype(np.float32) for k, v in mean.state_dict().items()}
    np.savez(out / f"{kind}_{without or 'all'}.npz", **state)
    print(f"{kind} without {without or 'nothing'}: {step} steps, loss {loss.item():.4f}")


@dataclass(frozen=True)
class Windows:
    """Where the windows of a batch may lie: rows (first grid sample, length) of each dataset."""

    rows: dict[str, NDArray[np.int64]]

    def draw(
        self, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """For a batch: begin of the window, first and one past the last grid sample of its
        recording, and whether a saccade may mean an oscillation.
        """
        names = list(self.rows)
        share = np.array([SETS[name][0] for name in names])
        start = np.empty(BATCH, dtype=np.int64)
        span = np.empty((BATCH, 2), dtype=np.int64)
        joined = np.empty(BATCH, dtype=np.bool_)
        for b, d in enumerate(rng.choice(len(names), BATCH, p=share / share.sum())):
            rows = self.rows[names[d]]
            first, length = rows[rng.integers(len(rows))]
            margin = WINDOW // 8
            start[b] = first + rng.integers(-margin, max(1, length - WINDOW + margin))
            span[b] = first, first + length
            joined[b] = not SETS[names[d]][2]
        return start, span, joined


def partial_loss(logits: Any, classes: Any, joined: Any, weights: Any) -> Any:
    """Cross entropy; where oscillations were not labelled, a saccade is either."""
    import torch

    logp = torch.log_softmax(logits, dim=1)
    known = classes >= 0
    target = classes.clamp(min=0)
    own = logp.gather(1, target[:, None]).squeeze(1)
    either = torch.logaddexp(logp[:, 1], logp[:, 2])
    own = torch.where(joined[:, None] & (target == 1), either, own)
    w = weights[target] * known
    return -(own * w).sum() / w.sum()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("export")
    writing.add_argument("file", type=Path)
    training = commands.add_parser("train")
    training.add_argument("file", type=Path)
    training.add_argument("--out", type=Path, required=True)
    training.add_argument("--without", nargs="*", default=[""])
    training.add_argument("--online", nargs="*", type=int, default=[0], choices=(0, 1))
    training.add_argument("--seconds", type=float, default=400.0)
    training.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.command == "export":
        export(given.file)
        return
    jobs = [
        multiprocessing.get_context("spawn").Process(
            target=train,
            args=(given.file, given.out, name, bool(online), given.seconds, given.seed),
        )
        for online in given.online
        for name in given.without
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()


if __name__ == "__main__":
    main()
