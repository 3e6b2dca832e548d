"""Identifying attackers by name, or by the command line's `name:parameter=value,...`."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from gazeveil import checks
from gazeveil.attacks.attack import Attack
from gazeveil.privacy.registry import build, parse

#: Name -> (module, class). Modules are imported on first use.
BUILT_IN: dict[str, tuple[str, str]] = {
    "rbfn": ("rbfn", "RBFN"),
    "linkage": ("linkage", "Linkage"),
    "trace": ("trace", "Trace"),
    "forest": ("classic", "Forest"),
    "svm": ("classic", "SVM"),
    "knn": ("classic", "KNN"),
    "tree": ("classic", "Tree"),
    "lda": ("classic", "LDA"),
    "boosting": ("classic", "Boosting"),
}


def attacks() -> tuple[str, ...]:
    """Names of all attackers, sorted."""
    return tuple(sorted(BUILT_IN))


@cache
def get(name: str) -> type[Attack]:
    """The class of an attacker."""
    checks.one_of("attack", "name", name, BUILT_IN)
    module, attribute = BUILT_IN[name]
    found: type[Attack] = getattr(import_module(f"gazeveil.attacks.{module}"), attribute)
    return found


def attack(name: str, **parameters: object) -> Attack:
    """An attacker by name.

    Examples
    --------
    >>> str(attack("linkage:features=wide"))
    'linkage:features=wide'
    """
    if ":" in name:
        name, given = parse(name, "An attack")
        parameters = {**given, **parameters}
    return build("Attack", get(name), parameters)
