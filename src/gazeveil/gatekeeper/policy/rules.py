"""Which mechanisms an app may ask for, with which parameters: exact ranges, checked before anything
is built.

A rule names a mechanism on streams and bounds its parameters. A parameter the rule does not mention
must have its default; one that has no default must be mentioned. Inside its bounds an app chooses
from a short public list (:data:`gazeveil.gatekeeper.policy.families.PUBLIC`), or from the values
that the rule itself names with `=` or `in`. The reading is a parameter like the others, so only
`corrected` passes unless the rule says otherwise. A mechanism without noise cannot be granted but
in a chain behind noise that is proved, whatever the rule says; a mechanism whose noise proves
nothing passes only where the rule says `unproved = true`.

The text an app sends is hostile: it is short, plain ASCII, without numbers of a million digits, and
it is compared with the rule before a mechanism is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from gazeveil.checks import refuse
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper.policy.bounds import (
    Bound,
    Value,
    bound_words,
    checked_bound,
    comparable,
    same,
    value_words,
    within,
)
from gazeveil.gatekeeper.policy.families import COPIES, PUBLIC, copies, names_file, problem
from gazeveil.privacy import registry
from gazeveil.registry import parse

#: Longest text of a mechanism that is read.
LONGEST_TEXT = 512

#: Exponents of three digits and digits with underscores: an exact number of that size fills the
#: memory.
_HUGE_NUMBER = re.compile(r"[eE][+-]?[\d_]{3,}|\d_")

#: What the ledger counts for each definition; what promises nothing is counted in samples.
CURRENCY_OF_DEFINITION: Mapping[str, str] = MappingProxyType(
    {
        "epsilon-dp": "epsilon",
        "epsilon-delta-dp": "epsilon",
        "epsilon-ldp": "epsilon",
        "geo-indistinguishability": "epsilon",
        "epsilon-w-r-dp": "epsilon",
        "epsilon-w-r-t-dp": "epsilon",
        "rho-zcdp": "rho",
        "none": "samples",
    }
)

#: An app writes the whole mechanism and is told its grant, and so would be told the path.
_NO_FILES = "left out, because an app would be told where a file of the device lies"
_NUMBER_INSTEAD = "Give r_deg in degrees."

#: Which value of a parameter protects least.
_WEAKEST: Mapping[str, Callable[[Any], Fraction]] = MappingProxyType(
    {"epsilon": max, "sigma_deg": min, "w": min, "r_deg": min}
)


@dataclass(frozen=True)
class MechanismRule:
    """A mechanism an app may ask for.

    Parameters
    ----------
    name : str
        A mechanism on streams, by its name in the registry.
    parameters : mapping of str to (sign, value)
        Bounds: `{"epsilon": ("<=", 1), "w": ("..", (60, 240)), "steps": ("in", ("table",
        "formula"))}`; numbers are exact, 0.1 means 1/10.
    unproved : bool
        Whether it may be used with parameters for which nothing is proved. Mechanisms without noise
        stay refused.

    Examples
    --------
    >>> rule = MechanismRule("kaleido", {"epsilon": ("<=", 1), "w": (">=", 60), "r_deg": (">=", 2)})
    >>> judge((rule,), "kaleido:epsilon=1,w=60,r_deg=2").code
    'allowed'
    >>> judge((rule,), "kaleido:epsilon=1.1,w=60,r_deg=2").reason
    "The parameter 'epsilon' of kaleido must be at most 1; 1.1 was asked for."
    """

    name: str
    parameters: Mapping[str, Bound] = field(default_factory=dict)
    unproved: bool = False

    def __post_init__(self) -> None:
        self._check_name()
        owner = f"the rule for {self.name}"
        if not isinstance(self.unproved, bool):
            refuse(owner, "unproved", "true or false", self.unproved)
        if not isinstance(self.parameters, Mapping):
            refuse(owner, "parameters", "a table of bounds", self.parameters)
        known = _defaults(self.name)
        for parameter in self.parameters:
            if parameter not in known:
                hint = _did_you_mean(parameter, known)
                refuse(owner, "parameters", "about " + ", ".join(known), parameter, hint)
            if parameter in registry.get(self.name).files:
                refuse(owner, parameter, _NO_FILES, self.parameters[parameter], _NUMBER_INSTEAD)
        for parameter, default in known.items():
            if default is MISSING and parameter not in self.parameters:
                hint = f'Write for example {parameter} = "<= 1" or {parameter} = "any".'
                refuse(owner, parameter, "bounded, because it has no default", None, hint)
        bounds = {
            parameter: (_checked_stages if parameter == "stages" else checked_bound)(
                owner, parameter, self.parameters[parameter]
            )
            for parameter in known
            if parameter in self.parameters
        }
        for parameter, bound in bounds.items():
            self._check_choices(owner, parameter, bound)
        self._check_losses(owner, bounds)
        object.__setattr__(self, "parameters", MappingProxyType(bounds))
        object.__setattr__(self, "_hash", hash((self.name, tuple(bounds.items()), self.unproved)))

    def _check_name(self) -> None:
        if self.name not in registry.mechanisms() or registry.get(self.name).kind != "stream":
            names = [name for name in registry.mechanisms() if registry.get(name).kind == "stream"]
            allowed = "a mechanism on streams: " + ", ".join(names)
            refuse("MechanismRule", "name", allowed, self.name, _did_you_mean(self.name, names))
        if self.name in COPIES:
            raise ParameterError(
                f"The rule for {self.name} cannot be granted: {copies(self.name)}.",
                name="name",
                got=self.name,
            )

    def _check_choices(self, owner: str, parameter: str, bound: Bound) -> None:
        """Refuse a bound that lets nothing pass that an app may write."""
        if bound[0] not in ("=", "in") and not _choices(self.name, parameter, bound):
            public = ", ".join(map(value_words, _public(self.name, parameter)))
            hint = "Or name the values one by one, as [4, 6]."
            allowed = f"a bound that lets one of {public} pass"
            refuse(owner, parameter, allowed, bound_words(bound), hint)

    def _check_losses(self, owner: str, bounds: Mapping[str, Bound]) -> None:
        """Refuse what no stream of this device does with lost samples: an app could not have it, or
        would have something else than the grant says.
        """
        sign, edge = bounds.get("losses", ("any", None))
        for value in edge if sign == "in" else (edge,) if sign == "=" else ():
            try:
                text = _weakest_text(self.name, {**bounds, "losses": ("=", value)})
                made: Any = registry.mechanism(text)
                why = problem(made)
            except ParameterError as error:
                why = _sentence(error).rstrip(".") if error.name == "losses" else None
            if why is not None:
                raise ParameterError(
                    f"In {owner}, 'losses' cannot be {value_words(value)}: {why}.",
                    name="losses",
                    got=value,
                )

    def __hash__(self) -> int:
        # Verdicts are kept by rule and text, because a stream asks before every sample.
        return getattr(self, "_hash")  # noqa: B009  (set in __post_init__, not a field)

    def __reduce__(self) -> tuple[type[MechanismRule], tuple[str, dict[str, Bound], bool]]:
        # Mapping proxies cannot be pickled.
        return MechanismRule, (self.name, dict(self.parameters), self.unproved)


@dataclass(frozen=True)
class Verdict:
    """What the rules say about one text: `allowed`, `mechanism` or `parameter`, with one sentence;
    the currency of its budget, and every how many samples one is released.
    """

    code: str
    reason: str
    currency: str = ""
    stride: int = 1


@lru_cache(maxsize=4096)
def judge(rules: tuple[MechanismRule, ...], text: str) -> Verdict:
    """Whether one of the rules allows the mechanism an app wrote; never raises for a text."""
    if (
        not text.isascii()
        or not text.isprintable()
        or len(text) > LONGEST_TEXT
        or _HUGE_NUMBER.search(text)
    ):
        return Verdict(
            "mechanism",
            f"A mechanism is written name:parameter=value,... in at most {LONGEST_TEXT} plain"
            " characters, with numbers of ordinary size.",
        )
    try:
        name, written = parse(text)
    except ParameterError as error:
        return Verdict("mechanism", _sentence(error))
    mine = [rule for rule in rules if rule.name == name]
    if not mine:
        offered = ", ".join(dict.fromkeys(r.name for r in rules)) or "none"
        return Verdict(
            "mechanism",
            f"The mechanism '{name[:40]}' is not granted to this app. Granted: {offered}.",
        )
    first: Verdict | None = None
    for rule in mine:
        verdict = _judge_rule(rule, text, written)
        if verdict.code == "allowed":
            return verdict
        first = first or verdict
    return first or Verdict("mechanism", "No rule applies.")


def _judge_rule(rule: MechanismRule, text: str, written: Mapping[str, object]) -> Verdict:
    known = _defaults(rule.name)
    for parameter in written:
        if parameter not in known:
            return Verdict(
                "parameter",
                f"The mechanism {rule.name} has no parameter '{parameter[:40]}'. It takes:"
                f" {', '.join(known)}.",
            )
    for parameter, default in known.items():
        # A default that the rule does not allow must be changed by the app, so it is judged like a
        # value that was written.
        value = written.get(parameter, default)
        if value is MISSING:
            return Verdict(
                "parameter", f"The mechanism {rule.name} needs the parameter '{parameter}'."
            )
        bound = rule.parameters.get(parameter, ("=", comparable(default)))
        if (why := _why_out_of_bounds(rule.name, parameter, value, bound)) is not None:
            return Verdict("parameter", why)
    return _judge_promise(rule, text)


def _why_out_of_bounds(name: str, parameter: str, value: object, bound: Bound) -> str | None:
    """Why a parameter may not have a value, in one sentence; None where it may."""
    if parameter == "stages":
        if names_file(str(value)):
            # A chain is made to be compared, and what it names would be opened for that.
            return f"A stage of {name} names a file, and no app makes a device open one."
        try:
            value = str(registry.mechanism("chain", stages=value).parameters()["stages"])
        except (GazeveilError, RecursionError) as error:
            return _sentence(error)
    asked = comparable(value)
    allowed = bound_words(bound)
    if within(asked, bound):
        if bound[0] in ("=", "in"):
            return None
        public: Bound = ("in", _choices(name, parameter, bound))
        if within(asked, public):
            return None
        allowed = f"{bound_words(public)}, a public list"
    return (
        f"The parameter '{parameter}' of {name} must be {allowed}; {value_words(asked)} was asked"
        " for."
    )


def _judge_promise(rule: MechanismRule, text: str) -> Verdict:
    """What the rule says of a mechanism within its bounds, by what that promises."""
    try:
        made: Any = registry.mechanism(text)
    except GazeveilError as error:
        return Verdict("parameter", _sentence(error))
    if (why := problem(made)) is not None:
        return Verdict("mechanism", why + ".")
    claim = made.claim
    promised = claim.definition != "none"
    currency = "samples"
    if promised and claim.status == "proved":
        currency = CURRENCY_OF_DEFINITION[claim.definition]
    elif not rule.unproved:
        fault = f"has a promise that is {claim.status}" if promised else "makes no promise"
        return Verdict(
            "mechanism",
            f"The mechanism {made.title} {fault}, and this app is granted proved mechanisms only.",
        )
    reason = f"The mechanism {made.title} is granted."
    return Verdict("allowed", reason, currency, int(getattr(made, "stride", 1)))


def weakest(rule: MechanismRule) -> str:
    """The mechanism with the least protection that a rule allows, as an app would write it.

    Examples
    --------
    >>> bounds = {"epsilon": ("<=", 3), "w": ("any", None), "r_deg": ("in", (2, 5))}
    >>> weakest(MechanismRule("kaleido", bounds))
    'kaleido:epsilon=2,w=30,r_deg=2'
    """
    return _weakest_text(rule.name, rule.parameters)


def _weakest_text(mechanism: str, bounds: Mapping[str, Bound]) -> str:
    written = []
    for name, (sign, value) in bounds.items():
        choices = {"in": value, "=": (value,)}.get(sign) or _choices(mechanism, name, (sign, value))
        default = comparable(_defaults(mechanism)[name])
        chosen = choices[0]
        if name in _WEAKEST and all(isinstance(choice, Fraction) for choice in choices):
            chosen = _WEAKEST[name](choices)
        elif any(same(default, choice) for choice in choices):
            chosen = default
        if chosen is not None:
            written.append(f"{name}={chosen}")
    return f"{mechanism}:" + ",".join(written)


def _public(name: str, parameter: str) -> tuple[Value, ...]:
    """The public list of a parameter: its default alone where there is no list."""
    default = _defaults(name)[parameter]
    values = PUBLIC.get(name, {}).get(parameter, () if default is MISSING else (default,))
    return tuple(map(comparable, values))


@lru_cache(maxsize=4096)
def _choices(name: str, parameter: str, bound: Bound) -> tuple[Value, ...]:
    """What of the public list a bound lets pass."""
    return tuple(value for value in _public(name, parameter) if within(value, bound))


@lru_cache(maxsize=256)
def _defaults(name: str) -> dict[str, object]:
    """Parameters of a mechanism and their defaults, the reading last; MISSING
    where there is none.
    """
    ordered = sorted(fields(registry.get(name)), key=lambda f: bool(f.kw_only))
    own = {f.name: f.default for f in ordered}
    reading = own.pop("reading")
    return {**own, "reading": reading}


def _checked_stages(owner: str, parameter: str, bound: object) -> Bound:
    """The bound of a chain's stages in its exact form: the text of one chain that may be had."""
    sign, value = bound if isinstance(bound, tuple | list) and len(bound) == 2 else (None, None)
    if sign != "=":
        hint = 'Write for example stages = "gaussian(sigma_deg=10)+temporal(K=3)".'
        refuse(owner, parameter, "given as the whole text of the chain", bound, hint)
    if names_file(str(value)):
        refuse(owner, parameter, f"written with files {_NO_FILES}", value, _NUMBER_INSTEAD)
    chain: Any = registry.mechanism("chain", stages=value)
    if (why := problem(chain)) is not None:
        raise ParameterError(
            f"The chain {str(value)[:100]} cannot be granted: {why}.", name=parameter, got=value
        )
    return "=", str(chain.parameters()["stages"])


def _did_you_mean(written: object, names: Iterable[str]) -> str:
    near = get_close_matches(str(written), list(names), n=1)
    return f"Did you mean '{near[0]}'?" if near else ""


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split()) or "The mechanism cannot be made."
    return (text if len(text) <= 300 else text[:297] + "...").rstrip(".") + "."


def rule_text(rule: MechanismRule) -> str:
    """A rule of a grant as one line: `kaleido:epsilon<=1,w>=60`."""
    bounds = []
    for name, (sign, value) in rule.parameters.items():
        if sign == "any":
            bounds.append(f"{name} any")
        elif sign == "..":
            bounds.append(f"{name} {value[0]}..{value[1]}")
        elif sign == "in":
            bounds.append(f"{name} in {'|'.join(str(v) for v in value)}")
        else:
            bounds.append(f"{name}{sign}{value}")
    return rule.name + (":" + ",".join(bounds) if bounds else "")
