"""The one place that words parameter errors.

Each check returns the value in its plain type, so a constructor can store what it checked::

    self.rate_hz = positive("resample", "rate_hz", rate_hz)
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NoReturn

from gazeveil.errors import ParameterError


def refuse(owner: str, name: str, allowed: str, got: object, next_step: str = "") -> NoReturn:
    """Raise the one sentence every wrong parameter gets.

    Parameters
    ----------
    owner : str
        The function or class the parameter belongs to.
    name : str
        The parameter.
    allowed : str
        What is allowed, to follow "must be".
    got : object
        What came.
    next_step : str
        A whole sentence that says what to do now.
    """
    shown = repr(got)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    message = f"The '{name}' parameter of {owner} must be {allowed}. Got {shown} instead."
    raise ParameterError(message + (f" {next_step}" if next_step else ""), name=name, got=got)


def number(owner: str, name: str, value: object) -> float:
    """A finite real number; booleans and text are refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        refuse(owner, name, "a finite number", value)
    return float(value)


def positive(owner: str, name: str, value: object) -> float:
    """A finite number above zero."""
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Real)
        or not math.isfinite(value)
        or value <= 0
    ):
        refuse(owner, name, "a positive finite number", value)
    return float(value)


def not_negative(owner: str, name: str, value: object) -> float:
    """A finite number, zero or above."""
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Real)
        or not math.isfinite(value)
        or value < 0
    ):
        refuse(owner, name, "a finite number of at least 0", value)
    return float(value)


def count(owner: str, name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        refuse(owner, name, f"a whole number of at least {least}", value)
    return int(value)


def one_of(owner: str, name: str, value: object, allowed: Iterable[str]) -> str:
    """One of the allowed words; a near miss is named in the message."""
    choices = sorted(allowed)
    if not isinstance(value, str) or value not in choices:
        near = get_close_matches(str(value), choices, n=1)
        refuse(
            owner,
            name,
            "one of " + ", ".join(choices),
            value,
            f"Did you mean '{near[0]}'?" if near else "",
        )
    return value


def renamed(owner: str, name: str, old: str, new: str) -> NoReturn:
    """Refuse a value that has another name now, and give the new one."""
    raise ParameterError(
        f"The {name} '{old}' of {owner} is called '{new}' now.", name=name, got=old
    )


def known_options(owner: str, options: Mapping[str, object], allowed: Iterable[str]) -> None:
    """Refuse unknown options: a misspelt one must never be silently ignored."""
    choices = sorted(allowed)
    for name in options:
        if name not in choices:
            near = get_close_matches(name, choices, n=1)
            hint = (
                f"Did you mean '{near[0]}'?"
                if near
                else ("Allowed: " + ", ".join(choices) + "." if choices else "It takes no options.")
            )
            raise ParameterError(
                f"{owner} has no option '{name}'. {hint}", name=name, got=options[name]
            )
