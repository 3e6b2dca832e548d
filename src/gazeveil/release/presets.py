"""Presets of `gazeveil publish`: one mechanism with its parameters for each thing that a lab
publishes, chosen from the measured table behind `gazeveil advise`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gazeveil import checks


@dataclass(frozen=True)
class Preset:
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
    Preset(
        "public-maps",
        "heatmap-laplace:epsilon=2",
        "maps",
        8,
        "heat maps of where everybody looked together; differential privacy of whole people",
    ),
    Preset(
        "public-events",
        "event-synth-pd:k=4,gamma=4",
        "events",
        8,
        "drawn recordings whose fixations and saccades are as those of the people",
    ),
    Preset(
        "public-samples",
        "k-same-synth:k=4,match=crowd",
        "samples",
        8,
        "drawn recordings that groups of four people share, at the places where they looked",
    ),
    Preset(
        "public-features",
        "dct-knorm:epsilon=10",
        "ml",
        1,
        "features of windows for training models, with noise in each feature of a recording",
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({p.name: p for p in _ALL})


def preset(name: str) -> Preset:
    """A preset by its name.

    Raises
    ------
    ParameterError
        For any other name.

    Examples
    --------
    >>> preset("public-samples").mechanism
    'k-same-synth:k=4,match=crowd'
    """
    return PRESETS[checks.one_of("publish", "preset", name, PRESETS)]
