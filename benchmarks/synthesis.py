"""Synthetic recordings: how fast they are made, how much of the gaze they keep, and how often people are found again.

    python benchmarks/synthesis.py [--json FILE] [--only SECTION ...] [--repetitions 5]

**speed-k-same-synth.** A simulated cohort of EHTask's size (30 people x 15 videos of 2 minutes at 100 Hz, 5.4 million samples) in memory, k = 4.
Seconds on the clock and of the processor (all cores together: these are held to the limit, because other work on the machine does not enter them),
beside the published 2.2 minutes (on another machine), and beside a plain loop: sample by sample in Python, one call of `scipy.optimize.curve_fit`
per saccade, given our events, timed on the first four people and one video and multiplied by the samples.

**fidelity.** GazeCom and EyeNavGS under GAZEVEIL_DATA: Jensen-Shannon divergence of the density of samples on 60 x 60 cells (per stimulus, and of all
together), Wasserstein distances of fixation durations and saccade amplitudes per person, error of the slope of the main sequence and of the peak
velocity at the median amplitude, and the median distance from the person's own gaze at the same time.

**people.** The share of people of GazeCom who are found by attackers who hold a release of three quarters of the clips and raw recordings of the
others, with events detected again; and by linkage when the attacker is handed the event parameters themselves.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import gazeveil
from gazeveil.attacks.registry import attack
from gazeveil.features.material import Material
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import distance_deg
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.synthesis.ksame_synth import KSameSynth
from gazeveil.privacy.synthesis.motion import Motion, motion
from gazeveil.utility.density import Density
from gazeveil.utility.events import EventFidelity
from lines import Lines

PEOPLE, VIDEOS, SECONDS, RATE_HZ = 30, 15, 120, 100

#: Releases whose fidelity is measured; those of other mechanisms belong here too.
RELEASES = (
    "k-same-synth:k=4,reading=published",
    "k-same-synth:k=2",
    "k-same-synth:k=2,match=crowd",
    "k-same-synth:k=4",
    "k-same-synth:k=4,match=crowd",
    "dpgazesynth:epsilon=1,reading=published",
    "dpgazesynth:epsilon=1",
    "dpgazesynth-one-report:epsilon=1",
    "dpgazesynth-one-report:epsilon=3",
)

#: Attackers on released samples.
ATTACKS = ("linkage", "rbfn", "lda")

Key = tuple[str, str, str, str]


def data_folder() -> Path | None:
    """Where the real recordings are."""
    path = Path(os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
    return path if path.exists() else None


# --- speed ---------------------------------------------------------------------------------------------------------------------------------


def plain_events(r: Recording, found: gazeveil.Events) -> list[tuple[str, list[float]]]:
    """Parameters of events, sample by sample."""
    from scipy.optimize import curve_fit

    x, y, t, ok = r.x_deg.tolist(), r.y_deg.tolist(), (r.t_ns / 1e9).tolist(), r.valid.tolist()
    out: list[tuple[str, list[float]]] = []
    for event in found:
        place = [i for i in range(event.onset, event.offset + 1) if ok[i]]
        if event.kind == "fixation" and place:
            east, south = [], []
            for i in place:
                d = x[i] - x[place[0]]
                east.append(d - 360 if d > 180 else d + 360 if d < -180 else d)
                south.append(y[i])
            mx, my = sum(east) / len(east), sum(south) / len(south)
            sx, sy = (math.sqrt(sum((v - m) ** 2 for v in values) / len(values)) for values, m in ((east, mx), (south, my)))
            out.append(("fixation", [(x[place[0]] + mx) % 360, my, sx, sy, event.offset - event.onset + 1]))
        elif event.kind == "saccade" and len(place) > 1:
            speed = []
            for i, j in pairwise(place):
                a, b = math.radians(90 - y[i]), math.radians(90 - y[j])
                h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(math.radians(x[j] - x[i]) / 2) ** 2
                speed.append(math.degrees(2 * math.asin(min(1.0, math.sqrt(h)))) / (t[j] - t[i]))
            at = np.linspace(0, 1, 30)
            profile = np.interp(at, (np.arange(len(speed)) + 0.5) / len(speed), speed)
            start = (profile.max() + 1e-9, float(at[profile.argmax()]), 0.3)
            try:
                fit, _ = curve_fit(lambda t, a, b, c: a * np.exp(-(((t - b) / c) ** 2)), at, profile, start, bounds=([0, 0, 0.02], [2000, 1, 2]))
            except RuntimeError:
                fit = np.array(start)
            out.append(("saccade", [*fit.tolist(), event.offset - event.onset + 1]))
    return out


def plain_k_same_synth(people: list[Recording], events: list[gazeveil.Events], k: int) -> list[list[tuple[float, float]]]:
    """One group and one stimulus: parameters, their means by index, samples drawn one by one."""
    each = [plain_events(r, e) for r, e in zip(people, events, strict=True)]
    means = {}
    for kind in ("fixation", "saccade"):
        rows = [[values for name, values in person if name == kind] for person in each]
        longest = sorted((len(r) for r in rows), reverse=True)[k - 1]
        means[kind] = []
        for i in range(longest):
            having = [r[i] for r in rows if len(r) > i]
            means[kind].append([sum(v[c] for v in having) / len(having) for c in range(len(having[0]))])
    released = []
    for _ in people:
        samples: list[tuple[float, float]] = []
        for i, (mx, my, sx, sy, n) in enumerate(means["fixation"]):
            if samples and i <= len(means["saccade"]):
                a, b, c, count = means["saccade"][i - 1]
                speeds = [a * math.exp(-((((j + 0.5) / count) - b) ** 2) / c**2) for j in range(round(count))]
                total, gone, (x0, y0) = sum(speeds) or 1.0, 0.0, samples[-1]
                for speed in speeds:
                    gone += speed / total
                    samples.append((x0 + gone * (mx - x0), y0 + gone * (my - y0)))
            samples.extend((random.gauss(mx, sx), random.gauss(my, sy)) for _ in range(round(n)))
        released.append(samples)
    return released


def speed_k_same_synth(lines: Lines, _: int) -> None:
    """Seconds of a release, and the ratio to a plain loop."""
    cohort = gazeveil.simulate(PEOPLE, VIDEOS, SECONDS, RATE_HZ, seed=1).load()
    samples = sum(len(r) for r in cohort)
    some = [r for r in cohort if r.stimulus == cohort.stimuli[0]][:4]
    events = [gazeveil.detect(r, "ivt") for r in some]
    begin = process_time()
    plain_k_same_synth(some, events, 4)
    plain = (process_time() - begin) * samples / sum(len(r) for r in some)
    for text in ("k-same-synth:k=4", "k-same-synth:k=4,match=crowd", "k-same-synth:k=4,reading=published"):
        chosen = mechanism(text)
        chosen.release(Cohort(list(cohort)[: 5 * VIDEOS]))  # compiled before the clock starts
        wall, work = math.inf, math.inf
        for _ in range(3):
            begin, spent = perf_counter(), process_time()
            chosen.release(cohort)
            wall, work = min(wall, perf_counter() - begin), min(work, process_time() - spent)
        lines.keep({"figure": f"speed: {text}", "value": round(wall, 2), "unit": "s", "floor": 10, "wanted": "at most", "met": work <= 10,
                    "processor_s": round(work, 2), "samples": samples, "published_s": 132, "plain_s": round(plain, 1), "ratio": round(plain / work, 1),
                    "load": round(os.getloadavg()[0], 1), "cores": os.cpu_count()})  # fmt: skip


# --- what is kept ----------------------------------------------------------------------------------------------------------------------------


def distance_in_time(raw: Cohort, released: Cohort) -> float:
    """Mean over recordings of the median distance from the person's own gaze at the same time since the start."""
    own, found = {r.key: r for r in raw}, []
    for r in released:
        if r.key not in own:
            continue
        mine = own[r.key] if own[r.key].rate_hz == r.rate_hz else own[r.key].resample(r.rate_hz)
        n = min(len(r), len(mine))
        both = r.valid[:n] & mine.valid[:n]
        if both.any():
            places = (v[:n][both] for v in (mine.x_deg, mine.y_deg, r.x_deg, r.y_deg))
            found.append(float(np.median(distance_deg(r.space, *places))))
    return float(np.mean(found)) if found else float("nan")


def fidelity(lines: Lines, repetitions: int) -> None:
    """What releases keep of real recordings; means over repetitions."""
    folder = data_folder()
    if folder is None:
        return
    for name in ("gazecom", "eyenavgs_nthu"):
        raw = gazeveil.read(folder / name).load()
        material = Material(raw)
        for text in RELEASES:
            rows = []
            for seed in range(repetitions):
                out = mechanism(text).release(raw, seed=seed).data.load()
                held = Material(out)
                measured = {r.metric: r.value for u in (Density(), EventFidelity()) for r in u.measure(material, held, held, 0)}
                lost = float(np.mean(np.concatenate([~r.valid for r in out])))
                rows.append({**measured, "distance_in_time_deg": distance_in_time(raw, out), "lost_share": lost})
            figures = {k: round(float(np.mean([r[k] for r in rows])), 3) for k in rows[0]}
            lines.keep({"figure": f"fidelity: {name}, {text}", "value": figures["jsd"], "unit": "bits", "met": True, "repetitions": repetitions, **figures})


# --- who is found ----------------------------------------------------------------------------------------------------------------------------


def sides(stimuli: tuple[str, ...], repetition: int) -> tuple[list[str], list[str]]:
    """Three quarters of the stimuli, and the others."""
    order = np.random.default_rng([7, repetition]).permutation(stimuli).tolist()
    learnt = round(0.75 * len(order))
    return order[:learnt], order[learnt:]


def parameter_tables(laws: Mapping[Key, Motion]) -> Material:
    """Event parameters as tables."""

    def table(columns: tuple[str, ...], rows: dict[Key, np.ndarray]) -> FeatureTable:
        return FeatureTable(np.concatenate(list(rows.values())), columns, Keys.of_recordings(list(rows), [np.arange(len(v)) for v in rows.values()]))

    looked = {k: np.column_stack((np.log(m.fixations[:, 2:5]), m.fixations[:, :2])) for k, m in laws.items() if len(m.fixations)}
    moved = {k: np.column_stack((np.log(m.saccades[:, 0] + 1), m.saccades[:, 1], np.log(m.saccades[:, 2:]))) for k, m in laws.items() if len(m.saccades)}
    return Material(None, {"fixation": table(("sigma_x", "sigma_y", "samples", "mu_x", "mu_y"), looked), "saccade": table(("a", "b", "c", "samples"), moved)})


def found(released: Callable[[int], Material], raw: Material, who: str, repetitions: int) -> tuple[float, float]:
    """Mean and standard deviation of the share of people found."""
    shares = []
    for r in range(repetitions):
        learnt, asked = sides(raw.stimuli, r)
        gallery = released(r).select(stimuli=learnt)
        shares.append(float(attack(who).identify(gallery, raw.select(people=gallery.persons, stimuli=asked), r).credit().mean()))
    return float(np.mean(shares)), float(np.std(shares))


def people(lines: Lines, repetitions: int) -> None:
    """How often people of GazeCom are found under k-same-synth."""
    folder = data_folder()
    if folder is None:
        return
    cohort = gazeveil.read(folder / "gazecom").load()
    raw = Material(cohort).prepared(("fixation", "saccade"))
    parameters = parameter_tables({r.key: motion(r) for r in cohort})
    for who in ATTACKS:
        value, sd = found(lambda _: raw, raw, who, repetitions)
        lines.keep({"figure": f"people: none, {who} on samples", "value": round(value, 3), "sd": round(sd, 3), "unit": "fraction", "met": True})
    for k in (2, 4, 8):
        for text in (f"k-same-synth:k={k},reading=published", f"k-same-synth:k={k}", f"k-same-synth:k={k},match=crowd"):
            chosen = mechanism(text)
            assert isinstance(chosen, KSameSynth)
            holds = chosen.reading == "corrected"
            limit = 1 / k + 3 * math.sqrt(1 / k * (1 - 1 / k) / len(raw.persons))
            made = [Material(chosen.release(cohort, seed=r).data).prepared(("fixation", "saccade")) for r in range(repetitions)]
            laws = [parameter_tables(chosen.laws(cohort, seed=r)) for r in range(repetitions)]
            cases = [(who, "samples", made, raw) for who in ATTACKS] + [("linkage", "parameters", laws, parameters)]
            for who, on, released, against in cases:
                value, sd = found(released.__getitem__, against, who, repetitions)
                lines.keep({"figure": f"people: {text}, {who} on {on}", "value": round(value, 3), "sd": round(sd, 3), "unit": "fraction",
                            "bound": round(1 / k, 3), "met": not holds or value <= limit, "repetitions": repetitions})  # fmt: skip


SECTIONS: dict[str, Callable[[Lines, int], None]] = {"speed-k-same-synth": speed_k_same_synth, "fidelity": fidelity, "people": people}


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", choices=sorted(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    lines = Lines(arguments.json)
    for name in arguments.only:
        SECTIONS[name](lines, arguments.repetitions)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
