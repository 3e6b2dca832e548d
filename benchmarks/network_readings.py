"""What the papers' training of the RBF network costs where people differ in how much was recorded
of them: `rbfn:reading=published` beside `rbfn` on GazeCom.

    python benchmarks/network_readings.py

24 people, 10 clips, 5 splits of 8 clips to learn from and 2 to be asked about. Every second person
is learnt from all 8 clips; the others from as many as the row says. Recordings are found through
GAZEVEIL_DATA.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import gazeveil
from gazeveil.attacks.registry import attack
from gazeveil.features.recording_set import RecordingSet

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("GAZEVEIL_DATA", ROOT / ".." / "shared" / "data"))
SPLITS, LEARNT = 5, 8
READINGS = ("rbfn", "rbfn:reading=published")


def found(whole: RecordingSet, text: str, few: int) -> tuple[float, float]:
    """Shares of all people and of those with few clips who are recognised."""
    scarce = set(sorted(whole.persons)[1::2])
    everybody, some = [], []
    for seed in range(SPLITS):
        clips = np.random.default_rng(seed).permutation(sorted(whole.stimuli)).tolist()
        known = {p: set(clips[: few if p in scarce else LEARNT]) for p in whole.persons}
        gallery = whole.where(lambda key, known=known: key[1] in known[key[0]])
        scores = attack(text).identify(gallery, whole.select(stimuli=clips[LEARNT:]), seed=seed)
        credit = dict(zip(scores.probes, scores.credit().tolist(), strict=True))
        everybody.append(np.mean(list(credit.values())))
        some.append(np.mean([credit[p] for p in credit if p in scarce]))
    return float(np.mean(everybody)), float(np.mean(some))


def main() -> None:
    """Print a table."""
    whole = RecordingSet(gazeveil.read(DATA / "gazecom")).prepared(["fixation", "saccade"])
    print("| clips of every second person | attacker | recognised | of those with fewer clips |")
    print("|---|---|---|---|")
    for few in (LEARNT, 2):
        for text in READINGS:
            rate, scarce = found(whole, text, few)
            print(f"| {few} | `{text}` | {100 * rate:.0f} % | {100 * scarce:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
