"""Sessions are what the experiment did: a person's first and second viewing, in every family of
readers, so that a group mechanism finds several people in each cell.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import gazeveil
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.io.bids import write as bids
from tests.io.test_vendors_made import LAB_COLUMNS, SMI_HEADER, START, write

SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)
PEOPLE = ("p01", "p02", "p03")
ROWS = 240


def places(person: str, viewing: int) -> list[tuple[int, int, int]]:
    """Milliseconds and pixels: fixations of 0.4 s with jumps between them."""
    shift = 40 * PEOPLE.index(person) + 15 * viewing
    return [(10 * i, 500 + shift + 200 * (i // 40 % 3), 500 + i % 2) for i in range(ROWS)]


def tobii(folder: Path) -> None:
    """One export; recordings are numbered over people."""
    rows = [
        f"{1000 * ms}\tEye Tracker\t{person}\tRecording{2 * number + viewing + 1}\t1920\t1080\t\t"
        f"\t{x}\t{y}\t{x}\t{y}\t3\t3\tValid\tValid\tsea\tFixation"
        for number, person in enumerate(PEOPLE)
        for viewing in (0, 1)
        for ms, x, y in places(person, viewing)
    ]
    write(folder / "export.tsv", "\n".join([LAB_COLUMNS, *rows]) + "\n")


def neon(folder: Path) -> None:
    """A folder per wearer, with two recordings in one file."""
    head = "section id,recording id,timestamp [ns],gaze x [px],gaze y [px],worn,azimuth [deg]"
    for person in PEOPLE:
        rows = [
            f"s,{person}-{viewing}-uuid,{10**9 * (1 + 9 * viewing) + ms * 10**6},{x},{y},1,"
            f"{x / 40},{y / 40}"
            for viewing in (0, 1)
            for ms, x, y in places(person, viewing)
        ]
        write(folder / person / "sea" / "gaze.csv", f"{head},elevation [deg]\n" + "\n".join(rows))
        write(folder / person / "sea" / "info.json", json.dumps({"wearer_name": person}))
        write(folder / person / "sea" / "3d_eye_states.csv", "recording id,timestamp [ns]\n")


def smi(folder: Path) -> None:
    head = "Time\tType\tTrial\tL POR X [px]\tL POR Y [px]\tR POR X [px]\tR POR Y [px]\n"
    for person in PEOPLE:
        body = "".join(
            f"{9_000_000 * viewing}\tMSG\t{viewing + 1}\t# Message: sea.jpg\n"
            + "".join(
                f"{9_000_000 * viewing + 1000 * ms}\tSMP\t{viewing + 1}\t{x}\t{y}\t{x}\t{y}\n"
                for ms, x, y in places(person, viewing)
            )
            for viewing in (0, 1)
        )
        write(folder / f"{person}.txt", SMI_HEADER.replace("P07", person) + head + body)


def eyelink(folder: Path) -> None:
    for person in PEOPLE:
        body = START.format(t=0)
        for viewing in (0, 1):
            body += f"MSG\t{9000 * viewing} TRIALID sea\n"
            body += "".join(
                f"{9000 * viewing + ms}\t {x}\t {y}\t 400\t 0\t 0\t 40\t 40\t 1\t...\n"
                for ms, x, y in places(person, viewing)
            )
        write(folder / f"{person}.asc", body + "END\t19000 \tSAMPLES\n")


def table(folder: Path) -> None:
    """One CSV file; trials are numbered over people."""
    rows = [
        f"{person},sea,{2 * number + viewing},{ms},{x},{y}"
        for number, person in enumerate(PEOPLE)
        for viewing in (0, 1)
        for ms, x, y in places(person, viewing)
    ]
    write(folder / "all.csv", "person,stimulus,trial,t_ms,x_px,y_px\n" + "\n".join(rows))


def dated(folder: Path) -> None:
    """A CSV file per viewing; each person came on other days."""
    for number, person in enumerate(PEOPLE):
        for viewing in (0, 1):
            day = f"2021-03-{number + 10 * viewing + 1:02d}"
            rows = (f"{ms},{x},{y}" for ms, x, y in places(person, viewing))
            write(folder / f"{person}_sea_{day}.csv", "t_ms,x_px,y_px\n" + "\n".join(rows))


def named(folder: Path) -> None:
    """Sessions that the experiment names: a column called session."""
    rows = [
        f"{person},sea,{day},{ms},{x},{y}"
        for person in PEOPLE
        for viewing, day in enumerate(("before", "after"))
        for ms, x, y in places(person, viewing)
    ]
    write(folder / "all.csv", "person,stimulus,session,t_ms,x_px,y_px\n" + "\n".join(rows))


def in_bids(folder: Path) -> None:
    """Sessions that the experiment names: `ses-`."""
    named(folder / "raw")
    cohort = gazeveil.read(folder / "raw", screen=SCREEN, y_axis="down")
    bids.write(Cohort(list(cohort), name="study"), folder / "bids")
    for path in (folder / "bids").rglob("*.json"):  # as another tool would have written it
        about = json.loads(path.read_text("utf-8"))
        about.pop("Gazeveil", None)
        path.write_text(json.dumps(about), "utf-8")


FAMILIES: dict[str, tuple[Callable[[Path], None], str, set[str]]] = {
    "tobii": (tobii, "tobii-tsv", {"1", "2"}),
    "neon": (neon, "pupil-neon", {"1", "2"}),
    "smi": (smi, "smi", {"1", "2"}),
    "eyelink": (eyelink, "eyelink-asc", {"1", "2"}),
    "trials of a table": (table, "csv", {"1", "1.2"}),
    "dates in names": (dated, "csv", {"1", "2"}),
    "a column called session": (named, "csv", {"before", "after"}),
    "BIDS": (in_bids, "bids", {"before", "after"}),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_people_share_the_cells_of_their_first_and_second_viewing(
    tmp_path: Path, family: str
) -> None:
    make, name, sessions = FAMILIES[family]
    make(tmp_path)
    place = tmp_path / "bids" if name == "bids" else tmp_path
    options = {} if name in ("pupil-neon", "smi", "bids") else {"screen": SCREEN}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = {"y_axis": "down"} if name == "csv" else {}
        cohort = gazeveil.read(place, format=name, **options, **more)
        recordings = list(cohort)
    cells = Counter((r.stimulus, r.session, r.task) for r in recordings)
    assert set(cells.values()) == {3}
    assert {session for _, session, _ in cells} == sessions
    assert {r.person for r in recordings} == set(PEOPLE)
    mechanism = gazeveil.mechanism("k-same-synth:k=2,detector=ivt,reading=corrected")
    release = mechanism.release(Cohort(recordings), seed=1)
    assert len(release.data) == 6
    if family in ("tobii", "neon"):  # the name of the recording is not lost
        assert len({r.metadata["recording"] for r in recordings}) == 6
