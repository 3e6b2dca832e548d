"""Gaze over the Lab Streaming Layer, by the package `pylsl` and the system's library liblsl; both
are optional and loaded when asked for.

A stream of type `Gaze` is taken, or the one you name. Its channels go by their labels:
`norm_pos_x`, `norm_pos_y` and `confidence` as Pupil's LSL relay has them (fractions of the scene
camera's picture, or of a screen you name), or `x_deg`, `y_deg` and, where there is one, `valid`.
All other channels (pupil diameters, eye centres, 3-d points) are never looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError, GazeveilError, MissingExtraError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers.address import screen_of
from gazeveil.gatekeeper.trackers.pupil_format import MIN_CONFIDENCE, picture_for
from gazeveil.gatekeeper.trackers.tracker import LOG, Tracker, back_off

#: How the source ids of our own relays begin.
SOURCE = "gazeveil-relay"

_RESOLVE_S = 1.0
_PULL_S = 0.1
_MOST_AT_ONCE = 256


class MissingLSLError(MissingExtraError):
    """The package or the system's library of LSL is missing."""

    def __init__(self, what: str) -> None:
        GazeveilError.__init__(
            self,
            "LSL needs the package 'pylsl' (pip install 'gazeveil[lsl]') and the system's library"
            f" liblsl; {what} is missing. Install both, then try again.",
        )
        self.package = "pylsl"
        self.extra = "lsl"
        self.what = what

    def __reduce__(self) -> tuple[type[MissingExtraError], Any]:
        return MissingLSLError, (self.what,)


def load_pylsl() -> Any:
    """The package `pylsl`.

    Raises
    ------
    MissingLSLError
        Where it or the system's library is missing.
    """
    try:
        return import_module("pylsl")
    except ImportError:
        raise MissingLSLError("the package") from None
    except (RuntimeError, OSError, AttributeError):
        # pylsl looks for the library when it is imported, and says so in one of these ways
        raise MissingLSLError("the library") from None


def labels_of(info: Any) -> list[str]:
    """Labels of a stream's channels, as its description has them; channels
    without one are empty.
    """
    labels: list[str] = []
    channel = info.desc().child("channels").child("channel")
    for _ in range(info.channel_count()):
        labels.append(str(channel.child_value("label")))
        channel = channel.next_sibling()
    return labels


class LSLTracker(Tracker):
    """A gaze stream of LSL.

    Parameters
    ----------
    place : str
        Name of the stream; empty for the first of type Gaze.
    rate_hz : float
        Nominal rate.
    screen : Screen or five numbers, optional
        For `norm_pos` channels: the screen they are fractions of; otherwise the scene camera's
        picture. For channels in degrees: the space.
    sphere : bool
        Whether degrees are those of a sphere, where no screen is named.
    min_confidence : float
        Samples below it are lost.
    silence_s : float
        A stream without samples for so long has vanished.
    """

    def __init__(
        self,
        place: str = "",
        rate_hz: float = 120.0,
        screen: object = None,
        sphere: bool = False,
        min_confidence: float = MIN_CONFIDENCE,
        silence_s: float = 2.0,
    ) -> None:
        super().__init__()
        self._pylsl = load_pylsl()
        self.name = "lsl"
        self.stream = place
        self.rate_hz = checks.positive("lsl tracker", "rate_hz", rate_hz)
        known = screen_of("lsl tracker", screen)
        self.picture = picture_for(known, sphere)
        self.space = self.picture.space
        self._least = checks.not_negative("lsl tracker", "min_confidence", min_confidence)
        self._silence_s = checks.positive("lsl tracker", "silence_s", silence_s)
        self._closing = False
        #: Labels of the stream's channels; known once connected.
        self.labels: list[str] = []

    async def close(self) -> None:
        """The iterator ends soon."""
        self._closing = True

    async def samples(self) -> AsyncIterator[Block | None]:
        """Gaze as it comes; None when the stream vanished."""
        pauses = back_off()
        while not self._closing:
            inlet = await asyncio.to_thread(self._connect)
            live, silent_s = False, 0.0
            if inlet is not None:
                try:
                    while not self._closing and silent_s < self._silence_s:
                        rows, times = await asyncio.to_thread(
                            inlet.pull_chunk, _PULL_S, _MOST_AT_ONCE
                        )
                        silent_s = 0.0 if times else silent_s + _PULL_S
                        pulled = self._block(rows, times) if times else None
                        if pulled is not None:
                            if not live:
                                live, pauses = True, back_off()
                                self.counts["connected"] += 1
                            yield pulled
                except RuntimeError:
                    LOG.info("lsl: the stream is lost")
                finally:
                    inlet.close_stream()
            if self._closing:
                break
            if live:
                self.vanished()
                yield None
            await asyncio.sleep(next(pauses))

    def _connect(self) -> Any:
        by = ("name", self.stream) if self.stream else ("type", "Gaze")
        try:
            # what a relay of ours sends is no tracker: a relay that found its own output would feed
            # itself
            streams = [
                s
                for s in self._pylsl.resolve_byprop(*by, 1, _RESOLVE_S)
                if not str(s.source_id()).startswith(SOURCE)
            ]
            if not streams:
                return None
            inlet = self._pylsl.StreamInlet(streams[0], recover=False)
            self.labels = labels_of(inlet.info())
            self._columns()
        except DataError as error:
            self.malformed(str(error))
            return None
        except RuntimeError:
            return None
        return inlet

    def _columns(self) -> tuple[bool, int, int, int | None]:
        """Whether places are fractions of a picture, and the columns of x, y and confidence."""
        for x, y, sure in (("norm_pos_x", "norm_pos_y", "confidence"), ("x_deg", "y_deg", "valid")):
            if x in self.labels and y in self.labels:
                return (
                    x == "norm_pos_x",
                    self.labels.index(x),
                    self.labels.index(y),
                    self.labels.index(sure) if sure in self.labels else None,
                )
        raise DataError(
            "The stream has no channels norm_pos_x and norm_pos_y, nor x_deg and y_deg."
        )

    def _block(self, rows: Any, times: Any) -> Block | None:
        in_picture, at_x, at_y, at_sure = self._columns()
        try:
            values = np.asarray(rows, dtype=np.float64)
            seconds = np.asarray(times, dtype=np.float64)
            if (
                values.shape != (len(seconds), len(self.labels))
                or not (np.abs(seconds) < 4e9).all()
            ):
                raise DataError(
                    "a chunk has not one time and one number of each channel for every sample"
                )
        except (TypeError, ValueError) as error:
            self.malformed(
                str(error) if isinstance(error, DataError) else "a chunk is not made of numbers"
            )
            return None
        x, y = values[:, at_x], values[:, at_y]
        if in_picture:
            x, y = self.picture.degrees(x, y)
        sure = np.ones(len(x)) if at_sure is None else values[:, at_sure]
        self.counts["samples"] += len(x)
        return block(
            np.round(seconds * 1e9).astype(np.int64),
            x,
            y,
            sure >= (self._least if in_picture else 0.5),
        )
