"""Samples as bytes for apps, encoded once for all channels that share a stream."""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gatekeeper.service.sockets import wire


class EncodedSamples:
    """Samples that several channels send, encoded at most once for each encoding."""

    __slots__ = ("_binary", "_json", "count", "t_ns", "valid", "x_deg", "y_deg")

    def __init__(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> None:
        self.t_ns, self.x_deg, self.y_deg, self.valid = t_ns, x_deg, y_deg, valid
        self.count = len(t_ns)
        self._json: bytes | None = None
        self._binary: bytes | None = None

    @property
    def json(self) -> bytes:
        """The fields of a JSON message, without braces."""
        if self._json is None:
            self._json = wire.json_samples(self.t_ns, self.x_deg, self.y_deg, self.valid)
        return self._json

    @property
    def binary(self) -> bytes:
        """The binary batch after its header."""
        if self._binary is None:
            self._binary = wire.raw_samples(self.t_ns, self.x_deg, self.y_deg, self.valid)
        return self._binary


class SampleEncoder:
    """Gives channels that send the same samples the same :class:`EncodedSamples`."""

    def __init__(self) -> None:
        self._last: EncodedSamples | None = None
        self._joined: tuple[EncodedSamples, int, EncodedSamples] | None = None

    def encoded(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> EncodedSamples:
        """The same samples once: channels of one stream get the same arrays one after the other."""
        last = self._last
        if last is not None and last.x_deg is x_deg and last.y_deg is y_deg and last.t_ns is t_ns:
            return last
        self._last = EncodedSamples(t_ns, x_deg, y_deg, valid)
        return self._last

    def joined(self, blocks: list[EncodedSamples]) -> EncodedSamples:
        """Several blocks as one; channels that gather alike share it."""
        last = self._joined
        if last is not None and last[0] is blocks[0] and last[1] == len(blocks):
            return last[2]
        joined = EncodedSamples(
            np.concatenate([b.t_ns for b in blocks]),
            np.concatenate([b.x_deg for b in blocks]),
            np.concatenate([b.y_deg for b in blocks]),
            np.concatenate([b.valid for b in blocks]),
        )
        self._joined = (blocks[0], len(blocks), joined)
        return joined
