"""k-same-synth: what groups share, what is left of people, and what comes out."""

from collections import Counter

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.geometry import distance_deg
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.synthesis.ksame.mechanism import KSameSynth
from gazeveil.privacy.synthesis.motion import Motion, motion
from gazeveil.privacy.synthesis.rendering import DRIFT_S, render

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
