"""What lost samples, pauses and lengths tell about people, before and after they are filled.

    python benchmarks/losses.py [--write docs/results/losses.md]

Needs recordings under GAZEVEIL_DATA. Three tables:

**People found by losses alone.** A ridge classifier that sees nothing of where people look: the
share of lost samples, how many runs of them there are and how long they are, when they lie, pauses,
length, duration and rate of a recording, and when it begins, each less its mean over the people of
the same stimulus. Trained on one release and asked about another, 80/20 by stimulus, a person's
recordings taken together, mean of ten splits.

**Filled samples told from others.** Stretches of 0.1 to 0.4 s or of 1 to 2 s are taken out of
GazeCom at random. A boosted forest, trained on the release of half the people, says of samples of
the other half whether they are filled; area under the curve, 0.5 is guessing. `control` asks for
the same stretches in a release of recordings that have not lost them.

**Losses found again.** That forest's mean answer for each recording as GazeCom has it, against the
share that the recording has really lost: Spearman's rank correlation over recordings. The last
column leaves filled samples out: what is found there is found in gaze that people have who lose
more, not in what was filled.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

from gazeveil import Cohort, Recording, read
from gazeveil.arrays import Bools, Floats
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.losses.public_clock import on_clock
from gazeveil.privacy.stream.mechanism import StreamMechanism

MECHANISMS = (
    "gaussian:sigma_deg=10",
    "gaussian:sigma_deg=1",
    "kaleido:epsilon=10,w={half_second},r_deg=2",
    "kaleido-uniform:epsilon=10,w={half_second},r_deg=2",
    "spatial:L=64",
    "temporal:K=3",
    "smoothing:",
)

#: Dataset, public rate in Hz, public duration in seconds.
COHORTS = (("gazecom", 250, 19), ("eyenavgs_nthu", 36, 59))

SPLITS, TEST_SHARE = 10, 0.2
_STRETCHES_S = {"0.1 to 0.4 s": (0.1, 0.4), "1 to 2 s": (1.0, 2.0)}
_ASKED = 400


def loss_features(recording: Recording) -> Floats:
    """Everything but places."""
    r = recording
    edges = np.diff(np.concatenate(([0], ~r.valid, [0])).astype(np.int64))
    begins, runs = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0) - np.flatnonzero(edges > 0)
    gaps = np.diff(r.t_ns) * (r.rate_hz / 1e9)
    pauses = gaps[gaps > 1.5]
    quarters = [1 - q.mean() for q in np.array_split(r.valid, 4)]
    seconds = (r.t_ns[-1] - r.t_ns[0]) / 1e9
    return np.array(
        [
            1 - r.valid.mean(),
            np.sqrt(1 - r.valid.mean()),
            len(runs),
            *_quantiles(runs / r.rate_hz),
            *_quantiles(begins / len(r)),
            *quarters,
            len(pauses),
            *_quantiles(pauses),
            pauses.sum(),
            gaps.std(),
            len(r),
            seconds,
            r.rate_hz,
            len(r) / max(seconds, 1e-9),
            r.t_ns[0] / 1e9,
        ]
    )


def _quantiles(values: Floats) -> list[float]:
    return np.quantile(values, [0.1, 0.5, 0.9, 1.0]).tolist() if len(values) else [0.0] * 4


def found_by_losses(one: Cohort, other: Cohort) -> tuple[float, float]:
    """Share of people found, and its standard error over people."""
    people, stimuli = sorted({r.person for r in one}), sorted({r.stimulus for r in one})
    tables = [_less_stimulus(cohort, stimuli) for cohort in (one, other)]
    who = np.array([people.index(r.person) for r in one])
    what = np.array([stimuli.index(r.stimulus) for r in one])
    found: Floats = np.zeros((SPLITS, len(people)))
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(stimuli))
        asked = np.isin(what, order[: max(1, round(TEST_SHARE * len(stimuli)))])
        mean, spread = tables[0][~asked].mean(axis=0), tables[0][~asked].std(axis=0)
        spread = np.where(spread > 1e-9, spread, 1.0)
        ridge = RidgeClassifier(alpha=10.0).fit((tables[0][~asked] - mean) / spread, who[~asked])
        scores = ridge.decision_function((tables[1] - mean) / spread)
        # Equal scores are drawn lots for, so that a table that tells nothing finds one in so many.
        scores = scores + 1e-9 * np.random.default_rng(split).standard_normal(scores.shape)
        for p in range(len(people)):
            together = scores[asked & (who == p)].sum(axis=0)
            found[split, p] = together.argmax() == p
    each = found.mean(axis=0)
    return float(each.mean()), float(each.std() / np.sqrt(len(each)))


def _less_stimulus(cohort: Cohort, stimuli: list[str]) -> Floats:
    table = np.stack([loss_features(r) for r in cohort])
    what = np.array([stimuli.index(r.stimulus) for r in cohort])
    for s in range(len(stimuli)):
        if (what == s).any():
            table[what == s] -= table[what == s].mean(axis=0)
    return table


def looks(x_deg: Floats, y_deg: Floats, rate_hz: float) -> Floats:
    """What released gaze looks like around each sample, and in the stretches before and after."""
    n, i = len(x_deg), np.arange(len(x_deg))
    step = np.hypot(np.diff(x_deg, prepend=x_deg[0]), np.diff(y_deg, prepend=y_deg[0]))
    values = (x_deg, y_deg, x_deg**2 + y_deg**2, step, step == 0)
    sums = [np.concatenate(([0.0], np.cumsum(v))) for v in values]
    out = [step, step == 0, x_deg, y_deg]
    for seconds in (0.05, 0.1, 0.25, 0.5):
        k = max(1, round(seconds * rate_hz))
        means = []
        for a, b in ((-3 * k, -k), (-k, k), (k, 3 * k)):
            low = np.clip(i + a, 0, n - 1)
            high = np.maximum(np.clip(i + b, 1, n), low + 1)
            means.append([(s[high] - s[low]) / (high - low) for s in sums])
        (bx, by, *_), (x, y, square, steps, same), (ax, ay, *_) = means
        out += [square - x**2 - y**2, np.hypot(x - bx, y - by), np.hypot(x - ax, y - ay)]
        out += [np.hypot(ax - bx, ay - by), steps, same, x, y, np.hypot(x, y)]
    return np.stack(out, axis=1)


def with_stretches_lost(
    recording: Recording, seconds: tuple[float, float], rng: np.random.Generator
) -> Recording:
    """Stretches lost at random, 2.5 s apart on average."""
    valid, at = recording.valid.copy(), 0
    while True:
        at += int(rng.exponential(2.5) * recording.rate_hz)
        length = int(rng.uniform(*seconds) * recording.rate_hz)
        if at + length >= len(valid):
            return recording.with_(valid=valid)
        valid[at : at + length] = False
        at += length


class Detector:
    """Two forests, each trained on the released samples of half the people.

    Parameters
    ----------
    made : StreamMechanism
        What releases.
    recordings : list of Recording
        Raw gaze.
    seconds : (float, float)
        How long stretches are taken out.
    control : bool
        Whether recordings are released that have not lost them.
    """

    def __init__(
        self,
        made: StreamMechanism,
        recordings: list[Recording],
        seconds: tuple[float, float],
        control: bool = False,
    ) -> None:
        rng = np.random.default_rng(1)
        self.made = made
        self.people = sorted({r.person for r in recordings})
        rows, truth, half = [], [], []
        for r in recordings:
            lossy = with_stretches_lost(r, seconds, rng)
            table = self.table(r if control else lossy, int(rng.integers(1 << 30)))
            lost = _lost(lossy, made)
            pick = rng.choice(min(len(table), len(lost)), _ASKED, replace=False)
            rows.append(table[pick])
            truth.append(lost[pick])
            half.append(np.full(_ASKED, self.half(r)))
        self.rows, self.truth = np.concatenate(rows), np.concatenate(truth)
        self.halves = np.concatenate(half)
        self.forests = [
            HistGradientBoostingClassifier(max_iter=80, random_state=0).fit(
                self.rows[self.halves == h], self.truth[self.halves == h]
            )
            for h in range(2)
        ]

    def half(self, recording: Recording) -> int:
        """In which half a person is."""
        return self.people.index(recording.person) % 2

    def table(self, recording: Recording, seed: int) -> Floats:
        """Looks of a release."""
        out = self.made.release(recording, seed=seed).data
        # Filters release nothing at the first sample, whatever it was.
        known = np.maximum(np.arange(len(out)), np.flatnonzero(out.valid)[0])
        return looks(out.x_deg[known], out.y_deg[known], out.rate_hz)

    def area(self) -> float:
        """Area under the curve, each half judged by the forest of the other."""
        scores = np.empty(len(self.truth))
        for h in range(2):
            asked = self.halves != h
            scores[asked] = self.forests[h].predict_proba(self.rows[asked])[:, 1]
        return float(roc_auc_score(self.truth, scores))

    def lost_share(self, recording: Recording, seed: int) -> tuple[float, float]:
        """The mean answer for a recording by the forest of the other half: over all samples, and
        over those alone that were recorded.
        """
        table, lost = self.table(recording, seed)[::5], _lost(recording, self.made)[::5]
        answers = self.forests[1 - self.half(recording)].predict_proba(table)[:, 1]
        return float(answers.mean()), float(answers[~lost[: len(answers)]].mean())


def _lost(recording: Recording, made: StreamMechanism) -> Bools:
    return ~on_clock(recording, recording.rate_hz, None)[3][:: made.stride]


def identification(folder: Path) -> Iterator[str]:
    """The table of people found by losses alone."""
    yield "## People found by losses, pauses and lengths alone\n"
    for name, rate_hz, seconds in COHORTS:
        raw = read(folder / name).load()
        people = len({r.person for r in raw})
        guess = 100 / people
        yield f"`{name}`, {people} people, {len(raw)} recordings; guessing finds {guess:.1f} %."
        yield f"Public clock: {rate_hz} Hz, {seconds} s. Percent, standard error over people.\n"
        yield "| mechanism | losses kept | filled | filled, public rate and duration |"
        yield "|---|---|---|---|"
        yield f"| none | {_percent(found_by_losses(raw, raw))} | | |"
        alike: dict[str, list[str]] = {}
        for text in MECHANISMS:
            plain = text.format(half_second=rate_hz // 2)
            end = "" if plain.endswith(":") else ","
            options = ("keep", "fill", f"fill,duration_s={seconds},clock_hz={rate_hz}")
            cells = []
            for option in options:
                made = mechanism(f"{plain}{end}losses={option}")
                releases = [made.release(raw, seed=s).data for s in (1, 2)]
                cells.append(_percent(found_by_losses(*releases)))
            alike.setdefault(" | ".join(cells), []).append(f"`{plain}`")
        yield from (f"| {', '.join(names)} | {cells} |" for cells, names in alike.items())
        yield ""


def _percent(value: tuple[float, float]) -> str:
    return f"{100 * value[0]:.1f} ± {100 * value[1]:.1f}"


def detection(folder: Path) -> Iterator[str]:
    """The tables of filled samples told from others, and of losses found again."""
    raw = read(folder / "gazecom").load()
    first = [r for r in raw if r.stimulus in sorted(raw.stimuli)[:2]]
    rest = [r for r in raw if r.stimulus not in sorted(raw.stimuli)[:2]]
    truth = [1 - on_clock(r, r.rate_hz, None)[3].mean() for r in rest]
    yield "## Filled samples told from others, and losses found again\n"
    counts = f"from {len(first)} recordings of two clips, correlation over the {len(rest)} others"
    yield f"GazeCom: forests {counts}.\n"
    yield (
        "| mechanism | "
        + " | ".join(f"area, {s}" for s in _STRETCHES_S)
        + " | control | rank correlation | of recorded samples alone |"
    )
    yield "|---|---|---|---|---|---|"
    for text in MECHANISMS:
        plain = text.format(half_second=125)
        made = mechanism(plain)
        assert isinstance(made, StreamMechanism)
        detectors = [Detector(made, first, s) for s in _STRETCHES_S.values()]
        control = Detector(made, first, (1.0, 2.0), control=True).area()
        told = np.array([detectors[0].lost_share(r, i) for i, r in enumerate(rest)])
        ranks = [spearmanr(told[:, k], truth).statistic for k in range(2)]
        areas = " | ".join(f"{d.area():.2f}" for d in detectors)
        yield f"| `{plain}` | {areas} | {control:.2f} | {ranks[0]:.2f} | {ranks[1]:.2f} |"


def main() -> None:
    """Print the tables, or write them into a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args()
    folder = os.environ.get("GAZEVEIL_DATA")
    if not folder:
        sys.exit("GAZEVEIL_DATA must name the folder of recordings. Set it and run this again.")
    lines = []
    for part in (identification, detection):
        for line in part(Path(folder)):
            print(line, flush=True)
            lines.append(line)
    if given.write:
        begin = given.write.read_text("utf-8").split(MARK)[0]
        given.write.write_text(begin + MARK + "\n\n" + "\n".join(lines) + "\n", "utf-8")


#: What follows this line of the page is written by the command.
MARK = "<!-- by python benchmarks/losses.py -->"

if __name__ == "__main__":
    main()
