"""Who may have what: a policy is a value, and a decision is a pure function of it and of one request.

Nothing is allowed that no grant names. Without the wearer's consent nothing is allowed at all. Every decision has a word for programs and a
sentence for people. A decision that cannot be made is a denial: :func:`decide` never raises.

Budgets are not spent here; :mod:`gazeveil.gatekeeper.ledger` does that. Here it is only checked that a grant has a budget in what the answer
costs, so that nobody gets for free what nobody thought of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from gazeveil import checks
from gazeveil.gatekeeper.rules import MechanismRule, judge
from gazeveil.privacy.exactly import exact

#: What an app may be given, and what each word means.
SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "areas": "register rectangles and read their counts, dwell, visits, order and times to first look",
        "fixations": "list the quantised fixations inside its own areas and how long each lasted",
        "saccades": "list where and in which tick saccades landed inside its own areas",
        "events": "be told when a fixation, saccade or pursuit has ended, in quantised cells and ticks",
        "tile": "know which large tile is looked at",
        "counter": "read the differentially private count of fixations in an area",
        "samples": "receive samples that a granted mechanism protects",
    }
)

#: Actions of a request: the scopes, and `stream`, which opens or continues protected samples.
ACTIONS = (*SCOPES, "stream")

#: What budgets are counted in.
CURRENCIES = ("epsilon", "rho", "samples")

#: How long a budget lasts.
PERIODS = ("day", "session", "ever")

#: The one version of policies there is.
VERSION = 1

_APP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_ORIGIN = re.compile(r"(https?|moz-extension|chrome-extension)://[A-Za-z0-9.\-\[\]:]{1,255}", re.ASCII)


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
        Limits by currency (`epsilon`, `rho`, `samples`) for one period; what has a cost in a currency without budget is denied.
    per : str
        The period: `day` (of UTC), `session` or `ever`.
    expires_ns : int, optional
        Time of the Unix epoch from which it is void.
    origins : tuple of str
        Web pages that may use it, as `https://example.org`. A browser says where a page is from; a request that says so is denied unless it
        is listed. Native apps send no origin.
    revoked : bool
        Taken back by the wearer.
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
            checks.refuse("Grant", "mechanisms", "empty without the scope 'samples'", [r.name for r in self.mechanisms], "Add 'samples' to the scopes.")
        for name in ("areas", "calls_per_minute", "streams"):
            object.__setattr__(self, name, checks.count("Grant", name, getattr(self, name), least=0))
        if self.most_hz is not None:
            object.__setattr__(self, "most_hz", checks.positive("Grant", "most_hz", self.most_hz))
        if not isinstance(self.budgets, Mapping):
            checks.refuse("Grant", "budgets", "a table of limits", self.budgets)
        for currency in self.budgets:
            checks.one_of("Grant", "budgets", currency, CURRENCIES)
        budgets = {c: exact("Grant", f"budgets.{c}", self.budgets[c], least=0) for c in CURRENCIES if c in self.budgets}
        object.__setattr__(self, "budgets", MappingProxyType(budgets))
        checks.one_of("Grant", "per", self.per, PERIODS)
        if self.expires_ns is not None:
            checks.count("Grant", "expires_ns", self.expires_ns, least=0)
        if isinstance(self.origins, str):
            checks.refuse("Grant", "origins", "a list of origins", self.origins)
        for origin in self.origins:
            if not isinstance(origin, str) or not _ORIGIN.fullmatch(origin):
                checks.refuse("Grant", "origins", "scheme and host, as https://example.org or http://127.0.0.1:8000", origin)
        object.__setattr__(self, "origins", tuple(self.origins))
        if not isinstance(self.revoked, bool):
            checks.refuse("Grant", "revoked", "true or false", self.revoked)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # Mapping proxies cannot be pickled.
        limits = (self.areas, self.calls_per_minute, self.streams, self.most_hz, dict(self.budgets), self.per, self.expires_ns, self.origins, self.revoked)
        return Grant, (self.scopes, self.mechanisms, *limits)


@dataclass(frozen=True)
class DeviceLimits:
    """What may leave the device for all apps together, in one period; None sets no limit beyond those of the apps.

    Parameters
    ----------
    epsilon, rho : Fraction, optional
        Limits by currency.
    per : str
        The period.
    r_deg : Fraction
        What streams of samples are charged for, whatever r an app writes into a mechanism: every sample moves by at most so many degrees, along
        x and y together. It is public, and the same for all apps, so that what they spend is about one thing.
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    per: str = "day"
    r_deg: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        for name in ("epsilon", "rho"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else exact("DeviceLimits", name, value, least=0))
        checks.one_of("DeviceLimits", "per", self.per, PERIODS)
        object.__setattr__(self, "r_deg", exact("DeviceLimits", "r_deg", self.r_deg, above=0))


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
    version : int
        1.

    Examples
    --------
    >>> policy = Policy({"shop": Grant(frozenset({"areas"}))}, consent=True)
    >>> decide(policy, Request("shop", "areas")).allow
    True
    >>> decide(policy, Request("shop", "fixations")).reason
    "The scope 'fixations' is not granted to the app 'shop'."
    """

    apps: Mapping[str, Grant] = field(default_factory=dict)
    device: DeviceLimits = field(default_factory=DeviceLimits)
    consent: bool = False
    version: int = VERSION

    def __post_init__(self) -> None:
        if self.version != VERSION or isinstance(self.version, bool):
            checks.refuse("Policy", "version", f"{VERSION}, the one there is", self.version)
        if not isinstance(self.consent, bool):
            checks.refuse("Policy", "consent", "true or false", self.consent)
        if not isinstance(self.apps, Mapping):
            checks.refuse("Policy", "apps", "a table of grants", self.apps)
        for app, grant in self.apps.items():
            app_name("Policy", app)
            if not isinstance(grant, Grant):
                checks.refuse("Policy", f"apps.{app}", "a Grant", grant)
        if not isinstance(self.device, DeviceLimits):
            checks.refuse("Policy", "device", "DeviceLimits", self.device)
        object.__setattr__(self, "apps", MappingProxyType(dict(self.apps)))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Policy, (dict(self.apps), self.device, self.consent, self.version)

    @classmethod
    def load(cls, path: Path | str) -> Policy:
        """A policy from a file whose name ends in .toml, .yaml or .yml.

        Raises
        ------
        ParameterError
            With the key that is wrong and what is allowed there.
        FormatError
            For a file that is neither, or cannot be read.
        """
        from gazeveil.gatekeeper.policy_text import load

        return load(path)

    @classmethod
    def parse(cls, text: str, format: str = "toml") -> Policy:  # noqa: A002  (the word every reader of Gazeveil uses)
        """A policy from TOML or YAML text."""
        from gazeveil.gatekeeper.policy_text import parse

        return parse(text, format)

    def text(self) -> str:
        """The policy as TOML; `Policy.parse(policy.text())` is equal to it."""
        from gazeveil.gatekeeper.policy_text import write

        return write(self)

    def with_grant(self, app: str, grant: Grant) -> Policy:
        """The policy with an app's grant put in or replaced."""
        return replace(self, apps={**self.apps, app: grant})

    def without(self, app: str) -> Policy:
        """The policy with an app's grant left out."""
        return replace(self, apps={name: grant for name, grant in self.apps.items() if name != app})


@dataclass(frozen=True)
class Request:
    """What an app asks for, and what the Gatekeeper knows about it at that moment.

    Parameters
    ----------
    app : str
        Who asks.
    action : str
        A scope, or `stream`.
    mechanism : str, optional
        For `stream`: the text `name:parameter=value,...`.
    now_ns : int
        Time since the Unix epoch, in nanoseconds.
    calls_last_minute : int
        Questions the app asked in the last minute, without this one.
    open_streams : int
        Streams the app has open, without this one.
    origin : str, optional
        Where a web page is from, as the browser says.
    rate_hz : float, optional
        For `stream`: the tracker's rate; must be told where the grant bounds it.
    areas : int, optional
        Where one more area is to be registered: how many the app has.
    """

    app: str
    action: str
    mechanism: str | None = None
    now_ns: int = 0
    calls_last_minute: int = 0
    open_streams: int = 0
    origin: str | None = None
    rate_hz: float | None = None
    areas: int | None = None


@dataclass(frozen=True)
class Decision:
    """The answer of the policy.

    Parameters
    ----------
    allow : bool
        Whether it may be had.
    code : str
        `allowed`, or the word of :class:`gazeveil.gatekeeper.errors.Denied`.
    reason : str
        One sentence.
    """

    allow: bool
    code: str
    reason: str


_ALLOWED = {action: Decision(True, "allowed", f"The scope '{action}' is granted.") for action in SCOPES}


def decide(policy: Policy, request: Request) -> Decision:
    """Whether a request is allowed, and why; pure, and total: it never raises."""
    try:
        return _decide(policy, request)
    except Exception:
        # Whatever is wrong with a request, its sender must not get past the policy by it.
        return _no("unknown", "The request cannot be read, so it is denied.")


def _no(code: str, reason: str) -> Decision:
    return Decision(False, code, reason)


def _decide(policy: Policy, request: Request) -> Decision:
    if policy.consent is not True:
        return _no("no-consent", "The wearer has not given consent, so no app gets anything.")
    app, now_ns = request.app, request.now_ns
    if not isinstance(app, str) or type(now_ns) is not int or type(request.calls_last_minute) is not int or type(request.open_streams) is not int:
        return _no("unknown", "The request cannot be read, so it is denied.")
    grant = policy.apps.get(app)
    if grant is None:
        return _no("no-grant", f"The app '{_short(app)}' has no grant.")
    if grant.revoked:
        return _no("revoked", f"The grant of the app '{app}' was revoked.")
    if grant.expires_ns is not None and now_ns >= grant.expires_ns:
        return _no("expired", f"The grant of the app '{app}' has expired.")
    if request.origin is not None and request.origin not in grant.origins:
        return _no("origin", f"Pages from '{_short(request.origin)}' may not use the grant of the app '{app}'.")
    action = request.action
    if action not in ACTIONS:
        return _no("scope", f"There is no scope '{_short(action)}'. Scopes are: {', '.join(SCOPES)}.")
    scope = "samples" if action == "stream" else action
    if scope not in grant.scopes:
        return _no("scope", f"The scope '{scope}' is not granted to the app '{app}'.")
    if request.calls_last_minute >= grant.calls_per_minute:
        return _no("rate", f"The app '{app}' may ask {grant.calls_per_minute} times a minute; wait a moment.")
    if scope == "samples":
        return _stream(grant, request)
    if scope == "areas" and request.areas is not None and request.areas >= grant.areas:
        return _no("area", f"The app '{app}' may have {grant.areas} areas at a time; remove one first.")
    if scope == "counter" and not grant.budgets.get("epsilon"):
        return _no("budget", f"The app '{app}' has no budget in epsilon, which this costs.")
    return _ALLOWED[scope]


def _stream(grant: Grant, request: Request) -> Decision:
    app = request.app
    if not isinstance(request.mechanism, str) or not request.mechanism:
        return _no("mechanism", "Samples are given only through a mechanism; name one.")
    if request.open_streams >= grant.streams:
        return _no("rate", f"The app '{app}' may have {grant.streams} streams open at a time.")
    verdict = judge(grant.mechanisms, request.mechanism)
    if verdict.code != "allowed":
        return _no(verdict.code, verdict.reason)
    if grant.most_hz is not None:
        rate_hz = request.rate_hz
        if rate_hz is None or not 0 < rate_hz < float("inf"):
            return _no("rate", f"The app '{app}' may have at most {grant.most_hz:g} samples a second, and the rate of this stream is not known.")
        if rate_hz / verdict.stride > grant.most_hz:
            return _no("rate", f"The app '{app}' may have at most {grant.most_hz:g} samples a second; this stream gives {rate_hz / verdict.stride:g}.")
    # What proves nothing is counted in samples, and a limit on those is the owner's choice; a proved promise needs a budget to spend.
    if verdict.currency != "samples" and not grant.budgets.get(verdict.currency):
        return _no("budget", f"The app '{app}' has no budget in {verdict.currency}, which this costs.")
    return Decision(True, "allowed", verdict.reason)


def app_name(owner: str, app: object) -> str:
    """The name of an app, or a ParameterError that says how names look."""
    if not isinstance(app, str) or not _APP.fullmatch(app):
        checks.refuse(owner, "app", "1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit", app)
    return app


def _short(text: object) -> str:
    """What a stranger wrote, made harmless for a sentence."""
    shown = "".join(c if c.isprintable() and c.isascii() else "?" for c in str(text)[:40])
    return shown.replace("'", "?")
