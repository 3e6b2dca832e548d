"""Names for the pieces of many windows at once.

Each viewer has one piece in a window, so names are given one to one; and pieces of neighbouring
windows that seem to belong together lend each other what is known of them. Both as probabilities:
the matrix of a window is scaled until its rows and columns are those of a matching (Sinkhorn and
Knopp 1967), and windows send each other messages (Pearl's belief propagation), which is exact along
a chain of windows but for the scaling.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gazeveil.arrays import Floats

#: Rounds of scaling, and of messages.
_SCALINGS, _ROUNDS = 30, 6

# Share of a message that is a guess: a wrong link must not forbid the right name.
_DOUBT = 0.2


def soft_matching(log_odds: Floats) -> Floats:
    """Logarithms of the probabilities that rows and columns belong together, one to one.

    Parameters
    ----------
    log_odds : array of float64, shape (rows, columns)
        Of each pair by itself.

    Returns
    -------
    array of float64, shape (rows, columns)
        Rows sum to one; columns to at most one where there are more of them than rows, else to
        rows / columns.

    Examples
    --------
    Both look like the first, the first of them more so: the second must be another one.

    >>> np.exp(soft_matching(np.array([[4.0, 0.0], [2.0, 0.0]]))).round(1).tolist()
    [[0.7, 0.3], [0.3, 0.7]]
    """
    rows, columns = log_odds.shape
    if rows == 0 or columns == 0:
        return np.zeros((rows, columns))
    out = log_odds - _log_sum(log_odds, 1)
    for _ in range(_SCALINGS):
        whole = _log_sum(out, 0)
        out = out - (np.maximum(whole, 0.0) if rows < columns else whole - np.log(rows / columns))
        out = out - _log_sum(out, 1)
    return out


def matched_along(
    log_scores: Mapping[int, Floats], links: Mapping[tuple[int, int], Floats], weight: float
) -> dict[int, Floats]:
    """Logarithms of the probabilities of names for the pieces of several windows.

    Parameters
    ----------
    log_scores : mapping of window to array of float64, shape (pieces, people)
        What each piece says by itself.
    links : mapping of (window, other window) to array of float64, shape (pieces, other pieces)
        :func:`soft_matching` of two windows, for both directions.
    weight : float
        Of the messages; 0 lets each window speak for itself.
    """
    messages: dict[tuple[int, int], Floats] = {}

    def belief(window: int, without: int | None = None) -> Floats:
        total = log_scores[window]
        for (source, target), message in messages.items():
            if target == window and source != without:
                total = total + message
        return soft_matching(total)

    for _ in range(_ROUNDS if weight > 0 and links else 0):
        sent = {}
        for target, source in links:
            said = np.exp(links[target, source]) @ np.exp(belief(source, target))
            sent[source, target] = weight * np.log(said + _DOUBT / said.shape[1])
        messages = sent
    return {window: belief(window) for window in log_scores}


def _log_sum(values: Floats, axis: int) -> Floats:
    top = values.max(axis=axis, keepdims=True)
    total: Floats = top + np.log(np.exp(values - top).sum(axis=axis, keepdims=True))
    return total
