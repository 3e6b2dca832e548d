"""event-synth-pd: what is released, for whom it holds, and where the published reading gives people
away.
"""

import math
import time
from fractions import Fraction

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError, MissingExtraError, ParameterError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.conformance import conform
from gazeveil.privacy.plausible_deniability import cell, cell_width
from gazeveil.privacy.randomness.rng import TestStream, Words
from gazeveil.privacy.synthesis.events_pd.audit import exchanged, found_share, same, sessions
from gazeveil.privacy.synthesis.events_pd.mechanism import EventSynthPD
from gazeveil.privacy.synthesis.events_pd.saccade_models import (
    CLIP,
    PPCA,
    amplitudes_deg,
    features,
    fitted,
    moments,
    private_moments,
    shapes,
    speed_histograms,
    summed_probability,
)
from gazeveil.privacy.synthesis.events_pd.seed_density import SeedRecords, density, plausible
from gazeveil.privacy.synthesis.motion import motion
from tests.support.recordings import real_cohort


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(6, 2, 15.0, 100.0, seed=2)


@pytest.fixture(scope="module")
def two_sessions() -> list[tuple[Cohort, Cohort]]:
    rng = np.random.default_rng(0)
    return [sessions(rng) for _ in range(3)]


# --- who is found
# --------------------------------------------------------------------------------------------------


def test_published_event_by_event_deniability_gives_most_people_away(
    two_sessions: list[tuple[Cohort, Cohort]],
) -> None:
    rates, passed = [], []
    for trial, (released, known) in enumerate(two_sessions):
        release = EventSynthPD(4, 2, reading="published").release(released, seed=trial)
        notes = release.curator_notes
        passed.append(1 - notes["fixations_dropped"] / notes["fixations"])
        rates.append(found_share(release.data, known)[0])
    # 60 people: 0.7 where 1/k says 0.25, although nearly all events passed the test
    assert np.mean(passed) > 0.9
    assert np.mean(rates) > 0.25 + 4 * math.sqrt(0.25 * 0.75 / 60)
    assert 0.55 < np.mean(rates) < 0.85


def test_seeds_of_the_crowd_keep_people_below_one_in_k_with_every_name_released(
    two_sessions: list[tuple[Cohort, Cohort]],
) -> None:
    rates, names = [], 0
    for trial, (released, known) in enumerate(two_sessions):
        release = EventSynthPD(4, 2).release(released, seed=trial)
        assert min(r.valid.mean() for r in release.data) > 0.9
        rate, count = found_share(release.data, known)
        rates.append(rate)
        names += count
    assert names == 60
    assert np.mean(rates) <= 0.25


def test_the_attacker_of_these_tests_finds_raw_people_and_not_shuffled_ones(
    two_sessions: list[tuple[Cohort, Cohort]],
) -> None:
    raw = np.mean([found_share(a, b)[0] for a, b in two_sessions])
    shuffled = []
    for a, b in two_sessions:
        names = np.random.default_rng(1).permutation(list(a.people))
        other = dict(zip(a.people, names, strict=True))
        shuffled.append(
            found_share(Cohort([r.with_(person=str(other[r.person])) for r in a]), b)[0]
        )
    assert raw > 0.6
    assert np.mean(shuffled) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 60)


def test_exchanging_two_people_changes_nothing_in_the_corrected_release_and_much_in_the_published(
    two_sessions: list[tuple[Cohort, Cohort]],
) -> None:
    released = two_sessions[0][0]
    for kept, mechanism in (
        (True, EventSynthPD(4, 2)),
        (False, EventSynthPD(4, 2, reading="published")),
        (False, EventSynthPD(2, 2, seeds="own")),
    ):
        one, two = (mechanism.release(c, seed=5).data for c in (released, exchanged(released)))
        assert same(one, two) is (kept or not any(r.valid.any() for r in one))


def test_sequences_of_ones_own_events_pass_only_where_people_are_alike(
    two_sessions: list[tuple[Cohort, Cohort]],
) -> None:
    released = two_sessions[0][0]
    apart = EventSynthPD(4, 2, seeds="own").release(released, seed=1)
    assert apart.curator_notes["names_released"] == 0
    assert not any(r.valid.any() for r in apart.data)
    assert "0 of 20 names passed" in str(apart.guarantee)
    assert "seeds='crowd'" in str(apart.guarantee)
    assert apart.guarantee.numbers["gamma"] == 2
    one = released[0]
    alike = EventSynthPD(4, 2, seeds="own").release(
        Cohort([one.with_(person=f"p{i}") for i in range(30)]), seed=1
    )
    assert alike.curator_notes["names_released"] == 30
    assert "30 of 30 names passed" in str(alike.guarantee)
    assert "with seeds='crowd'" not in str(alike.guarantee)
    assert min(r.valid.mean() for r in alike.data) > 0.8
    # a wide gamma for the whole lets everybody pass
    wide = EventSynthPD(4, 2, seeds="own", gamma_total="1" + "0" * 300, window_s=100).release(
        released, seed=1
    )
    assert wide.guarantee.numbers["gamma"] == Fraction(10) ** 300
    assert wide.curator_notes["names_released"] >= 0


def test_the_audit_tells_the_readings_apart() -> None:
    from gazeveil.privacy.audit.run import judge
    from gazeveil.privacy.synthesis.events_pd.audit import event_synth_pd

    found = {
        r: judge("x", event_synth_pd(EventSynthPD(4, 2, reading=r), None), 100, 0.999)
        for r in ("published", "corrected")
    }
    assert found["published"].refuted
    assert "found more often" in str(found["published"])
    assert not found["corrected"].refuted


@pytest.mark.parametrize("kappa", [0.0, 40.0, 1e12])
@pytest.mark.parametrize("gamma", [1, 2])
def test_fast_densities_count_the_people_that_exact_ones_do(gamma: int, kappa: float) -> None:
    rng = np.random.default_rng(0)
    counts = []
    for _ in range(1500):
        people, apart = int(rng.integers(2, 8)), rng.choice([1e-9, 0.1, 1.0, 7.0])
        starts = np.concatenate(([0], np.cumsum(rng.integers(0, 6, people))))
        spans = np.column_stack((starts[:-1], starts[1:]))
        seed = int(rng.integers(people))
        if spans[seed, 0] == spans[seed, 1]:
            continue
        values = rng.normal(0, apart, (starts[-1], 4))
        place = rng.normal(0, min(apart, 1) / math.sqrt(max(kappa, 1)), (starts[-1], 3)) + np.array(
            [0.0, 0.0, 1.0]
        )
        place /= np.linalg.norm(place, axis=1)[:, None]
        y, where, at = (
            values[spans[seed, 0]] + rng.normal(0, 1, 4),
            place[spans[seed, 0]],
            cell_width(gamma),
        )
        seeds = SeedRecords.of(values, place, kappa, np.zeros(starts[-1]), starts)
        cells = [
            cell(density(seeds, lo, hi, y, where), at) if hi > lo else math.nan for lo, hi in spans
        ]
        exactly = max(1, sum(c == cells[seed] for c in cells))
        counts.append(exactly)
        for wanted in range(1, people + 2):
            passes = plausible(seeds, spans, seed, wanted, at, y, where, np.empty(starts[-1]))
            assert passes is (exactly >= wanted)
    assert max(counts) > 3
    assert min(counts) == 1


@pytest.mark.heavy
def test_an_audit_where_nothing_passes_takes_about_as_long_as_where_all_does() -> None:
    taken = []
    for text in (
        "event-synth-pd:k=2,gamma=2",
        "event-synth-pd:k=2,gamma=2",
        "event-synth-pd:k=2,gamma=1",
    ):
        begin = time.process_time()
        found = gazeveil.audit(text, trials=100)
        taken.append(time.process_time() - begin)
    assert not found.refuted
    assert "0 names released" in str(found)
    # the first one compiles
    assert taken[2] < 5 * taken[1]


# --- rates and lengths
# --------------------------------------------------------------------------------------------------


def unequal(people: int = 9) -> Cohort:
    """Everybody has a rate, a length and a screen of their own; the last one comes first."""
    made = []
    for i in reversed(range(people)):
        r = gazeveil.simulate(1, 1, 10.0 + 0.5 * i, 90.0 + 1.37 * i, seed=100 + i)[0]
        screen = Screen(1920, 1080, 600.0 + i, 340.0, 700.0 - i)
        made.append(
            r.with_(
                person=f"p{i}", x_deg=(r.x_deg - 180) / 20, y_deg=(r.y_deg - 90) / 20, space=screen
            )
        )
    return Cohort(made)


def linked(released: Cohort, raw: Cohort) -> int:
    """How many released recordings have the rate and the number of samples of exactly one raw one
    of their stimulus, and that one is their person's.
    """
    found: dict[tuple[str, float, int], set[str]] = {}
    for r in raw:
        found.setdefault((r.stimulus, r.rate_hz, len(r)), set()).add(r.person)
    return sum(found.get((r.stimulus, r.rate_hz, len(r))) == {r.person} for r in released)


@pytest.mark.parametrize("seeds", ["crowd", "own"])
@pytest.mark.parametrize("lazy", [False, True])
def test_nobody_keeps_a_rate_or_a_length_of_their_own(seeds: str, lazy: bool) -> None:
    raw = unequal()
    given = (
        Cohort([Handle(r.person, r.stimulus, lambda r=r: r, r.session, r.task) for r in raw])
        if lazy
        else raw
    )  # type: ignore[misc]
    out = EventSynthPD(3, 2, seeds=seeds).release(given, seed=1).data
    assert linked(raw, raw) == 9, "the attack finds everybody who keeps theirs"
    assert linked(out, raw) <= 1
    assert len({(r.rate_hz, len(r), r.space, r.t_ns.tobytes()) for r in out}) == 1
    seconds = sorted((len(r) / r.rate_hz for r in raw), reverse=True)[2]
    assert out[0].rate_hz == pytest.approx(np.mean([r.rate_hz for r in raw]))
    assert len(out[0]) == round(seconds * out[0].rate_hz)
    assert [r.person for r in out] == sorted(r.person for r in raw), (
        "the order in which recordings were given must not show"
    )
    # exchanging two people, with their rates and lengths, changes nothing: names are tied to nobody
    if seeds == "crowd":
        again = EventSynthPD(3, 2).release(exchanged(given), seed=1).data
        assert same(out, again)
        assert [r.rate_hz for r in again] == [r.rate_hz for r in out]


def test_names_of_people_who_have_other_recordings_are_no_deniers_of_whole_sequences() -> None:
    one = sessions(np.random.default_rng(0))[0][0]
    people = [one.with_(person=f"p{i}") for i in range(20)]
    mechanism = EventSynthPD(4, 2, seeds="own")
    assert mechanism.release(Cohort(people), seed=1).curator_notes["names_released"] == 20
    # three of them saw something else besides, and three more that alone: six people at one
    # stimulus, but none who could have both of what p0 has, or one of what p20 has, except two
    # others
    more = [one.with_(person=f"p{i}", stimulus="t") for i in (0, 1, 2, 20, 21, 22)]
    passed = {
        r.person for r in mechanism.release(Cohort(people + more), seed=1).data if r.valid.any()
    }
    assert passed == {f"p{i}" for i in range(3, 20)}


def test_real_people_are_not_found_by_rate_and_length() -> None:
    recordings = real_cohort("eyenavgs_nthu")
    raw = recordings.select(stimuli=recordings.stimuli[:1]).load()
    assert linked(raw, raw) > 0.9 * len(raw)
    out = EventSynthPD(4, 2).release(raw, seed=1).data
    assert linked(out, raw) <= 1
    assert len({(r.rate_hz, len(r), r.space, r.t_ns.tobytes()) for r in out}) == 1


# --- what is released
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        EventSynthPD(3, 2),
        EventSynthPD(3, 2, others="same-index"),
        EventSynthPD(2, 2, rho=1),
        EventSynthPD(3, 2, reading="published", failed="release"),
        EventSynthPD(3, 2, reading="published", probability="histogram"),
        EventSynthPD(3, 2, reading="published", others="same-index"),
    ],
    ids=str,
)
def test_number_lengths_and_names_of_recordings_stay_and_nothing_else_does(
    mechanism: EventSynthPD, cohort: Cohort
) -> None:
    out = mechanism.release(cohort, seed=1).data
    assert [r.key for r in out] == [r.key for r in cohort]
    for r, raw in zip(out, cohort, strict=True):
        assert len(r) == len(raw)
        assert r.space == raw.space
        assert np.ptp(np.diff(r.t_ns)) <= 1
        assert r.t_ns[0] == 0
        assert not r.labels
        assert r.pupil is None
        assert r.head_deg is None
        assert r.events is None
        assert not ((r.x_deg == raw.x_deg) & r.valid).any(), "a raw sample was passed on"


def test_each_reading_conforms() -> None:
    for text in ("event-synth-pd:k=3,gamma=2", "event-synth-pd:k=3,gamma=1,reading=published"):
        assert conform(EventSynthPD(**gazeveil.registry.parse(text)[1])) == []


def test_released_recordings_are_taken_by_detectors_features_and_look_like_real_ones() -> None:
    recordings = real_cohort("gazecom")
    raw = recordings.select(
        people=list(recordings.people)[:12], stimuli=recordings.stimuli[:1]
    ).load()
    release = EventSynthPD(4, 2).release(raw, seed=1)
    before, after = ([motion(r) for r in c] for c in (raw, release.data))
    for of, most in (
        (lambda m: m.fixations[:, 4] / m.rate_hz, 0.15),
        (lambda m: amplitudes_deg(m.profiles, m.saccades[:, 3] / m.rate_hz), 0.2),
    ):
        from scipy.stats import ks_2samp

        a, b = (np.concatenate([of(m) for m in side]) for side in (before, after))
        assert 0.7 < len(b) / len(a) < 1.4
        assert ks_2samp(a, b).statistic < most
    assert len(gazeveil.event_features(release.data, method="ivt").values) > 0
    notes = release.curator_notes
    assert notes["fixations_dropped"] <= 0.05 * notes["fixations"]
    assert notes["saccades_dropped"] <= 0.05 * notes["saccades"]


def test_the_published_test_lets_next_to_no_real_fixation_pass() -> None:
    recordings = real_cohort("gazecom")
    raw = recordings.select(
        people=list(recordings.people)[:8], stimuli=recordings.stimuli[:1]
    ).load()
    published = EventSynthPD(
        2, 2, attempts=20, generator="ppca", failed="drop", reading="published"
    )
    notes = published.release(raw, seed=1).curator_notes
    assert notes["fixations_dropped"] > 0.95 * notes["fixations"]
    assert notes["fewest_sharing"] == notes["most_sharing"] == 8


def test_a_seed_repeats_the_release_and_none_does_not(cohort: Cohort) -> None:
    m = EventSynthPD(3, 2)
    assert same(m.release(cohort, seed=1).data, m.release(cohort, seed=1).data)
    assert not same(m.release(cohort).data, m.release(cohort).data)


def test_a_release_over_files_is_the_same_each_time_it_is_looked_at(cohort: Cohort) -> None:
    lazy = Cohort([Handle(r.person, r.stimulus, r.with_, *r.key[2:]) for r in cohort])
    out = EventSynthPD(3, 2).release(lazy).data
    assert all(isinstance(item, Handle) for item in out.items)
    assert same(out, out)
    assert same(
        EventSynthPD(3, 2).release(lazy, seed=1).data,
        EventSynthPD(3, 2).release(cohort, seed=1).data,
    )


def test_what_the_guarantee_says() -> None:
    cohort = gazeveil.simulate(4, 1, 5.0, 100.0, seed=1)
    crowd = EventSynthPD(3, 2).release(cohort).guarantee
    assert (crowd.status, crowd.definition, crowd.unit, crowd.k, crowd.numbers["gamma"]) == (
        "proved",
        "plausible-deniability",
        "user",
        3,
        1,
    )
    assert "no differential privacy" in str(crowd)
    paid = EventSynthPD(3, 2, rho=1, margin=40).release(cohort).guarantee
    assert "attempts that may be made: epsilon = " in str(paid)
    assert "training besides: rho = 1" in str(paid)
    assert "no differential privacy" in str(
        EventSynthPD(3, 2, rho=1, margin=3).release(cohort).guarantee
    ), "a delta near 1 is no promise"
    published = EventSynthPD(3, 2, reading="published").release(cohort).guarantee
    assert published.status == "refuted"
    assert published.k is None
    assert EventSynthPD(3, 2).release(cohort, seed=1).guarantee.status == "claimed"


# --- bad input
# --------------------------------------------------------------------------------------------------


def still(person: str, stimulus: str = "s", n: int = 300, space: object = None) -> Recording:
    """Nobody moves: one long fixation, no saccade."""
    rng = np.random.default_rng(len(person))
    return Recording(
        person,
        stimulus,
        np.arange(n) * 10**7,
        180 + rng.normal(0, 0.05, n),
        90 + rng.normal(0, 0.05, n),
        space=Sphere(),
        rate_hz=100.0,
    )


@pytest.mark.parametrize("reading", ["corrected", "published"])
def test_people_without_saccades_without_gaze_without_samples_and_of_unknown_rate(
    reading: str,
) -> None:
    lost = np.full(300, np.nan)
    odd = [
        *(still(p) for p in "abcd"),
        Recording("e", "s", np.arange(300) * 10**7, lost, lost, rate_hz=100.0),
        Recording("f", "s", np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)),
        Recording("g", "s", np.array([0]), np.array([180.0]), np.array([90.0])),
        still("h", "seen by one"),
    ]
    release = EventSynthPD(3, 2, generator="ppca", reading=reading).release(Cohort(odd), seed=1)
    lengths = {r.key: len(r) for r in release.data}
    if reading == "published":
        assert lengths == {r.key: len(r) for r in odd if r.stimulus == "s"}
        assert release.curator_notes["suppressed"] == 1
        return
    # e has no events, f and g nothing that tells about time: all of them get what the crowd gives
    assert lengths == {r.key: 300 for r in odd if r.stimulus == "s"}
    assert all(r.valid.any() for r in release.data)
    assert release.curator_notes["recordings_left_out"] == 1
    assert release.curator_notes["recordings_of_unknown_rate"] == 2
    # of one's own there is nothing to give: lost samples, in the frame that all share
    own = (
        EventSynthPD(3, 2, seeds="own", gamma_total="1" + "0" * 300)
        .release(Cohort(odd), seed=1)
        .data
    )
    assert {r.key: len(r) for r in own} == lengths
    assert len({(r.rate_hz, r.space) for r in own}) == 1
    assert not any(r.valid.any() for r in own if r.person in "fg")


def test_recordings_without_samples_and_stimuli_of_too_few() -> None:
    none = [
        Recording(p, "s", np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), rate_hz=100.0)
        for p in "abc"
    ]
    assert [len(r) for r in EventSynthPD(3, 2).release(Cohort(none), seed=1).data] == [0, 0, 0]
    apart = Cohort([still("a", "1"), still("b", "1"), still("c", "2")])
    for seeds in ("crowd", "own"):
        with pytest.raises(
            DataError,
            match="No stimulus, session and task has recordings of 3 people whose rate is known",
        ):
            EventSynthPD(3, 2, seeds=seeds).release(apart)


@pytest.mark.parametrize(
    "odd",
    [
        {"epsilon0": 1024},
        {"epsilon0": 1024, "margin": 5},
        {"place_deg": 1000.0},
        {"place_deg": 60.0},
    ],
)
def test_thresholds_without_noise_and_places_beyond_the_screen(odd: dict[str, float]) -> None:
    release = EventSynthPD(2, 2, **odd).release(unequal(), seed=1)  # type: ignore[arg-type]
    assert any(r.valid.any() for r in release.data)
    assert "no differential privacy" in str(release.guarantee)


def test_too_few_people_and_mixed_spaces_are_refused_in_words(cohort: Cohort) -> None:
    with pytest.raises(
        DataError, match="needs at least 7 people, and this cohort has recordings of 6"
    ):
        EventSynthPD(7, 2).release(cohort)
    screen = still("z").with_(
        space=Screen(1920, 1080, 600.0, 340.0, 700.0), x_deg=np.zeros(300), y_deg=np.zeros(300)
    )
    for reading in ("corrected", "published"):
        with pytest.raises(DataError, match="on a sphere and some on a screen"):
            EventSynthPD(2, 2, reading=reading).release(Cohort([still("a"), still("b"), screen]))
    with pytest.raises(ParameterError, match="must be a Cohort"):
        EventSynthPD(2, 2).release(still("a"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"k": 1}, "'k' parameter of event-synth-pd must be a whole number of at least 2"),
        (
            {"gamma": "0.5"},
            "'gamma' parameter of event-synth-pd must be an exact number of at least 1",
        ),
        ({"epsilon0": 0}, "above 0"),
        ({"attempts": 0}, "'attempts' parameter"),
        ({"generator": "vae"}, "one of cvae, ppca"),
        ({"probability": "histogram"}, "latent in the corrected reading"),
        ({"failed": "release"}, "drop in the corrected reading"),
        ({"seeds": "own", "reading": "published"}, "left out in the published reading"),
        ({"margin": 2, "reading": "published"}, "left out in the published reading"),
        ({"rho": 1, "generator": "cvae"}, "only ppca is trained with a budget"),
        (
            {"probability": "histogram", "others": "same-index", "reading": "published"},
            "histograms have no index",
        ),
        ({"window_s": 0}, "positive finite number"),
        ({"place_deg": -1}, "positive finite number"),
        ({"margin": -1}, "'margin' parameter"),
    ],
)
def test_wrong_parameters_are_refused_in_words(given: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        EventSynthPD(**{"k": 4, "gamma": 2, **given})  # type: ignore[arg-type]


def test_without_torch_the_network_is_refused_with_the_next_step(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gazeveil\[deep\]'"):
        EventSynthPD(3, 2, generator="cvae").release(cohort)


# --- the closed-form generator
# --------------------------------------------------------------------------------------------------


def profiles_of(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bells of many widths and places."""
    t = np.linspace(0, 1, 30)
    duration = np.exp(rng.normal(math.log(0.05), 0.3, n))
    b, c = rng.normal(0.45, 0.06, (n, 1)), rng.uniform(0.15, 0.4, (n, 1))
    profiles = np.exp(rng.normal(5.5, 0.5, (n, 1))) * np.exp(-(((t - b) / c) ** 2))
    profiles = np.minimum(profiles + rng.gamma(2, 5, profiles.shape), 900)
    return profiles, amplitudes_deg(profiles, duration), duration


def test_probabilistic_pca_is_the_maximum_of_its_likelihood_and_agrees_with_scikit_learn() -> None:
    from scipy.stats import multivariate_normal
    from sklearn.decomposition import PCA

    profiles, amplitude, duration = profiles_of(np.random.default_rng(1), 4000)
    model = fitted(moments(profiles, amplitude, duration, np.array([0, 4000])), 5)
    f = features(amplitude, duration)
    rest = shapes(profiles) - f @ np.linalg.lstsq(f, shapes(profiles), rcond=None)[0]
    peer = PCA(5).fit(rest)
    assert model.noise**2 == pytest.approx(peer.noise_variance_, rel=2e-3)
    covariance = model.loading @ model.loading.T + model.noise**2 * np.eye(30)
    np.testing.assert_allclose(
        covariance, peer.get_covariance(), atol=3e-3 * np.abs(covariance).max()
    )
    from dataclasses import replace

    def log_likelihood(ppca: PPCA) -> float:
        cov = ppca.loading @ ppca.loading.T + ppca.noise**2 * np.eye(30)
        rest = shapes(profiles) - f @ ppca.mean
        return float(multivariate_normal.logpdf(rest, cov=cov).mean())

    for worse in (
        replace(model, noise=1.05 * model.noise),
        replace(model, loading=0.95 * model.loading),
        replace(model, mean=1.01 * model.mean),
    ):
        assert log_likelihood(worse) < log_likelihood(model)


def test_decoded_profiles_go_as_far_as_asked_and_more_latent_numbers_explain_more() -> None:
    profiles, amplitude, duration = profiles_of(np.random.default_rng(2), 2000)
    errors = []
    for latent in (1, 3, 6):
        model = fitted(moments(profiles, amplitude, duration, np.array([0, 1000, 2000])), latent)
        z, spread = model.encode(profiles, amplitude, duration, np.zeros(2000))
        assert z.shape == spread.shape == (2000, latent)
        made = model.decode(z, amplitude, duration, np.zeros(2000))
        assert (made >= 0).all()
        np.testing.assert_allclose(amplitudes_deg(made, duration), amplitude, rtol=0.1)
        errors.append(float(((made - profiles) ** 2).mean()))
    assert errors[0] > 1.2 * errors[1] > 1.2 * errors[2]


def test_one_person_moves_the_moments_by_no_more_than_what_is_charged_for() -> None:
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(300):
        parts = []
        for _ in range(2):
            n = int(rng.integers(1, 30))
            profiles = np.exp(rng.normal(5, 3, (n, 30))) * (rng.random((n, 30)) < rng.random())
            duration = np.exp(rng.normal(-3, 3, n))
            parts.append(
                moments(
                    profiles, amplitudes_deg(profiles, duration), duration, np.array([0, n]), CLIP
                )
            )
        worst = max(worst, float(np.linalg.norm(parts[0] - parts[1])))
    assert 0.5 * math.sqrt(2) * CLIP**2 < worst <= math.sqrt(2) * CLIP**2 * (1 + 1e-12)


def test_private_training_has_the_noise_of_its_budget_and_comes_to_the_same_with_a_large_one() -> (
    None
):
    profiles, amplitude, duration = profiles_of(np.random.default_rng(4), 3000)
    people = np.arange(0, 3001, 100)
    total = moments(profiles, amplitude, duration, people, CLIP)
    rho, words = Fraction(1, 2), Words(TestStream(1))
    noise = np.array(
        [
            private_moments(np.zeros((33, 33)), 30, rho, words)[0][30:, 30:][np.triu_indices(3)][1:]
            for _ in range(4000)
        ]
    )
    # an entry above the diagonal has noise sigma / sqrt(2), one on it sigma, with sigma = sqrt(2)
    # clip**2 / sqrt(2 rho)
    sigma = math.sqrt(2) * CLIP**2 / math.sqrt(2 * rho)
    assert noise[:, -1].std() == pytest.approx(sigma, rel=0.06)
    assert noise[:, 0].std() == pytest.approx(sigma / math.sqrt(2), rel=0.06)
    exact_one, rich = fitted(total), fitted(private_moments(total, 30, Fraction(10**6), words)[0])
    errors = []
    for m in (exact_one, rich):
        z, _ = m.encode(profiles, amplitude, duration, duration)
        errors.append(float(((m.decode(z, amplitude, duration, duration) - profiles) ** 2).mean()))
    assert errors[1] == pytest.approx(errors[0], rel=0.1)


def test_histograms_sum_over_steps_and_may_exceed_one() -> None:
    profiles = np.full((4, 30), 130.0)
    profiles[3] = 5000.0
    histograms = speed_histograms(profiles, np.array([0, 2, 4, 4]))
    assert histograms.shape == (3, 30, 50)
    np.testing.assert_allclose(histograms[:2].sum(axis=2), 1.0)
    assert histograms[0, 7, 6] == 1.0
    assert histograms[1, 7, [6, 49]].tolist() == [0.5, 0.5]
    # a speed on an edge belongs to the bin above it
    assert summed_probability(
        histograms, np.array([[120.0] * 30, [119.999] * 30, [140.0] * 30])
    ).tolist() == [[30, 15, 0], [0, 0, 0], [0, 0, 0]]
