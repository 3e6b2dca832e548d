"""Policies as TOML files.

Every key is known or an error that names it and what is allowed in its place. An app's table may
begin with `preset = "follow"` and change single keys of it. Bounds of parameters are written as
people write them::

    parameters = { epsilon = "<= 1", w = "60..240", r_deg = ">= 2", snap_deg = "any" }
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

from gazeveil import checks
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gatekeeper.policy.bounds import Bound
from gazeveil.gatekeeper.policy.grant import DeviceLimits, Grant
from gazeveil.gatekeeper.policy.identity import LocalIdentity
from gazeveil.gatekeeper.policy.presets import PRESETS
from gazeveil.gatekeeper.policy.rules import MechanismRule
from gazeveil.gatekeeper.policy.wearers import OWNER, Wearer

#: Longest policy that is read, in characters.
LONGEST = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOP = ("version", "consent", "device", "apps", "wearers")
_WEARER = ("consent", "apps")
_DEVICE = ("epsilon", "rho", "samples", "per", "r_deg")
_GRANT = ("preset", *(f.name for f in fields(Grant)), "expires")
_RULE = tuple(f.name for f in fields(MechanismRule))


def read(path: Path) -> str:
    """The text of a policy file."""
    if path.suffix.lower() != ".toml":
        raise FormatError(path, "a policy is a file that ends in .toml", "Write it as TOML.")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FormatError(
            path, f"the policy cannot be read ({error.strerror or 'input or output failed'})"
        ) from None
    except UnicodeDecodeError:
        raise FormatError(path, "the policy is not UTF-8 text", "Save it as UTF-8.") from None


def tree_of(text: str) -> object:
    """The tables of TOML text."""
    if len(text) > LONGEST:
        raise ParameterError(
            f"A policy has at most {LONGEST} characters. Got {len(text)} instead.",
            name="policy",
            got=len(text),
        )
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"The policy is not TOML: {error}.", name="policy", got=None) from None
    except RecursionError:
        raise ParameterError(
            "The policy is nested too deeply. Write it flat.", name="policy", got=None
        ) from None


def fields_of(tree: object) -> dict[str, Any]:
    """The arguments of a Policy, from tables as TOML or JSON give them."""
    top = _table("policy", {} if tree is None else tree, _TOP)
    wearers = top.get("wearers", {})
    if not isinstance(wearers, Mapping):
        checks.refuse("policy", "wearers", "a table of wearers", wearers)
    if OWNER in wearers:
        raise ParameterError(
            f"The policy key wearers.{OWNER} is not allowed: the apps and the consent of '{OWNER}'"
            " stand at the top.",
            name="wearers",
        )
    device = _table("policy key device", top.get("device", {}), _DEVICE)
    others = {str(name): _wearer(entry, f"wearers.{name}") for name, entry in wearers.items()}
    plain: dict[str, Any] = {key: top[key] for key in ("consent", "version") if key in top}
    return {"apps": _grants(top, ""), "device": DeviceLimits(**device), "others": others, **plain}


def _wearer(tree: object, where: str) -> Wearer:
    table = _table(f"policy key {where}", tree, _WEARER)
    return Wearer(table.get("consent", False), _grants(table, f"{where}."))


def _grants(tree: Mapping[str, Any], where: str) -> dict[str, Grant]:
    apps = tree.get("apps", {})
    if not isinstance(apps, Mapping):
        checks.refuse("policy", f"{where}apps", "a table of apps", apps)
    return {str(app): grant_of(entry, f"{where}apps.{app}") for app, entry in apps.items()}


def grant_of(tree: object, where: str = "grant") -> Grant:
    """A grant from a table; `preset` fills in what the other keys do not say."""
    table = _table(f"policy key {where}", tree, _GRANT)
    values: dict[str, Any] = {}
    if "preset" in table:
        name = table.pop("preset")
        preset = PRESETS[checks.one_of(f"policy key {where}", "preset", name, PRESETS)]
        values = {f.name: getattr(preset, f.name) for f in fields(Grant)}
    if "expires" in table:
        if "expires_ns" in table:
            allowed = "left out where 'expires_ns' is given"
            checks.refuse(f"policy key {where}", "expires", allowed, table["expires"])
        table["expires_ns"] = _moment(where, table.pop("expires"))
    for name in ("scopes", "origins", "mechanisms"):
        if name in table and not isinstance(table[name], list | tuple):
            checks.refuse(f"policy key {where}", name, "a list", table[name])
    if "identity" in table:
        table["identity"] = LocalIdentity(
            **_table(f"policy key {where}.identity", table["identity"], ("uid", "executable"))
        )
    if "mechanisms" in table:
        table["mechanisms"] = tuple(
            _rule(entry, f"{where}.mechanisms[{i}]") for i, entry in enumerate(table["mechanisms"])
        )
    for name in ("scopes", "origins"):
        if name in table and len(set(map(str, table[name]))) != len(table[name]):
            checks.refuse(f"policy key {where}", name, "a list without repetitions", table[name])
    if isinstance(table.get("most_hz"), Decimal):
        table["most_hz"] = float(table["most_hz"])
    try:
        return Grant(**{**values, **table})
    except ParameterError as error:
        raise ParameterError(
            f"In the policy key {where}: {error}", name=error.name, got=error.got
        ) from None


def _rule(tree: object, where: str) -> MechanismRule:
    table = _table(f"policy key {where}", tree, _RULE)
    if "name" not in table:
        checks.refuse(f"policy key {where}", "name", "the name of a mechanism", None)
    parameters = table.get("parameters", {})
    if not isinstance(parameters, Mapping):
        checks.refuse(f"policy key {where}", "parameters", "a table of bounds", parameters)
    bounds = {str(name): bound_of(value) for name, value in parameters.items()}
    return MechanismRule(table["name"], bounds, table.get("unproved", False))


def bound_of(value: object) -> Bound:
    """A bound as a policy file writes it.

    Examples
    --------
    >>> bound_of("<= 1"), bound_of("60..240"), bound_of(2), bound_of("any")
    (('<=', '1'), ('..', ('60', '240')), ('=', 2), ('any', None))
    """
    if isinstance(value, list | tuple):
        return "in", tuple(value)
    if isinstance(value, Mapping):
        allowed = "a bound such as '<= 1', '60..240', 2, [2, 3] or 'any'"
        checks.refuse("MechanismRule", "parameters", allowed, dict(value))
    if not isinstance(value, str):
        return "=", value
    text = value.strip()
    if text == "any":
        return "any", None
    for sign in ("<=", ">=", "="):
        if text.startswith(sign):
            return sign, text.removeprefix(sign).strip()
    low, dots, high = text.partition("..")
    return ("..", (low.strip(), high.strip())) if dots else ("=", text)


def _table(owner: str, value: object, allowed: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ParameterError(
            f"The {owner} must be a table with the keys {', '.join(allowed)}. Got"
            f" {str(value)[:60]!r} instead.",
            name=owner,
            got=value,
        )
    for key in value:
        if key not in allowed:
            near = get_close_matches(str(key), allowed, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else ""
            raise ParameterError(
                f"The {owner} has no key '{str(key)[:60]}'. Allowed: {', '.join(allowed)}."
                f" {hint}".rstrip(),
                name=str(key),
                got=value[key],
            )
    return {str(k): v for k, v in value.items()}


def _moment(where: str, value: object) -> int:
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    if not isinstance(value, datetime) or value.tzinfo is None:
        allowed = "a date and time with its zone, as 2030-01-31T12:00:00Z"
        checks.refuse(f"policy key {where}", "expires", allowed, value)
    return (value - _EPOCH) // timedelta(microseconds=1) * 1000


def write(
    version: int,
    consent: bool,
    device: DeviceLimits,
    apps: Mapping[str, Grant],
    others: Mapping[str, Wearer],
) -> str:
    """The fields of a policy, worn by the owner, as TOML that reads back as itself."""
    lines = [f"version = {version}", f"consent = {_literal(consent)}", "", "[device]"]
    lines += [f"{n} = {_literal(getattr(device, n))}" for n in _DEVICE]
    for app in sorted(apps):
        lines += ["", *grant_lines("apps", app, apps[app])]
    for name in sorted(others):
        wearer, where = others[name], f"wearers.{_literal(name)}"
        lines += ["", f"[{where}]", f"consent = {_literal(wearer.consent)}"]
        for app in sorted(wearer.apps):
            lines += ["", *grant_lines(f"{where}.apps", app, wearer.apps[app])]
    return "\n".join(lines) + "\n"


def grant_lines(where: str, app: str, grant: Grant) -> list[str]:
    """The tables of one app under `apps` or `wearers.NAME.apps`, line by line."""
    key = f"{where}.{_literal(app)}"
    lines = [f"[{key}]", f"scopes = {_literal(sorted(grant.scopes))}"]
    lines += [
        f"{n} = {_literal(getattr(grant, n))}" for n in ("areas", "calls_per_minute", "streams")
    ]
    if grant.most_hz is not None:
        lines.append(f"most_hz = {grant.most_hz!r}")
    pairs = ", ".join(f"{c} = {_literal(v)}" for c, v in grant.budgets.items())
    lines += [
        f"budgets = {{ {pairs} }}" if pairs else "budgets = {}",
        f"per = {_literal(grant.per)}",
    ]
    if grant.expires_ns is not None:
        lines.append(f"expires_ns = {grant.expires_ns}")
    lines += [
        f"origins = {_literal(list(grant.origins))}",
        f"revoked = {_literal(grant.revoked)}",
        f"lasts = {_literal(grant.lasts)}",
    ]
    if grant.identity is not None:
        known = {"uid": grant.identity.uid, "executable": grant.identity.executable}
        lines.append(
            "identity = { "
            + ", ".join(f"{n} = {_literal(v)}" for n, v in known.items() if v is not None)
            + " }"
        )
    for rule in grant.mechanisms:
        bounds = ", ".join(f"{n} = {_bound_text(b)}" for n, b in rule.parameters.items())
        lines += [
            "",
            f"[[{key}.mechanisms]]",
            f"name = {_literal(rule.name)}",
            f"parameters = {{ {bounds} }}" if bounds else "parameters = {}",
        ]
        lines.append(f"unproved = {_literal(rule.unproved)}")
    return lines


def _bound_text(bound: Bound) -> str:
    sign, value = bound
    if sign == "any":
        return '"any"'
    if sign == "in":
        return "[" + ", ".join(_literal(v) for v in value) + "]"
    if sign == "..":
        return f'"{value[0]}..{value[1]}"'
    # A word is written with its sign: without it, the word `any` would read back as no bound at
    # all.
    return (
        json.dumps(f"{sign} {value}") if isinstance(value, str) or sign != "=" else _literal(value)
    )


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Fraction):
        return str(value.numerator) if value.denominator == 1 else f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(_literal(v) for v in value) + "]"
    # JSON's escapes are TOML's, but for DEL, which no name and no bound holds.
    return json.dumps("none" if value is None else str(value))
