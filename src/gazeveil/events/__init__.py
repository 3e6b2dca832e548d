"""Event detection on screen and sphere, and how well detectors agree with human labels.

Methods of :func:`detect`:

* `auto`: our best detector for the recording's space and rate; fixation, saccade, pursuit, pso,
  blink, noise.
* `ivt`: velocity threshold in two published settings (`setting=`).
* `idt`: dispersion threshold (`dispersion="range"` or `"pairwise"`).
* `dorr`: two speed thresholds for saccades, then Dorr's fixation stage (`signal="E+H"` or `"FOV"`).
* `is5t`: five speed thresholds on gaze, head and eye, with primary and secondary labels.
* `online`: the causal detector for streams, run over a whole recording.

A recording of events without samples (fixation-only datasets) has nothing to detect: every method
returns the events it came with, and their `source` says whose they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from gazeveil import checks
from gazeveil.gaze.events import Events
from gazeveil.gaze.recording import Recording

if TYPE_CHECKING:
    from gazeveil.events.online.detector import OnlineDetector

#: Method name -> (module, function). Modules load when first asked for.
METHODS = {
    "auto": ("auto.detector", "detect_auto"),
    "ivt": ("ivt", "detect_ivt"),
    "idt": ("ivt", "detect_idt"),
    "dorr": ("dorr", "detect_dorr"),
    "is5t": ("ivt", "detect_is5t"),
    "online": ("online.detector", "detect_online"),
}

__all__ = ["METHODS", "OnlineDetector", "detect"]


def detect(recording: Recording, method: str = "auto", **parameters: object) -> Events:
    """Find what the eye did.

    Parameters
    ----------
    recording : Recording
        Any space and rate; lost samples are handled as :mod:`gazeveil.events.trace` says.
    method : str
        One of :data:`METHODS`.
    **parameters
        Those of the method; an unknown one is refused.

    Returns
    -------
    Events
        Inclusive sample indices into the recording as read, in order, without overlap. An empty
        recording gives no events; where fewer than two samples are valid, or the rate is not known,
        nothing can be said and samples are `undefined`.

    Raises
    ------
    ParameterError
        For an unknown method or parameter, or a value outside what is allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from gazeveil import Recording, Screen
    >>> x = np.r_[np.zeros(100), np.linspace(0, 8, 10), np.full(100, 8.0)]
    >>> t_ns, screen = np.arange(210) * 4_000_000, Screen(1680, 1050, 474, 297, 550)
    >>> r = Recording("a", "dots", t_ns, x, 0 * x, space=screen)
    >>> detect(r, "ivt").kind.tolist()
    ['fixation', 'saccade', 'fixation']
    """
    checks.one_of("detect", "method", method, METHODS)
    if not isinstance(recording, Recording):
        checks.refuse(
            "detect",
            "recording",
            "a Recording",
            recording,
            "A cohort is iterated: [detect(r) for r in cohort].",
        )
    function, options = _method(method)
    checks.known_options(f"The method '{method}' of detect", parameters, options)
    if len(recording) == 0 and recording.events is not None:
        return recording.events
    result: Events = function(recording, **parameters)
    return result


@cache
def _method(method: str) -> tuple[Callable[..., Events], tuple[str, ...]]:
    """The function of a method and the names of its parameters, looked up once: a study asks
    thousands of times.
    """
    module, name = METHODS[method]
    function = getattr(import_module(f"gazeveil.events.{module}"), name)
    return function, tuple(p for p in inspect.signature(function).parameters if p != "recording")


def __getattr__(name: str) -> object:
    if name == "OnlineDetector":
        return import_module("gazeveil.events.online.detector").OnlineDetector
    raise AttributeError(f"module 'gazeveil.events' has no attribute '{name}'")
