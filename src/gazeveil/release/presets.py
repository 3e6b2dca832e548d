"""Presets of `gazeveil publish`: one mechanism with its parameters for each thing that a lab
publishes: the first row for screens of the measured table behind `gazeveil advise`, and for samples
the first with lasting names too. In headsets others come first, so `gazeveil advise --kind vr` is
to be asked there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gazeveil import checks


@dataclass(frozen=True)
class ReleasePreset:
    """A choice that somebody may take without knowing mechanisms.

    Parameters
    ----------
    name : str
        As `--preset` says it.
    mechanism : str
        `name:parameter=value,...`.
    purpose : str
        The purpose of :data:`gazeveil.release.advice.PURPOSES` it is for.
    people : int
        The fewest people it can be used with.
    about : str
        What is published, and who it is for.
    """

    name: str
    mechanism: str
    purpose: str
    people: int
    about: str


_ALL = (
    ReleasePreset(
        "public-maps",
        "event-synth-pd:k=4,gamma=4",
        "maps",
        8,
        "drawn recordings whose heat maps are near those of the people",
    ),
    ReleasePreset(
        "public-events",
        "event-synth-pd:k=4,gamma=4",
        "events",
        8,
        "drawn recordings whose fixations and saccades are as those of the people",
    ),
    ReleasePreset(
        "public-samples",
        "clock-render:epsilon=1,r_deg=2,slot_s=1/2,form=offline",
        "samples",
        1,
        "drawn recordings that look every half second near where the person looked",
    ),
    ReleasePreset(
        "public-pieces",
        "mosaic:epsilon=10,r_deg=2,piece_s=5/2,paths=exchange,segment_s=1/2",
        "samples",
        12,
        "pieces of 2.5 s near where people looked, each under a name of its own; every stimulus"
        " needs 12 viewers",
    ),
    ReleasePreset(
        "public-features",
        "fpa:epsilon=10",
        "ml",
        1,
        "features of fixations and saccades (with --table windows, of windows of 30 s) for training"
        " models, with noise in each feature of a recording",
    ),
)

PRESETS: Mapping[str, ReleasePreset] = MappingProxyType({p.name: p for p in _ALL})


def preset(name: str) -> ReleasePreset:
    """A preset by its name.

    Raises
    ------
    ParameterError
        For any other name.

    Examples
    --------
    >>> preset("public-events").mechanism
    'event-synth-pd:k=4,gamma=4'
    """
    return PRESETS[checks.one_of("publish", "preset", name, PRESETS)]
