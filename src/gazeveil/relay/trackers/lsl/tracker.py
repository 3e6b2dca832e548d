"""A gaze stream of the Lab Streaming Layer.

A stream of type `Gaze` is taken, or the one you name. Which channels hold gaze is told in
:mod:`gazeveil.relay.trackers.lsl.columns`; all others (pupil diameters, eye centres, 3-d
points) are never looked at. The rate is the one that the stream declares, and is held against the
times of its samples. Times are put on this machine's LSL clock, which is the one that a relayed
stream is on.

A thread that takes samples from an inlet as they come, and hands them to the event loop.

`pull_chunk` with a timeout waits until its buffer is full or the time is over: half a tenth of a
second late on average. So the thread waits for one sample, takes what else is there without
waiting, and hands all of it on at once.

The package `pylsl` and the library liblsl, loaded when asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from importlib import import_module
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError, GazeveilError, MissingExtraError, ParameterError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers.tracker import LOG
from gazeveil.io.vendors.pupil import INVISIBLE, NEON
from gazeveil.relay.picture import MIN_CONFIDENCE, ImagePlane, picture_for, screen_of
from gazeveil.relay.trackers.connecting import ReconnectingTracker
from gazeveil.relay.trackers.lsl.columns import (
    UNITS,
    ColumnNames,
    GazeColumns,
    StreamDescription,
    describe,
    find_columns,
)
from gazeveil.relay.trackers.rate import RateWatch


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


#: How long the thread waits for a sample before it looks whether to end.
WAIT_S = 0.1

_MOST_AT_ONCE = 256

#: Chunks that wait for the event loop; then the oldest samples stay in liblsl's own buffer.
_MOST_WAITING = 64


class Puller:
    """Samples of one open inlet; the thread is the only one that pulls."""

    def __init__(self, inlet: Any) -> None:
        self._inlet = inlet
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[Any, Any] | None] = asyncio.Queue()
        self._room = threading.Semaphore(_MOST_WAITING)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lsl", daemon=True)

    async def chunks(self) -> AsyncIterator[tuple[Any, Any]]:
        """Rows and times as they come; empty ones when none came for a tenth of a second. Ends when
        the stream is lost.
        """
        self._thread.start()
        try:
            while (chunk := await self._queue.get()) is not None:
                self._room.release()
                yield chunk
        finally:
            self._end.set()
            self._room.release()
            # it looks every tenth of a second, and the inlet must not be closed under it
            await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        try:
            while not self._end.is_set():
                row, time_s = self._inlet.pull_sample(WAIT_S)
                rows, times = [], []
                if time_s is not None:
                    more, later = self._inlet.pull_chunk(0.0, _MOST_AT_ONCE)
                    rows, times = [row, *more], [time_s, *later]
                self._room.acquire()
                self._give((rows, times))
        except RuntimeError:
            # pylsl's LostError, or the event loop is gone
            pass
        finally:
            self._give(None)

    def _give(self, chunk: tuple[Any, Any] | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._queue.put_nowait, chunk)


#: How the source ids of our own relays begin.
SOURCE = "gazeveil-relay"

_RESOLVE_S = 1.0
_ANSWER_S = 5.0

#: Declared rates that differ by less are one rate.
_SAME = 0.01


class LSLTracker(ReconnectingTracker):
    """A gaze stream of LSL.

    Parameters
    ----------
    place : str
        Name of the stream; empty for the first of type Gaze.
    rate_hz : float, optional
        Nominal rate; by default the one that the stream declares, so that it must be there at the
        start. A stream that declares another one is refused, unless `declared` says otherwise.
    screen : Screen or five numbers, optional
        The screen that fractions and pixels are parts of; otherwise the scene camera's picture. For
        channels in degrees: the space.
    sphere : bool
        Whether directions are those of a sphere, where no screen is named.
    x, y, valid : str
        Labels of channels, with a comma between those of two eyes; found by themselves where they
        are known.
    unit : str
        `px`, `fraction` (from the top-left corner), `fraction-up` (from the bottom-left) or `deg`;
        by default what the channels say.
    declared : str
        `believed`, or `ignored` for a stream that is wrong about its own rate.
    min_confidence : float
        Samples of Pupil below it are lost.
    silence_s : float
        A stream without samples for so long has vanished.
    wait_s : float
        How long to look for the stream at the start, where its rate is not named.
    """

    picture: ImagePlane

    def __init__(
        self,
        place: str = "",
        rate_hz: float | None = None,
        screen: object = None,
        sphere: bool = False,
        x: str = "",
        y: str = "",
        valid: str = "",
        unit: str = "",
        declared: str = "believed",
        min_confidence: float = MIN_CONFIDENCE,
        silence_s: float = 2.0,
        wait_s: float = 10.0,
    ) -> None:
        super().__init__()
        self._pylsl = load_pylsl()
        self.name = "lsl"
        self.stream = str(place)
        self._least = checks.not_negative("lsl tracker", "min_confidence", min_confidence)
        self._silence_s = checks.positive("lsl tracker", "silence_s", silence_s)
        self._screen, self._sphere = screen_of("lsl tracker", screen), sphere
        self._chosen = _chosen(str(x), str(y), str(valid), unit)
        named_hz = None if rate_hz is None else checks.positive("lsl tracker", "rate_hz", rate_hz)
        checks.one_of("lsl tracker", "declared", declared, ("believed", "ignored"))
        self._believes = declared == "believed"
        self.columns: GazeColumns | None = None
        wait = checks.positive("lsl tracker", "wait_s", wait_s)
        #: What the stream says of itself; None until it was seen.
        self.description = self._look(wait if named_hz is None else _RESOLVE_S)
        if self.description is None and named_hz is None:
            raise DataError(
                f"No stream {self._wanted()} was found within {wait:g} s. Start it, or name its"
                " rate with --rate: then it may come later."
            )
        declared_hz = self.description.rate_hz if self.description and self._believes else 0.0
        if named_hz is None and not declared_hz > 0:
            raise ParameterError(
                f"The stream {self._wanted()} declares no rate that counts. Name it with --rate.",
                name="rate_hz",
                got=None,
            )
        self.rate_hz = declared_hz if named_hz is None else named_hz
        self.picture = self._picture_of(self.description)
        self.space = self.picture.space
        if self.description is not None:
            self._check(self.description)

    def _wanted(self) -> str:
        return f"called '{self.stream}'" if self.stream else "of type Gaze"

    def _look(self, wait_s: float) -> StreamDescription | None:
        """What the stream says, if one is found in time."""
        deadline = time.monotonic() + wait_s
        while True:
            inlet = self._open()
            if inlet is not None:
                # a stream may go between being found and being asked
                with contextlib.suppress(RuntimeError):
                    return describe(self._pylsl, inlet.info(_ANSWER_S))
            if time.monotonic() >= deadline:
                return None
            time.sleep(0.05)

    def _picture_of(self, description: StreamDescription | None) -> ImagePlane:
        """The picture that a stream's places are parts of; pixels of a scene camera are those of
        the device's own.
        """
        if self._screen is None and description is not None:
            columns = find_columns(description.channels, self._chosen, self._least)
            if columns.unit == "px" and _of_scene(description, columns):
                old = "invisible" in description.name.lower()
                camera = INVISIBLE if old else NEON
                return picture_for(
                    None, self._sphere, camera.width_px, camera.height_px, camera.focal_px
                )
        return picture_for(self._screen, self._sphere)

    def _check(self, description: StreamDescription) -> None:
        """Take a stream's columns, or refuse it."""
        columns = find_columns(description.channels, self._chosen, self._least)
        on_screen = columns.unit in ("px", "fraction") and not _of_scene(description, columns)
        if on_screen and self._screen is None:
            raise DataError(
                "The stream's gaze is on a screen, in pixels or fractions of it. Name the screen"
                " with --screen, e.g. 1920x1080px,530x300mm,600mm."
            )
        if self._picture_of(description) != self.picture:
            raise DataError(
                "The stream's places are parts of another picture than was taken for granted while"
                " it was not there. Start again now that it is."
            )
        declared_hz = description.rate_hz if self._believes else 0.0
        if declared_hz > 0 and abs(declared_hz - self.rate_hz) > _SAME * self.rate_hz:
            raise DataError(
                f"The stream declares {declared_hz:g} samples per second, and the rate that was"
                f" named is {self.rate_hz:g}. Leave --rate out, or add ?declared=ignored to --in"
                " (to --tracker of `serve`) if the stream is wrong about itself."
            )
        self.columns, self.description = columns, description

    async def connection(self) -> AsyncGenerator[Block | None, None]:
        """Blocks until the stream is lost or silent."""
        inlet = await asyncio.to_thread(self._connect)
        if inlet is None:
            return
        also = (
            " and add ?declared=ignored to --in (to --tracker of `serve`)" if self._believes else ""
        )
        watch, silent_s = RateWatch(self.name, self.rate_hz, also), 0.0
        chunks = Puller(inlet).chunks()
        try:
            async for rows, times in chunks:
                silent_s = 0.0 if len(times) else silent_s + WAIT_S
                if self._closing or silent_s >= self._silence_s:
                    return
                pulled = self._block(rows, times) if len(times) else None
                if pulled is not None:
                    watch.see(pulled.t_ns)
                    self.trouble = watch.slow
                    yield pulled
            LOG.info("lsl: the stream is lost")
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]
            inlet.close_stream()

    def _open(self) -> Any:
        """An inlet of the stream, not yet receiving; None where there is none."""
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
            return self._pylsl.StreamInlet(
                streams[0], recover=False, processing_flags=self._pylsl.proc_clocksync
            )
        except RuntimeError:
            return None

    def _connect(self) -> Any:
        """An inlet that receives; None where there is none, or it is another one than before."""
        inlet = self._open()
        if inlet is None:
            return None
        try:
            self._check(describe(self._pylsl, inlet.info(_ANSWER_S)))
            # the first estimate of the clocks takes half a second, which no sample must wait for
            inlet.time_correction(_ANSWER_S)
            inlet.open_stream(_ANSWER_S)
        except DataError as error:
            if self.trouble != str(error):
                self.trouble = str(error)
                LOG.error("lsl: the stream is refused: %s", self.trouble)
            self.counts["malformed"] += 1
            return None
        except RuntimeError:
            return None
        self.trouble = ""
        return inlet

    def _block(self, rows: Any, times: Any) -> Block | None:
        assert self.columns is not None
        assert self.description is not None
        try:
            values = np.asarray(rows, dtype=np.float64)
            seconds = np.asarray(times, dtype=np.float64)
            if (
                values.shape != (len(seconds), len(self.description.channels))
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
        x, y, good = self.columns.degrees(values, self.picture)
        self.counts["samples"] += len(x)
        return block(np.round(seconds * 1e9).astype(np.int64), x, y, good)


def _of_scene(description: StreamDescription, columns: GazeColumns) -> bool:
    """Whether places are those in the picture of a scene camera."""
    return description.channels[columns.x[0]].coordinate_system == "world"


def _chosen(x: str, y: str, valid: str, unit: str) -> ColumnNames | None:
    """The columns that the user names."""
    if unit:
        checks.one_of("lsl tracker", "unit", unit, UNITS)
    if not (x or y or valid or unit):
        return None
    names = [tuple(part for part in text.split(",") if part) for text in (x, y, valid)]
    if len(names[0]) != len(names[1]):
        checks.refuse("lsl tracker", "y", "as many labels as x", y)
    if valid and not x:
        checks.refuse("lsl tracker", "valid", "given together with x and y", valid)
    return ColumnNames(names[0], names[1], tuple((name,) for name in names[2]), unit)
