"""event-synth-PD as printed (davidjohn2023, 2.2): every event is replaced by one that its own
parameters generate, once enough other people could have.

For each stimulus, person and event, in up to a number of attempts (the paper has no limit, and
would not end):

* a fixation's samples are t draws of N(mu, diag sigma**2). The test asks all fixations of all other
  people at that stimulus; how many samples those have is ignored, as in the paper.
* a saccade's latent numbers are drawn from the normals its profile is encoded to, and decoded with
  its own amplitude, duration and person. The test asks all saccades of the others at that
  stimulus, by the latent normals; or each other person's histograms of speeds,
  whose bin probabilities are *summed* over the steps (main paper).

Order, gaps, durations and the number of events are the person's own. On a sphere angles along x
count by the sine of y, and the surroundings of a fixation are taken as flat. A saccade whose
fixation before or after it was dropped has no line to go along, and is dropped too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.geometry import LAST_Y_DEG, Sphere, wrap_x
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.randomness.rng import Source, Words
from gazeveil.privacy.synthesis.events_pd.coding import SyntheticRecording
from gazeveil.privacy.synthesis.events_pd.published_test import (
    Latents,
    PublishedTest,
    all_events,
    draw_latents,
    fixation_means,
    pool,
)
from gazeveil.privacy.synthesis.events_pd.saccade_models import (
    Generator,
    conditions,
    speed_histograms,
    summed_probability,
)
from gazeveil.privacy.synthesis.events_pd.seeds import plausible_counts
from gazeveil.privacy.synthesis.motion import Motion
from gazeveil.privacy.synthesis.rendering import normals


def published_plans(
    motions: Mapping[RecordingKey, Motion],
    identity: Mapping[str, float],
    generator: Generator,
    test: PublishedTest,
    by_histograms: bool,
    release_failed: bool,
    source: Callable[[RecordingKey], Source],
) -> tuple[dict[RecordingKey, SyntheticRecording], dict[str, int]]:
    """Each recording with its events replaced, and counts: fixations, saccades, those that failed
    the test, those dropped, attempts.

    Parameters
    ----------
    motions : mapping
        Recordings as events; those of unknown rate have none.
    identity : mapping of person to float
        The number that stands for a person in the generator's conditions.
    generator : Generator
        Of saccades.
    test : PublishedTest
        Of each event.
    by_histograms : bool
        Test saccades by each person's histograms of speeds instead of latent normals.
    release_failed : bool
        Release the last attempt of an event that never passed instead of dropping it.
    source : callable
        Random words of a recording.
    """
    names = {person: i for i, person in enumerate(sorted({key[0] for key in motions}))}
    histograms = _histograms(motions, names) if by_histograms else None
    notes = dict.fromkeys(
        (
            "fixations",
            "fixations_dropped",
            "saccades",
            "saccades_failed",
            "saccades_dropped",
            "attempts",
        ),
        0,
    )
    plans = {}
    for about in sorted({key[1:] for key in motions}):
        keys = [key for key in motions if key[1:] == about]
        here = [motions[key] for key in keys]
        fixations = pool(here)
        codes = [
            _encoded(m, identity[key[0]], generator) for key, m in zip(keys, here, strict=True)
        ]
        asked = Latents.of(codes, [names[key[0]] for key in keys]).asked()
        for i, key in enumerate(keys):
            m, bits = here[i], source(key)
            sphere = isinstance(m.space, Sphere)
            means, looks, tried = fixation_means(
                m.fixations, i, fixations, len(keys), sphere, test, bits
            )
            amplitude, duration = conditions(m.profiles, m.saccades[:, 3] / m.rate_hz)
            who = np.full(len(duration), identity[key[0]])
            own = Latents.of([codes[i]], [names[key[0]]])
            if histograms is None:
                draw = partial(draw_latents, own, asked, test)
                z, moves, more = all_events(np.empty_like(own.mean), len(names), draw, bits)
            else:
                z, moves, more = _by_histograms(
                    own, generator, (amplitude, duration, who), histograms, test, bits
                )
            failed = int((~moves).sum())
            if release_failed:
                looks, moves = np.ones_like(looks), np.ones_like(moves)
            plan, dropped = _framed(
                m, means, looks, generator.decode(z, amplitude, duration, who), moves
            )
            plans[key] = plan
            for name, count in (
                ("fixations", len(looks)),
                ("fixations_dropped", int((~looks).sum())),
                ("saccades", len(moves)),
                ("saccades_failed", failed),
                ("saccades_dropped", dropped),
                ("attempts", tried + more),
            ):
                notes[name] += count
    return plans, notes


def _encoded(m: Motion, who: float, generator: Generator) -> tuple[Floats, Floats]:
    amplitude, duration = conditions(m.profiles, m.saccades[:, 3] / m.rate_hz)
    return generator.encode(m.profiles, amplitude, duration, np.full(len(duration), who))


def _histograms(motions: Mapping[RecordingKey, Motion], names: Mapping[str, int]) -> Floats:
    profiles = [
        np.concatenate(
            [m.profiles for key, m in motions.items() if key[0] == person] or [np.empty((0, 30))]
        )
        for person in names
    ]
    return speed_histograms(
        np.concatenate(profiles),
        np.concatenate(([0], np.cumsum([len(p) for p in profiles]))).astype(np.int64),
    )


def _by_histograms(
    own: Latents,
    generator: Generator,
    about: tuple[Floats, Floats, Floats],
    histograms: Floats,
    test: PublishedTest,
    bits: Source,
) -> tuple[Floats, Bools, int]:
    """Latent numbers under the test by summed bin probabilities, all saccades of a recording at a
    time.
    """
    z, passed, tried = own.mean.copy(), np.zeros(len(own.mean), dtype=np.bool_), 0
    words = Words(bits)
    for _ in range(test.attempts):
        left = np.flatnonzero(~passed)
        if len(left) == 0:
            break
        tried += len(left)
        z[left] = own.mean[left] + own.spread[left] * normals(z[left].size, words).reshape(
            z[left].shape
        )
        made = generator.decode(z[left], *(a[left] for a in about))
        with np.errstate(divide="ignore"):
            log_p = np.log(summed_probability(histograms, made))
        counts = plausible_counts(log_p, own.person[left], test.width)
        passed[left] = counts > test.others
    return z, passed, tried


def _framed(
    m: Motion, means: Floats, looks: Bools, profiles: Floats, moves: Bools
) -> tuple[SyntheticRecording, int]:
    """Synthetic events in a person's own frame, and how many saccades were dropped."""
    kept = np.zeros(len(m), dtype=np.bool_)
    kept[m.is_fixation] = looks
    if len(m):
        # A saccade goes from the fixation before it to the one after it, and needs both.
        place = np.cumsum(m.is_fixation)[~m.is_fixation]
        before, after = np.maximum(place - 1, 0), np.minimum(place, len(looks) - 1)
        between = (place > 0) & (place < len(looks))
        moves = (
            moves & between & looks[before] & looks[after] if len(looks) else np.zeros_like(moves)
        )
    kept[~m.is_fixation] = moves
    x, y = means[:, 0], means[:, 1]
    if isinstance(m.space, Sphere):
        x, y = wrap_x(x), np.clip(y, 0.0, LAST_Y_DEG)
    fixations = np.column_stack((x, y, means[:, 2:], m.fixations[:, 4]))[looks]
    made = Motion(
        m.space,
        m.rate_hz,
        m.samples,
        fixations,
        m.saccades[moves],
        m.is_fixation[kept],
        m.onset[kept],
    )
    return SyntheticRecording(made, np.maximum(profiles[moves], 0.0)), int((~moves).sum())
