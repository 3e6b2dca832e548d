"""Joining pieces: who is found where something joins them, and who must not be where nothing does;
bugs planted in the mechanism are found.

Pieces as attackers hold them: named, cut, matched between releases, judged.

Names given one to one, and windows that tell each other.
"""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil.attacks.base import Scores
from gazeveil.attacks.pieces.joining import matched_along, soft_matching
from gazeveil.attacks.pieces.relink import PieceRelinking
from gazeveil.attacks.pieces.sides import (
    cut_like,
    decide_pieces,
    find_windows,
    named_pieces,
    piece_controls,
)
from gazeveil.attacks.registry import attack
from gazeveil.attacks.result import AttackResult
from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import PieceWindow, RecordingSet
from gazeveil.gaze.cohort import Cohort
from tests.support.pieces import RawPieces, jumper, jumpers

PEOPLE = 8
#: Pieces of two seconds, many of them, so that small cohorts say something.
SHORT = RawPieces(piece_s=2.0, gap_s=1.0)


def released(cohort: Cohort, mechanism: RawPieces, seed: int = 1) -> RecordingSet:
    return protect(RecordingSet(cohort), mechanism, seed)


def sides(
    cohort: Cohort, mechanism: RawPieces, probe: tuple[str, ...] = ("s3",)
) -> tuple[RecordingSet, RecordingSet, dict[str, str]]:
    """People's pieces of some stimuli, pieces of the others from another release, and whose."""
    first, second = (released(cohort, mechanism, seed) for seed in (1, 2))
    learnt, asked = named_pieces(first, "people"), named_pieces(second, "pieces")
    gallery = learnt.where(lambda key: learnt.piece_windows[key].stimulus not in probe)
    unknown = asked.where(lambda key: asked.piece_windows[key].stimulus in probe)
    return gallery, unknown, {name: key[0] for name, key in second.origins.items()}


def relinked_share(release: RecordingSet, by: str = "place") -> AttackResult:
    (found,) = PieceRelinking(by).run(release, release, 0).results
    return found


def rate(text: str, gallery: RecordingSet, probe: RecordingSet, owners: dict[str, str]) -> float:
    scores = attack(text).identify(gallery, probe, seed=1)
    own = tuple(owners.get(name, name) for name in scores.probes)
    return float(Scores(scores.known, own, scores.values).credit().mean())


# --- who is found


def test_pieces_that_are_joined_by_place_are_recognised_more_often() -> None:
    # They stay for seconds where they are, and nothing is left out between pieces.
    parts = sides(
        jumpers(PEOPLE, 5, stay_s=4.0, alike=True, shake=0.25),
        RawPieces(piece_s=2.0, gap_s=0.02),
        ("s3", "s4"),
    )
    single = rate("relink:by=none", *parts)
    joined = rate("relink:by=place", *parts)
    assert single > 1.5 / PEOPLE
    assert joined > single + 0.05


def test_people_who_move_alike_are_not_recognised() -> None:
    parts = sides(jumpers(PEOPLE, 4, alike=True), SHORT)
    for by in ("none", "both"):
        # 48 decisions; 0.3 is four standard deviations above guessing.
        assert rate(f"relink:by={by}", *parts) < 0.3


@pytest.mark.heavy
def test_whoever_is_told_which_pieces_belong_together_knows_more() -> None:
    gallery, probe, owners = sides(jumpers(PEOPLE, 4), SHORT)
    told = released(jumpers(PEOPLE, 4), SHORT, 2)
    people = named_pieces(told, "people")
    joined = people.where(lambda key: people.piece_windows[key].stimulus == "s3")
    known = rate("relink:names=known", gallery, joined, {})
    assert known > rate("relink:by=none", gallery, probe, owners)


def test_lasting_names_leave_nothing_to_join() -> None:
    whole = RecordingSet(jumpers(4, 2))
    with pytest.raises(DataError, match="names of this release last"):
        attack("relink").identify(whole, whole, 1)
    with pytest.raises(DataError, match="says whose they are"):
        relinked_share(whole)


@pytest.mark.parametrize("text", ["relink:by=name", "relink:names=all"])
def test_words_that_are_not_known_are_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        attack(text)


def test_a_gallery_of_one_stimulus_still_gives_names_one_to_one() -> None:
    gallery, probe, owners = sides(jumpers(PEOPLE, 2), SHORT, ("s1",))
    assert 0.0 <= rate("relink", gallery, probe, owners) <= 1.0


# --- planted bugs


def test_a_gap_that_is_forgotten_lets_place_join_pieces() -> None:
    cohort = jumpers(PEOPLE, 4, alike=True, stay_s=3.0)
    forgotten = relinked_share(released(cohort, RawPieces(2.0, 0.02)))
    wide = relinked_share(released(cohort, RawPieces(2.0, 6.0)))
    assert forgotten.chance == wide.chance == 1 / PEOPLE
    assert forgotten.low > 0.5
    assert wide.low <= wide.chance + 0.05
    assert wide.value < 0.35


def test_names_that_were_kept_are_found_by_their_order() -> None:
    cohort = jumpers(PEOPLE, 4)
    kept = relinked_share(released(cohort, RawPieces(2.0, keep_names=True)), "label")
    dealt = relinked_share(released(cohort, SHORT), "label")
    assert kept.value == 1.0
    assert dealt.value < 0.3


def test_a_loss_pattern_that_was_kept_names_people() -> None:
    cohort = jumpers(PEOPLE, 6, alike=True, lose=True)
    kept, filled = (
        rate("steps", *sides(cohort, RawPieces(3.0, 1.0, keep_loss=keep), ("s4", "s5")))
        for keep in (True, False)
    )
    assert kept > 0.4
    # Samples that are repeated where others were lost still say a little.
    assert kept > filled + 0.1


def test_noise_that_a_persons_pieces_share_names_them() -> None:
    cohort = jumpers(PEOPLE, 4, alike=True)
    shared, fresh = (
        rate("steps", *sides(cohort, RawPieces(2.0, 1.0, noise_deg=3.0, shared_seed=same)))
        for same in (True, False)
    )
    assert shared > 0.5
    assert fresh < 0.3


# --- controls


def test_controls_tell_knowledge_from_chance_and_from_its_opposite() -> None:
    people = tuple(f"p{i}" for i in range(6))
    probes, windows = people * 5, np.repeat(np.arange(5), 6).tolist()
    right = np.tile(np.eye(6), (5, 1))
    knows = piece_controls(Scores(people, probes, right), windows, 0)
    assert knows.flipped < 1e-9
    assert abs(knows.dealt - 1 / 6) < 0.03
    # A rate of nothing at all is as telling as one of everything.
    assert piece_controls(Scores(people, probes, -right), windows, 0).flipped == 1.0
    rng = np.random.default_rng(3)
    blind = piece_controls(Scores(people, probes, rng.normal(size=right.shape)), windows, 0)
    assert blind.flipped < 0.5


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


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 5), (5, 3), (1, 1)])
def test_rows_sum_to_one_and_no_column_takes_more_than_its_share(rows: int, columns: int) -> None:
    odds = 3 * np.random.default_rng(1).normal(size=(rows, columns))
    shares = np.exp(soft_matching(odds))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares.sum(axis=0).max() < max(1.0, rows / columns) + 0.05


def test_a_name_that_another_piece_needs_is_given_up() -> None:
    odds = np.array([[9.0, 8.0], [9.0, 0.0]])  # both look like the first person
    assert soft_matching(odds).argmax(axis=1).tolist() == [1, 0]


def test_nothing_to_match_gives_nothing() -> None:
    assert soft_matching(np.zeros((0, 3))).shape == (0, 3)
    assert soft_matching(np.zeros((3, 0))).shape == (3, 0)


def test_a_window_that_knows_nothing_learns_from_its_neighbours() -> None:
    known = {0: 5.0 * np.eye(3), 1: np.zeros((3, 3)), 2: np.zeros((3, 3))}
    order = np.array([2, 0, 1])  # piece i of a window is piece order[i] of the one before
    link = np.full((3, 3), -6.0)
    link[np.arange(3), order] = 6.0
    links = {}
    for a, b in ((0, 1), (1, 2)):
        links[b, a], links[a, b] = soft_matching(link), soft_matching(link.T)
    assert np.ptp(matched_along(known, links, 0.0)[1]) == 0.0
    told = matched_along(known, links, 1.0)
    assert told[1].argmax(axis=1).tolist() == order.tolist()
    assert told[2].argmax(axis=1).tolist() == order[order].tolist()
