"""Attackers on real people: how often they find them, and how fast the RBF network is beside a
plain one.

    python benchmarks/attackers.py [--json FILE] [--repetitions 10] [--no-speed]

**Rates.** GazeCom and EyeNavGS under GAZEVEIL_DATA, as recorded; I-VT (50 deg/s, 100 ms), 12 + 46
event features, a random quarter of the stimuli (rounded as in a study: 2 of 10, 3 of 12) is asked
about, mean over repetitions. Floors are what a plain reference reaches, less 8 points; for EyeNavGS
three times chance. `null` deals the names anew within each stimulus and must stay within three
standard errors of chance. Slow attackers run three repetitions.

**Speed.** Ten repetitions of the RBF network on GazeCom from the files on: reading, events,
features, networks of 32 prototypes per person, scores. The plain one reads lines, goes event by
event through numpy and scipy, clusters with scikit-learn, computes activations event by event and
inverts with `numpy.linalg.pinv`. It is timed in the same process on every eighth file and on one
repetition, and multiplied; its networks get our events, so that both do the same work.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import gazeveil
from gazeveil.attacks.base import Attack
from gazeveil.attacks.registry import attack
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from lines import Lines, slower

REPETITIONS = 10
EVERY = 8
PROTOTYPES = 32

#: Attackers, with the rate of a plain reference where there is one, and at most how many
#: repetitions.
GAZECOM: tuple[tuple[str, float | None, int], ...] = (
    ("rbfn", 0.95, 100),
    ("rbfn:weights=1/0", 0.72, 100),
    ("rbfn:weights=0/1", 0.86, 100),
    ("rbfn:balance=False", 0.95, 100),
    ("rbfn:weights=0.4/0.6", None, 3),
    ("lda", 0.95, 100),
    ("lda:level=event", None, 3),
    ("knn", None, 3),
    ("tree", None, 3),
    ("svm", None, 3),
    ("forest", None, 3),
    ("boosting", None, 3),
    ("forest:level=recording", None, 3),
)
EYENAVGS = ("rbfn", "lda", "knn")


def sides(whole: RecordingSet, repetition: int) -> tuple[RecordingSet, RecordingSet]:
    """Three quarters of the stimuli to learn from, the others to be asked about."""
    order = np.random.default_rng([7, repetition]).permutation(whole.stimuli).tolist()
    learnt = round(0.75 * len(order))
    return whole.select(stimuli=order[:learnt]), whole.select(stimuli=order[learnt:])


def shuffled(whole: RecordingSet, seed: int) -> RecordingSet:
    """Tables with the names dealt anew among those who saw a stimulus."""
    rng = np.random.default_rng([8, seed])
    deal = {}
    for stimulus in whole.stimuli:
        people = sorted({k[0] for k in whole.keys if k[1] == stimulus})
        deal.update(
            {
                (p, stimulus): q
                for p, q in zip(people, rng.permutation(people).tolist(), strict=True)
            }
        )

    def dealt(t: FeatureTable) -> FeatureTable:
        k = t.keys
        person = np.array(
            [deal[p, s] for p, s in zip(k.person.tolist(), k.stimulus.tolist(), strict=True)]
        )
        return FeatureTable(
            t.values, t.columns, Keys(person, k.stimulus, k.session, k.task, k.index), t.bounds
        )

    return RecordingSet(None, {name: dealt(t) for name, t in whole.tables.items()})


def rates(
    whole: RecordingSet, who: Attack, repetitions: int, null: bool = False
) -> tuple[float, float, float]:
    """Mean and standard deviation of the identification rate, and seconds per repetition."""
    begin = perf_counter()
    found = [
        who.identify(*sides(shuffled(whole, r) if null else whole, r), r).credit().mean()
        for r in range(repetitions)
    ]
    return float(np.mean(found)), float(np.std(found)), (perf_counter() - begin) / repetitions


def bench_rates(lines: Lines, name: str, data: Path, repetitions: int) -> None:
    """Identification rates on one set of recordings."""
    whole = RecordingSet(gazeveil.read(data / name).load()).prepared(("fixation", "saccade"))
    people = len(whole.persons)
    chance = 1 / people
    cases = GAZECOM if name == "gazecom" else tuple((text, None, 100) for text in EYENAVGS)
    for text, reference, most in cases:
        n = min(repetitions, most)
        value, sd, seconds = rates(whole, attack(text), n)
        floor = 3 * chance if reference is None else reference - 0.08
        lines.add(
            f"{name}: people found by {text}",
            round(floor, 3),
            value,
            "fraction",
            reference=reference,
            chance=round(chance, 3),
            people=people,
            repetitions=n,
            sd=round(sd, 3),
            s_per_repetition=round(seconds, 2),
        )
    for text in ("rbfn", "lda"):
        value, sd, _ = rates(whole, attack(text), repetitions, null=True)
        limit = chance + 3 * float(np.sqrt(chance * (1 - chance) / (people * repetitions)))
        lines.keep(
            {
                "figure": f"{name}: people found by {text}, null",
                "value": round(value, 3),
                "unit": "fraction",
                "floor": round(limit, 3),
                "wanted": "at most",
                "met": value <= limit,
                "chance": round(chance, 3),
                "people": people,
                "repetitions": repetitions,
                "sd": round(sd, 3),
            }
        )


def plain_read(path: Path) -> tuple[np.ndarray, np.ndarray, float]:
    """Degrees to the right and down from the lines of an ARFF file, and the rate."""
    meta, rows = {}, []
    with gzip.open(path, "rt") as file:
        for line in file:
            if line.startswith("%@METADATA"):
                _, key, value = line.split()
                meta[key] = float(value)
            elif line[0].isdigit():
                rows.append([float(v) for v in line.split(",")])
    table = np.array(rows)
    x_mm = (table[:, 1] - meta["width_px"] / 2) * meta["width_mm"] / meta["width_px"]
    y_mm = (table[:, 2] - meta["height_px"] / 2) * meta["height_mm"] / meta["height_px"]
    x, y = (np.degrees(np.arctan(v / meta["distance_mm"])) for v in (x_mm, y_mm))
    lost = table[:, 3] <= 0
    if lost.any() and not lost.all():
        at = np.arange(len(x))
        x[lost], y[lost] = (np.interp(at[lost], at[~lost], v[~lost]) for v in (x, y))
    return x, y, 1e6 / float(np.median(np.diff(table[:, 0])))


def plain_events(x: np.ndarray, y: np.ndarray, rate_hz: float) -> list[tuple[str, int, int]]:
    """I-VT, sample by sample: (kind, first, last)."""
    from scipy.signal import savgol_filter

    sx, sy = savgol_filter(x, 15, 6), savgol_filter(y, 15, 6)
    speed = np.hypot(np.diff(sx), np.diff(sy)) * rate_hz
    speed = np.append(speed[:1], speed)
    kinds = ["saccade" if v >= 50 else "fixation" for v in speed]
    for short, other, least in (("fixation", "saccade", 0.1), ("saccade", "fixation", 0.012)):
        for kind, a, b in _runs(kinds):
            if kind == short and (b - a + 1) / rate_hz < least - 1e-9:
                kinds[a : b + 1] = [other] * (b - a + 1)
    return _runs(kinds)


def _runs(kinds: list[str]) -> list[tuple[str, int, int]]:
    runs, start = [], 0
    for i in range(1, len(kinds) + 1):
        if i == len(kinds) or kinds[i] != kinds[start]:
            runs.append((kinds[start], start, i - 1))
            start = i
    return runs


def plain_features(
    x: np.ndarray, y: np.ndarray, rate_hz: float, events: list[tuple[str, int, int]]
) -> dict[str, list[list[float]]]:
    """12 features of each fixation and 46 of each saccade, one event at a time."""
    from scipy.stats import kurtosis, skew

    def bundle(v: np.ndarray) -> list[float]:
        flat = np.ptp(v) < 1e-9
        return [
            v.mean(),
            np.median(v),
            v.max(),
            v.std(),
            0.0 if flat else skew(v),
            0.0 if flat else kurtosis(v),
        ]

    out: dict[str, list[list[float]]] = {"fixation": [], "saccade": []}
    before: dict[str, tuple[float, float, float]] = {}
    for kind, a, b in events:
        if b - a + 1 < 4:
            continue
        ex, ey = x[a : b + 1], y[a : b + 1]
        dx, dy = np.diff(ex), np.diff(ey)
        steps = np.hypot(dx, dy)
        duration, path = len(ex) / rate_hz, steps.sum()
        angle = np.degrees(np.arctan2(ex[-1] - ex[0], ey[-1] - ey[0]))
        centre = (ex.mean(), ey.mean())
        turn = angle - before[kind][2] if kind in before else 0.0
        moved = (
            np.hypot(centre[0] - before[kind][0], centre[1] - before[kind][1])
            if kind in before
            else 0.0
        )
        before[kind] = (*centre, angle)
        spread = np.ptp(ex) + np.ptp(ey)
        if kind == "fixation":
            out[kind].append(
                [
                    duration,
                    ex.std(),
                    ey.std(),
                    path,
                    turn,
                    moved,
                    skew(ex),
                    skew(ey),
                    kurtosis(ex),
                    kurtosis(ey),
                    spread,
                    path / duration,
                ]
            )
            continue
        speed, vx, vy = steps * rate_hz, -dx * rate_hz, -dy * rate_hz
        series = [
            speed,
            np.diff(speed) * rate_hz,
            vx,
            vy,
            np.diff(vx) * rate_hz,
            np.diff(vy) * rate_hz,
        ]
        scalars = [
            duration,
            spread,
            ex.std(),
            ey.std(),
            path,
            turn,
            moved,
            speed.max() / duration,
            angle,
            np.hypot(ex[-1] - ex[0], ey[-1] - ey[0]),
        ]
        out[kind].append([*scalars, *(v for s in series for v in bundle(s))])
    return out


def plain_network(train: FeatureTable, test: FeatureTable, seed: int) -> np.ndarray:
    """Mean scores of people, shape (people, people), by one network."""
    from sklearn.cluster import KMeans

    people = sorted(set(train.keys.person.tolist()))
    mean, sd = train.values.mean(axis=0), train.values.std(axis=0)
    z = (train.values - mean) / sd
    centres, betas = [], []
    for person in people:
        own = z[train.keys.person == person]
        fit = KMeans(min(PROTOTYPES, len(own)), max_iter=100, n_init=1, random_state=seed).fit(own)
        for i, centre in enumerate(fit.cluster_centers_):
            sigma = np.linalg.norm(own[fit.labels_ == i] - centre, axis=1).mean()
            centres.append(centre)
            betas.append(1 / (2 * (sigma + 1e-5) ** 2))
    mu, beta = np.array(centres), np.array(betas)
    a = np.array([np.exp(-beta * ((row - mu) ** 2).sum(axis=1)) for row in z])
    w = np.linalg.pinv(a) @ (train.keys.person[:, None] == np.array(people)).astype(float)
    scores: dict[str, list[np.ndarray]] = {p: [] for p in people}
    for row, person in zip(test.values, test.keys.person.tolist(), strict=True):
        scores[person].append(np.exp(-beta * (((row - mean) / sd - mu) ** 2).sum(axis=1)) @ w)
    return np.array([np.mean(scores[p], axis=0) for p in people])


def bench_strong(lines: Lines, data: Path) -> None:
    """Seconds of steps, rocket and fusion together, trained and asked once on protected GazeCom."""
    mechanism = gazeveil.mechanism("gaussian:sigma_deg=10")
    cohort = gazeveil.read(data / "gazecom")
    attackers = [attack(name) for name in ("steps", "rocket", "fusion")]
    took_s = []
    # What is compiled on first use is not timed: the second turn counts.
    for seed in (1, 2):
        gallery, probe = sides(RecordingSet(mechanism.release(cohort, seed=seed).data.load()), 0)
        begin = perf_counter()
        for who in attackers:
            who.identify(gallery, probe, 0)
        took_s.append(perf_counter() - begin)
    limit_s = 60.0 * slower()
    lines.keep(
        {
            "figure": "steps, rocket and fusion together on 24 people of gazecom",
            "value": round(took_s[-1], 1),
            "unit": "s",
            "limit": round(limit_s, 1),
            "met": took_s[-1] < limit_s,
        }
    )


def bench_speed(lines: Lines, data: Path) -> None:
    """Ten repetitions from raw files, ours and the plain one's."""
    who = attack("rbfn", balance=False)

    def prepared() -> RecordingSet:
        return RecordingSet(gazeveil.read(data / "gazecom")).prepared(("fixation", "saccade"))

    # What is compiled on first use is not timed.
    warm = RecordingSet(gazeveil.read(data / "gazecom").select(stimuli=("golf", "beach"))).prepared(
        ("fixation", "saccade")
    )
    who.identify(warm.select(stimuli=["golf"]), warm.select(stimuli=["beach"]), 0)
    begin = perf_counter()
    whole = prepared()
    ours_tables = perf_counter() - begin
    ours_found = [who.identify(*sides(whole, r), r).credit().mean() for r in range(REPETITIONS)]
    ours = perf_counter() - begin

    files = sorted((data / "gazecom").rglob("*.arff.gz"))
    begin, events = perf_counter(), 0
    for path in files[::EVERY]:
        x, y, rate = plain_read(path)
        events += sum(
            len(rows) for rows in plain_features(x, y, rate, plain_events(x, y, rate)).values()
        )
    plain_tables = (perf_counter() - begin) * len(files) / len(files[::EVERY])
    gallery, probe = sides(whole, 0)
    begin = perf_counter()
    total = sum(
        plain_network(gallery.table(kind), probe.table(kind), 0) for kind in ("fixation", "saccade")
    )
    plain_fits = (perf_counter() - begin) * REPETITIONS
    found = float((np.asarray(total).argmax(axis=1) == np.arange(len(total))).mean())
    lines.add(
        "rbfn: 10 repetitions on gazecom from raw files",
        5.0,
        (plain_tables + plain_fits) / ours,
        "times the plain one",
        peer="per-event numpy and scipy features, scikit-learn KMeans, numpy pinv",
        ours_s=round(ours, 2),
        ours_tables_s=round(ours_tables, 2),
        plain_s=round(plain_tables + plain_fits, 1),
        plain_tables_s=round(plain_tables, 1),
        scaled=f"plain: every {EVERY}th file x {EVERY}, one repetition x {REPETITIONS}",
        ours_found=round(float(np.mean(ours_found)), 3),
        plain_found_in_first=round(found, 3),
        ours_found_in_first=round(float(ours_found[0]), 3),
        plain_events_of_ours=round(
            events
            * len(files)
            / len(files[::EVERY])
            / (len(whole.fixations) + len(whole.saccades)),
            3,
        ),
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", type=Path, help="write the lines here")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--no-speed", action="store_true", help="rates alone")
    arguments = parser.parse_args()
    lines = Lines(arguments.json)
    data = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
    )
    for name in ("gazecom", "eyenavgs_nthu"):
        if not (data / name).is_dir():
            print(f"{name}: not measured, no recordings under GAZEVEIL_DATA", file=sys.stderr)
            continue
        if name == "gazecom" and not arguments.no_speed:
            bench_speed(lines, data)
            bench_strong(lines, data)
        bench_rates(lines, name, data, arguments.repetitions)
    if not lines.close():
        sys.exit("a figure was missed")


if __name__ == "__main__":
    main()
