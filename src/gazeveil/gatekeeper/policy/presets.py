"""Grants with a meaning: what an app of a known kind needs, and what each grant takes away from it.

Platforms know two levels: Android XR has the permissions EYE_TRACKING_COARSE and EYE_TRACKING_FINE,
and none says what coarse removes. A preset says it in a sentence, and names the level that an app
of its kind asks for there.

Every sentence is attacked (`benchmarks/gatekeeper_presets.py`) with all that a day gives: values,
order, times, and other people's statistics. Noise that is drawn anew for every sample is averaged
away. Noise that stays with a place makes noisy places landmarks, which the steps between them put
back on the map. So `follow` has no noise: it tells a part of the view. Foveated rendering needs
gaze itself; it belongs into the platform's compositor, which needs no grant.

Budgets of streams are times of use, at the device's default charge for gaze that moves by one
degree. (epsilon, w, r)-privacy with an r of a degree or more speaks of one window of w samples, so
the ledger charges epsilon for each w samples; 3600 windows of 60 samples are one hour at 60 Hz.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from types import MappingProxyType

from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.rules import MechanismRule


@dataclass(frozen=True)
class RestingGazeAccuracy:
    """How well an app finds where resting eyes are with all that a preset allows: the least median
    error, in degrees of visual angle.

    Measured at the coarse level by `benchmarks/gatekeeper_averaging.py`, and attacked again by
    `tests/gatekeeper/streams/test_averaging.py`.

    Parameters
    ----------
    short_deg : float
        After 0.3 seconds.
    long_deg : float
        After 10 seconds.
    day_deg : float
        After ten sessions of a day.
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
            worst = f", and to {self.worst_deg:g} at the worst place"
            worst = worst if self.worst_deg < 0.9 * self.day_deg else ""
            return (
                f"eyes at rest are found to about {self.day_deg:g} degrees, however long the app"
                f" watches on one day{worst}"
            )
        return (
            f"eyes at rest are found to about {self.short_deg:g} degrees in 0.3 seconds,"
            f" {self.long_deg:g} in ten seconds and {self.day_deg:g} in ten sessions of a day"
        )


@dataclass(frozen=True)
class Preset(Grant):
    """A grant that explains itself.

    Parameters
    ----------
    name : str
        How policies and apps name it.
    sentence : str
        What the wearer reads, in at most 15 words.
    recognise : bool
        Whether a person could be recognised by it.
    means : str
        What an app gets, and what is removed.
    platform : str
        `coarse` or `fine`, the level of Android XR that apps of this kind ask for.
    steady : RestingGazeAccuracy, optional
        What averaging gives; None where nothing of where eyes rest is told.
    """

    name: str = ""
    sentence: str = ""
    recognise: bool = True
    means: str = ""
    platform: str = "coarse"
    steady: RestingGazeAccuracy | None = None

    def grant(self, **changes: object) -> Grant:
        """The plain grant, with changes.

        Examples
        --------
        >>> PRESETS["count"].grant(areas=4).areas
        4
        """
        values = {f.name: getattr(self, f.name) for f in fields(Grant)}
        return Grant(**{**values, **changes})

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _by_name, (self.name,)


def _by_name(name: str) -> Preset:
    return PRESETS[name]


_CHOOSE = Preset(
    scopes=frozenset({"select"}),
    areas=0,
    calls_per_minute=60,
    streams=0,
    name="choose",
    sentence="It learns which of its things you choose by looking. Nothing before.",
    recognise=False,
    means=(
        "The app learns which of its own things the wearer chose: by a press or a pinch, or by"
        " resting the eyes on it for half a second or longer, which eyes also do without choosing,"
        " so that is told at most 10 times a minute; where else the eyes are, what they looked at"
        " before the choice, and whether they looked at all are removed."
    ),
    platform="fine",
)

_FOLLOW = Preset(
    scopes=frozenset({"tile"}),
    areas=0,
    calls_per_minute=120,
    streams=0,
    name="follow",
    sentence="It can turn your avatar's eyes: at you, left, right, up, down, closed.",
    means=(
        "The app can turn an avatar's eyes about the right way: it learns which of the device's"
        " parts of the view (at the coarse level 8 across and 4 down) the eyes rest in, when a look"
        " has landed there; near the border of two parts, looks from both sides tell that the eyes"
        " are near it; a person can be recognised by it; where else in a part the eyes are, and how"
        " they move inside it, are removed."
    ),
    platform="coarse",
)

_COUNT_RESTING = RestingGazeAccuracy(1.4, 1.4, 1.4, 0.07)
_COUNT = Preset(
    scopes=frozenset({"areas", "fixations", "saccades", "counter"}),
    areas=16,
    calls_per_minute=60,
    streams=0,
    budgets={"epsilon": Fraction(4)},
    name="count",
    sentence="It learns which parts of its page you look at, and how long.",
    means=(
        "The app can count looks at up to 16 areas it names in advance, with dwell, visits and"
        " order; an area may be the whole view, so every look and the way from one to the next may"
        " be told; positions come as cells, times as ticks; at the coarse level"
        f" {_COUNT_RESTING.words()}; samples, the movement itself, velocities and pupils are"
        " removed."
    ),
    platform="coarse",
    steady=_COUNT_RESTING,
)

_STUDY_RESTING = RestingGazeAccuracy(0.2, 0.05, 0.02, 0.02)
_STUDY = Preset(
    scopes=frozenset({"areas", "fixations", "saccades", "events", "tile", "counter", "samples"}),
    mechanisms=(
        MechanismRule("kaleido", {"epsilon": ("<=", 4), "w": (">=", 30), "r_deg": (">=", 1)}),
        MechanismRule(
            "kaleido-uniform", {"epsilon": ("<=", 4), "w": (">=", 30), "r_deg": (">=", 1)}
        ),
        MechanismRule("gaussian", {"sigma_deg": (">=", 1)}),
    ),
    areas=64,
    streams=4,
    budgets={"epsilon": Fraction(50_000), "rho": Fraction(50_000)},
    name="study",
    sentence="For a study you joined: it follows your eyes, with a little noise.",
    means=(
        "The app is part of a study that the wearer joined: it gets every kind of answer and"
        f" streams with little noise, which averaging takes away: {_STUDY_RESTING.words()}; raw"
        " samples, pupils, velocities and the tracker's own timing are still removed, and a person"
        " can be recognised from it."
    ),
    platform="fine",
    steady=_STUDY_RESTING,
)

#: Presets by name, the one that tells an app least first.
PRESETS: Mapping[str, Preset] = MappingProxyType(
    {p.name: p for p in (_CHOOSE, _FOLLOW, _COUNT, _STUDY)}
)

#: What protects samples where an app leaves that to the device.
STUDY_MECHANISM = "gaussian:sigma_deg=1"


def preset_of(grant: Grant) -> Preset | None:
    """The preset whose scopes and mechanisms a grant has, if there is one."""
    return next(
        (
            p
            for p in PRESETS.values()
            if p.scopes == grant.scopes and p.mechanisms == grant.mechanisms
        ),
        None,
    )
