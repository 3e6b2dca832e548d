"""Bounds of a mechanism's parameters: a sign, and an exact value to compare with."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from gazeveil.checks import refuse
from gazeveil.errors import ParameterError
from gazeveil.privacy.rational import exact, format_exact

#: How a parameter may be bounded, as a policy in Python writes it; `..` is a range with both ends,
#: `in` one of several values.
SIGNS = ("<=", ">=", "=", "..", "in", "any")

Value = Fraction | bool | str | None
Bound = tuple[str, Any]

_NUMBER = re.compile(
    r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2})?|[+-]?\d{1,40}/\d{1,40}", re.ASCII
)


def comparable(value: object) -> Value:
    """A number as an exact fraction, everything else as it is: what bounds are compared with."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in {"none", ""}:
            return None
        return Fraction(text) if _NUMBER.fullmatch(text) and not re.search(r"/0+$", text) else text
    try:
        return exact("policy", "value", value)
    except ParameterError:
        return str(value)


def checked_bound(owner: str, parameter: str, bound: object) -> Bound:
    """Return a bound in its exact form, with its numbers as fractions.

    `owner` and `parameter` are for the error.
    """
    if not (isinstance(bound, tuple | list) and len(bound) == 2 and bound[0] in SIGNS):
        refuse(owner, parameter, f"a pair of a sign ({' '.join(SIGNS)}) and a value", bound)
    sign, value = str(bound[0]), bound[1]
    if sign == "any":
        return "any", None
    if sign in {"<=", ">="}:
        return sign, _exactly(owner, parameter, value)
    if sign == "..":
        if not (isinstance(value, tuple | list) and len(value) == 2):
            refuse(owner, parameter, "a range of two numbers", value)
        low, high = (_exactly(owner, parameter, edge) for edge in value)
        if low > high:
            wanted = "a range whose first number is not above the second"
            refuse(owner, parameter, wanted, f"{low}..{high}")
        return "..", (low, high)
    if sign == "in":
        if not isinstance(value, tuple | list) or not value:
            refuse(owner, parameter, "one or more values", value)
        return "in", tuple(comparable(choice) for choice in value)
    return "=", comparable(value)


def _exactly(owner: str, parameter: str, value: object) -> Fraction:
    number = comparable(value)
    if not isinstance(number, Fraction):
        refuse(owner, parameter, "an exact number such as 1, 0.1 or '1/3'", value)
    return number


def within(value: Value, bound: Bound) -> bool:
    """Whether a value lies within a bound."""
    sign, edge = bound
    if sign == "any":
        return True
    if sign == "=":
        return same(value, edge)
    if sign == "in":
        return any(same(value, choice) for choice in edge)
    if not isinstance(value, Fraction):
        return False
    if sign == "<=":
        return value <= edge
    if sign == ">=":
        return value >= edge
    return bool(edge[0] <= value <= edge[1])


def same(value: Value, other: Value) -> bool:
    """Whether two values are one; true is the number 1 in Python, in a policy it is not."""
    return type(value) is type(other) and value == other


def bound_words(bound: Bound) -> str:
    """A bound for people: `at most 1`."""
    sign, edge = bound
    if sign == "in":
        return "one of " + ", ".join(map(value_words, edge))
    if sign == "..":
        return f"from {value_words(edge[0])} to {value_words(edge[1])}"
    before = {"<=": "at most ", ">=": "at least ", "=": ""}.get(sign, "anything ")
    return before + value_words(edge)


def value_words(value: Value) -> str:
    """A value for people, short enough for a sentence."""
    if isinstance(value, Fraction):
        return format_exact(value)
    text = "none" if value is None else str(value)
    text = text.lower() if isinstance(value, bool) else text
    return text if len(text) <= 60 else text[:57] + "..."
