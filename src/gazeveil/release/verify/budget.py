"""The promise, worked out again from the mechanism, its parameters and the released recordings.

A stream mechanism promises what follows from its parameters and from the rates, spaces and lengths
of the released recordings, so all numbers are compared. What a mechanism over people promises also
depends on the recordings behind the release; of it the definition, the status and the numbers that
are parameters are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from gazeveil.errors import GazeveilError
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.publication.certificate import per_person
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.release.verify.outcome import VerifyCheck

_NAME = "promise"

#: What a guarantee says that follows from the mechanism and the recordings alone.
_DERIVED = ("definition", "unit", "neighbours", "numbers", "user", "losses", "also", "status")

_UNSET = "None"


def certified_mechanism(certificate: Mapping[str, Any]) -> Mechanism[Any]:
    """The mechanism that a certificate names, with its parameters.

    Raises
    ------
    GazeveilError
        If there is none of that name, or a parameter is not allowed.
    """
    made = certificate["mechanism"]
    given = {k: v for k, v in made["parameters"].items() if v != _UNSET}
    text = ",".join(f"{k}={v}" for k, v in {**given, "reading": made["reading"]}.items())
    return mechanism(f"{made['name']}:{text}")


def check_budget(certificate: Mapping[str, Any], released: Cohort | None) -> VerifyCheck:
    """Work the promise out again and compare."""
    try:
        chosen = certified_mechanism(certificate)
    except GazeveilError as error:
        return VerifyCheck(_NAME, (f"The certificate's mechanism cannot be made: {error}",))
    except (KeyError, TypeError, AttributeError):
        return VerifyCheck(_NAME, ("The certificate does not name its mechanism as it must.",))
    claimed = certificate["guarantee"]
    if not (isinstance(chosen, StreamMechanism) and chosen.stride == 1):
        return _by_parameters(certificate, chosen)
    if released is None:
        return VerifyCheck(_NAME, note="not worked out again: the recordings cannot be read")
    expected = _expected(chosen, certificate, released)
    failures = [
        f"The certificate's '{name}' is {_short(claimed.get(name))}, and its mechanism and"
        f" recordings give {_short(value)}."
        for name, value in expected.to_dict().items()
        if name in _DERIVED and claimed.get(name) != value
    ]
    if certificate.get("per_person") != per_person(expected):
        failures.append(
            "What one person adds up to is not what the mechanism and the recordings give."
        )
    if not failures and certificate.get("sentence") != _sentence(expected, claimed):
        failures.append("The sentence of the certificate is not that of its guarantee.")
    return VerifyCheck(_NAME, tuple(failures), "worked out again from mechanism and recordings")


def _expected(
    chosen: StreamMechanism, certificate: Mapping[str, Any], released: Cohort
) -> Guarantee:
    # The promise depends on the shapes of recordings alone; nothing is protected here, because a
    # release of files makes nothing until somebody loads it.
    promise = chosen.release(released).guarantee
    return promise.tested() if certificate.get("seeded") else promise


def _sentence(expected: Guarantee, claimed: Mapping[str, Any]) -> str:
    return str(
        replace(
            expected,
            assumptions=tuple(claimed.get("assumptions", ())),
            not_covered=tuple(claimed.get("not_covered", ())),
            reason=str(claimed.get("reason", "")),
        )
    )


def _by_parameters(certificate: Mapping[str, Any], chosen: Mechanism[Any]) -> VerifyCheck:
    claimed, claim = certificate["guarantee"], chosen.claim
    status = claim.status
    if certificate.get("seeded") and status == "proved":
        status = "claimed"
    failures = [
        f"The certificate's '{name}' is {claimed.get(name)!r}, and {chosen.title} has {value!r}."
        for name, value in (("definition", claim.definition), ("status", status))
        if claimed.get(name) != value and claim.definition != "none"
    ]
    parameters, numbers = chosen.parameters(), claimed.get("numbers", {})
    for name in ("k", "epsilon"):
        wanted = parameters.get(name)
        if name in numbers and wanted is not None and not _equal(numbers[name], wanted):
            failures.append(
                f"The certificate promises {name} = {numbers[name]}, and its mechanism was made"
                f" with {name} = {wanted}."
            )
    note = "definition, status and parameters fit; the rest follows from recordings behind it"
    return VerifyCheck(_NAME, tuple(failures), note)


def _equal(text: object, wanted: object) -> bool:
    try:
        return Fraction(str(text)) == Fraction(str(wanted))
    except (ValueError, ZeroDivisionError):
        return False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
