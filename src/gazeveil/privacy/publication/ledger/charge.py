"""What a release costs the people in it, as a ledger notes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gazeveil.errors import FormatError
from gazeveil.privacy.guarantee import OF_PEOPLE, Guarantee
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.promise.loss import Loss, PromiseError


@dataclass(frozen=True)
class ReleaseCharge:
    """The cost of a release for everything of one person.

    Parameters
    ----------
    mechanism : str
        Name and reading.
    definition : str
        Of its guarantee.
    loss : Loss, optional
        What is lost at most if everything of one person is replaced; None where no bound is known.
    reason : str
        Why there is no bound.
    table : bool
        Whether a table of people's attributes is part of the release.
    pieces : bool
        Whether it holds pieces under names that do not last
        (:class:`~gazeveil.privacy.pieces.PieceMechanism`).
    """

    mechanism: str
    definition: str
    loss: Loss | None
    reason: str = ""
    table: bool = False
    pieces: bool = False

    @property
    def groups(self) -> bool:
        """Whether it promises groups of people, which do not add up."""
        return self.definition in OF_PEOPLE

    def to_dict(self) -> dict[str, object]:
        """The charge as JSON has it; fractions as text."""
        loss = self.loss
        return {
            "mechanism": self.mechanism,
            "definition": self.definition,
            "loss": None
            if loss is None
            else {
                "measure": loss.measure,
                "amount": str(loss.amount),
                "delta": str(loss.delta),
                "delta_num": str(loss.delta_num),
            },
            "reason": self.reason,
            "table": self.table,
            "pieces": self.pieces,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], place: object = "ledger") -> ReleaseCharge:
        """What :meth:`to_dict` wrote."""
        try:
            loss = stored["loss"]
            return cls(
                str(stored["mechanism"]),
                str(stored["definition"]),
                None
                if loss is None
                else Loss(
                    loss["measure"],
                    *(Fraction(loss[name]) for name in ("amount", "delta", "delta_num")),
                ),
                str(stored["reason"]),
                bool(stored["table"]),
                bool(stored.get("pieces", False)),
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise FormatError(
                str(place), "an entry of the ledger is not whole", "Restore it from a copy."
            ) from error


def charge_of(guarantee: Guarantee, table: bool = False, pieces: bool = False) -> ReleaseCharge:
    """The charge of a release with this guarantee: whether a table of people's attributes goes with
    it, and whether it holds pieces under names that do not last.
    """
    name = guarantee.mechanism or guarantee.definition
    if guarantee.definition in OF_PEOPLE:
        reason = f"{name} promises groups of people, and such promises do not add up"
        return ReleaseCharge(name, guarantee.definition, None, reason, table, pieces)
    metric = "space" if guarantee.change is None else guarantee.change.metric
    try:
        loss = guarantee.map(Change.person(metric=metric))
    except PromiseError as error:
        reason = str(error).rstrip(".")
        return ReleaseCharge(name, guarantee.definition, None, reason, table, pieces)
    return ReleaseCharge(name, guarantee.definition, loss, "", table, pieces)
