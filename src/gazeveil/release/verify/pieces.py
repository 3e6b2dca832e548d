"""Whether pieces are alike in all but gaze, so that nothing else says which belong together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from gazeveil.release.verify.outcome import VerifyCheck
from gazeveil.release.verify.released import ReleasedRecording


def check_pieces(recordings: Sequence[ReleasedRecording]) -> VerifyCheck:
    """Every name has one piece; pieces of one stimulus and time have the same session, length and
    rate; and each time of a stimulus has the same number of them.
    """
    names = Counter(r.person for r in recordings)
    lasting = sum(n > 1 for n in names.values())
    failures = []
    if lasting:
        failures.append(
            f"{lasting} names have more than one piece, and the evidence under one name adds up."
        )
    windows: dict[tuple[str, str], dict[int, list[ReleasedRecording]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for r in recordings:
        windows[r.stimulus, r.task][r.start_ns].append(r)
    for (stimulus, _), by_time in sorted(windows.items()):
        shapes = {
            start: {(p.session, p.samples, p.rate_hz) for p in pieces}
            for start, pieces in by_time.items()
        }
        unlike = sum(len(s) > 1 for s in shapes.values())
        if unlike:
            failures.append(
                f"At {unlike} times of stimulus '{stimulus}' pieces differ in session, length or"
                " rate, which tells them apart."
            )
        if len({len(pieces) for pieces in by_time.values()}) > 1:
            failures.append(
                f"The times of stimulus '{stimulus}' have different numbers of pieces, which tells"
                " when somebody was lost."
            )
    return VerifyCheck("pieces", tuple(failures), "each has a name of its own and all are alike")
