"""Mechanisms that release pieces of recordings under names that do not last.

The evidence about a person adds up over everything that is published under one name. A mechanism of
this kind cuts recordings at public times and gives every piece a pseudonym of its own. A release
holds many pseudonyms per person, and only the curator knows their persons. Evaluation needs that
mapping too: :meth:`PieceMechanism.release_with_origins` returns it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.release import Release


@dataclass(frozen=True, eq=False)
class PieceRelease:
    """A release of pieces, and whose they are.

    Parameters
    ----------
    release : Release of Cohort
        What may be published. Each recording is a piece: its `person` is a name that no other piece
        has, its times count from the beginning of the stimulus.
    origins : mapping of str to (person, stimulus, session, task)
        From a piece's name to the recording that it was made for. A secret of the curator: never
        publish it.
    """

    release: Release[Cohort]
    origins: Mapping[str, RecordingKey] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "origins", MappingProxyType(dict(self.origins)))


@dataclass(frozen=True)
class PieceMechanism(Mechanism[Cohort]):
    """Base of the mechanisms that release pieces."""

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        """Protect data; see :class:`gazeveil.privacy.mechanism.Mechanism`."""
        return self.release_with_origins(data, seed).release

    @abstractmethod
    def release_with_origins(self, data: Cohort, seed: int | None = None) -> PieceRelease:
        """As :meth:`release`, with whose the pieces are: for measuring, never for publishing."""
