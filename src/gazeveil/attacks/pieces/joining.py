"""Joining pieces: the log-odds that pieces of two windows of one stimulus belong together.

By place: how far the beginning of the later piece is from the end of the earlier one, against how
far everybody's are (people are near one another where there is something to see). By style: how
alike their scores against the known people are. The log-odds are learnt from labelled pieces of the
gallery by logistic regression, one for neighbouring windows and one for those further apart; the
probe has no part in it.

Names for the pieces of many windows at once.

Each viewer has one piece in a window, so names are given one to one; and pieces of neighbouring
windows that seem to belong together lend each other what is known of them. Both as probabilities:
the matrix of a window is scaled until its rows and columns are those of a matching (Sinkhorn and
Knopp 1967), and windows send each other messages (Pearl's belief propagation), which is exact along
a chain of windows but for the scaling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import Recording, RecordingKey

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


#: By what pieces are joined.
JOINED_BY = ("place", "style", "both")

#: Windows at most so far apart are joined.
REACH = 3

#: Lengths of the ends of pieces that are compared, in seconds.
ENDS_S = (0.1, 0.3, 1.0)

# Added to distances before their logarithm is taken: below it they are the tracker's noise.
_NOISE_DEG = 0.3

_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces in the order of their set.

    Parameters
    ----------
    keys : tuple of keys
        Of the pieces.
    chains : tuple of mapping of int to array of int64
        For each stimulus (and release) the places of the pieces of each of its windows.
    ends : array of float64, shape (pieces, lengths, 2, 3)
        Mean directions of the beginning and of the end of each piece.
    scores : array of float64, shape (pieces, people)
        Logarithms of probabilities; no columns where style is not looked at.
    """

    keys: tuple[RecordingKey, ...]
    chains: tuple[Mapping[int, Ints], ...]
    ends: Floats
    scores: Floats

    @property
    def names(self) -> Texts:
        """Names of the pieces."""
        return np.array([key[0] for key in self.keys], dtype=np.str_)


def gather_pieces(
    recording_set: RecordingSet, scores: Mapping[RecordingKey, Floats] | None = None
) -> Pieces:
    """Pieces with what joins them; where scores are given, pieces without are left out.

    Raises
    ------
    DataError
        If the set holds no pieces.
    """
    windows = recording_set.piece_windows
    if windows is None or recording_set.cohort is None:
        raise DataError(
            "Only pieces can be joined, and names of these recordings last: all that is published"
            " under a name is one person's already."
        )
    pieces = [r for r in recording_set.cohort if scores is None or r.key in scores]
    chains: dict[tuple[str, str], dict[int, list[int]]] = {}
    for i, piece in enumerate(pieces):
        window = windows[piece.key]
        # Several releases in one set are told apart by the session (RecordingSet.together).
        source = piece.session.rpartition("~")[2] if "~" in piece.session else ""
        chains.setdefault((window.stimulus, source), {}).setdefault(window.window, []).append(i)
    people = 0 if scores is None else len(next(iter(scores.values()), ()))
    return Pieces(
        tuple(r.key for r in pieces),
        tuple(
            {k: np.array(rows, dtype=np.int64) for k, rows in sorted(chain.items())}
            for _, chain in sorted(chains.items())
        ),
        np.reshape([_ends(r) for r in pieces], (len(pieces), len(ENDS_S), 2, 3)),
        np.reshape([scores[r.key] for r in pieces], (len(pieces), people))
        if scores is not None
        else np.zeros((len(pieces), 0)),
    )


def _ends(piece: Recording) -> list[list[Floats]]:
    """Mean directions of the beginning and the end; of the whole piece where an end is lost."""
    vectors = piece.vectors
    found = []
    for end_s in ENDS_S:
        n = max(1, round(end_s * piece.rate_hz)) if np.isfinite(piece.rate_hz) else 1
        found.append([_mean(part, vectors) for part in (vectors[:n], vectors[-n:])])
    return found


def _mean(part: Floats, whole: Floats) -> Floats:
    for vectors in (part, whole):
        there = vectors[np.isfinite(vectors).all(axis=1)]
        total = there.sum(axis=0)
        length = float(np.linalg.norm(total))
        if length > _TINY:
            return total / length
    return np.zeros(3)


@dataclass(frozen=True, eq=False)
class JoiningModel:
    """Log-odds of belonging together, by place, style or both. Weights are kept by how far windows
    are apart (1: neighbours, 2: further): the constant, then the weights.
    """

    by: str
    weights: Mapping[int, Floats]

    def log_odds(self, pieces: Pieces, first: Ints, second: Ints, apart: int) -> Floats:
        """Log-odds of pairs of the pieces of two windows, shape (first, second)."""
        weights = self.weights.get(min(apart, 2))
        if weights is None:
            return np.zeros((len(first), len(second)))
        features = _features(pieces, first, second, self.by)
        return np.asarray(weights[0] + features @ weights[1:], dtype=np.float64)

    def links(
        self, pieces: Pieces, chain: Mapping[int, Ints], reach: int
    ) -> dict[tuple[int, int], Floats]:
        """Soft matchings of the windows of a chain that are at most `reach` apart."""
        found = {}
        for a, b in _pairs(chain, reach):
            odds = self.log_odds(pieces, chain[a], chain[b], b - a)
            found[a, b], found[b, a] = soft_matching(odds), soft_matching(odds.T)
        return found


def learn_joining(gallery: Pieces, by: str) -> JoiningModel:
    """Learn log-odds from labelled pieces, by place, style or both.

    Returns
    -------
    JoiningModel
        Without weights where the gallery has no pairs to learn from: then nothing is joined.
    """
    from sklearn.linear_model import LogisticRegression

    names = gallery.names
    features: dict[int, list[Floats]] = {}
    same: dict[int, list[Ints]] = {}
    for chain in gallery.chains:
        for a, b in _pairs(chain, REACH):
            kind = min(b - a, 2)
            values = _features(gallery, chain[a], chain[b], by)
            features.setdefault(kind, []).append(values.reshape(-1, values.shape[-1]))
            together = names[chain[a]][:, None] == names[chain[b]][None, :]
            same.setdefault(kind, []).append(together.ravel().astype(np.int64))
    weights = {}
    for kind, rows in features.items():
        labels = np.concatenate(same[kind])
        if 0 < labels.sum() < len(labels):
            model = LogisticRegression(C=1.0).fit(np.concatenate(rows), labels)
            weights[kind] = np.concatenate((model.intercept_, model.coef_[0]))
    return JoiningModel(by, weights)


def joined_pairs(model: JoiningModel, pieces: Pieces) -> list[tuple[int, int, int]]:
    """Pieces of neighbouring windows that are joined: the one-to-one matching with the largest sum
    of log-odds.

    Returns
    -------
    list of (first, second, of)
        Places of two pieces, and among how many pieces the second was chosen.
    """
    from scipy.optimize import linear_sum_assignment

    joined = []
    for chain in pieces.chains:
        for a, b in _pairs(chain, 1):
            odds = model.log_odds(pieces, chain[a], chain[b], 1)
            for i, j in zip(*linear_sum_assignment(odds, maximize=True), strict=True):
                joined.append((int(chain[a][i]), int(chain[b][j]), len(chain[b])))
    return joined


def _pairs(chain: Mapping[int, Ints], reach: int) -> Iterator[tuple[int, int]]:
    for a in chain:
        for b in chain:
            if 0 < b - a <= reach:
                yield a, b


def _features(pieces: Pieces, first: Ints, second: Ints, by: str) -> Floats:
    """Numbers of each pair, shape (first, second, features)."""
    found = []
    if by in ("place", "both"):
        for k in range(len(ENDS_S)):
            cosine = pieces.ends[first, k, 1] @ pieces.ends[second, k, 0].T
            apart_deg = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
            found.append(_against_all(np.log(apart_deg + _NOISE_DEG)))
    if by in ("style", "both"):
        a, b = (_standard(pieces.scores[rows]) for rows in (first, second))
        found.append(_against_all(a @ b.T / max(a.shape[1], 1)))
        p, q = (np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in (a, b))
        found.append(_against_all(np.log(p @ q.T + _TINY)))
    return np.stack(found, axis=-1)


def _standard(rows: Floats) -> Floats:
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / np.maximum(centred.std(axis=1, keepdims=True), _TINY)


def _against_all(values: Floats) -> Floats:
    """Values of pairs less those that both have with everybody."""
    return (
        values
        - values.mean(axis=0, keepdims=True)
        - values.mean(axis=1, keepdims=True)
        + values.mean()
    )
