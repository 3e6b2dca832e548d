"""`clock-render-dp-k-same`: where groups look on one public clock, with noise for a whole person.

The places of everybody in every slot are a table, and `dp-k-same`
(:mod:`gazeveil.privacy.tables.groups.dp_ksame`) releases that table: averages over random groups of
at least k, in cosine coefficients, with noise for everything of one person. Each group's places are
rendered by the eye of `clock-render`, which is post-processing. On a screen the columns are x and y
within its edges, on a sphere the three coordinates of the direction. A recording that stops early,
a slot in which nothing was seen and a person without the recording are filled without looking at
anybody else. Proof: proofs/clock-render-dp-k-same.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import PublicNumber
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.privacy_map import WholeMap
from gazeveil.privacy.randomness.rng import source
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.kaleido.slotted import MOVE_S
from gazeveil.privacy.synthesis.clock.k_same import slot_seconds
from gazeveil.privacy.synthesis.clock.shared import GazeBySlot, Law, all_seen, length_of, rendered
from gazeveil.privacy.synthesis.ksame.groups import enough_people
from gazeveil.privacy.tables.groups.dp_ksame import DPKSame
from gazeveil.privacy.tables.sequences.spectrum import PublicSpectrum

#: Public model of where a group looks, in units of the range: spread of its mean over a recording,
#: and spread about that.
_SCREEN, _SPHERE = (0.05, 0.1), (0.2, 0.2)


@dataclass(frozen=True)
class ClockRenderDPKSame(Mechanism[Cohort]):
    """Replace each person's recordings by renderings of noisy averages of where their group looked.

    Parameters
    ----------
    k : int
        Smallest group, at least 2.
    epsilon : number
        Budget of everything of one person.
    slot_s : number
        Seconds of a slot of the clock; whole samples, rounded up.
    seconds : number, optional
        Public length of every released recording; None takes the longest recording's and assumes it
        public.

    Examples
    --------
    >>> print(ClockRenderDPKSame(4, 10))
    clock-render-dp-k-same:k=4,epsilon=10,slot_s=1/4,reading=corrected
    """

    k: int
    epsilon: Number
    slot_s: Number = Fraction(1, 4)
    seconds: Number | None = None

    name: ClassVar[str] = "clock-render-dp-k-same"
    label: ClassVar[str] = "clock-render DP-k-same"
    summary: ClassVar[str] = "Renders noisy mean places of k people at public times."
    plot: ClassVar[PlotRecipe] = PlotRecipe(
        "population", (":k=15,epsilon=1000", ":k=15,epsilon=10")
    )
    kind: ClassVar[str] = "cohort"
    noise_unit: ClassVar[str] = "fit"
    paper: ClassVar[str] = "ours"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "epsilon-dp",
            "user",
            "proved",
            "k-anonymity besides: noisy averages of places of random groups on a public clock, and"
            " one public eye",
        )
    }

    def check(self) -> None:
        """Store the numbers exactly."""
        self.store("slot_s", slot_seconds(self.name, self.slot_s))
        if self.seconds is not None:
            self.store("seconds", exact(self.name, "seconds", self.seconds, above=0))
        table = DPKSame(self.k, self.epsilon)
        self.store("k", table.k)
        self.store("epsilon", table.epsilon)

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        """Render a cohort; see :class:`Mechanism`. Everybody gets a recording of every stimulus,
        session and task there is.

        Raises
        ------
        ParameterError
            For anything but a Cohort.
        DataError
            For fewer than k people, recordings in different spaces, or none whose rate is known.
        """
        enough_people(self.name, data, self.k)
        gaze = all_seen(data, Fraction(self.slot_s))
        space, rate = self._common(gaze)
        length = length_of(Fraction(self.slot_s), rate)
        longest = max(s.seconds for s in gaze.values() if s.rate_hz > 0)
        seconds = longest if self.seconds is None else float(self.seconds)
        slots = max(1, math.ceil(seconds * rate / length - 1e-9))
        table = _table(gaze, space, rate, length, slots)
        spectrum = PublicSpectrum(
            *(_SPHERE if isinstance(space, Sphere) else _SCREEN), MOVE_S * rate / length
        )
        inner = DPKSame(self.k, self.epsilon, length=slots, spectrum=spectrum).release(table, seed)
        laws: dict[RecordingKey, Law] = {}
        rows = inner.data.recordings()
        for key, where in rows.items():
            values = inner.data.values[where]
            at = (
                values
                if isinstance(space, Sphere)
                else np.column_stack((values, np.zeros(len(values))))
            )
            laws[key] = Law(space, rate, max(1, round(seconds * rate)), length, at)
        # one eye for each stimulus, session and task, so that members of a group get equal
        # recordings
        cells = sorted({key[1:] for key in laws})
        eyes = dict(
            zip(cells, source(seed, self.name, "eye").take(len(cells)).tolist(), strict=True)
        )
        out = Cohort(
            rendered(
                laws,
                {key: eyes[key[1:]] for key in laws},
                any(isinstance(item, Handle) for item in data.items),
            ),
            name=data.name,
            read_as=data.read_as,
        )
        promise = inner.guarantee
        number = PublicNumber(f"the length of {slots} slots", "seconds", self.seconds is None)
        mine = replace(
            promise,
            losses=WholeMap.of("user", promise.claimed_loss(Change.person()), presence=True),
            mechanism=self.title,
            assumptions=(
                *(a for a in promise.assumptions if "bounds" not in a and "rows" not in a),
                f"the rate of {rate:g} samples a second and the space are public",
            ),
            reason=promise.reason
            if promise.status != "proved"
            else "proofs/clock-render-dp-k-same.md",
        ).resting_on(number)
        return Release(out, mine, self.provenance(seed), inner.curator_notes)

    def _common(self, gaze: Mapping[RecordingKey, GazeBySlot]) -> tuple[Space, float]:
        """The space and the rate that all recordings share."""
        rates = [s.rate_hz for s in gaze.values() if s.rate_hz > 0]
        if not rates:
            raise DataError(
                f"{self.name} needs recordings whose rate is known, and there is none. Say it:"
                " recording.with_(rate_hz=...). Nothing was released."
            )
        spaces = {s.space for s in gaze.values()}
        if len(spaces) > 1:
            raise DataError(
                f"{self.name} needs one space for all recordings, and there are {len(spaces)}."
                " Release them apart. Nothing was released."
            )
        # the median of unequal rates depends on everybody; two digits of it hardly do, and the
        # guarantee says that it is taken for public
        return next(iter(spaces)), (
            rates[0] if min(rates) == max(rates) else float(f"{float(np.median(rates)):.2g}")
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.synthesis.clock.audit import clock_render_dp_k_same

        return clock_render_dp_k_same(self, unit)


def _table(
    gaze: Mapping[RecordingKey, GazeBySlot], space: Space, rate_hz: float, length: int, slots: int
) -> FeatureTable:
    """Places of all recordings in all slots, with the space's edges as public bounds."""
    keys = sorted(gaze)
    values = np.concatenate(
        [
            (
                _filled(gaze[key].at(rate_hz, length, slots))
                if gaze[key].rate_hz > 0
                else _nothing(slots)
            )
            for key in keys
        ]
    )
    if isinstance(space, Sphere):
        columns: tuple[str, ...] = ("right", "up", "ahead")
        edges = np.ones(3)
    else:
        columns, edges = ("x", "y"), np.array([space.width_deg / 2, space.height_deg / 2])
    index = np.arange(slots, dtype=np.int64)
    return FeatureTable(
        values[:, : len(edges)],
        columns,
        Keys.of_recordings(keys, [index] * len(keys)),
        np.stack((-edges, edges), axis=1),
    )


def _nothing(slots: int) -> Floats:
    return np.zeros((slots, 3))


def _filled(places: Floats) -> Floats:
    """Slots without a place get the last one before them, those before the first one that; a
    recording without any is in the middle.
    """
    there = np.flatnonzero(np.isfinite(places).all(axis=1))
    if len(there) == 0:
        return _nothing(len(places))
    before = np.searchsorted(there, np.arange(len(places)), side="right") - 1
    return places[there[np.maximum(before, 0)]]
