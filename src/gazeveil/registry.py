"""Parts by name: mechanisms, formats, attacks, utilities and trackers, ours and others'.

A built-in part is imported on first use. Another package brings parts by entry points, for example
in its `pyproject.toml`::

    [project.entry-points."gazeveil.mechanisms"]
    my-noise = "my_package.noise:MyNoise"

A part that cannot be loaded gives one warning and is left out; built-in parts cannot be replaced.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import cleandoc
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from gazeveil import checks
from gazeveil.errors import ParameterError

Part = TypeVar("Part")

#: Parameters whose text is kept as it is, so that numbers stay exact.
_EXACT = frozenset(
    ("epsilon", "epsilon0", "gamma", "delta", "rho", "sigma_deg", "r_deg", "l_thresh_deg")
)


class Registry(Generic[Part]):
    """Parts of one kind by name.

    Parameters
    ----------
    kind : str
        What the parts are, e.g. `mechanism`; the entry-point group is `gazeveil.<kind>s`.
    package : str
        Package of the built-in parts.
    built_in : mapping of name to (module in the package, attribute)
        The built-in parts.
    accepts : callable
        `accepts(value) -> bool`: whether a value is a part of this kind.
    allowed : str
        What `accepts` wants, to follow "must be".
    groups : tuple of str, optional
        Entry-point groups, where they are not `gazeveil.<kind>s`.
    owner, parameter : str, optional
        The function and the parameter that errors about an unknown name mention.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        built_in: Mapping[str, tuple[str, str]],
        accepts: Callable[[object], bool],
        allowed: str,
        *,
        groups: tuple[str, ...] = (),
        owner: str = "",
        parameter: str = "name",
    ) -> None:
        self.kind = kind
        self.built_in = built_in
        self.groups = groups or (f"gazeveil.{kind}s",)
        self._package = package
        self.accepts, self._allowed = accepts, allowed
        self._owner, self._parameter = owner or kind, parameter
        self._loaded: dict[str, Part] = {}
        self._added: dict[str, Part] | None = None

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted({*self.built_in, *self.added()}))

    def get(self, name: str) -> Part:
        """The part of a name.

        Raises
        ------
        ParameterError
            For an unknown name; the message lists the known ones.
        """
        if name in self._loaded:
            return self._loaded[name]
        if name in self.built_in:
            module, attribute = self.built_in[name]
            part: Part = getattr(import_module(f"{self._package}.{module}"), attribute)
            self._loaded[name] = part
            return part
        checks.one_of(self._owner, self._parameter, name, self.names())
        return self.added()[name]

    def register(self, part: Part, name: str | None = None) -> Part:
        """Add a part; usable as a class decorator.

        Raises
        ------
        ParameterError
            For a part of another kind, or a name that is taken.
        """
        word = self._checked(part, name)
        if word in self.built_in or word in self.added():
            checks.refuse("register", "name", "one that is not taken", word, "Choose another name.")
        self.added()[word] = part
        return part

    def forget(self, name: str) -> None:
        """Remove a part that was registered; built-in parts stay."""
        self.added().pop(name, None)

    def added(self) -> dict[str, Part]:
        """Parts of other packages by name: those registered, and those found by entry point."""
        if self._added is None:
            self._added = {}
            for group in self.groups:
                for point in entry_points(group=group):
                    self._load(point)
        return self._added

    def summary(self, name: str) -> str:
        """One line of purpose: `summary` or `title`, else the docstring's first sentence."""
        part = self.get(name)
        line = getattr(part, "summary", "") or getattr(part, "title", "")
        if isinstance(line, str) and line:
            return line
        text = " ".join(cleandoc(part.__doc__ or "").split("\n\n")[0].split())
        return re.split(r"(?<!\bal)\. |; ", text)[0].rstrip(".")

    def _load(self, point: EntryPoint) -> None:
        assert self._added is not None
        origin = f" of the package {point.dist.name}" if point.dist is not None else ""
        label = f"The {self.kind} '{point.name}'{origin}"
        if point.name in self.built_in or point.name in self._added:
            warnings.warn(f"{label} is left out: the name is taken.", stacklevel=2)
            return
        try:
            part = point.load()
            self._checked(part, point.name)
        except Exception as error:
            reason = str(error).rstrip(".") or type(error).__name__
            warnings.warn(f"{label} is left out: {reason}.", stacklevel=2)
        else:
            self._added[point.name] = part

    def _checked(self, part: object, name: str | None) -> str:
        """The name of a part, after a look at what it is."""
        if not self.accepts(part):
            checks.refuse("register", self.kind, self._allowed, part)
        own = getattr(part, "name", name)
        if not isinstance(own, str) or (name is not None and own != name):
            checks.refuse("register", "name", f"the {self.kind}'s own, '{own}'", name)
        return own


def is_class_of(base: type) -> Callable[[object], bool]:
    """Whether a value is a class derived from a base."""
    return lambda value: isinstance(value, type) and issubclass(value, base)


class NamedDataclass(Protocol):
    """A dataclass with a name of its own."""

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Named = TypeVar("Named", bound=NamedDataclass)


def build_by_text(
    registry: Registry[type[Named]], text: str, parameters: Mapping[str, object]
) -> Named:
    """A value of a registered dataclass, from `name` or `name:parameter=value,...`; parameters
    given as keywords win.
    """
    name, written = parse(text, registry.kind) if ":" in text else (text, {})
    return build(registry.kind, registry.get(name), {**written, **parameters})


def build(kind: str, cls: type[Named], parameters: Mapping[str, object]) -> Named:
    """A value of a dataclass with a class attribute `name`, from parameters a user wrote; unknown
    and missing ones are named. `kind` is for the message: `mechanism`, `attack`.
    """
    name, owner = cls.name, kind.capitalize()
    accepted = [f.name for f in sorted(fields(cls), key=lambda f: bool(f.kw_only))]
    for parameter in parameters:
        if parameter not in accepted:
            near = get_close_matches(parameter, accepted, n=1)
            hint = (
                f"Did you mean '{near[0]}'?"
                if near
                else "It takes: " + (", ".join(accepted) or "none") + "."
            )
            raise ParameterError(
                f"{owner} {name} has no parameter '{parameter}'. {hint}",
                name=parameter,
                got=parameters[parameter],
            )
    missing = [
        f.name
        for f in fields(cls)
        if f.default is MISSING and f.default_factory is MISSING and f.name not in parameters
    ]
    if missing:
        # All required ones are shown, with what was given, so that the text can be taken as it is;
        # 4 is a value that all of them allow.
        example = ",".join(
            f"{f}={parameters.get(f, 4)}" for f in accepted if f in parameters or f in missing
        )
        names = " and ".join(f"'{parameter}'" for parameter in missing)
        raise ParameterError(
            f"{owner} {name} needs the parameter{'s' * (len(missing) > 1)} {names}. Write for"
            f" example {name}:{example}.",
            name=missing[0],
            got=None,
        )
    # `none` is a word where the parameter is a word, and nothing where it may be left out.
    texts = {f.name for f in fields(cls) if isinstance(f.default, str)}
    return cls(**{n: "none" if v is None and n in texts else v for n, v in parameters.items()})


def parse(text: str, kind: str = "mechanism") -> tuple[str, dict[str, object]]:
    """Take `name:parameter=value,...` apart; numbers stay text, so that they stay exact.

    Examples
    --------
    >>> parse("kaleido:epsilon=1,w=50,r_deg=2,reading=published")
    ('kaleido', {'epsilon': '1', 'w': 50, 'r_deg': '2', 'reading': 'published'})
    """
    name, _, rest = text.partition(":")
    parameters: dict[str, object] = {}
    for pair in filter(None, rest.split(",")):
        key, sign, value = pair.partition("=")
        if not sign or not key.strip() or not value.strip():
            article = "An" if kind[0] in "aeio" else "A"
            raise ParameterError(
                f"{article} {kind} is written name:parameter=value,... Got '{pair}' in '{text}'"
                " instead.",
                name=kind,
                got=text,
            )
        parameters[key.strip()] = _value(key.strip(), value.strip())
    return name.strip(), parameters


def _value(key: str, text: str) -> object:
    if text in {"True", "true"}:
        return True
    if text in {"False", "false"}:
        return False
    if text in {"None", "none"}:
        return None
    # Exact quantities take text as it is; counts are whole numbers.
    return text if key in _EXACT else number_or_text(text)


def number_or_text(text: str) -> int | float | str:
    """A whole number, another number, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
