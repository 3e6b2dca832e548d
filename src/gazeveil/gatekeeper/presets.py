"""Grants with a meaning: what an app of a known kind needs, and what each grant takes away from it.

Platforms know two levels: Android XR has the permissions EYE_TRACKING_COARSE and EYE_TRACKING_FINE, and none says what coarse removes.
A preset says it in a sentence, and names the level that an app of its kind asks for there.

Budgets of streams are times of use, at the device's default charge for gaze that moves by one degree. (epsilon, w, r)-privacy with an r of a degree
or more speaks of one window of w samples, so the ledger charges epsilon for each w samples; 3600 windows of 60 samples are one hour at 60 Hz.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from types import MappingProxyType

from gazeveil.gatekeeper.policy import Grant
from gazeveil.gatekeeper.rules import MechanismRule


@dataclass(frozen=True)
class Preset(Grant):
    """A grant that explains itself.

    Parameters
    ----------
    name : str
        How policies and apps name it.
    means : str
        What an app gets, and what is removed.
    platform : str
        `coarse` or `fine`, the level of Android XR that apps of this kind ask for.
    """

    name: str = ""
    means: str = ""
    platform: str = "coarse"

    def grant(self, **changes: object) -> Grant:
        """The plain grant, with changes.

        Examples
        --------
        >>> PRESETS["aoi-analytics"].grant(areas=4).areas
        4
        """
        values = {f.name: getattr(self, f.name) for f in fields(Grant)}
        return Grant(**{**values, **changes})

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _by_name, (self.name,)


def _by_name(name: str) -> Preset:
    return PRESETS[name]


_AVATAR = Preset(
    scopes=frozenset({"tile", "samples"}),
    mechanisms=(
        MechanismRule("kaleido-uniform", {"epsilon": ("<=", 1), "w": (">=", 60), "r_deg": (">=", 5)}),
        MechanismRule("gaussian", {"sigma_deg": (">=", 5)}),
    ),
    areas=0,
    calls_per_minute=120,
    most_hz=60.0,
    budgets={"epsilon": Fraction(3600), "rho": Fraction(3600)},
    name="avatar",
    means=(
        "The app can turn an avatar's eyes the right way: it gets the large tile that is looked at and noisy samples, at most 60 a second, for about"
        " an hour a day; where exactly the eyes rest within 5 degrees, how they move between, and all timing finer than the stream's are removed."
    ),
    platform="coarse",
)

_FOVEATED = Preset(
    scopes=frozenset({"samples", "tile"}),
    mechanisms=(
        MechanismRule("kaleido-uniform", {"epsilon": ("<=", 2), "w": (">=", 30), "r_deg": (">=", 2)}),
        MechanismRule("gaussian", {"sigma_deg": (">=", 2)}),
        MechanismRule("gaussian-fixation", {"sigma_deg": (">=", 2)}),
    ),
    areas=0,
    calls_per_minute=120,
    most_hz=250.0,
    budgets={"epsilon": Fraction(60_000), "rho": Fraction(60_000)},
    name="foveated-rendering",
    means=(
        "The app can keep a region of a few degrees around the gaze sharp at up to 250 samples a second; every sample carries noise of 2 degrees or"
        " more, so the tremor and the shape of single saccades are removed, while where the wearer looks over seconds is not."
    ),
    platform="fine",
)

_AOI = Preset(
    scopes=frozenset({"areas", "fixations", "saccades", "counter"}),
    areas=16,
    calls_per_minute=60,
    streams=0,
    budgets={"epsilon": Fraction(4)},
    name="aoi-analytics",
    means=(
        "The app can count looks at up to 16 areas it names in advance, with dwell, visits and order; positions come as cells, times as ticks, and"
        " samples, paths between areas, velocities and pupils are removed."
    ),
    platform="coarse",
)

_RESEARCH = Preset(
    scopes=frozenset({"areas", "fixations", "saccades", "events", "tile", "counter", "samples"}),
    mechanisms=(
        MechanismRule("kaleido", {"epsilon": ("<=", 4), "w": (">=", 30), "r_deg": (">=", 1), "h": ("any", None), "l_thresh_deg": ("any", None)}),
        MechanismRule("kaleido-uniform", {"epsilon": ("<=", 4), "w": (">=", 30), "r_deg": (">=", 1)}),
        MechanismRule("gaussian", {"sigma_deg": (">=", 1), "r_deg": ("any", None), "w": ("any", None)}),
        MechanismRule("gaussian-fixation", {"sigma_deg": (">=", 1)}),  # on the clock: `changes="detected"` promises nothing
        MechanismRule("temporal", {"K": (">=", 2), "hold": ("any", None)}, unproved=True),
        MechanismRule("spatial", {"L": ("<=", 256), "steps": ("any", None)}, unproved=True),
    ),
    areas=64,
    streams=4,
    budgets={"epsilon": Fraction(100_000), "rho": Fraction(100_000)},
    name="research",
    means=(
        "The app is part of a study that the wearer joined: it gets every kind of answer and streams with little noise or only a coarser grid; raw"
        " samples, pupils, velocities and the tracker's own timing are still removed, and a person can be recognised from it."
    ),
    platform="fine",
)

#: Presets by name.
PRESETS: Mapping[str, Preset] = MappingProxyType({p.name: p for p in (_AVATAR, _FOVEATED, _AOI, _RESEARCH)})
