"""The test of plausible deniability for events: the same answer as asking everybody, at every edge,
and what its random threshold is worth.
"""

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from gazeveil.errors import ParameterError
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.synthesis.events_pd.coding import draw
from gazeveil.privacy.synthesis.events_pd.published import (
    Latents,
    PublishedTest,
    SampleMoments,
    all_events,
    draw_latents,
    fixation_means,
    people_near,
    pool,
)
from gazeveil.privacy.synthesis.events_pd.seeds import (
    NARROWEST,
    EventTiming,
    Rule,
    SeedRecords,
    cell_width,
    cells,
    plausible_counts,
)
from gazeveil.privacy.synthesis.motion import Motion
from tests.support.laws import assert_distribution

SCREEN = Screen(1920, 1080, 600.0, 340.0, 700.0)


# --- what the test says, written as the paper prints it
# ------------------------------------------------------------------------------


def brute_cell(log_p: float, wide: float) -> float:
    """The unique whole number i with -(i + 1) wide < ln p <= -i wide, found by walking."""
    if not math.isfinite(log_p):
        return math.nan
    i = round(-log_p / wide)
    while not log_p <= -i * wide:
        i -= 1
    while not log_p > -(i + 1) * wide:
        i += 1
    return float(i)


def brute_test(
    seed_log_p: float, records: list[list[float]], k: int, wide: float
) -> tuple[float, int, bool]:
    """The pseudocode of David-John et al. 2023: i', k' and whether it passes; `records` are those
    of each other person.
    """
    i, count = brute_cell(seed_log_p, wide), 0
    for mine in records:
        for log_p in mine:
            if -(i + 1) * wide < log_p <= -i * wide:
                count += 1
                break
    return i, count, count >= k - 1


def test_the_vectorised_test_is_the_pseudocode_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    for case in range(1000):
        gamma = float(rng.choice([1.0, 1.0001, 1.5, 2.0, 3.0, 100.0]))
        wide, people = cell_width(gamma), int(rng.integers(1, 8))
        log_p = rng.normal(rng.choice([-50.0, 0.0, 30.0]), 3 * max(wide, 1e-6), people)
        # probabilities on an edge, of zero, and above 1
        if case % 3 == 0:
            log_p = -wide * np.rint(log_p / wide)
        if case % 7 == 0:
            log_p[rng.integers(people)] = -math.inf
        seed = int(rng.integers(people))
        k = int(rng.integers(2, 5))
        others = [[p] for p in np.delete(log_p, seed).tolist()]
        i, count, passes = brute_test(float(log_p[seed]), others, k, wide)
        got = plausible_counts(log_p[None], np.array([seed]), wide)[0]
        mine = cells(log_p[seed : seed + 1], wide)[0]
        assert mine == i or (math.isnan(mine) and math.isnan(i))
        assert got == (0 if math.isnan(i) else count + 1)
        assert (got >= k) == passes


@pytest.mark.parametrize("gamma", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("i", [-700, -3, 0, 1, 41, 100_003])
def test_the_upper_end_of_a_cell_belongs_to_it_and_the_lower_one_does_not(
    gamma: float, i: int
) -> None:
    wide = cell_width(gamma)
    edge = -i * wide
    assert cells(np.array([edge, math.nextafter(edge, math.inf)]), wide).tolist() == [i, i - 1]


def test_gamma_of_one_is_a_narrow_band_and_below_one_is_refused() -> None:
    assert cell_width(1) == NARROWEST
    log_p = np.array([[-1000.0, -1000.0, -1000.0 + 1e-6]])
    assert plausible_counts(log_p, np.array([0]), cell_width(1)).tolist() == [2]
    with pytest.raises(ParameterError, match="at least 1"):
        cell_width("0.9")


# --- densities by matrix products
# --------------------------------------------------------------------------------------------------


def fixation_log_likelihoods(statistics: np.ndarray, fixations: np.ndarray) -> np.ndarray:
    """Logarithm of the density of each synthetic fixation under each record's normals, shape
    (synthetic, records), from its number of samples, their means and mean squared deviations.
    """
    n, mx, my, vx, vy = statistics.T[:, :, None]
    ux, uy, sx, sy = fixations.T[:4]
    apart = ((mx - ux) ** 2 + vx) / (2 * sx**2) + ((my - uy) ** 2 + vy) / (2 * sy**2)
    return np.asarray(-n * (np.log(2 * np.pi * sx * sy) + apart), dtype=np.float64)


def latent_log_likelihoods(latent: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Logarithm of the density of latent numbers under each record's normals, shape (synthetic,
    records).
    """
    return np.asarray(norm.logpdf(latent[:, None], mean, spread).sum(axis=2))


# --- the search that need not ask everybody
# ------------------------------------------------------------------------------------------


def motion_of(fixations: np.ndarray, space: object = SCREEN) -> Motion:
    n = len(fixations)
    onset = (
        np.concatenate(([0], np.cumsum(fixations[:, 4])[:-1])).astype(np.int64)
        if n
        else np.empty(0, dtype=np.int64)
    )
    return Motion(
        space,
        100.0,
        int(fixations[:, 4].sum()),
        fixations,
        np.empty((0, 4)),
        np.ones(n, dtype=bool),
        onset,
    )  # type: ignore[arg-type]


def scattered(rng: np.random.Generator, people: int, sphere: bool) -> list[Motion]:
    out = []
    for _ in range(people):
        n = int(rng.integers(0, 40))
        x = rng.uniform(355, 365, n) % 360 if sphere else rng.uniform(-3, 3, n)
        y = rng.uniform(56, 60, n) if sphere else rng.uniform(-2, 2, n)
        rows = np.column_stack(
            (x, y, np.exp(rng.normal(-0.5, 0.8, (n, 2))), rng.integers(1, 40, n))
        )
        out.append(motion_of(rows, Sphere() if sphere else SCREEN))
    return out


def test_looking_only_nearby_gives_the_answer_of_asking_everybody() -> None:
    rng = np.random.default_rng(4)
    met = 0
    for case in range(1000):
        sphere = case % 2 == 0
        people = int(rng.integers(2, 7))
        motions = scattered(rng, people, sphere)
        records = pool(motions)
        wide, person, n = (
            cell_width(float(rng.choice([1.3, 2, 20, 1e6]))),
            int(rng.integers(people)),
            float(rng.integers(1, 30)),
        )
        x, y = (
            (rng.uniform(-2, 2) % 360, rng.uniform(56, 60))
            if sphere
            else (rng.uniform(-3, 3), rng.uniform(-2, 2))
        )
        v = rng.uniform(0.01, 0.5, 2)
        stretch = math.sin(math.radians(y)) if sphere else 1.0
        seed_log_p = -n * (math.log(2 * math.pi * math.sqrt(v[0] * v[1])) + 1.0) - float(
            rng.exponential(3)
        )
        others = []
        for m in motions[:person] + motions[person + 1 :]:
            rows = m.fixations.copy()
            dx = x - rows[:, 0]
            rows[:, 0] = stretch * ((dx + 180) % 360 - 180 if sphere else dx)
            rows[:, 1] = y - rows[:, 1]
            others.append(fixation_log_likelihoods(np.array([[n, 0, 0, *v]]), rows)[0].tolist())
        _, count, _ = brute_test(seed_log_p, others, 2, wide)
        made = SampleMoments(n, x, y, v[0], v[1], seed_log_p, stretch)
        got = people_near(made, person, records, people, wide, np.full(people, -1), 1)
        assert got == count
        met += count > 0
    assert met > 100, "cases that never find anybody show nothing"


def test_released_fixations_have_enough_people_within_gamma_and_attempts_end() -> None:
    rng = np.random.default_rng(5)
    rows = [
        np.column_stack(
            (rng.normal(0, 0.3, (20, 2)), np.full((20, 2), 0.3), rng.integers(3, 9, 20))
        )
        for _ in range(8)
    ]
    motions = [motion_of(r) for r in rows]
    records, wide, k = pool(motions), cell_width(2), 4
    means, passed, tried = fixation_means(
        motions[0].fixations, 0, records, 8, False, PublishedTest(k - 1, wide, 50), TestStream(1)
    )
    assert 0.5 < passed.mean() <= 1
    assert tried <= 50 * 20
    statistics = np.column_stack((rows[0][:, 4], means[:, :2], means[:, 2:] ** 2))
    log_p = fixation_log_likelihoods(statistics, np.concatenate(rows))
    own = log_p[np.arange(20), np.arange(20)]
    within = np.abs(log_p - own[:, None]).reshape(20, 8, 20).min(axis=2)[:, 1:] < math.log(2)
    assert (within.sum(axis=1)[passed] >= k - 1).all()
    # nobody near: every attempt is made, and no more
    far = [motion_of(r + np.array([10.0 * i, 0, 0, 0, 0])) for i, r in enumerate(rows)]
    _, passed, tried = fixation_means(
        far[0].fixations, 0, pool(far), 8, False, PublishedTest(k - 1, wide, 7), TestStream(1)
    )
    assert not passed.any()
    assert tried == 7 * 20


def test_a_vast_gamma_passes_whoever_there_is_and_a_gamma_of_one_nobody() -> None:
    rng = np.random.default_rng(6)
    motions = [
        motion_of(np.column_stack((rng.normal(0, 1, (5, 2)), np.full((5, 2), 0.5), np.full(5, 10))))
        for _ in range(3)
    ]
    for k, passes in ((3, True), (4, False)):
        _, passed, _ = fixation_means(
            motions[0].fixations,
            0,
            pool(motions),
            3,
            False,
            PublishedTest(k - 1, 1e9, 3),
            TestStream(1),
        )
        assert passed.all() == passed.any() == passes
    _, passed, _ = fixation_means(
        motions[0].fixations,
        0,
        pool(motions),
        3,
        False,
        PublishedTest(1, cell_width(1), 20),
        TestStream(1),
    )
    assert not passed.any()


# --- saccades
# --------------------------------------------------------------------------------------------------


def test_the_saccade_test_asks_all_others() -> None:
    rng = np.random.default_rng(7)
    passes = 0
    for case in range(200):
        codes = [(rng.normal(size=(5, 3)), rng.uniform(0.5, 1.5, (5, 3))) for _ in range(6)]
        records, own = Latents.of(codes, range(6)), Latents.of(codes[2:3], [2])
        z, passed, _ = all_events(
            np.empty_like(own.mean),
            6,
            partial(draw_latents, own, records.asked(), PublishedTest(2, cell_width(2), 1)),
            TestStream(case),
        )
        log_p = latent_log_likelihoods(z, records.mean, records.spread)
        for e in range(5):
            asked = [log_p[e][records.person == p].tolist() for p in range(6) if p != 2]
            own_p = float(log_p[e][records.person == 2][e])
            assert passed[e] == brute_test(own_p, asked, 3, cell_width(2))[2]
        passes += int(passed.sum())
    assert passes > 270


# --- events of a crowd
# --------------------------------------------------------------------------------------------------


def crowd_records(
    rng: np.random.Generator, people: int, kappa: float, apart: float = 0.7
) -> SeedRecords:
    sizes = rng.integers(0, 12, people)
    n = int(sizes.sum())
    place = rng.normal((0, 0, 3), 1, (n, 3))
    onset = np.concatenate([np.sort(rng.uniform(0, 20, s)) for s in sizes])
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return SeedRecords.of(
        apart * rng.normal(size=(n, 3)),
        place / np.linalg.norm(place, axis=1, keepdims=True),
        kappa,
        onset,
        starts,
    )


def brute_log_density(
    records: SeedRecords,
    person: int,
    at_s: float,
    window_s: float,
    y: np.ndarray,
    place: np.ndarray,
) -> float:
    mine = [
        r
        for r in range(records.starts[person], records.starts[person + 1])
        if abs(records.onset_s[r] - at_s) <= window_s
    ]
    if not mine:
        return -math.inf
    total = sum(
        math.exp(
            records.kappa * (records.place[r] @ place - 1)
            - 0.5 * ((y - records.values[r]) ** 2).sum()
        )
        for r in mine
    )
    return math.log(total / len(mine))


@pytest.mark.parametrize("kappa", [0.0, 40.0])
def test_every_event_of_the_crowd_has_k_plausible_people(kappa: float) -> None:
    rng = np.random.default_rng(9)
    fixations, saccades = crowd_records(rng, 12, kappa), crowd_records(rng, 12, 0.0)
    rule, clock = (
        Rule(4, cell_width(2), np.uint64(1), np.uint64(1), 100, 6.0),
        EventTiming(2, 0.2, -1.0, 0.2, 0.05),
    )
    drawn = draw(fixations, saccades, rule, clock, 18.0, TestStream(1))
    at_s, released = 0.0, 0
    for f, place, z in zip(drawn.fixations, drawn.places, drawn.saccades, strict=True):
        for records, y in ((fixations, f), (saccades, z)):
            if np.isfinite(y).all():
                when = min(at_s, 18.0)
                found = cells(
                    np.array(
                        [
                            brute_log_density(records, p, when, 6.0, y, np.nan_to_num(place))
                            for p in range(12)
                        ]
                    ),
                    cell_width(2),
                )
                assert max((found == c).sum() for c in found[np.isfinite(found)]) >= 4
                released += 1
        at_s += (max(math.exp(-1.0 + 0.2 * f[2]), 0.02) if np.isfinite(f).all() else 0.2) + 0.05
    assert released > 0.5 * 2 * len(drawn.fixations)


def test_how_often_an_event_passes_follows_the_noise_of_the_threshold() -> None:
    # everybody alike: all people are always plausible, so the share of attempts that pass is the
    # law of the noise alone
    people, k = 9, 4
    same = SeedRecords.of(
        np.zeros((people, 1)), np.zeros((people, 3)), 0.0, np.zeros(people), np.arange(people + 1)
    )
    clock = EventTiming(0, 0.0, -3.0, 0.05, 0.02)
    for scale in (1, 2):
        rule = Rule(k, cell_width(2), np.uint64(scale), np.uint64(1), 1, 1e9)
        drawn = draw(same, same, rule, clock, 3000.0, TestStream(3, scale))
        n = 2 * len(drawn.fixations)
        passed = int(np.isfinite(drawn.fixations).sum() + np.isfinite(drawn.saccades).sum())
        # P(k + max(0, z) <= people), z discrete Laplace of that scale
        a = math.exp(-1 / scale)
        want = (1 - 1 / people) * (1 - a ** (people - k + 1) / (1 + a))
        assert n > 50_000
        assert abs(passed / n - want) < 5 * math.sqrt(want * (1 - want) / n)


def test_the_noise_of_an_event_is_normal_and_its_place_follows_von_mises_and_fisher() -> None:
    people, kappa = 3, 25.0
    place = np.tile([[0.48, 0.6, 0.64]], (people, 1))
    same = SeedRecords.of(
        np.zeros((people, 2)), place, kappa, np.zeros(people), np.arange(people + 1)
    )
    drawn = draw(
        same,
        same,
        Rule(2, 1e6, np.uint64(1), np.uint64(1), 50, 1e9),
        EventTiming(0, 0.0, -3.0, 0.05, 0.02),
        8000.0,
        TestStream(4),
    )
    passed = np.isfinite(drawn.fixations[:, 0])
    assert_distribution(drawn.fixations[passed, 1], lambda x, s: norm.cdf(x, scale=s))
    along = drawn.places[passed] @ place[0]
    assert_distribution(
        kappa * (1 - along), lambda x, s: (1 - np.exp(-x / s)) / (1 - np.exp(-2 * kappa))
    )
    np.testing.assert_allclose(np.linalg.norm(drawn.places[passed], axis=1), 1.0, atol=1e-12)
