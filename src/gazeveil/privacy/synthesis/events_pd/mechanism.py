"""event-synth-pd: recordings of synthetic events, each of which several people could have been the
seed of (David-John et al. 2023 and its supplement, section 2.2).

`published`: each fixation and saccade of a person is replaced by one that its own parameters
generate, as soon as k - 1 other people have an event that gives it a probability in the same cell
of powers of gamma (:mod:`gazeveil.privacy.synthesis.events_pd.published`); a stimulus that one
person saw is left out. Refuted: the deniers
change from event to event, and everything a person does together tells who it is.

`corrected`, for stimuli that at least k people saw:

1. every event of every synthetic recording has a fresh seed: a random person of all who saw the
   stimulus, so no name is tied to anybody;
2. the event is the seed's parameters with noise of a public size, so that the densities of
   different people overlap; durations are among the parameters;
3. it is kept if at least k people are plausible, with a random threshold above that, else drawn
   anew, in up to `attempts` attempts (:mod:`gazeveil.privacy.synthesis.events_pd.coding`);
   one that never passes is lost time;
4. samples are drawn from the parameters, saccades by the generator of
   :mod:`gazeveil.privacy.synthesis.events_pd.saccade_models`, in one space, at one rate and to one
   length for all recordings of the stimulus: a person's own rate and length are as good as their
   name, since hardly anybody shares them.

The corrected reading of event-synth-pd: what it learns from all people together (the generator
of saccades, the middles and units of events' numbers), and what it draws for each stimulus, session
and task.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, NoReturn

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.events import METHODS
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.noise.exact import laplace_scale
from gazeveil.privacy.randomness.rng import ASSUMPTION, Source, source
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.synthesis.events_pd.coding import (
    PLACE_SHARE,
    Coding,
    Drawn,
    SyntheticRecording,
    draw,
    fixation_numbers,
    saccade_numbers,
)
from gazeveil.privacy.synthesis.events_pd.published import PublishedTest, published_plans
from gazeveil.privacy.synthesis.events_pd.saccade_models import (
    PPCA,
    Generator,
    conditions,
    fitted,
    moments,
)
from gazeveil.privacy.synthesis.events_pd.seeds import Rule, cell_width
from gazeveil.privacy.synthesis.ksame.mechanism import (
    Cell,
    Frame,
    common_frame,
    enough_people,
    one_kind_of_space,
    unknown_rates,
)
from gazeveil.privacy.synthesis.motion import Motion, drawn_recordings, motion
from gazeveil.privacy.tables.ksame import fewest_sharing

_REFUTED = (
    "it speaks of one event at a time. Each released event has k - 1 other people with a"
    " probability within gamma, but not the same people each time, so the events of a person"
    " together single them out (0.7 of 20 people are found from 60 events where 1/k is 0.25);"
    " besides, the test has a fixed threshold, and durations, order, gaps and number of events are"
    " the person's own"
)

_NOT_COVERED = (
    "who took part, and which recordings each name has",
    (
        "what all recordings of a stimulus share: rate and space, the means of those who saw it,"
        " and length, that of the k-th longest"
    ),
    (
        "what people did: a synthetic event lies near one of somebody's, though at least k people"
        " could be that one"
    ),
    "a second release about the same people",
    "somebody who knows everybody else's raw data: there is no differential privacy",
)

_ASSUMPTIONS = (
    "who has which recordings is public",
    "the release is the only one made about these people",
    ASSUMPTION,
)


def published_guarantee(mechanism: EventSynthPD) -> Guarantee:
    """Deniability of single events, refuted."""
    released = mechanism.failed == "release"
    failed = "events that never passed, which are released all the same" if released else "lengths"
    return Guarantee(
        "plausible-deniability",
        counts={"k": Fraction(mechanism.k), "gamma": Fraction(mechanism.gamma)},
        alike="event",
        mechanism=mechanism.title,
        not_covered=("the attributes of people", failed),
        status="refuted",
        reason=_REFUTED,
    )


def crowd_guarantee(mechanism: EventSynthPD) -> Guarantee:
    """No name is tied to anybody."""
    return Guarantee(
        "plausible-deniability",
        counts={"k": Fraction(mechanism.k), "gamma": Fraction(1)},
        alike="seed",
        mechanism=mechanism.title,
        assumptions=_ASSUMPTIONS,
        not_covered=_NOT_COVERED,
        reason="proofs/event-synth-pd.md",
    )


#: Generators of saccades; forms of a saccade's probability; what becomes of events that never pass;
#: detectors.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "generator": ("ppca", "cvae", "cvae-32"),
    "probability": ("latent", "histogram"),
    "failed": ("drop", "release"),
    "detector": tuple(METHODS),
}


#: What is chosen where nothing is given, by reading.
_DEFAULTS = {
    "published": {"generator": "cvae", "failed": "release", "detector": "is5t"},
    "corrected": {"generator": "ppca", "failed": "drop", "detector": "ivt"},
}


@dataclass(frozen=True)
class EventSynthPD(Mechanism[Cohort]):
    """Replace recordings by synthetic events that pass a test of plausible deniability.

    Parameters
    ----------
    k : int
        People who must be plausible as the seed, that one among them; at least 2.
    gamma : number
        How many times as probable one may be as another, at least 1; with 1 nothing but equal
        probabilities pass.
    epsilon0 : number
        One over the scale of the threshold's noise; `corrected` alone.
    attempts : int
        Most attempts for one event.
    generator : str, optional
        Of saccades: `ppca`, or `cvae` (David-John et al.'s (2023) network with the 64 latent
        numbers that the supplement prints, needs torch) or `cvae-32` (with the 32 of the main
        paper's drawing). By default `cvae` in `published` and `ppca` in `corrected`.
    probability : str
        Of a saccade: `latent` normals (David-John et al. 2023), or summed bins of each person's
        speeds, `histogram` (main paper; `published` alone).
    place_deg : float, optional
        Noise of places, `corrected` alone; by default 5 % of the smaller extent of screen or sphere
        (9 degrees on a sphere).
    window_s : float
        How far in time a seed may lie from the event it seeds; `corrected` alone.
    failed : str, optional
        What becomes of an event that never passed in `published`: `release` its last attempt all
        the same, the default there, because the printed loop writes every event and never ends
        without one; or `drop` it. `corrected` always drops it.
    detector : str, optional
        Which detector finds the events (:func:`gazeveil.detect`); other events than fixations and
        saccades are lost time. By default `is5t` in `published`, as David-John et al. 2023 has it,
        and `ivt` in `corrected`.
    reading : str
        `corrected` or `published`.

    Examples
    --------
    >>> EventSynthPD(4, 2).claim.status, EventSynthPD(4, 2, reading="published").claim.status
    ('proved', 'refuted')
    """

    k: int
    gamma: Number
    epsilon0: Number = 1
    attempts: int = 100
    generator: str | None = None
    probability: str = "latent"
    place_deg: float | None = None
    window_s: float = 10.0
    failed: str | None = None
    detector: str | None = None

    name: ClassVar[str] = "event-synth-pd"
    label: ClassVar[str] = "event-synth-PD"
    summary: ClassVar[str] = "Releases synthetic events that k people could have made."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "cohort"
    noise_unit: ClassVar[str] = "fit"
    paper: ClassVar[str] = (
        "David-John et al., Privacy-preserving datasets of eye-tracking samples (2023)"
    )
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "plausible-deniability",
            "user",
            "proved",
            "no name is tied to anybody; each event has k plausible seeds",
        ),
        "published": Claim(
            "plausible-deniability",
            "user",
            "refuted",
            "holds for single events, and their deniers change",
        ),
    }

    def check(self) -> None:
        """Check every parameter, and that the reading has it."""
        for name, default in _DEFAULTS[self.reading].items():
            if getattr(self, name) is None:
                self.store(name, default)
        for name, least in (("k", 2), ("attempts", 1)):
            self.store(name, checks.count(self.name, name, getattr(self, name), least=least))
        self.store("gamma", exact(self.name, "gamma", self.gamma, least=1))
        self.store("epsilon0", exact(self.name, "epsilon0", self.epsilon0, above=0))
        for name, choices in CHOICES.items():
            checks.one_of(self.name, name, getattr(self, name), choices)
        if self.place_deg is not None:
            self.store("place_deg", checks.positive(self.name, "place_deg", self.place_deg))
        self.store("window_s", checks.positive(self.name, "window_s", self.window_s))
        if self.reading == "published":
            if self.place_deg is not None:
                self._refuse_here("place_deg", "left out", "corrected")
            return
        for name, default in (("probability", "latent"), ("failed", "drop")):
            if getattr(self, name) != default:
                self._refuse_here(name, default, "published")

    def _refuse_here(self, name: str, allowed: str, instead: str) -> NoReturn:
        wanted = f"{allowed} in the {self.reading} reading"
        checks.refuse(self.name, name, wanted, getattr(self, name), f"Use reading='{instead}'.")

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        """Synthesise a cohort; see :class:`Mechanism`.

        Recordings are held one at a time, their events all together. In `corrected` all recordings
        of a stimulus, session and task have one space, rate and length, and none is released where
        fewer than k people have one of known rate; in `published` each keeps its own. Samples of
        recordings that are not loaded yet are drawn each time they are looked at, the same each
        time.

        Raises
        ------
        ParameterError
            For anything but a Cohort.
        DataError
            For fewer than k people, a sphere and a screen under one stimulus, or in `corrected`
            nothing that k people have.
        MissingExtraError
            For generator='cvae' without torch.
        """
        enough_people(self.name, data, self.k)
        motions = {r.key: motion(r, self.detector or "ivt") for r in data}
        one_kind_of_space((key, m.space) for key, m in motions.items())
        published = self.reading == "published"
        make = self._published if published else self._corrected
        plans, notes, guarantee = make(motions, seed)
        # Sorted, because the order in which recordings were given may tell whose they are.
        draws = {
            key: (plans[key].motion, plans[key].samples)
            for key in ((k for k in motions if k in plans) if published else sorted(plans))
        }
        lazy = any(isinstance(item, Handle) for item in data.items)
        out = Cohort(
            drawn_recordings(draws, seed, (self.name, "samples"), lazy),
            data.people if published else {},
            name=data.name,
            read_as=data.read_as,
        )
        return self.released(out, guarantee, seed, notes)

    # --- published
    # ----------------------------------------------------------------------------------------------

    def _published(
        self, motions: Mapping[RecordingKey, Motion], seed: int | None
    ) -> tuple[dict[RecordingKey, SyntheticRecording], dict[str, int], Guarantee]:
        cells = Counter(key[1:] for key in motions)
        sharing = fewest_sharing(self.name, cells.values(), self.k)
        alone = [key for key in motions if cells[key[1:]] == 1]
        motions = {key: m for key, m in motions.items() if cells[key[1:]] > 1}
        names = sorted({key[0] for key in motions})
        identity = {person: i / len(names) for i, person in enumerate(names)}
        generator = self._generator(motions, names, identity, seed)
        plans, counts = published_plans(
            motions,
            identity,
            generator,
            PublishedTest(self.k - 1, cell_width(self.gamma), self.attempts),
            self.probability == "histogram",
            self.failed == "release",
            lambda key: source(seed, self.name, "events", *key),
        )
        notes = {**counts, **sharing, "suppressed": len(alone)}
        return plans, notes, published_guarantee(self)

    # --- corrected
    # ----------------------------------------------------------------------------------------------

    def _corrected(
        self, motions: Mapping[RecordingKey, Motion], seed: int | None
    ) -> tuple[dict[RecordingKey, SyntheticRecording], dict[str, int], Guarantee]:
        people = by_content(motions)
        generator = self._generator(motions, people, None, seed)
        t, s = laplace_scale(1 / Fraction(self.epsilon0))
        rule = Rule(
            self.k, cell_width(self.gamma), np.uint64(t), np.uint64(s), self.attempts, self.window_s
        )
        drawn = corrected_plans(
            motions,
            people,
            coding(generator, motions, people),
            rule,
            self.place_deg,
            lambda key: source(seed, self.name, "events", *key),
        )
        if not drawn.frames:
            raise DataError(
                f"No stimulus, session and task has recordings of {self.k} people whose rate is"
                " known. Choose a smaller k, or give recordings that belong together the same"
                " names. Nothing was released."
            )
        return drawn.plans, drawn.notes(motions, self.k), crowd_guarantee(self)

    def _generator(
        self,
        motions: Mapping[RecordingKey, Motion],
        people: Sequence[str],
        identity: Mapping[str, float] | None,
        seed: int | None,
    ) -> Generator:
        """The generator of saccades."""
        if self.generator == "ppca":
            return closed_form(motions, people)
        return network(
            motions,
            people,
            identity,
            source(seed, self.name, "training"),
            32 if self.generator == "cvae-32" else 64,
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.synthesis.events_pd.audit import event_synth_pd

        return event_synth_pd(self, unit)


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


def closed_form(motions: Mapping[RecordingKey, Motion], people: Sequence[str]) -> PPCA:
    """Probabilistic PCA of all saccades."""
    return fitted(moments(*saccades(motions, people)))


def network(
    motions: Mapping[RecordingKey, Motion],
    people: Sequence[str],
    identity: Mapping[str, float] | None,
    source: Source,
    latent: int,
) -> Generator:
    """David-John et al.'s (2023) C-VAE of all saccades, with `latent` numbers; `identity` gives the
    number that stands for a person, None leaves it out.

    Raises
    ------
    DataError
        If there is no saccade.
    MissingExtraError
        Without torch.
    """
    from gazeveil.models.cvae import Layers, Schedule, trained

    profiles, amplitude, duration, starts = saccades(motions, people)
    who = np.repeat([0.0 if identity is None else identity[p] for p in people], np.diff(starts))
    # Training needs no secret, only a start that changes from release to release.
    seed = int(source.take(1)[0] >> np.uint64(33))
    return trained(
        profiles,
        amplitude,
        duration,
        who,
        layers=Layers(identity=identity is not None, latent=latent),
        schedule=Schedule(seed=seed),
    )[0]


def coding(
    generator: Generator, motions: Mapping[RecordingKey, Motion], people: Sequence[str]
) -> Coding:
    """Middles and units of events' numbers: those of all events together, or the public ones where
    there are hardly any.
    """
    ordered = [
        motions[key]
        for person in people
        for key in sorted(k for k in motions if k[0] == person)
        if motions[key].rate_hz > 0
    ]
    looks = np.concatenate([fixation_numbers(m) for m in ordered] or [np.empty((0, 3))])
    moves = np.concatenate([saccade_numbers(m) for m in ordered] or [np.empty((0, 2))])
    if len(looks) < 2 or len(moves) < 2:
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


@dataclass(frozen=True, eq=False)
class CorrectedPlans:
    """What was drawn.

    Parameters
    ----------
    plans : mapping
        Synthetic recordings.
    drawn : list of Drawn
        Events of each of them.
    frames : mapping
        What the recordings of each stimulus, session and task have in common; those that fewer than
        k people have are left out.
    """

    plans: dict[RecordingKey, SyntheticRecording]
    drawn: list[Drawn]
    frames: dict[Cell, Frame]

    def notes(self, motions: Mapping[RecordingKey, Motion], k: int) -> dict[str, int]:
        """Counts for the curator."""
        cells = Counter(key[1:] for key in self.plans if motions[key].rate_hz > 0)
        counts: dict[str, int] = {}
        for kind in ("fixations", "saccades"):
            rows = [getattr(d, kind) for d in self.drawn]
            counts[kind] = sum(map(len, rows))
            counts[f"{kind}_dropped"] = sum(int(np.isnan(r[:, -1]).sum()) for r in rows)
        return {
            **counts,
            **fewest_sharing("event-synth-pd", cells.values(), k),
            "attempts": sum(d.attempts for d in self.drawn),
            "recordings_left_out": sum(key[1:] not in self.frames for key in motions),
            "recordings_of_unknown_rate": unknown_rates(motions),
        }


def corrected_plans(
    motions: Mapping[RecordingKey, Motion],
    people: list[str],
    coding: Coding,
    rule: Rule,
    place_deg: float | None,
    source: Callable[[RecordingKey], Source],
) -> CorrectedPlans:
    """Synthetic recordings of everything that k people have, in an order that has nothing to do
    with their names. Recordings of unknown rate have no events; `source` gives the random words of
    one. Noise of places is `place_deg` wide, by default :data:`PLACE_SHARE` of the space.
    """
    plans: dict[RecordingKey, SyntheticRecording] = {}
    all_drawn: list[Drawn] = []
    frames: dict[Cell, Frame] = {}
    for cell in sorted({key[1:] for key in motions}):
        # 2: in the pool, with or without events; 1: a recording whose rate is not known, which
        # tells nothing about time; 0: none.
        own = [motions.get((person, *cell)) for person in people]
        status = np.array([0 if m is None else 1 + (m.rate_hz > 0) for m in own])
        members = np.flatnonzero(status == 2)
        if len(members) < rule.k:
            continue
        pool = [motions[people[i], *cell] for i in members]
        frames[cell] = frame = common_frame(pool, rule.k)
        extent = min(frame.space.width_deg, frame.space.height_deg)
        coded = replace(coding, place_deg=place_deg or PLACE_SHARE * extent)
        # Every person with a recording is seeded, so that an unknown rate does not show.
        keys = [(people[i], *cell) for i in np.flatnonzero(status)]
        drawn = _draw(coded, keys, pool, frame, rule, source)
        for key, events in zip(keys, drawn, strict=True):
            plans[key] = coded.plan(events, frame.space, frame.rate_hz, frame.samples)
        all_drawn += drawn
    return CorrectedPlans(plans, all_drawn, frames)


def _draw(
    coding: Coding,
    keys: Sequence[RecordingKey],
    pool: Sequence[Motion],
    frame: Frame,
    rule: Rule,
    source: Callable[[RecordingKey], Source],
) -> list[Drawn]:
    """Events of the recordings of one stimulus; compiled code that lets other threads run."""
    records, clock = coding.records(pool), coding.clock(frame.space)

    def events(i: int) -> Drawn:
        return draw(*records, rule, clock, frame.seconds, source(keys[i]))

    # The first one alone, so that code is compiled once and not by all threads at a time.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as threads:
        return [events(0), *threads.map(events, range(1, len(keys)))]
