"""What a mechanism gives back: the data, the promise, and how it was made."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar

import numpy as np

from gazeveil import __version__
from gazeveil.privacy.guarantee import Guarantee

Data = TypeVar("Data")


@dataclass(frozen=True)
class Provenance:
    """How a release was made; safe to publish with it.

    Parameters
    ----------
    mechanism : str
        Name.
    reading : str
        `published`, `corrected` or a further reading.
    parameters : mapping of str to str
        All parameters, as text.
    seeded : bool
        Whether the noise came from a test stream; such a release protects nobody.
    versions : mapping of str to str
        Gazeveil, numpy and Python.
    """

    mechanism: str
    reading: str
    parameters: Mapping[str, str]
    seeded: bool
    versions: Mapping[str, str] = field(
        default_factory=lambda: {
            "gazeveil": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
    )

    def to_dict(self) -> dict[str, object]:
        """The provenance as JSON has it."""
        return {
            "mechanism": self.mechanism,
            "reading": self.reading,
            "parameters": dict(self.parameters),
            "seeded": self.seeded,
            "versions": dict(self.versions),
        }


@dataclass(frozen=True, eq=False)
class Release(Generic[Data]):
    """A protected copy.

    Parameters
    ----------
    data : same type as went in
        What may be published.
    promised : Guarantee, or a callable that gives it
        What that promises, read as :attr:`guarantee`. A release of recordings that are still files
        is promised what their rates and lengths make of it, so it is worked out when it is first
        asked for: after the recordings have been looked at, which reads no file twice.
    provenance : Provenance
        How it was made.
    curator_notes : mapping of str to int
        Counts for whoever holds the raw data (values clamped to the public bounds, say). They come
        from the data and are not covered by the guarantee: never publish them.
    """

    data: Data
    promised: Guarantee | Callable[[], Guarantee] = field(repr=False)
    provenance: Provenance
    curator_notes: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "curator_notes", MappingProxyType(dict(self.curator_notes)))

    @property
    def guarantee(self) -> Guarantee:
        """What the data promise."""
        if not isinstance(self.promised, Guarantee):
            object.__setattr__(self, "promised", self.promised())
        assert isinstance(self.promised, Guarantee)
        return self.promised
