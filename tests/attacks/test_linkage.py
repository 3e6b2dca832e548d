"""Linkage and trace attackers: who is found and who must not be, on tables, on samples, on real
people, and on whatever else comes.

Who somebody is by how long places are held: what noise on places leaves as it is.

Names that were exchanged are found, and answers that are wrong for another reason are not taken
for that.

Vectors of recordings are made once, and as the plain ways make them.
"""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.signal import welch

import gazeveil
from gazeveil.attacks.evidence import LEVEL, find_renaming
from gazeveil.attacks.identify.fusion import Linkage, match, match_steps
from gazeveil.attacks.kernel_ridge import shrunk_covariance, whitened
from gazeveil.attacks.registry import attack
from gazeveil.attacks.vectors import extended, kinds, steps
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.attacks.vectors.places import HELD_NAMES, held_statistics
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from tests.support.recordings import real_cohort

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


def people(
    count=20, stimuli=8, columns=10, trait=1.0, noise=0.5, stimulus=0.0, seed=0, mixing=None
):
    """Vectors of a trait, an effect of the stimulus and noise; `mixing` correlates the noise."""
    rng = np.random.default_rng(seed)
    traits, effects = (
        trait * rng.normal(size=(count, columns)),
        stimulus * rng.normal(size=(stimuli, columns)),
    )
    mix = np.eye(columns) if mixing is None else mixing
    keys = [(f"p{i:02}", f"s{j:02}", "1", "") for i in range(count) for j in range(stimuli)]
    rows = [
        traits[i] + effects[j] + noise * rng.normal(size=columns) @ mix
        for i in range(count)
        for j in range(stimuli)
    ]
    return RecordingVectors(tuple(keys), np.array(rows), tuple(f"f{k}" for k in range(columns)))


def halves(vectors, learnt=6):
    first = np.array([int(s[1:]) < learnt for s in vectors.stimuli])
    return vectors.where(first), vectors.where(~first)


def rate(vectors, learnt=6):
    return float(match(*halves(vectors, learnt)).credit().mean())


def with_values(vectors, values):
    return RecordingVectors(vectors.keys, values, vectors.columns, vectors.blocks)


# --- matching
# --------------------------------------------------------------------------------------------------


def test_people_are_found_across_stimuli():
    assert rate(people()) > 0.95


def test_an_effect_of_the_stimulus_does_not_hide_people():
    assert rate(people(stimulus=20.0)) > 0.95


def test_noise_that_people_share_the_shape_of_is_whitened_away():
    # One direction across all features has thirty times the noise of the others.
    mixing = np.eye(10) + 30.0 * np.full((10, 10), 0.1)
    assert rate(people(mixing=mixing)) > 0.9


@pytest.mark.parametrize(("rows", "columns"), [(40, 1), (3, 7), (60, 25), (30, 60), (1, 4)])
def test_covariances_are_scikit_learns_and_angles_those_of_the_eigenvectors(rows, columns):
    from sklearn.covariance import ledoit_wolf

    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn speaks up about one row
        wanted, share = ledoit_wolf(x, assume_centered=True)
    found = shrunk_covariance(x)
    np.testing.assert_allclose(found[0], wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())
    assert found[1] == pytest.approx(share, abs=1e-12)

    def cosines(a, b):
        return (a @ b.T) / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))

    values, axes = np.linalg.eigh(wanted)
    white = axes / np.sqrt(np.maximum(values, values.max() * 1e-8))
    a, b = rng.normal(size=(2, 9, columns))
    np.testing.assert_allclose(
        cosines(*whitened(x, a, b)), cosines(a @ white, b @ white), atol=1e-7
    )


def test_features_that_tell_nothing_do_not_drown_the_others():
    clear = people(count=24, stimuli=8, columns=4, noise=1.0)
    junk = np.random.default_rng(1).normal(size=(len(clear), 300))
    both = RecordingVectors(
        clear.keys,
        np.concatenate((clear.values, junk), axis=1),
        (*clear.columns, *(f"junk{i}" for i in range(300))),
    )
    assert rate(both) > rate(clear) - 0.25


def test_a_kind_of_features_that_tells_nothing_gets_no_say():
    clear = people(count=24, stimuli=8, columns=4, noise=1.0)
    junk = np.random.default_rng(1).normal(size=(len(clear), 300))
    apart = RecordingVectors(
        clear.keys,
        np.concatenate((clear.values, junk), axis=1),
        (*clear.columns, *(f"junk{i}" for i in range(300))),
        (*("good",) * 4, *("junk",) * 300),
    )
    assert rate(apart) > rate(clear) - 0.05


def test_shuffled_people_are_found_at_chance():
    hits = []
    for seed in range(30):
        vectors = people(seed=seed, stimulus=3.0)
        rng = np.random.default_rng(seed)
        order = np.arange(len(vectors))
        for stimulus in np.unique(vectors.stimuli):
            rows = np.flatnonzero(vectors.stimuli == stimulus)
            order[rows] = rng.permutation(rows)
        blocks = tuple("ab"[k % 2] for k in range(10))
        hits.append(
            rate(RecordingVectors(vectors.keys, vectors.values[order], vectors.columns, blocks))
        )
    # 600 guesses at 1/20: four standard errors.
    assert abs(np.mean(hits) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 600)


def test_units_do_not_matter_on_either_side():
    vectors = people(noise=1.5)
    gallery, probe = halves(vectors)
    scale = 10.0 ** np.arange(-4, 6)
    same = match(gallery, probe).values
    assert np.allclose(
        match(
            with_values(gallery, gallery.values * scale), with_values(probe, probe.values * scale)
        ).values,
        same,
        atol=1e-6,
    )
    # A mechanism that shrinks one feature for everybody hides nobody.
    assert np.allclose(
        match(gallery, with_values(probe, probe.values * scale)).values, same, atol=1e-6
    )


def test_people_with_the_same_material_tie_exactly():
    vectors = people(count=9)
    values = vectors.values.copy()
    values[vectors.persons == "p04"] = values[vectors.persons == "p03"]
    gallery, probe = halves(with_values(vectors, values))
    assert match(gallery, probe).credit()[3:5].tolist() == [0.5, 0.5]


def test_unknown_values_and_constant_columns_are_left_aside():
    vectors = people(columns=12)
    values = vectors.values.copy()
    rng = np.random.default_rng(3)
    values[rng.random(values.shape) < 0.1] = np.nan
    values[:, 3], values[:, 5] = 7.0, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rate(with_values(vectors, values)) > 0.9


def test_a_person_of_whom_nothing_is_known_gets_zeros():
    gallery, probe = halves(people())
    values = probe.values.copy()
    values[probe.persons == "p05"] = np.nan
    blocks = tuple("ab"[k % 2] for k in range(10))
    for blocks_of in (gallery.blocks, blocks):
        pair = (
            RecordingVectors(gallery.keys, gallery.values, gallery.columns, blocks_of),
            RecordingVectors(probe.keys, values, probe.columns, blocks_of),
        )
        scores = match(*pair)
        assert not scores.values[5].any()
        assert scores.credit()[[0, 1, 2, 3, 4, 6]].mean() > 0.8


def test_a_stimulus_that_one_person_saw_still_counts():
    vectors = people(count=12, stimuli=8)
    keys = [(p, f"{s}-{p}" if int(s[1:]) % 2 else s, x, t) for p, s, x, t in vectors.keys]
    first = np.array([int(k[1][1:3]) < 6 for k in keys])
    alone = RecordingVectors(tuple(keys), vectors.values, vectors.columns)
    assert match(alone.where(first), alone.where(~first)).credit().mean() > 0.9
    everybody = [(p, f"{s}-{p}", x, t) for p, s, x, t in vectors.keys]
    alone = RecordingVectors(tuple(everybody), vectors.values, vectors.columns)
    assert match(alone.where(first), alone.where(~first)).credit().mean() > 0.9


def test_one_person_alone_is_judged_against_the_gallery():
    gallery, probe = halves(people())
    alone = [
        match(gallery, probe.where(probe.persons == person))
        for person in sorted(set(probe.persons))
    ]
    assert [scores.probes for scores in alone] == [
        (person,) for person in sorted(set(probe.persons))
    ]
    assert np.mean([scores.credit()[0] for scores in alone]) > 0.8
    one = match(gallery.where(gallery.persons == "p00"), probe.where(probe.persons == "p00"))
    assert one.credit().tolist() == [1.0]


def protected(vectors, stimulus, seed=5):
    """As a mechanism might: stretched, moved, and other effects of the stimuli."""
    rng = np.random.default_rng(seed)
    effects = {
        s: stimulus * rng.normal(size=vectors.values.shape[1]) for s in np.unique(vectors.stimuli)
    }
    return with_values(
        vectors, 3.0 * vectors.values + 50.0 + np.array([effects[s] for s in vectors.stimuli])
    )


def together(first, second):
    """What `RecordingSet.together` makes of two sources."""
    keys = (*first.keys, *((p, s, f"{x}~1", t) for p, s, x, t in second.keys))
    return RecordingVectors(keys, np.concatenate((first.values, second.values)), first.columns)


def test_some_examples_of_a_release_do_not_spoil_a_raw_gallery():
    gallery, probe = halves(people(count=16, noise=0.7, stimulus=10.0))
    moved, some = (
        protected(probe, 0.0),
        gallery.where(np.random.default_rng(1).random(len(gallery)) < 0.25),
    )
    frozen = match(gallery, moved).credit().mean()
    assert frozen > 0.85
    assert match(together(gallery, protected(some, 0.0)), moved).credit().mean() > frozen - 0.1


def test_sources_that_show_everybody_are_centred_apart():
    gallery, probe = halves(people(count=16, noise=0.7, stimulus=10.0))
    both = together(gallery, protected(gallery, 100.0))
    assert match(both, probe).credit().mean() > 0.85


def test_nothing_in_common_is_refused_in_one_sentence():
    gallery, probe = halves(people())
    other = RecordingVectors(probe.keys, probe.values, tuple(f"g{k}" for k in range(10)))
    with pytest.raises(DataError, match="both sides"):
        match(gallery, other)
    with pytest.raises(DataError, match="both sides"):
        match(gallery, probe.where(np.zeros(len(probe), dtype=bool)))


# --- vectors
# --------------------------------------------------------------------------------------------------


def table(rows):
    """A table of one feature from (person, stimulus, value)."""
    index = [sum(r[:2] == q[:2] for q in rows[:i]) for i, r in enumerate(rows)]
    keys = Keys(
        [r[0] for r in rows], [r[1] for r in rows], ["1"] * len(rows), [""] * len(rows), index
    )
    return FeatureTable(np.array([r[2] for r in rows], dtype=float)[:, None], ("duration",), keys)


def test_summary_vectors_are_means_and_deviations_over_known_events():
    fixations = table(
        [("a", "s", 1.0), ("b", "s", 5.0), ("a", "s", 4.0), ("a", "s", np.nan), ("a", "t", np.nan)]
    )
    saccades = table([("b", "s", 1.0), ("b", "s", 3.0)])
    made = recording_vectors(RecordingSet(None, {"fixation": fixations, "saccade": saccades}))
    assert made.columns == (
        "fixation_duration_mean",
        "fixation_duration_sd",
        "saccade_duration_mean",
        "saccade_duration_sd",
    )
    rows = dict(zip(made.keys, made.values.tolist(), strict=True))
    deviation = np.std([1.0, 4.0], ddof=1)
    assert np.allclose(rows["a", "s", "1", ""], [2.5, deviation, np.nan, np.nan], equal_nan=True)
    assert np.allclose(rows["b", "s", "1", ""], [5.0, np.nan, 2.0, np.sqrt(2.0)], equal_nan=True)
    assert np.isnan(rows["a", "t", "1", ""]).all()


def cohort(count=4, stimuli=3, seconds=10, rate_hz=120, space=None, seed=1):
    return gazeveil.simulate(count, stimuli, seconds, rate_hz, space=space, seed=seed).load()


@pytest.mark.parametrize("features", ["summary", "extended", "trajectory"])
def test_vectors_come_in_the_order_of_the_recordings_and_follow_a_selection(features):
    whole = RecordingSet(cohort())
    made = recording_vectors(whole, features)
    assert made.keys == whole.keys
    assert np.isfinite(made.values).mean() > 0.9
    if features != "trajectory":  # a trajectory is compared with the crowd's, and the crowd changes
        person = whole.persons[2]
        alone = recording_vectors(whole.select(people=[person]), features)
        assert np.allclose(alone.values, made.values[made.persons == person], equal_nan=True)


def test_extended_vectors_are_about_300_features_of_three_kinds():
    made = recording_vectors(RecordingSet(cohort(2, 2)), "extended")
    assert 250 <= len(made.columns) <= 350
    assert len(set(made.columns)) == len(made.columns)
    assert set(made.blocks) == {"events", "places", "dynamics"}


@pytest.mark.parametrize("features", ["extended", "trajectory"])
def test_turning_everybody_round_changes_nothing_but_where_ahead_is(features):
    still = cohort()
    turned = Cohort(
        [
            r.with_(x_deg=np.mod(r.x_deg + 175.0, 360.0), head_deg=None, eye_in_head_deg=None)
            for r in still
        ]
    )
    a, b = (
        recording_vectors(RecordingSet(still), features),
        recording_vectors(RecordingSet(turned), features),
    )
    kept = [c for c in a.columns if not c.startswith(("centre", "trajectory_x_follow"))]
    same = np.isclose(
        a.select(kept).values, b.select(kept).values, rtol=1e-4, atol=1e-5, equal_nan=True
    )
    assert same.mean() > 0.995


def test_samples_that_are_all_lost_give_no_vector_and_no_warning():
    some = list(cohort())
    lost = some[0].with_(
        x_deg=np.full(len(some[0]), np.nan),
        y_deg=np.full(len(some[0]), np.nan),
        valid=np.zeros(len(some[0]), dtype=bool),
    )
    empty = Recording(
        some[1].person,
        some[1].stimulus,
        np.empty(0, dtype=np.int64),
        np.empty(0),
        np.empty(0),
        session=some[1].session,
        task=some[1].task,
    )
    recording_set = RecordingSet(Cohort([lost, empty, *some[2:]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for features in ("summary", "extended", "trajectory"):
            made = recording_vectors(recording_set, features)
            told = [
                i
                for i, c in enumerate(made.columns)
                if not c.startswith("lost") and not c.endswith("_rate")
            ]
            assert np.isnan(made.values[0][told]).all()
            assert np.isnan(made.values[1][told]).all()
            Linkage(features=features).identify(recording_set, recording_set, 1)


def test_a_trajectory_is_described_against_the_others():
    n = 500
    t = np.arange(n, dtype=np.int64) * 20_000_000
    rng = np.random.default_rng(1)
    crowd = np.cumsum(rng.normal(0.0, 0.3, n))
    people_x = {"a": crowd, "b": crowd, "c": crowd + 3.0}
    recording_set = RecordingSet(
        Cohort(
            [
                Recording(p, "clip", t, x, np.zeros(n), space=SCREEN, rate_hz=50.0)
                for p, x in people_x.items()
            ]
        )
    )
    made = recording_vectors(recording_set, "trajectory").select(
        ["trajectory_x_mean", "trajectory_y_mean", "trajectory_behind_0"]
    )
    assert made.values[2] == pytest.approx([3.0, 0.0, 1.0], abs=1e-2)
    assert made.values[0] == pytest.approx([-1.5, 0.0, 1.0], abs=1e-2)


def test_released_tables_have_no_extended_vectors():
    tables = RecordingSet(None, {"fixation": table([("a", "s", 1.0)])})
    for features in ("extended", "trajectory"):
        assert not Linkage(features=features).can(tables)
        with pytest.raises(DataError, match="need samples"):
            recording_vectors(tables, features)
    assert Linkage().can(tables)
    with pytest.raises(ParameterError, match="Did you mean 'extended'"):
        attack("linkage:features=extend")
    with pytest.raises(DataError, match="neither"):
        recording_vectors(RecordingSet(None, {"window": table([("a", "s", 1.0)])}))


# --- real people
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gazecom():
    return RecordingSet(real_cohort("gazecom").load())


def split(recording_set, k):
    """Seven or eight stimuli against the others."""
    stimuli = np.random.default_rng(k).permutation(recording_set.stimuli)
    learnt = 7 + k % 2
    return recording_set.select(stimuli=stimuli[:learnt]), recording_set.select(
        stimuli=stimuli[learnt:]
    )


def test_real_people_are_found_raw(gazecom):
    gazecom.prepared(("fixation", "saccade"))
    found = [Linkage().identify(*split(gazecom, k), 1).credit().mean() for k in range(4)]
    assert np.mean(found) > 0.93


def looks(order: list[int], lengths: list[int], places: np.ndarray) -> Recording:
    """Gaze that stays at places, one after the other, for so many samples at 100 Hz."""
    x, y = np.repeat(places[order], lengths, axis=0).T
    return Recording("p", "s", np.arange(len(x)) * 10_000_000, x, y, rate_hz=100.0)


def test_runs_returns_and_shares_are_counted() -> None:
    places = np.array([[1.0, 2.0], [3.5, 4.0], [8.0, 0.5]])
    order, lengths = [0, 1, 0, 2, 1, 0, 1, 0], [20, 5, 30, 10, 5, 40, 5, 60]
    own = dict(zip(HELD_NAMES, held_statistics(looks(order, lengths, places)), strict=True))
    assert all(np.isfinite(v) for v in own.values())
    assert np.exp(own["held_places"]) == pytest.approx(3)
    assert own["held_share_0"] == pytest.approx(150 / 175)
    assert np.exp(own["held_q50"]) == pytest.approx(0.15)
    # Three runs are new places; of the others three came back after two runs, two after three.
    ago = [own[f"held_runs_ago_{i}"] ** 2 * 8 for i in range(13)]
    np.testing.assert_allclose(ago[:4], [3, 0, 3, 2], atol=1e-9)
    counts = sum(own[f"held_runs_{i}"] ** 2 for i in range(26)) * (175 - 1) / 100
    assert counts == pytest.approx(8)


def noisy_places(cohort: Cohort, sigma_deg: float, seed: int) -> Cohort:
    """Gaze as one noisy place for each cell of some 3 degrees that a person looks at."""
    rng = np.random.default_rng(seed)
    noise: dict[tuple[str, float, float], np.ndarray] = {}
    made = []
    for recording in gazeveil.mechanism("spatial:L=32,losses=keep").release(cohort).data:
        places = np.stack((recording.x_deg, recording.y_deg), axis=1)
        cells, number = np.unique(places, axis=0, return_inverse=True)
        for k, (x, y) in enumerate(cells.tolist()):
            key = (recording.person, x, y)
            if key not in noise:
                noise[key] = rng.normal(0, sigma_deg, 2)
            cells[k] += noise[key]
        x_deg, y_deg = cells[number.ravel()].T
        made.append(recording.with_(x_deg=x_deg, y_deg=y_deg))
    return Cohort(made)


@pytest.mark.parametrize(
    "text",
    [
        "gaussian:sigma_deg=1",
        "spatial:L=64",
        "kaleido:epsilon=1,w=60,r_deg=2",
        "temporal:K=25,hold=True",
    ],
)
def test_only_places_of_their_own_are_held(text: str) -> None:
    cohort = gazeveil.simulate(2, 1, 20.0, 120.0, seed=1)
    for recording in gazeveil.mechanism(text).release(cohort).data:
        assert np.isnan(held_statistics(recording)).all()
    for recording in noisy_places(cohort, 5.0, seed=1):
        assert np.isfinite(held_statistics(recording)).all()


@pytest.mark.data
def test_noise_on_places_does_not_hide_how_long_they_are_held() -> None:
    """Of 24 people the other kinds of numbers find 8 under noise of 8 degrees on places."""
    cohort = real_cohort("gazecom").load()
    stimuli = np.random.default_rng(3).permutation(cohort.stimuli).tolist()
    learnt = round(0.75 * len(stimuli))
    gallery, probe = (RecordingSet(noisy_places(cohort, 8.0, seed=s)) for s in (1, 2))
    sides = [
        recording_vectors(side.select(stimuli=some), "steps")
        for side, some in ((gallery, stimuli[:learnt]), (probe, stimuli[learnt:]))
    ]
    with_timing = match_steps(*sides).credit().mean()
    others = [c for c in sides[0].columns if c not in HELD_NAMES]
    without = match_steps(*(side.select(others) for side in sides)).credit().mean()
    assert with_timing > 0.35
    assert with_timing > without + 0.1


def test_nothing_is_known_of_nothing() -> None:
    still = looks([0], [50], np.array([[1.0, 2.0]]))
    assert np.isnan(held_statistics(still)).all()
    lost = still.with_(valid=np.zeros(50, dtype=bool))
    assert np.isnan(held_statistics(lost)).all()
    assert np.isnan(held_statistics(looks([0], [1], np.array([[1.0, 2.0]])))).all()


#: How often the test of chance below fails though all is well: a share of at most LEVEL of 1,000
#: draws lies above 0.04 less often than this (binomial).
FALSE_ALARM = 1e-4


def found(answers: np.ndarray) -> bool:
    """Whether a renaming is found in rows of draws and columns of people."""
    draws, people = np.indices(answers.shape)
    names = [str(p) for p in people.ravel()]
    return find_renaming(draws.ravel().tolist(), names, [str(a) for a in answers.ravel()]).found


def test_a_renaming_is_found_though_some_answers_are_wrong() -> None:
    rng = np.random.default_rng(1)
    for n in (6, 10, 24):
        renamed = np.tile((np.arange(n) + 1) % n, (10, 1))
        noisy = np.where(rng.random(renamed.shape) < 0.2, rng.integers(n, size=renamed.shape), 0)
        assert found(np.where(noisy > 0, noisy, renamed))


def test_people_who_are_recognised_or_not_at_all_are_not_renamed() -> None:
    rng = np.random.default_rng(2)
    own = np.tile(np.arange(12), (10, 1))
    assert not found(own)
    half = np.where(rng.random(own.shape) < 0.5, own, rng.integers(12, size=own.shape))
    assert not found(half)
    assert not found(rng.integers(12, size=own.shape))
    assert not found(np.tile(own[0] // 2 * 2, (10, 1))), "pairs that are taken for one of them"
    swapped = own.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    assert not found(swapped), "two people who look alike are not a renaming of all"


def test_answers_that_are_always_the_same_wrong_ones_seldom_look_like_a_renaming() -> None:
    rng = np.random.default_rng(3)
    alarms = [found(np.tile(rng.integers(10, size=10), (3, 1))) for _ in range(1000)]
    assert np.mean(alarms) < 2 * LEVEL


@pytest.fixture(scope="module")
def whole() -> RecordingSet:
    return RecordingSet(gazeveil.simulate(3, 4, 8.0, 100.0, seed=2).load())


def test_the_spectrum_is_scipys(whole: RecordingSet) -> None:
    found = extended.vectors(whole)
    assert whole.cohort is not None
    for i, recording in enumerate(whole.cohort):
        velocity = extended.velocities(recording)[0][0]
        frequency, power = welch(np.nan_to_num(velocity), fs=100.0, nperseg=400, detrend=False)
        for low, high in pairwise(extended.BANDS_HZ):
            inside = (frequency >= low) & (frequency < high)
            value = found.values[i, found.columns.index(f"spectrum_x_{low:g}_{high:g}hz")]
            if high > 50.0:
                assert np.isnan(value)
            else:
                assert value == pytest.approx(np.log(max(power[inside].mean(), 1e-4)), abs=1e-9)


@pytest.mark.parametrize("features", ["summary", "extended", "trajectory"])
def test_vectors_of_a_part_are_rows_of_the_whole(
    whole: RecordingSet, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole.prepared(("fixation", "saccade"))
    alone = whole.select(stimuli=whole.stimuli[:2])
    part = whole.select(stimuli=whole.stimuli[:2])
    part.part_of = whole
    wanted = recording_vectors(alone, features)
    recording_vectors(whole, features)
    calls: list[RecordingSet] = []
    make = kinds._MAKERS[features]

    def watched(recording_set: RecordingSet) -> RecordingVectors:
        calls.append(recording_set)
        return make(recording_set)

    monkeypatch.setitem(kinds._MAKERS, features, watched)
    found = recording_vectors(part, features)
    # The trajectory is described against the others of the same side, so it is made for the part.
    assert len(calls) == (1 if features == "trajectory" else 0)
    assert found.keys == wanted.keys
    assert found.columns == wanted.columns
    np.testing.assert_array_equal(found.values, wanted.values)


@pytest.mark.parametrize("features", ["summary", "extended", "steps"])
def test_vectors_of_sets_put_together_are_taken_from_the_sets(
    whole: RecordingSet, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole.prepared(("fixation", "saccade"))
    parts = [whole.select(stimuli=whole.stimuli[:2]), whole.select(stimuli=whole.stimuli[1:3])]
    for part in parts:
        part.part_of = whole
    both = RecordingSet.together(parts)
    fresh = RecordingSet.together(parts)
    fresh.made_of = None
    wanted = recording_vectors(fresh, features)
    for part in parts:
        recording_vectors(part, features)
    calls: list[object] = []
    for module, name in ((steps, "_alone"), (extended, "place_statistics")):
        monkeypatch.setattr(module, name, lambda *given: calls.append(given))
    found = recording_vectors(both, features)
    assert not calls
    assert found.keys == wanted.keys == both.keys
    assert found.columns == wanted.columns
    np.testing.assert_array_equal(found.values, wanted.values)


def test_steps_of_another_noise_scale_are_worked_out_anew(whole: RecordingSet) -> None:
    """Raw recordings beside a release whose noise scale is public: no scale fits both."""
    assert whole.cohort is not None
    rng = np.random.default_rng(0)
    scales = {r.key: rng.uniform(0.5, 20.0, len(r)) for r in whole.cohort}
    release = RecordingSet(whole.cohort, noise_scale_deg=lambda r: scales[r.key])
    weighed, plain = recording_vectors(release, "steps"), recording_vectors(whole, "steps")
    assert not np.allclose(weighed.values, plain.values, equal_nan=True)
    both = RecordingSet.together([whole, release])
    alone = [c for c, block in enumerate(plain.blocks) if block == "steps"]
    found = recording_vectors(both, "steps").values[:, alone]
    np.testing.assert_array_equal(found, np.concatenate([plain.values, plain.values])[:, alone])
