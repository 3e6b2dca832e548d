"""The U-Net that undoes noise: what it is given, what it learns, what it refuses."""

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.base import DENOISERS
from gazeveil.attacks.denoiser import Denoised, apply_denoiser, learn_denoiser
from gazeveil.attacks.registry import attack
from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.releases import ReleaseCache, protect
from gazeveil.evaluation.study import Study
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import angle_deg
from gazeveil.gaze.simulate import simulate
from gazeveil.models.resumable import StepPlan
from gazeveil.models.unet import SAMPLES, train_unet, unet
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")


@pytest.fixture(scope="module")
def raw() -> RecordingSet:
    return RecordingSet(Cohort(list(simulate(3, 3, 10.0, 60.0, seed=2))))


def error_deg(one: RecordingSet, other: RecordingSet) -> float:
    assert one.cohort is not None
    assert other.cohort is not None
    apart = [angle_deg(a.vectors, b.vectors) for a, b in zip(one.cohort, other.cohort, strict=True)]
    return float(np.sqrt(np.nanmean(np.concatenate(apart) ** 2)))


def test_it_learns_to_take_noise_away_from_recordings_it_never_saw(raw: RecordingSet) -> None:
    noise = gazeveil.mechanism("gaussian:sigma_deg=5")
    last = raw.stimuli[-1]
    seen, held_out = raw.where(lambda k: k[1] != last), raw.where(lambda k: k[1] == last)
    learnt = learn_denoiser(seen, [protect(seen, noise, 1)], seed=1, steps=60, batch=8)
    released = protect(held_out, noise, 3)
    after = learnt.apply(released)
    assert isinstance(after, Denoised)
    assert after.before is released
    filtered = apply_denoiser("kalman", released)
    assert error_deg(filtered, held_out) < 0.6 * error_deg(released, held_out)
    # Six recordings and 60 steps are too few to beat the filter; they must not spoil it either.
    assert error_deg(after, held_out) < 1.15 * error_deg(filtered, held_out)
    assert error_deg(after, held_out) < 0.6 * error_deg(released, held_out)


def test_before_training_it_is_the_filter(raw: RecordingSet) -> None:
    one = next(iter(raw.cohort or ()))
    guess = np.roll(one.vectors, 5, axis=0)
    known = np.isfinite(guess).all(axis=1) & one.valid
    made = unet(0, 0.1).denoise(one.vectors, guess)
    np.testing.assert_allclose(made[known], guess[known], atol=1e-6)


def test_lost_samples_stay_lost_and_recordings_of_any_length_pass() -> None:
    network = unet(0, 1.0)
    for length in (3, SAMPLES, SAMPLES + 7):
        vectors = np.random.default_rng(length).normal(size=(length, 3))
        vectors[1] = np.nan
        made = network.denoise(vectors, vectors)
        assert made.shape == vectors.shape
        assert np.isfinite(made).all()
    with pytest.raises(DataError, match="without a single sample"):
        network.denoise(np.full((10, 3), np.nan), np.full((10, 3), np.nan))
    one = next(iter(simulate(1, 1, 4.0, 60.0, seed=1)))
    valid = one.valid.copy()
    valid[20:30] = False
    lossy = RecordingSet(Cohort([one.with_(valid=valid)]))
    learnt = learn_denoiser(lossy, [lossy], seed=0, steps=1)
    after = learnt.apply(lossy).cohort
    assert after is not None
    assert np.array_equal(next(iter(after)).valid, valid)


def test_a_seed_repeats_it() -> None:
    noisy, clean = np.random.default_rng(0).normal(size=(2, 600, 3))
    first, second, other = (
        train_unet([noisy], [noisy], [clean], StepPlan(2, seed=s), batch=2)[1] for s in (1, 1, 2)
    )
    assert first == second != other


def test_there_must_be_samples_and_times_in_common(raw: RecordingSet) -> None:
    assert raw.cohort is not None
    tables = RecordingSet(None, {"fixation": raw.fixations})
    with pytest.raises(DataError, match="one side holds tables only"):
        learn_denoiser(raw, [tables], seed=0)
    later = RecordingSet(Cohort([r.with_(t_ns=r.t_ns + 1) for r in raw.cohort]))
    with pytest.raises(DataError, match="nothing to learn a denoiser from"):
        learn_denoiser(raw, [later], seed=0)


def test_it_is_no_filter_and_exemplars_are_not_enough(raw: RecordingSet) -> None:
    assert "unet" in DENOISERS
    with pytest.raises(ParameterError, match="'denoiser' parameter of apply_denoiser"):
        apply_denoiser("unet", raw)
    with pytest.raises(ParameterError, match="'knowledge' parameter of linkage must be black-box"):
        attack("linkage:denoiser=unet,knowledge=exemplars")


@pytest.mark.parametrize("scenario", ["private/private", "raw/private"])
def test_a_study_learns_it_from_the_gallery_alone(
    raw: RecordingSet, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert raw.cohort is not None
    noise = gazeveil.mechanism("gaussian:sigma_deg=5")
    who = attack("linkage:denoiser=unet")
    study = Study(raw.cohort, (noise,), (who,), repetitions=1)
    cache = ReleaseCache(study, raw, noise, 0)
    asked: list[RecordingSet] = []

    def learn(clean: RecordingSet, releases: list[RecordingSet], seed: int):
        asked.extend([clean, *releases])
        return learn_denoiser(clean, releases, seed, steps=1)

    monkeypatch.setattr("gazeveil.evaluation.releases.learn_denoiser", learn)
    gallery, probe = cache.sides(who, scenario)
    assert isinstance(probe, Denoised)
    assert isinstance(gallery, Denoised) == (scenario == "private/private")
    seen = {key for part in asked for key in part.keys}
    assert seen == {k for k in raw.keys if cache.split.gallery(k)}
    assert not seen & set(probe.keys)
    # Releases of its own: those it attacks are others.
    first, again = asked[1].cohort, probe.before.cohort
    assert first is not None
    assert again is not None
    assert not {r.x_deg[0] for r in first} & {r.x_deg[0] for r in again}


def test_a_study_refuses_it_where_samples_are_not_changed_one_by_one(raw: RecordingSet) -> None:
    assert raw.cohort is not None
    synthetic = gazeveil.mechanism("k-same-synth:k=2")
    who = attack("linkage:denoiser=unet")
    study = Study(raw.cohort, (synthetic,), (who,), repetitions=1)
    with pytest.raises(DataError, match=r"k-same-synth does not\. Use denoiser=lowpass"):
        ReleaseCache(study, raw, synthetic, 0).sides(who, "private/private")
    # Without a mechanism there is nothing to undo.
    gallery, probe = ReleaseCache(study, raw, None, 0).sides(who, "raw/raw")
    assert not isinstance(gallery, Denoised)
    assert not isinstance(probe, Denoised)
