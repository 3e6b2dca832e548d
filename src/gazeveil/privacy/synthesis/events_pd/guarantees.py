"""What releases of event-synth-pd promise."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from gazeveil.privacy.guarantee import Guarantee, Loss
from gazeveil.privacy.plausible_deniability import charge_attempts
from gazeveil.privacy.randomness.rng import ASSUMPTION

if TYPE_CHECKING:
    from gazeveil.privacy.synthesis.events_pd.mechanism import EventSynthPD

#: The delta up to which the attempts are charged as differential privacy.
DELTA = Fraction(1, 10**6)

_REFUTED = (
    "it speaks of one event at a time. Each released event has k - 1 other people with a"
    " probability within gamma, but not the same people each time, so the events of a person"
    " together single them out (0.7 of 20 people are found from 60 events where 1/k is 0.25);"
    " besides, the test has a fixed threshold, and durations, order, gaps and number of events are"
    " the person's own"
)

_NOT_COVERED = (
    "who took part, and which recordings each name has",
    (
        "what all recordings of a stimulus share: rate and space, the means of those who saw it,"
        " and length, that of the k-th longest"
    ),
    (
        "what people did: a synthetic event lies near one of somebody's, though at least k people"
        " could be that one"
    ),
    "a second release about the same people",
)

_ASSUMPTIONS = (
    "who has which recordings is public",
    "the release is the only one made about these people",
    ASSUMPTION,
)


def published_guarantee(mechanism: EventSynthPD) -> Guarantee:
    """Deniability of single events, refuted."""
    released = mechanism.failed == "release"
    failed = "events that never passed, which are released all the same" if released else "lengths"
    return Guarantee(
        "plausible-deniability",
        counts={"k": Fraction(mechanism.k), "gamma": Fraction(mechanism.gamma)},
        alike="event",
        mechanism=mechanism.title,
        not_covered=("the attributes of people", failed),
        status="refuted",
        reason=_REFUTED,
    )


def crowd_guarantee(mechanism: EventSynthPD, allowed: int, delta_num: Fraction) -> Guarantee:
    """No name is tied to anybody; with rho and a margin differential privacy besides.

    Parameters
    ----------
    mechanism : EventSynthPD
        With seeds="crowd".
    allowed : int
        Attempts that may be made.
    delta_num : Fraction
        What finite arithmetic adds to delta in training.
    """
    m = mechanism
    epsilon, delta = charge_attempts(m.k, m.gamma, m.epsilon0, m.margin, allowed)
    also: tuple[tuple[str, Loss], ...] = ()
    attacker = "somebody who knows everybody else's raw data"
    more = attacker
    if m.rho is None or delta > DELTA:
        more += ": there is no differential privacy without rho and a margin that keeps delta small"
    else:
        attempts = f"against {attacker}, the {allowed} attempts that may be made"
        also = (
            (attempts, Loss.approximate(epsilon, delta)),
            (
                f"against {attacker}, training besides",
                Loss.concentrated(Fraction(m.rho), delta_num),
            ),
        )
    return Guarantee(
        "plausible-deniability",
        counts={"k": Fraction(m.k), "gamma": Fraction(1)},
        alike="seed",
        mechanism=m.title,
        also=also,
        assumptions=_ASSUMPTIONS,
        not_covered=(*_NOT_COVERED, more),
        reason="proofs/event-synth-pd.md",
    )


def own_guarantee(mechanism: EventSynthPD, released: int, names: int) -> Guarantee:
    """Deniability of whole sequences, for the names that passed."""
    share = (
        f"{released} of {names} names passed the test of whole sequences and were released, the"
        " others are lost, which says that they are like too few"
    )
    step = "; with seeds='crowd' every name is released" if 2 * released < names else ""
    return Guarantee(
        "plausible-deniability",
        counts={"k": Fraction(mechanism.k), "gamma": Fraction(mechanism.sequence_gamma)},
        alike="sequence",
        mechanism=mechanism.title,
        assumptions=_ASSUMPTIONS,
        not_covered=(
            *_NOT_COVERED,
            "somebody who compares the names with one another: the deniers of one name may be told"
            " apart by their own",
            share + step,
        ),
        reason="proofs/event-synth-pd.md",
    )
