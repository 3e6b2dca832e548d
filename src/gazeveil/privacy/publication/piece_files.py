"""What is different where a release holds pieces under names that do not last
(:mod:`gazeveil.privacy.pieces`).

A piece is nobody's to a reader: nothing is said about people, times count from the beginning of the
stimulus, and of viewers only that number is stated which everybody can count, the largest number of
pieces at one time of one stimulus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.privacy import registry
from gazeveil.privacy.pieces import PieceMechanism
from gazeveil.privacy.publication.alignment import Alignment
from gazeveil.privacy.publication.choices import PublicationChoices

#: What may be kept: the names that pieces have in common.
KEPT_OF_PIECES = ("stimulus", "task")

#: How times are told in a certificate.
TIMES_OF_PIECES = "from the beginning of the stimulus"


def makes_pieces(mechanism: str) -> bool:
    """Whether the mechanism of that name releases pieces."""
    known = mechanism in registry.mechanisms()
    return known and issubclass(registry.get(mechanism), PieceMechanism)


def check_piece_choices(owner: str, choices: PublicationChoices) -> None:
    """Refuse what pieces have not: a lasting name, a person's attributes, a tracker's times."""
    kept = [name for name in choices.keep if name not in KEPT_OF_PIECES]
    if kept:
        checks.refuse(
            owner,
            "keep",
            f"one of {', '.join(KEPT_OF_PIECES)}: pieces have no person, no session and no times of"
            " the tracker",
            kept[0],
            "Leave it out.",
        )
    if choices.key_file is not None:
        checks.refuse(
            owner,
            "key_file",
            "left out: nobody keeps whose a piece is",
            str(choices.key_file),
            "Leave it out.",
        )


def piece_alignment(alignment: Alignment, rates_hz: Iterable[float]) -> Alignment:
    """How pieces are written: with their own times and their one rate.

    Parameters
    ----------
    alignment : Alignment
        Of the recordings.
    rates_hz : iterable of float
        Of pieces.

    Raises
    ------
    DataError
        For pieces of several rates: a rate that is somebody's own would be a lasting name.
    """
    rates = sorted(set(rates_hz))
    if len(rates) != 1:
        raise DataError(
            f"The pieces of this release have {len(rates)} rates, and a rate of one's own tells"
            " which pieces belong together. Give all recordings one rate before they are protected."
            " Nothing was written."
        )
    return replace(
        alignment, rate_hz=Fraction(repr(float(rates[0]))), times_kept=True, lengths_s={}
    )


def viewers_of(pieces: Iterable[tuple[str, int]]) -> int:
    """The largest number of pieces, each a stimulus and a first time in nanoseconds, at one time of
    one stimulus.
    """
    return max(Counter(pieces).values(), default=0)
