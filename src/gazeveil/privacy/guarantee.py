"""The promise of a release, as a value that maps a change of the data to a loss and prints as one
true text.

A guarantee holds a definition, a map from changes to losses, its assumptions, what it does not
cover, and a status (how it is known). Its numbers, neighbours, total for a person and text are all
read off the map; none of them is stored. Where the status is not `proved` the numbers are only
claimed. `epsilon`, `delta`, `rho` and `k` are then None and :meth:`Guarantee.map` refuses, so that
unproved numbers are not read by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from types import MappingProxyType

from gazeveil import checks
from gazeveil.gaze.cards import card
from gazeveil.privacy.promise.loss import UNITS, Change, Loss, PromiseError
from gazeveil.privacy.promise.privacy_map import PrivacyMap
from gazeveil.privacy.promise.sentence import ALIKE_CLAUSES, amounts, other_changes, plain, sentence
from gazeveil.privacy.rational import short_bound

__all__ = [
    "DEFINITIONS",
    "STATUSES",
    "UNITS",
    "Change",
    "Guarantee",
    "Loss",
    "PromiseError",
    "PublicNumber",
    "no_promise",
]

#: Definitions and the numbers each one has.
DEFINITIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "k-anonymity": ("k",),
        "plausible-deniability": ("k", "gamma"),
        "epsilon-dp": ("epsilon",),
        "epsilon-delta-dp": ("epsilon", "delta"),
        "rho-zcdp": ("rho",),
        "epsilon-ldp": ("epsilon",),
        "geo-indistinguishability": ("epsilon", "r_deg"),
        "epsilon-w-r-dp": ("epsilon", "w_samples", "r_deg"),
        "epsilon-w-r-t-dp": ("epsilon", "w_samples", "r_deg", "t_samples"),
        "none": (),
    }
)

#: Definitions that compare people with one another instead of two datasets; they have no map.
OF_PEOPLE = frozenset({"k-anonymity", "plausible-deniability"})

#: How a claim is known.
STATUSES = ("proved", "claimed", "empirical", "refuted")


@dataclass(frozen=True)
class PublicNumber:
    """A number that a proof takes for public.

    Parameters
    ----------
    words : str
        What it is, e.g. `the length of 40 rows`.
    named_by : str
        The parameter that names it.
    derived : bool
        Whether it is derived from the data; else it was named, by a person or by a rule that knows
        no data.
    """

    words: str
    named_by: str
    derived: bool


@dataclass(frozen=True)
class Guarantee:
    """The promise of a release.

    Parameters
    ----------
    definition : str
        A key of :data:`DEFINITIONS`.
    losses : PrivacyMap, optional
        The most that is lost for a change; None for definitions that compare people, and for none.
    change : Change, optional
        The change that the definition speaks of; needed with `losses`.
    counts : mapping of str to Fraction
        Numbers that are no loss: k and gamma.
    alike : str
        For definitions that compare people: what at least k of them share, a key of
        :data:`~gazeveil.privacy.promise.sentence.ALIKE_CLAUSES`.
    mechanism : str
        Name and reading.
    also : tuple of (str, Loss)
        What a part loses at most, or the whole under a further condition, said as a clause; printed
        besides the promise, never in its place.
    assumptions : tuple of str
        What must be true for the promise to hold, as clauses: the public bounds, the public length.
    not_covered : tuple of str
        What the release tells that the promise does not speak of.
    status : str
        One of :data:`STATUSES`.
    reason : str
        Why it has that status: the proof page, or how the claim fails.

    Examples
    --------
    >>> from gazeveil.privacy.promise.privacy_map import UnitMap
    >>> losses = UnitMap.of("recording", Loss.pure("1/2")).lift("user", 3)
    >>> g = Guarantee("epsilon-dp", losses, Change.recording(), mechanism="example")
    >>> g.epsilon, g.map(Change.person()).epsilon
    (Fraction(1, 2), Fraction(3, 2))
    >>> print(g.with_status("refuted", "the range came from the data").epsilon)
    None
    """

    definition: str
    losses: PrivacyMap | None = None
    change: Change | None = None
    counts: Mapping[str, Fraction] = field(default_factory=dict)
    alike: str = "record"
    mechanism: str = ""
    also: tuple[tuple[str, Loss], ...] = ()
    assumptions: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    status: str = "proved"
    reason: str = ""

    def __post_init__(self) -> None:
        checks.one_of("Guarantee", "definition", self.definition, DEFINITIONS)
        checks.one_of("Guarantee", "status", self.status, STATUSES)
        checks.one_of("Guarantee", "alike", self.alike, ALIKE_CLAUSES)
        if not (self.change is None or isinstance(self.change, Change)) or not (
            self.losses is None or isinstance(self.losses, PrivacyMap)
        ):
            checks.refuse(
                "Guarantee", "losses", "a PrivacyMap with a Change", (self.losses, self.change)
            )
        for name, value in self.counts.items():
            if not isinstance(value, Fraction) or value < 0:
                checks.refuse(
                    "Guarantee", name, "a Fraction of at least 0: budgets are exact", value
                )
        if self.status != "proved" and not self.reason:
            checks.refuse(
                "Guarantee", "reason", "given where the status is not proved", self.reason
            )
        if self.definition == "none" and self.status == "proved":
            checks.refuse(
                "Guarantee",
                "status",
                "claimed, empirical or refuted where nothing is promised",
                self.status,
                "There is nothing to prove.",
            )
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "not_covered", tuple(self.not_covered))
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))
        if (self.losses is None or self.change is None) and self.definition not in OF_PEOPLE | {
            "none"
        }:
            checks.refuse(
                "Guarantee", "losses", f"given with a change for {self.definition}", self.losses
            )
        numbers = self.numbers
        for name in DEFINITIONS[self.definition]:
            if name not in numbers:
                checks.refuse(
                    "Guarantee",
                    "losses",
                    f"such that it has '{name}' for {self.definition}",
                    dict(numbers),
                )

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # Mapping proxies cannot be pickled.
        return Guarantee, tuple(
            dict(self.counts) if f.name == "counts" else getattr(self, f.name) for f in fields(self)
        )

    def __hash__(self) -> int:
        return hash(
            (
                self.definition,
                self.losses,
                self.change,
                tuple(sorted(self.counts.items())),
                self.mechanism,
                self.status,
                self.reason,
            )
        )

    # --- the map
    # ----------------------------------------------------------------------------------------------

    def map(self, change: Change) -> Loss:
        """The most that is lost if the data change so.

        Raises
        ------
        PromiseError
            Where that is not proved, or no bound is known: "not known" is an answer, a number that
            may be false is none.
        """
        if self.status != "proved":
            raise PromiseError(
                f"{self._name} is {self.status}: {self.reason}. What is not proved bounds nothing."
            )
        return self.claimed_loss(change)

    def claimed_loss(self, change: Change) -> Loss:
        """The claimed upper bound of the loss, proved or not."""
        if not isinstance(change, Change):
            checks.refuse(
                "Guarantee",
                "change",
                "a Change",
                change,
                "Make one: gazeveil.Change.person(), or .window(seconds=1, move_deg=2).",
            )
        if self.losses is None:
            instead = (
                "promises nothing"
                if self.definition == "none"
                else f"promises {self.definition}, which compares people and bounds no loss"
            )
            raise PromiseError(f"{self._name} {instead}.")
        return self.losses.loss(change)

    @property
    def numbers(self) -> Mapping[str, Fraction]:
        """The numbers of the definition for its own change, read off the map; they are a claim
        where the status is not `proved`.
        """
        numbers = dict(self.counts)
        if self.losses is None or self.change is None:
            return numbers
        numbers |= self.losses.loss(self.change).numbers()
        samples = self.losses.samples_of(self.change)
        far = self.change.move_deg if self.change.start_deg is None else self.change.start_deg
        if samples is not None and self.change.unit == "window":
            numbers["w_samples"] = Fraction(samples)
            if self.change.start_deg is not None:
                numbers["t_samples"] = Fraction(
                    samples
                )  # a window that is replaced changes its fixation times by anything
        if far is not None:
            numbers["r_deg"] = far
        return numbers

    @property
    def unit(self) -> str:
        """The unit of the definition's change."""
        return "user" if self.change is None else self.change.unit

    @property
    def neighbours(self) -> str:
        """Which two datasets must look alike, or what people share, as a clause."""
        if self.change is None or self.losses is None:
            return "not defined" if self.definition == "none" else ALIKE_CLAUSES[self.alike]
        return self.losses.clause(self.change)

    @property
    def user(self) -> Mapping[str, Fraction]:
        """What it adds up to for everything of one person; empty where that is not known."""
        if self.losses is None or self.change is None:
            return {}
        try:
            return self.losses.loss(Change.person(metric=self.change.metric)).numbers()
        except PromiseError:
            return {}

    @property
    def delta_num(self) -> Fraction:
        """Probability that finite arithmetic breaks the promise for its own
        change; part of delta.
        """
        return (
            Fraction(0)
            if self.losses is None or self.change is None
            else self.losses.loss(self.change).delta_num
        )

    @property
    def _name(self) -> str:
        return self.mechanism or "This release"

    # --- what is proved
    # ----------------------------------------------------------------------------------------------

    def _proved(self, name: str) -> Fraction | None:
        return self.numbers.get(name) if self.status == "proved" else None

    @property
    def epsilon(self) -> Fraction | None:
        """Epsilon at the unit, or None where it is not proved."""
        return self._proved("epsilon")

    @property
    def delta(self) -> Fraction | None:
        """Delta with the numerical error added, or None where it is not proved or not part of the
        definition.
        """
        delta = self._proved("delta")
        return None if delta is None else delta + self.delta_num

    @property
    def rho(self) -> Fraction | None:
        """Rho at the unit, or None where it is not proved."""
        return self._proved("rho")

    @property
    def k(self) -> int | None:
        """Size of the smallest group, or None where it is not proved."""
        k = self._proved("k")
        return None if k is None else int(k)

    @property
    def epsilon_claimed(self) -> Fraction | None:
        """Epsilon as the paper or the mechanism claims it, proved or not."""
        return self.numbers.get("epsilon")

    # --- the same promise otherwise
    # ----------------------------------------------------------------------------------------------

    def with_status(self, status: str, reason: str) -> Guarantee:
        """The same claim, known otherwise."""
        return replace(self, status=status, reason=reason)

    def resting_on(self, number: PublicNumber) -> Guarantee:
        """The same promise with a number that it takes for public; where that is derived from the
        data, the proof does not hold for it, and the promise is a claim.
        """
        resting = replace(self, assumptions=(*self.assumptions, f"{number.words} is public"))
        if not number.derived or self.status != "proved":
            return resting
        return resting.with_status(
            "claimed",
            f"{number.words} is derived from the data, and tells about them. Name it with"
            f" {number.named_by}=, and what is claimed is proved ({self.reason})",
        )

    def with_not_covered(self, *clauses: str) -> Guarantee:
        """The same promise with more said about what it leaves out."""
        return replace(
            self,
            not_covered=(*self.not_covered, *(c for c in clauses if c not in self.not_covered)),
        )

    def tested(self) -> Guarantee:
        """Return the guarantee of a release made with a seed. It is only claimed: with the seed the
        noise can be undone.
        """
        if self.status != "proved":
            return self
        return self.with_status(
            "claimed",
            "its random numbers came from a test stream with a known seed, not from the operating"
            " system",
        )

    def to_dict(self) -> dict[str, object]:
        """The guarantee as JSON has it; fractions as text."""
        return {
            "definition": self.definition,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "numbers": {k: str(v) for k, v in self.numbers.items()},
            "user": {k: str(v) for k, v in self.user.items()},
            "losses": [
                {"change": phrase, **{k: str(v) for k, v in loss.numbers().items()}}
                for phrase, _, loss in other_changes(self)
            ],
            "also": [
                {"condition": phrase, **{k: str(v) for k, v in loss.numbers().items()}}
                for phrase, loss in self.also
            ],
            "mechanism": self.mechanism,
            "assumptions": list(self.assumptions),
            "not_covered": list(self.not_covered),
            "status": self.status,
            "reason": self.reason,
            "delta_num": short_bound(self.delta_num),
        }

    @property
    def plain(self) -> str:
        """The promise in plain words: against which change, by how much, and its main limit."""
        rates_hz = () if self.losses is None else tuple(self.losses.rates_hz)
        # Where rates differ, so many samples are no one time.
        return plain(self.to_dict(), rates_hz[0] if len(rates_hz) == 1 else None)

    def table(self) -> list[tuple[str, str]]:
        """Changes and losses in words, the promise's own first."""
        if self.losses is None or self.change is None:
            return []
        own = amounts(self.losses.loss(self.change))
        return [
            (self.neighbours, own),
            *((phrase, amounts(loss)) for phrase, _, loss in other_changes(self)),
        ]

    def _repr_html_(self) -> str:
        # What is not proved shows no number as its own.
        rows = self.table() if self.status == "proved" else [("why", self.reason)]
        return card(f"Guarantee ({self.status})", rows, self.plain)

    def __str__(self) -> str:
        return sentence(self)


def no_promise(mechanism: str, reason: str, not_covered: tuple[str, ...] = ()) -> Guarantee:
    """The guarantee of what guarantees nothing: obfuscation, or data passed through; what it hides
    is a matter of experiment.
    """
    return Guarantee(
        "none", mechanism=mechanism, status="empirical", reason=reason, not_covered=not_covered
    )
