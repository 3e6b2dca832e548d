"""How many pieces of neighbouring windows can be joined rightly: a figure of the release itself."""

from __future__ import annotations

import numpy as np

from gazeveil import checks
from gazeveil.attacks.pieces.evidence import piece_scores
from gazeveil.attacks.pieces.joining import JOINED_BY, gather_pieces, joined_pairs, learn_joining
from gazeveil.attacks.pieces.sides import named_pieces
from gazeveil.attacks.result import AttackResult, people_interval
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import RecordingKey

#: By what pieces are joined; `label`: by the order of names and of recordings, which must say
#: nothing.
RELINKED_BY = (*JOINED_BY, "label")

#: Parts into which stimuli are dealt; each is joined by who learnt from the others.
_PARTS = 2


def relinked_share(release: RecordingSet, by: str, scores: str, seed: int) -> AttackResult:
    """Share of pieces whose neighbour in the next window is found.

    Parameters
    ----------
    release : RecordingSet
        Of pieces, with `origins`: labels of the stimuli that the attacker learns from, and the
        truth about the others.
    by : {"place", "style", "both", "label"}
        By what pieces are joined. `label` takes names, or recordings, in their order within each
        window, whichever joins more: a check of how names were dealt.
    scores : str
        As in :func:`gazeveil.attacks.pieces.evidence.piece_scores`, for style.
    seed : int
        Of the interval.

    Returns
    -------
    AttackResult
        `relinked_share` with a bootstrap interval over people; chance is one over the pieces of the
        next window.

    Raises
    ------
    DataError
        If names last, if nothing says whose pieces are, or with fewer than two stimuli or windows.
    """
    checks.one_of("relinked_share", "by", by, RELINKED_BY)
    if release.origins is None:
        raise DataError(
            "Relinking needs a release of pieces that says whose they are. Measure the mechanism"
            " with `gazeveil evaluate`, which knows."
        )
    if by == "label":
        return _by_label(release, seed)
    people, pieces = (named_pieces(release, names) for names in ("people", "pieces"))
    stimuli = sorted({w.stimulus for w in (people.piece_windows or {}).values()})
    if len(stimuli) < 2:
        raise DataError("Relinking needs two stimuli: one to learn from and one to ask about.")
    part_of = {stimulus: i % _PARTS for i, stimulus in enumerate(stimuli)}
    joined = [
        pair
        for part in range(_PARTS)
        for pair in _joined(people, pieces, part_of, part, by, scores)
    ]
    protocol = f"neighbouring pieces joined by {by}, learnt on other stimuli; interval over people"
    return _judged(joined, release, protocol, seed)


def _by_label(release: RecordingSet, seed: int) -> AttackResult:
    """Join pieces by the order of their names, or of recordings, in each window."""
    pieces = gather_pieces(release)
    orders = (list(range(len(pieces.keys))), np.argsort(np.argsort(pieces.names)).tolist())
    protocol = "neighbouring pieces joined by the order of names or recordings"
    results = []
    for order in orders:
        pairs = []
        for chain in pieces.chains:
            rows = {w: sorted(at.tolist(), key=order.__getitem__) for w, at in chain.items()}
            for window in rows.keys() & {w - 1 for w in rows}:
                here, then = rows[window], rows[window + 1]
                pairs += [
                    (pieces.keys[a][0], pieces.keys[b][0], len(then))
                    for a, b in zip(here, then, strict=False)
                ]
        results.append(_judged(pairs, release, protocol, seed))
    return max(results, key=lambda r: r.value)


def _judged(
    joined: list[tuple[str, str, int]], release: RecordingSet, protocol: str, seed: int
) -> AttackResult:
    """The share of joined pieces that belong together, people weighing the same."""
    if not joined:
        raise DataError("Relinking needs two windows of a stimulus: this release has one of each.")
    owners = {name: key[0] for name, key in (release.origins or {}).items()}
    right: dict[str, list[float]] = {}
    for name, other, _ in joined:
        right.setdefault(owners[name], []).append(float(owners[name] == owners[other]))
    chances = [1.0 / of for _, _, of in joined]
    shares = [float(np.mean(right[person])) for person in sorted(right)]
    return AttackResult(
        "relinked_share",
        float(np.mean(shares)),
        *people_interval(shares),
        len(shares),
        float(np.mean(chances)),
        protocol=protocol,
    )


def _joined(
    people: RecordingSet,
    pieces: RecordingSet,
    part_of: dict[str, int],
    part: int,
    by: str,
    scores: str,
) -> list[tuple[str, str, int]]:
    """Names of pieces of one part of the stimuli that are joined, and among how many."""

    def here(recording_set: RecordingSet, wanted: bool) -> RecordingSet:
        windows = recording_set.piece_windows or {}

        def chosen(key: RecordingKey) -> bool:
            return (part_of[windows[key].stimulus] == part) == wanted

        some = recording_set.where(chosen)
        some.part_of = recording_set
        return some

    gallery, probe = here(people, False), here(pieces, True)
    if by == "place":
        learnt, asked = gather_pieces(gallery), gather_pieces(probe)
    else:
        found = piece_scores(gallery, probe, scores)
        learnt, asked = gather_pieces(gallery, found.held_out), gather_pieces(probe, found.probe)
    names = asked.names.tolist()
    joined = joined_pairs(learn_joining(learnt, by), asked)
    return [(names[i], names[j], of) for i, j, of in joined]
