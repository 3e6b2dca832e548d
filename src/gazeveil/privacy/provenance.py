"""How a release was made, as far as that may be published."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gazeveil import __version__


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
