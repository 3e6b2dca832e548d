"""Gaze protected while head motion is released: who is recognised by gaze, by the head, by both.

    python benchmarks/head_motion.py [--attack NAME:...] [--splits 10] [--json FILE]

EyeNavGS (12 people x 12 scenes) under GAZEVEIL_DATA, 9 scenes against 3. The attacker is told the
direction of the head as if it were gaze, so any attacker of samples can be asked. Protected gaze is
private against private, two independent releases a split; head motion is as recorded on both sides.
Both together are the sum of the standardised scores.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

import gazeveil
from gazeveil.attacks.base import Attack, Scores, standardised_scores
from gazeveil.attacks.registry import attack
from gazeveil.attacks.result import identification
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, increasing
from lines import Lines

MECHANISMS = (
    "gaussian:sigma_deg=10",
    "spatial:L=64",
    "kaleido:epsilon=1,w=18,r_deg=2",
    "clock-render:epsilon=1,r_deg=2",
)


def head_as_gaze(recording: Recording) -> Recording:
    """The direction of the head in the place of gaze."""
    assert recording.head_deg is not None
    sphere = Sphere()
    x, y = sphere.degrees(sphere.vectors(recording.head_deg[:, 0], recording.head_deg[:, 1]))
    known = increasing(recording.t_ns, np.isfinite(x) & np.isfinite(y))
    return Recording(
        recording.person, recording.stimulus, recording.t_ns, x, y, known,
        session=recording.session, task=recording.task, rate_hz=recording.rate_hz,
    )  # fmt: skip


def gaze_alone(recording: Recording) -> Recording:
    """Without its other channels, as a release is."""
    return recording.with_(head_deg=None, eye_in_head_deg=None, left_deg=None, right_deg=None)


def scores_of(who: Attack, first: Cohort, second: Cohort, repetition: int) -> Scores:
    """The scores of one split by scene."""
    stimuli = sorted(first.stimuli)
    rng = np.random.default_rng(1000 + repetition)
    learnt = {stimuli[i] for i in rng.permutation(len(stimuli))[: round(0.75 * len(stimuli))]}
    gallery = RecordingSet(first).where(lambda key: key[1] in learnt)
    probe = RecordingSet(second).where(lambda key: key[1] not in learnt)
    return who.identify(gallery, probe, repetition)


def together(one: Scores, other: Scores) -> Scores:
    """Both attackers' scores in one."""
    assert (one.known, one.probes) == (other.known, other.probes)
    values = standardised_scores(one.values) + standardised_scores(other.values)
    return Scores(one.known, one.probes, values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--attack", default="linkage:features=trajectory")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    who, lines = attack(given.attack), Lines(None)
    recordings = list(gazeveil.read(Path(os.environ["GAZEVEIL_DATA"]) / "eyenavgs_nthu"))
    gaze = Cohort([gaze_alone(r) for r in recordings])
    head = Cohort([head_as_gaze(r) for r in recordings])
    by_head = [scores_of(who, head, head, i) for i in range(given.splits)]
    rows = {"head alone": by_head}
    for text in ("none", *MECHANISMS):
        began, found = time.perf_counter(), []
        for i in range(given.splits):
            sides = [gaze, gaze]
            if text != "none":
                made = gazeveil.mechanism(text)
                sides = [made.release(gaze, seed=2 * i + side).data.load() for side in (0, 1)]
            found.append(scores_of(who, sides[0], sides[1], i))
        rows[f"gaze, {text}"] = found
        rows[f"gaze, {text}, and head"] = [
            together(a, b) for a, b in zip(found, by_head, strict=True)
        ]
        print(f"{text}: {time.perf_counter() - began:.0f} s", flush=True)
    for name, scores in rows.items():
        result = identification(scores)
        lines.keep(
            {
                "figure": name,
                "attack": given.attack,
                "value": result.value,
                "low": result.low,
                "high": result.high,
                "chance": result.chance,
                "people": result.n,
                "splits": given.splits,
                "met": True,
            }
        )
    lines.path = given.json
    lines.close()


if __name__ == "__main__":
    main()
