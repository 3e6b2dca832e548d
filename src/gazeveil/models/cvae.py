"""The conditional variational autoencoder of David-John et al. 2023 for speed profiles of saccades:
30 speeds and their conditions.

    encoder   30 speeds + conditions -> 32 ReLU -> 64 means and 64 log variances decoder   64 latent
    numbers + conditions -> 96 linear -> 30 speeds loss      mean squared error over the 30 speeds +
    KL( N(mean, variance) || N(0, 1) ) summed over the latent numbers

The conditions are amplitude (in 10 deg), duration (in 50 ms) and, where asked for, identity.
David-John et al. 2023 prints the second term with a minus and calls the first one both a norm and a
mean squared error: with a minus there would be no minimum. Its supplement prints a latent space of
64; the main paper draws 64 outputs of the encoder, 32 means and 32 deviations
(`Layers(latent=32)`).

Speeds are in units of their own root mean square deviation from the training set's mean profile, so
the mean profile has a loss of 1 and David-John et al.'s (2023) printed validation loss of 0.33
would mean a third of the variance. In these units the KL term costs more than any latent number
gains on saccades of real people: the encoder stops using them (posterior collapse), and what is
left is the mean given the conditions. `weight` above 1 makes the squared error count more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.models import torch
from gazeveil.models.training import StepPlan, torch_or_refuse, train_steps

#: Speeds of a profile.
POINTS = 30

#: Speeds beyond this are no eye's, and count as this much.
MOST_DEG_S = 1000.0

#: Units of amplitude and duration as conditions.
AMPLITUDE_DEG, DURATION_S = 10.0, 0.05


@dataclass(frozen=True)
class Layers:
    """Sizes of the network; the defaults are David-John et al.'s (2023).

    Parameters
    ----------
    hidden : int
        Nodes between profile and latent numbers.
    latent : int
        Latent numbers.
    decoder : int
        Nodes, linear, between latent numbers and profile.
    identity : bool
        Whether who made the saccade is a condition.
    linear : bool
        Leave out the ReLU: then the best encoder is that of probabilistic PCA.
    weight : float
        What the mean squared error is multiplied by.
    """

    hidden: int = 32
    latent: int = 64
    decoder: int = 96
    identity: bool = True
    linear: bool = False
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("hidden", "latent", "decoder"):
            checks.count("Layers", name, getattr(self, name))
        checks.positive("Layers", "weight", self.weight)

    @property
    def conditions(self) -> int:
        """How many."""
        return 3 if self.identity else 2


def kl_divergence(mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """KL( N(mean, variance) || N(0, 1) ) of each row, summed over its numbers: (mean**2 + variance
    - 1 - ln variance) / 2.
    """
    return 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(dim=1)


@dataclass(frozen=True)
class Schedule:
    """How to train: Adam's rate, rows of a minibatch, how often all rows are seen, and a seed for
    the first weights, the order of rows and what the loss draws.
    """

    learning_rate: float = 0.01
    batch: int = 100
    epochs: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        checks.count("Schedule", "batch", self.batch)
        checks.count("Schedule", "epochs", self.epochs)


@dataclass(frozen=True, eq=False)
class CVAE:
    """A trained, or at first random, network.

    Parameters
    ----------
    layers : Layers
        Its sizes.
    encoder, decoder : torch.nn.Module
        Its two halves.
    middle : array, shape (30,)
        The mean profile, in deg/s.
    unit_deg_s : float
        One in the network is this much.
    """

    layers: Layers
    encoder: torch.nn.Module = field(repr=False)
    decoder: torch.nn.Module = field(repr=False)
    middle: Floats = field(repr=False)
    unit_deg_s: float

    @property
    def latent(self) -> int:
        """How many latent numbers."""
        return self.layers.latent

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.encoder.parameters()).device

    def parameters(self) -> list[torch.nn.Parameter]:
        """What is trained."""
        return [*self.encoder.parameters(), *self.decoder.parameters()]

    def inputs(
        self, profiles: Floats, amplitude_deg: Floats, duration_s: Floats, identity: Floats
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Speeds and conditions as the network sees them."""
        conditions = [amplitude_deg / AMPLITUDE_DEG, duration_s / DURATION_S] + (
            [identity] if self.layers.identity else []
        )
        speeds = (np.clip(profiles, 0.0, MOST_DEG_S) - self.middle) / self.unit_deg_s
        kind = next(self.encoder.parameters()).dtype
        return tuple(
            torch.as_tensor(a, dtype=kind, device=self.device)
            for a in (speeds, np.column_stack(conditions))
        )  # type: ignore[return-value]

    def laws(self, speeds: torch.Tensor, known: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Means and log variances of the latent numbers."""
        out = self.encoder(torch.cat((speeds, known), dim=1))
        return out[:, : self.latent], out[:, self.latent :].clamp(-20.0, 20.0)

    def loss(self, batch: Sequence[torch.Tensor], draws: torch.Generator) -> torch.Tensor:
        """Mean loss of a batch, its latent numbers drawn."""
        speeds, conditions = batch
        mean, log_variance = self.laws(speeds, conditions)
        z = mean + (0.5 * log_variance).exp() * torch.randn(
            mean.shape, generator=draws, device=mean.device, dtype=mean.dtype
        )
        made = self.decoder(torch.cat((z, conditions), dim=1))
        squares: torch.Tensor = ((made - speeds) ** 2).mean(dim=1)
        return (self.layers.weight * squares + kl_divergence(mean, log_variance)).mean()

    def encode(
        self, profiles: Floats, amplitude_deg: Floats, duration_s: Floats, identity: Floats
    ) -> tuple[Floats, Floats]:
        """Means and standard deviations of the latent numbers of profiles in deg/s, each of shape
        (saccades, latent).
        """
        with torch.no_grad():
            mean, log_variance = self.laws(
                *self.inputs(profiles, amplitude_deg, duration_s, identity)
            )
        return mean.double().cpu().numpy(), (0.5 * log_variance).exp().double().cpu().numpy()

    def decode(
        self, latent: Floats, amplitude_deg: Floats, duration_s: Floats, identity: Floats
    ) -> Floats:
        """Profiles in deg/s, shape (saccades, 30); where the network would go backwards they stand
        still.
        """
        cond = self.inputs(np.zeros((len(latent), POINTS)), amplitude_deg, duration_s, identity)[1]
        with torch.no_grad():
            made = self.decoder(
                torch.cat(
                    (torch.as_tensor(latent, dtype=cond.dtype, device=self.device), cond), dim=1
                )
            )
        return np.maximum(made.double().cpu().numpy() * self.unit_deg_s + self.middle, 0.0)


def network(
    layers: Layers, middle: Floats, unit_deg_s: float, seed: int = 0, device: str = "cpu"
) -> CVAE:
    """A network with random weights.

    Raises
    ------
    MissingExtraError
        Without torch.
    """
    torch_or_refuse()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first, second = (
            torch.nn.Linear(POINTS + layers.conditions, layers.hidden),
            torch.nn.Linear(layers.hidden, 2 * layers.latent),
        )
        encoder = (
            torch.nn.Sequential(first, second)
            if layers.linear
            else torch.nn.Sequential(first, torch.nn.ReLU(), second)
        )
        decoder = torch.nn.Sequential(
            torch.nn.Linear(layers.latent + layers.conditions, layers.decoder),
            torch.nn.Linear(layers.decoder, POINTS),
        )
    return CVAE(layers, encoder.to(device), decoder.to(device), middle, unit_deg_s)


def trained(
    profiles: Floats,
    amplitude_deg: Floats,
    duration_s: Floats,
    identity: Floats,
    layers: Layers | None = None,
    schedule: Schedule | None = None,
    device: str = "cpu",
) -> tuple[CVAE, tuple[float, ...]]:
    """Train the network.

    Parameters
    ----------
    profiles : array, shape (saccades, 30)
        Speeds in deg/s.
    amplitude_deg, duration_s, identity : arrays, shape (saccades,)
        The conditions; identity as any number near 1.
    layers, schedule : optional
        David-John et al.'s (2023) by default.
    device : str
        As torch names it.

    Returns
    -------
    CVAE, tuple of float
        The network and the loss of every minibatch.

    Raises
    ------
    DataError
        Without a saccade to train on.
    MissingExtraError
        Without torch.
    """
    torch_or_refuse()
    count = len(profiles)
    if count == 0:
        raise DataError(
            "The C-VAE needs at least one saccade to train on. Use generator='ppca', or recordings"
            " with saccades."
        )
    speeds = np.clip(profiles, 0.0, MOST_DEG_S)
    middle = speeds.mean(axis=0)
    unit = max(float(np.sqrt(((speeds - middle) ** 2).mean())), 1e-6)
    how = schedule if schedule is not None else Schedule()
    net = network(layers if layers is not None else Layers(), middle, unit, how.seed, device)
    rows = net.inputs(profiles, amplitude_deg, duration_s, identity)
    left = torch.empty(0, dtype=torch.int64)

    def loss(draws: torch.Generator) -> torch.Tensor:
        nonlocal left
        if len(left) == 0:
            left = torch.randperm(count, generator=draws, device=rows[0].device)
        picked, left = left[: how.batch], left[how.batch :]
        return net.loss([r[picked] for r in rows], draws)

    steps = how.epochs * -(-count // how.batch)
    plan = StepPlan(steps, how.learning_rate, how.seed, falls=(1, 1.0))
    return net, train_steps(torch.nn.ModuleList([net.encoder, net.decoder]), loss, plan)
