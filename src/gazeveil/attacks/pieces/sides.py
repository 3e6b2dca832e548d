"""Pieces as attackers hold them.

Which part of which stimulus a piece shows is public. Attackers compare what people did in the same
part, so for them each window is a stimulus of its own. What they learn from carries people's names;
what they are asked about carries the names of pieces, and nothing else says whose they are.

Re-identification of pieces: one decision per piece, one figure per person.

Controls of a figure about pieces: what it would be if it said nothing, or the opposite.

A rate below chance level is no privacy: an attacker with inverted scores is above it. With names of
pieces permuted among the viewers of a window, every attacker must fall to chance level. The share
of permutations that do as well as the attacker is a test without further assumptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Scores
from gazeveil.attacks.evidence import matching_credit
from gazeveil.attacks.result import beaten_by
from gazeveil.errors import DataError
from gazeveil.features.recording_set import PieceWindow, RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording, RecordingKey

#: A piece of a recording that was cut holds at least this share of the window.
_LEAST_SHARE = 0.5


def find_windows(pieces: Iterable[Recording]) -> dict[RecordingKey, PieceWindow]:
    """Which part of its stimulus each piece shows: the public beginnings of a stimulus' pieces,
    in order, number its windows.

    Raises
    ------
    DataError
        For a piece without samples, which shows no time.
    """
    times: dict[RecordingKey, tuple[int, int]] = {}
    begins: dict[str, set[int]] = {}
    for piece in pieces:
        if len(piece) == 0:
            raise DataError(
                f"Piece {piece.person} of {piece.stimulus} has no samples, so nothing says which"
                " part of the stimulus it shows. Release lost samples as invalid ones."
            )
        times[piece.key] = int(piece.t_ns[0]), int(piece.t_ns[-1])
        begins.setdefault(piece.stimulus, set()).add(times[piece.key][0])
    number = {s: {b: i for i, b in enumerate(sorted(own))} for s, own in begins.items()}
    return {
        key: PieceWindow(key[1], number[key[1]][begin], begin, end)
        for key, (begin, end) in times.items()
    }


def named_pieces(release: RecordingSet, names: str) -> RecordingSet:
    """A release of pieces, with `origins`, as an attacker holds it: under people's names for what
    it learns from (or where names are told), under names of pieces for what it is asked about.

    Returns
    -------
    RecordingSet
        With `piece_windows` and without `origins`; each window is a stimulus.
    """
    if release.origins is None or release.cohort is None:
        raise DataError("Only a release of pieces that says whose they are can be named.")
    origins = release.origins
    windows = release.piece_windows or find_windows(release.cohort)
    new: dict[RecordingKey, RecordingKey] = {}
    for key, window in windows.items():
        person, _, session, task = origins[key[0]] if names == "people" else key
        new[key] = person, window_name(window), session, task
    return renamed(release, new, {new[key]: window for key, window in windows.items()})


def window_name(window: PieceWindow) -> str:
    """The stimulus that a window is to attackers."""
    return f"{window.stimulus}, window {window.window + 1}"


def renamed(
    recording_set: RecordingSet,
    names: Mapping[RecordingKey, RecordingKey],
    windows: Mapping[RecordingKey, PieceWindow] | None,
) -> RecordingSet:
    """The recordings and tables of a set with samples under other keys, with windows of pieces by
    new key.
    """
    given = recording_set.cohort
    if given is None:
        raise DataError("Recordings under other names need samples.")
    items = [_item(item, names[item.key]) for item in given.items]
    tables = {n: _table(t, names) for n, t in recording_set.tables.items()}
    result = RecordingSet(
        Cohort(items, name=given.name),
        tables,
        recording_set.pipeline,
        recording_set.people,
        recording_set.noise_scale_deg,
    )
    result.piece_windows = windows
    return result


def _item(item: Recording | Handle, key: RecordingKey) -> Recording | Handle:
    if isinstance(item, Recording):
        return _under(item, key)
    return Handle(key[0], key[1], partial(_load, item.load, key), key[2], key[3], item.source)


def _load(load: Callable[[], Recording], key: RecordingKey) -> Recording:
    return _under(load(), key)


def _under(recording: Recording, key: RecordingKey) -> Recording:
    return recording.with_(person=key[0], stimulus=key[1], session=key[2], task=key[3])


def _table(table: FeatureTable, names: Mapping[RecordingKey, RecordingKey]) -> FeatureTable:
    columns = np.array(
        [table.keys.person, table.keys.stimulus, table.keys.session, table.keys.task], dtype=object
    )
    for key, rows in table.recordings().items():
        columns[:, rows] = np.array(names[key], dtype=object)[:, None]
    person, stimulus, session, task = (c.astype(np.str_) for c in columns)
    keys = Keys(person, stimulus, session, task, table.keys.index)
    return FeatureTable(table.values, table.columns, keys, table.bounds, table.counts)


def cut_like(raw: RecordingSet, windows: Iterable[PieceWindow]) -> RecordingSet:
    """Cut raw recordings as a release was: the windows are public, so an attacker can do it too.
    Times count from each recording's first sample.

    Returns
    -------
    RecordingSet
        Pieces under their people's names. A stimulus that was not released has none; a window that
        a recording covers by less than a half has none of that recording.
    """
    if raw.cohort is None:
        raise DataError("Only recordings with samples can be cut.")
    by_stimulus: dict[str, set[PieceWindow]] = {}
    for window in windows:
        by_stimulus.setdefault(window.stimulus, set()).add(window)
    pieces: list[Recording] = []
    places: dict[RecordingKey, PieceWindow] = {}
    for recording in raw.cohort:
        for window in sorted(by_stimulus.get(recording.stimulus, ())):
            t_ns = recording.t_ns - (recording.t_ns[0] if len(recording) else 0)
            begin, end = np.searchsorted(t_ns, (window.begin_ns, window.end_ns + 1))
            covered = int(t_ns[end - 1] - t_ns[begin]) if end > begin else 0
            if end - begin < 2 or covered < _LEAST_SHARE * (window.end_ns - window.begin_ns):
                continue
            part = recording.slice(int(begin), int(end))
            part = part.with_(stimulus=window_name(window), t_ns=t_ns[begin:end])
            pieces.append(part)
            places[part.key] = window
    if not pieces:
        raise DataError("No raw recording covers a window of the release.")
    result = RecordingSet(
        Cohort(pieces, raw.cohort.people, name=raw.cohort.name), None, raw.pipeline, raw.people
    )
    result.piece_windows = places
    return result


@dataclass(frozen=True, eq=False)
class PieceDecisions:
    """An attacker's decisions about the pieces of each person.

    Parameters
    ----------
    people : tuple of str
        Who was asked about.
    scores : Scores
        One row per piece; `probes` are the people whose the pieces are (the truth).
    credit, matched : array of float64, shape (people,)
        Share of a person's pieces that get the right name, each by itself and where all names of a
        window are given at once; chance level for a person without pieces.
    answers : tuple of str or None
        The name that most of a person's pieces get; None where two are as frequent.
    beaten_by : tuple of int or None
        How many others score above the person, mean over pieces, rounded; None for a person without
        pieces or not learnt.
    """

    people: tuple[str, ...]
    scores: Scores
    credit: Floats
    matched: Floats
    answers: tuple[str | None, ...]
    beaten_by: tuple[int | None, ...]


def decide_pieces(
    scores: Scores,
    owners: Mapping[str, str],
    windows: Mapping[str, PieceWindow],
    people: tuple[str, ...],
    seed: int,
) -> PieceDecisions:
    """Judge scores of pieces.

    Parameters
    ----------
    scores : Scores
        One row per piece, `probes` are the pieces' names.
    owners : mapping of piece to person
        The truth.
    windows : mapping of piece to PieceWindow
        Each viewer of a stimulus has one piece per window, so that its names can be given one to
        one.
    people : tuple of str
        Who is asked about.
    seed : int
        Of ties in matching.
    """
    own = tuple(owners[name] for name in scores.probes)
    truth = Scores(scores.known, own, scores.values)
    matched = np.zeros(len(own))
    groups: dict[tuple[str, int], list[int]] = {}
    for row, name in enumerate(scores.probes):
        groups.setdefault(windows[name][:2], []).append(row)
    for rows in groups.values():
        part = Scores(scores.known, tuple(own[r] for r in rows), scores.values[rows])
        matched[rows] = matching_credit(part, seed)
    values = np.where(np.isnan(scores.values), -np.inf, scores.values)
    best = values == values.max(axis=1, keepdims=True)
    named = [scores.known[int(np.argmax(b))] if b.sum() == 1 else None for b in best]
    above = beaten_by(truth)
    mine = {p: np.array([i for i, o in enumerate(own) if o == p], dtype=np.int64) for p in people}
    guess = 1.0 / max(len(scores.known), 1)
    credit = truth.credit()

    def mean(values: Floats) -> Floats:
        return np.array(
            [float(values[mine[p]].mean()) if len(mine[p]) else guess for p in people],
            dtype=np.float64,
        )

    known = set(scores.known)
    return PieceDecisions(
        people,
        truth,
        mean(credit),
        mean(matched),
        tuple(_most([named[i] for i in mine[p].tolist()]) for p in people),
        tuple(
            round(float(above[mine[p]].mean())) if len(mine[p]) and p in known else None
            for p in people
        ),
    )


def _most(names: list[str | None]) -> str | None:
    counted = Counter(n for n in names if n is not None).most_common(2)
    if not counted or (len(counted) > 1 and counted[0][1] == counted[1][1]):
        return None
    return counted[0][0]


#: How often names are dealt anew.
DEALS = 500


@dataclass(frozen=True)
class PieceControls:
    """Controls of an identification rate over pieces.

    Parameters
    ----------
    flipped : float
        The rate of the attacker who takes the least score for the largest, people weighing the
        same.
    dealt : float
        The mean rate where names are dealt anew within windows: guessing.
    """

    flipped: float
    dealt: float


def piece_controls(scores: Scores, windows: Sequence[Hashable], seed: int) -> PieceControls:
    """Work out the controls of scores with one row per piece; names are dealt within windows."""
    at = {person: i for i, person in enumerate(scores.known)}
    people = {person: i for i, person in enumerate(sorted(set(scores.probes)))}
    who = np.array([people[p] for p in scores.probes], dtype=np.int64)
    columns = np.array([at.get(p, -1) for p in people], dtype=np.int64)
    flipped = Scores(scores.known, scores.probes, -scores.values)
    rng = np.random.default_rng(seed)
    given = _given(scores)
    members: dict[Hashable, list[int]] = {}
    for row, window in enumerate(windows):
        members.setdefault(window, []).append(row)
    groups = [np.array(rows, dtype=np.int64) for rows in members.values()]
    rates = np.empty(DEALS)
    for i in range(DEALS):
        dealt = who.copy()
        for rows in groups:
            dealt[rows] = rng.permutation(who[rows])
        rates[i] = _rate(given, dealt, columns)
    return PieceControls(_rate(_given(flipped), who, columns), float(rates.mean()))


def _given(scores: Scores) -> Floats:
    """The share of each piece's decision that each known person gets."""
    values = np.where(np.isnan(scores.values), -np.inf, scores.values)
    best = (values == values.max(axis=1, keepdims=True)).astype(np.float64)
    return best / best.sum(axis=1, keepdims=True)


def _rate(given: Floats, who: Ints, columns: Ints) -> float:
    """Mean over people of the mean credit of their pieces."""
    column = columns[who]
    credit = np.where(column >= 0, given[np.arange(len(who)), column], 0.0)
    total = np.bincount(who, weights=credit, minlength=len(columns))
    return float(np.mean(total / np.maximum(np.bincount(who, minlength=len(columns)), 1)))
