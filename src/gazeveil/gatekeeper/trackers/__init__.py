"""Sources of gaze for the Gatekeeper and the relay, by a text: `open_tracker("simulated")`,
`open_tracker("pupil://127.0.0.1:50020")`.

Trackers of laboratories lie in :mod:`gazeveil.relay.trackers`, which the service does not know;
they are found by name. What needs a package of an extra (ZeroMQ, msgpack, websockets, pylsl)
imports it when it is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from gazeveil import checks
from gazeveil.errors import MissingExtraError, ParameterError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers.tracker import Tracker
from gazeveil.registry import Registry, is_class_of

__all__ = ["Block", "Tracker", "forms", "open_tracker"]

#: Word before the colon -> (module, class, packages that it needs and a device may lack, how it is
#: written).
_SOURCES: dict[str, tuple[str, str, str, str]] = {
    "simulated": ("gatekeeper.trackers.simulated", "SimulatedTracker", "", "simulated"),
    "mouse": ("gatekeeper.trackers.simulated", "MouseTracker", "", "mouse"),
    "replay": ("relay.trackers.replay", "ReplayTracker", "polars", "replay:PATH"),
    "pupil": ("relay.trackers.pupil", "PupilTracker", "zmq msgpack", "pupil://host:port"),
    "neon": ("relay.trackers.neon", "NeonTracker", "", "neon://host:port"),
    "invisible": ("relay.trackers.neon", "InvisibleTracker", "", "invisible://host:port"),
    "lsl": ("relay.trackers.lsl.tracker", "LSLTracker", "", "lsl or lsl:NAME"),
}


REGISTRY: Registry[Callable[..., Tracker]] = Registry(
    "tracker",
    "gazeveil",
    {word: (module, attribute) for word, (module, attribute, *_) in _SOURCES.items()},
    is_class_of(Tracker),
    "a class derived from gazeveil.gatekeeper.trackers.Tracker",
    owner="open_tracker",
    parameter="text",
)


def forms() -> tuple[str, ...]:
    """How each source is written; another package's by its `form`, or its name alone."""
    added = REGISTRY.added().items()
    return (
        *(form for *_, form in _SOURCES.values()),
        *(getattr(cls, "form", word) for word, cls in added),
    )


def open_tracker(text: str, **options: object) -> Tracker:
    """A source of gaze.

    Parameters
    ----------
    text : str
        A form of :func:`forms`. Options may follow as in an address:
        `simulated?rate_hz=250&task=reading`.
    **options
        The same options as keywords; they win.

    Raises
    ------
    ParameterError
        For an unknown source or option.
    MissingExtraError
        Where a package is missing.

    Examples
    --------
    >>> open_tracker("simulated?rate_hz=250").rate_hz
    250.0
    """
    head, colon, rest = text.partition(":")
    word, query = head, ""
    if not colon:
        word, _, query = head.partition("?")
    elif not (word == "replay" and Path(rest).exists()):
        # a file may have a question mark in its name
        rest, _, query = rest.partition("?")
    if word not in REGISTRY.names():
        checks.refuse("open_tracker", "text", "one of " + ", ".join(forms()), text)
    *_, packages, form = _SOURCES.get(word, ("", word))
    written = {key: _value(value) for key, value in parse_qsl(query, keep_blank_values=True)}
    try:
        cls = REGISTRY.get(word)
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in packages.split():
            raise MissingExtraError(missing, "service") from None
        raise
    every: dict[str, Any] = {**written, **options}
    name, first = next(iter(signature(cls).parameters.items()), ("", None))
    takes = name in ("place", "path")
    place = [rest if word == "replay" else rest.removeprefix("//")] if takes else []
    if first is not None and place == [""] and first.default is Parameter.empty:
        why = f"A tracker of this kind is written {form}. Got '{text}' instead."
        raise ParameterError(why, name="text", got=text)
    if rest.strip("/") and not place:
        why = f"The tracker {word} takes nothing after its name but options. Got '{text}' instead."
        raise ParameterError(why, name="text", got=text)
    if word != "replay":
        # a replay hands unknown options to the format, which refuses them itself
        checks.known_options(
            f"The tracker {word}", every, [p for p in signature(cls).parameters if p != "place"]
        )
    return cls(*place, **every)


def _value(text: str) -> object:
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except (ValueError, RecursionError):
        return text
