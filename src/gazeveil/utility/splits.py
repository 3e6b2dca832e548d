"""Rows to learn a class from: whose they are, of which recording, of which class, and which half of
the recording they lie in.

The class of a recording follows one rule (:func:`class_of`). By `stimulus` it is the stimulus's
name without the number at its end: `comic-1` and `comic_12` are `comic`, `textbook` is itself, and
a name that is nothing but a number stays as it is. By `task` it is the recording's task, and the
class by stimulus where no task is named.

Who is trained on and who is asked about: other rows, everybody but one person, or a share of
people apart.

Leaving one person out has a trap with few people in balanced classes: the class of the one who is
left out is then the rarer one in training, and a classifier that learnt nothing but the shares is
wrong every time. Accuracies of 0.04 in Bozkir et al.'s (2021) gender tables are this, not
knowledge.

Parameters that several recognisers share.

Accuracy and macro F1 of decisions about people, with what guessing gives and parts over which an
interval can be drawn.

Accuracy is taken per person and then averaged over people, so long recordings do not weigh more.
Macro F1 has no meaning for one person (in leave-one-person-out gender recognition each has one
class only): its value is that of all decisions together, and its parts are the jackknife's
pseudo-values, n F1 - (n - 1) F1 without that person, whose spread is that of F1 over people.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Bools, Floats, Ints, Texts
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.recording import RecordingKey
from gazeveil.models.classifiers import CLASSIFIERS, GAMMAS, TREES, most_votes, predict
from gazeveil.utility.base import Utility, UtilityResult

#: Where the class of a recording is written.
LABELS = ("stimulus", "task")

_NUMBER = re.compile(r"[\s._-]*[0-9]+$")


def class_of(key: RecordingKey, label: str) -> str:
    """The class of a recording.

    Examples
    --------
    >>> key = ("p1", "comic-12", "1", "reading")
    >>> class_of(key, "stimulus"), class_of(key, "task")
    ('comic', 'reading')
    """
    if label == "task" and key[3]:
        return key[3]
    return _NUMBER.sub("", key[1]) or key[1]


def class_by(label: str) -> Callable[[RecordingKey, Ints], str]:
    """The class of a recording (:func:`class_of`) in the form :func:`rows_of` wants."""
    return lambda key, index: class_of(key, label)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with a class.

    Parameters
    ----------
    values : array of float64, shape (rows, features)
        Features; NaN where not measured.
    columns : tuple of str
        Their names.
    labels, persons : array of str, shape (rows,)
        Class and person.
    recordings : array of int64, shape (rows,)
        Number of the recording.
    """

    values: Floats
    columns: tuple[str, ...]
    labels: Texts
    persons: Texts
    recordings: Ints

    def __len__(self) -> int:
        return len(self.values)

    def where(self, rows: ArrayLike) -> Rows:
        """The rows a boolean mask or an index array picks."""
        r = np.asarray(rows)
        return Rows(
            self.values[r], self.columns, self.labels[r], self.persons[r], self.recordings[r]
        )


def rows_of(
    table: FeatureTable,
    label: Callable[[RecordingKey, Ints], str | Texts],
    every: int = 1,
    part: Callable[[RecordingKey, Ints], Bools] | None = None,
) -> Rows:
    """The rows of a table that have a class and at least one measured feature.

    Parameters
    ----------
    table : FeatureTable
        Any table.
    label : callable
        The class of a recording, or of each of its rows, from its key and the rows' indices; an
        empty word for none.
    every : int
        Keep every n-th row of each recording, from the first on.
    part : callable, optional
        Which rows of a recording to keep before that, from its key and the rows' indices.
    """
    empty = np.empty(0, dtype=np.int64)
    picked: list[Ints] = [empty]
    labels: list[str] = []
    persons: list[str] = []
    recordings: list[Ints] = [empty]
    for number, (key, rows) in enumerate(table.recordings().items()):
        kept = rows[np.argsort(table.keys.index[rows], kind="stable")]
        if part is not None:
            kept = kept[part(key, table.keys.index[kept])]
        kept = kept[::every]
        classes = np.broadcast_to(
            np.asarray(label(key, table.keys.index[kept]), dtype=np.str_), kept.shape
        )
        good = (classes != "") & ~np.isnan(table.values[kept]).all(axis=1)
        picked.append(kept[good])
        labels += classes[good].tolist()
        persons += [key[0]] * int(good.sum())
        recordings.append(np.full(int(good.sum()), number))
    return Rows(
        table.values[np.concatenate(picked)],
        table.columns,
        np.array(labels, dtype=np.str_),
        np.array(persons, dtype=np.str_),
        np.concatenate(recordings),
    )


class HalfSplit:
    """Where the first half of every recording ends, by the number of its windows as recorded: a
    release may have more or fewer.

    Parameters
    ----------
    raw : RecordingSet
        As recorded; its windows say where the middle is. Recordings it does not have are cut in the
        middle of their own windows.
    gap : bool
        Leave out of the second half the windows that share samples with the first.
    """

    def __init__(self, raw: RecordingSet, gap: bool) -> None:
        table = raw.windows
        self.lengths = {
            key: int(table.keys.index[rows].max()) + 1 for key, rows in table.recordings().items()
        }
        p = raw.pipeline
        # Window i covers [i step, i step + window): the last one of the first half reaches into the
        # next ceil(window / step) - 1 starts.
        self.shared = math.ceil(p.window_s / p.step_s - 1e-9) - 1 if gap else 0

    def _middle(self, key: RecordingKey, index: Ints) -> int:
        return self.lengths.get(key, int(index.max()) + 1 if len(index) else 0) // 2

    def first(self, key: RecordingKey, index: Ints) -> Bools:
        """Windows of the first half."""
        return index < self._middle(key, index)

    def second(self, key: RecordingKey, index: Ints) -> Bools:
        """Windows of the second half."""
        return index >= self._middle(key, index) + self.shared


def aligned(train: Rows, test: Rows) -> tuple[Rows, Rows]:
    """Both with the features they share, in the order of the training rows.

    Raises
    ------
    DataError
        If they share none.
    """
    if train.columns == test.columns:
        return train, test
    common = [name for name in train.columns if name in test.columns]
    if not common:
        raise DataError(
            "The tables to train and to test on have no feature in common. Release the same"
            " features on both sides."
        )
    sides = []
    for rows in (train, test):
        places = [rows.columns.index(name) for name in common]
        sides.append(
            Rows(rows.values[:, places], tuple(common), rows.labels, rows.persons, rows.recordings)
        )
    return sides[0], sides[1]


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


def voted(
    predicted: Texts, truth: Texts, persons: Texts, recordings: Ints, seed: int
) -> tuple[Texts, Texts, Texts]:
    """One decision per recording: the class most of its rows got, ties broken at random.

    Parameters
    ----------
    predicted, truth, persons : array of str, shape (rows,)
        Decisions, classes and people of the rows; class and person are the same for all rows of a
        recording.
    recordings : array of int64, shape (rows,)
        Which recording a row is of.
    seed : int
        For ties.

    Returns
    -------
    predicted, truth, persons : array of str, shape (recordings,)
    """
    classes, codes = np.unique(predicted, return_inverse=True)
    _, first, place = np.unique(recordings, return_index=True, return_inverse=True)
    votes = np.zeros((len(first), len(classes)))
    np.add.at(votes, (place, codes), 1.0)
    return classes[most_votes(votes, np.random.default_rng(seed))], truth[first], persons[first]


def score(
    truth: Texts, predicted: Texts, persons: Texts, note: str
) -> tuple[UtilityResult, UtilityResult]:
    """Accuracy and macro F1.

    Parameters
    ----------
    truth, predicted, persons : array of str, shape (decisions,)
        What it was, what it was called, and whose it is; at least one decision.
    note : str
        The protocol.

    Returns
    -------
    tuple of UtilityResult
        `accuracy`, whose chance is that of always naming the most frequent class; `f1_macro`, whose
        chance is one over the number of classes: guessing in proportion to the classes' shares
        gives that, and neither guessing evenly nor a constant gives more.
    """
    names, who = np.unique(persons, return_inverse=True)
    classes, is_class = np.unique(truth, return_inverse=True)
    each = np.bincount(who).astype(np.float64)
    accuracy = np.bincount(who, weights=truth == predicted) / each
    shares = [
        float((np.bincount(who, weights=is_class == c) / each).mean()) for c in range(len(classes))
    ]
    # Per person and class: right, in truth, called so.
    tallies = np.zeros((len(names), 3, len(classes)))
    for c, name in enumerate(classes.tolist()):
        called = predicted == name
        for row, mask in enumerate((called & (is_class == c), is_class == c, called)):
            tallies[:, row, c] = np.bincount(who, weights=mask, minlength=len(names))
    total = tallies.sum(axis=0)
    whole = _f1(total)
    n = len(names)
    parts = (
        np.array([n * whole - (n - 1) * _f1(total - tally) for tally in tallies])
        if n > 1
        else np.array([whole])
    )
    people = tuple(names.tolist())
    mean, even = float(accuracy.mean()), 1 / len(classes)
    pseudo = f"{note}; over all decisions, parts are pseudo-values"
    return (
        UtilityResult("accuracy", mean, accuracy, "person", people, max(shares), "higher", note),
        UtilityResult("f1_macro", whole, parts, "person", people, even, "higher", pseudo),
    )


def _f1(tally: Floats) -> float:
    """Macro F1 of (right, in truth, called so) by class; classes that are neither in truth nor
    named are left out.
    """
    both = tally[1] + tally[2]
    some = both > 0
    return float((2 * tally[0, some] / both[some]).mean()) if some.any() else float("nan")


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
    return how.results(asked, how.name_them(known, asked), f"{note}, {_classes(known, asked)}")


def left_out(
    owner: str, how: Classifier, known: Rows, asked: Rows, note: str
) -> tuple[UtilityResult, ...]:
    """Every person of the rows asked about, named by a classifier that has seen everybody else."""
    check_rows(owner, known, asked)
    known, asked = aligned(known, asked)
    trained = set(known.persons.tolist())
    predicted = np.empty(len(asked), dtype=np.result_type(known.labels.dtype, asked.labels.dtype))
    missing = 0
    # Names that are not on the training side need no held-out split: one classifier serves them
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
    return how.results(asked, predicted, f"{note}, {len(np.unique(known.labels))} classes{extra}")


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
    drawn = np.random.default_rng(how.seed).choice(people, number, replace=False)
    known = known.where(~np.isin(known.persons, drawn))
    asked = asked.where(np.isin(asked.persons, drawn))
    if len(known) == 0:
        raise DataError(
            f"{owner} trains and tests on different people, and nobody is left to train on. Choose"
            " a smaller test_share."
        )
    classes = _classes(known, asked)
    return how.results(
        asked, how.name_them(known, asked), f"{note}, {number} people nobody trained on, {classes}"
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


def _classes(known: Rows, asked: Rows) -> str:
    """How many classes can be named, and one that is asked about and cannot."""
    named = set(known.labels.tolist())
    missing = sorted(set(asked.labels.tolist()) - named)
    extra = (
        f"; nobody trained on has the class '{missing[0]}', so it could not be named"
        if missing
        else ""
    )
    return f"{len(named)} classes{extra}"
