"""Parameters that several recognisers share."""

from __future__ import annotations

from gazeveil import checks
from gazeveil.models.classifiers import CLASSIFIERS, GAMMAS
from gazeveil.utility.base import Utility


def check_classifier(
    utility: Utility,
    classifier: str,
    gamma: str,
    vote: object,
    every: int,
    classifiers: tuple[str, ...] = CLASSIFIERS,
) -> None:
    """Refuse words and counts that are not allowed."""
    checks.one_of(utility.name, "classifier", classifier, classifiers)
    checks.one_of(utility.name, "gamma", gamma, GAMMAS)
    checks.count(utility.name, "every", every)
    if not isinstance(vote, bool):
        checks.refuse(utility.name, "vote", "True or False", vote)


def people_share(owner: str, value: object) -> float:
    """A share of people to test on, above 0 and below 1."""
    share = checks.positive(owner, "test_share", value)
    if share >= 1:
        checks.refuse(owner, "test_share", "above 0 and below 1", value)
    return share
