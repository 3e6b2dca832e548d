"""Which channels of a stream hold gaze, and in which unit.

Channels go by their labels, whatever their order and capitals:

- `norm_pos_x`, `norm_pos_y`, `confidence`: Pupil Core's relay; fractions of the picture from its
  bottom-left corner;
- `left_gaze_point_on_display_area_x` and so on for y and the right eye, with
  `left_gaze_point_valid` or `left_gaze_point_validity`: Tobii's names; fractions of the screen from
  its top-left corner;
- `leftEyeX`, `leftEyeY`, `rightEyeX`, `rightEyeY`: EyeLink's; pixels of the screen;
- `x_deg`, `y_deg`, `valid`: our own;
- `x`, `y` and a few other plain names, with the unit that the channel says: Pupil Invisible and
  Neon say pixels of the scene camera.

Names and unit can be given. The line of sight is the mean of the eyes that are valid.

What a stream of LSL says about itself: its name, rate, number format, who made the device, and
label, unit, type and eye of each channel.

A relayed stream says the same of itself, so that programs which choose channels by type or filter
by rate go on working. Only the fields named here are read: a serial number, a name of a person or
settings of a calibration are never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.errors import DataError
from gazeveil.relay.picture import ImagePlane

#: Fields of a channel, as the LSL project's description of gaze streams names them.
_CHANNEL_FIELDS = ("label", "unit", "type", "eye", "metatype", "coordinate_system")

#: Fields of the device, which stand under `acquisition` or, in older streams, at the top.
_DEVICE_FIELDS = ("manufacturer", "model")

_MOST_CHARACTERS = 64
_MOST_CHANNELS = 4096


@dataclass(frozen=True)
class StreamChannel:
    """One channel of a stream; what it does not say is empty."""

    label: str = ""
    unit: str = ""
    type: str = ""
    eye: str = ""
    metatype: str = ""
    coordinate_system: str = ""


@dataclass(frozen=True)
class StreamDescription:
    """A stream.

    Parameters
    ----------
    name, type : str
        As it is found.
    rate_hz : float
        The rate it declares; 0 where it declares none.
    double : bool
        Whether its numbers are doubles; others are handed on as 32-bit floats.
    manufacturer, model : str
        Of the device.
    channels : tuple of StreamChannel
        In their order.
    """

    name: str
    type: str
    rate_hz: float
    double: bool
    manufacturer: str
    model: str
    channels: tuple[StreamChannel, ...]


def describe(pylsl: Any, info: Any) -> StreamDescription:
    """What the full description of a stream says; `info` is from an inlet, because what a search
    finds has no channels yet.
    """
    desc = info.desc()
    channels = []
    node = desc.child("channels").child("channel")
    for _ in range(min(int(info.channel_count()), _MOST_CHANNELS)):
        channels.append(StreamChannel(**{name: _text(node, name) for name in _CHANNEL_FIELDS}))
        node = node.next_sibling()
    device = {
        name: _text(desc.child("acquisition"), name) or _text(desc, name) for name in _DEVICE_FIELDS
    }
    return StreamDescription(
        name=str(info.name())[:_MOST_CHARACTERS],
        type=str(info.type())[:_MOST_CHARACTERS],
        rate_hz=float(info.nominal_srate()),
        double=info.channel_format() == pylsl.cf_double64,
        channels=tuple(channels),
        **device,
    )


def write_description(info: Any, description: StreamDescription) -> None:
    """Put channels and device into the description of a new stream."""
    desc = info.desc()
    channels = desc.append_child("channels")
    for channel in description.channels:
        node = channels.append_child("channel")
        for name in _CHANNEL_FIELDS:
            if value := getattr(channel, name):
                node.append_child_value(name, value)
    acquisition = desc.append_child("acquisition")
    for name in _DEVICE_FIELDS:
        if value := getattr(description, name):
            acquisition.append_child_value(name, value)


def _text(node: Any, name: str) -> str:
    return str(node.child_value(name) or "")[:_MOST_CHARACTERS]


#: Units by the name that the option `unit` has.
UNITS = ("fraction", "fraction-up", "px", "deg")

#: How channels write them.
_WRITTEN = {
    **dict.fromkeys(("px", "pixel", "pixels"), "px"),
    **dict.fromkeys(("deg", "degree", "degrees", "°"), "deg"),
    **dict.fromkeys(("fraction", "norm", "normal", "normalized", "normalised"), "fraction"),
}

#: EyeLink writes -32768 for a lost eye; no screen has so many pixels.
_MOST_PX = 32_768.0


@dataclass(frozen=True)
class GazeColumns:
    """Columns of gaze: those of each eye or one for both, those that say how sure each place is (or
    none), a unit of :data:`UNITS`, and the value below which a place is lost.
    """

    x: tuple[int, ...]
    y: tuple[int, ...]
    sure: tuple[int, ...]
    unit: str
    least: float

    def degrees(self, values: Floats, picture: ImagePlane) -> tuple[Floats, Floats, Bools]:
        """Degrees of rows of numbers, and where there are any."""
        x, y = values[:, self.x], values[:, self.y]
        good = np.isfinite(x) & np.isfinite(y)
        if self.sure:
            good &= values[:, self.sure] >= self.least
        if self.unit == "px":
            good &= (np.abs(x) < _MOST_PX) & (np.abs(y) < _MOST_PX)
        count = np.count_nonzero(good, axis=1)
        with np.errstate(invalid="ignore"):
            mean_x, mean_y = (
                np.where(good, place, 0.0).sum(axis=1) / np.where(count, count, np.nan)
                for place in (x, y)
            )
        width, height = picture.size_px
        if self.unit == "deg":
            return mean_x, mean_y, count > 0
        if self.unit == "px":
            mean_x, mean_y = mean_x / width, 1.0 - mean_y / height
        elif self.unit == "fraction":
            mean_y = 1.0 - mean_y
        x_deg, y_deg = picture.degrees(mean_x, mean_y)
        return x_deg, y_deg, count > 0

    def rows(
        self, channels: int, x_deg: Floats, y_deg: Floats, valid: Bools, picture: ImagePlane
    ) -> Floats:
        """Rows of numbers of degrees: the place in the columns of every eye, 1 or 0 in those that
        say how sure it is, NaN in all others.
        """
        x, y = x_deg, y_deg
        if self.unit != "deg":
            x, y = picture.norm(x_deg, y_deg)
            width, height = picture.size_px
            if self.unit == "px":
                x, y = x * width, (1.0 - y) * height
            elif self.unit == "fraction":
                y = 1.0 - y
        good = valid & np.isfinite(x) & np.isfinite(y)
        rows = np.full((len(x), channels), np.nan)
        rows[:, self.x] = np.where(good, x, np.nan)[:, None]
        rows[:, self.y] = np.where(good, y, np.nan)[:, None]
        rows[:, self.sure] = good[:, None]
        return rows


@dataclass(frozen=True)
class ColumnNames:
    """Labels to look for, as an option gives them or as a program is known to write them."""

    x: tuple[str, ...]
    y: tuple[str, ...]
    #: For each eye the names that its validity may have.
    sure: tuple[tuple[str, ...], ...] = ()
    #: Empty where the channel says it.
    unit: str = ""


_TOBII = "gaze_point_on_display_area"
_KNOWN = (
    ColumnNames(("norm_pos_x",), ("norm_pos_y",), (("confidence",),), "fraction-up"),
    ColumnNames(("x_deg",), ("y_deg",), (("valid",),), "deg"),
    *(
        ColumnNames(
            tuple(f"{eye}_{_TOBII}_{a}" for eye in ("left", "right")),
            tuple(f"{eye}_{_TOBII}_{b}" for eye in ("left", "right")),
            tuple(
                (f"{eye}_gaze_point_valid", f"{eye}_gaze_point_validity")
                for eye in ("left", "right")
            ),
            "fraction",
        )
        for a, b in (("x", "y"), ("0", "1"))
    ),
    ColumnNames(("lefteyex", "righteyex"), ("lefteyey", "righteyey"), (), "px"),
    *(
        ColumnNames(x, y, (("valid", "validity", "confidence", "worn"),))
        for x, y in (
            (("x",), ("y",)),
            (("gaze_x",), ("gaze_y",)),
            (("screenx",), ("screeny",)),
            (("left_x", "right_x"), ("left_y", "right_y")),
            (("gaze_left_x", "gaze_right_x"), ("gaze_left_y", "gaze_right_y")),
        )
    ),
)


def find_columns(
    channels: tuple[StreamChannel, ...], chosen: ColumnNames | None, min_confidence: float
) -> GazeColumns:
    """The columns of gaze in a stream, from what it says and what the user says; empty fields are
    looked up. Pupil's samples below `min_confidence` are lost; for others it is one half.

    Raises
    ------
    DataError
        Where there are none, or their unit is not known.
    """
    labels = [channel.label.strip().lower() for channel in channels]
    unit = chosen.unit if chosen else ""
    for names in (chosen,) if chosen and chosen.x else _KNOWN:
        found = _find(labels, names)
        if found is None:
            continue
        x, y, sure = found
        unit = unit or names.unit or _WRITTEN.get(channels[x[0]].unit.strip().lower(), "")
        if not unit:
            raise DataError(
                f"The channels {channels[x[0]].label} and {channels[y[0]].label} say no unit that"
                " is known. Add ?unit=px, ?unit=fraction (from the top-left corner),"
                " ?unit=fraction-up (from the bottom-left corner) or ?unit=deg."
            )
        pupil = bool(sure) and labels[sure[0]] == "confidence"
        return GazeColumns(x, y, sure, unit, min_confidence if pupil else 0.5)
    shown = ", ".join(channel.label or "(no label)" for channel in channels[:12])
    raise DataError(
        f"No channels of gaze are known in this stream; it has {shown or 'none'}. Name them with"
        " ?x=LABEL&y=LABEL&unit=px (or fraction, fraction-up, deg)."
    )


def _find(
    labels: list[str], names: ColumnNames
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """Columns of x, y and validity of the eyes that are there; None where there is none."""
    eyes = [
        eye
        for eye, (x, y) in enumerate(zip(names.x, names.y, strict=True))
        if x.lower() in labels and y.lower() in labels
    ]
    if not eyes:
        return None
    # one validity may be that of both eyes
    sure = [
        next((labels.index(n.lower()) for n in names.sure[at] if n.lower() in labels), -1)
        for at in (min(eye, len(names.sure) - 1) for eye in eyes if names.sure)
    ]
    return (
        tuple(labels.index(names.x[eye].lower()) for eye in eyes),
        tuple(labels.index(names.y[eye].lower()) for eye in eyes),
        tuple(sure) if sure and min(sure) >= 0 else (),
    )
