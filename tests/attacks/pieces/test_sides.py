"""Pieces as attackers hold them: named, cut, matched between releases, judged."""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil.attacks.base import Scores
from gazeveil.attacks.pieces.sides import cut_like, decide_pieces, find_windows, named_pieces
from gazeveil.errors import DataError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import PieceWindow, RecordingSet
from tests.support.pieces import RawPieces, jumper, jumpers


@pytest.fixture(scope="module")
def raw() -> RecordingSet:
    return RecordingSet(jumpers(5, 2))


def test_windows_are_numbered_by_their_public_beginnings(raw: RecordingSet) -> None:
    release = protect(raw, RawPieces(), 1)
    assert release.piece_windows is not None
    windows = set(release.piece_windows.values())
    assert {(w.stimulus, w.window, w.begin_ns) for w in windows} == {
        (s, k, k * 6_000_000_000) for s in ("s0", "s1") for k in range(3)
    }
    with pytest.raises(DataError, match="has no samples"):
        find_windows([jumper(0, 0).slice(0, 0)])


def test_what_is_learnt_from_has_people_and_what_is_asked_about_has_pieces(
    raw: RecordingSet,
) -> None:
    release = protect(raw, RawPieces(), 1).prepared(["fixation"])
    people, pieces = (named_pieces(release, names) for names in ("people", "pieces"))
    assert people.persons == raw.persons
    assert len(pieces.persons) == len(pieces.keys) == 5 * 2 * 3
    assert people.origins is None
    assert pieces.origins is None
    # Tables that were there are renamed, not made again, and say the same of each piece.
    assert pieces.cohort is not None
    assert people.cohort is not None
    own = {r.x_deg.tobytes(): r.key for r in people.cohort}
    for piece in pieces.cohort:
        key = own[piece.x_deg.tobytes()]
        assert release.origins is not None
        assert release.origins[piece.person][0] == key[0]
        mine = pieces.tables["fixation"].recordings().get(piece.key, np.empty(0, dtype=int))
        theirs = people.tables["fixation"].recordings().get(key, np.empty(0, dtype=int))
        np.testing.assert_array_equal(
            pieces.fixations.values[mine], people.fixations.values[theirs]
        )


def test_raw_recordings_are_cut_at_the_public_times(raw: RecordingSet) -> None:
    release = protect(raw, RawPieces(keep_loss=True), 1)
    named, cut = named_pieces(release, "people"), cut_like(raw, release.piece_windows.values())
    released = {r.key[:2]: r for r in named.cohort}
    assert {k[:2] for k in cut.keys} == set(released)
    for piece in cut.cohort:
        np.testing.assert_array_equal(piece.x_deg, released[piece.key[:2]].x_deg)
    late = PieceWindow("s0", 9, 10**12, 2 * 10**12)
    with pytest.raises(DataError, match="No raw recording covers"):
        cut_like(raw, [late])


def test_a_persons_credit_is_the_mean_over_their_pieces() -> None:
    windows = {n: PieceWindow("s", int(n[1]), 0, 1) for n in ("a0", "b0", "a1", "b1")}
    owners = {n: n[0] for n in windows}
    # In window 0 both look like a, the right one more so; in window 1 both are wrong.
    values = np.array([[3.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    decided = decide_pieces(
        Scores(("a", "b"), tuple(windows), values), owners, windows, ("a", "b", "c"), 0
    )
    assert decided.credit.tolist() == [0.5, 0.0, 0.5]  # c has no pieces: a guess
    assert decided.matched.tolist() == [0.5, 0.5, 0.5]
    assert decided.answers == (None, "a", None)
    assert decided.beaten_by == (0, 1, None)
