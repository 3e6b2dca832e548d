"""Who may have what: a policy is a value, which is imported and exported as TOML.

Nothing is allowed that no grant names. Without the wearer's consent nothing is allowed at all.
:func:`gazeveil.gatekeeper.policy.decision.decide` says what a policy allows.

Several people may wear a device. The platform says who does
(:meth:`gazeveil.gatekeeper.core.gatekeeper.Gatekeeper.switch_wearer`). Consent, grants and budgets
follow the wearer. The first one, :data:`OWNER`, has the top of a policy; the others have a table
`[wearers.NAME]` each. A wearer the policy does not name has no consent and no grants. What a wearer
spent stays spent in the ledger, under an account that holds the wearer's name.

Every key of the TOML is known, or an error names it and what is allowed in its place::

    consent = true

    [apps.shop]
    preset = "count"
    origins = ["https://shop.example"]
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gazeveil import checks
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gatekeeper.policy.grant import PRESETS, DeviceLimits, Grant, values_of

#: The wearer that the top of a policy belongs to.
OWNER = "owner"

#: Message to subscribers at a change of wearer.
CHANGED = "Another person wears the device now. Ask again."

#: How names look, in words, and as a pattern.
NAMES = "1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

_MEANING = frozenset({"device", "gazeveil", OWNER, "tracker", "wearer"})
_NAME = re.compile(NAME_PATTERN[:-1] + r"\Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def checked_name(owner: str, parameter: str, name: object) -> str:
    """The name of a wearer or an app, or a ParameterError that says how names look."""
    if not isinstance(name, str) or not _NAME.match(name):
        checks.refuse(owner, parameter, NAMES, name)
    return name


def account_of(app: str, wearer: str | None = OWNER) -> str:
    """The ledger's account of an app.

    Examples
    --------
    >>> account_of("shop"), account_of("shop", "anna")
    ('app:shop', 'wearer:anna:app:shop')
    """
    return device_account(f"app:{app}", wearer)


def device_account(device: str, wearer: str | None = OWNER) -> str:
    """The ledger's account of a device: what left it about one wearer.

    Examples
    --------
    >>> device_account("device"), device_account("device", "anna")
    ('device', 'wearer:anna:device')
    """
    # An unknown wearer's account is never paid from.
    return device if wearer == OWNER else f"wearer:{wearer or ''}:{device}"


@dataclass(frozen=True)
class Wearer:
    """What one wearer has decided: consent, off by default so that nothing leaves, and grants by
    app.
    """

    consent: bool = False
    apps: Mapping[str, Grant] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.consent, bool):
            checks.refuse("policy", "consent", "true or false", self.consent)
        for app, grant in self.apps.items():
            if checked_name("policy", "app", app).lower() in _MEANING:
                allowed = f"none of {', '.join(sorted(_MEANING))}, which mean something here"
                checks.refuse("policy", "app", allowed, app)
            if not isinstance(grant, Grant):
                checks.refuse("policy", f"apps.{app}", "a Grant", grant)
        object.__setattr__(self, "apps", MappingProxyType(dict(self.apps)))


@dataclass(frozen=True)
class Policy:
    """Grants by app, limits of the device, and whether the wearer consents at all.

    Parameters
    ----------
    apps : mapping of str to Grant
        Names are up to 64 letters, digits, dots, dashes and underscores.
    device : DeviceLimits
        Limits for all apps together.
    consent : bool
        Off by default: nothing leaves.
    wearer : str, optional
        Wearer of these `apps` and `consent`; None for a wearer the policy does not name, with
        neither.
    others : mapping of str to Wearer
        What the other wearers of the device have decided.

    Examples
    --------
    >>> from gazeveil.gatekeeper.policy.decision import Request, decide
    >>> policy = Policy({"shop": Grant(frozenset({"areas"}))}, consent=True)
    >>> decide(policy, Request("shop", "areas")).allow
    True
    >>> print(decide(policy, Request("shop", "fixations")).reason)
    The scope 'fixations' is not granted to this app. Call ask("count" or "study").
    """

    apps: Mapping[str, Grant] = field(default_factory=dict)
    device: DeviceLimits = field(default_factory=DeviceLimits)
    consent: bool = False
    wearer: str | None = OWNER
    others: Mapping[str, Wearer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        mine = Wearer(self.consent, self.apps)
        object.__setattr__(self, "apps", mine.apps)
        for name in self.others:
            checked_name("policy", "wearer", name)
        if self.wearer is not None:
            checked_name("policy", "wearer", self.wearer)
        elif self.apps or self.consent:
            hint = "Add [wearers.NAME] to the policy, or switch to a wearer that it names."
            allowed = "one that the policy names, where there is consent or a grant"
            checks.refuse("policy", "wearer", allowed, None, hint)
        object.__setattr__(self, "others", MappingProxyType(dict(self.others)))
        # Two apps of one user would be one.
        owners: dict[int, str] = {}
        for wearer in (mine, *self.others.values()):
            for app, grant in wearer.apps.items():
                if grant.uid is not None and owners.setdefault(grant.uid, app) != app:
                    allowed = f"another than that of the app '{owners[grant.uid]}'"
                    checks.refuse("policy", f"apps.{app}.uid", allowed, grant.uid)

    @property
    def wearers(self) -> Mapping[str, Wearer]:
        """What every wearer has decided, by name."""
        mine = {} if self.wearer is None else {self.wearer: Wearer(self.consent, self.apps)}
        return {**mine, **self.others}

    @property
    def grants(self) -> dict[tuple[str, str], Grant]:
        """All grants, by wearer and app."""
        return {
            (name, app): grant
            for name, wearer in self.wearers.items()
            for app, grant in wearer.apps.items()
        }

    def worn_by(self, name: str | None) -> Policy:
        """The policy for another wearer, with that wearer's `apps` and `consent`; they are empty
        and off for a wearer the policy does not name.

        Examples
        --------
        >>> policy = Policy(consent=True, others={"anna": Wearer()})
        >>> anna = policy.worn_by("anna")
        >>> anna.consent, policy.worn_by("zoe").wearer, anna.worn_by("owner") == policy
        (False, None, True)
        """
        everyone = dict(self.wearers)
        theirs = None if name is None else everyone.pop(name, None)
        if theirs is None:
            return Policy({}, self.device, False, None, everyone)
        return Policy(theirs.apps, self.device, theirs.consent, name, everyone)

    def with_grant(self, app: str, grant: Grant) -> Policy:
        """The policy with an app's grant put in or replaced."""
        return replace(self, apps={**self.apps, app: grant})

    def without(self, app: str) -> Policy:
        """The policy with the grants of an app left out, those of all wearers."""
        return self.with_apps(lambda name, grant: None if name == app else grant)

    def with_apps(self, change: Callable[[str, Grant], Grant | None]) -> Policy:
        """The policy with every grant of every wearer changed by a function; None leaves it out."""

        def changed(apps: Mapping[str, Grant]) -> dict[str, Grant]:
            made = {app: change(app, grant) for app, grant in apps.items()}
            return {app: grant for app, grant in made.items() if grant is not None}

        others = {n: replace(w, apps=changed(w.apps)) for n, w in self.others.items()}
        return replace(self, apps=changed(self.apps), others=others)

    @classmethod
    def load(cls, path: Path | str) -> Policy:
        """A policy from a TOML file.

        Raises
        ------
        FormatError
            With the key that is wrong and what is allowed there, or why it cannot be read.
        """
        where = Path(path)
        try:
            return cls.parse(where.read_text(encoding="utf-8"))
        except OSError as error:
            why = f"the policy cannot be read ({error.strerror or 'input or output failed'})"
            raise FormatError(where, why) from None
        except UnicodeDecodeError:
            raise FormatError(where, "the policy is not UTF-8 text", "Save it as UTF-8.") from None
        except ParameterError as error:
            raise FormatError(where, str(error).rstrip(".")) from None

    @classmethod
    def parse(cls, text: str) -> Policy:
        """A policy from TOML text.

        Raises
        ------
        ParameterError
            With the key that is wrong and what is allowed there.
        """
        try:
            return cls.of(tomllib.loads(text, parse_float=Decimal))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ParameterError(f"The policy is not TOML: {error}.", name="policy") from None

    @classmethod
    def of(cls, tree: object) -> Policy:
        """A policy from tables, as TOML gives them."""
        top = _table("policy", tree, ("consent", "device", "apps", "wearers"))
        wearers = _table("policy key wearers", top.pop("wearers", {}))
        if OWNER in wearers:
            raise ParameterError(
                f"The policy key wearers.{OWNER} is not allowed: the apps and the consent of"
                f" '{OWNER}' stand at the top.",
                name="wearers",
            )
        keys = tuple(f.name for f in fields(DeviceLimits))
        device = DeviceLimits(**_table("policy key device", top.pop("device", {}), keys))
        mine = _wearer(top, "")
        others = {name: _wearer(tree, f"wearers.{name}.") for name, tree in wearers.items()}
        return cls(mine.apps, device, mine.consent, OWNER, others)

    def text(self) -> str:
        """The policy as TOML, for all wearers; `Policy.parse(policy.text())` is equal to
        `policy.worn_by("owner")`.
        """
        mine = self.worn_by(OWNER)
        device = {name: plain(value) for name, value in asdict(self.device).items()}
        others = {name: _wearer_table(wearer) for name, wearer in sorted(mine.others.items())}
        top = _wearer_table(Wearer(mine.consent, mine.apps))
        return "\n".join(_toml({**top, "device": device, "wearers": others})).strip() + "\n"


def _wearer(tree: object, where: str) -> Wearer:
    table = _table(f"policy key {where.rstrip('.') or 'top'}", tree, ("consent", "apps"))
    apps = _table(f"policy key {where}apps", table.get("apps", {}))
    return Wearer(
        table.get("consent", False),
        {app: grant_of(entry, f"{where}apps.{app}") for app, entry in apps.items()},
    )


def _wearer_table(wearer: Wearer) -> dict[str, Any]:
    apps = {app: grant_table(grant) for app, grant in sorted(wearer.apps.items())}
    return {"consent": wearer.consent, "apps": apps}


def grant_of(tree: object, where: str = "grant") -> Grant:
    """A grant from a table of TOML or JSON; `preset` fills in what the other keys do not say."""
    keys = (*(f.name for f in fields(Grant)), "expires")
    table = _table(f"policy key {where}", tree, keys)
    if "expires" in table:
        table["expires_ns"] = _moment(where, table.pop("expires"))
    if "budgets" in table:
        table["budgets"] = _table(f"policy key {where}.budgets", table["budgets"])
    try:
        for name in ("scopes", "origins", "mechanisms"):
            if not isinstance(table.get(name, []), list):
                checks.refuse("Grant", name, "a list", table[name])
        name = checks.one_of("Grant", "preset", table.get("preset", ""), ("", *PRESETS))
        preset = PRESETS.get(name)
        return preset.grant(**table) if preset else Grant(**table)
    except ParameterError as error:
        reason = f"In the policy key {where}: {error}"
        raise ParameterError(reason, name=error.name, got=error.got) from None


def grant_table(grant: Grant) -> dict[str, Any]:
    """A grant as TOML and JSON have it: what is not said by its preset."""
    return {name: plain(value) for name, value in values_of(grant).items() if value is not None}


def plain(value: object) -> Any:
    """A value as TOML and JSON have it; exact numbers that are not whole are texts."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else str(value)
    return value


def _table(owner: str, value: object, allowed: tuple[str, ...] = ()) -> dict[str, Any]:
    """A copy of a table whose keys are all known."""
    if not isinstance(value, Mapping):
        checks.refuse(owner, "value", "a table", value)
    for key in value:
        if allowed and key not in allowed:
            near = get_close_matches(str(key), allowed, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise ParameterError(
                f"The {owner} has no key '{str(key)[:60]}'. Allowed: {', '.join(allowed)}.{hint}",
                name=str(key),
                got=value[key],
            )
    return {str(key): part for key, part in value.items()}


def _moment(where: str, value: object) -> int:
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    if not isinstance(value, datetime) or value.tzinfo is None:
        allowed = "a date and time with its zone, as 2030-01-31T12:00:00Z"
        checks.refuse(f"policy key {where}", "expires", allowed, value)
    return (value - _EPOCH) // timedelta(microseconds=1) * 1000


def _toml(tree: Mapping[str, Any], where: str = "") -> list[str]:
    """Lines of TOML; values of JSON are values of TOML."""
    tables = {name: value for name, value in tree.items() if isinstance(value, dict)}
    lines = [
        f"{_key(name)} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in tree.items()
        if name not in tables
    ]
    for name, table in tables.items():
        inner = f"{where}{_key(name)}"
        lines += ["", f"[{inner}]", *_toml(table, f"{inner}.")]
    return lines


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
