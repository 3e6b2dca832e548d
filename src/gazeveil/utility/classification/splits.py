"""Who is trained on and who is asked about: other rows, everybody but one person, or a share of
people apart.

Leaving one person out has a trap with few people in balanced classes: the class of the one who is
left out is then the rarer one in training, and a classifier that learnt nothing but the shares is
wrong every time. Accuracies of 0.04 in Bozkir et al.'s (2021) gender tables are this, not
knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Texts
from gazeveil.errors import DataError
from gazeveil.models.classifiers import TREES, predict
from gazeveil.utility.base import UtilityResult
from gazeveil.utility.classification.rows import Rows, aligned
from gazeveil.utility.classification.scoring import score, voted


@dataclass(frozen=True)
class Classifier:
    """A classifier with all it needs, and how its answers are counted."""

    classifier: str
    gamma: str
    vote: bool
    seed: int
    trees: int = TREES

    def name_them(self, known: Rows, asked: Rows) -> Texts:
        """The classes of the rows asked about."""
        train = known.values, known.labels
        return predict(
            self.classifier, *train, asked.values, self.seed, gamma=self.gamma, trees=self.trees
        )

    def results(self, asked: Rows, predicted: Texts, note: str) -> tuple[UtilityResult, ...]:
        """Accuracy and macro F1 of rows, or of recordings by vote."""
        truth, persons = asked.labels, asked.persons
        if self.vote:
            predicted, truth, persons = voted(
                predicted, truth, persons, asked.recordings, self.seed
            )
        votes = "one vote per recording" if self.vote else "no vote"
        return score(truth, predicted, persons, f"{note}; {self.classifier}, {votes}")


def other_rows(
    owner: str, how: Classifier, known: Rows, asked: Rows, note: str
) -> tuple[UtilityResult, ...]:
    """All rows asked about, named by one classifier that has seen all known rows."""
    check_rows(owner, known, asked)
    known, asked = aligned(known, asked)
    return how.results(
        asked, how.name_them(known, asked), f"{note}, {_classes(known)}{_unseen(known, asked)}"
    )


def left_out(
    owner: str, how: Classifier, known: Rows, asked: Rows, note: str
) -> tuple[UtilityResult, ...]:
    """Every person of the rows asked about, named by a classifier that has seen everybody else."""
    check_rows(owner, known, asked)
    known, asked = aligned(known, asked)
    trained = set(known.persons.tolist())
    predicted = np.empty(len(asked), dtype=np.result_type(known.labels.dtype, asked.labels.dtype))
    missing = 0
    # People the training side does not know by name leave nobody out, so one classifier serves them
    # all.
    unknown = ~np.isin(asked.persons, sorted(trained))
    folds = [
        (asked.persons == p, known.persons != p)
        for p in sorted(trained & set(asked.persons.tolist()))
    ]
    if unknown.any():
        folds.append((unknown, np.ones(len(known), dtype=np.bool_)))
    for held_out, others in folds:
        if not others.any():
            raise DataError(
                f"{owner} leaves one person out at a time, and the training material has nobody"
                f" else than '{asked.persons[held_out][0]}'."
            )
        rest = known.where(others)
        missing += len(set(asked.labels[held_out].tolist()) - set(rest.labels.tolist()))
        predicted[held_out] = how.name_them(rest, asked.where(held_out))
    extra = ""
    if unknown.any():
        rows = int(unknown.sum())
        extra = f"; {rows} rows are of people whose names the training side does not have"
    if missing:
        extra += f"; in {missing} cases a class was missing in training and could not be named"
    return how.results(asked, predicted, f"{note}, {_classes(known)}{extra}")


def people_apart(
    owner: str, how: Classifier, known: Rows, asked: Rows, share: float, note: str
) -> tuple[UtilityResult, ...]:
    """A random share of people is asked about, and everybody else trained on."""
    check_rows(owner, known, asked)
    known, asked = aligned(known, asked)
    people = np.unique(asked.persons)
    everybody = np.union1d(people, known.persons)
    if len(everybody) < 2:
        raise DataError(
            f"{owner} trains and tests on different people, and there is only '{everybody[0]}'. Add"
            " people."
        )
    number = min(max(1, round(share * len(people))), len(everybody) - 1)
    tested = np.random.default_rng(how.seed).choice(people, number, replace=False)
    known = known.where(~np.isin(known.persons, tested))
    asked = asked.where(np.isin(asked.persons, tested))
    if len(known) == 0:
        raise DataError(
            f"{owner} trains and tests on different people, and nobody is left to train on. Choose"
            " a smaller test_share."
        )
    return how.results(
        asked,
        how.name_them(known, asked),
        f"{note}, {number} people nobody trained on, {_classes(known)}{_unseen(known, asked)}",
    )


def check_rows(owner: str, known: Rows, asked: Rows) -> None:
    """Refuse sides without rows, and a single class."""
    for rows, side in ((known, "train"), (asked, "test")):
        if len(rows) == 0:
            raise DataError(
                f"{owner} has no rows with a class to {side} on: recordings shorter than a window,"
                " a release that left everything out, or no class."
            )
    names = sorted({*known.labels.tolist(), *asked.labels.tolist()})
    if len(names) < 2:
        raise DataError(
            f"{owner} needs at least two classes and everything is '{names[0]}'. Name them apart,"
            " or choose another label."
        )


def _classes(rows: Rows) -> str:
    return f"{len(np.unique(rows.labels))} classes"


def _unseen(known: Rows, asked: Rows) -> str:
    missing = sorted(set(asked.labels.tolist()) - set(known.labels.tolist()))
    return (
        f"; nobody trained on has the class '{missing[0]}', so it could not be named"
        if missing
        else ""
    )
