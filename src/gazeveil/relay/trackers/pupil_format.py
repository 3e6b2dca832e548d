"""Pupil's messages over ZeroMQ: msgpack maps with `norm_pos`, `confidence` and `timestamp`, of gaze
in the scene camera's picture and of gaze on a surface.

What `norm_pos` means in degrees is told in :mod:`gazeveil.gatekeeper.trackers.picture`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import msgpack  # type: ignore[import-untyped]

from gazeveil.errors import DataError
from gazeveil.gatekeeper.blocks import MOST_BYTES

#: Whole nanoseconds of a time in seconds fit in 63 bits below this.
_MOST_S = 4.0e9

#: Time (ns), norm_x, norm_y and confidence of one sample of Pupil.
PupilSample: TypeAlias = tuple[int, float, float, float]

_NO_PLACE = [math.nan, math.nan]
_NO_POINT = [math.nan, math.nan, math.nan]

#: A surface that is the picture itself.
_SAME = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def decode(payload: bytes) -> PupilSample:
    """Time (ns), norm_x, norm_y and confidence of a gaze message; NaN where the message has no
    number.

    Raises
    ------
    DataError
        For bytes that are no such message. The sentence holds nothing of it.
    """
    return _sample(_message(payload))


def decode_surface(payload: bytes) -> list[PupilSample]:
    """The samples of a surface message, in the order of their times.

    Raises
    ------
    DataError
        For bytes that are no such message. The sentence holds nothing of it.
    """
    places = _message(payload).get("gaze_on_surfaces")
    if not isinstance(places, list) or not all(isinstance(place, dict) for place in places):
        raise DataError("A surface message has a list 'gaze_on_surfaces'; this one has none.")
    return sorted(map(_sample, places), key=lambda sample: sample[0])


def encode(topic: str, t_ns: int, norm_x: float, norm_y: float, valid: bool) -> bytes:
    """A gaze message that holds nothing but what is given: the keys a client of Pupil's expects.
    Its `base_data` has one entry for each eye, because clients look there for the eyes that were
    seen; all their numbers are NaN.
    """
    t_s, sure = t_ns / 1e9, 1.0 if valid else 0.0
    return msgpack.packb(
        {
            "topic": topic,
            "norm_pos": [norm_x, norm_y],
            "confidence": sure,
            "timestamp": t_s,
            "base_data": [_eye(eye, t_s, sure) for eye in (0, 1)],
        },
        use_bin_type=True,
    )


def encode_surface(
    surface: str, gaze_topic: str, samples: Sequence[tuple[int, float, float, bool]]
) -> bytes:
    """A surface message of samples (time in ns, norm_x, norm_y, whether there is gaze) that went
    out as gaze messages before. The surface is the picture itself, so its transforms are those
    that change nothing: the real ones would tell how the head moved.
    """
    topic, latest_s = f"surfaces.{surface}", samples[-1][0] / 1e9
    return msgpack.packb(
        {
            "topic": topic,
            "name": surface,
            "timestamp": latest_s,
            "surf_to_img_trans": _SAME,
            "img_to_surf_trans": _SAME,
            "surf_to_dist_img_trans": _SAME,
            "dist_img_to_surf_trans": _SAME,
            "gaze_on_surfaces": [
                {
                    "topic": f"{gaze_topic}_on_surface",
                    "norm_pos": [x, y],
                    "confidence": 1.0 if valid else 0.0,
                    "on_surf": bool(valid and 0.0 <= x <= 1.0 and 0.0 <= y <= 1.0),
                    "base_data": [gaze_topic, t_ns / 1e9],
                    "timestamp": t_ns / 1e9,
                }
                for t_ns, x, y, valid in samples
            ],
            "fixations_on_surfaces": [],
        },
        use_bin_type=True,
    )


def _eye(eye: int, t_s: float, sure: float) -> dict[str, object]:
    """A pupil datum without a number of the eye."""
    return {
        "id": eye,
        "topic": f"pupil.{eye}.3d",
        "method": "not told",
        "norm_pos": _NO_PLACE,
        "diameter": math.nan,
        "diameter_3d": math.nan,
        "confidence": sure,
        "timestamp": t_s,
        "ellipse": {"center": _NO_PLACE, "axes": _NO_PLACE, "angle": math.nan},
        "sphere": {"center": _NO_POINT, "radius": math.nan},
        "circle_3d": {"center": _NO_POINT, "normal": _NO_POINT, "radius": math.nan},
        "theta": math.nan,
        "phi": math.nan,
    }


def _message(payload: bytes) -> dict[object, object]:
    if len(payload) > MOST_BYTES:
        raise DataError(f"A message has at most {MOST_BYTES} bytes.")
    try:
        # The C decoder has a stack of its own and refuses deep nesting; the one in Python turns its
        # RecursionError into the same.
        message = msgpack.unpackb(payload, raw=False, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, OverflowError, msgpack.UnpackException):
        raise DataError("A gaze message is a msgpack map; this one is not.") from None
    if not isinstance(message, dict):
        raise DataError("A gaze message is a msgpack map; this one is not.")
    return message


def _sample(message: dict[object, object]) -> PupilSample:
    t = _number(message.get("timestamp"))
    if not abs(t) < _MOST_S:
        raise DataError("A gaze message has a 'timestamp' in seconds; this one has none.")
    place = message.get("norm_pos")
    if not isinstance(place, list) or len(place) != 2:
        raise DataError("A gaze message has a 'norm_pos' of two numbers; this one has none.")
    return round(t * 1e9), _number(place[0]), _number(place[1]), _number(message.get("confidence"))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
