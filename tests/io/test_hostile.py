"""Files and folders that no tracker wrote: each ends in a documented result or one sentence, never
in a hang, a loss or a traceback.

What a hostile reader of the promises tries first: each of these once broke one, or would.
"""

from __future__ import annotations

import gzip
import json
import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gazeveil
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io import source
from gazeveil.privacy.conformance import content, sample_data
from gazeveil.privacy.noise.exact import TAIL_DELTA, draw_laplace_size, tail_delta
from gazeveil.privacy.randomness.rng import ASSUMPTION, draw_below
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.tables.recordings import STEPS, lattice, sequences
from gazeveil.privacy.tables.spectrum import bits_for, coefficients, grid_l1, grid_l2

CSV = "t_ms,x_deg,y_deg\n0,-1.0,2.0\n10,1.1,2.1\n20,,\n30,1.2,2.0\n"
TWO_EYES = "t_ms,left_x_deg,left_y_deg,right_x_deg,right_y_deg\n"
ASC = (
    "** CONVERTED FROM x using edfapi\nSTART\t1"
    " \tLEFT\tSAMPLES\tEVENTS\nSAMPLES\tGAZE\tLEFT\tRATE\t {rate}\tTRACKING\tCR\n{rows}"
)
SCREEN = gazeveil.Screen(1920, 1080, 531.0, 299.0, 650.0)


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def reasons(cohort: gazeveil.Cohort) -> dict[str, str]:
    return {Path(s.path).name: s.reason for s in cohort.skipped}


# --- folders
# --------------------------------------------------------------------------------------------------


def test_links_to_folders_are_followed_once_and_loops_end(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere" / "b.csv", CSV)
    root = tmp_path / "root"
    put(root / "anna" / "a.csv", CSV)
    (root / "anna" / "up").symlink_to(root)
    (root / "again").symlink_to(root / "anna")
    (root / "bert").symlink_to(tmp_path / "elsewhere")
    (root / "above").symlink_to(tmp_path)
    (root / "gone.csv").symlink_to(tmp_path / "nothing")
    cohort = gazeveil.read(root)
    assert sorted(cohort.people) == ["anna", "bert"]
    assert sum(len(r) for r in cohort) == 8
    assert reasons(cohort)["gone.csv"] == "a link that leads nowhere"
    assert (
        reasons(cohort)["up"]
        == reasons(cohort)["again"]
        == "a link to a folder that is read in its own place"
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", CSV)
    os.mkfifo(tmp_path / "b.csv")
    assert reasons(gazeveil.read(tmp_path)) == {"b.csv": "not a regular file"}
    with pytest.raises(FormatError, match=r"b\.csv: it is not a regular file\. Save its content"):
        gazeveil.read(tmp_path / "b.csv")


def test_files_that_lie_in_a_canonical_folder_without_being_in_its_index_are_listed(
    tmp_path: Path,
) -> None:
    gazeveil.simulate(1, 2, 1.0, 60.0, seed=1).write(tmp_path / "c")
    assert reasons(gazeveil.read(tmp_path / "c")) == {}
    first = tmp_path / "c" / "recordings" / "000001.parquet"
    put(first.with_name("000009.parquet"), first.read_bytes())
    put(tmp_path / "c" / "notes.txt", "hello")
    cohort = gazeveil.read(tmp_path / "c")
    assert len(cohort) == 2
    assert reasons(cohort) == dict.fromkeys(
        ["000009.parquet", "notes.txt"], "not part of the parquet folder"
    )


def test_what_a_folder_leaves_out_says_why(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", CSV)
    put(tmp_path / "b.csv", "")
    put(tmp_path / "c.EDF", b"SR_RESEARCH_COMBINED_FILE_FORMAT\0\0\1")
    put(tmp_path / "d.zip", b"PK\x03\x04....")
    found = reasons(gazeveil.read(tmp_path))
    assert found["b.csv"] == "the file is empty"
    assert "edf" in found["c.EDF"]  # with eyelinkio it is a known format, not csv
    assert "Unpack it" in found["d.zip"]


@pytest.mark.parametrize("options", [{}, {"format": "eyelink-asc"}])
@pytest.mark.parametrize("name", ["e.edf", "e.EDF.gz"])
def test_edf_names_its_converter_alone_and_in_a_folder(
    tmp_path: Path, name: str, options: dict[str, str]
) -> None:
    data = b"SR_RESEARCH_COMBINED_FILE_FORMAT\0\0\1\2"
    path = put(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)
    for place in (path, tmp_path):
        with pytest.raises(FormatError, match="edf2asc") as caught:
            gazeveil.read(place, **options)  # type: ignore[arg-type]
        assert str(path) in str(caught.value)


def test_a_file_of_webqamgaze_does_not_open_its_neighbours(tmp_path: Path) -> None:
    one = {
        "worker_id": "w1",
        "screen_x": 800,
        "screen_y": 600,
        "age": 30,
        "samples_x_y_ms": {"t": [[1, 2, 0], [1, 2, 33]]},
    }
    path = put(tmp_path / "a.json", json.dumps(one))
    put(tmp_path / "b.json", json.dumps(one)[:-9])
    assert len(gazeveil.read(path, format="webqamgaze")) == 1


# --- archives
# --------------------------------------------------------------------------------------------------


def test_an_archive_that_unzips_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "RATIO_FROM_BYTES", 1 << 20)
    monkeypatch.setattr(source, "_PIECE_BYTES", 1 << 16)
    path = put(tmp_path / "a.csv.gz", gzip.compress(CSV.encode() + b"40,1.0,2.0\n" * 400_000))
    with pytest.raises(FormatError, match=r"a\.csv\.gz: it unzips to more than 200 times its size"):
        list(gazeveil.read(path))


@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_beyond_the_limit_is_refused_before_it_is_parsed(
    tmp_path: Path, zipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Plain tables are read in blocks and have no such limit.
    header = "@RELATION g\n@ATTRIBUTE time NUMERIC\n@ATTRIBUTE x NUMERIC\n@ATTRIBUTE y NUMERIC\n"
    for name, value in (("width", 400), ("height", 225)):
        header += f"%@METADATA {name}_px 1280\n%@METADATA {name}_mm {value}\n"
    rows = "".join(f"{4000 * i},640,{360 + i}\n" for i in range(54))
    text = (header + "%@METADATA distance_mm 450\n@DATA\n" + rows).encode()
    path = put(
        tmp_path / ("a.arff.gz" if zipped else "a.arff"), gzip.compress(text) if zipped else text
    )
    monkeypatch.setattr(source, "MOST_BYTES", len(text) - 1)
    with pytest.raises(
        FormatError, match=r"Split it by person or stimulus, or convert it to Parquet"
    ):
        list(gazeveil.read(path))
    monkeypatch.setattr(source, "MOST_BYTES", len(text))
    assert len(gazeveil.read(path)[0]) == 54


# --- numbers
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["screen", "sphere"])
def test_pixels_declared_as_degrees_are_refused_in_single_eyes_too(
    tmp_path: Path, space: str
) -> None:
    path = put(
        tmp_path / "a.csv",
        TWO_EYES + "".join(f"{i},{900 + i},{500 + i},{910 + i},{500 + i}\n" for i in range(20)),
    )
    with pytest.raises(FormatError, match=r"gaze runs from 900 to 919 .* which cannot be degrees"):
        list(gazeveil.read(path, space=space))


def test_single_eyes_wrap_as_the_line_of_sight_does_and_a_stray_value_is_counted(
    tmp_path: Path,
) -> None:
    rows = [f"{i},{i - 5},90,{i - 3},90" for i in range(40)]
    rows[7] = "7,5000,90,4,90"
    (r,) = gazeveil.read(put(tmp_path / "a.csv", TWO_EYES + "\n".join(rows) + "\n"), space="sphere")
    assert r.valid.all()
    assert r.left_deg[0, 0] == 355
    np.testing.assert_allclose(r.x_deg[:3], [356, 357, 358])
    assert np.isnan(r.left_deg[7]).all()
    assert r.x_deg[7] == 4
    assert r.metadata["impossible"] == 1


HEADSET = (
    "ViewIndex,QuaternionX,QuaternionY,QuaternionZ,QuaternionW,GazeQX,GazeQY,GazeQZ,GazeQW,"
    "timestep\n"
    "0,0,0,0,1,0,0.1,0,0.99,0\n1,0,0,0,1,0,0.1,0,0.99,1\n0,0,0,0,1,0,0.1,0,0.99,{t}\n"
)


@pytest.mark.parametrize("t", ["1763000000000000000", "99999999999999999999999", "1e300"])
def test_times_beyond_64_bits_are_refused_by_line(tmp_path: Path, t: str) -> None:
    path = put(tmp_path / "room" / "u_room.csv", HEADSET.format(t=t))
    with pytest.raises(
        FormatError, match=r"line 4: '.*' in column 'timestep' is too large for a time in ms"
    ):
        list(gazeveil.read(path))


@pytest.mark.parametrize(
    ("rate", "rows", "message"),
    [
        (
            "100.00",
            "99999999999999999999\t960\t540\t500\n",
            "line 4: '99999999999999999999' is too large for a time in ms",
        ),
        (
            "100.00",
            "1\t960\t540\t500\nEFIX L 1 inf 5 960 540 500\n",
            "line 5: the EFIX line has no times",
        ),
        (
            "100.00",
            "1\t960\t540\t500\nEFIX L 1 1e300 5 960 540 500\n",
            "line 5: the EFIX line has a time that is too large",
        ),
    ],
)
def test_eyelink_times_that_are_none(tmp_path: Path, rate: str, rows: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        list(
            gazeveil.read(put(tmp_path / "a.asc", ASC.format(rate=rate, rows=rows)), screen=SCREEN)
        )


@pytest.mark.parametrize("rate", ["-100.00", "0", "fast", "inf"])
def test_an_eyelink_rate_that_is_none_is_measured_instead(tmp_path: Path, rate: str) -> None:
    rows = "".join(f"{i}\t960\t540\t500\n" for i in range(0, 200, 4))
    (r,) = gazeveil.read(put(tmp_path / "a.asc", ASC.format(rate=rate, rows=rows)), screen=SCREEN)
    assert r.rate_hz == 250


def test_eyelink_lines_of_no_known_kind_are_counted_and_a_file_of_them_refused(
    tmp_path: Path,
) -> None:
    rows = "1\t960\t540\t500\nwhat is this\n2\t960\t540\t500\n# a comment\n"
    (r,) = gazeveil.read(
        put(tmp_path / "a.asc", ASC.format(rate="1000.00", rows=rows)), screen=SCREEN
    )
    assert len(r) == 2
    assert r.metadata["lines_not_understood"] == 2
    with pytest.raises(FormatError, match="it holds no EyeLink lines"):
        gazeveil.read(put(tmp_path / "b.asc", bytes(500)), format="eyelink-asc", screen=SCREEN)


def test_a_pattern_for_trials_that_fits_nothing_is_not_ignored(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.asc",
        ASC.format(rate="1000.00", rows="MSG\t1 stim_on cat\n1\t960\t540\t500\n"),
    )
    assert gazeveil.read(path, screen=SCREEN, trials=r"stim_on (\S+)").stimuli == ("cat",)
    with pytest.raises(
        FormatError,
        match=(
            r"no message fits trials='stimon' \(the last messages: stim_on cat\)\. Mend the pattern"
        ),
    ):
        gazeveil.read(path, screen=SCREEN, trials="stimon")


@pytest.mark.parametrize("timestamp", ["NaN", "Infinity", "1" + "0" * 400, "true and more"])
def test_glasses_3_timestamps_that_are_none(tmp_path: Path, timestamp: str) -> None:
    path = put(
        tmp_path / "r" / "gazedata", '{"type":"gaze","timestamp":' + timestamp + ',"data":{}}\n'
    )
    with pytest.raises(FormatError, match=r"line 1: the line (has no timestamp|is not JSON)"):
        list(gazeveil.read(path))


def test_salient360_rows_with_and_without_a_duration_share_a_file(tmp_path: Path) -> None:
    text = "Idx, longitude, latitude, start timestamp, duration\n0,0.5,0.5,0.1,0.2\n1,0.5,0.6,0.4\n"
    (r,) = gazeveil.read(put(tmp_path / "a.txt", text), format="salient360")
    assert r.events.duration_s.tolist() == [0.2, 0.0]


# --- sentences
# --------------------------------------------------------------------------------------------------


def test_what_a_recording_refuses_is_told_with_its_file(tmp_path: Path) -> None:
    gazeveil.simulate(1, 1, 1.0, 60.0, seed=1).write(tmp_path / "c")
    path = next((tmp_path / "c" / "recordings").glob("000001.parquet"))
    import polars as pl

    frame, note = pl.read_parquet(path), pl.read_parquet_metadata(path)["gazeveil"]
    frame.with_columns(t_ns=pl.lit(5, dtype=pl.Int64)).write_parquet(
        path, metadata={"gazeveil": note}
    )
    with pytest.raises(
        FormatError,
        match=(
            r"000001\.parquet: Times of valid samples must increase.* Mend the file or leave it"
            r" out\."
        ),
    ):
        list(gazeveil.read(tmp_path / "c"))


def test_a_message_shows_no_control_characters_and_is_no_page_long(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b"a\0" * 3000 + b",b,c\n1,2,3\n")
    with pytest.raises(FormatError) as caught:
        gazeveil.read(path, format="csv")
    assert len(str(caught.value).replace(str(path), "")) < 400
    assert str(caught.value).isprintable()


# --- counts in = counts out + counted losses
# ---------------------------------------------------------------------------------------


# Mostly gaze, so that a stray value now and then is not taken for another unit.
CELLS = st.sampled_from([*["-1.5", "0", "7.25", "3e1"] * 5, "", "nan", "inf", "400", "-9999"])


@given(
    rows=st.lists(st.tuples(st.integers(-5, 60), CELLS, CELLS), max_size=60),
    newline=st.sampled_from(["\n", "\r\n"]),
    noise=st.booleans(),
)
def test_every_row_of_any_table_is_a_sample_valid_or_counted_as_lost(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, str, str]],
    newline: str,
    noise: bool,
) -> None:
    lines = ["t_ms,x_deg,y_deg", *(f"{t},{x},{y}" for t, x, y in rows)]
    if noise:
        lines = [part for line in lines for part in (line, "# a comment", "")]
    path = put(tmp_path_factory.mktemp("any") / "a.csv", newline.join(lines) + newline)
    there = [xy for _, *xy in rows if not {"", "nan", "inf"} & set(xy)]
    strange = [xy for xy in there if {"400", "-9999"} & set(xy)]
    if len(strange) > 0.05 * len(there):
        with pytest.raises(FormatError, match="cannot be degrees"):
            list(gazeveil.read(path, space="screen"))
        return
    (r,) = gazeveil.read(path, space="screen")
    assert len(r) == r.counts["rows"] == len(rows)
    assert r.t_ns.tolist() == [1_000_000 * t for t, _, _ in rows]
    impossible, faults = r.metadata.get("impossible", 0), r.metadata.get("time_faults", 0)
    assert impossible == len(strange)
    assert len(rows) == int(r.valid.sum()) + (len(rows) - len(there)) + impossible + faults


NOISY = [
    "lpa:epsilon=1",
    "fpa:epsilon=1",
    "cfpa:epsilon=1,chunk=16",
    "dcfpa:epsilon=1,chunk=16",
    "dct-knorm:epsilon=1",
    "exponential-dp:epsilon=1",
    "dp-k-same:k=3,epsilon=1",
    "marginals:k=3",
]
MAPS = ["heatmap-laplace:epsilon=1", "heatmap-gaussian:rho=1"]


def of(values: Any, bounds: list[list[float]]) -> FeatureTable:
    """The kit's table with other values in all cells of each feature, and other bounds."""
    table = sample_data("table")
    return FeatureTable(
        np.broadcast_to(values, table.values.shape), table.columns, table.keys, bounds
    )


@pytest.mark.parametrize("text", [*NOISY, *MAPS])
def test_a_promise_of_noise_says_where_its_bits_come_from(text: str) -> None:
    m = mechanism(text if text in MAPS else f"{text},length=8")
    promise = m.release(sample_data(m.kind)).guarantee
    assert promise.status == "proved"
    assert ASSUMPTION in promise.assumptions
    assert m.release(sample_data(m.kind), seed=0).guarantee.status == "claimed"


@pytest.mark.parametrize("text", NOISY)
def test_a_promise_about_a_table_says_what_must_not_come_from_the_data(text: str) -> None:
    promise = mechanism(text).release(sample_data("table")).guarantee
    told = str(promise)
    assert "the parameters of the mechanism are public and were not taken from this data" in told
    assert promise.status == "claimed"
    assert "is derived from the data" in told


@pytest.mark.parametrize("bounds", [[0.0, 5e-324], [-1.7e308, 1.7e308]])
@pytest.mark.parametrize("text", NOISY)
def test_bounds_without_a_step_between_them_are_refused(text: str, bounds: list[float]) -> None:
    # 0/0 and infinity/infinity would become any whole number, and the noise is made for those from
    # 0 to 65536.
    with pytest.raises(
        DataError,
        match=r"bounds of 'b' are too close together or too far apart.*Nothing was released",
    ):
        mechanism(text).release(of(0.0, [[0.0, 1.0], bounds, [0.0, 1.0]]))


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 5e-324, 0.0, np.nan])
@pytest.mark.parametrize(
    "bounds", [[0.0, 1.0], [-1e-300, 1e-300], [-8e307, 8e307], [1e16, 1e16 + 2]]
)
def test_any_value_becomes_a_whole_number_within_the_steps(
    value: float, bounds: list[float]
) -> None:
    grid = lattice("x", sequences("x", of(value, [bounds] * 3)), None)
    assert grid.values.min() >= 0
    assert grid.values.max() <= STEPS
    assert np.isfinite(grid.real(grid.values)).all()


def test_finite_arithmetic_costs_more_where_epsilon_is_huge() -> None:
    assert tail_delta(Fraction(100), 7) == 7 * TAIL_DELTA
    assert TAIL_DELTA < tail_delta(Fraction(200), 1) < Fraction(1, 10**200)
    assert tail_delta(Fraction(1000), 1) == 1
    huge = mechanism("fpa:epsilon=1000,k=1").release(sample_data("table")).guarantee
    assert huge.delta_num == 1
    assert "adds at most 1 to delta" in str(huge)
    assert mechanism("dct-knorm:epsilon=100000,D=1,profile=staircase").release(
        sample_data("table")
    ).guarantee.delta_num < Fraction(1, 10**20)


@pytest.mark.parametrize("text", [*NOISY, "k-same-select:k=3"])
def test_what_the_curator_is_told_is_nowhere_in_the_release(text: str) -> None:
    m, table = mechanism(text), sample_data("table")
    values = table.values.copy()
    values[:17, 0], values[20:33, 1] = 99.0, np.nan
    changed = FeatureTable(values, table.columns, table.keys, table.bounds)
    plain, told = m.release(table), m.release(changed)
    assert told.curator_notes["clamped"] > plain.curator_notes["clamped"]
    assert told.provenance == plain.provenance
    assert told.guarantee == plain.guarantee
    assert told.data.counts == plain.data.counts == {}
    assert "curator" not in repr(told)


@pytest.mark.parametrize("text", NOISY)
@pytest.mark.parametrize("values", [0.25, np.nan, 99.0])
def test_constant_missing_and_outside_values_are_released_with_noise_all_the_same(
    text: str, values: float
) -> None:
    one, two = (mechanism(text).release(of(values, [[0.0, 1.0]] * 3)).data.values for _ in range(2))
    assert np.isfinite(one).all()
    assert (one != two).any()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (t.replace("epsilon=1", "epsilon=1e-30"), "epsilon")
        for t in [*NOISY[:-1], "marginals:k=3,epsilon=1", MAPS[0]]
    ]
    + [("heatmap-gaussian:rho=1e-30", "rho")],
)
def test_a_budget_too_small_for_any_noise_is_refused_by_the_name_it_was_given(
    text: str, name: str
) -> None:
    m = mechanism(text)
    with pytest.raises(ParameterError, match=f"'{name}' parameter of {m.name} must be"):
        m.release(sample_data(m.kind))


# --- what integers add to a sensitivity
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("n", [3, 40, 100])
def test_rounding_the_transform_to_whole_numbers_is_paid_for(norm: int, n: int) -> None:
    # Rows whose entries are all rounded up; with an epsilon so large that the grid is as fine as it
    # gets.
    d, bits = 5, bits_for(n)
    third = Fraction(1 if bits % 2 else 2, 3)
    assert round(third * 2**bits) > third * 2**bits
    ends = np.stack((np.zeros(n), np.full(n, STEPS)), axis=1).astype(np.int64)
    whole = coefficients(np.full((d, n), float(third)), ends)
    moved = np.abs(whole[:, 1] - whole[:, 0]).astype(object)
    each = third * n * STEPS
    ideal = math.ceil((d * each) ** 2 if norm == 1 else d * each**2)
    grid = (grid_l1 if norm == 1 else grid_l2)(
        "x", n, d, ideal, n * STEPS, Fraction(10**6), 1 << 40
    )
    assert grid.shift == 0
    apart = sum(moved) ** 2 if norm == 1 else sum(m * m for m in moved)
    assert ideal << (2 * bits) < apart <= grid.sensitivity**2


@pytest.mark.parametrize("norm", [1, 2])
def test_rounding_coefficients_to_a_coarser_grid_is_paid_for(norm: int) -> None:
    # Every coefficient just below a half against just above: one step for next to nothing, in all
    # of them at once.
    n, d, epsilon = 64, 9, Fraction(1, 10**7)
    grid = (grid_l1 if norm == 1 else grid_l2)("x", n, d, n * STEPS**2, n * STEPS, epsilon, 1 << 40)
    assert grid.shift > 1
    root = 9 if norm == 1 else 3
    fine = (
        math.isqrt(n * STEPS**2 << (2 * grid.bits))
        + 1
        + (d if norm == 1 else math.isqrt(d) + 1) * n * STEPS
    )
    steps = fine // root >> grid.shift  # whole steps each coefficient may move, and one unit more
    high = np.full(d, (1 << grid.shift >> 1) + (steps << grid.shift), dtype=np.int64)
    low = np.full(d, (1 << grid.shift >> 1) - 1, dtype=np.int64)
    assert root * ((steps << grid.shift) + 1) <= fine, "the pair is one that neighbours may be"
    apart = root * int((grid.rounded(high) - grid.rounded(low))[0])
    assert -(-fine >> grid.shift) < apart <= grid.sensitivity


def test_a_person_moves_all_maps_together_by_no_more_than_the_noise_is_made_for() -> None:
    def viewer(person: str, stimulus: str, x_deg: float) -> Recording:
        return Recording(
            person,
            stimulus,
            np.arange(4) * 10**7,
            np.full(4, x_deg),
            np.full(4, 90.0),
            space=Sphere(),
            rate_hz=100.0,
        )

    pure, concentrated = (
        mechanism("heatmap-laplace:epsilon=1/2,rows=2,columns=4"),
        mechanism("heatmap-gaussian:rho=1/2,rows=2,columns=4"),
    )
    stimuli = ("a", "b", "c")
    others = [viewer("q", s, 10.0) for s in stimuli]
    sums = [
        pure._sums(Cohort([*others, *(viewer("p", s, x) for s in stimuli)])) for x in (100.0, 300.0)
    ]  # type: ignore[attr-defined]
    apart = np.stack([sums[0][s][1] - sums[1][s][1] for s in stimuli])
    # This person moves as much as anybody can: the promise is kept, and none of it is given away.
    scale_steps = pure.scale_steps(len(stimuli))  # type: ignore[attr-defined]
    assert Fraction(int(np.abs(apart).sum())) / scale_steps == Fraction(1, 2)
    sigma = concentrated.sigma_steps(len(stimuli))  # type: ignore[attr-defined]
    assert (
        Fraction(int((apart**2).sum()), 2 * (sigma - 1) ** 2)
        > Fraction(1, 2)
        >= Fraction(int((apart**2).sum()), 2 * sigma**2)
    )
    # And a release of several maps has noise of that scale.
    cohort = Cohort([*others, *(viewer("p", s, 100.0) for s in stimuli)])
    large = (
        mechanism("heatmap-laplace:epsilon=1/2,rows=100,columns=400,smooth_deg=0")
        .release(cohort, seed=1)
        .data
    )
    noise = np.concatenate([large[s].noisy.ravel() for s in stimuli])
    assert np.abs(noise).mean() == pytest.approx(2 * len(stimuli) / 0.5, rel=0.02)


# --- bits
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*NOISY, *MAPS, "k-same-select:k=3"])
def test_seed_zero_is_a_seed(text: str) -> None:
    m = mechanism(text)
    one, two = (m.release(sample_data(m.kind), seed=0) for _ in range(2))
    assert content(one.data) == content(two.data)
    assert one.provenance.seeded
    assert one.guarantee.status == "claimed"


@pytest.mark.parametrize(
    "m", [3, 5, 6, 7, 1000, 2**26 - 1, 3 * 2**40, 2**62 + 1, 3 * 2**62, 2**64 - 1]
)
def test_the_words_that_would_favour_some_numbers_are_thrown_away(m: int) -> None:
    # Word w gives floor(w m / 2**64) if w m mod 2**64 is at least 2**64 mod m: word 0 never, where
    # m does not divide 2**64.
    value, after = draw_below(np.uint64(m), np.array([0, 1], dtype=np.uint64), 0)
    assert (int(value), after) == (0, 2)
    assert draw_below(np.uint64(1 << 62), np.array([0, 1], dtype=np.uint64), 0) == (0, 1)


@pytest.mark.parametrize("t", [3, 1000, 2**26 - 1, 2**26 + 1, 3 * 2**38])
@pytest.mark.parametrize("favoured", [(0, 12345), (12345, 0), (0, 0)])
def test_a_geometric_number_throws_such_words_away_too(t: int, favoured: tuple[int, int]) -> None:
    # Below 2**26 two numbers share a word, beyond it each has its own.
    words = np.random.default_rng(3).integers(0, 2**64, 400, dtype=np.uint64)
    wasted = np.array([favoured[0] << 32 | favoured[1]] if t < 2**26 else favoured, dtype=np.uint64)
    size, bit, after = draw_laplace_size(np.uint64(t), np.uint64(1), words, 0)
    assert draw_laplace_size(np.uint64(t), np.uint64(1), np.concatenate((wasted, words)), 0) == (
        size,
        bit,
        after + len(wasted),
    )
