"""What one app may have, and the device's limits.

Samples are given through the mechanisms that a grant names one by one, and no others. A mechanism
that adds no noise only copies samples: two phases of `temporal` are raw gaze, `smoothing` can be
undone, and the edges of `spatial` tell where gaze crosses them. So a grant names mechanisms whose
noise has a proved promise alone.

The four presets that a wearer is asked for.

Every sentence of a preset is attacked (`benchmarks/gatekeeper_presets.py`) with all that a day
gives: values, order, times, and other people's statistics. Noise that is drawn anew for every
sample is averaged away. Noise that stays with a place makes noisy places landmarks, which the steps
between them put back on the map. So `follow` has no noise: it tells a part of the view. Foveated
rendering needs gaze itself; it belongs into the platform's compositor, which needs no grant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from gazeveil import checks
from gazeveil.gatekeeper.policy.identity import checked_uid
from gazeveil.privacy import registry
from gazeveil.privacy.rational import exact
from gazeveil.privacy.stream.gaussian import Gaussian
from gazeveil.privacy.stream.mechanism import StreamMechanism

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
        "region": "know which way the eyes look: at you, left, right, up, down or closed",
        "tile": "know which large tile is looked at",
        "samples": "receive samples that a granted mechanism protects",
    }
)

#: What budgets are counted in, for a day of UTC.
CURRENCIES = ("epsilon", "rho")

#: Limits of a device for a day that are in force where the policy names no others;
#: docs/howto/gatekeeper/running.md says what they are in hours of use.
DEVICE_LIMIT = Fraction(100_000)

#: How long a wearer gives a grant for: this visit, which survives a reload, or until it is taken
#: back.
LASTS = ("visit", "until-stopped")

#: What a wearer is asked for (:mod:`gazeveil.gatekeeper.policy.grant`), the one that tells an app
#: least first.
PRESET_NAMES = ("choose", "follow", "count", "study")

#: Mechanisms on streams that apps may have. Two sessions of one family would have independent
#: noise, which an app with both could average: a device has one at a time.
FAMILIES: Mapping[str, str] = MappingProxyType(
    {"gaussian": "gaussian", "kaleido": "kaleido", "kaleido-uniform": "kaleido"}
)

_ORIGIN = re.compile(
    r"(https?|moz-extension|chrome-extension)://[A-Za-z0-9.\-\[\]:]{1,255}", re.ASCII
)


@lru_cache(maxsize=256)
def granted_mechanism(text: str) -> StreamMechanism:
    """The mechanism that a grant names; never called with a text of an app.

    Raises
    ------
    ParameterError
        For one that apps may not have.
    """
    made = registry.mechanism(text)
    if not isinstance(made, StreamMechanism) or made.name not in FAMILIES:
        checks.refuse("Grant", "mechanisms", f"mechanisms with noise: {', '.join(FAMILIES)}", text)
    if made.claim.status != "proved":
        checks.refuse("Grant", "mechanisms", "mechanisms with a proved promise", text)
    if isinstance(made, Gaussian) and made.losses not in (None, "keep"):
        # All Gaussian streams share one noise, and lost samples stay lost in it.
        checks.refuse("Grant", "mechanisms", "gaussian without the parameter 'losses'", text)
    if any(getattr(made, name) for name in made.files):
        # An app is told its grant word for word.
        checks.refuse(
            "Grant",
            "mechanisms",
            "mechanisms without files: the app would be told where a file lies",
            made.public_text,
            "Give r_deg in degrees.",
        )
    return made


@dataclass(frozen=True)
class Grant:
    """What one app may have.

    Parameters
    ----------
    scopes : frozenset of str
        Keys of :data:`SCOPES`.
    mechanisms : tuple of str
        What it may ask for on samples, word for word, the one for who names none first.
    areas : int
        Most areas it may have registered at a time.
    calls_per_minute : int
        Most questions in a minute.
    streams : int
        Most protected streams open at a time.
    budgets : mapping of str to Fraction
        Limits of a day by currency (`epsilon`, `rho`); 0 where one is not named.
    expires_ns : int, optional
        Time of the Unix epoch from which it is void.
    origins : tuple of str
        Web pages that may use it, as `https://example.org`. A browser says where a page is from; a
        request that says so is denied unless it is listed. Native apps send no origin.
    revoked : bool
        Taken back by the wearer.
    lasts : str
        How long the wearer gave it for, one of :data:`LASTS`; what a visit is, is kept by
        :mod:`gazeveil.gatekeeper.policy.decision`, because a policy knows no use.
    uid : int, optional
        The number of the user whose programs are the app over the Unix socket, without a token.
    preset : str
        The one of :data:`PRESET_NAMES` that it was made from.
    """

    scopes: frozenset[str] = frozenset()
    mechanisms: tuple[str, ...] = ()
    areas: int = 64
    calls_per_minute: int = 600
    streams: int = 4
    budgets: Mapping[str, Fraction] = field(default_factory=dict)
    expires_ns: int | None = None
    origins: tuple[str, ...] = ()
    revoked: bool = False
    lasts: str = "until-stopped"
    uid: int | None = None
    preset: str = ""

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        for name in ("scopes", "mechanisms", "origins"):
            if isinstance(getattr(self, name), str):
                checks.refuse("Grant", name, "a list", getattr(self, name))
        for scope in self.scopes:
            checks.one_of("Grant", "scopes", scope, SCOPES)
        set_field(self, "scopes", frozenset(self.scopes))
        set_field(self, "mechanisms", tuple(self.mechanisms))
        for text in self.mechanisms:
            granted_mechanism(text)
        if self.mechanisms and "samples" not in self.scopes:
            allowed, hint = "empty without the scope 'samples'", "Add 'samples' to the scopes."
            checks.refuse("Grant", "mechanisms", allowed, self.mechanisms, hint)
        for name in ("areas", "calls_per_minute", "streams"):
            checks.count("Grant", name, getattr(self, name), least=0)
        for currency in self.budgets:
            checks.one_of("Grant", "budgets", currency, CURRENCIES)
        budgets = {
            c: exact("Grant", f"budgets.{c}", limit, least=0) for c, limit in self.budgets.items()
        }
        set_field(self, "budgets", MappingProxyType(budgets))
        if self.expires_ns is not None:
            checks.count("Grant", "expires_ns", self.expires_ns, least=0)
        for origin in self.origins:
            if not isinstance(origin, str) or not _ORIGIN.fullmatch(origin):
                allowed = "scheme and host, as https://example.org or http://127.0.0.1:8000"
                checks.refuse("Grant", "origins", allowed, origin)
        set_field(self, "origins", tuple(dict.fromkeys(self.origins)))
        if not isinstance(self.revoked, bool):
            checks.refuse("Grant", "revoked", "true or false", self.revoked)
        if self.uid is not None:
            checked_uid("Grant", self.uid)
        checks.one_of("Grant", "lasts", self.lasts, LASTS)
        checks.one_of("Grant", "preset", self.preset, ("", *PRESET_NAMES))

    def limit(self, currency: str) -> Fraction:
        """The limit of a day in a currency."""
        return self.budgets.get(currency, Fraction(0))


@dataclass(frozen=True)
class DeviceLimits:
    """Limits for all apps together, and the change that streams are charged for.

    Parameters
    ----------
    epsilon, rho : Fraction
        Most of each in a day.
    r_deg : Fraction
        Streams are charged for gaze that moves by at most so many degrees, in every sample and
        measured along x and y together. It is public, and the same for all apps, so that what they
        spend is about one thing.
    """

    epsilon: Fraction = DEVICE_LIMIT
    rho: Fraction = DEVICE_LIMIT
    r_deg: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        for name in CURRENCIES:
            object.__setattr__(
                self, name, exact("DeviceLimits", name, getattr(self, name), least=0)
            )
        object.__setattr__(self, "r_deg", exact("DeviceLimits", "r_deg", self.r_deg, above=0))

    def limit(self, currency: str) -> Fraction:
        """The limit of a day in a currency."""
        return Fraction(getattr(self, currency))


@dataclass(frozen=True)
class RestingGazeAccuracy:
    """How well an app finds where resting eyes are with all that a preset allows: the least median
    error, in degrees of visual angle.

    Measured at the coarse level by `benchmarks/gatekeeper_averaging.py`, and attacked again by
    `tests/gatekeeper/streams/test_attack.py`.

    Parameters
    ----------
    short_deg, long_deg, day_deg : float
        After 0.3 seconds, after 10 seconds, and after ten sessions of a day.
    worst_deg : float
        After ten sessions of a day, at the place where it is least.
    """

    short_deg: float
    long_deg: float
    day_deg: float
    worst_deg: float

    def words(self) -> str:
        """A clause for people.

        Examples
        --------
        >>> RestingGazeAccuracy(8, 8, 8, 4).words()
        'eyes at rest are found to about 8 degrees, however long the app watches on one day, and to
        4 at the worst place'
        >>> RestingGazeAccuracy(0.2, 0.03, 0.01, 0.01).words()
        'eyes at rest are found to about 0.2 degrees in 0.3 seconds, 0.03 in ten seconds and 0.01 in
        ten sessions of a day'
        """
        if self.day_deg >= 0.9 * self.short_deg:
            return (
                f"eyes at rest are found to about {self.day_deg:g} degrees, however long the app"
                f" watches on one day, and to {self.worst_deg:g} at the worst place"
            )
        return (
            f"eyes at rest are found to about {self.short_deg:g} degrees in 0.3 seconds,"
            f" {self.long_deg:g} in ten seconds and {self.day_deg:g} in ten sessions of a day"
        )


@dataclass(frozen=True)
class Preset:
    """A kind of grant, as the wearer reads it.

    Parameters
    ----------
    sentence : str
        What the wearer reads, in at most 15 words.
    recognise : bool
        Whether a person could be recognised by it.
    values : mapping
        Fields of its grants.
    steady : RestingGazeAccuracy, optional
        What averaging gives; None where nothing of where eyes rest is told.
    """

    sentence: str
    recognise: bool
    values: Mapping[str, object]
    steady: RestingGazeAccuracy | None = None

    def grant(self, **changes: object) -> Grant:
        """A grant of this kind, with changes.

        Examples
        --------
        >>> PRESETS["count"].grant(lasts="visit").lasts
        'visit'
        """
        return Grant(**{**self.values, **changes})  # type: ignore[arg-type]


#: Presets by name.
PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "choose": Preset(
            "It learns which of its things your eyes rest on, or you choose by gesture.",
            True,
            {"preset": "choose", "scopes": frozenset({"select"})},
        ),
        "follow": Preset(
            "It learns if you look ahead, left, right, up or down, or close your eyes.",
            True,
            {"preset": "follow", "scopes": frozenset({"region"})},
        ),
        "count": Preset(
            "It learns which places it names you look at, when, and how long.",
            True,
            {"preset": "count", "scopes": frozenset({"areas", "fixations", "saccades"})},
            RestingGazeAccuracy(1.4, 1.4, 1.4, 0.07),
        ),
        "study": Preset(
            "For a study you joined: it sees nearly where you look, all the time.",
            True,
            {
                "preset": "study",
                "scopes": frozenset(SCOPES) - {"select"},
                "mechanisms": (
                    *(f"gaussian:sigma_deg={sigma}" for sigma in (1, 2, 3, 5, 8)),
                    "kaleido:epsilon=1,w=60,r_deg=2",
                    "kaleido:epsilon=4,w=30,r_deg=1",
                    "kaleido-uniform:epsilon=1,w=60,r_deg=2",
                ),
                "budgets": dict.fromkeys(CURRENCIES, Fraction(50_000)),
            },
            RestingGazeAccuracy(0.2, 0.05, 0.02, 0.02),
        ),
    }
)


def values_of(grant: Grant) -> dict[str, object]:
    """The fields of a grant that are not those of its preset."""
    usual = PRESETS[grant.preset].grant() if grant.preset else Grant()
    names = (f.name for f in fields(Grant))
    return {
        n: getattr(grant, n)
        for n in names
        if getattr(grant, n) != getattr(usual, n) or (n == "preset" and grant.preset)
    }
