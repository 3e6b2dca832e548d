"""No release leaves without its guarantee, times from zero, pseudonyms and a public rate.

Pieces are published as nobody's: no lasting name, no attributes, one rate, times that count from
the beginning of the stimulus, and a certificate that counts pieces.

Who is found in the ledger again, and what a promise takes from a slow tracker: through
`Release.write` and `publish`, as their users do.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gazeveil
from gazeveil import Cohort, Recording
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.cohort import cohort_in_frame
from gazeveil.privacy.composition import BudgetError
from gazeveil.privacy.promise.sentence import person_in_words
from gazeveil.privacy.publication.alignment import Alignment
from gazeveil.privacy.publication.certificate import read_certificate
from gazeveil.privacy.publication.gaze_prints import PeopleSeen
from gazeveil.privacy.publication.ledger import ReleaseLedger
from gazeveil.privacy.publication.names import PublicationChoices, read_key
from gazeveil.privacy.publication.outputs import (
    Part,
    PartSummary,
    makes_pieces,
    piece_alignment,
    viewers_of,
)
from gazeveil.privacy.publication.page import found_in_words
from gazeveil.privacy.publication.protecting import protected, write_publication
from gazeveil.privacy.publication.publication import Publication, prepare
from gazeveil.release.publishing import publish
from gazeveil.release.recipe import Recipe
from gazeveil.release.verify import verify
from tests.support.pieces import RawPieces
from tests.support.recordings import real

UNIX_NS = 1_629_390_345_123_456_789
RATES = (71.912345678, 72.345678912, 71.54321)


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    """Five people with a Unix clock, rates of their own, dates as sessions and attributes."""
    recordings = []
    for i, r in enumerate(gazeveil.simulate(5, 2, 3.0, 72.0, seed=1)):
        rate = RATES[i % 3]
        recordings.append(
            r.with_(
                t_ns=UNIX_NS + np.rint(np.arange(len(r)) * 1e9 / rate).astype(np.int64),
                rate_hz=rate,
                session="2017-10-13-10-27",
                person=f"anna-{r.person}",
                pupil=np.linspace(2, 4, len(r)),
                metadata={"serial": "QZX-7", "source": "/home/anna/raw.csv"},
                labels={"expert": np.full(len(r), "fixation")},
                truth=None,
            )
        )
    people = {
        p: {"age": 31 + i, "gender": "f", "handedness": "left-by-birth"}
        for i, p in enumerate(sorted({r.person for r in recordings}))
    }
    return Cohort(recordings, people)


# Long enough not to turn up among the digits of released gaze: below one run in a million.
SECRETS = (
    "anna",
    "2017-10",
    "16293903451",
    "QZX-7",
    "left-by-birth",
    "raw.csv",
    "expert",
    "71.91234567",
)


def texts_of(folder: Path) -> str:
    found = []
    for path in sorted(folder.rglob("*")):
        found.append(path.relative_to(folder).as_posix())
        if path.suffix == ".parquet":
            found += [json.dumps(pl.read_parquet_metadata(path)), pl.read_parquet(path).write_csv()]
        elif path.is_file():
            found.append(path.read_text("utf-8"))
    return "\n".join(found)


@pytest.mark.parametrize("text", ["gaussian:sigma_deg=2", "temporal:K=1", "k-same-synth:k=2"])
def test_release_write_takes_everything_away_that_tells_who_or_when(
    text: str, cohort: Cohort, tmp_path: Path
) -> None:
    release = gazeveil.protect(cohort, text)
    out = release.write(tmp_path / "out", key_file=tmp_path / "key.json")
    written = texts_of(out)
    for secret in SECRETS:
        assert secret not in written
    copy = gazeveil.read(out)
    assert {r.rate_hz for r in copy} == {72.0}
    assert {int(r.t_ns[0]) for r in copy} == {0}
    assert {r.session for r in copy} == {"1"}
    assert all(r.pupil is None and not r.labels and set(r.metadata) == {"facts"} for r in copy)
    # Drawn recordings are nobody's: their people have no attributes.
    columns = () if text.startswith("k-same") else ("age", "gender")
    assert {tuple(sorted(a)) for a in copy.people.values()} == {columns}
    assert set(read_key(tmp_path / "key.json").recordings) == set(release.data.keys)
    certificate = json.loads((out / "PRIVACY.json").read_text())
    assert certificate["guarantee"]["definition"] == release.guarantee.definition
    assert certificate["alignment"]["rate_hz"] == "72"
    assert "the rate of each recording" not in certificate["not_covered"]
    assert "how long each recording is" in certificate["not_covered"]


def test_what_is_aligned_first_is_what_the_mechanism_sees(cohort: Cohort, tmp_path: Path) -> None:
    publication = protected(
        cohort, gazeveil.mechanism("gaussian", sigma_deg=2), PublicationChoices(), seed=1
    )
    assert {r.rate_hz for r in publication.release.data} == {72.0}
    write_publication(publication, tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "PRIVACY.json").read_text())
    assert any("before the protection" in a for a in certificate["assumptions"])
    assert certificate["seeded"] is True
    # What was written is the release under other names, bit for bit.
    named = {public: raw for raw, public in publication.names.recordings.items()}
    released = {r.key: r for r in publication.release.data}
    for r in gazeveil.read(tmp_path / "out"):
        np.testing.assert_array_equal(r.x_deg, released[named[r.key]].x_deg)


@pytest.mark.parametrize("to", ["parquet", "csv", "bids"])
def test_parts_can_be_sent_and_written_in_any_order_with_the_same_bytes(
    to: str, cohort: Cohort, tmp_path: Path
) -> None:
    folder = Cohort(list(cohort), cohort.people).write(tmp_path / "raw")
    chosen = gazeveil.mechanism("gaussian", sigma_deg=2)

    def made() -> Publication:
        return protected(gazeveil.read(folder), chosen, PublicationChoices(to=to), seed=4)

    first, second = made(), made()
    one, two = tmp_path / "one", tmp_path / "two"
    for place in (one, two):
        place.mkdir()
    summaries = [part.write(one) for part in first.parts]
    sent = [pickle.loads(pickle.dumps(part)) for part in reversed(second.parts)]
    again = [PartSummary(**json.loads(json.dumps(asdict(p.write(two))))) for p in sent]
    first.finish(one, summaries)
    second.finish(two, again)
    files = sorted(p.relative_to(one) for p in one.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(two) for p in two.rglob("*") if p.is_file())
    for file in files:
        assert (one / file).read_bytes() == (two / file).read_bytes(), file


def test_kept_fields_go_out_and_are_printed_under_not_covered(
    cohort: Cohort, tmp_path: Path
) -> None:
    release = gazeveil.protect(cohort, "temporal:K=1", keep=("pupil", "t_ns"))
    keep = ("person", "session", "times", "handedness", "pupil")
    out = release.write(tmp_path / "out", keep=keep)
    copy = gazeveil.read(out)
    assert set(copy.people) == set(cohort.people)
    assert {r.session for r in copy} == {"2017-10-13-10-27"}
    assert min(int(r.t_ns[0]) for r in copy) == UNIX_NS
    assert all(r.pupil is not None for r in copy)
    certificate = json.loads((out / "PRIVACY.json").read_text())
    for clause in (
        "the names of people, kept as they were",
        "the names of sessions, kept as they were",
        "the tracker's own times, kept as they were",
        "the handedness of people, kept as it was",
        "the pupil size, kept as they were",
    ):
        assert clause in certificate["not_covered"]
    assert set(keep) <= set(certificate["kept"])


def test_a_failed_write_leaves_nothing(cohort: Cohort, tmp_path: Path) -> None:
    release = gazeveil.protect(cohort, "gaussian:sigma_deg=2")
    publication = prepare(release)

    def each(parts: Sequence[Part]) -> Iterator[Part]:
        yield from parts[:3]
        raise DataError("the disk is full")

    with pytest.raises(DataError, match="disk is full"):
        write_publication(publication, tmp_path / "out", each)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"keep": ("soul",)}, "must be one of"),
        ({"keep": ("pupil",)}, "kept when the data were protected"),
        ({"stimuli": ("nothing",)}, "stimuli"),
        ({"durations": {"nothing": 3}}, "durations"),
        ({"colour": "red"}, "has no option 'colour'"),
    ],
)
def test_choices_that_the_release_cannot_meet_are_refused_before_anything_is_written(
    choices: dict[str, object], words: str, cohort: Cohort, tmp_path: Path
) -> None:
    release = gazeveil.protect(cohort, "gaussian:sigma_deg=2")
    with pytest.raises(ParameterError, match=words):
        release.write(tmp_path / "out", **choices)
    assert list(tmp_path.iterdir()) == []


def test_one_recording_can_be_written(cohort: Cohort, tmp_path: Path) -> None:
    release = gazeveil.protect(cohort[0], "gaussian:sigma_deg=2")
    assert isinstance(release.data, Recording)
    copy = gazeveil.read(release.write(tmp_path / "out"))
    assert len(copy) == 1
    assert "anna" not in texts_of(tmp_path / "out")


def test_tables_maps_and_people_have_their_certificate_beside_them(
    cohort: Cohort, tmp_path: Path
) -> None:
    table = gazeveil.window_features(cohort, window_s=1.0, step_s=1.0)
    release = gazeveil.protect(table, "lpa:epsilon=1")
    release.write(tmp_path / "table.parquet", ledger=False)
    gazeveil.protect(cohort, "heatmap-laplace:epsilon=1").write(tmp_path / "maps.csv", ledger=False)
    gazeveil.protect(cohort, "demographics:k=2").write(tmp_path / "people.csv", ledger=False)
    for name in ("table.parquet", "maps.csv", "people.csv"):
        certificate = json.loads((tmp_path / f"{name}.PRIVACY.json").read_text())
        assert name in certificate["files"]
        assert (tmp_path / f"{name}.PRIVACY.md").exists()
    written = gazeveil.FeatureTable.read(tmp_path / "table.parquet")
    assert len(written) == len(release.data)
    assert sorted(written.values[:, 0]) == sorted(release.data.values[:, 0])
    assert written.counts == {}
    assert "anna" not in texts_of(tmp_path)
    assert "2017-10" not in texts_of(tmp_path)
    with pytest.raises(DataError, match="exists already"):
        gazeveil.protect(cohort, "demographics:k=2").write(tmp_path / "people.csv")


def test_a_mechanism_that_leaves_samples_out_is_published_at_its_own_rate(
    cohort: Cohort, tmp_path: Path
) -> None:
    made = gazeveil.mechanism("temporal", K=3)
    publication = protected(cohort, made, PublicationChoices(rate_hz="72", durations="common"))
    write_publication(publication, tmp_path / "out")
    copy = gazeveil.read(tmp_path / "out")
    assert {r.rate_hz for r in copy} == {24.0}
    assert {len(r) for r in copy} == {72}
    assert all((np.diff(r.t_ns) > 41_000_000).all() for r in copy)
    certificate = json.loads((tmp_path / "out" / "PRIVACY.json").read_text())
    assert certificate["alignment"]["rate_hz"] == "24"


@pytest.mark.parametrize("setting", [{"clock_hz": 50}, {"duration_s": 2}])
def test_a_second_public_clock_is_refused(cohort: Cohort, setting: dict[str, int]) -> None:
    made = gazeveil.mechanism("gaussian", sigma_deg=1, **setting)
    with pytest.raises(ParameterError, match=r"Say it with (rate_hz|durations)"):
        protected(cohort, made, PublicationChoices())


def test_what_is_public_by_the_data_alone_is_said_not_to_be_covered(cohort: Cohort) -> None:
    made = gazeveil.mechanism("gaussian", sigma_deg=1)
    aligned = protected(cohort, made, PublicationChoices(durations="common"))
    assert any("rounded medians" in c for c in aligned.description(()).guarantee.not_covered)
    as_they_were = protected(cohort, made, PublicationChoices(keep=("times",)))
    assert not any("medians" in c for c in as_they_were.description(()).guarantee.not_covered)


@pytest.mark.parametrize("frame", ["world", "head"])
def test_the_certificate_says_that_degrees_are_relative_to_the_head(
    frame: str, tmp_path: Path
) -> None:
    made = [
        r.with_(head_deg=np.tile([180.0, 90.0, 0.0], (len(r), 1)))
        for r in gazeveil.simulate(2, 1, 2.0, 60.0, seed=3)
    ]
    cohort = cohort_in_frame(Cohort(made), frame)
    mechanism = gazeveil.mechanism("gaussian", sigma_deg=1)
    publication = protected(cohort, mechanism, PublicationChoices())
    write_publication(publication, tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "PRIVACY.json").read_text("utf-8"))
    page = (tmp_path / "out" / "PRIVACY.md").read_text("utf-8")
    assert certificate["alignment"].get("frame") == (None if frame == "world" else "head")
    assert ("relative to the head" in page) == (frame == "head")


PIECES = "mosaic:epsilon=10,r_deg=2,piece_s=2,gap_s=1,crowd=3"


@pytest.fixture(scope="module")
def cohort_of_pieces() -> Cohort:
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
    cohort_of_pieces: Cohort, tmp_path: Path, to: str
) -> None:
    publication = protected(
        cohort_of_pieces, gazeveil.mechanism(PIECES), PublicationChoices(to=to), seed=3
    )
    write_publication(publication, tmp_path / "out")
    read = gazeveil.read(tmp_path / "out")
    assert len({r.person for r in read}) == len(read) == 6 * 2 * 2
    assert {r.rate_hz for r in read} == {60.0}
    assert {int(r.t_ns[0]) for r in read} == {0, 3 * 10**9}
    assert not any(read.people.values())
    assert len({r.session for r in read}) == 1
    found = verify(tmp_path / "out", against=cohort_of_pieces)
    assert found.passed, found
    contents = read_certificate(tmp_path / "out")["contents"]
    assert isinstance(contents, dict)
    assert (contents["pieces"], contents["viewers"], contents["stimuli"]) == (24, 6, 2)
    assert "people" not in contents
    assert "recordings" not in contents


def test_a_release_writes_pieces_with_their_own_times(
    cohort_of_pieces: Cohort, tmp_path: Path
) -> None:
    gazeveil.protect(cohort_of_pieces, PIECES, seed=1).write(tmp_path / "out")
    read = gazeveil.read(tmp_path / "out")
    assert {int(r.t_ns[0]) for r in read} == {0, 3 * 10**9}
    assert verify(tmp_path / "out", against=cohort_of_pieces).passed
    text = (tmp_path / "out" / "PRIVACY.md").read_text()
    assert "no name says which pieces are of one person" in text
    assert "released under one name" not in text
    assert "24 pieces" in text
    assert "24 people" not in text


@pytest.mark.parametrize("name", ["person", "session", "times", "rate", "attributes", "age"])
def test_what_lasts_cannot_be_kept(cohort_of_pieces: Cohort, name: str) -> None:
    with pytest.raises(ParameterError, match="keep"):
        protected(cohort_of_pieces, gazeveil.mechanism(PIECES), PublicationChoices((name,)))


def test_nobody_keeps_whose_a_piece_is(cohort_of_pieces: Cohort, tmp_path: Path) -> None:
    choices = PublicationChoices(key_file=tmp_path / "key.json")
    with pytest.raises(ParameterError, match="key_file"):
        protected(cohort_of_pieces, gazeveil.mechanism(PIECES), choices)
    with pytest.raises(ParameterError, match="key_file"):
        gazeveil.protect(cohort_of_pieces, PIECES).write(
            tmp_path / "out", key_file=tmp_path / "key.json"
        )


def test_a_clock_of_its_own_is_refused(cohort_of_pieces: Cohort) -> None:
    with pytest.raises(ParameterError, match="clock_hz"):
        protected(
            cohort_of_pieces, gazeveil.mechanism(PIECES + ",clock_hz=30"), PublicationChoices()
        )


def test_a_stimulus_called_like_a_person_becomes_a_number(cohort_of_pieces: Cohort) -> None:
    person = cohort_of_pieces.keys[0][0]
    named = Cohort([r.with_(stimulus=f"film of {person} {r.stimulus}") for r in cohort_of_pieces])
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


GROUPS = "k-same-synth:k=3"


def part(recording: Recording, first_s: float, seconds: float) -> Recording:
    """A cut, as another recording of its own."""
    since_s = (recording.t_ns - recording.t_ns[0]) / 1e9
    cut = slice(*np.searchsorted(since_s, [first_s, first_s + seconds]))
    return Recording(
        f"cut of {recording.person}",
        "cut",
        recording.t_ns[cut],
        recording.x_deg[cut],
        recording.y_deg[cut],
        recording.valid[cut],
        rate_hz=recording.rate_hz,
        space=recording.space,
    )


@pytest.fixture(scope="module")
def people() -> list[Recording]:
    return list(gazeveil.simulate(6, 3, 8.0, 120.0, seed=4))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_every_recording_of_a_person_is_remembered(
    place: int, people: list[Recording], tmp_path: Path
) -> None:
    ledger = ReleaseLedger.create(tmp_path / "releases.json")
    first = gazeveil.protect(Cohort(people), "gaussian:sigma_deg=5")
    first.write(tmp_path / "out", ledger=ledger.path)
    stimulus = sorted({r.stimulus for r in people})[place]
    again = [r.with_(person=f"x{r.person}") for r in people if r.stimulus == stimulus]
    second = gazeveil.protect(Cohort(again), GROUPS)
    with pytest.raises(BudgetError, match="out"):
        second.write(tmp_path / "again", ledger=ledger.path)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("first_s", [0.0, 1.3, 3.21, 5.9])
def test_any_two_seconds_of_anybody_are_found(
    first_s: float, people: list[Recording], tmp_path: Path
) -> None:
    ledger = ReleaseLedger.create(tmp_path / "releases.json")
    gazeveil.protect(Cohort(people), GROUPS).write(tmp_path / "out", ledger=ledger.path)
    known = PeopleSeen(ledger.key)
    known.note_all(people)
    for recording in people:
        cut = part(recording, first_s, 2.0)
        seen = PeopleSeen(ledger.key)
        seen.note(cut)
        shared = seen.people[cut.person] & known.people[recording.person]
        assert len(shared) >= 2, recording.title


@pytest.mark.data
def test_any_two_seconds_of_real_gaze_are_found_and_nobody_else_s() -> None:
    cohort = gazeveil.read(real("gazecom"))
    chosen = [cohort[i] for i in range(0, len(cohort), max(1, len(cohort) // 20))]
    known = {}
    for recording in chosen:
        seen = PeopleSeen(b"key")
        seen.note(recording)
        known[recording.key] = seen.people[recording.person]
    for recording in chosen:
        middle_s = recording.duration_s / 2
        seen = PeopleSeen(b"key")
        cut = part(recording, middle_s, 2.0)
        seen.note(cut)
        if cut.valid.mean() < 0.9:
            continue  # two seconds with a blink hold less than two seconds of gaze
        shared = {key: len(seen.people[cut.person] & prints) for key, prints in known.items()}
        assert shared[recording.key] >= 2, recording.title
        assert all(n < 2 for key, n in shared.items() if key != recording.key), recording.title


def test_one_sample_of_the_slowest_tracker_is_what_a_promise_reckons_with(tmp_path: Path) -> None:
    slow = list(gazeveil.simulate(2, 1, 4.0, 30.0, seed=1))
    fast = [r.with_(person=f"f{r.person}") for r in gazeveil.simulate(4, 1, 4.0, 120.0, seed=2)]
    source = Cohort([*slow, *fast]).write(tmp_path / "in")
    choices = PublicationChoices(durations="common", rate_hz="120")
    recipe = Recipe(source, "kaleido:epsilon=1,w=60,r_deg=2", choices, battery="none")
    publish(recipe, gazeveil.read(source), tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "PRIVACY.json").read_text())
    (clause,) = (a for a in certificate["assumptions"] if "one sample of the tracker" in a)
    most = int(clause.rpartition("up to ")[2].split()[0])
    assert most >= 4  # four steps of 120 Hz for one sample of 30 Hz
