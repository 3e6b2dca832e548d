"""event-synth-pd: recordings of synthetic events, each of which several people could have been the
seed of (David-John et al. 2023 and its supplement, section 2.2).

`published`: each fixation and saccade of a person is replaced by one that its own parameters
generate, as soon as k - 1 other people have an event that gives it a probability in the same cell
of powers of gamma (:mod:`gazeveil.privacy.synthesis.events_pd.published`). Refuted: the deniers
change from event to event, and everything a person does together tells who it is.

`corrected`, for stimuli that at least k people saw:

1. every event of every synthetic recording has a fresh seed: a random person of all who saw the
   stimulus, so no name is tied to anybody;
2. the event is the seed's parameters with noise of a public size, so that the densities of
   different people overlap; durations are among the parameters;
3. it is kept if at least k people are plausible, with a random threshold above that, else drawn
   anew, in up to `attempts` attempts (:mod:`gazeveil.privacy.synthesis.events_pd.deniable_seeds`);
   one that never passes is lost time;
4. samples are drawn from the parameters, saccades by the generator of
   :mod:`gazeveil.privacy.synthesis.events_pd.saccade_models`, in one space, at one rate and to one
   length for all recordings of the stimulus: a person's own rate and length are as good as their
   name, since hardly anybody shares them.

With `seeds="own"` step 1 is left out: a name's events are seeded by that person alone, and the name
is released only if k people, that one among them, would have given *all* of it with probabilities
within gamma_total: the test for whole sequences, which nearly nobody passes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.events import METHODS
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee, Loss
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.noise.exact import discrete_laplace
from gazeveil.privacy.plausible_deniability import cell_width, charge_attempts, plausible_counts
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.randomness.keys import MasterKey
from gazeveil.privacy.randomness.rng import ASSUMPTION, Source, Words, source
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.synthesis.events_pd.deniable_seeds import Drawn, draw, most_events
from gazeveil.privacy.synthesis.events_pd.plans import PLACE_SHARE, Coding, SyntheticRecording
from gazeveil.privacy.synthesis.events_pd.published import PublishedSynthesis, published_plans
from gazeveil.privacy.synthesis.events_pd.saccade_models import Generator
from gazeveil.privacy.synthesis.events_pd.seeded_events import Rule
from gazeveil.privacy.synthesis.events_pd.training import by_content, closed_form, coding, network
from gazeveil.privacy.synthesis.ksame.groups import (
    Cell,
    Frame,
    Key,
    common_frame,
    one_kind_of_space,
    unknown_rates,
)
from gazeveil.privacy.synthesis.motion import Motion, motion

#: Generators of saccades; forms of a saccade's probability; whom the test asks; whose events are
#: seeds; what becomes of events that never pass.
GENERATORS, PROBABILITIES, OTHERS, SEEDS, FAILED = (
    ("ppca", "cvae"),
    ("latent", "histogram"),
    ("all", "same-index"),
    ("crowd", "own"),
    ("drop", "release"),
)

#: The delta up to which the attempts are charged as differential privacy.
DELTA = Fraction(1, 10**6)


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
)


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
    generator : str
        Of saccades: `ppca`, or `cvae` (David-John et al.'s (2023) network, needs torch).
    probability : str
        Of a saccade: `latent` normals (David-John et al. 2023), or summed bins of each person's
        speeds, `histogram` (main paper; `published` alone).
    others : str
        Whom the test asks. `published`: `all` saccades of others, or those of the `same-index`.
        `corrected`: all events within `window_s` of the synthetic event's time, or each person's
        first from then on.
    seeds : str
        `crowd`, or `own` with the test of whole sequences; `corrected` alone.
    gamma_total : number, optional
        Gamma of the test of whole sequences; `gamma` by default.
    margin : int
        How far the middle of the random threshold lies above k: what makes the tests differentially
        private. `corrected` alone.
    rho : number, optional
        Trains `ppca` with that budget of zero-concentrated differential privacy, and takes public
        middles for all else; `corrected` alone.
    place_deg : float, optional
        Noise of places, `corrected` alone; by default 5 % of the smaller extent of screen or sphere
        (9 degrees on a sphere).
    window_s : float
        How far in time a seed may lie from the event it seeds; `corrected` alone.
    failed : str
        What becomes of an event that never passed in `published`: `drop` it, or `release` its last
        attempt all the same.
    detector : str
        Which detector finds the events (:func:`gazeveil.detect`); other events than fixations and
        saccades are lost time.
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
    generator: str = "ppca"
    probability: str = "latent"
    others: str = "all"
    seeds: str = "crowd"
    gamma_total: Number | None = None
    margin: int = 0
    rho: Number | None = None
    place_deg: float | None = None
    window_s: float = 10.0
    failed: str = "drop"
    detector: str = "ivt"

    name: ClassVar[str] = "event-synth-pd"
    label: ClassVar[str] = "event-synth-PD"
    summary: ClassVar[str] = "Releases synthetic events that k people could have made."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "cohort"
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
        self.store("k", checks.count(self.name, "k", self.k, least=2))
        self.store("gamma", exact(self.name, "gamma", self.gamma, least=1))
        self.store("epsilon0", exact(self.name, "epsilon0", self.epsilon0, above=0))
        self.store("attempts", checks.count(self.name, "attempts", self.attempts))
        self.store("margin", checks.count(self.name, "margin", self.margin, least=0))
        for name, words in (
            ("generator", GENERATORS),
            ("probability", PROBABILITIES),
            ("others", OTHERS),
            ("seeds", SEEDS),
            ("failed", FAILED),
            ("detector", METHODS),
        ):
            checks.one_of(self.name, name, getattr(self, name), words)
        if self.gamma_total is not None:
            self.store("gamma_total", exact(self.name, "gamma_total", self.gamma_total, least=1))
        if self.place_deg is not None:
            self.store("place_deg", checks.positive(self.name, "place_deg", self.place_deg))
        self.store("window_s", checks.positive(self.name, "window_s", self.window_s))
        if self.rho is not None:
            self.store("rho", exact(self.name, "rho", self.rho, above=0))
            if self.generator != "ppca":
                checks.refuse(
                    self.name,
                    "rho",
                    "left out with generator='cvae': only ppca is trained with a budget",
                    self.rho,
                    "Use generator='ppca'.",
                )
        published = self.reading == "published"
        for name, wanted in (
            ("seeds", "crowd"),
            ("rho", None),
            ("margin", 0),
            ("place_deg", None),
            ("gamma_total", None),
        ):
            if published and getattr(self, name) != wanted:
                checks.refuse(
                    self.name,
                    name,
                    "left out in the published reading",
                    getattr(self, name),
                    "Use reading='corrected'.",
                )
        for name, word in (("probability", "latent"), ("failed", "drop")):
            if not published and getattr(self, name) != word:
                checks.refuse(
                    self.name,
                    name,
                    f"{word} in the corrected reading",
                    getattr(self, name),
                    "Use reading='published'.",
                )
        if self.probability == "histogram" and self.others == "same-index":
            checks.refuse(
                self.name,
                "others",
                "all with probability='histogram': a person's histograms have no index",
                self.others,
            )

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
        if not isinstance(data, Cohort):
            checks.refuse(
                self.name,
                "data",
                "a Cohort",
                data,
                "Put recordings into one with gazeveil.Cohort(recordings).",
            )
        people = {key[0] for key in data.keys}
        if len(people) < self.k:
            raise DataError(
                f"{self.name} with k = {self.k} needs at least {self.k} people, and this cohort has"
                f" recordings of {len(people)}. Choose a smaller k. Nothing was released."
            )
        motions = {r.key: motion(r, self.detector) for r in data}
        one_kind_of_space((key, m.space) for key, m in motions.items())
        plans, notes, guarantee = (
            self._published(motions, seed)
            if self.reading == "published"
            else self._corrected(motions, seed)
        )
        lazy = any(isinstance(item, Handle) for item in data.items)
        # Sorted, because the order in which recordings were given may tell whose they are.
        order = motions if self.reading == "published" else sorted(plans)
        out = Cohort(
            _drawn({key: plans[key] for key in order}, seed, lazy),
            data.people if self.reading == "published" else {},
            name=data.name,
        )
        return Release(
            out, guarantee.tested() if seed is not None else guarantee, self.provenance(seed), notes
        )

    # --- published
    # ----------------------------------------------------------------------------------------------

    def _published(
        self, motions: Mapping[Key, Motion], seed: int | None
    ) -> tuple[dict[Key, SyntheticRecording], dict[str, int], Guarantee]:
        names = sorted({key[0] for key in motions})
        identity = {person: i / len(names) for i, person in enumerate(names)}
        generator, _ = self._generator(motions, names, identity, seed)
        how = PublishedSynthesis(
            self.k,
            cell_width(self.gamma),
            self.attempts,
            self.probability == "histogram",
            self.others == "same-index",
            self.failed == "release",
        )
        plans, notes = published_plans(
            motions, identity, generator, how, lambda key: source(seed, self.name, "events", *key)
        )
        about = Guarantee(
            "plausible-deniability",
            counts={"k": Fraction(self.k), "gamma": Fraction(self.gamma)},
            alike="event",
            mechanism=self.title,
            not_covered=(
                "the attributes of people",
                (
                    "events that never passed, which are released all the same"
                    if self.failed == "release"
                    else "lengths"
                ),
            ),
            status="refuted",
            reason=_REFUTED,
        )
        return plans, notes, about

    # --- corrected
    # ----------------------------------------------------------------------------------------------

    def _corrected(
        self, motions: Mapping[Key, Motion], seed: int | None
    ) -> tuple[dict[Key, SyntheticRecording], dict[str, int], Guarantee]:
        people = by_content(motions)
        generator, delta_num = self._generator(motions, people, None, seed)
        code = coding(generator, motions, people, public=self.rho is not None)
        rule = Rule.of(
            self.k,
            cell_width(self.gamma),
            Fraction(self.epsilon0),
            self.margin,
            self.attempts,
            self.window_s,
            self.others == "same-index",
        )
        plans: dict[Key, SyntheticRecording] = {}
        drawn: list[Drawn] = []
        joint, allowed = np.zeros((len(people), len(people))), 0
        frames: dict[Cell, Frame] = {}
        for cell in sorted({key[1:] for key in motions}):
            # 2: in the pool, with or without events; 1: a recording whose rate is not known, which
            # tells nothing about time; 0: none.
            having = np.array(
                [
                    1 + (motions[p, *cell].rate_hz > 0) if (p, *cell) in motions else 0
                    for p in people
                ]
            )
            seats = np.flatnonzero(having == 2)
            if len(seats) < self.k:
                continue
            pool = [motions[people[i], *cell] for i in seats]
            frames[cell] = frame = common_frame(pool, self.k)
            coded = replace(
                code,
                place_deg=(
                    PLACE_SHARE * min(frame.space.width_deg, frame.space.height_deg)
                    if self.place_deg is None
                    else self.place_deg
                ),
            )
            # The crowd seeds whoever has a recording, so that nothing shows whose rate was not
            # known.
            keys = [
                (people[i], *cell)
                for i in (np.flatnonzero(having) if self.seeds == "crowd" else seats)
            ]
            found = self._draw(coded, keys, pool, frame, rule, seed)
            plans.update(
                (key, coded.plan(one, frame.space, frame.rate_hz, frame.samples))
                for key, one in zip(keys, found, strict=True)
            )
            drawn += found
            allowed += (
                2 * self.attempts * most_events(frame.seconds, coded.clock(frame.space)) * len(keys)
            )
            # Whoever has no recording there would have released none, and whoever has one of
            # unknown rate nothing but lost samples.
            joint += np.where(having[:, None] == having, 0.0, -np.inf)
            if self.seeds == "own":
                joint[np.ix_(seats, seats)] += np.array([one.joint for one in found])
        if not frames:
            raise DataError(
                f"No stimulus, session and task has recordings of {self.k} people whose rate is"
                " known. Choose a smaller k, or give recordings that belong together the same"
                " names. Nothing was released."
            )
        notes = _notes(drawn, motions, frames)
        if self.seeds == "crowd":
            return plans, notes, self._crowd_guarantee(allowed, delta_num)
        passed = self._joint_pass(joint, seed)
        notes["names_released"] = int(passed.sum())
        kept = {person for person, good in zip(people, passed, strict=True) if good}
        plans = {
            key: plans[key] if key in plans and key[0] in kept else _nothing(frames[key[1:]])
            for key in motions
            if key[1:] in frames
        }
        return plans, notes, self._own_guarantee(len(kept), len(people))

    def _draw(
        self,
        coding: Coding,
        keys: Sequence[Key],
        pool: Sequence[Motion],
        frame: Frame,
        rule: Rule,
        seed: int | None,
    ) -> list[Drawn]:
        """Events of the recordings of one stimulus; compiled code that lets other threads run."""
        records, clock = coding.records(pool), coding.clock(frame.space)

        def one(seat: int) -> Drawn:
            bits = source(seed, self.name, "events", *keys[seat])
            return draw(
                *records, rule, clock, frame.seconds, bits, seat if self.seeds == "own" else -1
            )

        # The first one alone, so that code is compiled once and not by all threads at a time.
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as threads:
            return [one(0), *threads.map(one, range(1, len(keys)))]

    def _joint_pass(self, joint: NDArray[np.float64], seed: int | None) -> NDArray[np.bool_]:
        """Which names may be released: enough people in the cell of the one behind it, with the
        random threshold of single events.
        """
        gamma = self.gamma if self.gamma_total is None else self.gamma_total
        counts = plausible_counts(joint, np.arange(len(joint)), cell_width(gamma))
        noise = discrete_laplace(
            1 / Fraction(self.epsilon0), len(counts), Words(source(seed, self.name, "names"))
        )
        return np.asarray(
            counts >= np.maximum(self.k, self.k + self.margin + noise), dtype=np.bool_
        )

    def _generator(
        self,
        motions: Mapping[Key, Motion],
        people: Sequence[str],
        identity: Mapping[str, float] | None,
        seed: int | None,
    ) -> tuple[Generator, Fraction]:
        """The generator of saccades, and what finite arithmetic adds to delta in training it."""
        bits = source(seed, self.name, "training")
        if self.generator == "cvae":
            return network(motions, people, identity, bits), Fraction(0)
        return closed_form(motions, people, None if self.rho is None else Fraction(self.rho), bits)

    # --- promises
    # ----------------------------------------------------------------------------------------------

    def _crowd_guarantee(self, allowed: int, delta_num: Fraction) -> Guarantee:
        epsilon, delta = charge_attempts(self.k, self.gamma, self.epsilon0, self.margin, allowed)
        also: tuple[tuple[str, Loss], ...] = ()
        more = "somebody who knows everybody else's raw data"
        if self.rho is None or delta > DELTA:
            more += (
                ": there is no differential privacy without rho and a margin that keeps delta small"
            )
        else:
            against = "against somebody who knows everybody else's raw data"
            also = (
                (
                    f"{against}, the {allowed} attempts that may be made",
                    Loss.approximate(epsilon, delta),
                ),
                (f"{against}, training besides", Loss.concentrated(Fraction(self.rho), delta_num)),
            )
        return Guarantee(
            "plausible-deniability",
            counts={"k": Fraction(self.k), "gamma": Fraction(1)},
            alike="seed",
            mechanism=self.title,
            also=also,
            assumptions=(
                "who has which recordings is public",
                "the release is the only one made about these people",
                ASSUMPTION,
            ),
            not_covered=(*_NOT_COVERED, more),
            reason="proofs/event-synth-pd.md",
        )

    def _own_guarantee(self, released: int, names: int) -> Guarantee:
        share = (
            f"{released} of {names} names passed the test of whole sequences and were released, the"
            " others are lost, which says that they are like too few"
        )
        step = "; with seeds='crowd' every name is released" if 2 * released < names else ""
        return Guarantee(
            "plausible-deniability",
            counts={
                "k": Fraction(self.k),
                "gamma": Fraction(self.gamma if self.gamma_total is None else self.gamma_total),
            },
            alike="sequence",
            mechanism=self.title,
            assumptions=(
                "who has which recordings is public",
                "the release is the only one made about these people",
                ASSUMPTION,
            ),
            not_covered=(
                *_NOT_COVERED,
                (
                    "somebody who compares the names with one another: the deniers of one name may"
                    " be told apart by their own"
                ),
                share + step,
            ),
            reason="proofs/event-synth-pd.md",
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.synthesis.events_pd.audit import event_synth_pd

        return event_synth_pd(self, unit)


def _notes(
    drawn: Sequence[Drawn], motions: Mapping[Key, Motion], frames: Mapping[Cell, Frame]
) -> dict[str, int]:
    """Counts for whoever holds the raw data."""
    return {
        "fixations": sum(len(d.fixations) for d in drawn),
        "fixations_dropped": sum(int(np.isnan(d.fixations[:, -1]).sum()) for d in drawn),
        "saccades": sum(len(d.saccades) for d in drawn),
        "saccades_dropped": sum(int(np.isnan(d.saccades[:, -1]).sum()) for d in drawn),
        "attempts": sum(d.attempts for d in drawn),
        "recordings_left_out": sum(key[1:] not in frames for key in motions),
        "recordings_of_unknown_rate": unknown_rates(motions),
    }


def _nothing(frame: Frame) -> SyntheticRecording:
    """A recording with no events."""
    none = np.empty(0, dtype=np.int64)
    return SyntheticRecording(
        Motion(
            frame.space,
            frame.rate_hz,
            frame.samples,
            np.empty((0, 5)),
            np.empty((0, 4)),
            none.astype(np.bool_),
            none,
        ),
        np.empty((0, 30)),
    )


def _drawn(
    plans: Mapping[Key, SyntheticRecording], seed: int | None, lazy: bool
) -> list[Recording | Handle]:
    """Recordings drawn from plans: at once, or when they are looked at."""
    master = MasterKey(seed)
    items: list[Recording | Handle] = []
    for key, plan in plans.items():
        load = partial(
            _recording, key, plan, partial(master.source, EventSynthPD.name, "samples", *key)
        )
        items.append(Handle(key[0], key[1], load, key[2], key[3]) if lazy else load())
    return items


def _recording(key: Key, plan: SyntheticRecording, bits: Callable[[], Source]) -> Recording:
    x, y = plan.samples(Words(bits()))
    m = plan.motion
    t: NDArray[np.int64] = np.rint(
        np.arange(m.samples) * (1e9 / m.rate_hz if m.rate_hz > 0 else 1e7)
    ).astype(np.int64)
    return Recording(
        key[0], key[1], t, x, y, space=m.space, rate_hz=m.rate_hz, session=key[2], task=key[3]
    )
