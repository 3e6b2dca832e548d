"""Gaze as a session validates it and nothing more: for sessions that protect it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.guarantee import Guarantee, no_promise
from gazeveil.privacy.mechanism import Claim
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.stage import Samples, Stage


class _Unchanged(Stage):
    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        return t_ns, x_deg, y_deg, valid


@dataclass(frozen=True)
class RawGaze(StreamMechanism):
    """No protection: what is not plain gaze is lost, times lie on the grid."""

    name: ClassVar[str] = "graded"
    kind: ClassVar[str] = "stream"
    paper: ClassVar[str] = ""
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {"corrected": Claim("none", "sample", "empirical")}
    )

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        """None."""
        return no_promise(self.title, "it is raw gaze")

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        """Nothing."""
        return _Unchanged()
