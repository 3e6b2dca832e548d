"""The result of a mechanism: data, promise and provenance.

How a release was made, as far as that may be published.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from gazeveil import __version__
from gazeveil.errors import DataError
from gazeveil.gaze.cards import card
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording
from gazeveil.privacy import release_writer
from gazeveil.privacy.guarantee import Guarantee


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
        Whether the noise came from a test stream; such a release gives no protection.
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


__all__ = ["Data", "Provenance", "Release"]

Data = TypeVar("Data")


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
        Counts for the curator (values clamped to the public bounds, say). They come from the data
        and are not covered by the guarantee: never publish them.
    kept : tuple of str
        Channels that went through as they were, because `keep` named them.
    raw : Cohort or Recording, optional
        The recordings it was made of, by which a ledger recognises people; never written, and not
        part of a pickle.
    """

    data: Data
    promised: Guarantee | Callable[[], Guarantee] = field(repr=False)
    provenance: Provenance
    curator_notes: Mapping[str, int] = field(default_factory=dict, repr=False)
    kept: tuple[str, ...] = ()
    raw: Cohort | Recording | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "curator_notes", MappingProxyType(dict(self.curator_notes)))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        if isinstance(self.data, Cohort) and any(isinstance(i, Handle) for i in self.data.items):
            # Its handles may hold raw recordings as well as keys.
            raise DataError(
                "A release that is not loaded yet holds the secret keys of its noise and cannot be"
                " sent elsewhere. Write it, or load it first."
            )
        notes = dict(self.curator_notes)
        return Release, (self.data, self.guarantee, self.provenance, notes, self.kept)

    def _repr_html_(self) -> str:
        data = self.data
        what = repr(data) if isinstance(data, Cohort) else type(data).__name__
        rows = [
            ("data", what),
            ("mechanism", self.provenance.mechanism),
            ("status", self.guarantee.status),
            ("kept as it was", ", ".join(self.kept) or "-"),
        ]
        return card("Release", rows) + self.guarantee._repr_html_()

    @property
    def guarantee(self) -> Guarantee:
        """The promise of the data."""
        if not isinstance(self.promised, Guarantee):
            object.__setattr__(self, "promised", self.promised())
        assert isinstance(self.promised, Guarantee)
        return self.promised

    @property
    def for_curator(self) -> tuple[str, ...]:
        """The curator's notes as one sentence; none without a count."""
        notes = [f"{name.replace('_', ' ')}: {n}" for name, n in self.curator_notes.items() if n]
        return (
            (
                "For you alone, not covered by the promise, never to be published:"
                f" {', '.join(notes)}.",
            )
            if notes
            else ()
        )

    def write(self, path: str | Path, **choices: Any) -> Path:
        """Write what may be published, with its certificate.

        Recordings go into a folder: pseudonyms in place of names, times from zero, one public
        rate, a table of people in which at least k are alike, and `PRIVACY.json` and `PRIVACY.md`,
        which say what is promised. A feature table, maps or a table of people go into one file,
        with the certificate beside it.

        Parameters
        ----------
        path : path
            A folder that does not exist yet or is empty; for tables and maps a file.
        **choices
            Those of :class:`gazeveil.privacy.publication.names.PublicationChoices`: `keep=`
            names fields that go out as they are, `to=` the format, `key_file=` where to put the
            key of pseudonyms. And `ledger=`, the file of earlier releases that this one is charged
            to (your own by default, False for none), with `raw=`, the recordings it was made of,
            where :func:`gazeveil.protect` did not make it.

        Raises
        ------
        ParameterError
            For a choice that is not allowed.
        DataError
            If the path is taken: releases are never mixed.
        BudgetError
            If the ledger refuses it: its people are in an earlier release, or one person has two
            names.
        """
        return release_writer.write_release(self, Path(path), choices)
