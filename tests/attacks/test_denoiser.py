"""The denoiser: it measures the noise first, leaves clean recordings alone, and brings noisy ones
nearer to the truth, on screens and spheres.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.base import (
    Attack,
    Denoised,
    Scores,
    apply_denoiser,
    filtered,
    identify,
    noise_level,
    standardised_scores,
)
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Sphere, distance_deg
from gazeveil.gaze.recording import Recording

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
    assert filtered(clean) is clean


def test_real_movement_at_a_low_rate_is_not_taken_for_noise():
    cohort = gazeveil.simulate(3, 2, 20, 36, seed=1)
    assert all(noise_level(r).clean for r in cohort)
    assert all(noise_level(noisy(r, 3.0)).sigma_deg == pytest.approx(3.0, rel=0.25) for r in cohort)


def test_the_steps_of_a_grid_are_not_noise():
    tiles = gazeveil.mechanism("spatial", L=64).release(made(SCREEN), seed=1).data
    assert noise_level(tiles).clean


@pytest.mark.parametrize(("space", "centre"), PLACES, ids=NAMES)
@pytest.mark.parametrize("sigma_deg", [1.0, 5.0])
def test_the_filter_brings_noisy_gaze_nearer_to_the_truth(space, centre, sigma_deg):
    clean = made(space, centre=centre)
    loud = noisy(clean, sigma_deg)
    assert error_deg(filtered(loud), clean) < (0.65 if sigma_deg == 1.0 else 0.45) * error_deg(
        loud, clean
    )


def test_lost_samples_stay_lost_and_keep_their_place():
    loud = noisy(made(SCREEN), 3.0)
    valid = np.ones(len(loud), dtype=bool)
    valid[100:130] = valid[2000:2004] = False
    x, y = np.where(valid, loud.x_deg, np.nan), np.where(valid, loud.y_deg, np.nan)
    after = filtered(loud.with_(x_deg=x, y_deg=y, valid=valid))
    assert np.array_equal(after.valid, valid)
    assert np.array_equal(after.t_ns, loud.t_ns)
    assert np.isnan(after.x_deg[~valid]).all()
    assert np.isfinite(after.x_deg[valid]).all()


def test_nothing_is_carried_over_a_long_gap():
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
    after = filtered(gaze)
    assert np.abs(after.x_deg[980:1000] + 20.0).max() < 3.0
    assert np.abs(after.x_deg[1000:1020] - 20.0).max() < 3.0


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


def test_tables_are_found_again_on_filtered_samples():
    loud = RecordingSet(Cohort([noisy(made(SCREEN), 3.0)]))
    assert len(apply_denoiser("lowpass", loud).saccades) != len(loud.saccades)


def test_there_is_nothing_to_do_without_a_front_end_noise_or_samples():
    clean = RecordingSet(Cohort([made(SCREEN)]))
    table = FeatureTable(
        [[0.2], [0.3]],
        ("duration",),
        Keys(["a", "b"], ["clip", "clip"], ["1", "1"], ["", ""], [0, 0]),
    )
    tables = RecordingSet(None, {"fixation": table})
    assert apply_denoiser("none", clean) is clean
    assert apply_denoiser("lowpass", clean) is clean
    assert apply_denoiser("lowpass", tables) is tables
    with pytest.raises(ParameterError, match="Did you mean 'lowpass'"):
        apply_denoiser("lowpas", clean)


def test_odd_recordings_pass():
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
        assert np.array_equal(filtered(gaze).valid, gaze.valid)


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
