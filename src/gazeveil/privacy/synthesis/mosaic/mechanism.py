"""`mosaic`: short pieces of paths that are stitched from what a crowd looked at, under names that
do not last.

No mechanism that keeps a person's path near the truth under one lasting pseudonym hides the person.
Lengths and directions of movements survive noise, and the evidence adds up over everything
published under that pseudonym. So linkage in time is broken:

1. gaze is read at public times, one sample in each slot, and each reading gets noise: the readings
   of `clock-render`, with its promise. Everything after is computed from all viewers' readings;
2. recordings are cut at public times into pieces of `piece_s` with gaps of `gap_s`, to one length
   per stimulus; a viewer who was lost gets pieces like all others;
3. the path of each piece is drawn from the readings of the *other* viewers in the same slots
   (:mod:`gazeveil.privacy.synthesis.mosaic.paths`), near the person's own readings;
4. names are dealt anew in every window of every stimulus;
5. each piece is rendered by the one public eye of `clock-render`.

`paths="own"` leaves out step 3 (pieces of one's own path), `paths="exchange"` instead deals
segments of the readings anew among a few people, and `paths="near"` among people who look near one
another in that segment: in a headset any others face somewhere else. Proof: proofs/mosaic.md.

The game of `mosaic`: that of the readings it is computed from.

Stitching, dealing names and rendering look at nothing but the readings, so they cannot tell more
than these do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.composition import RecordingsMap
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, PieceMechanism, PieceRelease, PlotRecipe
from gazeveil.privacy.promise.loss import Loss
from gazeveil.privacy.promise.privacy_map import StreamMap
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.randomness.supply import Bits, derived_seed
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.stream.losses.public_clock import CLOCK_ASSUMPTION
from gazeveil.privacy.synthesis.clock.render import ClockRender, clock_render
from gazeveil.privacy.synthesis.mosaic.paths import PATHS, PathLaw, dealt_names, paths_in
from gazeveil.privacy.synthesis.mosaic.readings import (
    Crowd,
    CrowdReadings,
    PieceRendering,
    crowds_of,
    noisy_places,
)

_MOST_S = 3600

#: What no cutting, stitching or renaming hides.
NOT_COVERED = (
    "what the places that people look at say about them, in one piece or in all of them",
    "somebody who knows where a person looked and when: a few looks find the piece",
    "joining pieces by place across a gap and by how somebody looks (measured: docs/results/"
    "mosaic_attacks.md)",
    "people whose gaze is far from everybody else's",
    "how many people saw a stimulus",
    "a second release about the same people",
)


@dataclass(frozen=True)
class Mosaic(PieceMechanism):
    """Pieces of paths stitched from the readings of other viewers, each under a name of its own.

    Parameters
    ----------
    epsilon : number
        Budget of any window of `window_s` of a recording, as in `clock-render`.
    r_deg : number
        How far each sample of such a window may move, in degrees.
    piece_s, gap_s : number
        Seconds of a piece and of the gap after it; whole slots.
    crowd : int
        Fewest people who must have seen a stimulus, and have gaze in a window: others are left out.
    paths : str
        One of :data:`~gazeveil.privacy.synthesis.mosaic.paths.PATHS`.
    b_deg : number
        How near to the own reading another viewer's must be to stand for it, in degrees: larger
        hides more. Of `near`, how far people of a group may be apart in a segment.
    move_deg : number
        How far a path moves when it changes to another viewer, in degrees.
    stay : number
        Probability of following the same viewer for another slot.
    among : int
        Number of people who exchange segments; of `near`, the most.
    segment_s : number
        Seconds of a segment that is exchanged; whole slots.
    slot_s, window_s : number
        As in `clock-render`, in seconds.
    duration_s : number, optional
        The public duration of every stimulus in seconds. Left out, a stimulus is as long as
        `crowd` people have recordings of it, which is then not covered.
    clock_hz : number, optional
        The public rate in Hz. Left out, the median of the recordings', which is then not covered.

    Examples
    --------
    >>> Mosaic(10, 2).piece_s, Mosaic(10, 2).paths
    (Fraction(5, 1), 'stitch')
    """

    name: ClassVar[str] = "mosaic"
    label: ClassVar[str] = "mosaic"
    summary: ClassVar[str] = "Cuts gaze into pieces stitched from a crowd, each with its own name."
    plot: ClassVar[PlotRecipe] = PlotRecipe("own")
    kind: ClassVar[str] = "cohort"
    paper: ClassVar[str] = "ours"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-w-r-dp",
            "window",
            "proved",
            "computed from noisy readings at public times; names are dealt without the data",
        )
    }

    epsilon: Number
    r_deg: Number
    piece_s: Number = 5
    gap_s: Number = 1
    crowd: int = 12
    paths: str = "stitch"
    b_deg: Number = 2
    move_deg: Number = 4
    stay: Number = Fraction(1, 2)
    among: int = 2
    segment_s: Number = 1
    slot_s: Number = Fraction(1, 4)
    window_s: Number = Fraction(1, 2)
    duration_s: Number | None = None
    clock_hz: Number | None = None

    def check(self) -> None:
        """Store exact numbers."""
        reader = ClockRender(
            self.epsilon, self.r_deg, self.slot_s, self.window_s, form="offline"
        )  # refuses in its own name what it cannot do
        for name in ("epsilon", "r_deg", "slot_s", "window_s"):
            self.store(name, getattr(reader, name))
        for name in ("piece_s", "segment_s", "b_deg", "move_deg"):
            self._store_up_to(name, _MOST_S, above=0)
        for name, most in (("gap_s", _MOST_S), ("stay", 1)):
            value = exact(self.name, name, getattr(self, name), least=0)
            if value > most:
                checks.refuse(self.name, name, f"from 0 to {most}", value)
            self.store(name, value)
        for name in ("duration_s", "clock_hz"):
            if getattr(self, name) is not None:
                self._store_up_to(name, 100_000, above=0)
        self.store("crowd", checks.count(self.name, "crowd", self.crowd, least=3))
        self.store("among", checks.count(self.name, "among", self.among, least=2))
        if self.among > self.crowd:
            checks.refuse(self.name, "among", f"at most crowd, which is {self.crowd}", self.among)
        checks.one_of(self.name, "paths", self.paths, PATHS)

    def _store_up_to(self, name: str, most: int, above: int) -> None:
        value = exact(self.name, name, getattr(self, name), above=above)
        if value > most:
            checks.refuse(self.name, name, f"at most {most}", value)
        self.store(name, value)

    @cached_property
    def reader(self) -> ClockRender:
        """What reads gaze and adds noise."""
        return ClockRender(self.epsilon, self.r_deg, self.slot_s, self.window_s, form="offline")

    def release_with_origins(self, data: Cohort, seed: int | None = None) -> PieceRelease:
        """Make pieces; see :class:`PieceMechanism`.

        Recordings are held one at a time, readings of one stimulus together. Pieces of recordings
        that are not loaded yet are rendered each time they are looked at, the same each time.

        Raises
        ------
        ParameterError
            For anything but a Cohort.
        DataError
            For a stimulus that fewer than `crowd` people saw or have gaze of, recordings of unknown
            rate, a sphere and a screen under one stimulus, or recordings shorter than a piece.
            Nothing is released then.
        """
        crowds = crowds_of(self, data)
        lazy = any(isinstance(item, Handle) for item in data.items)
        pieces: dict[str, tuple[Recording | Handle, RecordingKey]] = {}
        for number, crowd in enumerate(crowds):
            readings = self._read(crowd, seed)
            clock = crowd.windows.rate_hz, crowd.space
            law = self.reader.model(*clock), self.reader.settings(*clock)
            for window in self._crowded(readings):
                pieces |= self._pieces(number, readings, window, law, seed, lazy)
        # The order of names is the order in which they were dealt, so it tells nothing.
        names = sorted(pieces)
        out = Cohort([pieces[n][0] for n in names], name=data.name, read_as=data.read_as)
        release = self.released(out, self._guarantee(crowds), seed)
        return PieceRelease(release, {n: pieces[n][1] for n in names})

    def _read(self, crowd: Crowd, seed: int | None) -> CrowdReadings:
        """The private part: every viewer's noisy readings."""
        reader, read = self.reader, []
        for item in crowd.items:
            bits = Bits(None if seed is None else (derived_seed(seed, *item.key),))
            recording = item if isinstance(item, Recording) else item.load()
            read.append(noisy_places(recording, reader, crowd.windows, crowd.space, bits))
        return CrowdReadings(
            tuple(item.key for item in crowd.items),
            crowd.space,
            crowd.windows,
            np.stack([places for places, _ in read]),
            np.stack([seen for _, seen in read]),
        )

    def _crowded(self, readings: CrowdReadings) -> list[int]:
        """The windows in which enough people have gaze. In others all pieces would be made of the
        readings of the few who do; they are left out, as the end of a stimulus is.
        """
        seen = [readings.people_in(window) for window in range(readings.windows.count)]
        if max(seen) < self.crowd:
            raise DataError(
                f"{self.name} with crowd = {self.crowd} needs gaze of at least {self.crowd} people"
                f" at the same time, and of stimulus '{readings.keys[0][1]}' at most {max(seen)}"
                " have gaze in any piece. Leave the stimulus out, or choose a smaller crowd."
                " Nothing was released."
            )
        return [window for window, people in enumerate(seen) if people >= self.crowd]

    def _pieces(
        self,
        number: int,
        readings: CrowdReadings,
        window: int,
        law: tuple[Floats, Floats],
        seed: int | None,
        lazy: bool,
    ) -> dict[str, tuple[Recording | Handle, RecordingKey]]:
        """The pieces of one window by their names, with whose they are."""
        about = (self.name, number, window)
        paths = paths_in(readings, window, self.path_law(readings), source(seed, *about, "paths"))
        places = paths.places[..., 0], paths.places[..., 1]
        if isinstance(readings.space, Sphere):
            places = readings.space.degrees(paths.places)
        t_ns, viewers = readings.windows.times_ns(window), len(readings.keys)
        names = dealt_names(viewers, Words(source(seed, *about, "names")))
        eyes = source(seed, *about, "eyes").take(viewers)
        _, stimulus, _, task = readings.keys[0]
        made: dict[str, tuple[Recording | Handle, RecordingKey]] = {}
        for viewer in range(viewers):
            name = f"{number + 1:03d}-{window + 1:03d}-{int(names[viewer]) + 1:04d}"
            load = PieceRendering(
                (name, stimulus, "1", task),
                readings.space,
                readings.windows,
                t_ns,
                law,
                places[0][viewer],
                places[1][viewer],
                paths.there[viewer],
                int(eyes[viewer]),
            )
            piece = Handle(name, stimulus, load, "1", task) if lazy else load()
            made[name] = piece, readings.keys[int(paths.origins[viewer])]
        return made

    def path_law(self, readings: CrowdReadings) -> PathLaw:
        """How paths are made at the rate of these readings."""
        slot_s = readings.windows.slot / readings.windows.rate_hz
        return PathLaw(
            self.paths,
            float(self.b_deg),
            float(self.move_deg),
            float(self.stay),
            self.among,
            max(1, round(float(self.segment_s) / slot_s)),
        )

    def _guarantee(self, crowds: list[Crowd]) -> Guarantee:
        """What all pieces together promise: the promise of the readings."""
        first = self.reader.promise(crowds[0].windows.rate_hz, crowds[0].space)
        merged: list[tuple[str, StreamMap, int | None]] = []
        for crowd in crowds:
            losses = self.reader.promise(crowd.windows.rate_hz, crowd.space).losses
            assert isinstance(losses, StreamMap)
            merged += [(item.person, losses, crowd.windows.samples_read) for item in crowd.items]
        unstated = (
            *(() if self.clock_hz is not None else ("the median rate of the recordings",)),
            *(
                ()
                if self.duration_s is not None
                else (f"how long {self.crowd} people have recordings of a stimulus",)
            ),
            f"in which windows fewer than {self.crowd} people have gaze",
        )
        return replace(
            first,
            losses=RecordingsMap.of(merged),
            mechanism=self.title,
            also=(
                (
                    "which of the names of a stimulus and window belongs to whom, where the paths"
                    " are known",
                    Loss.pure(Fraction(0)),
                ),
            ),
            assumptions=(*first.assumptions, CLOCK_ASSUMPTION),
            # Losses leave no trace to the eye, but the promise is about gaze and not about them.
            not_covered=(*first.not_covered, *NOT_COVERED, *unstated),
            reason="proofs/mosaic.md",
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        return mosaic(self, unit)


def mosaic(mechanism: Mosaic, unit: str | None) -> Game:
    """The joint outcome of the readings of one window."""
    return clock_render(mechanism.reader, unit)
