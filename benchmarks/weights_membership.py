"""How well an attacker who holds the weights of a network tells who was trained on.

    python benchmarks/weights_membership.py [--quick] [--only ekyt dgaze dgaze-eyenavgs ehtask]
        [--people 64] [--pairs 6] [--seconds 60] [--json FILE]
    python benchmarks/weights_membership.py page FILE... (a table for the manual)

Networks come in pairs: one is trained on a random half of the people, the other on the other half,
each on half of a person's stimuli. The attacker holds the weights and either the very recordings
that were trained on (`same`) or others of the same people (`other`), and gives everybody a score:

* `loss`: how small the network's loss is.
* `nearness` (ekyt): how much nearer windows of a person's different recordings lie to one another
  than to those of other people.
* `calibrated`: the same loss less that of networks which were not trained on the person (Watson et
  al. 2022).
* `ratio`: the likelihood ratio attack (LiRA, Carlini et al. 2022) with networks that were trained
  on the person and networks that were not. As its authors do where networks are few, one variance
  for all people; here one distance between both kinds, too. With `other` it is a bound: who lacks
  the recordings cannot train such networks.

A network and its partner are never compared with each other, so everybody was trained on by exactly
half of the networks that a score goes by: their number tells nothing. Of the people that one
network was trained on, one of another pair was trained on exactly half: where halves overlap by
chance, what two networks have in common passes for memory (the control was at 0.7 instead of 0.5).
Scores are standardised network by network and judged together. Intervals are 95 % bootstrap over
people; the control deals the halves anew to people, many times, and goes through the whole attack.

`--quick` takes few steps, people and networks, and moments and windows further apart; without it 4x
are the steps that attackers and utilities take by themselves. EyeNavGS is read from
`GAZEVEIL_DATA`, the others are simulated.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

import gazeveil
from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.attacks.curves import roc_area
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import angle_deg
from gazeveil.gaze.recording import Recording
from gazeveil.models.ekyt.weights import ALPHA, BASE, BETA, BatchPlan, train_ekyt
from gazeveil.models.ekyt.windows import VelocityInput, WindowSet, common_rate_hz
from gazeveil.models.headset.dgaze import dgaze_plan
from gazeveil.models.headset.ehtask import ActivityNetwork, ehtask_plan, train_ehtask
from gazeveil.models.training import StepPlan
from gazeveil.utility.classify import window_array, window_rows
from gazeveil.utility.moments import Histories, histories
from gazeveil.utility.prediction import Prediction, learn
from gazeveil.utility.splits import Rows, class_by
from lines import Lines, markdown

#: What the attacker holds of a person.
HELD = ("same", "other")

#: How many times the fewest steps networks are trained for.
TIMES = (1, 4, 16)

#: Fewest steps of each network, in full and quick: the former are a quarter of the defaults.
STEPS = {"ekyt": (100, 4), "dgaze": (375, 8), "dgaze-eyenavgs": (375, 8), "ehtask": (150, 4)}

#: Share of false alarms at which hits are counted.
FALSE_ALARMS = 0.05

#: Draws of the bootstrap, and deals of the control.
BOOTSTRAPS, DEALS = 500, 100

#: Halves that are drawn before giving up.
MOST_DRAWS = 200_000

#: Largest distance of the control's mean area from one half.
MOST_CONTROL = 0.03

#: Activities of simulated people.
TASKS = ("free-viewing", "search", "video", "tracking")

# -------------------------------------------------------------------------------------- attacks


@dataclass(frozen=True, eq=False)
class Answers:
    """What networks answer about windows or moments (rows) of people.

    Parameters
    ----------
    values : array of float64, shape (networks, rows)
        Larger is what a network should give for people it was trained on: minus its loss.
    owner : array of int64, shape (rows,)
        Whose each row is.
    """

    values: Floats
    owner: Ints

    def of_people(self, values: Floats) -> Floats:
        """Means over the rows of each person, shape (networks, people)."""
        counts = np.bincount(self.owner)
        sums = [np.bincount(self.owner, row, len(counts)) for row in values]
        return np.asarray(np.array(sums) / counts, dtype=np.float64)

    def centred(self) -> Floats:
        """Values less the mean of each network: some networks are better for everybody."""
        people = self.of_people(self.values)
        return np.asarray(self.values - people.mean(axis=1, keepdims=True), dtype=np.float64)


Attacker = Callable[[Answers, Bools], Floats]


def halves(people: int, pairs: int, seed: int) -> Bools:
    """Who is trained on by each network, shape (2 pairs, people): networks 2 i and 2 i + 1 share
    the people between them, and halves of two pairs have half of their people in common.

    Raises
    ------
    ValueError
        Where people cannot be dealt so.
    """
    rng = np.random.default_rng(seed)
    half = np.arange(people) < people // 2
    first = np.empty((0, people), dtype=np.bool_)
    for _ in range(0 if people % 4 else MOST_DRAWS):
        drawn = rng.permutation(half)
        if (np.count_nonzero(first & drawn, axis=1) == people // 4).all():
            first = np.concatenate((first, drawn[None]))
        if len(first) == pairs:
            return np.stack((first, ~first), axis=1).reshape(2 * pairs, people)
    raise ValueError(
        f"{people} people cannot be dealt to {pairs} pairs: use a multiple of 4, fewer"
    )


def by_loss(answers: Answers, members: Bools) -> Floats:
    """The network's own answer; `members` is not looked at."""
    del members
    return answers.of_people(answers.values)


def by_calibrated_loss(answers: Answers, members: Bools) -> Floats:
    """The answer less that of the other pairs' networks that were not trained on the person."""
    values, scores = answers.of_people(answers.centred()), []
    for network, others in other_pairs(len(members)):
        without = np.where(members[others], np.nan, values[others])
        scores.append(values[network] - np.nanmean(without, axis=0))
    return np.array(scores)


def by_likelihood_ratio(answers: Answers, members: Bools) -> Floats:
    """Logarithm of how much likelier the answer is of a network that was trained on the person than
    of one that was not, both normal around that person's means with one distance between them and
    one variance for all people.
    """
    values, scores = answers.of_people(answers.centred()), []
    for network, others in other_pairs(len(members)):
        inside, rest = members[others], values[others]
        with_, without = (
            np.where(there, rest, 0.0).sum(axis=0) / there.sum(axis=0)
            for there in (inside, ~inside)
        )
        spread = float(np.mean((rest - np.where(inside, with_, without)) ** 2)) + 1e-18
        apart = float(np.mean(with_ - without))
        scores.append(apart * (values[network] - (with_ + without) / 2) / spread)
    return np.array(scores)


def other_pairs(networks: int) -> Iterable[tuple[int, Ints]]:
    """Each network with those of the other pairs."""
    everyone = np.arange(networks)
    for network in range(networks):
        yield network, everyone[everyone // 2 != network // 2]


ATTACKERS: dict[str, Attacker] = {
    "loss": by_loss,
    "calibrated": by_calibrated_loss,
    "ratio": by_likelihood_ratio,
}

# --------------------------------------------------------------------------------------- judging


def hits(inside: Floats, outside: Floats) -> float:
    """Share of people trained on above a threshold that :data:`FALSE_ALARMS` of the others pass."""
    allowed = math.floor(FALSE_ALARMS * len(outside) + 1e-9)
    return float(np.mean(inside > np.sort(outside)[len(outside) - 1 - allowed]))


def standardised(scores: Floats) -> Floats:
    """Scores of each network less their mean, over their deviation."""
    deviation = scores.std(axis=1, keepdims=True)
    apart = scores - scores.mean(axis=1, keepdims=True)
    return np.asarray(apart / np.where(deviation > 0, deviation, 1.0), dtype=np.float64)


def bootstrapped_areas(z: Floats, members: Bools, drawn: Ints) -> Floats:
    """Areas of people drawn with repetition, one for each row of `drawn`.

    Somebody drawn twice is not compared with their double: everybody is their own best comparison,
    trained on and not, and doubles would lift the area.
    """
    people = members.shape[1]
    wins, pairs = np.zeros((people, people)), np.zeros((people, people))
    inside, outside = np.nonzero(members), np.nonzero(~members)
    apart = z[inside][:, None] - z[outside][None, :]
    at = inside[1][:, None], outside[1][None, :]
    np.add.at(wins, at, (np.sign(apart) + 1) / 2)
    np.add.at(pairs, at, 1.0)
    areas = []
    for who in drawn:
        count = np.bincount(who, minlength=people).astype(np.float64)
        weight = np.outer(count, count)
        np.fill_diagonal(weight, count)
        areas.append((weight * wins).sum() / (weight * pairs).sum())
    return np.array(areas)


def judged(answers: Answers, members: Bools, attacker: Attacker, seed: int) -> dict[str, object]:
    """Area and hits with intervals over people, and the area where halves were dealt anew."""
    rng, people = np.random.default_rng(seed), members.shape[1]
    z = standardised(attacker(answers, members))
    drawn = rng.integers(people, size=(BOOTSTRAPS, people))
    areas = bootstrapped_areas(z, members, drawn)
    found = [hits(z[:, w][members[:, w]], z[:, w][~members[:, w]]) for w in drawn]
    dealt = []
    for _ in range(DEALS):
        other = members[:, rng.permutation(people)]
        again = standardised(attacker(answers, other))
        dealt.append(roc_area(again[other], again[~other]))
    control = float(np.mean(dealt))
    return {
        "auc": _rounded(roc_area(z[members], z[~members]), *_middle(areas)),
        "tpr_at_fpr_0.05": _rounded(hits(z[members], z[~members]), *_middle(found)),
        "control_auc": _rounded(control, *_middle(dealt)),
        "met": abs(control - 0.5) <= MOST_CONTROL,
    }


def _middle(values: ArrayLike) -> list[float]:
    """Where the middle 95 % lie."""
    return [float(v) for v in np.quantile(np.asarray(values), [0.025, 0.975])]


def _rounded(*values: float) -> list[float]:
    return [round(float(v), 3) for v in values]


# -------------------------------------------------------------------------------------- networks


class Trainee(Protocol):
    """Recordings of people, and how a network is trained on some of them."""

    #: How many people there are.
    people: int

    def owner(self, held: str) -> Ints:
        """Whose each row of what the attacker holds is."""

    def answers(self, trained: Bools, steps: int, seed: int) -> dict[tuple[str, str], Floats]:
        """Train on some people; answers by what is held and by measure (`loss`, `nearness`)."""


@dataclass(frozen=True, eq=False)
class EkytTrainee:
    """The network that recognises people: `windows` of the stimuli that are trained on and of the
    others, by :data:`HELD`.
    """

    names: tuple[str, ...]
    windows: dict[str, WindowSet]
    batch: BatchPlan

    @property
    def people(self) -> int:
        return len(self.names)

    def owner(self, held: str) -> Ints:
        return _numbers(self.names, self._asked(held).persons)

    def answers(self, trained: Bools, steps: int, seed: int) -> dict[tuple[str, str], Floats]:
        chosen = {p for p, there in zip(self.names, trained, strict=True) if there}
        learnt = self.windows["same"].where(lambda key: key[0] in chosen)
        model, _ = train_ekyt(learnt, StepPlan(steps, seed=seed), self.batch)
        found = {}
        for held in HELD:
            asked = self._asked(held)
            cosines, owner = _cosines(model.embed(asked)), self.owner(held)
            found[held, "nearness"] = _nearness(cosines, owner, asked.owner)
            found[held, "loss"] = -_similarity_losses(cosines, owner)
        return found

    def _asked(self, held: str) -> WindowSet:
        windows = self.windows[held]
        return windows.every(windows.setting.window_s)


def _cosines(embedded: Floats) -> Floats:
    return np.asarray(embedded @ embedded.T, dtype=np.float64)


def _nearness(cosines: Floats, owner: Ints, recording: Ints) -> Floats:
    """Mean cosine to windows of the same person's other recordings, less that to other people."""
    same = owner[:, None] == owner[None, :]
    apart = same & (recording[:, None] != recording[None, :])
    own = (cosines * apart).sum(axis=1) / apart.sum(axis=1)
    return np.asarray(own - (cosines * ~same).sum(axis=1) / (~same).sum(axis=1))


def _similarity_losses(cosines: Floats, owner: Ints) -> Floats:
    """The multi-similarity loss of each window, of all pairs without the miner; sums are means, so
    that somebody with more windows has no larger loss.
    """
    same = owner[:, None] == owner[None, :]
    own = same & ~np.eye(len(owner), dtype=np.bool_)
    pull = (np.exp(-ALPHA * (cosines - BASE)) * own).sum(axis=1) / own.sum(axis=1)
    push = (np.exp(BETA * (cosines - BASE)) * ~same).sum(axis=1) / (~same).sum(axis=1)
    return np.asarray(np.log1p(pull) / ALPHA + np.log1p(push) / BETA)


@dataclass(frozen=True, eq=False)
class DgazeTrainee:
    """The network that says where gaze will be: of each recording its person, what the network sees
    and where gaze went, by :data:`HELD`.
    """

    people: int
    seen: dict[str, list[tuple[int, Histories, Floats]]]

    def owner(self, held: str) -> Ints:
        return np.concatenate([np.full(len(truth), p) for p, _, truth in self.seen[held]])

    def answers(self, trained: Bools, steps: int, seed: int) -> dict[tuple[str, str], Floats]:
        mine = [(seen, truth) for p, seen, truth in self.seen["same"] if trained[p]]
        plan = dgaze_plan("corrected", steps, seed)
        network = learn([s for s, _ in mine], [t for _, t in mine], "corrected", plan)
        assert network is not None
        return {
            (held, "loss"): -np.concatenate(
                [angle_deg(network.directions(seen), truth) for _, seen, truth in self.seen[held]]
            )
            for held in HELD
        }


@dataclass(frozen=True, eq=False)
class EhtaskTrainee:
    """The network that names activities: windows with their activities, by :data:`HELD`."""

    names: tuple[str, ...]
    rows: dict[str, Rows]

    @property
    def people(self) -> int:
        return len(self.names)

    def owner(self, held: str) -> Ints:
        return _numbers(self.names, self.rows[held].persons.tolist())

    def answers(self, trained: Bools, steps: int, seed: int) -> dict[tuple[str, str], Floats]:
        learnt = self.rows["same"].where(trained[self.owner("same")])
        plan = ehtask_plan("corrected", steps, seed)
        network, _ = train_ehtask(window_array(learnt), _codes(learnt), plan)
        return {(held, "loss"): _log_odds(network, self.rows[held]) for held in HELD}


def _codes(rows: Rows) -> Ints:
    return np.array([sorted(TASKS).index(label) for label in rows.labels], dtype=np.int64)


def _log_odds(network: ActivityNetwork, rows: Rows) -> Floats:
    """Logarithm of the odds of each window's true activity: as good as the cross-entropy for a
    threshold, and nearer to a normal law for a likelihood ratio.
    """
    import torch

    network.parts.eval()
    with torch.no_grad():
        given = torch.as_tensor(network.standardised(window_array(rows)))
        scores = network.forward(given).double().numpy()
    at, codes = np.arange(len(scores)), _codes(rows)
    true = scores[at, codes].copy()
    scores[at, codes] = -np.inf
    return np.asarray(true - np.logaddexp.reduce(scores, axis=1), dtype=np.float64)


def _numbers(names: Sequence[str], persons: Sequence[str]) -> Ints:
    at = {name: i for i, name in enumerate(names)}
    return np.array([at[p] for p in persons], dtype=np.int64)


# ------------------------------------------------------------------------------------ recordings


@dataclass(frozen=True)
class Size:
    """How much is measured: simulated people, pairs of networks, seconds of a recording, stimuli
    (half of them trained on); for ekyt the windows of a person in a batch, their seconds and their
    rate; for dgaze the seconds between two moments.
    """

    people: int
    pairs: int
    seconds: float
    stimuli: int
    windows: int
    window_s: float
    rate_hz: float
    every_s: float


#: In full, and quick.
FULL = Size(64, 6, 60.0, 4, 8, 5.0, 60.0, 0.05)
QUICK = Size(24, 3, 20.0, 4, 4, 2.0, 30.0, 0.2)


def _stimuli(cohort: Cohort) -> dict[str, tuple[str, ...]]:
    """Those that are trained on, and the others."""
    names = tuple(cohort.stimuli)
    return {"same": names[::2], "other": names[1::2]}


def ekyt_trainee(size: Size) -> EkytTrainee:
    made = gazeveil.simulate(size.people, size.stimuli, size.seconds, 60.0, seed=41)
    cohort = Cohort(list(made))
    setting = VelocityInput(common_rate_hz(cohort, size.rate_hz), size.window_s)
    windows = {
        held: WindowSet.of(cohort.select(stimuli=names), setting)
        for held, names in _stimuli(cohort).items()
    }
    return EkytTrainee(tuple(sorted(cohort.people)), windows, BatchPlan(16, size.windows))


def dgaze_trainee(cohort: Cohort, every_s: float) -> DgazeTrainee:
    task = Prediction(model="dgaze", every_s=every_s)
    names = tuple(sorted({r.person for r in cohort}))
    seen: dict[str, list[tuple[int, Histories, Floats]]] = {}
    for held, stimuli in _stimuli(cohort).items():
        part = RecordingSet(Cohort(list(cohort.select(stimuli=stimuli))))
        seen[held] = [
            (
                names.index(recorded.person),
                histories(recorded, moments, task.past_s, task.head, task.reading),
                moments.truth,
            )
            for recorded, moments in task.moments(part, part, names)
            if len(moments)
        ]
    return DgazeTrainee(len(names), seen)


def simulated_gaze(size: Size) -> DgazeTrainee:
    made = gazeveil.simulate(size.people, size.stimuli // 2, size.seconds, 60.0, seed=42)
    return dgaze_trainee(Cohort(list(made)), size.every_s)


def eyenavgs(size: Size) -> DgazeTrainee:
    folder = Path(os.environ["GAZEVEIL_DATA"]) / "eyenavgs_nthu"
    cohort = gazeveil.read(folder)
    names = tuple(cohort.stimuli)[: size.stimuli]
    return dgaze_trainee(Cohort(list(cohort.select(stimuli=names))), size.every_s)


def ehtask_trainee(size: Size) -> EhtaskTrainee:
    made: list[Recording] = []
    for task in TASKS:
        half = size.stimuli // 2
        made += gazeveil.simulate(size.people, half, size.seconds, 60.0, task=task, seed=43)
    cohort = Cohort(made)
    pipeline = FeaturePipeline("is5t", {}, window_s=5.0, step_s=2.5)
    rows = {}
    for held, names in _by_task(cohort).items():
        part = RecordingSet(Cohort([r for r in cohort if r.key[1:] in names]), None, pipeline)
        rows[held] = window_rows(part, part, class_by("task"))
    return EhtaskTrainee(tuple(sorted(cohort.people)), rows)


def _by_task(cohort: Cohort) -> dict[str, set[tuple[str, ...]]]:
    """Stimuli of every task, half of them trained on; a key without its person names one."""
    found: dict[str, set[tuple[str, ...]]] = {held: set() for held in HELD}
    for task in TASKS:
        keys = sorted({r.key[1:] for r in cohort if r.task == task})
        found["same"].update(keys[::2])
        found["other"].update(keys[1::2])
    return found


TRAINEES: dict[str, Callable[[Size], Trainee]] = {
    "ekyt": ekyt_trainee,
    "dgaze": simulated_gaze,
    "dgaze-eyenavgs": eyenavgs,
    "ehtask": ehtask_trainee,
}


def measure(name: str, trainee: Trainee, size: Size, least: int, lines: Lines) -> None:
    """All attacks on networks of one kind, by steps of training."""
    members = halves(trainee.people, size.pairs, seed=7)
    for times in TIMES:
        begin, answers = time.process_time(), []
        for number, trained in enumerate(members):
            answers.append(trainee.answers(trained, times * least, number))
        seconds = time.process_time() - begin
        for held, what in answers[0]:
            given = Answers(np.array([a[held, what] for a in answers]), trainee.owner(held))
            for attack, attacker in ATTACKERS.items():
                if what == "nearness" and attack != "loss":
                    continue
                lines.keep(
                    {
                        "figure": name,
                        "times": times,
                        "steps": times * least,
                        "held": held,
                        "attack": what if attack == "loss" else attack,
                        **judged(given, members, attacker, seed=times),
                        "people": trainee.people,
                        "networks": len(members),
                        "training_cpu_s": round(seconds, 1),
                    }
                )


# ------------------------------------------------------------------------------------------ page


def page(files: Sequence[Path]) -> None:
    """The figures of some runs as a table."""
    rows = [json.loads(line) for f in files for line in f.read_text().splitlines()]
    table: dict[tuple[str, ...], dict[int, str]] = {}
    for r in rows:
        head = (r["figure"], r["held"], r["attack"])
        hit = r["tpr_at_fpr_0.05"]
        text = f"{_cell(r['auc'])}; {hit[0]:.2f} ({hit[1]:.2f}\N{EN DASH}{hit[2]:.2f})"
        table.setdefault(head, {})[r["times"]] = text
    columns = ("network", "attacker holds", "attack", *(f"{t}x" for t in TIMES))
    body = [[*head, *(cells.get(t, "") for t in TIMES)] for head, cells in table.items()]
    print(markdown(columns, body))


def _cell(value: Sequence[float]) -> str:
    return f"{value[0]:.2f} ({value[1]:.2f}\N{EN DASH}{value[2]:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", help="nothing, or `page` and files")
    parser.add_argument("--only", nargs="+", choices=tuple(TRAINEES))
    parser.add_argument("--quick", action="store_true", help="about ten minutes of one processor")
    parser.add_argument("--people", type=int)
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.what[:1] == ["page"]:
        page([Path(f) for f in given.what[1:]])
        return
    import torch

    # Two threads of so small a network mostly wait for one another, and waiting counts as work.
    torch.set_num_threads(1)
    asked = {n: getattr(given, n) for n in ("people", "pairs", "seconds")}
    size = replace(QUICK if given.quick else FULL, **{n: v for n, v in asked.items() if v})
    lines = Lines(given.json)
    for name in given.only or TRAINEES:
        if name == "dgaze-eyenavgs" and "GAZEVEIL_DATA" not in os.environ:
            print(f"{name}: not measured, needs GAZEVEIL_DATA", file=sys.stderr)
            continue
        measure(name, TRAINEES[name](size), size, STEPS[name][given.quick], lines)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
