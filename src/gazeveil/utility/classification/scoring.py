"""Accuracy and macro F1 of decisions about people, with what guessing gives and parts over which an
interval can be drawn.

Accuracy is taken per person and then averaged over people, so that somebody with long recordings
does not weigh more. Macro F1 has no meaning for one person (in leave-one-person-out gender
recognition each has one class only): its value is that of all decisions together, and its parts are
the jackknife's pseudo-values, n F1 - (n - 1) F1 without that person, whose spread is that of F1
over people.
"""

from __future__ import annotations

import numpy as np

from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.models.classifiers import most_votes
from gazeveil.utility.base import UtilityResult


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
