"""What a certificate says in several places, compared: the page is made of some of them, and a
promise that is worked out again is compared with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gazeveil.privacy.guarantee import OF_PEOPLE

#: What stands in the guarantee, and beside it for the page.
_TWICE = {"assumptions": "what it assumes", "not_covered": "what is not covered"}


def contradictions(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Where a certificate contradicts itself."""
    guarantee, sentence = certificate["guarantee"], str(certificate.get("sentence"))
    # What promises nothing says so in a sentence without clauses.
    proved = guarantee.get("status") == "proved"
    if proved and guarantee.get("definition") == "none":
        yield "The certificate calls proved what promises nothing."
    for name, words in _TWICE.items():
        clauses = guarantee.get(name)
        if certificate.get(name) != clauses:
            yield f"PRIVACY.json says two things about {words}."
        elif proved and not all(str(clause) in sentence for clause in clauses or ()):
            yield f"The sentence of the certificate leaves out {words}."
    stated = certificate.get("per_person", {})
    if stated.get("status", guarantee.get("status")) != guarantee.get("status"):
        yield "What one person adds up to has another status than the promise."
    if _numbers(stated) != _of_person(guarantee):
        yield "What one person adds up to is not what the guarantee says."


def _numbers(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of one person, without the numerical error, which the guarantee has for its own
    change alone.
    """
    return {k: v for k, v in stated.get("numbers", {}).items() if k != "delta_num"}


def _of_person(guarantee: Mapping[str, Any]) -> dict[str, Any]:
    of_people = guarantee.get("definition") in OF_PEOPLE
    return dict(guarantee.get("numbers" if of_people else "user", {}))
