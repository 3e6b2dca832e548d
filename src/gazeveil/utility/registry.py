"""Utilities by name, or by the command line's `name:parameter=value,...`."""

from __future__ import annotations

from gazeveil.registry import Registry, build_by_text, is_class_of
from gazeveil.utility.base import Utility

#: Name -> (module, class). Modules are imported on first use.
BUILT_IN: dict[str, tuple[str, str]] = {
    "aoi": ("aoi", "AOI"),
    "dwell": ("viewers", "Dwell"),
    "saliency": ("maps", "Saliency"),
    "prediction": ("prediction", "Prediction"),
    "document": ("classify", "Document"),
    "gender": ("classify", "Gender"),
    "privacy-sensitivity": ("classify", "PrivacySensitivity"),
    "activity": ("classify", "Activity"),
    "task": ("classify", "Task"),
    "signal": ("signal", "Signal"),
    "density": ("maps", "Density"),
    "events": ("events", "EventFidelity"),
    "scanpath": ("viewers", "ScanpathSimilarity"),
}

REGISTRY: Registry[type[Utility]] = Registry(
    "utility",
    "gazeveil.utility",
    BUILT_IN,
    is_class_of(Utility),
    "a class derived from gazeveil.utility.base.Utility",
    groups=("gazeveil.utilities",),
)


def utilities() -> tuple[str, ...]:
    """Names of all utilities, sorted."""
    return REGISTRY.names()


def get(name: str) -> type[Utility]:
    """The class of a utility."""
    return REGISTRY.get(name)


def utility(name: str, **parameters: object) -> Utility:
    """A utility by name.

    Examples
    --------
    >>> str(utility("saliency"))
    'saliency'
    """
    return build_by_text(REGISTRY, name, parameters)
