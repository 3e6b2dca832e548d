"""`offset`: one shift for a whole recording, as a badly calibrated tracker has it.

A place (x, y) is released as (x + a, y + b), with a and b uniform on [-most_deg, most_deg], drawn
once for each stream. Distances between places stay as they are, so it promises nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Bits, Bools, Floats, Ints, Samples, Space, Sphere, Stage


@dataclass(frozen=True)
class Offset(StreamMechanism):
    """One shift for a whole recording.

    Parameters
    ----------
    most_deg : number
        Largest shift along each axis, in degrees; at most 10.
    """

    name: ClassVar[str] = "offset"
    label: ClassVar[str] = "constant shift"
    summary: ClassVar[str] = "Shifts all samples of a recording alike."
    plot: ClassVar[PlotRecipe] = PlotRecipe("streams", (":most_deg=3",))
    kind: ClassVar[str] = "stream"
    paper: ClassVar[str] = "none"
    fills: ClassVar[str] = "recorded"
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {"corrected": Claim("none", "user", "empirical", "distances between places stay")}
    )

    most_deg: float = 3.0

    def check(self) -> None:
        """Store a number of degrees."""
        self.store("most_deg", checks.positive(self.name, "most_deg", self.most_deg))
        if self.most_deg > 10:
            checks.refuse(self.name, "most_deg", "at most 10 degrees", self.most_deg)

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """State that there is none."""
        return no_promise(self.title, "distances between places stay", ("the path of gaze",))

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """Draw the shifts; the secure source or the test streams come from `bits`."""
        shift = _Shift(self.most_deg, isinstance(space, Sphere), streams, bits)
        return self.filled(shift, rate_hz, space, streams, bits)


class _Shift(Stage):
    """The shift of each stream."""

    def __init__(self, most_deg: float, sphere: bool, streams: int, bits: Bits) -> None:
        self.most_deg, self.sphere, self.streams = most_deg, sphere, streams
        self.sources = bits.sources(streams, Offset.name)
        self.reset()

    def reset(self) -> None:
        """Draw new shifts: a new stream never has the noise of the last one."""
        each = 2 * self.streams // len(self.sources)
        words = np.concatenate([source.take(each) for source in self.sources])
        uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0
        self.shift_deg = self.most_deg * uniform.reshape(self.streams, 2, 1)

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """Add the shift and come back into the space."""
        x, y = x_deg + self.shift_deg[:, 0], y_deg + self.shift_deg[:, 1]
        if self.sphere:
            return t_ns, np.mod(x, 360.0), np.clip(y, 0.0, np.nextafter(180.0, 0.0)), valid
        return t_ns, np.clip(x, -89.9, 89.9), np.clip(y, -89.9, 89.9), valid
