"""event-synth-pd: what is released, for whom it holds, and where the published reading gives people
away.

Distances of durations and amplitudes, rates and the main sequence: by hand, under mechanisms,
and where a release left nothing.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import gazeveil
from gazeveil.errors import DataError, MissingExtraError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.synthesis.events_pd.audit import exchanged, found_share, same, sessions
from gazeveil.privacy.synthesis.events_pd.mechanism import EventSynthPD
from gazeveil.privacy.synthesis.events_pd.saccade_models import (
    amplitudes_deg,
    features,
    fitted,
    moments,
    shapes,
    speed_histograms,
    summed_probability,
)
from gazeveil.privacy.synthesis.events_pd.seeds import (
    SeedRecords,
    cell,
    cell_width,
    density,
    plausible,
)
from gazeveil.privacy.synthesis.motion import motion
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.events import distance, main_sequence
from gazeveil.utility.registry import utility
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
    ):
        one, two = (mechanism.release(c, seed=5).data for c in (released, exchanged(released)))
        assert same(one, two) is (kept or not any(r.valid.any() for r in one))


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


@pytest.mark.parametrize("lazy", [False, True])
def test_nobody_keeps_a_rate_or_a_length_of_their_own(lazy: bool) -> None:
    raw = unequal()
    given = (
        Cohort([Handle(r.person, r.stimulus, lambda r=r: r, r.session, r.task) for r in raw])
        if lazy
        else raw
    )  # type: ignore[misc]
    out = EventSynthPD(3, 2).release(given, seed=1).data
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
    again = EventSynthPD(3, 2).release(exchanged(given), seed=1).data
    assert same(out, again)
    assert [r.rate_hz for r in again] == [r.rate_hz for r in out]


# --- what is released
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        EventSynthPD(3, 2),
        EventSynthPD(3, 2, reading="published", failed="release"),
        EventSynthPD(3, 2, reading="published", probability="histogram"),
    ],
    ids=str,
)
def test_number_lengths_and_names_of_recordings_stay_and_nothing_else_does(
    mechanism: EventSynthPD, cohort: Cohort
) -> None:
    out = mechanism.release(cohort, seed=1).data
    assert [r.key for r in out] == [r.key for r in cohort]
    for r, raw in zip(out, cohort, strict=True):
        assert (len(r), r.space) == (len(raw), raw.space)
        assert np.ptp(np.diff(r.t_ns)) <= 1
        assert r.t_ns[0] == 0
        assert (dict(r.labels), r.pupil, r.head_deg, r.events) == ({}, None, None, None)
        assert not ((r.x_deg == raw.x_deg) & r.valid).any(), "a raw sample was passed on"


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


def test_recordings_without_samples_and_stimuli_of_too_few() -> None:
    none = [
        Recording(p, "s", np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), rate_hz=100.0)
        for p in "abc"
    ]
    assert [len(r) for r in EventSynthPD(3, 2).release(Cohort(none), seed=1).data] == [0, 0, 0]
    apart = Cohort([still("a", "1"), still("b", "1"), still("c", "2")])
    with pytest.raises(
        DataError,
        match="No stimulus, session and task has recordings of 3 people whose rate is known",
    ):
        EventSynthPD(3, 2).release(apart)


@pytest.mark.parametrize("odd", [{"epsilon0": 1024}, {"place_deg": 1000.0}, {"place_deg": 60.0}])
def test_thresholds_without_noise_and_places_beyond_the_screen(odd: dict[str, float]) -> None:
    release = EventSynthPD(2, 2, **odd).release(unequal(), seed=1)  # type: ignore[arg-type]
    assert any(r.valid.any() for r in release.data)
    assert "no differential privacy" in str(release.guarantee)


ON_A_SCREEN = still("z").with_(
    space=Screen(1920, 1080, 600.0, 340.0, 700.0), x_deg=np.zeros(300), y_deg=np.zeros(300)
)


@pytest.mark.parametrize("reading", ["corrected", "published"])
@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (Cohort([still("a")]), DataError, "at least 2 people, and this cohort has recordings of 1"),
        (Cohort([still("a"), ON_A_SCREEN]), DataError, "on a sphere and some on a screen"),
        (still("a"), ParameterError, "must be a Cohort"),
    ],
)
def test_too_few_people_and_mixed_spaces_are_refused_in_words(
    data: object, error: type[Exception], words: str, reading: str
) -> None:
    with pytest.raises(error, match=words):
        EventSynthPD(2, 2, reading=reading).release(data)  # type: ignore[arg-type]


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
        ({"generator": "vae"}, "one of cvae, cvae-32, ppca"),
        ({"probability": "histogram"}, "latent in the corrected reading"),
        ({"failed": "release"}, "drop in the corrected reading"),
        ({"place_deg": 2, "reading": "published"}, "left out in the published reading"),
        ({"window_s": 0}, "positive finite number"),
        ({"place_deg": -1}, "positive finite number"),
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


def test_probabilistic_pca_agrees_with_scikit_learn() -> None:
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


METRICS = (
    "fixation_duration_wasserstein_s",
    "saccade_amplitude_wasserstein_deg",
    "fixation_rate_error_hz",
    "saccade_rate_error_hz",
    "main_sequence_slope_error",
    "peak_velocity_error_deg_s",
    "fixation_duration_median_error",
    "saccade_amplitude_median_error",
)


def recording_set(
    durations: dict[str, NDArray[np.float64]],
    amplitudes: dict[str, NDArray[np.float64]],
    slope: float = 0.5,
    level: float = 100.0,
) -> RecordingSet:
    """Tables with one recording per person; peak velocity is level * amplitude**slope, saccades
    last 0.05 s.
    """
    tables = {}
    for kind, by, columns in (
        ("fixation", durations, ("duration",)),
        ("saccade", amplitudes, ("duration", "amplitude", "ang_vel_max")),
    ):
        values = np.concatenate([*(v for v in by.values()), np.empty(0)])
        full = (
            values[:, None]
            if kind == "fixation"
            else np.column_stack(
                [np.full(len(values), 0.05), values, level * np.abs(values) ** slope]
            )
        )
        keys = Keys.of_recordings(
            [(p, "clip", "1", "") for p in by], [np.arange(len(v)) for v in by.values()]
        )
        tables[kind] = FeatureTable(full, columns, keys)
    return RecordingSet(None, tables)


def figures(raw: RecordingSet, test: RecordingSet) -> dict[str, UtilityResult]:
    return {r.metric: r for r in utility("events").measure(raw, raw, test, 0)}


def test_every_figure_is_the_one_by_hand() -> None:
    amplitude = np.linspace(1, 9, 40)
    raw = recording_set({"p": np.full(50, 0.2)}, {"p": amplitude})
    test = recording_set({"p": np.full(30, 0.3)}, {"p": amplitude[:20] + 2}, slope=0.7, level=80.0)
    found = figures(raw, test)
    time_s = 50 * 0.2 + 40 * 0.05
    assert tuple(found) == METRICS
    assert found["fixation_duration_wasserstein_s"].value == pytest.approx(0.1)
    assert found["saccade_amplitude_wasserstein_deg"].value == pytest.approx(
        distance(amplitude, amplitude[:20] + 2)
    )
    assert found["fixation_rate_error_hz"].value == pytest.approx(20 / time_s)
    assert found["saccade_rate_error_hz"].value == pytest.approx(20 / time_s)
    assert found["main_sequence_slope_error"].value == pytest.approx(0.2)
    assert found["peak_velocity_error_deg_s"].value == pytest.approx(
        abs(100 * 5**0.5 - 80 * 5**0.7)
    )
    assert found["fixation_duration_median_error"].value == pytest.approx(0.1 / 0.2)
    assert found["saccade_amplitude_median_error"].value == pytest.approx(
        abs(5 - np.median(amplitude[:20] + 2)) / 5
    )


def test_the_recordings_themselves_have_no_error_and_parts_are_people() -> None:
    raw = RecordingSet(gazeveil.simulate(3, 2, seconds=15, rate_hz=120, seed=1).load())
    for name, result in figures(raw, raw).items():
        assert result.value == 0, name
        assert result.names == ("p1", "p2", "p3")


def test_more_noise_moves_events_farther() -> None:
    cohort = gazeveil.simulate(4, 2, seconds=15, rate_hz=120, seed=1).load()
    raw = RecordingSet(cohort).prepared(("fixation", "saccade"))
    little, much = (
        figures(
            raw,
            RecordingSet(gazeveil.mechanism("gaussian", sigma_deg=s).release(cohort, seed=1).data),
        )
        for s in ("0.05", "2")
    )
    for name in METRICS[:3]:
        assert much[name].value > 2 * little[name].value, name
    assert all(np.isfinite(r.value) for r in little.values())


def test_a_person_left_without_events_is_as_far_as_events_of_size_zero() -> None:
    amplitude = np.linspace(1, 9, 40)
    raw = recording_set(
        {"p": np.full(50, 0.2), "q": np.full(50, 0.2)}, {"p": amplitude, "q": amplitude}
    )
    none = np.empty(0)
    release = RecordingSet(
        None,
        {
            k: t.where(t.keys.person == "p")
            for k, t in (("fixation", raw.fixations), ("saccade", raw.saccades))
        },
    )
    alone = figures(raw, release)
    assert alone["fixation_duration_wasserstein_s"].names == (
        "p",
    )  # a table release does not say that q was there
    cohort = gazeveil.simulate(2, 1, seconds=10, rate_hz=120, seed=1).load()
    lost = Cohort(
        [r.with_(valid=np.zeros(len(r), dtype=np.bool_)) if r.person == "p2" else r for r in cohort]
    )
    whole = RecordingSet(cohort)
    found = figures(whole, RecordingSet(lost))
    theirs = whole.fixations.values[whole.fixations.keys.person == "p2", 0]
    assert found["fixation_duration_wasserstein_s"].parts[1] == pytest.approx(theirs.mean())
    assert found["fixation_duration_wasserstein_s"].parts[0] == 0
    assert found["main_sequence_slope_error"].names == ("p1",)
    assert "1 of 2 people" in found["main_sequence_slope_error"].note
    assert distance(theirs, none) == pytest.approx(theirs.mean())


def test_a_release_under_other_names_is_compared_with_everybody_together() -> None:
    amplitude = np.linspace(1, 9, 40)
    raw = recording_set(
        {"p": np.full(50, 0.2), "q": np.full(50, 0.4)}, {"p": amplitude, "q": amplitude}
    )
    release = recording_set(
        {"s1": np.full(50, 0.2), "s2": np.full(50, 0.4)}, {"s1": amplitude, "s2": amplitude}
    )
    found = figures(raw, release)
    assert found["fixation_duration_wasserstein_s"].value == 0
    assert found["fixation_duration_wasserstein_s"].names == ("everybody",)
    assert "other names" in found["fixation_rate_error_hz"].note


def test_main_sequences_need_saccades_that_differ() -> None:
    rng = np.random.default_rng(0)
    amplitude = rng.uniform(1, 20, 500)
    slope, intercept = main_sequence(
        amplitude, 90 * amplitude**0.55 * np.exp(rng.normal(0, 0.1, 500))
    )
    assert slope == pytest.approx(0.55, abs=0.02)
    assert np.exp(intercept) == pytest.approx(90, rel=0.05)
    for few in (amplitude[:9], np.full(50, 3.0), np.full(50, -1.0), np.full(50, np.nan)):
        assert np.isnan(main_sequence(few, np.full(len(few), 100.0))).all()


def test_what_cannot_be_compared_is_refused_in_one_sentence() -> None:
    raw = recording_set({"p": np.full(50, 0.2)}, {"p": np.linspace(1, 9, 40)})
    empty = RecordingSet(
        None, {"fixation": raw.fixations.where([]), "saccade": raw.saccades.where([])}
    )
    with pytest.raises(DataError, match="nobody has both"):
        utility("events").measure(empty, empty, raw, 0)
    with pytest.raises(DataError, match="'amplitude'"):
        utility("events").measure(
            raw,
            raw,
            RecordingSet(
                None, {"fixation": raw.fixations, "saccade": raw.saccades.drop("amplitude")}
            ),
            0,
        )
