"""Synthetic recordings: how fast they are made, how fast reports are added up, and how often people
are found again.

    python benchmarks/synthesis.py [--json FILE] [--only speed curator people] [--repetitions 5]
    [--page docs/explain/synthesis.md]

**speed.** A simulated cohort of EHTask's size (30 people x 15 videos of 2 minutes at 100 Hz, 5.4
million samples) in memory, noise from the operating system as in production. Seconds on the clock
and of the processor (all cores together: these are held to the limit, because other work on the
machine does not enter them), beside the runtimes that David-John et al. 2023 and its supplement
give (on another machine), and beside a plain loop on a slice, multiplied by the samples. The plain
loop goes sample by sample in Python. For k-same-synth it calls `scipy.optimize.curve_fit` for each
saccade, given our events; for DPGazeSynth it draws each unary answer as one numpy vector of bits
and adds these up.

**curator.** Answers per second of one core that the curator of DPGazeSynth adds up.

**people** (not by default). The share of people of GazeCom who are found by attackers who hold a
k-same-synth release of three quarters of the clips and raw recordings of the others, with events
detected again; and by linkage when the attacker is handed the event parameters themselves.

What releases keep of real gaze: `benchmarks/fidelity.py`.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import gazeveil
from gazeveil.attacks.registry import attack
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.noise.local import OUE
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.synthesis.dpgazesynth.curator import Curator
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import DPGazeSynthOneReport
from gazeveil.privacy.synthesis.dpgazesynth.messages import pack, tally, width
from gazeveil.privacy.synthesis.dpgazesynth.scheme import Streams, message
from gazeveil.privacy.synthesis.ksame.mechanism import KSameSynth
from gazeveil.privacy.synthesis.motion import Motion, motion
from lines import Lines, markdown, put_into, slower

PEOPLE, VIDEOS, SECONDS, RATE_HZ = 30, 15, 120, 100

#: Mechanism -> processor seconds it may take, and the seconds of the paper where it gives any.
#: event-synth-pd with its training.
SPEED = {
    "k-same-synth:k=4": (10, 132),
    "k-same-synth:k=4,match=crowd": (10, 132),
    "k-same-synth:k=4,detector=ivt,reading=published": (10, 132),
    "dpgazesynth:epsilon=1": (20, None),
    "dpgazesynth:epsilon=1,r_deg=table,reading=published": (20, None),
    "dpgazesynth-one-report:epsilon=1": (20, None),
    "event-synth-pd:k=4,gamma=2": (60, 888),
}

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)

#: Attackers on released samples.
ATTACKS = ("linkage", "rbfn", "lda")

Key = tuple[str, str, str, str]


def data_folder() -> Path | None:
    """Where the real recordings are."""
    path = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
    )
    return path if path.exists() else None


# --- speed
# --------------------------------------------------------------------------------------------------


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
            sx, sy = (
                math.sqrt(sum((v - m) ** 2 for v in values) / len(values))
                for values, m in ((east, mx), (south, my))
            )
            out.append(
                ("fixation", [(x[place[0]] + mx) % 360, my, sx, sy, event.offset - event.onset + 1])
            )
        elif event.kind == "saccade" and len(place) > 1:
            speed = []
            for i, j in pairwise(place):
                a, b = math.radians(90 - y[i]), math.radians(90 - y[j])
                h = (
                    math.sin((b - a) / 2) ** 2
                    + math.cos(a) * math.cos(b) * math.sin(math.radians(x[j] - x[i]) / 2) ** 2
                )
                speed.append(math.degrees(2 * math.asin(min(1.0, math.sqrt(h)))) / (t[j] - t[i]))
            at = np.linspace(0, 1, 30)
            profile = np.interp(at, (np.arange(len(speed)) + 0.5) / len(speed), speed)
            start = (profile.max() + 1e-9, float(at[profile.argmax()]), 0.3)
            try:
                fit, _ = curve_fit(
                    lambda t, a, b, c: a * np.exp(-(((t - b) / c) ** 2)),
                    at,
                    profile,
                    start,
                    bounds=([0, 0, 0.02], [2000, 1, 2]),
                )
            except RuntimeError:
                fit = np.array(start)
            out.append(("saccade", [*fit.tolist(), event.offset - event.onset + 1]))
    return out


def plain_k_same_synth(
    people: list[Recording], events: list[gazeveil.Events], k: int
) -> list[list[tuple[float, float]]]:
    """One group and one stimulus: parameters, their means by index, samples drawn one by one."""
    each = [plain_events(r, e) for r, e in zip(people, events, strict=True)]
    means = {}
    for kind in ("fixation", "saccade"):
        rows = [[values for name, values in person if name == kind] for person in each]
        longest = sorted((len(r) for r in rows), reverse=True)[k - 1]
        means[kind] = []
        for i in range(longest):
            having = [r[i] for r in rows if len(r) > i]
            means[kind].append(
                [sum(v[c] for v in having) / len(having) for c in range(len(having[0]))]
            )
    released = []
    for _ in people:
        samples: list[tuple[float, float]] = []
        for i, (mx, my, sx, sy, n) in enumerate(means["fixation"]):
            if samples and i <= len(means["saccade"]):
                a, b, c, count = means["saccade"][i - 1]
                speeds = [
                    a * math.exp(-((((j + 0.5) / count) - b) ** 2) / c**2)
                    for j in range(round(count))
                ]
                total, gone, (x0, y0) = sum(speeds) or 1.0, 0.0, samples[-1]
                for speed in speeds:
                    gone += speed / total
                    samples.append((x0 + gone * (mx - x0), y0 + gone * (my - y0)))
            samples.extend((random.gauss(mx, sx), random.gauss(my, sy)) for _ in range(round(n)))
        released.append(samples)
    return released


def plain_dpgazesynth(
    recordings: list[Recording], epsilon: float = 1.0, size: int = 60, cap: int = 6
) -> dict[tuple[int, int], float]:
    """Devices, curator and drawing of DPGazeSynth: places to cells, runs, noise, unary answers and
    their sums, and a walk over the estimated counts.
    """
    rng, steps = np.random.default_rng(), 8 * size**2 - 6 * size + 1
    q = 1 / (math.exp(epsilon / 5 / (cap - 1)) + 1)
    total, reports, starts = np.zeros(steps), 0, []
    number: dict[tuple[int, int], int] = {}
    for r in recordings:
        x, y, ok, per = r.x_deg.tolist(), r.y_deg.tolist(), r.valid.tolist(), round(r.rate_hz / 2)
        for first in range(0, len(x), per):
            runs: list[list[int]] = []
            for i in range(first, min(first + per, len(x))):
                cell = int(y[i] / 180 * size) * size + int(x[i] / 360 * size) if ok[i] else -1
                if cell >= 0 and (not runs or runs[-1][0] != cell):
                    runs.append([cell, 1])
                elif runs:
                    runs[-1][1] += 1
            runs = runs[:cap] or [[size * size // 2, per]]
            angle, radius = (
                random.uniform(0, 2 * math.pi),
                random.gammavariate(2, 9 / (0.6 * epsilon)),
            )
            lengths = [n + rng.laplace(0, (2 * per - 2) / (epsilon / 5)) for _, n in runs]
            starts.append((runs[0][0], radius * math.cos(angle), radius * math.sin(angle), lengths))
            for k in range(cap - 1):
                bits = rng.random(steps) < q
                step = (
                    number.setdefault((runs[k][0], runs[k + 1][0]), len(number) % steps)
                    if k + 1 < len(runs)
                    else steps - 1
                )
                bits[step] = rng.random() < 0.5
                total += bits
                reports += 1
    counts = (total - reports * q) / (0.5 - q)
    chain = {pair: max(counts[i], 0.0) for pair, i in number.items()}
    for cell, east, south, lengths in starts:
        for length in lengths:
            for _ in range(max(int(length), 1)):
                random.gauss(east, 0.1), random.gauss(south, 0.1)
            near = [(to, w) for (at, to), w in chain.items() if at == cell][:8]
            cell = (
                random.choices([t for t, _ in near], [w + 1e-9 for _, w in near])[0]
                if near
                else cell
            )
    return chain


def plain_s(cohort: Cohort) -> dict[str, float]:
    """Seconds of plain loops on a slice, multiplied by the samples."""
    samples = sum(len(r) for r in cohort)
    some = [r for r in cohort if r.stimulus == cohort.stimuli[0]][:4]
    events = [gazeveil.detect(r, "ivt") for r in some]
    each = {}
    slices: dict[str, tuple[list[Recording], Callable[[list[Recording]], object]]] = {
        "k-same-synth": (some, lambda rs: plain_k_same_synth(rs, events, 4)),
        "dpgazesynth": (some[:1], plain_dpgazesynth),
    }
    for name, (recordings, work) in slices.items():
        begin = process_time()
        work(recordings)
        each[name] = (process_time() - begin) * samples / sum(len(r) for r in recordings)
    return each


def speed(lines: Lines, _: int) -> None:
    """Seconds of a release, and the ratio to a plain loop."""
    cohort = gazeveil.simulate(PEOPLE, VIDEOS, SECONDS, RATE_HZ, seed=1).load()
    samples, plain = sum(len(r) for r in cohort), plain_s(cohort)
    for text, (limit, published) in SPEED.items():
        chosen = mechanism(text)
        chosen.release(Cohort(list(cohort)[: 5 * VIDEOS]))  # compiled before the clock starts
        wall, work = math.inf, math.inf
        for _ in range(2 if limit <= 20 else 1):
            begin, spent = perf_counter(), process_time()
            chosen.release(cohort)
            wall, work = min(wall, perf_counter() - begin), min(work, process_time() - spent)
        most_s = limit * slower(process_time)
        beside = next((s for name, s in plain.items() if text.startswith(name)), None)
        lines.keep(
            {
                "figure": f"speed: {text}",
                "value": round(wall, 2),
                "unit": "s",
                "floor": limit,
                "wanted": "at most",
                "met": work <= most_s,
                "limit_here": round(most_s, 1),
                "processor_s": round(work, 2),
                "samples": samples,
                "published_s": published,
                "plain_s": None if beside is None else round(beside),
                "ratio": None if beside is None else round(beside / work, 1),
                "load": round(os.getloadavg()[0], 1),
                "cores": os.cpu_count(),
            }
        )


def busy_s(work: Callable[[], object]) -> float:
    """Processor seconds of the fastest of three runs."""
    times = []
    for _ in range(3):
        begin = process_time()
        work()
        times.append(process_time() - begin)
    return min(times)


def curator(lines: Lines, _: int) -> None:
    """Answers that the curator adds up in a second."""
    count = 4_000_000
    scheme = DPGazeSynthOneReport(1).scheme()
    oracle = scheme.questions(scheme.plan(SCREEN, 100.0))["steps"]
    some = pack(oracle, oracle.report(np.arange(20_000) % oracle.categories, Words(source(1))))
    packed = np.tile(some, (count // len(some), 1))
    tally(oracle, some)
    seconds = busy_s(partial(tally, oracle, packed))
    what = (
        f"one-report answers of {width(oracle)} bytes ({oracle.name}, {oracle.categories}"
        " categories)"
    )
    lines.add(
        f"curator, {what} added", 5.0, len(packed) / seconds / 1e6, "million reports per second"
    )
    cohort = gazeveil.simulate(1, 1, 20 * 3600.0, 10.0, space=SCREEN, seed=1)
    chosen = DPGazeSynthOneReport(1)
    scheme, parameters = chosen.scheme(), str(chosen)
    whole = message(scheme, parameters, cohort[0], Streams(None))

    def add() -> None:
        assert Curator(scheme, parameters).add(whole) == 1

    seconds = busy_s(add)
    windows = int(cohort[0].duration_s * 2)
    lines.add(
        "curator, whole one-report messages read, checked and added",
        5.0,
        2 * windows / seconds / 1e6,
        "million reports per second",
        bytes=len(whole),
    )
    oue = OUE(Fraction(1, 25), CellGrid(SCREEN, 60, False).transitions + 1)
    rows = np.tile(pack(oue, oue.report(np.arange(50), Words(source(1)))), (40, 1))
    tally(oue, rows[:2])
    seconds = busy_s(lambda: tally(oue, rows))
    bits = len(rows) * oue.categories / seconds / 1e9
    lines.add(
        "curator, unary answers of 28,085 bits added",
        1.0,
        bits,
        "billion bits per second",
        reports_per_s=round(len(rows) / seconds),
    )


# --- who is found
# --------------------------------------------------------------------------------------------------


def sides(stimuli: tuple[str, ...], repetition: int) -> tuple[list[str], list[str]]:
    """Three quarters of the stimuli, and the others."""
    order = np.random.default_rng([7, repetition]).permutation(stimuli).tolist()
    learnt = round(0.75 * len(order))
    return order[:learnt], order[learnt:]


def parameter_tables(laws: Mapping[Key, Motion]) -> RecordingSet:
    """Event parameters as tables."""

    def table(columns: tuple[str, ...], rows: dict[Key, np.ndarray]) -> FeatureTable:
        return FeatureTable(
            np.concatenate(list(rows.values())),
            columns,
            Keys.of_recordings(list(rows), [np.arange(len(v)) for v in rows.values()]),
        )

    looked = {
        k: np.column_stack((np.log(m.fixations[:, 2:5]), m.fixations[:, :2]))
        for k, m in laws.items()
        if len(m.fixations)
    }
    moved = {
        k: np.column_stack(
            (np.log(m.saccades[:, 0] + 1), m.saccades[:, 1], np.log(m.saccades[:, 2:]))
        )
        for k, m in laws.items()
        if len(m.saccades)
    }
    return RecordingSet(
        None,
        {
            "fixation": table(("sigma_x", "sigma_y", "samples", "mu_x", "mu_y"), looked),
            "saccade": table(("a", "b", "c", "samples"), moved),
        },
    )


def found(
    released: Callable[[int], RecordingSet], raw: RecordingSet, who: str, repetitions: int
) -> tuple[float, float]:
    """Mean and standard deviation of the share of people found."""
    shares = []
    for r in range(repetitions):
        learnt, asked = sides(raw.stimuli, r)
        gallery = released(r).select(stimuli=learnt)
        shares.append(
            float(
                attack(who)
                .identify(gallery, raw.select(people=gallery.persons, stimuli=asked), r)
                .credit()
                .mean()
            )
        )
    return float(np.mean(shares)), float(np.std(shares))


def people(lines: Lines, repetitions: int) -> None:
    """How often people of GazeCom are found under k-same-synth."""
    folder = data_folder()
    if folder is None:
        return
    cohort = gazeveil.read(folder / "gazecom").load()
    raw = RecordingSet(cohort).prepared(("fixation", "saccade"))
    parameters = parameter_tables({r.key: motion(r) for r in cohort})
    for who in ATTACKS:
        value, sd = found(lambda _: raw, raw, who, repetitions)
        lines.keep(
            {
                "figure": f"people: none, {who} on samples",
                "value": round(value, 3),
                "sd": round(sd, 3),
                "unit": "fraction",
                "met": True,
            }
        )
    for k in (2, 4, 8):
        for text in (
            f"k-same-synth:k={k},detector=ivt,reading=published",
            f"k-same-synth:k={k}",
            f"k-same-synth:k={k},match=crowd",
        ):
            chosen = mechanism(text)
            assert isinstance(chosen, KSameSynth)
            holds = chosen.reading == "corrected"
            limit = 1 / k + 3 * math.sqrt(1 / k * (1 - 1 / k) / len(raw.persons))
            made = [
                RecordingSet(chosen.release(cohort, seed=r).data).prepared(("fixation", "saccade"))
                for r in range(repetitions)
            ]
            laws = [parameter_tables(chosen.laws(cohort, seed=r)) for r in range(repetitions)]
            cases = [(who, "samples", made, raw) for who in ATTACKS] + [
                ("linkage", "parameters", laws, parameters)
            ]
            for who, on, released, against in cases:
                value, sd = found(released.__getitem__, against, who, repetitions)
                lines.keep(
                    {
                        "figure": f"people: {text}, {who} on {on}",
                        "value": round(value, 3),
                        "sd": round(sd, 3),
                        "unit": "fraction",
                        "bound": round(1 / k, 3),
                        "met": not holds or value <= limit,
                        "repetitions": repetitions,
                    }
                )


def table(lines: Lines) -> str:
    """Speed as a table of ratios, since seconds are those of one machine."""
    rows = []
    for row in lines.rows:
        name = str(row["figure"])
        if name.startswith("speed: "):
            plain = row["ratio"]
            paper = "-" if row["published_s"] is None else f"{row['published_s']} s"
            rows.append(
                [
                    f"`{name.removeprefix('speed: ')}`",
                    "-" if plain is None else f"{plain:.0f} times",
                    paper,
                ]
            )
    return markdown(("mechanism", "faster than the plain loop", "the paper's own runtime"), rows)


SECTIONS: dict[str, Callable[[Lines, int], None]] = {
    "speed": speed,
    "curator": curator,
    "people": people,
}


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", choices=sorted(SECTIONS), default=["speed", "curator"])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    lines = Lines(arguments.json)
    for name in arguments.only:
        SECTIONS[name](lines, arguments.repetitions)
    if arguments.page is not None:
        put_into(arguments.page, "speed", table(lines))
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
