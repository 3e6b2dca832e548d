"""Which mechanisms may give samples to apps, which of them share a session, and which parameters an
app may choose from.

Three rules, each against an attack that worked before it was there:

* A mechanism that adds no noise only copies samples. Two phases of `temporal` are raw gaze,
  `smoothing` and `kalman` are linear and can be undone, and the edges of `spatial` tell where gaze
  crosses them. Such a mechanism is given only behind noise with a proved promise, in a chain.
* Independent noise for each set of parameters can be averaged away by an app with several streams.
  So mechanisms are put into families, and a device has at most one session of a family at a time.
  All `gaussian` streams are views of one graded session. In other families, a request for
  parameters other than those in use is refused.
* sigma = 2, 2.0001 and 2.0002, one after the other, are fresh noise three times. So parameters come
  from a short public list, the same for all apps, or from values that the owner's rule names one by
  one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from gazeveil.privacy.stream.chain import Chain
from gazeveil.privacy.stream.downsample import Temporal
from gazeveil.privacy.stream.gaussian import Gaussian
from gazeveil.privacy.stream.kaleido.stage import AFTER
from gazeveil.privacy.stream.mechanism import StreamMechanism

#: Mechanisms that add no noise: what leaves them is gaze as it was, thinned out, rounded or
#: filtered.
COPIES = ("temporal", "spatial", "smoothing", "kalman")

#: Mechanisms with noise, and the family whose one session they share.
FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "gaussian": "gaussian",
        "kaleido": "kaleido",
        "kaleido-uniform": "kaleido",
        "clock-render": "clock-render",
    }
)

_SIGMAS_DEG = tuple(map(Fraction, (1, 2, 3, 5, 8, 12)))
_EPSILONS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
_WINDOWS = tuple(map(Fraction, (30, 60, 120, 240)))
_RADII_DEG = tuple(map(Fraction, (1, 2, 5, 10)))
_READINGS = ("corrected", "published")
_KALEIDO: Mapping[str, tuple[Any, ...]] = {
    "epsilon": _EPSILONS,
    "w": _WINDOWS,
    "r_deg": _RADII_DEG,
    "h": tuple(map(Fraction, (2, 3, 4))),
    "l_thresh_deg": tuple(map(Fraction, (1, 2, 5))),
    "after": tuple(AFTER),
    "reading": _READINGS,
}

#: Values that an app may choose from, by mechanism and parameter. A parameter that is not here has
#: its default.
PUBLIC: Mapping[str, Mapping[str, tuple[Any, ...]]] = MappingProxyType(
    {
        "gaussian": {
            "sigma_deg": _SIGMAS_DEG,
            "r_deg": _RADII_DEG,
            "w": _WINDOWS,
            "reading": _READINGS,
        },
        "kaleido": _KALEIDO,
        "kaleido-uniform": {**_KALEIDO, "reading": ("corrected",)},
        "clock-render": {"epsilon": _EPSILONS, "r_deg": _RADII_DEG},
    }
)


#: Parameters of mechanisms on streams that name a file of the device.
FILES = ("regions",)


def names_file(text: str) -> bool:
    """Whether a text of an app may name a file of the device."""
    return any(name in text for name in FILES)


def family_of(mechanism: StreamMechanism) -> str:
    """The family of a mechanism that :func:`problem` finds nothing wrong with; a chain has that of
    its noise.
    """
    if isinstance(mechanism, Chain):
        return family_of(next(stage for stage in mechanism.stages if stage.name not in COPIES))
    return FAMILIES.get(mechanism.name, mechanism.name)


def problem(mechanism: StreamMechanism) -> str | None:
    """Why a mechanism gives no samples to apps, in one sentence; None where it may.

    Examples
    --------
    >>> from gazeveil.privacy.registry import mechanism
    >>> problem(mechanism("temporal:K=2"))
    'temporal adds no noise, so it would copy gaze. Put noise before it:
    chain:stages=gaussian(sigma_deg=3)+temporal(K=2)'
    >>> problem(mechanism("chain:stages=gaussian(sigma_deg=3)+temporal(K=2)")) is None
    True
    """
    if mechanism.name in COPIES:
        return copies(mechanism.name, str(mechanism.parameters().get("K", 2)))
    if view_of(mechanism) is not None and (
        mechanism.losses not in (None, "keep")
        or (mechanism.duration_s, mechanism.clock_hz) != (None, None)
    ):
        return (
            "All Gaussian streams share one noise, and lost samples stay lost in it, so gaussian"
            " fills no losses here. Leave the parameters losses, duration_s and clock_hz out, or"
            " write losses=keep"
        )
    if not isinstance(mechanism, Chain):
        proved = mechanism.claim.definition != "none" and mechanism.claim.status == "proved"
        if mechanism.name in FAMILIES or proved:
            return None
        return (
            f"Nothing is known of {mechanism.name} but that it is not proved, so it is not offered"
        )
    noisy = [stage for stage in mechanism.stages if stage.name not in COPIES]
    if len(noisy) != 1 or isinstance(noisy[0], Chain):
        return f"A chain has one mechanism with noise here, and {mechanism.stages} has {len(noisy)}"
    if mechanism.claim.definition == "none" or mechanism.claim.status != "proved":
        return (
            "A chain must have a proved promise here. Put a mechanism with a proved promise first,"
            " as in gaussian(sigma_deg=3)+temporal(K=2)"
        )
    if noisy[0].name == "gaussian" and view_of(mechanism) is None:
        return (
            "All Gaussian streams share one noise, so of the chains with gaussian only"
            " gaussian(sigma_deg=...)+temporal(K=...) is offered"
        )
    return None


def copies(name: str, K: str = "2") -> str:  # noqa: N803 - the paper's letter
    """Why a mechanism without noise is not granted alone, and what to write."""
    after = f"temporal(K={K})" if name == "temporal" else "temporal(K=2)"
    return (
        f"{name} adds no noise, so it would copy gaze. Put noise before it:"
        f" chain:stages=gaussian(sigma_deg=3)+{after}"
    )


@dataclass(frozen=True)
class GaussianView:
    """What of the one graded session a Gaussian mechanism is.

    Parameters
    ----------
    sigma_deg : Fraction
        Its noise.
    K : int
        Every how many samples it tells a new place.
    hold : bool
        Whether it repeats the last place in between.
    """

    sigma_deg: Fraction
    K: int = 1
    hold: bool = False


def view_of(mechanism: StreamMechanism) -> GaussianView | None:
    """How a mechanism is made from the one Gaussian noise of the device; None where it is not."""
    stages = mechanism.stages if isinstance(mechanism, Chain) else (mechanism,)
    noise, *rest = stages
    if not isinstance(noise, Gaussian) or any(s.reading != "corrected" for s in stages):
        return None
    if not isinstance(mechanism, Chain):
        return GaussianView(Fraction(noise.sigma_deg))
    if len(rest) != 1 or not isinstance(rest[0], Temporal):
        return None
    return GaussianView(Fraction(noise.sigma_deg), rest[0].K, rest[0].hold)
