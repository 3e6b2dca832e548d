"""Pieces as attackers hold them.

Which part of which stimulus a piece shows is public. Attackers compare what people did in the same
part, so for them each window is a stimulus of its own. What they learn from carries people's names;
what they are asked about carries the names of pieces, and nothing else says whose they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

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
