"""The mechanism interface: a frozen value of checked parameters with `release(data, seed=None)`.

A mechanism is a frozen dataclass whose fields are its parameters. Its constructor stores and
checks, and does no work. Third parties register theirs with
:func:`gazeveil.privacy.registry.register` and run the conformance kit on them.

Everything that others say or ask about a mechanism is an attribute of its class, so a new one is
a module of its own and nothing else is edited::

    class Mine(Mechanism[Cohort]):
        name = "mine"
        label = "my noise"
        kind = "cohort"
        paper = "Doe 2026"
        summary = "Adds noise to everything."
        plot = PlotRecipe("population", (":sigma_deg=1",))
        claims = {"corrected": Claim("epsilon-dp", "user", "proved")}

        def release(self, data, seed=None): ...

        def audit_game(self, unit):
            from mine.audit import game  # mine.audit imports this module for its types alone

            return game(self, unit)

Mechanisms that release pieces of recordings under names that do not last.

The evidence about a person adds up over everything that is published under one name. A mechanism of
this kind cuts recordings at public times and gives every piece a pseudonym of its own. A release
holds many pseudonyms per person, and only the curator knows their persons. Evaluation needs that
mapping too: :meth:`PieceMechanism.release_with_origins` returns it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePath
from types import MappingProxyType
from typing import ClassVar, Generic, TypeVar

from gazeveil import checks
from gazeveil.errors import ParameterError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.release import Provenance, Release

Data = TypeVar("Data")
Out = TypeVar("Out")

_NO_NOTES: Mapping[str, int] = MappingProxyType({})

#: What a mechanism takes and gives.
KINDS = ("stream", "table", "cohort", "map", "people")

#: Drawings that several mechanisms share, and `own`: the module of `drawings` named like it.
DRAWINGS = ("streams", "features", "population", "own")


@dataclass(frozen=True)
class PlotRecipe:
    """A drawing and the releases in it; `docs/reference/mechanisms/recipes.py` draws them.

    Parameters
    ----------
    drawing : str
        One of :data:`DRAWINGS` (gaze over time and in space, one feature and its expected error,
        one person and where a population looks), or `module:function`, which takes a path.
    releases : tuple of str
        Mechanisms as `name:parameter=value,...`, or `:parameter=value,...` for the one whose recipe
        this is.
    errors : tuple of str
        For `features`: mechanisms without epsilon, whose error is drawn against it.
    """

    drawing: str
    releases: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One line of the table of mechanisms: what a reading promises, known before
    any data is seen.
    """

    definition: str
    unit: str
    status: str
    detail: str = ""


@dataclass(frozen=True)
class Mechanism(ABC, Generic[Data]):
    """Base of all mechanisms.

    Class attributes
    ----------------
    name : str
        As in `gazeveil.mechanism(name)`.
    label : str
        What readers of results call it.
    kind : str
        One of :data:`KINDS`.
    paper : str
        Where it comes from.
    summary : str
        One line of purpose, for lists.
    plot : PlotRecipe
        The picture on its page.
    noise_unit : str
        What has noise of its own, so that other processes may draw it and an interrupted release
        can go on: each `recording`, or each recording once the `fit` to all of them is drawn; by
        default only the whole `release`.
    claims : mapping of reading to Claim
        The readings it offers and what each promises; `reading` must be one of them.
    files : tuple of str
        Parameters that name a file: where it lies is not for the public, and an app may not say it.

    Parameters
    ----------
    reading : str
        Which reading of the paper; `corrected` by default.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    kind: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    plot: ClassVar[PlotRecipe]
    claims: ClassVar[Mapping[str, Claim]]
    noise_unit: ClassVar[str] = "release"
    files: ClassVar[tuple[str, ...]] = ()

    reading: str = field(default="corrected", kw_only=True)

    def __post_init__(self) -> None:
        checks.one_of(self.name, "reading", self.reading, self.claims)
        self.check()

    def check(self) -> None:
        """Check the parameters and store them in their exact type; subclasses extend this."""

    @abstractmethod
    def release(self, data: Data, seed: int | None = None) -> Release[Data]:
        """Protect data.

        Parameters
        ----------
        data
            What the mechanism's kind takes.
        seed : int, optional
            A test stream instead of the operating system's randomness: repeatable, and only
            `claimed`.
        """

    def audit_game(self, unit: str | None) -> Game:
        """The neighbouring pair with which `gazeveil.audit` attacks this mechanism.

        Parameters
        ----------
        unit : str, optional
            What the pair differs in; None for the unit of the claim.

        Raises
        ------
        ParameterError
            If the mechanism brings no game, or none for that unit.
        """
        raise ParameterError(
            f"There is no audit game for mechanism '{self.name}'. Write its method audit_game.",
            name="mechanism",
            got=self.name,
        )

    def store(self, name: str, value: object) -> None:
        """Put the checked form of a parameter in its place; only for :meth:`check`."""
        object.__setattr__(self, name, value)

    @property
    def title(self) -> str:
        """Name and reading, for guarantees and tables."""
        return f"{self.name} ({self.reading})"

    @property
    def claim(self) -> Claim:
        """The promise of this mechanism with its reading and parameters."""
        return self.claims[self.reading]

    def parameters(self) -> dict[str, object]:
        """All parameters but the reading; those that a family shares come last."""
        ordered = sorted(fields(self), key=lambda f: bool(f.kw_only))
        return {f.name: getattr(self, f.name) for f in ordered if f.name != "reading"}

    def public_parameters(self) -> dict[str, str]:
        """All parameters as text that may be published: of a file its name, not where it lies."""
        return {
            name: PurePath(str(value)).name if name in self.files and value else str(value)
            for name, value in self.parameters().items()
        }

    @property
    def public_text(self) -> str:
        """The command line's form as it may be published: `str`, with the names of files instead of
        where they lie.
        """
        own, public = self.parameters(), self.public_parameters()
        parts = [f"{name}={public[name]}" for name, value in own.items() if value is not None]
        return self.name + ":" + ",".join([*parts, f"reading={self.reading}"])

    def provenance(self, seed: int | None) -> Provenance:
        """How a release of this mechanism was made."""
        return Provenance(self.name, self.reading, self.public_parameters(), seed is not None)

    def released(
        self,
        data: Out,
        guarantee: Guarantee,
        seed: int | None,
        notes: Mapping[str, int] = _NO_NOTES,
    ) -> Release[Out]:
        """A release with this mechanism's provenance; one from a test stream is only `claimed`.

        Parameters
        ----------
        data
            What was made.
        guarantee : Guarantee
            What it promises with the operating system's randomness.
        seed : int or None
            The test stream, if there was one.
        notes : mapping of str to int
            Counts for the curator.
        """
        promise = guarantee if seed is None else guarantee.tested()
        return Release(data, promise, self.provenance(seed), notes)

    def __str__(self) -> str:
        """The command line's form, `name:parameter=value,...`."""
        parts = [f"{k}={v}" for k, v in self.parameters().items() if v is not None]
        return self.name + ":" + ",".join([*parts, f"reading={self.reading}"])


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
