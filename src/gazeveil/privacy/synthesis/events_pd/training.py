"""What event-synth-pd learns from all people together before it draws anything: the generator of
saccades, and the middles and units of events' numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.randomness.rng import Source, Words
from gazeveil.privacy.synthesis.events_pd.plans import Coding, fixation_numbers, saccade_numbers
from gazeveil.privacy.synthesis.events_pd.saccade_models import (
    CLIP,
    PPCA,
    Generator,
    conditions,
    fitted,
    moments,
    private_moments,
)
from gazeveil.privacy.synthesis.motion import Motion


def by_content(motions: Mapping[RecordingKey, Motion]) -> list[str]:
    """People in an order that has nothing to do with their names: exchange two people's recordings,
    and the order of the recordings stays.
    """
    return sorted({key[0] for key in motions}, key=lambda person: _content(motions, person))


def _content(motions: Mapping[RecordingKey, Motion], person: str) -> bytes:
    """A fingerprint of everything a person did, without the name."""
    digest = hashlib.sha256()
    for key in sorted(k for k in motions if k[0] == person):
        m = motions[key]
        # Rates, lengths and spaces too: they are averaged in this order, and the last digit of a
        # mean depends on it.
        digest.update(
            "\x1f".join((*key[1:], repr(m.space), repr(m.rate_hz), str(m.samples))).encode()
        )
        for values in (m.fixations, m.saccades, m.profiles, m.onset):
            digest.update(values.tobytes())
    return digest.digest()


def saccades(
    motions: Mapping[RecordingKey, Motion], people: Sequence[str]
) -> tuple[Floats, Floats, Floats, Ints]:
    """Profiles, amplitudes and durations of all saccades, one person's after another's, and where
    each person's begin.

    Returns
    -------
    profiles_deg_s : array, shape (saccades, 30)
    amplitude_deg, duration_s : arrays, shape (saccades,)
    starts : array of int64, shape (people + 1,)
    """
    ordered = [
        [motions[key] for key in sorted(k for k in motions if k[0] == person)] for person in people
    ]
    flat = [m for mine in ordered for m in mine if len(m.saccades)]
    starts = np.concatenate(
        ([0], np.cumsum([sum(len(m.saccades) for m in mine) for mine in ordered]))
    ).astype(np.int64)
    if not flat:
        return np.empty((0, 30)), np.empty(0), np.empty(0), starts
    about = [conditions(m.profiles, m.saccades[:, 3] / m.rate_hz) for m in flat]
    return (
        np.concatenate([m.profiles for m in flat]),
        np.concatenate([a for a, _ in about]),
        np.concatenate([t for _, t in about]),
        starts,
    )


def closed_form(
    motions: Mapping[RecordingKey, Motion],
    people: Sequence[str],
    rho: Fraction | None,
    source: Source,
) -> tuple[PPCA, Fraction]:
    """Probabilistic PCA of all saccades, with a budget or without, and what finite arithmetic adds
    to delta.
    """
    profiles, amplitude, duration, starts = saccades(motions, people)
    if rho is None:
        return fitted(moments(profiles, amplitude, duration, starts)), Fraction(0)
    noisy, delta_num = private_moments(
        moments(profiles, amplitude, duration, starts, CLIP), len(people), rho, Words(source)
    )
    return fitted(noisy), delta_num


def network(
    motions: Mapping[RecordingKey, Motion],
    people: Sequence[str],
    identity: Mapping[str, float] | None,
    source: Source,
) -> Generator:
    """David-John et al.'s (2023) C-VAE of all saccades; `identity` gives the number that stands for
    a person, None leaves it out.

    Raises
    ------
    DataError
        If there is no saccade.
    MissingExtraError
        Without torch.
    """
    from gazeveil.models.cvae import Layers, trained
    from gazeveil.models.train import Schedule

    profiles, amplitude, duration, starts = saccades(motions, people)
    who = np.repeat([0.0 if identity is None else identity[p] for p in people], np.diff(starts))
    # Training needs no secret, only a start that changes from release to release.
    seed = int(source.take(1)[0] >> np.uint64(33))
    return trained(
        profiles,
        amplitude,
        duration,
        who,
        layers=Layers(identity=identity is not None),
        schedule=Schedule(seed=seed),
    )[0]


def coding(
    generator: Generator,
    motions: Mapping[RecordingKey, Motion],
    people: Sequence[str],
    public: bool,
) -> Coding:
    """Middles and units of events' numbers: those of all events together, or the public ones."""
    ordered = [
        motions[key]
        for person in people
        for key in sorted(k for k in motions if k[0] == person)
        if motions[key].rate_hz > 0
    ]
    looks = np.concatenate([fixation_numbers(m) for m in ordered] or [np.empty((0, 3))])
    moves = np.concatenate([saccade_numbers(m) for m in ordered] or [np.empty((0, 2))])
    if public or len(looks) < 2 or len(moves) < 2:
        return Coding(generator, 1.0)
    # A unit of at least 0.1 keeps events of one and the same length apart by no more than what is
    # told apart anyhow.
    return Coding(
        generator,
        1.0,
        looks.mean(axis=0),
        np.maximum(looks.std(axis=0), 0.1),
        moves.mean(axis=0),
        np.maximum(moves.std(axis=0), 0.1),
    )
