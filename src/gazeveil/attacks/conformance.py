"""The conformance kit of identifying attacks: people who differ are recognised, noise is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.pieces.sides import cut_like, renamed
from gazeveil.conformance import CheckResult, run_kit
from gazeveil.features.recording_set import PieceWindow, RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.simulate import simulate

_PEOPLE, _STIMULI = 8, 4
_RATE_HZ = 120.0
_SECOND_NS = 1_000_000_000


def check_attack(attack: Attack) -> list[CheckResult]:
    """Run the kit on an attack."""
    return run_kit(_KIT, attack)


def _recognises_people_who_differ(attack: Attack) -> Iterator[str]:
    gallery, probe = _people(same=True)
    rate = float(_identified(attack, gallery, probe, seed=1).credit().mean())
    if rate < 0.75:
        yield f"it recognises {100 * rate:.0f} % of {_PEOPLE} people whose gaze is the same again"


def _guesses_where_there_is_nothing_to_learn(attack: Attack) -> Iterator[str]:
    # Names of the probe are permuted at random: in 20 draws a guess is right once in 8 people.
    gallery, probe = _people(same=False)
    scores = _identified(attack, gallery, probe, seed=1)
    rng = np.random.default_rng(0)
    orders = [tuple(rng.permutation(scores.probes)) for _ in range(200)]
    rates = [Scores(scores.known, o, scores.values).credit().mean() for o in orders]
    own = float(scores.credit().mean())
    if own > np.quantile(rates, 0.995) + 1e-9:
        yield f"it recognises {100 * own:.0f} % of people whose gaze was drawn from one person"


def _does_not_read_the_answer_from_the_names(attack: Attack) -> Iterator[str]:
    gallery, probe = _people(same=True)
    assert probe.cohort is not None
    people = sorted({r.person for r in probe.cohort})
    shifted = dict(zip(people, people[1:] + people[:1], strict=True))
    others = RecordingSet(Cohort([r.with_(person=shifted[r.person]) for r in probe.cohort]))
    rate = float(_identified(attack, gallery, others, seed=1).credit().mean())
    if rate > 0.5:
        yield "it names people by the name of the probe, not by its gaze"


def _repeats_under_a_seed(attack: Attack) -> Iterator[str]:
    gallery, probe = _people(same=True)
    first, second = (_identified(attack, gallery, probe, seed=3) for _ in range(2))
    if not np.array_equal(first.values, second.values, equal_nan=True):
        yield "the same seed gives other scores"


def _scores_everybody(attack: Attack) -> Iterator[str]:
    gallery, probe = _people(same=True)
    scores = _identified(attack, gallery, probe, seed=1)
    if set(scores.known) != set(gallery.persons):
        yield "its scores are not about the people of the gallery"
    if set(scores.probes) != set(probe.persons):
        yield "its scores leave out people of the probe"


_KIT: tuple[Callable[[Attack], Iterator[str]], ...] = (
    _scores_everybody,
    _recognises_people_who_differ,
    _guesses_where_there_is_nothing_to_learn,
    _does_not_read_the_answer_from_the_names,
    _repeats_under_a_seed,
)


def _identified(attack: Attack, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
    """The scores of an attack; one that joins pieces is given pieces, and the mean over a person's
    counts.
    """
    if not getattr(attack, "joins_pieces", False):
        return attack.identify(gallery, probe, seed)
    windows = [
        PieceWindow(stimulus, k, k * 6 * _SECOND_NS, (k * 6 + 5) * _SECOND_NS)
        for stimulus in gallery.stimuli
        for k in range(3)
    ]
    asked = cut_like(probe, windows)
    names = {key: (f"{i:06}", *key[1:]) for i, key in enumerate(sorted(asked.keys))}
    shown = {names[key]: window for key, window in (asked.piece_windows or {}).items()}
    pieces = renamed(asked, names, shown)
    scores = attack.identify(cut_like(gallery, windows), pieces, seed)
    rows = dict(zip(scores.probes, scores.values, strict=True))
    mean = [
        np.mean([rows[new[0]] for key, new in names.items() if key[0] == person], axis=0)
        for person in probe.persons
    ]
    return Scores(scores.known, probe.persons, np.stack(mean))


@cache
def _people(same: bool) -> tuple[RecordingSet, RecordingSet]:
    """A gallery and a probe: the same gaze in both, or gaze of one person under all names."""
    if same:
        cohort = simulate(_PEOPLE, _STIMULI, 20.0, _RATE_HZ, seed=1)
        return RecordingSet(Cohort(list(cohort))), RecordingSet(Cohort(list(cohort)))
    halves = []
    for seed in (2, 3):
        recordings = list(simulate(1, _PEOPLE * _STIMULI, 20.0, _RATE_HZ, seed=seed))
        named = [
            r.with_(person=f"p{i // _STIMULI}", stimulus=f"s{i % _STIMULI}")
            for i, r in enumerate(recordings)
        ]
        halves.append(RecordingSet(Cohort(named)))
    return halves[0], halves[1]
