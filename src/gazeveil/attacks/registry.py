"""Identifying attackers by name, or by the command line's `name:parameter=value,...`.

Batteries: attackers that are run together, because no single one is the strongest on all
releases.

A battery is named where attackers are named: `gazeveil evaluate --attacks strong`,
`gazeveil.evaluate(..., attacks="strong")`, `attacks = "strong"` in a study file. Batteries are
unfolded here (:func:`unfold`) and nowhere else. An attacker that this installation does not have is
left out of a battery, and refused where it is named by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from gazeveil import checks
from gazeveil.attacks.base import Attack
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.registry import Registry, build_by_text, is_class_of

#: Name -> (module, class). Modules are imported on first use.
BUILT_IN: dict[str, tuple[str, str]] = {
    "rbfn": ("identify.radial_network", "RBFN"),
    "linkage": ("identify.fusion", "Linkage"),
    "steps": ("identify.fusion", "StepsAttack"),
    "rocket": ("identify.fusion", "Rocket"),
    "fusion": ("identify.fusion", "Fusion"),
    "forest": ("identify.classic", "Forest"),
    "svm": ("identify.classic", "SVM"),
    "knn": ("identify.classic", "KNN"),
    "tree": ("identify.classic", "Tree"),
    "lda": ("identify.classic", "LDA"),
    "boosting": ("identify.classic", "Boosting"),
    "relink": ("pieces.relink", "Relink"),
    "ekyt": ("identify.verification", "Ekyt"),
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


#: The empty battery, for a study of utilities alone.
NOBODY = "none"

#: The default battery.
DEFAULT = "strong"

_QUICK = ("rbfn", "linkage")

# Releases of tables have no samples: `linkage`, its white-box form and `rbfn` attack them.
# White-box attackers make releases of their own, once for all of them in a batch of cells. `relink`
# attacks releases of pieces alone.
_STRONG = (
    "steps",
    "rocket",
    "fusion",
    "linkage",
    "linkage:features=extended",
    "linkage:features=trajectory",
    "linkage:denoiser=lowpass,features=extended",
    "steps:knowledge=white-box",
    "steps:knowledge=exemplars",
    "linkage:knowledge=white-box",
    "relink",
    "relink:by=none",
    "rbfn",
)

_FURTHER = (
    "relink:names=known",
    "relink:by=place",
    "relink:by=style",
    "relink:knowledge=white-box",
    "linkage:knowledge=exemplars",
    "linkage:knowledge=white-box,features=extended",
    "rocket:knowledge=white-box",
    "rbfn:knowledge=white-box",
    "ekyt",
    "lda",
    "forest",
    "svm",
    "knn",
    "boosting",
)

#: Name of a battery -> its attackers, as texts; each text is the one the attacker prints itself.
BATTERIES: dict[str, tuple[str, ...]] = {
    NOBODY: (),
    "quick": _QUICK,
    "strong": _STRONG,
    "all": (*_STRONG, *_FURTHER),
}

# Packages of optional extras that attackers need.
_NEEDS = {"ekyt": "torch"}


def battery(name: str) -> tuple[str, ...]:
    """The attackers of the battery `name` (one of :data:`BATTERIES`) that this installation has, as
    texts `name:parameter=value,...`.

    Examples
    --------
    >>> battery("quick")
    ('rbfn', 'linkage')
    """
    known = set(attacks())
    texts = BATTERIES[checks.one_of("battery", "name", name, tuple(BATTERIES))]
    lacking = {n for n, package in _NEEDS.items() if find_spec(package) is None}
    return tuple(t for t in texts if _name(t) in known - lacking)


def named(entries: Iterable[object]) -> tuple[str, ...]:
    """Which batteries stand among attackers, each once.

    Examples
    --------
    >>> named(["strong", "lda"])
    ('strong',)
    """
    return tuple(dict.fromkeys(str(e) for e in entries if is_battery(e)))


def is_battery(entry: object) -> bool:
    """Whether an entry is the name of a battery."""
    return isinstance(entry, str) and entry in BATTERIES


def unfold(entries: Iterable[object]) -> tuple[object, ...]:
    """Attackers, texts of attackers or names of batteries, with batteries replaced by their
    attackers.

    Returns
    -------
    tuple
        The batteries' attackers as texts, then the others as they came. An attacker of a battery
        that is named by itself too stands there once.

    Raises
    ------
    ParameterError
        If `none` stands beside an attacker.

    Examples
    --------
    >>> unfold(["quick", "linkage", "lda"])
    ('rbfn', 'linkage', 'lda')
    """
    listed = tuple(entries)
    batteries = named(listed)
    others = tuple(e for e in listed if not is_battery(e))
    if NOBODY in batteries and (others or len(batteries) > 1):
        beside = next(e for e in (*others, *batteries) if e != NOBODY)
        raise ParameterError(
            f"'{NOBODY}' says that nobody attacks, and '{beside}' stands beside it. Leave one of"
            " them out.",
            name="attacks",
            got=listed,
        )
    own = {_printed(e) for e in others}
    texts = dict.fromkeys(text for name in batteries for text in battery(name))
    return (*(t for t in texts if t not in own), *others)


def describe(entries: Iterable[object]) -> str:
    """Who is tried, in a few words; `entries` as in :func:`unfold`.

    Examples
    --------
    >>> describe(["strong"]), describe(["quick", "lda", "svm"]), describe(["lda"])
    ('strong battery', 'quick battery and 2 more', 'no battery, chosen one by one')
    """
    listed = tuple(entries)
    names = [n for n in named(listed) if n != NOBODY]
    chosen = sum(not is_battery(e) for e in listed)
    if not names:
        return "no battery, chosen one by one" if chosen else "nobody"
    words = " and ".join(names) + (" battery" if len(names) == 1 else " batteries")
    return words + (f" and {chosen} more" if chosen else "")


def _name(text: str) -> str:
    return text.partition(":")[0]


def _printed(entry: object) -> str:
    """The text an attacker prints itself; invalid texts are refused by the caller that makes it."""
    if isinstance(entry, str):
        try:
            return str(attack(entry))
        except GazeveilError:
            return entry
    return str(entry)
