"""Identifying attackers by name, or by the command line's `name:parameter=value,...`."""

from __future__ import annotations

from gazeveil.attacks.base import Attack
from gazeveil.registry import Registry, build_by_text, is_class_of

#: Name -> (module, class). Modules are imported on first use.
BUILT_IN: dict[str, tuple[str, str]] = {
    "rbfn": ("identify.rbfn", "RBFN"),
    "linkage": ("identify.linkage", "Linkage"),
    "steps": ("identify.steps", "StepsAttack"),
    "rocket": ("identify.rocket", "Rocket"),
    "fusion": ("identify.fusion", "Fusion"),
    "trace": ("identify.trace", "Trace"),
    "forest": ("identify.classic", "Forest"),
    "svm": ("identify.classic", "SVM"),
    "knn": ("identify.classic", "KNN"),
    "tree": ("identify.classic", "Tree"),
    "lda": ("identify.classic", "LDA"),
    "boosting": ("identify.classic", "Boosting"),
    "relink": ("pieces.relink", "Relink"),
    "ekyt": ("identify.deep.ekyt", "Ekyt"),
}

REGISTRY: Registry[type[Attack]] = Registry(
    "attack",
    "gazeveil.attacks",
    BUILT_IN,
    is_class_of(Attack),
    "a class derived from gazeveil.attacks.base.Attack",
)


def attacks() -> tuple[str, ...]:
    """Names of all attacks, sorted."""
    return REGISTRY.names()


def attack(name: str, **parameters: object) -> Attack:
    """An attack by name.

    Examples
    --------
    >>> str(attack("linkage:features=extended"))
    'linkage:features=extended'
    """
    return build_by_text(REGISTRY, name, parameters)
