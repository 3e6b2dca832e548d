"""Fill in docs/explain/simulator.md: how far the simulator is from GazeCom and EyeNavGS.

The prose of that page is written by hand; what stands between its `<!-- NAME -->` and `<!-- end
-->` lines comes from here. Run as `python docs/explain/simulator.py`. The recordings are looked for
under GAZEVEIL_DATA (default ../shared/data). Everything that is measured on real recordings is
measured in the same way, by the same detector and at the same rates, on simulated ones.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

import gazeveil
from gazeveil.features.rows import fixation_and_saccade_features
from gazeveil.gaze.geometry import angle_deg
from gazeveil.gaze.simulate import DOCUMENTS, TASKS

mpl.use("Agg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
DATA = Path(
    os.environ.get("GAZEVEIL_DATA", HERE / ".." / ".." / ".." / "shared" / "data")
).resolve()
SEED = 20
# Bounds of "within 20 %" for a ratio simulated / real.
LOW, HIGH = 0.8, 1.2
REAL, SIMULATED = "#33415c", "#e07a2f"

Arrays = dict[str, NDArray[np.float64]]


def simulated_like(real: gazeveil.Recording, person: int, stimulus: int) -> gazeveil.Recording:
    """The simulator's answer to a real recording: as long, as fast, in the same space."""
    task = "free-viewing" if isinstance(real.space, gazeveil.Sphere) else "video"
    # The Quest Pro drops to half its frame rate for single frames, up to every second one; the twin
    # has as many late frames.
    seconds = max(real.duration_s + 1 / real.rate_hz, len(real) / real.rate_hz)
    late = min(0.9, seconds * real.rate_hz / len(real) - 1)
    late = late if late > 0.01 else 0.0
    return gazeveil.simulate(
        person + 1, stimulus + 1, seconds, real.rate_hz, task, real.space, seed=SEED, late=late
    )[-1]


def pairs(cohort: gazeveil.Cohort) -> tuple[list[gazeveil.Recording], list[gazeveil.Recording]]:
    """Every recording of a cohort and its simulated twin."""
    people, stimuli = list(cohort.people), list(cohort.stimuli)
    real = list(cohort)
    return real, [
        simulated_like(r, people.index(r.person), stimuli.index(r.stimulus)) for r in real
    ]


def measure(recordings: Iterable[gazeveil.Recording], method: str) -> Arrays:
    """Durations, amplitudes, peak speeds and noise of all events that do not touch the ends of
    their recordings.
    """
    found: dict[str, list[float]] = {
        name: []
        for name in ("fixation_ms", "amplitude_deg", "peak_deg_s", "step_deg", "spread_deg")
    }
    dither = np.random.default_rng(1)
    for r in recordings:
        v = r.vectors
        step = np.concatenate(([np.nan], angle_deg(v[1:], v[:-1])))
        events = gazeveil.detect(r, method)
        for kind, a, b in zip(events.kind, events.onset, events.offset, strict=True):
            if a == 0 or b == len(r) - 1:
                continue
            if kind == "fixation":
                # Half a sample of dither on both sides: else quartiles at 36 Hz jump in steps of 28
                # ms.
                found["fixation_ms"].append(
                    1000 * (b - a + 1 + dither.uniform(-0.5, 0.5)) / r.rate_hz
                )
                inside = v[a : b + 1][r.valid[a : b + 1]]
                if len(inside) >= 4:
                    found["spread_deg"].append(float(np.degrees(np.sqrt(inside.var(axis=0).sum()))))
                    found["step_deg"].append(float(np.sqrt(np.nanmean(step[a + 1 : b + 1] ** 2))))
            elif kind == "saccade" and r.valid[a - 1 : b + 1].all():
                found["amplitude_deg"].append(float(angle_deg(v[a - 1], v[b])))
                found["peak_deg_s"].append(float(step[a : b + 1].max() * r.rate_hz))
    return {name: np.array(values) for name, values in found.items()}


def slope(found: Arrays) -> float:
    """Peak speed per degree of amplitude, least squares over saccades of 1 to 15 degrees."""
    a, v = found["amplitude_deg"], found["peak_deg_s"]
    used = (a > 1) & (a < 15)
    return float(np.polyfit(a[used], v[used], 1)[0])


def percentile(name: str, q: float) -> Callable[[Arrays], float]:
    """A percentile of one measure."""
    return lambda found: float(np.percentile(found[name], q))


FIGURES: dict[str, Callable[[Arrays], float]] = {
    "fixation duration, lower quartile (ms)": percentile("fixation_ms", 25),
    "fixation duration, median (ms)": percentile("fixation_ms", 50),
    "fixation duration, upper quartile (ms)": percentile("fixation_ms", 75),
    "saccade amplitude, lower quartile (deg)": percentile("amplitude_deg", 25),
    "saccade amplitude, median (deg)": percentile("amplitude_deg", 50),
    "saccade amplitude, upper quartile (deg)": percentile("amplitude_deg", 75),
    "main sequence, slope from 1 to 15 deg (1/s)": slope,
    "noise, RMS of steps in fixations, median (deg)": percentile("step_deg", 50),
    "noise, deviation in fixations, median (deg)": percentile("spread_deg", 50),
}


@dataclass(frozen=True)
class Comparison:
    """One dataset, one detector."""

    title: str
    method: str
    real: Arrays
    simulated: Arrays

    def rows(self) -> list[tuple[str, float, float, float, bool]]:
        """Name, real, simulated, ratio, within 20 %."""
        result = []
        for name, figure in FIGURES.items():
            a, b = figure(self.real), figure(self.simulated)
            result.append((name, a, b, b / a, LOW <= b / a <= HIGH))
        return result

    def markdown(self) -> str:
        """The comparison as a table."""
        lines = [f"### {self.title}, detector `{self.method}`", ""]
        lines.append(
            f"{len(self.real['fixation_ms'])} fixations and {len(self.real['amplitude_deg'])}"
            " saccades real,"
        )
        lines.append(
            f"{len(self.simulated['fixation_ms'])} and {len(self.simulated['amplitude_deg'])}"
            " simulated."
        )
        lines += ["", "| figure | real | simulated | ratio |", "|---|---|---|---|"]
        lines += [
            f"| {name} | {a:.3g} | {b:.3g} | {f'{ratio:.2f}' if ok else f'**{ratio:.2f}**'} |"
            for name, a, b, ratio, ok in self.rows()
        ]
        return "\n".join(lines)


# --- identity
# --------------------------------------------------------------------------------------------------


def feature_means(
    recordings: Iterable[gazeveil.Recording],
) -> tuple[NDArray[np.float64], list[str], list[str]]:
    """Mean event features of each recording, shape (people, stimuli, features), NaN where there are
    too few events.
    """
    rows = {}
    for r in recordings:
        fixations, saccades = fixation_and_saccade_features(r, method="ivt")
        if len(fixations) >= 3 and len(saccades) >= 3:
            rows[r.person, r.stimulus] = np.concatenate(
                (np.nanmean(fixations.values, axis=0), np.nanmean(saccades.values, axis=0))
            )
    people, stimuli = sorted({p for p, _ in rows}), sorted({s for _, s in rows})
    table = np.full((len(people), len(stimuli), len(next(iter(rows.values())))), np.nan)
    for (p, s), row in rows.items():
        table[people.index(p), stimuli.index(s)] = row
    return table, people, stimuli


def linkage(table: NDArray[np.float64], repetitions: int = 10) -> float:
    """Share of people found again on other stimuli (a quarter of them): means less the stimulus,
    whitened, nearest by cosine.
    """
    rng = np.random.default_rng(0)
    x = table - np.nanmean(table, axis=0)
    x = x / np.maximum(np.nanstd(x.reshape(-1, x.shape[2]), axis=0), 1e-9)
    rates = []
    for _ in range(repetitions):
        order = rng.permutation(x.shape[1])
        cut = max(1, x.shape[1] // 4)
        known, asked = np.nanmean(x[:, order[cut:]], axis=1), np.nanmean(x[:, order[:cut]], axis=1)
        inside = (x[:, order[cut:]] - known[:, None]).reshape(-1, x.shape[2])
        inside = inside[np.isfinite(inside).all(axis=1)]
        whiten = np.linalg.inv(np.linalg.cholesky(shrunk(inside))).T
        usable = np.isfinite(asked).all(axis=1)
        known, asked = known @ whiten, asked[usable] @ whiten
        known /= np.linalg.norm(known, axis=1, keepdims=True)
        asked /= np.linalg.norm(asked, axis=1, keepdims=True)
        rates.append(np.mean((asked @ known.T).argmax(axis=1) == np.flatnonzero(usable)))
    return float(np.mean(rates))


def shrunk(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Covariance shrunk towards a sphere as Ledoit and Wolf (2004) say."""
    n, p = x.shape
    s = x.T @ x / n
    mean = np.trace(s) / p
    distance = ((s - mean * np.eye(p)) ** 2).sum() / p
    error = min(distance, (((x**2).T @ (x**2)).sum() / n - (s**2).sum()) / n / p)
    return (1 - error / distance) * s + error / distance * mean * np.eye(p)


def told_apart(groups: dict[str, list[gazeveil.Recording]]) -> float:
    """Share of recordings whose group is found from features of other people only: nearest mean,
    leave one person out.
    """
    rows, names, people = [], [], []
    for name, recordings in groups.items():
        for r in recordings:
            fixations, saccades = fixation_and_saccade_features(r, method="ivt")
            # Tracking at 60 Hz has hardly a saccade of the four samples that features need; no
            # events, no value.
            rows.append(
                np.concatenate(
                    [
                        f(t.values, axis=0) if len(t) else np.zeros(len(t.columns))
                        for t in (fixations, saccades)
                        for f in (np.mean, np.std)
                    ]
                )
            )
            names.append(name)
            people.append(r.person)
    x, who, what = np.array(rows), np.array(people), np.array(names)
    right = 0
    for person in sorted(set(people)):
        train = who != person
        z = (x - x[train].mean(axis=0)) / np.maximum(x[train].std(axis=0), 1e-9)
        centres = {name: z[train & (what == name)].mean(axis=0) for name in groups}
        for i in np.flatnonzero(~train):
            right += (
                min(groups, key=lambda name, i=i: float(((z[i] - centres[name]) ** 2).sum()))
                == what[i]
            )
    return right / len(x)


# --- plots
# --------------------------------------------------------------------------------------------------


def save(figure: plt.Figure, name: str) -> str:
    """Write one figure; returns the markdown that shows it."""
    path = HERE.parent / "figures" / f"simulator-{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return f"![{name}](../figures/{path.name})"


def plot_distributions(
    comparisons: list[Comparison], name: str, label: str, top: list[float]
) -> str:
    """Histograms of one measure, real and simulated."""
    figure, axes = plt.subplots(1, len(comparisons), figsize=(10, 3.2))
    for axis, c, most in zip(axes, comparisons, top, strict=True):
        bins = np.linspace(0, most, 50)
        axis.hist(c.real[name], bins, density=True, color=REAL, alpha=0.55, label="real")
        axis.hist(
            c.simulated[name],
            bins,
            density=True,
            histtype="step",
            color=SIMULATED,
            linewidth=1.8,
            label="simulated",
        )
        for values, colour in ((c.real[name], REAL), (c.simulated[name], SIMULATED)):
            axis.axvline(np.median(values), color=colour, linestyle=":", linewidth=1.2)
        axis.set(title=c.title, xlabel=label, yticks=[])
        axis.legend(frameon=False)
    return save(figure, name.replace("_", "-"))


def plot_main_sequence(comparisons: list[Comparison]) -> str:
    """Peak speed against amplitude: a share of the saccades as dots, medians
    by amplitude as lines.
    """
    figure, axes = plt.subplots(1, len(comparisons), figsize=(10, 3.4))
    for axis, c in zip(axes, comparisons, strict=True):
        for found, colour, label in ((c.real, REAL, "real"), (c.simulated, SIMULATED, "simulated")):
            a, v = found["amplitude_deg"], found["peak_deg_s"]
            some = np.random.default_rng(2).permutation(len(a))[:700]
            axis.plot(a[some], v[some], ".", markersize=2, alpha=0.35, color=colour)
            edges = np.geomspace(0.7, 25, 14)
            place = np.digitize(a, edges)
            lines = [
                (np.median(a[place == k]), np.median(v[place == k]))
                for k in range(1, len(edges))
                if np.count_nonzero(place == k) >= 10
            ]
            axis.plot(*zip(*lines, strict=True), color=colour, linewidth=2, label=label)
        axis.set(
            xscale="log",
            yscale="log",
            xlim=(0.5, 40),
            ylim=(20, 1500),
            title=c.title,
            xlabel="amplitude (deg)",
            ylabel="peak speed (deg/s)",
        )
        axis.legend(frameon=False)
    return save(figure, "main-sequence")


def plot_traces(twins: list[tuple[str, gazeveil.Recording, gazeveil.Recording, float]]) -> str:
    """A few seconds of a real recording above a few of a simulated one."""
    figure, axes = plt.subplots(2, len(twins), figsize=(10, 5), sharex="col")
    for column, (title, real, simulated, seconds) in enumerate(twins):
        for row, (r, label) in enumerate(((real, "real"), (simulated, "simulated"))):
            n = int(seconds * len(r) / max(r.duration_s, 1e-9))
            start = int(0.3 * len(r))
            t = (r.t_ns[start : start + n] - r.t_ns[start]) / 1e9
            x = (
                gazeveil.gaze.geometry.unwrap_x(r.x_deg)[start : start + n]
                if isinstance(r.space, gazeveil.Sphere)
                else r.x_deg[start : start + n]
            )
            axis = axes[row, column]
            axis.plot(t, x - np.nanmedian(x), color=REAL, linewidth=0.9, label="right")
            axis.plot(
                t,
                r.y_deg[start : start + n] - np.nanmedian(r.y_deg[start : start + n]),
                color=SIMULATED,
                linewidth=0.9,
                label="down",
            )
            if r.head_deg is not None:
                head = gazeveil.gaze.geometry.unwrap_x(r.head_deg[:, 0])[start : start + n]
                axis.plot(
                    t, head - np.nanmedian(x), color="0.6", linewidth=0.9, label="head, right"
                )
            axis.set(title=f"{title}, {label}", ylabel="deg")
        axes[1, column].set_xlabel("seconds")
        axes[0, column].legend(frameon=False, fontsize=7, loc="upper right")
    return save(figure, "traces")


# --- the page
# --------------------------------------------------------------------------------------------------


def speed() -> list[str]:
    """Samples per second on this machine, one core."""
    lines = []
    for title, task, space in (
        ("sphere, free viewing", "free-viewing", None),
        ("screen, video", "video", gazeveil.Screen(1280, 720, 400, 225, 450)),
    ):
        cohort = gazeveil.simulate(10, 10, 60, 1000, task, space, seed=SEED)
        cohort[0]
        start = time.process_time()
        samples = sum(len(r) for r in cohort)
        lines.append(f"| {title} | {samples / (time.process_time() - start) / 1e6:.1f} |")
    return lines


def main() -> None:
    """Measure, plot, write."""
    folders = {"GazeCom": ("gazecom", "gazecom"), "EyeNavGS": ("eyenavgs_nthu", "eyenavgs")}
    missing = [str(DATA / folder) for folder, _ in folders.values() if not (DATA / folder).exists()]
    if missing:
        sys.exit(
            f"These recordings are needed and not there: {', '.join(missing)}. Set GAZEVEIL_DATA to"
            " the folder that holds them."
        )
    cohorts = {
        title: gazeveil.read(DATA / folder, format=name)
        for title, (folder, name) in folders.items()
    }
    twins = {title: pairs(cohort) for title, cohort in cohorts.items()}
    sets = {"GazeCom (screen, 250 Hz)": twins["GazeCom"]}
    for title, low, high in (
        ("EyeNavGS (headset, about 36 Hz)", 0, 50),
        ("EyeNavGS (headset, about 72 Hz)", 50, 100),
    ):
        chosen = [
            (a, b) for a, b in zip(*twins["EyeNavGS"], strict=True) if low <= a.rate_hz < high
        ]
        sets[title] = ([a for a, _ in chosen], [b for _, b in chosen])
    sets["EyeNavGS (all)"] = twins["EyeNavGS"]
    compared = {
        (t, m): Comparison(t, m, measure(real, m), measure(sim, m))
        for t, (real, sim) in sets.items()
        for m in ("auto", "ivt")
    }
    rows = [row for c in compared.values() for row in c.rows()]
    pictured = [compared[t, "auto"] for t in ("GazeCom (screen, 250 Hz)", "EyeNavGS (all)")]
    (movies, their_movies), (walks, their_walks) = twins["GazeCom"], twins["EyeNavGS"]
    figures = {
        "DURATIONS": plot_distributions(
            pictured, "fixation_ms", "fixation duration (ms)", [1000, 1000]
        ),
        "AMPLITUDES": plot_distributions(
            pictured, "amplitude_deg", "saccade amplitude (deg)", [25, 50]
        ),
        "SEQUENCE": plot_main_sequence([compared[t, "auto"] for t in list(sets)[:3]]),
        "TRACES": plot_traces(
            [
                ("GazeCom", movies[7], their_movies[7], 5.0),
                ("EyeNavGS", walks[55], their_walks[55], 8.0),
            ]
        ),
    }
    identity = [
        "| cohort | people x stimuli | chance | real | simulated |",
        "|---|---|---|---|---|",
    ]
    for title in cohorts:
        tables = [feature_means(side)[0] for side in twins[title]]
        shape = f"{tables[0].shape[0]} x {tables[0].shape[1]}"
        identity.append(
            f"| {title} | {shape} | {100 / tables[0].shape[0]:.0f} | {100 * linkage(tables[0]):.0f}"
            f" | {100 * linkage(tables[1]):.0f} |"
        )
    pages = {
        d: list(gazeveil.simulate(8, 3, 60, 60, "reading", document=d, seed=SEED))
        for d in DOCUMENTS
    }
    tasks = {
        t: list(
            gazeveil.simulate(
                8, 3, 60, 60, t, gazeveil.Screen(1680, 1050, 474, 297, 550), seed=SEED
            )
        )
        for t in TASKS
    }
    parts = figures | {
        "COUNT": f"**{sum(row[-1] for row in rows)} of {len(rows)}** figures are within 20 %"
        " (bold: beyond).",
        "TABLES": "\n\n".join(
            c.markdown()
            for c in compared.values()
            if c.method == "auto" and c.title.startswith(("GazeCom", "EyeNavGS (all)"))
        ),
        "IDENTITY": "\n".join(identity),
        "APART": (
            f"Found from other people's recordings: three documents {100 * told_apart(pages):.0f} %"
            f" (chance 33 %), six tasks {100 * told_apart(tasks):.0f} % (chance 17 %)."
        ),
        "SPEED": "\n".join(["| what | million samples per second |", "|---|---|", *speed()]),
    }
    page = (HERE / "simulator.md").read_text(encoding="utf-8")
    for name, text in parts.items():
        before, mark, rest = page.partition(f"<!-- {name} -->\n")
        if not mark:
            sys.exit(f"docs/explain/simulator.md has no line <!-- {name} -->.")
        page = before + mark + text + "\n" + rest[rest.index("<!-- end -->") :]
    (HERE / "simulator.md").write_text(page, encoding="utf-8")
    print(
        parts["COUNT"],
        *(c.markdown() for c in compared.values()),
        parts["IDENTITY"],
        parts["APART"],
        parts["SPEED"],
        sep="\n\n",
    )


if __name__ == "__main__":
    main()
