"""Pseudonyms, sessions, stimuli and the key that tells who is who.

What a release says about people is shared by at least k of them.
"""

from __future__ import annotations

import re
import stat
from collections import Counter
from pathlib import Path

import pytest

from gazeveil import Cohort, read, simulate
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.privacy.publication.names import (
    PublicationChoices,
    PublicNames,
    chance,
    check_key_file,
    check_names,
    people_table,
    public_names,
    raw_names,
    read_key,
    tells,
    write_key,
)

KEYS = [
    (person, stimulus, session, "")
    for person in ("anna", "bert", "carl")
    for stimulus in ("clip", f"trip_{person}", "2021-08-19")
    for session in ("2017-10-13-10-27", "2017-10-14-09-02")
]


def named(seed: int | None = None, **choices: object) -> PublicNames:
    return public_names(KEYS, PublicationChoices(**choices), chance(seed))  # type: ignore[arg-type]


def test_no_name_of_a_person_a_session_or_a_day_passes() -> None:
    names = named()
    assert set(names.recordings) == set(KEYS)
    public = list(names.recordings.values())
    assert len(set(public)) == len(KEYS)
    # A pseudonym is eight hexadecimal digits, which are those of a year once in a while.
    assert all(re.fullmatch("p[0-9a-f]{8}", k[0]) for k in public)
    text = repr([k[1:] for k in public])
    for secret in ("anna", "bert", "carl", "2017", "2021", "trip"):
        assert secret not in text
    assert {k[2] for k in public} == {"1", "2"}
    assert {k[1] for k in public} == {"clip", *(f"stimulus-00{i}" for i in (1, 2, 3, 4))}
    assert all(
        len({p[0] for r, p in names.recordings.items() if r[0] == n}) == 1
        for n in "abc"
        if any(k[0] == n for k in KEYS)
    )


def test_names_and_order_are_drawn_anew_each_time_and_repeat_only_under_a_seed() -> None:
    assert named().people != named().people
    assert named(3) == named(3)
    assert list(named(3).recordings) != list(named(4).recordings)


def test_the_order_of_recordings_and_of_sessions_tells_nothing() -> None:
    first, sessions = Counter[str](), Counter[str]()
    for seed in range(300):
        names = named(seed)
        first[next(iter(names.recordings))[0]] += 1
        raw = ("anna", "clip", "2017-10-13-10-27", "")
        sessions[names.recordings[raw][2]] += 1
    # 300 draws of 1/3 and of 1/2: within 6 standard deviations.
    assert all(abs(first[p] - 100) < 50 for p in ("anna", "bert", "carl"))
    assert abs(sessions["1"] - 150) < 52


def test_what_is_kept_or_allowed_passes() -> None:
    kept = named(keep=("person", "session", "stimulus"))
    assert all(raw == public for raw, public in kept.recordings.items())
    allowed = named(stimuli=("2021-08-19",))
    assert {p[1] for p in allowed.recordings.values()} & {"clip", "2021-08-19"} == {"2021-08-19"}
    with pytest.raises(ParameterError, match="Did you mean 'clip'"):
        check_names(PublicationChoices(stimuli=("clipp",)), KEYS)


@pytest.mark.parametrize(
    "name",
    [
        "2021-08-19",
        "rec_20210819",
        "19.08.2021",
        "trip 16:25",
        "1629390345",
        "1629390345123456789",
        "a@b.de",
        "C:\\data",
        "home/anna",
        "for-anna",
    ],
)
def test_dates_clocks_paths_and_people_are_recognised_in_names(name: str) -> None:
    assert tells(name, {"anna"})


@pytest.mark.parametrize("name", ["golf", "video_07", "1", "bridge_1", "n_back-2", "IMG1003.png"])
def test_usual_names_of_stimuli_pass(name: str) -> None:
    assert not tells(name, {"anna", "1", "07"})


def test_the_key_is_for_its_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    names, key = named(), tmp_path / "keys" / "key.json"
    write_key(key, names)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert read_key(key) == names
    with pytest.raises(DataError, match="never overwritten"):
        write_key(key, named())
    with pytest.raises(DataError, match="never overwritten"):
        check_key_file(key, tmp_path / "out")
    with pytest.raises(DataError, match="inside the release"):
        check_key_file(tmp_path / "out" / "deep" / "key.json", tmp_path / "out")
    (tmp_path / "other.json").write_text('{"format": "gazeveil-pseudonym-key"}')
    with pytest.raises(FormatError, match="not a key of pseudonyms"):
        read_key(tmp_path / "other.json")


def test_the_key_gives_a_copy_its_names_back(tmp_path: Path) -> None:
    raw = simulate(2, 2, 1.0, 100.0, seed=1)
    names = public_names(raw.keys, PublicationChoices(), chance(1))
    public = Cohort(
        [
            r.with_(person=k[0], stimulus=k[1], session=k[2], task=k[3])
            for r in raw
            for k in [names.recordings[r.key]]
        ]
    )
    for copy in (public, read(public.write(tmp_path / "copy"))):
        back = raw_names(copy, names, raw.people)
        assert set(back.keys) == set(raw.keys)
        assert {r.key for r in back} == set(raw.keys)
        assert dict(back.people) == dict(raw.people)
    with pytest.raises(DataError, match="belongs to another release"):
        raw_names(raw, names, {})


def people(count: int) -> dict[str, dict[str, object]]:
    return {
        f"p{i}": {"Age": 20 + i, "sex": "fm"[i % 2], "handedness": "left", "ipd": 60.1 + i}
        for i in range(count)
    }


def smallest_group(rows: dict[str, dict[str, object]], everybody: int) -> int:
    sizes = Counter(tuple(sorted(map(str, row.items()))) for row in rows.values())
    without = everybody - len(rows)
    return min([*sizes.values(), *([without] if without else [])])


def test_age_and_gender_go_out_in_groups_and_nothing_else() -> None:
    table = people_table(people(12), PublicationChoices(k=4))
    rows = {p: dict(r) for p, r in table.rows.items()}
    assert {n for r in rows.values() for n in r} == {"age", "gender"}
    assert smallest_group(rows, 12) >= 4
    assert table.guarantee is not None
    assert table.guarantee.k == 4
    assert "Not published about people: handedness, ipd." in table.notes


@pytest.mark.parametrize("lacking", [1, 2, 3, 4, 6])
def test_people_without_an_attribute_do_not_stand_out(lacking: int) -> None:
    known = people(12)
    for i in range(lacking):
        del known[f"p{i}"]["sex"]
    table = people_table(known, PublicationChoices(k=4))
    rows = {p: dict(r) for p, r in table.rows.items()}
    assert smallest_group(rows, 12) >= 4
    names = {n for r in rows.values() for n in r}
    # Fewer than k gaps would single people out, so the attribute is left out for all.
    assert names == ({"age"} if lacking < 4 else {"age", "gender"})


def test_too_few_people_have_no_table_and_that_is_said() -> None:
    table = people_table(people(3), PublicationChoices(k=4))
    assert not table.rows
    assert table.guarantee is None
    assert any("because 3 people have them" in note for note in table.notes)
    assert people_table({"p": {}}, PublicationChoices()).rows == {}


def test_what_is_kept_goes_out_as_it_is() -> None:
    whole = people_table(people(5), PublicationChoices(("attributes",)))
    assert {p: dict(r) for p, r in whole.rows.items()} == people(5)
    assert whole.guarantee is None
    one = people_table(people(8), PublicationChoices(("handedness",)))
    assert {r["handedness"] for r in one.rows.values()} == {"left"}
    assert one.kept == ("handedness",)
    exact = people_table(people(8), PublicationChoices(("Age",)))
    assert exact.rows["p3"]["Age"] == 23
    assert "age" not in exact.rows["p3"]
