"""An attack made for `style`: find the donor of every name first, take the donor's part away, then
find the person in what is left.

    python benchmarks/style_donors.py [--data gazecom] [--weights 8,16] [--splits 4] [--draws 8]

The attacker holds raw recordings of everybody at three quarters of the stimuli, knows the mechanism
and its weight, and makes `draws` releases of them whose donors are known. The mean vector of a name
(the vectors of the attack `steps`, without what the stimulus has in common) is taken for the sum
of a part of the person and a part of the donor, both found by least squares over all draws. A name
of the release at the other stimuli is then scored for every pair of person and donor by the squared
distance from the sum, in units of the spread within names, each feature by how far two halves of
the draws agree on it; donors are dealt one to one (Hungarian),
and the person is the best one given that donor. `plain` leaves the donors out: the mean over draws
alone. Rates are means over splits; guessing finds 1 of the people.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

import gazeveil
from gazeveil import Cohort
from gazeveil.arrays import Floats
from gazeveil.attacks.vectors.deviations import person_means, standardised_deviations
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.features.recording_set import RecordingSet
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.synthesis.style.mechanism import Style, derangement


def name_vectors(cohort: Cohort, people: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Mean vector of every name, and the variance of a recording about it."""
    vectors = recording_vectors(RecordingSet(cohort), "steps")
    rows = standardised_deviations(vectors, vectors)
    means = person_means(rows, vectors.persons, people)
    at = np.searchsorted(np.array(people), vectors.persons)
    return means, np.asarray(((rows - means[at]) ** 2).mean(axis=0))


def donors_of(people: tuple[str, ...], seed: int) -> list[int]:
    """Who the donors of a release with a test seed are."""
    dealt = derangement(list(people), Words(source(seed, Style.name, "donors")))
    return [people.index(dealt[p]) for p in people]


def parts(means: list[Floats], donors: list[list[int]], n: int) -> tuple[Floats, Floats]:
    """The part of each person and of each donor, shape (people, features) each."""
    design = np.zeros((len(means) * n, 2 * n))
    for draw, dealt in enumerate(donors):
        for person, donor in enumerate(dealt):
            design[draw * n + person, [person, n + donor]] = 1.0
    # a small ridge settles what person and donor parts may swap, and keeps few draws calm
    normal = design.T @ design + 0.5 * np.eye(2 * n)
    solved = np.linalg.solve(normal, design.T @ np.concatenate(means))
    return solved[:n], solved[n:]


def reliability(means: list[Floats], donors: list[list[int]], n: int) -> tuple[Floats, Floats]:
    """How far two halves of the draws agree on the parts of persons and of donors, from 0 to 1."""
    halves = [parts(means[i::2], donors[i::2], n) for i in (0, 1)]
    found = []
    for one, other in zip(*halves, strict=True):
        a, b = one - one.mean(axis=0), other - other.mean(axis=0)
        size = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0)) + 1e-9
        found.append(np.maximum(0.0, (a * b).sum(axis=0) / size))
    return found[0], found[1]


def attacked(raw: Cohort, weight: str, split: int, draws: int) -> dict[str, float]:
    """Shares of names whose person, or donor, is found."""
    people = tuple(sorted({key[0] for key in raw.keys}))
    order = np.random.default_rng([7, split]).permutation(sorted(raw.stimuli)).tolist()
    learnt = round(0.75 * len(order))
    style = Style(10, 2, weight=weight)
    gallery = raw.select(stimuli=order[:learnt])
    seeds = [1000 * split + draw for draw in range(draws)]
    made = [name_vectors(style.release(gallery, seed=s).data, people) for s in seeds]
    means, donors = [m for m, _ in made], [donors_of(people, s) for s in seeds]
    own, given = parts(means, donors, len(people))
    unit = np.sqrt(np.mean([v for _, v in made], axis=0)) + 1e-3
    seed = 1000 * split + 999
    probe = style.release(raw, seed=seed).data.select(stimuli=order[learnt:])
    asked, true = name_vectors(probe, people)[0], np.array(donors_of(people, seed))
    # squared distance of a name from person i with donor j
    sums = own[:, None, :] + given[None, :, :]
    n = np.arange(len(people))
    of_person, of_donor = reliability(means, donors, len(people))
    far = np.stack([((((a - sums) / unit) ** 2) * of_donor).mean(axis=2) for a in asked])
    far[:, n, n] = np.inf
    donor = linear_sum_assignment(far.min(axis=1))[1]
    far = np.stack([((((a - sums) / unit) ** 2) * of_person).mean(axis=2) for a in asked])
    far[:, n, n] = np.inf
    person = far[n, :, donor].argmin(axis=1)
    together = far.min(axis=2)
    mean = np.mean(means, axis=0)
    plain = np.stack([((((a - mean) / unit) ** 2) * of_person).mean(axis=1) for a in asked])
    return {
        "donor found": float((donor == true).mean()),
        "person, given that donor": float((person == n).mean()),
        "person, one to one": float((linear_sum_assignment(together)[1] == n).mean()),
        "person, given the true donor": float((far[n, :, true].argmin(axis=1) == n).mean()),
        "plain": float((plain.argmin(axis=1) == n).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="gazecom")
    parser.add_argument("--weights", default="8,16")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--draws", type=int, default=8)
    chosen = parser.parse_args()
    data = Path(os.environ.get("GAZEVEIL_DATA", "../shared/data")) / chosen.data
    raw = gazeveil.read(data).load()
    for weight in chosen.weights.split(","):
        rows = [attacked(raw, weight, split, chosen.draws) for split in range(chosen.splits)]
        shares = {name: 100 * float(np.mean([r[name] for r in rows])) for name in rows[0]}
        told = ", ".join(f"{name} {share:.0f} %" for name, share in shares.items())
        print(f"weight {weight}, {chosen.splits} splits: {told}", flush=True)


if __name__ == "__main__":
    main()
