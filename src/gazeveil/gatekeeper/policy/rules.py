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
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from gazeveil.checks import refuse
from gazeveil.errors import GazeveilError, ParameterError
from gazeveil.gatekeeper.policy.families import COPIES, PUBLIC, copies, family_of, problem
from gazeveil.privacy import registry
from gazeveil.privacy.rational import exact, format_exact
from gazeveil.registry import parse

#: Longest text of a mechanism that is read.
LONGEST_TEXT = 512

#: How a parameter may be bounded, as a policy in Python writes it; `..` is a range with both ends,
#: `in` one of several values.
SIGNS = ("<=", ">=", "=", "..", "in", "any")

_NUMBER = re.compile(
    r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2})?|[+-]?\d{1,40}/\d{1,40}", re.ASCII
)
#: Exponents of three digits and digits with underscores: an exact number of that size fills the
#: memory.
_BOMB = re.compile(r"[eE][+-]?[\d_]{3,}|\d_")

#: What the ledger counts for each definition; what promises nothing is counted in samples.
CURRENCIES: Mapping[str, str] = MappingProxyType(
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

#: Families whose promise is about another change than all others, and so is counted apart.
OWN_CURRENCIES: Mapping[str, str] = MappingProxyType({"gaussian-place": "place"})

Value = Fraction | bool | str | None
Bound = tuple[str, Any]


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
        if self.name not in registry.mechanisms() or registry.get(self.name).kind != "stream":
            found = [n for n in registry.mechanisms() if registry.get(n).kind == "stream"]
            near = get_close_matches(str(self.name), found, n=1)
            refuse(
                "MechanismRule",
                "name",
                "a mechanism on streams: " + ", ".join(found),
                self.name,
                f"Did you mean '{near[0]}'?" if near else "",
            )
        if self.name in COPIES:
            raise ParameterError(
                f"The rule for {self.name} cannot be granted: {copies(self.name)}.",
                name="name",
                got=self.name,
            )
        if not isinstance(self.unproved, bool):
            refuse(f"the rule for {self.name}", "unproved", "true or false", self.unproved)
        if not isinstance(self.parameters, Mapping):
            refuse(f"the rule for {self.name}", "parameters", "a table of bounds", self.parameters)
        known = _defaults(self.name)
        for one in self.parameters:
            if one not in known:
                near = get_close_matches(str(one), known, n=1)
                refuse(
                    f"the rule for {self.name}",
                    "parameters",
                    "about " + ", ".join(known),
                    one,
                    f"Did you mean '{near[0]}'?" if near else "",
                )
        for one, default in known.items():
            if default is MISSING and one not in self.parameters:
                refuse(
                    f"the rule for {self.name}",
                    one,
                    "bounded, because it has no default",
                    None,
                    f'Write for example {one} = "<= 1" or {one} = "any".',
                )
        bounds = {
            one: _checked(self.name, one, self.parameters[one])
            for one in known
            if one in self.parameters
        }
        for one, bound in bounds.items():
            if self.name in OWN_CURRENCIES and bound[0] in ("=", "in"):
                # All its streams have one walk and one noise, whose list is fixed.
                for value in bound[1] if bound[0] == "in" else (bound[1],):
                    if not _within(value, ("in", _public(self.name, one))):
                        refuse(
                            f"the rule for {self.name}",
                            one,
                            _words(("in", _public(self.name, one))),
                            _said(value),
                        )
            if bound[0] not in ("=", "in") and not _choices(self.name, one, bound):
                listed = ", ".join(_said(v) for v in _public(self.name, one))
                refuse(
                    f"the rule for {self.name}",
                    one,
                    f"a bound that lets one of {listed} pass",
                    _words(bound),
                    "Or name the values one by one, as [4, 6].",
                )
        object.__setattr__(self, "parameters", MappingProxyType(bounds))
        object.__setattr__(self, "_hash", hash((self.name, tuple(bounds.items()), self.unproved)))

    def __hash__(self) -> int:
        # Verdicts are kept by rule and text, because a stream asks before every sample.
        return getattr(self, "_hash")  # noqa: B009  (set in __post_init__, not a field)

    def __reduce__(self) -> tuple[type[MechanismRule], tuple[str, dict[str, Bound], bool]]:
        # Mapping proxies cannot be pickled.
        return MechanismRule, (self.name, dict(self.parameters), self.unproved)


@dataclass(frozen=True)
class Verdict:
    """What the rules say about one text.

    Parameters
    ----------
    code : str
        `allowed`, `mechanism` or `parameter`.
    reason : str
        One sentence.
    currency : str
        What its budget is counted in, where it is allowed.
    stride : int
        Every how many samples one is released.
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
        or _BOMB.search(text)
    ):
        return Verdict(
            "mechanism",
            f"A mechanism is written name:parameter=value,... in at most {LONGEST_TEXT} plain"
            " characters, with numbers of ordinary size.",
        )
    try:
        name, given = parse(text)
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
        verdict = _by(rule, text, given)
        if verdict.code == "allowed":
            return verdict
        first = first or verdict
    return first or Verdict("mechanism", "No rule applies.")


def _by(rule: MechanismRule, text: str, given: Mapping[str, object]) -> Verdict:
    known = _defaults(rule.name)
    for one in given:
        if one not in known:
            return Verdict(
                "parameter",
                f"The mechanism {rule.name} has no parameter '{one[:40]}'. It takes:"
                f" {', '.join(known)}.",
            )
    for one, default in known.items():
        if one not in given:
            if default is MISSING:
                return Verdict(
                    "parameter", f"The mechanism {rule.name} needs the parameter '{one}'."
                )
            # A default that the rule does not allow must be changed by the app, so it is judged
            # like a value that was written.
            value: object = default
        else:
            value = given[one]
        bound = rule.parameters.get(one, ("=", _plain(default)))
        if one == "stages":
            try:
                value = str(registry.mechanism("chain", stages=value).parameters()["stages"])
            except (GazeveilError, RecursionError) as error:
                return Verdict("parameter", _sentence(error))
        if not _within(_plain(value), bound):
            return Verdict(
                "parameter",
                f"The parameter '{one}' of {rule.name} must be {_words(bound)};"
                f" {_said(_plain(value))} was asked for.",
            )
        if bound[0] not in ("=", "in") and not _within(
            _plain(value), ("in", choices := _choices(rule.name, one, bound))
        ):
            listed = _words(("in", choices))
            return Verdict(
                "parameter",
                f"The parameter '{one}' of {rule.name} must be {listed}, a public list;"
                f" {_said(_plain(value))} was asked for.",
            )
    try:
        made = registry.mechanism(text)
    except GazeveilError as error:
        return Verdict("parameter", _sentence(error))
    if (why := problem(made)) is not None:  # type: ignore[arg-type]
        return Verdict("mechanism", why + ".")
    claim = made.claim
    proved = claim.definition != "none" and claim.status == "proved"
    if not proved and not rule.unproved:
        what = (
            "makes no promise"
            if claim.definition == "none"
            else f"has a promise that is {claim.status}"
        )
        return Verdict(
            "mechanism",
            f"The mechanism {made.title} {what}, and this app is granted proved mechanisms only.",
        )
    currency = (
        OWN_CURRENCIES.get(family_of(made), CURRENCIES[claim.definition]) if proved else "samples"  # type: ignore[arg-type]
    )
    return Verdict(
        "allowed",
        f"The mechanism {made.title} is granted.",
        currency,
        int(getattr(made, "stride", 1)),
    )


def weakest(rule: MechanismRule) -> str:
    """The mechanism with the least protection that a rule allows, as an app would write it.

    Examples
    --------
    >>> weakest(MechanismRule("kaleido", {"epsilon": ("<=", 3), "w": ("any", None), "r_deg": ("in", (2, 5))}))
    'kaleido:epsilon=2,w=30,r_deg=2'
    """
    written = []
    for name, (sign, value) in rule.parameters.items():
        choices = (
            value
            if sign == "in"
            else (value,)
            if sign == "="
            else _choices(rule.name, name, (sign, value))
        )
        default = _plain(_defaults(rule.name)[name])
        chosen = choices[0]
        if all(isinstance(one, Fraction) for one in choices) and (
            name == "epsilon" or name in ("sigma_deg", "w", "r_deg")
        ):
            chosen = max(choices) if name == "epsilon" else min(choices)
        elif any(_same(default, one) for one in choices):
            chosen = default
        if chosen is not None:
            written.append(f"{name}={chosen}")
    return f"{rule.name}:" + ",".join(written)


def _public(name: str, parameter: str) -> tuple[Value, ...]:
    """The public list of a parameter: its default alone where there is no list."""
    default = _defaults(name)[parameter]
    return tuple(
        _plain(v)
        for v in PUBLIC.get(name, {}).get(parameter, () if default is MISSING else (default,))
    )


@lru_cache(maxsize=4096)
def _choices(name: str, parameter: str, bound: Bound) -> tuple[Value, ...]:
    """What of the public list a bound lets pass."""
    return tuple(v for v in _public(name, parameter) if _within(v, bound))


@lru_cache(maxsize=256)
def _defaults(name: str) -> dict[str, object]:
    """Parameters of a mechanism and their defaults, the reading last; MISSING
    where there is none.
    """
    own = {f.name: f.default for f in fields(registry.get(name))}
    reading = own.pop("reading")
    return {**own, "reading": reading}


def _plain(value: object) -> Value:
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


def _checked(owner: str, name: str, bound: object) -> Bound:
    """A bound in its exact form, with the numbers as fractions."""
    if not (isinstance(bound, tuple | list) and len(bound) == 2 and bound[0] in SIGNS):
        refuse(
            f"the rule for {owner}",
            name,
            "a pair of a sign (" + " ".join(SIGNS) + ") and a value",
            bound,
        )
    sign, value = str(bound[0]), bound[1]
    where = f"the rule for {owner}"
    if name == "stages":
        if sign != "=":
            refuse(
                where,
                name,
                "given as the whole text of the chain",
                bound,
                'Write for example stages = "gaussian(sigma_deg=10)+temporal(K=3)".',
            )
        chain: Any = registry.mechanism("chain", stages=value)
        if (why := problem(chain)) is not None:
            raise ParameterError(
                f"The chain {str(value)[:100]} cannot be granted: {why}.", name=name, got=value
            )
        return "=", str(chain.parameters()["stages"])
    if sign == "any":
        return "any", None
    if sign in {"<=", ">="}:
        return sign, _exactly(where, name, value)
    if sign == "..":
        if not (isinstance(value, tuple | list) and len(value) == 2):
            refuse(where, name, "a range of two numbers", value)
        low, high = (_exactly(where, name, v) for v in value)
        if low > high:
            refuse(
                where, name, "a range whose first number is not above the second", f"{low}..{high}"
            )
        return "..", (low, high)
    if sign == "in":
        if not isinstance(value, tuple | list) or not value:
            refuse(where, name, "one or more values", value)
        return "in", tuple(_plain(v) for v in value)
    return "=", _plain(value)


def _exactly(where: str, name: str, value: object) -> Fraction:
    number = _plain(value)
    if not isinstance(number, Fraction):
        refuse(where, name, "an exact number such as 1, 0.1 or '1/3'", value)
    return number


def _within(value: Value, bound: Bound) -> bool:
    sign, edge = bound
    if sign == "any":
        return True
    if sign == "=":
        return _same(value, edge)
    if sign == "in":
        return any(_same(value, one) for one in edge)
    if not isinstance(value, Fraction):
        return False
    if sign == "<=":
        return value <= edge
    if sign == ">=":
        return value >= edge
    return bool(edge[0] <= value <= edge[1])


def _same(one: Value, other: Value) -> bool:
    # True is the number 1 in Python; in a policy it is not.
    return type(one) is type(other) and one == other


def _words(bound: Bound) -> str:
    sign, edge = bound
    if sign == "in":
        return "one of " + ", ".join(_said(v) for v in edge)
    if sign == "..":
        return f"from {_said(edge[0])} to {_said(edge[1])}"
    return {"<=": "at most ", ">=": "at least ", "=": ""}.get(sign, "anything ") + _said(edge)


def _said(value: Value) -> str:
    if isinstance(value, Fraction):
        return format_exact(value)
    text = (
        "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )
    return text if len(text) <= 60 else text[:57] + "..."


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
