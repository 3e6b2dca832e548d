"""What averaging gives: how far off the best estimate is of where resting eyes are, by the law of a
mechanism's noise.

Noise that is drawn anew falls with the square root of how often it is drawn. For an angle with
Gaussian noise of s along x and y the median error is 1.18 s.
"""

from __future__ import annotations

import math
from typing import Any

from gazeveil.privacy.stream.chain import Chain
from gazeveil.privacy.stream.gaussian import Gaussian

LONG_S = 10.0

#: Median of the length of a pair of independent Gaussian errors, for sigma = 1.
_MEDIAN = math.sqrt(2 * math.log(2))


def steady_error_deg(mechanism: Any, rate_hz: float, seconds: float = LONG_S) -> float | None:
    """Median error of the mean over so many seconds of resting eyes, in degrees; None where no
    formula is known.

    Parameters
    ----------
    mechanism : StreamMechanism
        As granted.
    rate_hz : float
        Samples that it is given in a second.
    seconds : float
        How long.

    Examples
    --------
    >>> from gazeveil.privacy.registry import mechanism
    >>> round(steady_error_deg(mechanism("gaussian:sigma_deg=2"), 120.0), 3)
    0.068
    """
    if isinstance(mechanism, Chain):
        first, *rest = mechanism.stages
        every = math.prod(int(getattr(stage, "K", 1)) for stage in rest)
        return steady_error_deg(first, rate_hz / every, seconds)
    if isinstance(mechanism, Gaussian):
        return _MEDIAN * float(mechanism.sigma_deg) / math.sqrt(max(1.0, rate_hz * seconds))
    return None


def averaging_words(mechanism: Any, rate_hz: float) -> str:
    """What averaging gives, in a sentence.

    Examples
    --------
    >>> from gazeveil.privacy.registry import mechanism
    >>> averaging_words(mechanism("gaussian:sigma_deg=2"), 120.0)
    'Averaging this stream alone: who watches resting eyes for ten seconds finds them to about 0.07
    degrees.'
    """
    error = steady_error_deg(mechanism, rate_hz)
    if error is None:
        return (
            "Averaging this stream alone: who watches resting eyes for long takes its noise away."
        )
    return (
        "Averaging this stream alone: who watches resting eyes for ten seconds finds them to about"
        f" {error:.1g} degrees."
    )
