"""`style`: every person keeps a name and all recordings, and moves as another person does.

Evidence about a person adds up over everything under one name: how far and in which direction
people move from look to look survives the noise of `clock-render`. So everybody gets a *donor*,
another person, by one random derangement for the whole release that never looks at the data. The
path of a viewer goes through readings of the crowd near the own noisy ones, and is drawn towards
steps that the donor makes more often than others do
(:mod:`gazeveil.privacy.synthesis.style.movement`, :mod:`gazeveil.privacy.synthesis.style.paths`);
`weight` says how strongly, and 0 is `clock-render`. One public eye renders the paths.

Everything after the readings is post-processing of one draw of them, so the promise is that of the
readings. About names nothing is promised: being recognised becomes rarer, by how much is a matter
of experiment. Proof: proofs/style.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.randomness.uniform import shuffled
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.synthesis.clock.render import ClockRender
from gazeveil.privacy.synthesis.clock.shared import GazeBySlot
from gazeveil.privacy.synthesis.clock.stage import show
from gazeveil.privacy.synthesis.ksame.pairs import degrees
from gazeveil.privacy.synthesis.style.movement import log_ratios, movements
from gazeveil.privacy.synthesis.style.paths import path_of
from gazeveil.privacy.synthesis.style.readings import all_readings, crowds, without_company

#: With two people everybody would know who the donor is.
LEAST_PEOPLE = 3
MOST_WEIGHT = 1000

#: What the release tells and the promise does not speak of.
NOT_COVERED = (
    "whose a name is: style makes recognising people rarer and promises nothing about it",
    "which recordings are of one person: all of a name move alike",
    "a second release of the same people, in which they have other donors",
    "how long each recording is, and its rate",
    "which samples are lost, where a place borrowed from another viewer shows it",
    "who saw what",
)


@dataclass(frozen=True)
class StyledPath:
    """A recording that is rendered when it is called, with a public eye along where the path is in
    each slot; the same each time.
    """

    key: RecordingKey
    clock: ClockRender
    gaze: GazeBySlot = field(repr=False)
    eye: int

    def __call__(self) -> Recording:
        """The recording."""
        g = self.gaze
        ok: Bools = np.isfinite(g.places[:, 0])
        slot_x, slot_y = degrees(g.space, np.where(ok[:, None], g.places, 0.0))
        x, y = np.empty((1, g.samples)), np.empty((1, g.samples))
        valid = np.empty((1, g.samples), dtype=np.bool_)
        show(
            slot_x[None],
            slot_y[None],
            ok[None],
            g.length,
            self.clock.model(g.rate_hz, g.space),
            self.clock.settings(g.rate_hz, g.space),
            np.array([self.eye], dtype=np.uint64),
            x,
            y,
            valid,
        )
        t_ns = np.rint(np.arange(g.samples) * (1e9 / g.rate_hz)).astype(np.int64)
        person, stimulus, session, task = self.key
        return Recording(
            person,
            stimulus,
            t_ns,
            x[0],
            y[0],
            valid[0],
            space=g.space,
            rate_hz=g.rate_hz,
            session=session,
            task=task,
        )


@dataclass(frozen=True)
class Style(Mechanism[Cohort]):
    """Noisy places at public times, on paths that move as another person moves.

    Parameters
    ----------
    epsilon : number
        Budget of any window, as of `clock-render`.
    r_deg : number
        How far each sample of a window may move, in degrees.
    weight : number
        How strongly a path is drawn to the donor's way of moving, from 0 (not at all) to 1000.
    slot_s : number
        Seconds of a slot; whole samples, rounded up.
    window_s : number
        Seconds of a window; whole samples, rounded up.

    Examples
    --------
    >>> print(Style(10, 2))
    style:epsilon=10,r_deg=2,weight=8,slot_s=1/4,window_s=1/2,reading=corrected
    """

    epsilon: Number
    r_deg: Number
    weight: Number = 8
    slot_s: Number = Fraction(1, 4)
    window_s: Number = Fraction(1, 2)

    name: ClassVar[str] = "style"
    label: ClassVar[str] = "style"
    summary: ClassVar[str] = "Noisy places on paths that move as another person moves."
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "population", (":epsilon=10,r_deg=2,weight=0", ":epsilon=10,r_deg=2,weight=8")
    )
    kind: ClassVar[str] = "cohort"
    noise_unit: ClassVar[str] = "fit"
    paper: ClassVar[str] = "ours"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-w-r-dp",
            "window",
            "proved",
            "about places, by the readings of clock-render; about names nothing",
        )
    }

    def check(self) -> None:
        """Store exact numbers; those of the readings as `clock-render` takes them."""
        weight = exact(self.name, "weight", self.weight, least=0)
        if weight > MOST_WEIGHT:
            checks.refuse(self.name, "weight", f"at most {MOST_WEIGHT}", self.weight)
        self.store("weight", weight)
        for name in ("epsilon", "r_deg", "slot_s", "window_s"):
            self.store(name, getattr(self.clock, name))

    @property
    def clock(self) -> ClockRender:
        """Whose readings and eye these are."""
        return ClockRender(
            self.epsilon, self.r_deg, self.slot_s, self.window_s, form="offline", pursuit=True
        )

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        """Draw and render paths; see :class:`Mechanism`. Recordings that are not loaded yet are
        rendered each time they are looked at, the same each time.

        Raises
        ------
        ParameterError
            For anything but a Cohort.
        DataError
            For fewer than three people, a rate that is not known, or a sphere and a screen under
            one stimulus.
        """
        if not isinstance(data, Cohort):
            checks.refuse(self.name, "data", "a Cohort", data, "Put recordings into one.")
        people = sorted({key[0] for key in data.keys})
        if len(people) < LEAST_PEOPLE:
            raise DataError(
                f"{self.name} needs at least {LEAST_PEOPLE} people to deal donors among, and this"
                f" cohort has recordings of {len(people)}. Use clock-render. Nothing was released."
            )
        clock = self.clock
        read = all_readings(data, clock, seed)
        donors = derangement(people, Words(source(seed, self.name, "donors")))
        paths = self._paths(read, donors, seed)
        eyes = source(seed, self.name, "eye").take(len(paths)).tolist()
        lazy = any(isinstance(item, Handle) for item in data.items)
        items: list[Recording | Handle] = []
        for key, eye in zip(sorted(paths), eyes, strict=True):
            made = StyledPath(key, clock, paths[key], eye)
            items.append(Handle(key[0], key[1], made, key[2], key[3]) if lazy else made())
        out = Cohort(items, name=data.name, read_as=data.read_as)
        return self.released(out, self._promise(read), seed)

    def _paths(
        self, read: Mapping[RecordingKey, GazeBySlot], donors: Mapping[str, str], seed: int | None
    ) -> dict[RecordingKey, GazeBySlot]:
        """Where each recording's path is, on its own clock."""
        cells = crowds(read, source(seed, self.name, "crowds"))
        counts = movements(cells, donors)
        everybody: Floats = np.sum(list(counts.values()), axis=0)
        ratios = {p: log_ratios(counts[d], everybody) for p, d in donors.items()}
        paths: dict[RecordingKey, GazeBySlot] = {}
        for crowd in cells.values():
            longest = max((read[key] for key in crowd.keys), key=lambda gaze: gaze.seconds)
            for viewer, key in enumerate(crowd.keys):
                places = path_of(crowd, viewer, ratios[key[0]], float(self.weight))
                own, common = read[key], replace(longest, places=places)
                at = common.at(own.rate_hz, own.length, len(own.places))
                paths[key] = replace(own, places=at)
        return paths

    def _promise(self, read: Mapping[RecordingKey, GazeBySlot]) -> Guarantee:
        """The promise of the readings."""
        shapes = ((key[0], gaze.rate_hz, gaze.space, gaze.samples) for key, gaze in read.items())
        promise = self.clock.joint_promise(shapes, (), None)
        alone, ends = without_company(read, LEAST_PEOPLE)
        told: tuple[str, ...] = NOT_COVERED
        if alone + ends:
            which = f"{alone + ends} recording{'s' if alone + ends > 1 else ''}"
            which += (" or their ends" if alone + ends > 1 else " or its end") if ends else ""
            told += (
                f"how somebody moves in {which}, which fewer than {LEAST_PEOPLE} people have: paths"
                " there go through the own noisy readings",
            )
        return replace(promise, mechanism=self.title, not_covered=told, reason="proofs/style.md")

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.synthesis.clock.audit import clock_render

        return clock_render(self.clock, unit)


def derangement(people: list[str], words: Words) -> dict[str, str]:
    """A donor for everybody, never oneself, each person the donor of one: uniform among all such
    choices, because orders in which somebody keeps the place are drawn again.
    """
    while True:
        order = shuffled(len(people), words).tolist()
        if all(place != other for place, other in enumerate(order)):
            return {people[place]: people[other] for place, other in enumerate(order)}
