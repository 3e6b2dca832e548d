"""What a stream of LSL says about itself: its name, rate, number format, who made the device, and
label, unit, type and eye of each channel.

A relayed stream says the same of itself, so that programs which choose channels by type or filter
by rate go on working. Only the fields named here are read: a serial number, a name of a person or
settings of a calibration are never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

    @property
    def labels(self) -> list[str]:
        """Labels of the channels."""
        return [channel.label for channel in self.channels]


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
