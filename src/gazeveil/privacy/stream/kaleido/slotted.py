"""`kaleido-uniform`: Kaleido in n slots of a window, n by a public rule, without tests; a
publication at each with epsilon / n.

Proof: proofs/kaleido-uniform.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.promise.privacy_map import WindowBudget
from gazeveil.privacy.stream.kaleido.mechanism import CORRECTED_CLAIM, Kaleido
from gazeveil.privacy.stream.kaleido.stage import KaleidoPlan
from gazeveil.privacy.stream.kaleido.step import UNIFORM

#: Public model of gaze behind the choice of slots: mean squared displacement after t seconds,
#: MOVE_DEG2 (1 - exp(-t / MOVE_S)). Three saccades a second of about seven degrees, in a field of
#: about eight degrees around a centre.
MOVE_DEG2, MOVE_S = 128.0, 0.8


@dataclass(frozen=True)
class _Slotted(Kaleido):
    """Kaleido in n slots of a window instead of ceil(w / t_skip): a public rule says how many."""

    slots: int | None = None

    def check(self) -> None:
        """Store exact numbers."""
        super().check()
        if self.slots is not None:
            self.store("slots", checks.count(self.name, "slots", self.slots))

    def _skip_of_slots(self, rate_hz: float, space: Space, publish: Fraction) -> int:
        """Samples of a slot: as many slots as asked for, or the number with the least expected
        squared error.

        The noise of a publication with publish / n has mean square 6 (r n / publish)**2; what is
        shown is on average half a slot old.
        """
        least = self.skip(rate_hz)
        most = math.ceil(Fraction(self.w, least))
        if self.slots is not None and self.slots > most:
            checks.refuse(self.name, "slots", f"at most ceil(w / t_skip) = {most}", self.slots)
        chosen = self.slots
        if chosen is None:
            n = np.arange(1, most + 1, dtype=np.float64)
            age = np.ceil(self.w / n) / rate_hz / MOVE_S
            noise = 6.0 * (float(self.radius_deg(space) / publish) * n) ** 2
            chosen = 1 + int(np.argmin(noise + MOVE_DEG2 * (1.0 + np.expm1(-age) / age)))
        return max(least, math.ceil(Fraction(self.w, chosen)))


@dataclass(frozen=True)
class KaleidoUniform(_Slotted):
    """Kaleido without tests: a publication at each of n slots of a window, with epsilon / n.

    Tests cost budget and answer little where r n_test h / epsilon is larger than the threshold,
    which is so at every setting the papers use. Since there is no test, `h` and `l_thresh_deg` are
    without effect; they stay so that the family takes the same parameters.

    Parameters
    ----------
    slots : int, optional
        Slots of a window, instead of the public rule (:data:`MOVE_DEG2`); at most ceil(w / t_skip).
    """

    name: ClassVar[str] = "kaleido-uniform"
    label: ClassVar[str] = "Kaleido, uniform budget"
    summary: ClassVar[str] = "Kaleido with the same budget for every slot of a window."
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType({"corrected": CORRECTED_CLAIM})
    rule: ClassVar[int] = UNIFORM

    def plan(self, rate_hz: float, space: Space) -> KaleidoPlan:
        """Equal shares and no test on the chosen slots."""
        skip = self._skip_of_slots(rate_hz, space, Fraction(self.epsilon))
        return self._plan(space, None, skip)

    def window_budget(self, rate_hz: float, space: Space) -> WindowBudget:
        """The budget of a window, in equal shares for its slots."""
        rate, budget = checks.positive(self.name, "rate_hz", rate_hz), Fraction(self.epsilon)
        if len(self.radii_deg(space)) > 1 and self.slots is None:
            # The number of slots follows r, and so differs from stimulus to stimulus.
            return super().window_budget(rate_hz, space)
        skip = self._skip_of_slots(rate, space, budget)
        return replace(
            super().window_budget(rate_hz, space), readings=math.ceil(Fraction(self.w, skip))
        )
