"""`clock-render-k-same`: groups of people share where they look on one public clock; one public eye
renders it for each of them.

For N >= k people:

1. one partition of all people for everything, in floor(N / k) groups of k to 2k - 1, drawn without
   looking at the data;
2. for each group and each stimulus, session and task: if fewer than k members have it, it is left
   out for the whole group;
3. in each slot of the clock the group looks at the mean of its members' places, each weighted by
   how many look there (as `match="crowd"` of k-same-synth); slots in which fewer than k members
   were seen are filled from the one before, for a second. The release is as long as the k-th
   longest of the members' recordings;
4. every member, those without data too, gets a recording rendered from these places by the eye of
   `clock-render`.

Within a group only public randomness differs. Nothing of when eyes move, how fast, and of what
trackers add is anybody's. Proof: proofs/clock-render-k-same.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.plot_recipe import PlotRecipe
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.rational import Number, exact
from gazeveil.privacy.release import Release
from gazeveil.privacy.synthesis.clock.shared import GazeBySlot, Law, all_seen, length_of, rendered
from gazeveil.privacy.synthesis.ksame.groups import (
    common_frame,
    enough_people,
    groups_of,
    law_guarantee,
    shared,
    unknown_rates,
)
from gazeveil.privacy.synthesis.ksame.pairs import NEAR_DEG


@dataclass(frozen=True)
class ClockRenderKSame(Mechanism[Cohort]):
    """Replace each person's recordings by renderings of where their group looked.

    Parameters
    ----------
    k : int
        Smallest group, at least 2.
    slot_s : number
        Seconds of a slot of the clock; whole samples, rounded up.

    Examples
    --------
    >>> print(ClockRenderKSame(4))
    clock-render-k-same:k=4,slot_s=1/4,reading=corrected
    """

    k: int
    slot_s: Number = Fraction(1, 4)

    name: ClassVar[str] = "clock-render-k-same"
    label: ClassVar[str] = "clock-render k-same"
    summary: ClassVar[str] = "Renders the same places, at public times, for k people."
    plot: ClassVar[PlotRecipe] = PlotRecipe("population", (":k=4", ":k=15"))
    kind: ClassVar[str] = "cohort"
    noise_unit: ClassVar[str] = "fit"
    paper: ClassVar[str] = "ours"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "k-anonymity",
            "user",
            "proved",
            "one partition for everything, places shared on a public clock, and one public eye",
        )
    }

    def check(self) -> None:
        """Store the numbers exactly."""
        self.store("k", checks.count(self.name, "k", self.k, least=2))
        self.store("slot_s", slot_seconds(self.name, self.slot_s))

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        """Render a cohort; see :class:`Mechanism`. Recordings that are not loaded yet are rendered
        each time they are looked at, the same each time.

        Raises
        ------
        ParameterError
            For anything but a Cohort.
        DataError
            For fewer than k people, a sphere and a screen under one stimulus, or nothing that k
            members of a group have in common.
        """
        laws, notes = self._laws(data, Words(source(seed, self.name)))
        eyes = dict(
            zip(sorted(laws), source(seed, self.name, "eye").take(len(laws)).tolist(), strict=True)
        )
        out = Cohort(
            rendered(laws, eyes, any(isinstance(item, Handle) for item in data.items)),
            name=data.name,
            read_as=data.read_as,
        )
        guarantee = law_guarantee(self.title, self.k, "proofs/clock-render-k-same.md")
        return self.released(out, guarantee, seed, notes)

    def laws(self, data: Cohort, seed: int | None = None) -> dict[RecordingKey, Law]:
        """What :meth:`release` with the same seed renders, by (person, stimulus, session, task):
        what the promise is about.
        """
        return self._laws(data, Words(source(seed, self.name)))[0]

    def _laws(self, data: Cohort, words: Words) -> tuple[dict[RecordingKey, Law], dict[str, int]]:
        people = enough_people(self.name, data, self.k)
        gaze = all_seen(data, Fraction(self.slot_s))
        laws, notes = shared(gaze, groups_of(people, self.k, words), self.k, self._shared)
        return laws, {"recordings_of_unknown_rate": unknown_rates(gaze), **notes}

    def _shared(self, members: Sequence[GazeBySlot]) -> Law:
        """Where a group looked."""
        frame = common_frame(members, self.k)
        length = length_of(Fraction(self.slot_s), frame.rate_hz)
        slots = -(-frame.samples // length)
        places = np.stack([m.at(frame.rate_hz, length, slots) for m in members])
        return Law(
            frame.space,
            frame.rate_hz,
            frame.samples,
            length,
            crowd(places, self.k, isinstance(frame.space, Sphere)),
        )

    def audit_game(self, unit: str | None) -> Game:
        """See :meth:`gazeveil.privacy.mechanism.Mechanism.audit_game`."""
        from gazeveil.privacy.synthesis.clock.audit import clock_render_k_same

        return clock_render_k_same(self, unit)


def crowd(places: Floats, k: int, on_sphere: bool) -> Floats:
    """The place of a group in each slot: the mean of its members', weighted by the square of how
    many look there.

    Parameters
    ----------
    places : array, shape (members, slots, 3)
        NaN where a member was not seen.
    k : int
        Least number of members who must have been seen.
    on_sphere : bool
        Whether places are unit vectors.

    Returns
    -------
    array, shape (slots, 3)
        NaN where fewer than k were seen.
    """
    there: Bools = np.isfinite(places[:, :, 0])
    filled = np.where(there[:, :, None], places, 0.0)
    near = np.radians(NEAR_DEG) if on_sphere else NEAR_DEG
    total, weights = np.zeros(places.shape[1:]), np.zeros(places.shape[1])
    for m in range(len(places)):
        away = ((filled - filled[m]) ** 2).sum(axis=2)
        agree = (np.exp(-away / (2 * near * near)) * there).sum(axis=0)
        weight = np.where(there[m], agree * agree, 0.0)
        total += weight[:, None] * filled[m]
        weights += weight
    enough = there.sum(axis=0) >= k
    return np.where(enough[:, None], total / np.where(enough, weights, 1.0)[:, None], np.nan)


def slot_seconds(owner: str, value: Number) -> Fraction:
    """A length of slots that makes sense."""
    slot_s = exact(owner, "slot_s", value, above=0)
    if slot_s > 3600:
        checks.refuse(owner, "slot_s", "at most 3600", value)
    return slot_s
