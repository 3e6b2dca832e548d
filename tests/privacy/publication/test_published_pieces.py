"""Pieces are published as nobody's: no lasting name, no attributes, one rate, times that count from
the beginning of the stimulus, and a certificate that counts pieces.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort
from gazeveil.errors import DataError, ParameterError
from gazeveil.privacy.promise.sentence import person_in_words
from gazeveil.privacy.publication.alignment import Alignment
from gazeveil.privacy.publication.certificate import read_certificate
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.publication.outputs import makes_pieces, piece_alignment, viewers_of
from gazeveil.privacy.publication.page import found_in_words
from gazeveil.privacy.publication.protecting import protected, write_publication
from gazeveil.release.verify import verify
from tests.support.pieces import RawPieces

PIECES = "mosaic:epsilon=10,r_deg=2,piece_s=2,gap_s=1,crowd=3"
UNIX_NS = 1_629_390_345_123_456_789


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    """Six people with trackers, clocks, sessions and attributes of their own."""
    recordings = []
    for i, r in enumerate(gazeveil.simulate(6, 2, 6.0, 60.0, seed=1)):
        rate_hz = (59.912345678, 60.345678912, 60.0)[i % 3]
        recordings.append(
            r.with_(
                person=f"anna-{r.person}",
                session="2017-10-13",
                rate_hz=rate_hz,
                t_ns=UNIX_NS + np.rint(np.arange(len(r)) * 1e9 / rate_hz).astype(np.int64),
            )
        )
    people = {r.person: {"age": 30, "gender": "f"} for r in recordings}
    return Cohort(recordings, people)


@pytest.mark.parametrize("to", ["parquet", "csv", "bids"])
def test_pieces_of_unlike_recordings_are_alike_in_every_format(
    cohort: Cohort, tmp_path: Path, to: str
) -> None:
    publication = protected(cohort, gazeveil.mechanism(PIECES), PublicationChoices(to=to), seed=3)
    write_publication(publication, tmp_path / "out")
    read = gazeveil.read(tmp_path / "out")
    assert len({r.person for r in read}) == len(read) == 6 * 2 * 2
    assert {r.rate_hz for r in read} == {60.0}
    assert {int(r.t_ns[0]) for r in read} == {0, 3 * 10**9}
    assert not any(read.people.values())
    assert len({r.session for r in read}) == 1
    found = verify(tmp_path / "out", against=cohort)
    assert found.passed, found
    contents = read_certificate(tmp_path / "out")["contents"]
    assert isinstance(contents, dict)
    assert (contents["pieces"], contents["viewers"], contents["stimuli"]) == (24, 6, 2)
    assert "people" not in contents
    assert "recordings" not in contents


def test_a_release_writes_pieces_with_their_own_times(cohort: Cohort, tmp_path: Path) -> None:
    gazeveil.protect(cohort, PIECES, seed=1).write(tmp_path / "out")
    read = gazeveil.read(tmp_path / "out")
    assert {int(r.t_ns[0]) for r in read} == {0, 3 * 10**9}
    assert verify(tmp_path / "out", against=cohort).passed
    text = (tmp_path / "out" / "PRIVACY.md").read_text()
    assert "no name says which pieces are of one person" in text
    assert "released under one name" not in text
    assert "24 pieces" in text
    assert "24 people" not in text


@pytest.mark.parametrize("name", ["person", "session", "times", "rate", "attributes", "age"])
def test_what_lasts_cannot_be_kept(cohort: Cohort, name: str) -> None:
    with pytest.raises(ParameterError, match="keep"):
        protected(cohort, gazeveil.mechanism(PIECES), PublicationChoices((name,)))


def test_nobody_keeps_whose_a_piece_is(cohort: Cohort, tmp_path: Path) -> None:
    choices = PublicationChoices(key_file=tmp_path / "key.json")
    with pytest.raises(ParameterError, match="key_file"):
        protected(cohort, gazeveil.mechanism(PIECES), choices)
    with pytest.raises(ParameterError, match="key_file"):
        gazeveil.protect(cohort, PIECES).write(tmp_path / "out", key_file=tmp_path / "key.json")


def test_a_clock_of_its_own_is_refused(cohort: Cohort) -> None:
    with pytest.raises(ParameterError, match="clock_hz"):
        protected(cohort, gazeveil.mechanism(PIECES + ",clock_hz=30"), PublicationChoices())


def test_a_stimulus_called_like_a_person_becomes_a_number(cohort: Cohort) -> None:
    person = cohort.keys[0][0]
    named = Cohort([r.with_(stimulus=f"film of {person} {r.stimulus}") for r in cohort])
    publication = protected(named, gazeveil.mechanism(PIECES), PublicationChoices(), seed=3)
    assert not any(person in name for name in publication.names.stimuli.values())


def test_pieces_of_several_rates_are_refused() -> None:
    assert piece_alignment(Alignment(), [72.0, 72.0]).rate_hz == Fraction(72)
    with pytest.raises(DataError, match="2 rates"):
        piece_alignment(Alignment(), [72.0, 71.9])


def test_viewers_are_the_most_pieces_at_one_time() -> None:
    assert viewers_of([("a", 0), ("a", 0), ("a", 6), ("b", 0)]) == 2
    assert viewers_of([]) == 0


def test_only_mechanisms_of_pieces_make_pieces() -> None:
    assert makes_pieces("mosaic")
    assert not makes_pieces("clock-render")
    assert not makes_pieces(RawPieces.name), "nobody has registered it"


def test_a_person_is_all_pieces() -> None:
    told = {"numbers": {"epsilon": "3"}, "status": "proved"}
    words = person_in_words(told, {"unit": "window"}, pieces=True)
    assert words.startswith("All pieces of one participant: epsilon = 3.")
    much = person_in_words({"numbers": {"epsilon": "300"}}, {"unit": "window"}, pieces=True)
    assert "pieces that they join" in much
    assert "one pseudonym" not in much


def test_an_attack_on_pieces_is_told_in_pieces() -> None:
    attack = {"found": 2, "people": 24, "guessing": 1, "rate": 0.0712, "chance": 0.0417}
    assert found_in_words(attack) == "2 of 24 people (chance 1 of 24)"
    told = found_in_words({**attack, "asked": "pieces"})
    assert told == "the person of 7.1 % of all pieces (chance 4.2 %)"
