"""Denoisers: they measure the noise first, leave clean recordings alone, and bring noisy ones
nearer to the truth, on screens and spheres.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.denoiser import Denoised, apply_denoiser, identify, standardised_scores
from gazeveil.attacks.filters import _smoother, filtered, noise_level
from gazeveil.attacks.views import average_views
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze import scratch
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Sphere, distance_deg
from gazeveil.gaze.recording import Recording

FILTERS = ("median", "lowpass", "kalman", "wiener")
SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


def jumps(n, rate_hz, rng, size_deg=4.0):
    """Fixations of about 0.3 s with jumps between them: two coordinates around 0."""
    ends = np.cumsum(rng.gamma(4.0, 0.075 * rate_hz, size=int(n / rate_hz * 6) + 10))
    steps = rng.normal(0.0, size_deg, (len(ends) + 1, 2))
    place = np.zeros((len(ends) + 1, 2))
    for i in range(1, len(place)):
        place[i] = 0.7 * place[i - 1] + steps[i]
    return place[np.searchsorted(ends, np.arange(n))]


def made(space, rate_hz=250.0, seconds=20.0, centre=None, seed=0, person="a"):
    """A clean recording; on a sphere around `centre`."""
    n = round(rate_hz * seconds)
    xy = jumps(n, rate_hz, np.random.default_rng(seed))
    t = (np.arange(n) * 1e9 / rate_hz).astype(np.int64)
    if isinstance(space, Screen):
        return Recording(person, "clip", t, xy[:, 0], xy[:, 1], space=space, rate_hz=rate_hz)
    x0, y0 = centre
    x = x0 + xy[:, 0] / np.sin(np.radians(y0))
    return Recording(
        person,
        "clip",
        t,
        np.mod(x, 360.0),
        np.clip(y0 + xy[:, 1], 0.0, 179.9),
        space=space,
        rate_hz=rate_hz,
    )


def noisy(recording, sigma_deg, seed=1):
    """Independent noise of the same size in both directions of the eye."""
    rng = np.random.default_rng(seed)
    v = recording.space.vectors(recording.x_deg, recording.y_deg)
    v = v + np.radians(sigma_deg) * rng.normal(size=v.shape)
    if isinstance(recording.space, Screen):
        noise = sigma_deg * rng.normal(size=(2, len(recording)))
        return recording.with_(x_deg=recording.x_deg + noise[0], y_deg=recording.y_deg + noise[1])
    x, y = recording.space.degrees(v)
    return recording.with_(x_deg=x, y_deg=y)


def error_deg(one, other):
    good = one.valid & other.valid
    return float(
        np.sqrt(
            np.mean(
                distance_deg(
                    one.space,
                    one.x_deg[good],
                    one.y_deg[good],
                    other.x_deg[good],
                    other.y_deg[good],
                )
                ** 2
            )
        )
    )


PLACES = [
    (SCREEN, None),
    (Sphere(), (180.0, 90.0)),
    (Sphere(), (0.0, 90.0)),
    (Sphere(), (350.0, 20.0)),
]
NAMES = ["screen", "ahead", "seam", "near the pole"]


@pytest.mark.parametrize(("space", "centre"), PLACES, ids=NAMES)
@pytest.mark.parametrize("sigma_deg", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("rate_hz", [90.0, 250.0])
def test_the_noise_is_measured_in_the_samples(space, centre, sigma_deg, rate_hz):
    level = noise_level(noisy(made(space, rate_hz, centre=centre), sigma_deg))
    assert level.sigma_deg == pytest.approx(sigma_deg, rel=0.2)
    assert not level.clean or sigma_deg < 1


def test_movement_is_measured_apart_from_the_noise():
    clean = made(SCREEN, seconds=60.0)
    assert noise_level(noisy(clean, 5.0)).movement == pytest.approx(
        noise_level(clean).movement, rel=0.1
    )
    still = clean.with_(x_deg=np.zeros(len(clean)), y_deg=np.zeros(len(clean)))
    assert noise_level(noisy(still, 10.0)).movement < 2.0


def test_a_wandering_path_is_not_noise():
    rng = np.random.default_rng(4)
    clean = made(SCREEN)
    x, y = 0.2 * np.cumsum(rng.normal(size=(2, len(clean))), axis=1)
    walk = clean.with_(x_deg=x, y_deg=y)
    assert noise_level(walk).sigma_deg < 0.05
    assert noise_level(noisy(walk, 1.0)).sigma_deg == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(("space", "centre"), PLACES, ids=NAMES)
def test_a_clean_recording_is_given_back_as_it_is(space, centre):
    clean = made(space, centre=centre)
    assert noise_level(clean).sigma_deg < 0.01
    for denoiser in FILTERS:
        assert filtered(clean, denoiser) is clean


def test_real_movement_at_a_low_rate_is_not_taken_for_noise():
    cohort = gazeveil.simulate(3, 2, 20, 36, seed=1)
    levels = [noise_level(r) for r in cohort]
    assert all(level.clean for level in levels)
    assert all(noise_level(noisy(r, 3.0)).sigma_deg == pytest.approx(3.0, rel=0.25) for r in cohort)


def test_the_steps_of_a_grid_are_not_noise():
    tiles = gazeveil.mechanism("spatial", L=64).release(made(SCREEN), seed=1).data
    assert noise_level(tiles).clean


@pytest.mark.parametrize(("space", "centre"), PLACES, ids=NAMES)
@pytest.mark.parametrize("denoiser", FILTERS)
@pytest.mark.parametrize("sigma_deg", [1.0, 5.0])
def test_a_filter_brings_noisy_gaze_nearer_to_the_truth(space, centre, denoiser, sigma_deg):
    clean = made(space, centre=centre)
    loud = noisy(clean, sigma_deg)
    assert error_deg(filtered(loud, denoiser), clean) < (
        0.65 if sigma_deg == 1.0 else 0.45
    ) * error_deg(loud, clean)


def test_a_filter_treats_the_seam_like_any_other_place():
    ahead, seam = made(Sphere(), centre=(180.0, 90.0)), made(Sphere(), centre=(0.0, 90.0))
    for denoiser in FILTERS:
        a, b = filtered(noisy(ahead, 3.0), denoiser), filtered(noisy(seam, 3.0), denoiser)
        assert error_deg(a, ahead) == pytest.approx(error_deg(b, seam), rel=0.1)


@pytest.mark.parametrize("denoiser", FILTERS)
def test_lost_samples_stay_lost_and_keep_their_place(denoiser):
    loud = noisy(made(SCREEN), 3.0)
    valid = np.ones(len(loud), dtype=bool)
    valid[100:130] = valid[2000:2004] = False
    x, y = np.where(valid, loud.x_deg, np.nan), np.where(valid, loud.y_deg, np.nan)
    after = filtered(loud.with_(x_deg=x, y_deg=y, valid=valid), denoiser)
    assert np.array_equal(after.valid, valid)
    assert np.array_equal(after.t_ns, loud.t_ns)
    assert np.isnan(after.x_deg[~valid]).all()
    assert np.isfinite(after.x_deg[valid]).all()


@pytest.mark.parametrize("denoiser", FILTERS)
def test_nothing_is_carried_over_a_long_gap(denoiser):
    n, rng = 2000, np.random.default_rng(1)
    t = (np.arange(n) * 4_000_000).astype(np.int64)
    t[1000:] += 2_000_000_000
    gaze = Recording(
        "a",
        "clip",
        t,
        np.where(np.arange(n) < 1000, -20.0, 20.0) + rng.normal(size=n),
        rng.normal(size=n),
        space=SCREEN,
        rate_hz=250.0,
    )
    after = filtered(gaze, denoiser)
    assert np.abs(after.x_deg[980:1000] + 20.0).max() < 3.0
    assert np.abs(after.x_deg[1000:1020] - 20.0).max() < 3.0


def test_the_kalman_smoother_is_the_posterior_mean():
    rng = np.random.default_rng(2)
    q, r, n = 0.3, 2.0, 60
    z = np.cumsum(rng.normal(0.0, q**0.5, n)) + rng.normal(0.0, r**0.5, n)
    steps = np.diff(np.eye(n), axis=0)
    exact = np.linalg.solve(np.eye(n) / r + steps.T @ steps / q, z / r)
    assert np.allclose(_smoother(z, q, r), exact, atol=1e-9)


def test_a_release_behind_a_front_end_remembers_what_was_released():
    raw = RecordingSet(
        Cohort([noisy(made(SCREEN, seconds=5, seed=i, person=p), 3.0) for i, p in enumerate("abc")])
    )
    after = apply_denoiser("lowpass", raw)
    assert isinstance(after, Denoised)
    assert after.before is raw
    part = after.select(people=["b"])
    assert isinstance(part, Denoised)
    assert [r.person for r in part.cohort] == ["b"] == [r.person for r in part.before.cohort]
    assert np.array_equal(part.before.cohort[0].x_deg, raw.cohort[1].x_deg)
    assert not np.array_equal(part.cohort[0].x_deg, raw.cohort[1].x_deg)
    picked = after.where(lambda key: key[0] != "a")
    assert isinstance(picked, Denoised)
    assert len(picked.before.keys) == len(picked.keys) == 2
    first, second = after.halves()
    assert isinstance(first, Denoised)
    assert (
        len(first.before.cohort[0])
        == len(first.cohort[0])
        == len(after.cohort[0]) - len(second.cohort[0])
    )


def test_filtered_recordings_are_set_aside_and_clean_ones_stay_where_they_lie(monkeypatch):
    loud, clean = noisy(made(SCREEN, person="a"), 3.0), made(SCREEN, person="b")
    wanted = filtered(loud, "lowpass")
    monkeypatch.setattr(scratch, "IN_MEMORY", 0)
    released = RecordingSet(scratch.set_aside(Cohort([loud, clean])))
    after = apply_denoiser("lowpass", released)
    assert all(scratch.is_set_aside(item) for item in after.cohort.items)
    assert np.array_equal(after.cohort[0].x_deg, wanted.x_deg)
    assert after.cohort.items[0] is not released.cohort.items[0]
    assert after.cohort.items[1] is released.cohort.items[1]


def test_tables_are_found_again_on_filtered_samples():
    loud = RecordingSet(Cohort([noisy(made(SCREEN), 3.0)]))
    assert len(apply_denoiser("kalman", loud).saccades) != len(loud.saccades)


def test_there_is_nothing_to_do_without_a_front_end_noise_or_samples():
    clean = RecordingSet(Cohort([made(SCREEN)]))
    table = FeatureTable(
        [[0.2], [0.3]],
        ("duration",),
        Keys(["a", "b"], ["clip", "clip"], ["1", "1"], ["", ""], [0, 0]),
    )
    tables = RecordingSet(None, {"fixation": table})
    assert apply_denoiser("none", clean) is clean
    assert apply_denoiser("wiener", clean) is clean
    assert apply_denoiser("wiener", tables) is tables
    with pytest.raises(ParameterError, match="Did you mean 'kalman'"):
        apply_denoiser("kalmann", clean)


@pytest.mark.parametrize("denoiser", FILTERS)
def test_odd_recordings_pass(denoiser):
    none = np.empty(0)
    t = np.arange(40, dtype=np.int64) * 4_000_000
    lost = np.full(40, np.nan)
    few = np.where(np.arange(40) % 20 == 3, 1.0, np.nan)
    for gaze in (
        Recording("a", "empty", none.astype(np.int64), none, none, space=SCREEN),
        Recording("a", "lost", t, lost, lost, space=SCREEN),
        Recording("a", "few", t, few, few, space=SCREEN, rate_hz=250.0),
        Recording("a", "one", t[:1], [1.0], [1.0], space=SCREEN),
        Recording("a", "short", t[:6], [0.0, 9.0, -9.0, 9.0, -9.0, 9.0], np.zeros(6), space=SCREEN),
    ):
        assert np.array_equal(filtered(gaze, denoiser).valid, gaze.valid)


@dataclass(frozen=True)
class Spread(Attack):
    """Names people by how far their gaze moves from sample to sample; refuses a signal that hardly
    moves.
    """

    name: ClassVar[str] = "spread"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    least_deg: float = 0.0

    def identify(self, gallery, probe, seed):
        def steps(recording_set):
            found = {r.person: float(np.abs(np.diff(r.x_deg)).mean()) for r in recording_set.cohort}
            if min(found.values()) < self.least_deg:
                raise DataError("too still")
            return np.array([found[p] for p in recording_set.persons])

        return Scores(
            gallery.persons, probe.persons, -np.abs(steps(probe)[:, None] - steps(gallery)[None, :])
        )


def test_an_attacker_behind_a_front_end_judges_both_signals():
    clean = [made(SCREEN, seconds=5, seed=i, person=p) for i, p in enumerate("abc")]
    gallery = RecordingSet(Cohort([noisy(r, 3.0, 5) for r in clean]))
    probe = RecordingSet(Cohort([noisy(r, 3.0, 6) for r in clean]))
    behind = apply_denoiser("lowpass", gallery), apply_denoiser("lowpass", probe)
    plain, smooth = Spread().identify(gallery, probe, 1), Spread().identify(*behind, 1)
    both = identify(Spread(), *behind, 1)
    assert np.allclose(
        both.values, standardised_scores(plain.values) + standardised_scores(smooth.values)
    )
    assert not np.allclose(plain.values, smooth.values)
    # A clean gallery is not filtered: the attacker compares it with both signals of the probe.
    raw = RecordingSet(Cohort(clean))
    half = identify(Spread(), raw, behind[1], 1)
    one, two = Spread().identify(raw, probe, 1), Spread().identify(raw, behind[1], 1)
    assert np.allclose(
        half.values, standardised_scores(one.values) + standardised_scores(two.values)
    )
    # Without a denoiser, or where the filter left nothing to go by, there is one signal.
    assert np.array_equal(identify(Spread(), gallery, probe, 1).values, plain.values)
    assert np.array_equal(identify(Spread(least_deg=1.0), *behind, 1).values, plain.values)


def test_scores_are_standardised_without_warnings():
    values = np.array([[1.0, 3.0], [5.0, 5.0], [np.nan, 4.0]])
    # The second row tells nothing; NaN counts as the least score.
    expected = np.array([[1.0, 3.0], [2.25, 2.25], [1.0, 4.0]]) - 2.25
    expected /= np.std([1.0, 3.0, 1.0, 4.0])
    assert np.allclose(standardised_scores(values), expected)
    assert not standardised_scores(np.full((2, 2), np.nan)).any()
    assert not standardised_scores(np.ones((2, 2))).any()


# --- repeated views
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("space", "centre"), PLACES, ids=NAMES)
def test_averaging_views_leaves_a_share_of_the_noise(space, centre):
    clean = made(space, centre=centre)
    views = [RecordingSet(Cohort([noisy(clean, 2.0, seed)])) for seed in range(9)]
    alone = error_deg(views[0].cohort[0], clean)
    assert error_deg(average_views(views).cohort[0], clean) == pytest.approx(alone / 3, rel=0.1)
    assert average_views(views[:1]) is views[0]


def test_a_view_counts_where_it_has_a_sample():
    base = made(SCREEN, seconds=1)
    t, x, y = base.t_ns, np.zeros(len(base)), np.zeros(len(base))
    first = base.with_(x_deg=x, y_deg=y)
    half = base.with_(
        x_deg=np.where(t < t[100], 3.0, np.nan),
        y_deg=np.where(t < t[100], 0.0, np.nan),
        valid=t < t[100],
    )
    third = half.slice(0, 50).with_(x_deg=np.full(50, 3.0))
    mean = average_views([RecordingSet(Cohort([r])) for r in (first, half, third)]).cohort[0]
    assert np.allclose(mean.x_deg[:50], 2.0)
    assert np.allclose(mean.x_deg[50:100], 1.5)
    assert np.allclose(mean.x_deg[100:], 0.0)
    # What the first view lost, another one may have.
    lost = half.with_(
        x_deg=np.where(half.valid, np.nan, 1.0),
        y_deg=np.where(half.valid, np.nan, 1.0),
        valid=~half.valid,
    )
    whole = average_views([RecordingSet(Cohort([r])) for r in (lost, half)]).cohort[0]
    assert whole.valid.all()
    assert np.allclose(whole.x_deg, np.where(half.valid, 3.0, 1.0))


def test_a_recording_that_one_view_lacks_is_averaged_over_the_others():
    a, b = made(SCREEN, seconds=1, person="a"), made(SCREEN, seconds=1, person="b", seed=5)
    shifted = a.with_(x_deg=a.x_deg + 2.0)
    mean = average_views([RecordingSet(Cohort([a])), RecordingSet(Cohort([shifted, b]))])
    assert [r.person for r in mean.cohort] == ["a", "b"]
    assert np.allclose(mean.cohort[0].x_deg, a.x_deg + 1.0)
    assert np.array_equal(mean.cohort[1].x_deg, b.x_deg)


def test_tables_are_averaged_row_by_row():
    def table(values, people):
        index = [people[:i].count(p) for i, p in enumerate(people)]
        return FeatureTable(
            np.array(values)[:, None],
            ("duration",),
            Keys(people, ["s"] * len(people), ["1"] * len(people), [""] * len(people), index),
        )

    one, two = (
        table([1.0, 2.0, 3.0], ["a", "a", "b"]),
        table([3.0, np.nan, 5.0, 9.0], ["a", "a", "b", "b"]),
    )
    mean = average_views(
        [RecordingSet(None, {"fixation": one}), RecordingSet(None, {"fixation": two})]
    ).fixations
    # b has another number of rows in the second release: which belong together is not known, so the
    # first stays.
    assert mean.values[:, 0].tolist() == [2.0, 2.0, 3.0]
    with pytest.raises(DataError, match="one kind"):
        average_views(
            [RecordingSet(None, {"fixation": one}), RecordingSet(Cohort([made(SCREEN, seconds=1)]))]
        )
    with pytest.raises(DataError, match="at least one"):
        average_views([])
