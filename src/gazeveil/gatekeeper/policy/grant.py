"""What one app may have, and the limits for all apps together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from types import MappingProxyType

from gazeveil import checks
from gazeveil.gatekeeper.policy.identity import LocalIdentity
from gazeveil.gatekeeper.policy.rules import MechanismRule
from gazeveil.privacy.rational import exact

#: What an app may be given, and what each word means.
SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "select": (
            "learn which of its own targets the wearer chose, by a gesture or by resting on it, and"
            " nothing before the choice"
        ),
        "areas": (
            "register rectangles and read their counts, dwell, visits, order and times to first"
            " look"
        ),
        "fixations": "list the quantised fixations inside its own areas and how long each lasted",
        "saccades": "list where and in which tick saccades landed inside its own areas",
        "events": (
            "be told when a fixation, saccade or pursuit has ended, in quantised cells and ticks"
        ),
        "tile": "know which large tile is looked at",
        "counter": "read the differentially private count of fixations in an area",
        "samples": "receive samples that a granted mechanism protects",
    }
)

#: Actions of a request: the scopes, and `stream`, which opens or continues protected samples.
ACTIONS = (*SCOPES, "stream")

#: What budgets are counted in.
CURRENCIES = ("epsilon", "rho", "samples")

#: Limits of a device for a day that are in force where the policy names no others;
#: docs/howto/gatekeeper/running.md says what they are in hours of use.
DEVICE_LIMITS: Mapping[str, Fraction] = MappingProxyType(
    {"epsilon": Fraction(100_000), "rho": Fraction(100_000), "samples": Fraction(864_000)}
)

#: Limits of an app where its grant names no others: none of what is proved, and of what proves
#: nothing an hour at 120 samples a second.
APP_LIMITS: Mapping[str, Fraction] = MappingProxyType(
    {"epsilon": Fraction(0), "rho": Fraction(0), "samples": Fraction(432_000)}
)

#: How long a budget lasts.
PERIODS = ("day", "session", "ever")

#: How long a wearer gives a grant for: this visit, which survives a reload, or until it is taken
#: back.
LASTS = ("visit", "until-stopped")

_ORIGIN = re.compile(
    r"(https?|moz-extension|chrome-extension)://[A-Za-z0-9.\-\[\]:]{1,255}", re.ASCII
)


@dataclass(frozen=True)
class Grant:
    """What one app may have.

    Parameters
    ----------
    scopes : frozenset of str
        Keys of :data:`SCOPES`.
    mechanisms : tuple of MechanismRule
        What it may ask for on samples; needs the scope `samples`.
    areas : int
        Most areas it may have registered at a time.
    calls_per_minute : int
        Most questions in a minute.
    streams : int
        Most protected streams open at a time.
    most_hz : float, optional
        Most samples a second of a stream; None for the tracker's own rate.
    budgets : mapping of str to Fraction
        Limits by currency (`epsilon`, `rho`, `samples`) for one period; where one is not
        named, :data:`APP_LIMITS` is in force.
    per : str
        The period: `day` (of UTC), `session` or `ever`.
    expires_ns : int, optional
        Time of the Unix epoch from which it is void.
    origins : tuple of str
        Web pages that may use it, as `https://example.org`. A browser says where a page is from; a
        request that says so is denied unless it is listed. Native apps send no origin.
    revoked : bool
        Taken back by the wearer.
    lasts : str
        How long the wearer gave it for, one of :data:`LASTS`; what a visit is, is kept by
        :mod:`gazeveil.gatekeeper.policy.grant_duration`, because a policy knows no use.
    identity : LocalIdentity, optional
        By what the app is known over the service's Unix socket, without a token.
    """

    scopes: frozenset[str] = frozenset()
    mechanisms: tuple[MechanismRule, ...] = ()
    areas: int = 16
    calls_per_minute: int = 600
    streams: int = 1
    most_hz: float | None = None
    budgets: Mapping[str, Fraction] = field(default_factory=dict)
    per: str = "day"
    expires_ns: int | None = None
    origins: tuple[str, ...] = ()
    revoked: bool = False
    lasts: str = "until-stopped"
    identity: LocalIdentity | None = None

    def __post_init__(self) -> None:
        if isinstance(self.scopes, str):
            checks.refuse("Grant", "scopes", "a list of scopes", self.scopes)
        for scope in self.scopes:
            checks.one_of("Grant", "scopes", scope, SCOPES)
        object.__setattr__(self, "scopes", frozenset(self.scopes))
        object.__setattr__(self, "mechanisms", tuple(self.mechanisms))
        for rule in self.mechanisms:
            if not isinstance(rule, MechanismRule):
                checks.refuse("Grant", "mechanisms", "a list of MechanismRule", rule)
        if self.mechanisms and "samples" not in self.scopes:
            names = [rule.name for rule in self.mechanisms]
            allowed, hint = "empty without the scope 'samples'", "Add 'samples' to the scopes."
            checks.refuse("Grant", "mechanisms", allowed, names, hint)
        for name in ("areas", "calls_per_minute", "streams"):
            object.__setattr__(
                self, name, checks.count("Grant", name, getattr(self, name), least=0)
            )
        if self.most_hz is not None:
            object.__setattr__(self, "most_hz", checks.positive("Grant", "most_hz", self.most_hz))
        if not isinstance(self.budgets, Mapping):
            checks.refuse("Grant", "budgets", "a table of limits", self.budgets)
        for currency in self.budgets:
            checks.one_of("Grant", "budgets", currency, CURRENCIES)
        budgets = {
            c: exact("Grant", f"budgets.{c}", self.budgets[c], least=0)
            for c in CURRENCIES
            if c in self.budgets
        }
        object.__setattr__(self, "budgets", MappingProxyType(budgets))
        checks.one_of("Grant", "per", self.per, PERIODS)
        if self.expires_ns is not None:
            checks.count("Grant", "expires_ns", self.expires_ns, least=0)
        if isinstance(self.origins, str):
            checks.refuse("Grant", "origins", "a list of origins", self.origins)
        for origin in self.origins:
            if not isinstance(origin, str) or not _ORIGIN.fullmatch(origin):
                allowed = "scheme and host, as https://example.org or http://127.0.0.1:8000"
                checks.refuse("Grant", "origins", allowed, origin)
        # One that comes twice means the same, and a policy file that repeats it is refused.
        object.__setattr__(self, "origins", tuple(dict.fromkeys(self.origins)))
        if not isinstance(self.revoked, bool):
            checks.refuse("Grant", "revoked", "true or false", self.revoked)
        if self.identity is not None and not isinstance(self.identity, LocalIdentity):
            checks.refuse("Grant", "identity", "a LocalIdentity", self.identity)
        checks.one_of("Grant", "lasts", self.lasts, LASTS)

    def limits(self) -> dict[str, Fraction]:
        """The limit in every currency: what the budgets say, else the default."""
        return {**APP_LIMITS, **self.budgets}

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # Mapping proxies cannot be pickled.
        return Grant, tuple(
            dict(self.budgets) if f.name == "budgets" else getattr(self, f.name)
            for f in fields(Grant)
        )


@dataclass(frozen=True)
class DeviceLimits:
    """Limits for all apps together, and the change that streams are charged for.

    Parameters
    ----------
    epsilon, rho : Fraction
        Most of each in a period. There is always a limit: what is not named is
        :data:`DEVICE_LIMITS`.
    per : str
        The period: `day`, `session` or `ever`.
    r_deg : Fraction
        Streams are charged for gaze that moves by at most so many degrees, in every sample and
        measured along x and y together. It is public, and the same for all apps, so that what they
        spend is about one thing.
    samples : Fraction
        Most samples of mechanisms that prove nothing.
    """

    epsilon: Fraction = DEVICE_LIMITS["epsilon"]
    rho: Fraction = DEVICE_LIMITS["rho"]
    per: str = "day"
    r_deg: Fraction = Fraction(1)
    samples: Fraction = DEVICE_LIMITS["samples"]

    def __post_init__(self) -> None:
        for name in CURRENCIES:
            object.__setattr__(
                self, name, exact("DeviceLimits", name, getattr(self, name), least=0)
            )
        checks.one_of("DeviceLimits", "per", self.per, PERIODS)
        object.__setattr__(self, "r_deg", exact("DeviceLimits", "r_deg", self.r_deg, above=0))

    def limits(self) -> dict[str, Fraction]:
        """The limit in every currency."""
        return {currency: getattr(self, currency) for currency in CURRENCIES}
