"""k-same-synth: what groups share, what is left of people, and what comes out.

k-same-synth: whether people are found again in what it releases.

k-same-synth: how fixations and saccades of a group are paired and averaged.
"""

from collections import Counter

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.attacks.registry import attack
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.geometry import distance_deg
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.synthesis.ksame.mechanism import KSameSynth
from gazeveil.privacy.synthesis.ksame.pairs import (
    BLINK_S,
    PUBLIC_SACCADE,
    Pairs,
    average,
    average_in_time,
    laid_out,
    pairs,
)
from gazeveil.privacy.synthesis.motion import DRIFT_S, Motion, motion, render
from tests.support.recordings import real_cohort

MATCHES = ("index", "crowd")


SCREEN = Screen(1280, 720, 400, 225, 450)


def scanpath(
    person, stimulus, rng, space=SCREEN, fixations=12, rate=100.0, around=(0.0, 0.0), task="", gap=0
):
    """Fixations with jumps between them."""
    lengths = rng.integers(15, 50, fixations)
    places = rng.normal(around, 6, (fixations, 2))
    gaze = np.repeat(places, lengths, axis=0) + rng.normal(0, 0.1, (int(lengths.sum()), 2))
    x, y = (
        gaze.T
        if isinstance(space, Screen)
        else (gaze[:, 0] % 360, np.clip(90 + gaze[:, 1], 1, 179))
    )
    valid = np.ones(len(x), dtype=bool)
    valid[40 : 40 + gap] = False
    return Recording(
        person,
        stimulus,
        np.rint(np.arange(len(x)) * 1e9 / rate).astype(np.int64),
        x,
        y,
        valid,
        space=space,
        rate_hz=rate,
        task=task,
    )


def cohort(people=9, stimuli=3, seed=1, space=SCREEN, **parameters) -> Cohort:
    rng = np.random.default_rng(seed)
    return Cohort(
        [
            scanpath(f"p{p}", f"s{s}", rng, space, int(rng.integers(8, 16)), **parameters)
            for p in range(people)
            for s in range(stimuli)
        ]
    )


def law_bytes(m: Motion) -> bytes:
    return b"|".join(
        [
            repr((m.space, m.rate_hz, m.samples)).encode(),
            *(a.tobytes() for a in (m.fixations, m.saccades, m.is_fixation, m.onset)),
        ]
    )


def objects(mechanism: KSameSynth, data: Cohort, seed: int) -> list[bytes]:
    """Per person everything that is released but for the draws: laws, names, times and losses."""
    laws, records = mechanism.laws(data, seed=seed), {}
    for r in mechanism.release(data, seed=seed).data:
        parts = (
            law_bytes(laws[r.key]),
            repr((r.stimulus, r.session, r.task, r.rate_hz, r.space)).encode(),
            r.t_ns.tobytes(),
            r.valid.tobytes(),
        )
        records.setdefault(r.person, []).append(b"|".join(parts))
    return [b"".join(r) for r in records.values()]


# --- what groups share (K1, K4, K5)
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.parametrize(("people", "k"), [(4, 2), (7, 3), (11, 4), (9, 5)])
def test_everything_but_the_draws_is_the_same_for_at_least_k_people(
    people: int, k: int, match: str
) -> None:
    for seed, space in ((1, SCREEN), (2, Sphere())):
        data = cohort(people, seed=seed, space=space)
        same = Counter(objects(KSameSynth(k, match), data, seed))
        assert sum(same.values()) == people
        assert all(k <= n <= 2 * k - 1 for n in same.values())


def test_the_published_reading_leaves_people_with_laws_of_their_own() -> None:
    same = Counter(objects(KSameSynth(3, reading="published"), cohort(9), 1))
    assert min(same.values()) == 1


@pytest.mark.parametrize("match", MATCHES)
def test_samples_are_drawn_from_the_laws_with_words_of_their_own(match: str) -> None:
    data, mechanism = cohort(6), KSameSynth(3, match)
    laws = mechanism.laws(data, seed=5)
    out = mechanism.release(data, seed=5).data
    assert {r.key for r in out} == set(laws)
    for r in out:
        x, y = render(laws[r.key], Words(source(5, "k-same-synth", *r.key)), drift_s=DRIFT_S)
        assert np.array_equal(r.x_deg, x, equal_nan=True)
        assert np.array_equal(r.y_deg, y, equal_nan=True)


@pytest.mark.parametrize("match", MATCHES)
def test_the_draws_of_members_are_exchangeable(match: str) -> None:
    """Whoever holds the law and the raw recording of one member cannot tell their draws from
    another member's.
    """
    data = Cohort([scanpath(p, "s", np.random.default_rng(i)) for i, p in enumerate("abc")])
    mechanism = KSameSynth(3, match)
    raw = {r.person: float(np.nanmean(r.x_deg)) for r in data}
    hits = 0
    for seed in range(300):
        out = {
            r.person: float(np.nanmean(r.x_deg)) for r in mechanism.release(data, seed=seed).data
        }
        guess = min(out, key=lambda p: abs(out[p] - raw["a"]))
        hits += guess == "a"
    assert abs(hits - 100) < 5 * np.sqrt(300 * 1 / 3 * 2 / 3)


def test_the_order_of_recordings_does_not_matter() -> None:
    data = cohort(7)
    turned = Cohort(list(data)[::-1])
    for mechanism in (KSameSynth(3), KSameSynth(3, "crowd"), KSameSynth(3, reading="published")):
        one, two = (mechanism.release(d, seed=2).data for d in (data, turned))
        assert [r.key for r in one] == [r.key for r in two]
        assert all(
            np.array_equal(a.x_deg, b.x_deg, equal_nan=True) for a, b in zip(one, two, strict=True)
        )


def test_a_stimulus_that_fewer_than_k_of_a_group_saw_is_left_out_and_others_go_to_all() -> None:
    data = cohort(7, stimuli=2)
    mechanism = KSameSynth(3)
    large, small = sorted(mechanism.partition(data, seed=1), key=len, reverse=True)
    assert (len(large), len(small)) == (4, 3)
    without = {(large[0], "s1"), (small[0], "s1")}
    release = mechanism.release(
        Cohort([r for r in data if (r.person, r.stimulus) not in without]), seed=1
    )
    got = {(r.person, r.stimulus) for r in release.data}
    assert {(p, "s0") for p in (*large, *small)} <= got
    assert {(p, "s1") for p in large} <= got
    assert not {(p, "s1") for p in small} & got
    assert release.curator_notes["suppressed"] == 1


def test_places_on_a_sphere_are_averaged_as_directions() -> None:
    rng = np.random.default_rng(1)
    people = [
        scanpath(p, "s", rng, Sphere(), around=(a, 0.0)) for p, a in (("a", 350.0), ("b", 12.0))
    ]
    law = KSameSynth(2).laws(Cohort(people), seed=1)["a", "s", "1", ""]
    # the first fixations' means, averaged by hand as vectors
    first = [motion(r).fixations[0, :2] for r in people]
    middle = np.sum([Sphere().vectors([x], [y])[0] for x, y in first], axis=0)
    x, y = Sphere().degrees(middle)
    assert distance_deg(Sphere(), x, y, law.fixations[0, 0], law.fixations[0, 1]) < 1e-6
    assert (np.abs((law.fixations[:, 0] + 180) % 360 - 180) < 40).all()


def test_a_release_is_as_long_as_the_kth_longest_recording_and_its_rest_is_lost() -> None:
    rng = np.random.default_rng(4)
    data = Cohort([scanpath(p, "s", rng, fixations=n) for p, n in (("a", 5), ("b", 9), ("c", 20))])
    lengths = sorted(len(r) for r in data)
    for k, place in ((2, 1), (3, 0)):
        out = KSameSynth(k).release(data, seed=1).data
        assert {len(r) for r in out} == {lengths[place]}
        for r in out:
            assert np.array_equal(r.t_ns, np.arange(len(r)) * 10**7)
            assert np.isnan(r.x_deg[~r.valid]).all()


def test_published_has_groups_of_its_own_for_saccades_and_keeps_each_persons_frame() -> None:
    data = cohort(8, stimuli=1)
    laws = KSameSynth(2, detector="ivt", reading="published").laws(data, seed=3)
    own = {r.key: motion(r) for r in data}
    shared = {kind: Counter() for kind in ("fixations", "saccades")}
    partner = {kind: {} for kind in shared}
    for key, law in laws.items():
        assert law.samples == own[key].samples
        assert np.array_equal(law.is_fixation, own[key].is_fixation)
        for kind in shared:
            row = getattr(law, kind)[0].tobytes()
            shared[kind][row] += 1
            partner[kind].setdefault(row, set()).add(key[0])
    assert set(shared["fixations"].values()) == set(shared["saccades"].values()) == {2}
    groups = [{frozenset(g) for g in partner[kind].values()} for kind in shared]
    assert groups[0] != groups[1]
    # the first rows are plain means of two people's
    first = laws[data[0].key].fixations[0]
    members = next(g for g in partner["fixations"].values() if data[0].person in g)
    assert first[:4] == pytest.approx(
        np.mean([own[(p, *data[0].key[1:])].fixations[0, :4] for p in members], axis=0)
    )


# --- what comes out
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "k-same-synth:k=3",
        "k-same-synth:k=3,match=crowd",
        "k-same-synth:k=3,detector=ivt,reading=published",
    ],
)
@pytest.mark.parametrize("task", ["reading", "free-viewing"])
def test_detectors_and_features_take_the_output_like_any_recording(text: str, task: str) -> None:
    data = gazeveil.simulate(6, 1, 20, 250, task=task, seed=1).load()
    out = gazeveil.mechanism(text).release(data, seed=1).data
    assert len(out) == len(data)
    for r in out:
        assert (dict(r.labels), dict(r.metadata), r.pupil) == ({}, {}, None)
        assert r.space == data[0].space
        for method in ("ivt", "auto"):
            assert {"fixation", "saccade"} <= set(gazeveil.detect(r, method).kind.tolist())
    table = gazeveil.event_features(out, kind="fixation", method="ivt")
    assert len(table) > 20
    assert np.isfinite(table.values[:, table.columns.index("duration")]).all()


def test_only_the_published_reading_passes_attributes_of_people_on() -> None:
    data = Cohort(list(cohort(4)), {f"p{i}": {"age": 20 + i} for i in range(4)})
    assert all(a == {} for a in KSameSynth(2).release(data).data.people.values())
    assert KSameSynth(2, reading="published").release(data).data.people["p1"] == {"age": 21}


def test_rates_and_screens_that_differ_are_averaged() -> None:
    rng = np.random.default_rng(1)
    other = Screen(1280, 720, 600, 225, 450)
    data = Cohort([scanpath("a", "s", rng, rate=100.0), scanpath("b", "s", rng, other, rate=200.0)])
    out = KSameSynth(2).release(data, seed=1).data
    assert {r.rate_hz for r in out} == {150.0}
    assert out[0].space == out[1].space == Screen(1280, 720, 500, 225, 450)
    seconds = sorted(len(r) / r.rate_hz for r in data)
    assert len(out[0]) == round(seconds[0] * 150)


# --- promises
# --------------------------------------------------------------------------------------------------


def test_the_guarantee_says_what_is_true() -> None:
    data = cohort(4)
    g = KSameSynth(2).release(data).guarantee
    assert (g.definition, g.unit, g.status, g.k) == ("k-anonymity", "user", "proved", 2)
    assert "At least 2 people share every released record or the law it was drawn from" in str(g)
    assert KSameSynth(2).release(data, seed=1).guarantee.status == "claimed"
    p = KSameSynth(2, reading="published").release(data).guarantee
    assert p.status == "refuted"
    assert p.k is None
    assert "once more for saccades" in str(p)


def test_the_audit_catches_a_law_that_one_member_does_not_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laws = KSameSynth._laws

    def planted(self, data, words):
        found, notes = laws(self, data, words)
        first = next(iter(found))
        m = found[first]
        return {
            **found,
            first: Motion(
                m.space,
                m.rate_hz,
                m.samples,
                m.fixations * 1.0000001,
                m.saccades,
                m.is_fixation,
                m.onset,
            ),
        }, notes

    monkeypatch.setattr(KSameSynth, "_laws", planted)
    assert gazeveil.audit("k-same-synth:k=4", trials=100).refuted


# --- bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 1}, "'k' parameter of k-same-synth"),
        ({"k": 2, "match": "order"}, "'match' parameter of k-same-synth must be one of"),
        ({"k": 2, "detector": "eyes"}, "'detector' parameter"),
        ({"k": 2, "match": "crowd", "reading": "published"}, "index in the published reading"),
    ],
)
def test_bad_parameters_are_refused_in_words(parameters, message) -> None:
    with pytest.raises(ParameterError, match=message):
        gazeveil.mechanism("k-same-synth", **parameters)


def apart(people, stimuli=1, spaces=(SCREEN,)) -> Cohort:
    """Everybody has one recording; stimuli and spaces take turns."""
    rng = np.random.default_rng(1)
    return Cohort(
        [scanpath(f"p{i}", f"s{i % stimuli}", rng, spaces[i % len(spaces)]) for i in range(people)]
    )


@pytest.mark.parametrize("reading", ["corrected", "published"])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (apart(3), "needs at least 4 people, and this cohort has recordings of 3"),
        (Cohort([]), "has recordings of 0"),
        (apart(4, 1, (SCREEN, Sphere())), "on a sphere and some on a screen"),
    ],
)
def test_too_few_people_and_two_kinds_of_space_are_refused_in_words(data, words, reading) -> None:
    with pytest.raises(DataError, match=words):
        KSameSynth(4, reading=reading).release(data)


def test_nothing_in_common_is_refused() -> None:
    words = "No stimulus, session and task has recordings of 2 members"
    with pytest.raises(DataError, match=words):
        KSameSynth(2).release(apart(5, 5))


@pytest.mark.parametrize(
    "text",
    [
        "k-same-synth:k=2",
        "k-same-synth:k=2,match=crowd",
        "k-same-synth:k=2,detector=ivt,reading=published",
    ],
)
def test_people_with_no_saccades_no_fixations_or_one_sample_are_taken_along(text: str) -> None:
    rng = np.random.default_rng(2)
    t = np.arange(300) * 10**7
    still = Recording(
        "still",
        "s",
        t,
        rng.normal(0, 0.05, 300),
        rng.normal(0, 0.05, 300),
        space=SCREEN,
        rate_hz=100.0,
    )
    lost = Recording(
        "lost", "s", t, np.full(300, np.nan), np.full(300, np.nan), space=SCREEN, rate_hz=100.0
    )
    one = Recording("one", "s", t[:1], np.zeros(1), np.zeros(1), space=SCREEN, rate_hz=100.0)
    unknown = Recording("unknown", "s", t[:1], np.zeros(1), np.zeros(1), space=SCREEN)
    empty = Recording("empty", "s", t[:0], np.zeros(0), np.zeros(0), space=SCREEN)
    assert np.isnan(unknown.rate_hz)
    mechanism = gazeveil.mechanism(text)
    for group in (
        (still, still.with_(person="b")),
        (still, lost),
        (lost, lost.with_(person="b")),
        (still, one),
        (one, one.with_(person="b")),
    ):
        if mechanism.reading == "published" and (lost in group or one in group):
            # A recording whose events nobody else contributes to is refused.
            with pytest.raises(DataError, match="one person at most shares"):
                mechanism.release(Cohort(list(group)), seed=1)
            continue
        out = mechanism.release(Cohort(list(group)), seed=1).data
        assert len(out) == 2
        if mechanism.reading == "corrected":
            assert {len(r) for r in out} == {min(len(r) for r in group)}
    together = Cohort([still, lost, one, unknown, empty, scanpath("f", "s", rng)])
    for seed in range(5):
        try:
            release = mechanism.release(together, seed=seed)
        except DataError as error:
            assert "stimulus, session and task" in str(error)  # noqa: PT017
            continue
        assert release.curator_notes["recordings_of_unknown_rate"] == 2
        assert all(gazeveil.detect(r, "ivt") is not None for r in release.data)
    # two people who never move share a fixation and a public saccade, and the release shows it
    law = KSameSynth(2).laws(Cohort([still, still.with_(person="b")]), seed=1)["b", "s", "1", ""]
    assert len(law.fixations) == 1
    assert len(law.saccades) == 0


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


# --- averages
# --------------------------------------------------------------------------------------------------


def sequence(durations, places, length_s=100.0, saccade=(200.0, 0.5, 0.3, 0.04)) -> Pairs:
    """Pairs on a screen, one after the other."""
    values = np.zeros((len(durations), 11))
    values[:, :2], values[:, 3:5], values[:, 5], values[:, 6:10] = places, 0.2, durations, saccade
    onset = np.concatenate(([0.0], np.cumsum(values[:, 5] + values[:, 9])[:-1]))
    return Pairs(values, onset, length_s)


def test_pairs_are_means_over_those_who_have_them_and_as_many_as_k_have() -> None:
    a, b, c = (
        sequence(np.full(n, d), np.full((n, 2), p))
        for n, d, p in ((2, 0.2, 0.0), (3, 0.4, 3.0), (5, 0.6, 6.0))
    )
    mean = average([a, b, c], 2)
    assert len(mean) == 3
    assert mean[:, 5] == pytest.approx([0.4, 0.4, 0.5])
    assert mean[:, 0] == pytest.approx([3.0, 3.0, 4.5])
    assert len(average([a, b, c], 3)) == 2


def test_seconds_become_samples_by_rounding_half_to_even() -> None:
    values = sequence(
        [0.105, 0.115, 0.2], np.zeros((3, 2)), saccade=(200.0, 0.5, 0.3, 0.045)
    ).values
    law = laid_out(values, SCREEN, 100.0, 1000)
    assert law.fixations[:, 4].tolist() == [10, 12, 20]
    assert law.saccades[:, 3].tolist() == [4, 4]


def test_lost_time_is_saved_up_and_released_as_a_blink() -> None:
    values = sequence(np.full(20, 0.2), np.zeros((20, 2))).values
    values[:, 10] = 0.03
    law = laid_out(values, SCREEN, 100.0, 10_000)
    ends = law.onset + law.counts
    gaps = law.onset[1:] - ends[:-1]
    assert set(gaps.tolist()) == {0, round(BLINK_S * 100)}
    assert gaps.sum() == pytest.approx(0.03 * 19 * 100, abs=BLINK_S * 100)


def test_a_fixation_without_a_saccade_borrows_the_recordings_mean_or_a_public_one() -> None:
    fixations = np.array(
        [[0.0, 0.0, 0.2, 0.2, 50], [5.0, 0.0, 0.2, 0.2, 50], [9.0, 0.0, 0.2, 0.2, 50]]
    )
    law = Motion(
        SCREEN,
        100.0,
        200,
        fixations,
        np.array([[400.0, 0.4, 0.2, 5.0]]),
        np.array([True, False, True, True]),
        np.array([0, 50, 60, 130]),
    )
    found = pairs(law).values
    assert np.allclose(found[:, 6:10], [400.0, 0.4, 0.2, 0.05])
    # samples 55 to 59, 110 to 129 and 180 to 199 are in no event
    assert found[:, 10] == pytest.approx([0.05, 0.2, 0.2])
    alone = Motion(
        SCREEN, 100.0, 50, fixations[:1], np.empty((0, 4)), np.array([True]), np.array([0])
    )
    assert pairs(alone).values[0, 6:10].tolist() == list(PUBLIC_SACCADE)


def test_the_crowd_keeps_the_time_at_which_things_happen() -> None:
    """Everybody looks right from second 10 on, with fixations of different lengths: by index they
    never agree when.
    """
    members = []
    for d in (0.2, 0.3, 0.45):
        n = int(20 / (d + 0.04))
        t = np.arange(n) * (d + 0.04)
        members.append(
            sequence(
                np.full(n, d), np.column_stack((np.where(t < 10, -5.0, 5.0), np.zeros(n))), 20.0
            )
        )
    by_time, by_index = average_in_time(members, 3, False), average(members, 3)
    t = np.concatenate(([0.0], np.cumsum(by_time[:, [5, 9, 10]].sum(axis=1))[:-1]))
    assert (by_time[t < 9, 0] < -4).all()
    assert (by_time[t > 11, 0] > 4).all()
    assert t[-1] > 19
    when = np.concatenate(([0.0], np.cumsum(by_index[:, [5, 9]].sum(axis=1))[:-1]))
    assert (np.abs(by_index[(when > 7) & (when < 13), 0]) < 4).any()


def test_the_crowd_does_not_wait_for_who_is_lost() -> None:
    going = [sequence(np.full(80, 0.2), np.zeros((80, 2)), 19.0) for _ in range(2)]
    gone = sequence(np.full(4, 0.2), np.full((4, 2), 3.0), 19.0)
    gone.values[-1, 10] = 18.0
    found = average_in_time([*going, gone], 3, False)
    seconds = found[:, [5, 9, 10]].sum(axis=1)
    assert found[:, 10].max() == pytest.approx(0.5 / 3)
    assert found[:, 10].sum() == pytest.approx(0.5 / 3)
    assert seconds.sum() > 19.0
    assert average([*going, gone], 3)[:, 10].tolist() == pytest.approx([0, 0, 0, 6.0])


def test_the_crowd_looks_where_most_look_and_not_between() -> None:
    n = 40
    places = {"left": (-8.0, 0.0), "right": (8.0, 0.0)}
    members = [
        sequence(np.full(n, 0.3), np.full((n, 2), places[side]))
        for side in ("left", "left", "left", "right")
    ]
    assert average(members, 4)[0, 0] == pytest.approx(-4.0)
    # three agree: weights 9, 9, 9 and 1
    assert average_in_time(members, 4, False)[0, 0] == pytest.approx((-8 * 27 + 8) / 28, abs=0.05)
    apart = [
        sequence(np.full(n, 0.3), np.full((n, 2), p))
        for p in ((-30.0, 0.0), (0.0, 20.0), (30.0, 0.0))
    ]
    assert average_in_time(apart, 3, False)[0, :2] == pytest.approx([0.0, 20 / 3], abs=1e-3)


def test_a_saccade_that_goes_less_far_is_shorter_and_its_fixation_longer() -> None:
    n, meant = 30, 200 * 0.3 * np.sqrt(np.pi) * 0.04
    jumps = np.where(np.arange(n) % 2, 1.0, 0.0)
    members = [
        sequence(np.full(n, 0.3), np.column_stack((jumps, np.zeros(n))), 9.0) for _ in range(2)
    ]
    found = average_in_time(members, 2, False)
    # b = 1/2, c = 0.3: 98 % of the curve lies within the saccade
    share = (21 + 2.2 * 1.0) / (21 + 2.2 * meant * 0.9816)
    assert found[0, 9] == pytest.approx(0.04 * share, rel=1e-3)
    assert found[0, 5] + found[0, 9] == pytest.approx(0.34)
