"""Pictures of gaze: each function takes matplotlib axes, or makes some, and gives them back.

>>> import gazeveil
>>> gaze = gazeveil.simulate(1, 1, seconds=5, rate_hz=120, seed=1)[0]
>>> axes = gazeveil.plot.trace(gaze, events=gazeveil.detect(gaze))
>>> axes.get_xlabel()
'time (s)'

Everything loads on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gazeveil.lazily import lazily

if TYPE_CHECKING:
    from gazeveil.plot.maps import heat_map, scanpath
    from gazeveil.plot.paths import before_after, events_ribbon, main_sequence, trace
    from gazeveil.plot.tradeoff import FrontPoint, front

_HOME = {
    "FrontPoint": "gazeveil.plot.tradeoff",
    "before_after": "gazeveil.plot.paths",
    "events_ribbon": "gazeveil.plot.paths",
    "front": "gazeveil.plot.tradeoff",
    "heat_map": "gazeveil.plot.maps",
    "main_sequence": "gazeveil.plot.paths",
    "scanpath": "gazeveil.plot.maps",
    "trace": "gazeveil.plot.paths",
}

__all__ = [
    "FrontPoint",
    "before_after",
    "events_ribbon",
    "front",
    "heat_map",
    "main_sequence",
    "scanpath",
    "trace",
]


__getattr__, __dir__ = lazily(__name__, _HOME)
