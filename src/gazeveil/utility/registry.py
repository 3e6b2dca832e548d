"""Utilities by name, or by the command line's `name:parameter=value,...`."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from gazeveil import checks
from gazeveil.privacy.registry import build, parse
from gazeveil.utility.utility import Utility

#: Name -> (module, class). Modules are imported on first use.
BUILT_IN: dict[str, tuple[str, str]] = {
    "aoi": ("aoi", "AOI"),
    "saliency": ("saliency", "Saliency"),
    "prediction": ("prediction", "Prediction"),
    "document": ("classify", "Document"),
    "gender": ("classify", "Gender"),
    "privacy-sensitivity": ("classify", "PrivacySensitivity"),
    "activity": ("classify", "Activity"),
    "task": ("classify", "Task"),
    "signal": ("signal", "Signal"),
    "density": ("density", "Density"),
    "events": ("events", "EventFidelity"),
}


def utilities() -> tuple[str, ...]:
    """Names of all utilities, sorted."""
    return tuple(sorted(BUILT_IN))


@cache
def get(name: str) -> type[Utility]:
    """The class of a utility."""
    checks.one_of("utility", "name", name, BUILT_IN)
    module, attribute = BUILT_IN[name]
    found: type[Utility] = getattr(import_module(f"gazeveil.utility.{module}"), attribute)
    return found


def utility(name: str, **parameters: object) -> Utility:
    """A utility by name.

    Examples
    --------
    >>> str(utility("saliency"))
    'saliency'
    """
    if ":" in name:
        name, given = parse(name, "A utility")
        parameters = {**given, **parameters}
    return build("Utility", get(name), parameters)
