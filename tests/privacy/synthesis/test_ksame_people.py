"""k-same-synth: whether people are found again in what it releases."""

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort
from gazeveil.attacks.registry import attack
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.synthesis.ksame.mechanism import KSameSynth
from gazeveil.privacy.synthesis.motion import Motion, motion
from tests.support.recordings import real_cohort

# --- an attack on real people
# --------------------------------------------------------------------------------------------------


def parameter_tables(laws: dict[tuple[str, str, str, str], Motion]) -> RecordingSet:
    """Event parameters as an attacker's tables."""

    def table(columns, rows):
        keys = Keys.of_recordings(list(rows), [np.arange(len(v)) for v in rows.values()])
        return FeatureTable(np.concatenate(list(rows.values())), columns, keys)

    fixations = {
        k: np.column_stack((np.log(m.fixations[:, 2:5]), m.fixations[:, :2]))
        for k, m in laws.items()
        if len(m.fixations)
    }
    saccades = {
        k: np.column_stack(
            (np.log(m.saccades[:, 0] + 1), m.saccades[:, 1], np.log(m.saccades[:, 2:]))
        )
        for k, m in laws.items()
        if len(m.saccades)
    }
    names = (("sigma_x", "sigma_y", "samples", "mu_x", "mu_y"), ("a", "b", "c", "samples"))
    return RecordingSet(
        None, {"fixation": table(names[0], fixations), "saccade": table(names[1], saccades)}
    )


def found_share(laws, raw: RecordingSet, repetition: int) -> float:
    """Share of people found by linkage: released parameters of some clips against the raw
    parameters of the others.
    """
    order = np.random.default_rng([7, repetition]).permutation(raw.stimuli).tolist()
    learnt = round(0.75 * len(order))
    gallery = parameter_tables(laws).select(stimuli=order[:learnt])
    scores = attack("linkage").identify(
        gallery, raw.select(people=gallery.persons, stimuli=order[learnt:]), repetition
    )
    return float(scores.credit().mean())


def test_parameters_find_people_where_groups_change_with_the_clip_and_corrected_ones_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Without the name of the task each clip is a task of its own, and groups are drawn for each.
    named = real_cohort("gazecom").load()
    data = Cohort([r.with_(task="") for r in named], named.people)
    own = {r.key: motion(r) for r in data}
    monkeypatch.setattr(
        KSameSynth, "_motions", lambda self, data: own
    )  # the events are the same each time
    raw = parameter_tables(own)
    people, k, repetitions = len(raw.persons), 8, 4
    assert found_share(own, raw, 0) > 0.7
    rates = {}
    for text in (
        "k-same-synth:k=8,reading=published",
        "k-same-synth:k=8",
        "k-same-synth:k=8,match=crowd",
    ):
        mechanism = gazeveil.mechanism(text)
        rates[text] = np.mean(
            [found_share(mechanism.laws(data, seed=r), raw, r) for r in range(repetitions)]
        )
    one_in_k = 1 / k + 3 * np.sqrt(1 / k * (1 - 1 / k) / people)
    assert rates["k-same-synth:k=8,reading=published"] > 1 / k + 0.05
    assert rates["k-same-synth:k=8"] <= one_in_k
    assert rates["k-same-synth:k=8,match=crowd"] <= one_in_k
    assert rates["k-same-synth:k=8,reading=published"] > 1.5 * max(
        rates["k-same-synth:k=8"], rates["k-same-synth:k=8,match=crowd"]
    )


def found_by_length(released: Cohort, raw: Cohort) -> float:
    """Share of people found by whoever holds the same raw recordings and looks at nothing but how
    long they are; ties are shared.
    """
    known, seen = {}, {}
    for lengths, recordings in ((known, raw), (seen, released)):
        for r in recordings:
            lengths.setdefault(r.person, {})[r.stimulus] = len(r)
    hits = 0.0
    for person, mine in known.items():
        score = {p: sum(theirs.get(s) == n for s, n in mine.items()) for p, theirs in seen.items()}
        best = [p for p, v in score.items() if v == max(score.values())]
        hits += (person in best) / len(best)
    return hits / len(known)


def test_published_lengths_alone_find_everybody_whose_recordings_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = real_cohort("gazecom").load()
    own = {r.key: motion(r) for r in data}
    monkeypatch.setattr(KSameSynth, "_motions", lambda self, data: own)
    people = len(data.people)
    assert (
        found_by_length(KSameSynth(4, reading="published").release(data, seed=1).data, data) > 0.9
    )
    corrected = np.mean(
        [found_by_length(KSameSynth(4).release(data, seed=s).data, data) for s in range(3)]
    )
    assert corrected <= 1 / 4 + 3 * np.sqrt(1 / 4 * 3 / 4 / (3 * people))
