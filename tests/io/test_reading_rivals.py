"""Where a file or its path can be read in two ways, reading asks: people that would merge or split,
columns that fit one role, rows of several recordings, and what is lost.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

import gazeveil
from tests.io.test_reading_asks import SCREEN, Reading, plain

# --- paths

# Files, the people that they may be, and those that are taken.
PATHS: dict[str, tuple[list[str], str, int]] = {
    "sessions behind numbers": (["{a}_S{b}.csv"], "101|102 1|2", 4),
    "sessions in numbers": (["{a}/S{b}.csv"], "101|102 1|2", 2),
    "pages behind numbers": (["{a}_P{b}.csv"], "101|102 1|2", 4),
    "parts behind numbers": (["{a}_part{b}.csv"], "101|102 1|2", 4),
    "scenes behind codes": (["{a}_S0{b}.csv"], "AB12|MK07 1|2", 4),
    "scenes before names": (["S0{b}_{a}.csv"], "anna|ben 1|2", 2),
    "pictures before names": (["p0{b}_{a}.csv"], "anna|ben 1|2", 2),
    "scenes above names": (["S0{b}/{a}.csv"], "anna|ben 1|2", 2),
    "ids below codes": (["{a}/id{b}.csv"], "x1|y2 1|2", 2),
    "units behind numbers": (["{a}_u{b}.csv"], "201|202 1|2", 4),
    "groups": (["Gruppe {a}/VP0{b}.csv"], "A|B 1|2", 2),
    "years": (["{a}/VP0{b}.csv"], "2023|2024 1|2", 2),
    "sites": (["site{a}/sub-0{b}.csv"], "1|2 1|2", 2),
    "schools": (["学校{a}/被试0{b}.csv"], "甲|乙 1|2", 2),
    "pairs": (["P0{a}_{b}.csv"], "1|2 A|B", 2),
    "groups of three": (["P0{a}/{b}.csv"], "1|2 1|2|3", 2),
    "persons in folders": (["p0{a}/{b}.csv"], "1|2 sea|city", 2),
    "conditions": (["{a}/sub-0{b}.csv"], "easy|hard 1|2", 2),
}
JOINED = {
    "groups": "'Gruppe A_VP01'",
    "years": "'2023_VP01'",
    "sites": "'site1_sub-01'",
    "schools": "'学校甲_被试01'",
    "pairs": "'P01_A'",
    "groups of three": "'P01_1'",
}


@pytest.mark.parametrize("name", PATHS)
def test_a_part_of_a_path_with_a_rival_is_asked_about(tmp_path: Path, name: str) -> None:
    (form,), words, people = PATHS[name]
    first, second = (w.split("|") for w in words.split())
    for number, (a, b) in enumerate(product(first, second)):
        plain(tmp_path / form.format(a=a, b=b), number, 40)
    found = Reading.of(tmp_path, screen=SCREEN, y_axis="down")
    assert found.cohort is not None
    assert len(found.cohort.people) == people
    (doubt,) = (d for d in found.cohort.doubts if d.topic == "person")
    assert found.asks("may also mean pattern=", "Say the right pattern=")
    assert len(doubt.remedy.splitlines()) > 1
    assert JOINED.get(name, "") in doubt.remedy


def test_parts_of_a_path_can_be_joined_to_a_person(tmp_path: Path) -> None:
    for number, (site, person) in enumerate(product((1, 2), (1, 2, 3))):
        plain(tmp_path / f"site{site}" / f"sub-0{person}.csv", number, 40)
    options = {"screen": SCREEN, "y_axis": "down", "pattern": "{person}/{person}.csv"}
    cohort = gazeveil.read(tmp_path, **options)  # type: ignore[arg-type]
    assert len(cohort.people) == 6
    assert cohort[0].person == "site1_sub-01"


def test_two_files_that_may_be_one_person_get_the_option_that_says_so(tmp_path: Path) -> None:
    for number, name in enumerate(("anna", "ben")):
        plain(tmp_path / f"{name}.csv", number, 40)
    found = Reading.of(tmp_path, screen=SCREEN, y_axis="down")
    assert found.asks("a person of its own", "one person, which person= says")


def test_people_whose_numbers_differ_in_zeros_are_asked_about(tmp_path: Path) -> None:
    for number, name in enumerate(("1", "01", "1.0", "10")):
        path = plain(tmp_path / f"f{number}.csv", number, 40)
        head, *rows = path.read_text("utf-8").splitlines()
        lines = [f"participant,{head}", *(f"{name},{row}" for row in rows)]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    found = Reading.of(tmp_path, screen=SCREEN, y_axis="down")
    assert found.asks("The people '1' and '01' and '1.0' differ in case, blanks, zeros")
