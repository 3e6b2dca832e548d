"""Stretches of looking, as recorded beside as released: whole recordings where names last, pieces
where each piece has a name of its own.

A release of pieces has its own public windows, and an analyst of it knows no more than them. To
compare like with like the recording that a piece was made for is cut at the same times, counted
from its first sample. Only here is it looked up whose a piece is: to compare it with the truth.
Where names last, both sides can be cut into windows of a public length, so that a figure about
windows means the same for every mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.gaze.scratch import set_aside
from gazeveil.utility.areas.scanpaths import side_by_side


@dataclass(frozen=True, eq=False)
class Stretch:
    """Some seconds of one viewer's looking at one stimulus, on both sides.

    Parameters
    ----------
    viewer : tuple of str
        Key of the recording they belong to.
    begin_ns : int
        When they begin, in nanoseconds from the beginning of the stimulus.
    recorded : Recording
        As recorded, times from the beginning of the stimulus.
    released : Recording
        As released, under the name it was released with.
    """

    viewer: RecordingKey
    begin_ns: int
    recorded: Recording
    released: Recording


def holds_pieces(recording_set: RecordingSet) -> bool:
    """Whether a recording set is a release of pieces, each under a name of its own."""
    return recording_set.origins is not None


def need_lasting_names(owner: str, *recording_sets: RecordingSet) -> None:
    """Refuse releases of pieces.

    Raises
    ------
    DataError
        For a release of pieces.
    """
    if any(holds_pieces(s) for s in recording_sets):
        raise DataError(
            f"The utility {owner} follows a person through whole recordings, and a release of"
            " pieces, each under a name of its own, does not allow that. Leave it out for this"
            " mechanism."
        )


def seconds_of(recording: Recording, begin_ns: int, end_ns: int) -> Recording:
    """The samples of some time, with times from the first sample of the recording.

    Parameters
    ----------
    begin_ns, end_ns : int
        From the first sample of the recording; the end is not included.
    """
    since = recording.t_ns - (recording.t_ns[0] if len(recording) else 0)
    # Lost samples may carry wild times; the valid ones increase.
    clock = np.maximum.accumulate(since) if len(since) else since
    first, last = np.searchsorted(clock, (begin_ns, end_ns), side="left")
    part = recording.slice(int(first), int(last))
    return part.with_(t_ns=since[first:last], rate_hz=recording.rate_hz)


def stretches(
    raw: RecordingSet, released: RecordingSet, window_s: float = 5.0, gap_s: float = 1.0
) -> Iterator[Stretch]:
    """Stretches of both sides, one at a time.

    Parameters
    ----------
    raw, released : RecordingSet
        As recorded and as released.
    window_s, gap_s : float
        Length of a window and of the gap after it in seconds, where names last. Pieces have their
        own windows.
    """
    if holds_pieces(released):
        yield from pieces(raw, released)
        return
    assert raw.cohort is not None
    assert released.cohort is not None
    at = {key: i for i, key in enumerate(released.cohort.keys)}
    length, step = round(window_s * 1e9), round((window_s + gap_s) * 1e9)
    for i, key in enumerate(raw.cohort.keys):
        if key not in at:
            continue
        recorded = raw.cohort[i]
        release = recorded if released.cohort is raw.cohort else released.cohort[at[key]]
        sample_ns = 1e9 / recorded.rate_hz if recorded.rate_hz > 0 else 0.0
        whole = round(recorded.duration_s * 1e9 + sample_ns)
        # A recording shorter than a window is a stretch as it is.
        for begin in range(0, max(whole - length, 0) + 1, step):
            both = (seconds_of(r, begin, begin + length) for r in (recorded, release))
            yield Stretch(key, begin, *both)


def pieces(raw: RecordingSet, released: RecordingSet) -> Iterator[Stretch]:
    """Each piece of a release with the same time of the recording it was made for.

    Raises
    ------
    DataError
        For a piece that was made for no recording at hand.
    """
    cohort, origins = released.cohort, released.origins
    assert raw.cohort is not None
    assert cohort is not None
    assert origins is not None
    at = {key: i for i, key in enumerate(raw.cohort.keys)}
    names = [key[0] for key in cohort.keys]
    stranger = next((n for n in names if origins.get(n) not in at), None)
    if stranger is not None:
        raise DataError(
            f"The piece '{stranger}' was made for a recording that is not among the raw ones."
            " Compare a release with the recordings it was made from."
        )
    kept: tuple[RecordingKey, Recording] | None = None
    for i in sorted(range(len(names)), key=lambda i: origins[names[i]]):
        piece, key = cohort[i], origins[names[i]]
        # The pieces of a recording follow one another, so it is loaded once.
        if kept is None or kept[0] != key:
            kept = key, raw.cohort[at[key]]
        if len(piece) == 0:
            continue
        begin, end = int(piece.t_ns[0]), _end_ns(piece)
        yield Stretch(key, begin, seconds_of(kept[1], begin, end), piece)


def _end_ns(piece: Recording) -> int:
    """The end of a piece's last sample."""
    sample_ns = 1e9 / piece.rate_hz if piece.rate_hz > 0 else 1.0
    return int(piece.t_ns[-1]) + round(sample_ns)


def viewer_by_viewer(
    raw: RecordingSet, released: RecordingSet
) -> Iterator[tuple[Recording | None, Recording | None]]:
    """Each recording as recorded and as released, as
    :func:`gazeveil.utility.areas.scanpaths.side_by_side` has it, or each piece.
    """
    if holds_pieces(released):
        yield from ((s.recorded, s.released) for s in pieces(raw, released))
    else:
        yield from side_by_side(raw, released)


def as_recorded(raw: RecordingSet, released: RecordingSet) -> RecordingSet:
    """The raw recordings as a release of pieces shows them: everybody who saw a stimulus, cut at
    its windows, under the true names. Itself, where names last.
    """
    if not holds_pieces(released):
        return raw
    cut = (
        recording.with_(session=f"{recording.session} {begin}")
        for begin, recording in cut_at_windows(raw, released)
    )
    return RecordingSet(set_aside(cut, raw.people), None, raw.pipeline, raw.people)


def cut_at_windows(raw: RecordingSet, released: RecordingSet) -> Iterator[tuple[int, Recording]]:
    """The seconds of everybody who saw a stimulus that a release of pieces shows of it: when they
    begin, in nanoseconds from its beginning, and what was recorded then.
    """
    assert raw.cohort is not None
    windows = windows_of(released)
    for recording in raw.cohort:
        for begin, end in windows.get(recording.stimulus, ()):
            yield begin, seconds_of(recording, begin, end)


def windows_of(released: RecordingSet) -> dict[str, list[tuple[int, int]]]:
    """When the pieces of each stimulus begin and end, in nanoseconds from its beginning, in
    order.
    """
    assert released.cohort is not None
    found: dict[str, set[tuple[int, int]]] = {}
    for piece in released.cohort:
        if len(piece):
            found.setdefault(piece.stimulus, set()).add((int(piece.t_ns[0]), _end_ns(piece)))
    return {stimulus: sorted(windows) for stimulus, windows in found.items()}
