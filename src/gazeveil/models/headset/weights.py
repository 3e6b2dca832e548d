"""Trained networks of headsets with what they must be given, and their files
(:mod:`gazeveil.models.weights_file`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Ints
from gazeveil.errors import DataError
from gazeveil.gaze.recording import Recording
from gazeveil.models.headset.dgaze import GazePredictor, gaze_predictor
from gazeveil.models.headset.ehtask import BRANCHES, ActivityNetwork, activity_network
from gazeveil.models.headset.layers import HEADS, check_reading
from gazeveil.models.marks import RecordingMarks
from gazeveil.models.weights_file import WeightsFile, write_weights

#: How far beyond the rates of its training recordings a network may be asked, as a factor: rates
#: of one tracker differ a little from recording to recording.
RATE_FACTOR = 1.25

#: Largest sizes that a file may ask for; ours have 50 lags, 15 channels and maps of 1152.
MOST_LAGS, MOST_CHANNELS, MOST_MAP, MOST_CLASSES = 1000, 64, 1 << 17, 1000


@dataclass(frozen=True)
class RateRange:
    """Rates of the recordings that a network was trained on, in Hz; None where no recording has
    one.
    """

    low_hz: float | None
    high_hz: float | None

    def __post_init__(self) -> None:
        for name in ("low_hz", "high_hz"):
            if getattr(self, name) is not None:
                checks.positive("RateRange", name, getattr(self, name))

    @classmethod
    def of(cls, recordings: Iterable[Recording]) -> RateRange:
        """The range over recordings."""
        rates = [r.rate_hz for r in recordings if math.isfinite(r.rate_hz) and r.rate_hz > 0]
        return cls(min(rates), max(rates)) if rates else cls(None, None)

    def check(self, recording: Recording) -> None:
        """Refuse a recording of a rate that the network does not know.

        Raises
        ------
        DataError
            For a rate beyond the range by more than :data:`RATE_FACTOR`.
        """
        rate_hz = recording.rate_hz
        if self.low_hz is None or self.high_hz is None or not rate_hz > 0:
            return
        if self.low_hz / RATE_FACTOR <= rate_hz <= self.high_hz * RATE_FACTOR:
            return
        raise DataError(
            f"These weights were trained on recordings of {self}, and {recording.title} has"
            f" {rate_hz:g} Hz. Train weights on recordings of that rate, or ask without weights."
        )

    def __str__(self) -> str:
        if self.low_hz is None or self.high_hz is None:
            return "unknown rate"
        same = math.isclose(self.low_hz, self.high_hz, rel_tol=1e-3)
        return f"{self.low_hz:g} Hz" if same else f"{self.low_hz:g} to {self.high_hz:g} Hz"


@dataclass(frozen=True)
class PredictorInput:
    """What a gaze predictor must be given.

    Parameters
    ----------
    horizon_s, past_s : float
        How far ahead it says where gaze will be, and how much of the past it sees, in seconds.
    lags : int
        Moments at which the past is read.
    head, reading : str
        Whether it looks at the head; how it was trained.
    channels : tuple of int
        Channels of a history that it looks at.
    map_size : int
        Numbers of a saliency map; 0 for none.
    rates : RateRange
        Of the recordings it was trained on.
    """

    horizon_s: float
    past_s: float
    lags: int
    head: str
    reading: str
    channels: tuple[int, ...]
    map_size: int
    rates: RateRange

    def __post_init__(self) -> None:
        owner = "PredictorInput"
        checks.positive(owner, "horizon_s", self.horizon_s)
        checks.positive(owner, "past_s", self.past_s)
        check_reading(owner, self.reading)
        checks.one_of(owner, "head", self.head, HEADS)
        _within(owner, "lags", self.lags, 3, MOST_LAGS)
        _within(owner, "map_size", self.map_size, 0, MOST_MAP)
        for channel in self.channels:
            _within(owner, "channels", channel, 0, MOST_CHANNELS - 1)
        if not self.channels or len(set(self.channels)) < len(self.channels):
            checks.refuse(owner, "channels", "different numbers", self.channels)


@dataclass(frozen=True)
class RecogniserInput:
    """What a recogniser of activities must be given.

    Parameters
    ----------
    window_s : float
        Seconds of a window.
    rate_hz : float
        Moments of a window per second.
    head, reading : str
        Whether it looks at the head; how it was trained.
    classes : tuple of str
        The activities that it names, in the order of its outputs.
    rates : RateRange
        Of the recordings it was trained on.
    """

    window_s: float
    rate_hz: float
    head: str
    reading: str
    classes: tuple[str, ...]
    rates: RateRange

    def __post_init__(self) -> None:
        owner = "RecogniserInput"
        checks.positive(owner, "window_s", self.window_s)
        checks.positive(owner, "rate_hz", self.rate_hz)
        check_reading(owner, self.reading)
        checks.one_of(owner, "head", self.head, HEADS)
        _within(owner, "classes", len(set(self.classes)), 2, MOST_CLASSES)
        if len(set(self.classes)) < len(self.classes):
            checks.refuse(owner, "classes", "different words", self.classes)


@dataclass(frozen=True, eq=False)
class TrainedPredictor:
    """A gaze predictor with what it must be given, marks of its training recordings and what its
    card says.
    """

    network: GazePredictor
    given: PredictorInput
    marks: RecordingMarks
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def channels(self) -> Ints:
        """Channels of a history that it looks at."""
        return np.array(self.given.channels, dtype=np.int64)

    def save(self, path: Path) -> None:
        """Write the file."""
        write_weights(path, "dgaze", _header(self), self.network.parts, _scales(self.network))


@dataclass(frozen=True, eq=False)
class TrainedRecogniser:
    """A recogniser of activities with what it must be given, marks of its training recordings and
    what its card says.
    """

    network: ActivityNetwork
    given: RecogniserInput
    marks: RecordingMarks
    about: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def save(self, path: Path) -> None:
        """Write the file."""
        write_weights(path, "ehtask", _header(self), self.network.parts, _scales(self.network))


def load_dgaze(path: Path | str, device: str = "cpu") -> TrainedPredictor:
    """Read a gaze predictor that `gazeveil train --network dgaze` wrote.

    Raises
    ------
    FormatError
        For a file that is none.
    MissingExtraError
        Without torch.
    """
    file = WeightsFile.read(path, "dgaze")
    try:
        written = dict(file.header["given"])
        written["channels"] = tuple(written["channels"])
        given = PredictorInput(**{**written, "rates": RateRange(**written["rates"])})
        marks = RecordingMarks.from_dict(file.header["marks"])
        about = dict(file.header["about"])
    except Exception as error:
        raise file.refuse(error) from error
    scale = file.numbers("scale", len(given.channels), positive=True).astype(np.float32)
    made = gaze_predictor(scale, given.lags, given.map_size, given.reading, 0, device)
    file.fill(made.parts)
    return TrainedPredictor(made, given, marks, about)


def load_ehtask(path: Path | str, device: str = "cpu") -> TrainedRecogniser:
    """Read a recogniser of activities that `gazeveil train --network ehtask` wrote.

    Raises
    ------
    FormatError
        For a file that is none.
    MissingExtraError
        Without torch.
    """
    file = WeightsFile.read(path, "ehtask")
    try:
        written = dict(file.header["given"])
        written["classes"] = tuple(map(str, written["classes"]))
        given = RecogniserInput(**{**written, "rates": RateRange(**written["rates"])})
        marks = RecordingMarks.from_dict(file.header["marks"])
        about = dict(file.header["about"])
    except Exception as error:
        raise file.refuse(error) from error
    channels = 2 * len(BRANCHES)
    mean = file.numbers("mean", channels).astype(np.float32)
    scale = file.numbers("scale", channels, positive=True).astype(np.float32)
    made = activity_network(mean, scale, len(given.classes), given.reading, 0, device)
    file.fill(made.parts)
    return TrainedRecogniser(made, given, marks, about)


def _header(model: TrainedPredictor | TrainedRecogniser) -> dict[str, object]:
    return {
        "given": asdict(model.given),
        "marks": model.marks.to_dict(),
        "about": dict(model.about),
    }


def _scales(network: GazePredictor | ActivityNetwork) -> dict[str, Any]:
    scales = {"scale": network.scale}
    return scales | ({"mean": network.mean} if isinstance(network, ActivityNetwork) else {})


def _within(owner: str, name: str, value: object, least: int, most: int) -> None:
    if checks.count(owner, name, value, least) > most:
        checks.refuse(owner, name, f"at most {most}", value)
