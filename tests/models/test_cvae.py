"""The C-VAE of saccades: its sizes, its loss, its gradients, what it learns, and where it is
probabilistic PCA.
"""

import math
import sys

import numpy as np
import pytest

from gazeveil.errors import DataError, MissingExtraError, ParameterError
from gazeveil.gaze.cohort import Cohort
from gazeveil.models.cvae import CVAE, POINTS, Layers, Schedule, kl_divergence, network, trained
from gazeveil.models.training import split_by_person
from gazeveil.privacy.synthesis.events_pd.mechanism import EventSynthPD
from gazeveil.privacy.synthesis.events_pd.saccade_models import conditions
from gazeveil.privacy.synthesis.motion import motion
from tests.support.recordings import real_cohort

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(n: int, seed: int = 1):
    """Bells whose height depends on the amplitude, with noise."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, POINTS)
    amplitude, duration = rng.uniform(2, 20, n), rng.uniform(0.03, 0.08, n)
    profiles = (amplitude / duration * 1.5)[:, None] * np.exp(
        -(((t - rng.normal(0.45, 0.05, (n, 1))) / 0.25) ** 2)
    ) + rng.gamma(2, 5, (n, POINTS))
    return np.minimum(profiles, 1000.0), amplitude, duration, rng.integers(0, 5, n) / 5


def test_the_network_has_the_sizes_of_the_supplement() -> None:
    net = network(Layers(), np.zeros(POINTS), 100.0)
    shapes = [tuple(p.shape) for p in net.parameters()]
    assert shapes == [(32, 33), (32,), (128, 32), (128,), (96, 67), (96,), (30, 96), (30,)]
    assert any(isinstance(part, torch.nn.ReLU) for part in net.encoder)
    assert not any(isinstance(part, torch.nn.ReLU) for part in net.decoder)
    assert tuple(
        network(Layers(identity=False), np.zeros(POINTS), 100.0).parameters()[0].shape
    ) == (32, 32)


def test_the_divergence_is_zero_at_the_standard_normal_and_positive_elsewhere() -> None:
    from scipy.integrate import quad
    from scipy.stats import norm

    assert kl_divergence(torch.zeros(3, 32), torch.zeros(3, 32)).tolist() == [0.0, 0.0, 0.0]
    rng = torch.Generator().manual_seed(1)
    assert (
        kl_divergence(torch.randn(1000, 32, generator=rng), torch.randn(1000, 32, generator=rng))
        > 0
    ).all()
    mean, sd = 0.7, 0.4
    want, _ = quad(
        lambda x: norm.pdf(x, mean, sd) * (norm.logpdf(x, mean, sd) - norm.logpdf(x)), -8, 8
    )
    got = kl_divergence(
        torch.tensor([[mean]], dtype=torch.float64),
        torch.tensor([[2 * math.log(sd)]], dtype=torch.float64),
    )
    assert float(got) == pytest.approx(want, rel=1e-8)


def mean_loss(net: CVAE, batch, times: int = 20) -> float:
    """Mean loss of a batch over draws of the latent numbers."""
    draws = torch.Generator().manual_seed(1)
    with torch.no_grad():
        return float(np.mean([float(net.loss(batch, draws)) for _ in range(times)]))


def test_training_lowers_the_loss_and_others_profit() -> None:
    net, losses = trained(*made(2250), schedule=Schedule(epochs=10))
    assert len(losses) == 10 * 23
    assert np.mean(losses[-23:]) < 0.8 * np.mean(losses[:23])
    assert mean_loss(net, net.inputs(*made(750, seed=3))) < 0.5, (
        "amplitude and duration alone explain more than half of made-up saccades"
    )


def test_the_printed_minus_would_have_no_minimum() -> None:
    # with minus the divergence the loss falls without end as the means grow
    net = network(Layers(), np.zeros(POINTS), 100.0)
    far = torch.full((1, 64), 1e3)
    assert float(-kl_divergence(far, torch.zeros(1, 64))) < -1e6
    assert mean_loss(net, net.inputs(*made(10)), 1) > 0


def test_a_seed_repeats_training() -> None:
    one, two, other = (
        trained(*made(400), schedule=Schedule(epochs=2, seed=s))[0] for s in (1, 1, 2)
    )
    z = np.zeros((3, 64))
    about = (np.array([5.0, 10, 15]), np.full(3, 0.05), np.zeros(3))
    np.testing.assert_array_equal(one.decode(z, *about), two.decode(z, *about))
    assert not np.array_equal(one.decode(z, *about), other.decode(z, *about))


def test_a_linear_encoder_comes_to_probabilistic_pca() -> None:
    rng = np.random.default_rng(1)
    n, latent, unit = 4000, 2, 100.0
    loading = np.linalg.qr(rng.normal(size=(POINTS, latent)))[0] * np.array([6.0, 4.0])
    speeds = rng.normal(size=(n, latent)) @ loading.T + 0.7 * rng.normal(size=(n, POINTS))
    profiles = 500.0 + 15.0 * speeds
    # mean squared error times `weight` is the likelihood of noise with variance 30 / (2 weight) in
    # units of the profiles' own deviation
    spread = float(np.sqrt(((profiles - profiles.mean(axis=0)) ** 2).mean()))
    noise = (0.7 * 15.0 / spread) ** 2
    layers = Layers(
        hidden=16,
        latent=latent,
        decoder=16,
        identity=False,
        linear=True,
        weight=POINTS / (2 * noise),
    )
    about = (np.full(n, 5.0), np.full(n, 0.05), np.zeros(n))
    net, _ = trained(
        profiles,
        *about,
        layers=layers,
        schedule=Schedule(learning_rate=0.005, batch=200, epochs=60),
    )
    got = mean_loss(net, net.inputs(profiles, *about))
    x = (profiles - profiles.mean(axis=0)) / spread
    values = np.linalg.eigvalsh(np.cov(x.T, bias=True))[::-1]
    # the least of squares / (2 s**2) + KL over encoders and decoders: - ln p up to the constant
    # (30/2) ln(2 pi s**2)
    strength = np.maximum(values[:latent], noise)
    want = 0.5 * (latent + np.log(strength / noise).sum() + values[latent:].sum() / noise)
    assert got == pytest.approx(want, rel=0.01)
    assert got >= want * (1 - 1e-4), "nothing is better than the optimum"
    assert unit > 0


def test_decoded_profiles_are_speeds() -> None:
    net, _ = trained(*made(2000), schedule=Schedule(epochs=5))
    data = made(50, seed=4)
    mean, spread = net.encode(*data)
    assert mean.shape == spread.shape == (50, 64)
    assert (spread > 0).all()
    profiles = net.decode(mean, *data[1:])
    assert profiles.shape == (50, POINTS)
    assert (profiles >= 0).all()
    assert np.corrcoef(profiles.max(axis=1), data[0].max(axis=1))[0, 1] > 0.8


def test_people_are_split_whole_and_too_few_are_refused() -> None:
    who = np.repeat([f"p{i}" for i in range(8)], 10)
    training = split_by_person(who, 0.75, 1)
    assert training.sum() == 60
    assert not set(who[training]) & set(who[~training])
    with pytest.raises(DataError, match="at least two people"):
        split_by_person(["a", "a"], 0.75, 1)


def test_nothing_to_train_on_bad_sizes_and_no_torch_are_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(DataError, match="at least one saccade"):
        trained(*made(0))
    for bad in ({"hidden": 0}, {"latent": -1}, {"weight": 0.0}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            Layers(**bad)
    with pytest.raises(ParameterError, match="batch"):
        Schedule(batch=0)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[deep\]"):
        network(Layers(), np.zeros(POINTS), 1.0)


@pytest.mark.parametrize("generator", ["cvae", "cvae-32"])
@pytest.mark.parametrize(
    "reading", ["corrected", pytest.param("published", marks=pytest.mark.heavy)]
)
def test_the_mechanism_draws_saccades_by_the_network(reading: str, generator: str) -> None:
    from gazeveil.privacy.synthesis.events_pd.audit import sessions

    cohort = Cohort(list(sessions(np.random.default_rng(1), people=6, events=20)[0]))
    release = EventSynthPD(3, 2, generator=generator, reading=reading).release(cohort, seed=1)
    notes = release.curator_notes
    assert notes["saccades"] > 50
    assert sum(r.valid.sum() for r in release.data) > 0
    if reading == "published":
        assert notes["saccades"] - notes["saccades_dropped"] > 0


# --- the benchmark and the study file
# ------------------------------------------------------------------------------------------------


ALONE = """
import runpy, sys
class Bare:
    def find_spec(self, name, path=None, target=None):
        heavy = "polars pyarrow cryptography msgspec dask matplotlib".split()
        if name.split(".")[0] in heavy:
            raise ImportError(name)
sys.meta_path.insert(0, Bare())
sys.path.insert(0, sys.argv[1])
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0] + "/cvae.py", run_name="__main__")
"""


@pytest.mark.heavy
def test_real_saccades_of_held_out_people() -> None:

    recordings = real_cohort("gazecom")
    parts = {"p": [], "a": [], "t": [], "w": []}
    for r in recordings:
        m = motion(r)
        amplitude, duration = conditions(m.profiles, m.saccades[:, 3] / m.rate_hz)
        for name, values in zip(
            parts, (m.profiles, amplitude, duration, np.full(len(duration), r.person)), strict=True
        ):
            parts[name].append(values)
    profiles, amplitude, duration, who = (np.concatenate(v) for v in parts.values())
    training = split_by_person(who, 0.75, 0)
    arrays = profiles, amplitude, duration, np.zeros(len(who))
    net, _ = trained(*(a[training] for a in arrays), layers=Layers(identity=False))
    held_out = tuple(a[~training] for a in arrays)
    # amplitude and duration explain a good part; in a linear decoder not all of it
    assert mean_loss(net, net.inputs(*held_out)) < 0.8
    # posterior collapse: the network uses none of its latent numbers
    mean, _ = net.encode(*held_out)
    assert (mean.var(axis=0) < 0.01).all()
