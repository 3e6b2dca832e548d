"""EyeLink ASC files whose traps cost samples or degrees; counts, pixels and resolution are those
that MNE-Python finds.

EyeLink EDF through eyelinkio: with its own example files where its library runs, and with what
it returns, made up here, everywhere.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.arrays import Floats
from gazeveil.errors import FormatError, MissingExtraError
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.table import stamp
from gazeveil.io.vendors.eyelink.asc import parse
from tests.support.recordings import real

FOLDER = ("vendor_samples", "eyelink_asc")
REAL = (
    "pymovements_eyelink_binocular_example.asc",
    "pymovements_eyelink_monocular_example.asc",
    "pymovements_eyelink_monocular_2khz_example.asc",
    "pymovements_eyelink_monocular_no_dummy_example.asc",
    "pymovements_raccoons.asc",
)

# A calibration of nine targets, 2000 px before the eye: HREF = 15000 px / 2000.
TARGETS = [(960, 540), (960, 92), (960, 988), (115, 540), (1805, 540)]
TARGETS += [(217, 146), (1703, 146), (217, 934), (1703, 934)]
PREAMBLE = (
    "** CONVERTED FROM x.edf using edfapi 4.2\n** DATE: Wed Mar  8 09:25:20 2023\n**\n\n"
    "MSG\t10 DISPLAY_COORDS 0 0 1919 1079\n"
)


def calibration(words: str, eye: str) -> str:
    lines = "MSG\t20 !CAL Calibration points:\n"
    for x, y in TARGETS:
        lines += f"MSG\t20 !CAL -1.0, -2.0   {7.5 * (x - 960):.0f},  {7.5 * (y - 540):.0f}\n"
    for i, (x, y) in enumerate(TARGETS):
        lines += (
            f"MSG\t30 VALIDATE {words} {i}  {eye}  at {x},{y}  OFFSET 0.48 deg.  2.7,7.9 pix.\n"
        )
    return lines


def block(
    rows: list[str],
    eyes: str = "RIGHT",
    options: str = "",
    rate: int = 1000,
    start: int = 1000,
    end: str = "",
) -> str:
    eyes, options = eyes.replace(" ", "\t"), options.replace(" ", "\t")
    last = rows[-1].split()[0]
    return (
        f"START\t{start} \t{eyes}\tSAMPLES\tEVENTS\nPRESCALER\t1\nVPRESCALER\t1\nPUPIL\tAREA\n"
        f"EVENTS\tGAZE\t{eyes}\tRATE\t{rate}.00\tTRACKING\tCR\tFILTER\t2\n"
        f"SAMPLES\tGAZE\t{eyes}\t{options}\tRATE\t{rate}.00\tTRACKING\tCR\tFILTER\t2\n".replace(
            "\t\t", "\t"
        )
        + "\n".join(rows)
        + f"\nEND\t{last} \tSAMPLES\tEVENTS\t{end}\n"
    )


def put(folder: Path, text: str) -> Path:
    path = folder / "p1.asc"
    path.write_text(text, encoding="utf-8")
    return path


def raw_of(path: Path) -> Any:
    mne = pytest.importorskip("mne", reason="MNE-Python is in the dev extra")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mne.io.read_raw_eyelink(path, create_annotations=True, verbose="error")


def one(path: Path, **options: object) -> Recording:
    (recording,) = gazeveil.read(path, format="eyelink-asc", **options)
    return recording


def centre_px_per_deg(screen: object) -> tuple[float, float]:
    across = screen.distance_mm * screen.width_px / screen.width_mm
    down = screen.distance_mm * screen.height_px / screen.height_mm
    return float(np.radians(across)), float(np.radians(down))


def pixels(recording: Recording, eye: str) -> Floats:
    degrees = getattr(recording, f"{eye}_deg")
    return np.stack(recording.space.to_px(degrees[:, 0], degrees[:, 1]), axis=1)


def walk(
    n: int, t0: float = 1000, step: float = 1.0, row: str = "{t}\t{x}\t{y}\t500.0\t..."
) -> list[str]:
    return [
        row.format(t=f"{t0 + i * step:g}", x=f"{900 + i}.0", y=f"{500 + i}.0") for i in range(n)
    ]


def assert_same_as_mne(path: Path, **options: object) -> None:
    """Rows, valid samples and pixels of each eye."""
    raw = raw_of(path)
    cohort = gazeveil.read(path, format="eyelink-asc", **options)
    rows = sum(len(r) for r in cohort)
    theirs = {c: raw.get_data([c])[0] for c in raw.ch_names if c.startswith(("xpos", "ypos"))}
    order = np.argsort(np.concatenate([r.t_ns for r in cohort]), kind="stable")
    for eye in {c.split("_")[1] for c in theirs}:
        ours = np.concatenate([pixels(r, eye) for r in cohort])[order]
        # MNE fills the time between blocks with samples of nothing.
        expected = np.stack([theirs[f"xpos_{eye}"], theirs[f"ypos_{eye}"]], axis=1)
        there = np.isfinite(expected).all(axis=1)
        found = np.isfinite(ours).all(axis=1)
        assert found.sum() == there.sum()
        if "shared_times" in cohort[0].metadata:
            # MNE's sorting by time may exchange two rows that share one.
            ours[found], expected[there] = np.sort(ours[found], 0), np.sort(expected[there], 0)
        np.testing.assert_allclose(ours[found], expected[there], atol=1e-6)
    assert rows <= raw.n_times


@pytest.mark.parametrize("name", REAL)
def test_real_files_have_the_samples_and_pixels_that_mne_finds(tmp_path: Path, name: str) -> None:
    text = real(*FOLDER, name).read_text("utf-8")
    if "\nEND" not in text:
        # Examples that were cut: MNE reads no block without an end.
        text += "\nEND\t999999999 \tSAMPLES\tEVENTS\tRES\t  1.0\t  1.0\n"
    assert_same_as_mne(put(tmp_path, text))


@pytest.mark.parametrize("name", REAL)
def test_real_files_have_the_events_that_their_lines_say(name: str) -> None:
    path = real(*FOLDER, name)
    lines = path.read_text("utf-8").splitlines()
    first = "R" if "\tRIGHT" in "".join(t for t in lines if t.startswith("SAMPLES")) else "L"
    first = "L" if any(t.startswith("SAMPLES") and "LEFT" in t for t in lines) else first
    words = {"EFIX": "fixation", "ESACC": "saccade", "EBLINK": "blink"}
    for key, kind in words.items():
        said = [t.split() for t in lines if t.startswith(f"{key} {first}")]
        events = [
            (e.onset_ns, e.offset_ns, r.t_ns)
            for r in gazeveil.read(path, format="eyelink-asc")
            if r.events is not None
            for e in r.events.of(kind)
        ]
        # An event whose samples the file does not hold is no event of a recording; one that two
        # trials share is cut in two.
        spans = [(float(t[2]) * 1e6, float(t[3]) * 1e6) for t in said]
        assert all(any(a <= on <= off <= b for a, b in spans) for on, off, _ in events)
        if name == REAL[-1]:
            assert len(events) == len(said) > 0


def test_events_carry_the_samples_the_times_and_the_places_of_the_lines(tmp_path: Path) -> None:
    rows = walk(40)
    rows[10] += "\nEFIX R   1002\t1009\t8\t 905.0\t 505.0\t 500"
    rows[30] += "\nEBLINK R 1015\t1018\t4\nESACC R  1012\t1022\t11\t1\t1\t2\t2\t1.0\t99"
    path = put(tmp_path, PREAMBLE + calibration("R 4POINT", "RIGHT") + block(rows))
    recording = one(path)
    events = recording.events
    assert events.source == "eyelink"
    assert events.kind.tolist() == ["fixation", "saccade", "blink"]
    assert events.onset.tolist() == [2, 12, 15]
    assert events.offset.tolist() == [9, 22, 18]
    assert events.onset_ns.tolist() == recording.t_ns[events.onset].tolist()
    assert events.x_deg[0] == pytest.approx(recording.space.from_px([905.0], [505.0])[0][0])
    assert np.isnan(events.x_deg[1])
    words = events.words(len(recording))
    assert words[15:19].tolist() == ["blink"] * 4
    assert not recording.valid[15:19].any()
    raw = raw_of(path)
    descriptions = [d for d in raw.annotations.description if d in ("fixation", "saccade")]
    assert len(descriptions) == 2


@pytest.mark.parametrize("row", ["{t}\t{x}\t{y}\t0.0\t...", "{t}\t{x}\t{y}\t..."])
def test_samples_without_pupil_data_are_not_lost(tmp_path: Path, row: str) -> None:
    rows = walk(50, row=row)
    rows[7] = rows[7].replace("907.0", ".").replace("507.0", ".")
    path = put(tmp_path, PREAMBLE + calibration("R 4POINT", "RIGHT") + block(rows))
    recording = one(path)
    assert recording.valid.sum() == 49
    assert recording.pupil is None
    assert "pupil_unit" not in recording.metadata
    if row.count("\t") == 4:  # MNE needs the column
        assert_same_as_mne(path)


def test_a_pupil_of_zero_is_a_lost_eye_where_pupils_were_measured(tmp_path: Path) -> None:
    rows = walk(20)
    rows[5] = rows[5].replace("500.0", "0.0")
    recording = one(put(tmp_path, PREAMBLE + calibration("R 4POINT", "RIGHT") + block(rows)))
    assert np.flatnonzero(~recording.valid).tolist() == [5]


def test_two_eyes_without_pupils_and_an_input_port(tmp_path: Path) -> None:
    rows = walk(40, row="{t}\t{x}\t{y}\t910.0\t510.0\t127.0\t.....")
    text = PREAMBLE + calibration("LR POINT", "LEFT") + block(rows, "LEFT RIGHT", "INPUT")
    recording = one(put(tmp_path, text))
    assert recording.valid.all()
    assert pixels(recording, "right")[0].tolist() == pytest.approx([910, 510])
    one_eye = walk(40, row="{t}\t{x}\t{y}\t127.0\t...")
    text = PREAMBLE + calibration("R 4POINT", "RIGHT") + block(one_eye, options="INPUT")
    recording = one(put(tmp_path, text))
    assert recording.valid.all()
    assert recording.pupil is None
    pupils = [t.replace("127.0", f"{400 + i}.0") for i, t in enumerate(one_eye)]
    text = PREAMBLE + calibration("R 4POINT", "RIGHT") + block(pupils, options="INPUT")
    recording = one(put(tmp_path, text))
    assert recording.pupil[3] == 403


@pytest.mark.parametrize(("words", "eye"), [("R 4POINT", "RIGHT"), ("L POINT", "LEFT")])
def test_the_validation_of_either_eye_gives_the_distance(
    tmp_path: Path, words: str, eye: str
) -> None:
    path = put(tmp_path, PREAMBLE + calibration(words, eye) + block(walk(5), eye))
    recording = one(path)
    assert recording.metadata["geometry"] == "calibration"
    expected = np.radians(2000.0)
    assert centre_px_per_deg(recording.space) == pytest.approx((expected, expected), rel=1e-3)


def test_resolution_of_the_end_line_is_used_where_rows_do_not_say_it(tmp_path: Path) -> None:
    path = put(tmp_path, PREAMBLE + block(walk(5), end="RES\t  47.75\t  45.92"))
    recording = one(path)
    assert centre_px_per_deg(recording.space) == pytest.approx((47.75, 45.92))
    for zero in ("RES\t 0.00\t 0.00", "RES\tx\ty"):
        with pytest.warns(UserWarning, match="does not say its screen"):
            assert one(put(tmp_path, PREAMBLE + block(walk(5), end=zero))).metadata[
                "assumed_geometry"
            ]


@pytest.mark.parametrize("resolution", ["1e9\t1e9", "0.001\t0.001", ".\t."])
def test_a_resolution_that_no_screen_has_is_not_believed(tmp_path: Path, resolution: str) -> None:
    row = "{t}\t{x}\t{y}\t500.0\t" + resolution + "\t..."
    with pytest.warns(UserWarning, match="does not say its screen"):
        one(put(tmp_path, PREAMBLE + block(walk(5, row=row), options="RES")))


def test_the_resolution_of_href_blocks_is_not_in_pixels(tmp_path: Path) -> None:
    href = block(walk(5), end="RES\t 261.00\t 262.00").replace("\tGAZE\t", "\tHREF\t")
    pixels_too = block(walk(5, 2000), start=2000, end="RES\t 40.00\t 40.00")
    first, _ = gazeveil.read(put(tmp_path, PREAMBLE + href + pixels_too), format="eyelink-asc")
    assert centre_px_per_deg(first.space) == pytest.approx((40.0, 40.0))


def test_whole_milliseconds_at_2000_hz_lose_no_sample(tmp_path: Path) -> None:
    rows = [f"{1000 + i // 2}\t{900 + i}.0\t500.0\t800.0\t..." for i in range(40)]
    path = put(tmp_path, PREAMBLE + calibration("R 4POINT", "RIGHT") + block(rows, rate=2000))
    recording = one(path)
    assert recording.valid.all()
    assert np.unique(np.diff(recording.t_ns)).tolist() == [500_000]
    assert recording.metadata["shared_times"] == 20
    assert_same_as_mne(path)


def test_times_that_repeat_more_often_than_the_rate_says_stay_faults(tmp_path: Path) -> None:
    rows = [f"{1000 + i // 4}\t{900 + i}.0\t500.0\t800.0\t..." for i in range(40)]
    text = PREAMBLE + calibration("R 4POINT", "RIGHT")
    recording = one(put(tmp_path, text + block(rows, rate=2000)))
    assert recording.valid.sum() == 20
    assert recording.metadata["time_faults"] == 20
    slow = one(put(tmp_path, text + block(rows, rate=1000)))
    assert slow.metadata["time_faults"] == 30


Make = Callable[[list[str]], list[str]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rows: [*rows[:-1], rows[-1][:9]], "fewer than 4 values"),
        (lambda rows: [*rows, "1100\tx\t1\t1\t..."], "'x' is not a number"),
    ],
)
def test_damaged_rows_are_named(tmp_path: Path, make: Make, message: str) -> None:
    path = put(tmp_path, PREAMBLE + block(make(walk(30))))
    with pytest.raises(FormatError, match=message):
        gazeveil.read(path, format="eyelink-asc")


# The stated one is a mean over the block, edges and the rims of blinks included.
@pytest.mark.parametrize(("name", "most"), [(REAL[0], 0.09), (REAL[1], 0.01), (REAL[2], 0.01)])
def test_calibration_and_stated_resolution_of_real_files_agree(name: str, most: float) -> None:
    path = real(*FOLDER, name)
    recording, stated = (
        gazeveil.read(path, format="eyelink-asc")[0],
        parse(path, stamp(path)).resolution,
    )
    assert recording.metadata["geometry"] == "calibration"
    assert centre_px_per_deg(recording.space) == pytest.approx(stated, rel=most)


def test_corner_targets_that_validation_shows_elsewhere_do_not_change_the_distance(
    tmp_path: Path,
) -> None:
    text = calibration("R 4POINT", "RIGHT")
    for x, y in TARGETS[5:]:
        inner = f"at {960 + 0.88 * (x - 960):.0f},{540 + 0.88 * (y - 540):.0f}"
        text = text.replace(f"at {x},{y}", inner)
    recording = one(put(tmp_path, PREAMBLE + text + block(walk(5))))
    assert recording.metadata["geometry"] == "calibration"
    assert centre_px_per_deg(recording.space)[0] == pytest.approx(np.radians(2000), rel=1e-3)


# --- a screen that the user gives


SMALL, LARGE = Screen(1280, 1024, 376.0, 301.0, 700.0), Screen(1920, 1080, 531.0, 299.0, 700.0)


def test_a_screen_of_other_pixels_than_the_file_states_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, PREAMBLE + block(walk(5)))
    message = "DISPLAY_COORDS says 1920 x 1080 px, and screen= says 1280 x 1024 px.*Screen\\(1920"
    with pytest.raises(FormatError, match=message):
        one(path, screen=SMALL)
    assert one(path, screen=LARGE).space == LARGE


@pytest.mark.parametrize("coords", ["0 0 1919 1079", "0.00 0.00 1920.00 1080.00"])
def test_of_two_statements_one_has_to_fit_the_screen(tmp_path: Path, coords: str) -> None:
    default = "MSG\t5 GAZE_COORDS 0.00 0.00 1023.00 767.00\n"
    text = default + PREAMBLE.replace("0 0 1919 1079", coords) + block(walk(5))
    recording = one(put(tmp_path, text), screen=LARGE)
    np.testing.assert_allclose(pixels(recording, "right")[0], [900, 500])


def test_a_screen_is_taken_whole_where_the_file_states_no_pixels(tmp_path: Path) -> None:
    text = PREAMBLE.replace("DISPLAY_COORDS 0 0 1919 1079", "nothing") + block(walk(5))
    assert one(put(tmp_path, text), screen=SMALL).space == SMALL


SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)
MESSAGE = [("stime", "f8"), ("msg", "S260")]
EVENT = [("eye", "f8"), ("stime", "f8"), ("etime", "f8"), ("axp", "f8"), ("ayp", "f8")]


def examples() -> list[Path]:
    """The example files that eyelinkio brings; skips where its library does not run."""
    eyelinkio = pytest.importorskip("eyelinkio", reason="eyelinkio is in the extra edf")
    files = sorted((Path(eyelinkio.__file__).parent / "tests" / "data").glob("*.edf"))
    try:
        eyelinkio.read_edf(files[0])
    except OSError as error:
        pytest.skip(f"the library of eyelinkio does not run here ({error})")
    return files


def test_example_files_give_the_samples_and_events_of_the_tracker() -> None:
    for path in examples():
        eyelinkio = sys.modules["eyelinkio"]
        edf: Any = eyelinkio.read_edf(path)
        cohort = gazeveil.read(path, format="eyelink-edf", screen=SCREEN)
        assert sum(len(r) for r in cohort) == len(edf["times"])
        binocular = edf["info"]["eye"] == "BINOCULAR"
        first = [r for r in edf["discrete"]["blinks"] if not binocular or r["eye"] == 0]
        blinks = sum(len(r.events.of("blink")) for r in cohort if r.events is not None)
        assert blinks >= len(first) > 0  # one that two trials share is cut in two
        for recording in cohort:
            assert recording.rate_hz == edf["info"]["sfreq"]
            assert (recording.right_deg is not None) == binocular
        fields = edf["info"]["sample_fields"]
        x = [edf["samples"][i] for i, name in enumerate(fields) if name.startswith("xpos")]
        seen = np.isfinite(x).any(axis=0)  # gaze is there where one of the eyes was seen
        assert 0 < sum(int(r.valid.sum()) for r in cohort) == np.count_nonzero(seen)


def fake(path: Path, monkeypatch: pytest.MonkeyPatch, eyes: int = 1, pupil: float = 500.0) -> Path:
    """A file, and an eyelinkio that returns what version 0.3 does for such a file."""
    path.write_bytes(b"SR_RESEARCH_COMBINED_FILE\0\1\2\3" * 20)
    n = 40
    x, y = np.linspace(900, 939, n), np.full(n, 540.0)
    x[5] = np.nan
    fields = ["xpos", "ypos", "ps"]
    samples = [x, y, np.full(n, pupil)]
    if eyes == 2:
        fields = [f"{f}_{e}" for f in fields for e in ("left", "right")]
        samples = [a for s, d in zip(samples, (10, 10, 0), strict=True) for a in (s, s + d)]
    texts = [
        (0.0, b"GAZE_COORDS 0.00 0.00 1919.00 1079.00"),
        (0.0, b"TRIALID one"),
        (0.0195, b"TRIAL_RESULT 0"),
        (0.0200, b"TRIALID two"),
    ]
    content = {
        "info": {
            "sfreq": 1000.0,
            "eye": "BINOCULAR" if eyes == 2 else "RIGHT_EYE",
            "ps_units": "PUPIL_AREA",
            "sample_fields": fields,
        },
        "times": np.arange(n) / 1000,
        "samples": np.array(samples),
        "discrete": {
            "messages": np.array(texts, dtype=MESSAGE),
            "fixations": np.array([(1, 0.001, 0.008, 905.0, 540.0)], dtype=EVENT),
            "blinks": np.array([(1, 0.030, 0.033, np.nan, np.nan)], dtype=EVENT),
        },
    }
    monkeypatch.setitem(
        sys.modules, "eyelinkio", SimpleNamespace(read_edf=lambda _: content, __spec__="there")
    )
    return path


def test_trials_events_and_lost_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake(tmp_path / "anna.edf", monkeypatch)
    one, two = gazeveil.read(path, format="eyelink-edf", screen=SCREEN)
    assert [(r.person, r.stimulus, len(r)) for r in (one, two)] == [
        ("anna", "one", 20),
        ("anna", "two", 20),
    ]
    assert np.flatnonzero(~one.valid).tolist() == [5]
    assert [(e.kind, e.onset, e.offset) for e in one.events] == [("fixation", 1, 8)]
    assert [(e.kind, e.onset, e.offset) for e in two.events] == [("blink", 10, 13)]
    assert np.flatnonzero(~two.valid).tolist() == [10, 11, 12, 13]
    assert one.right_deg is not None
    assert one.left_deg is None
    assert one.rate_hz == 1000
    assert "pauses between blocks" in str(one.metadata["times"])


def test_two_eyes_and_no_pupils(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake(tmp_path / "anna.edf", monkeypatch, eyes=2, pupil=0.0)
    cohort = gazeveil.read(path, format="eyelink-edf", screen=SCREEN)
    assert cohort[0].right_deg[0, 0] > cohort[0].left_deg[0, 0]
    assert np.flatnonzero(~cohort[0].valid).tolist() == [5]
    # The events are the right eye's, the recording's are the first eye's.
    assert cohort[0].events is None
    assert "fixation" in cohort[0].labels["eyelink_right"]
    alone = fake(tmp_path / "bert.edf", monkeypatch, eyes=1, pupil=0.0)
    assert gazeveil.read(alone, format="eyelink-edf", screen=SCREEN)[0].pupil is None


def test_without_eyelinkio_the_extra_is_named_and_folders_are_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path / "p1.edf", monkeypatch)
    monkeypatch.setitem(sys.modules, "eyelinkio", None)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[edf\]"):
        gazeveil.read(tmp_path / "p1.edf", format="eyelink-edf")
    with pytest.raises(FormatError, match=r"gazeveil\[edf\].*edf2asc"):
        gazeveil.read(tmp_path / "p1.edf")
    text = (
        "START\t1 \tLEFT\tSAMPLES\nSAMPLES\tGAZE\tLEFT\tRATE\t1000.00\n1\t 960\t 540\t 400\t...\n"
    )
    (tmp_path / "p1.asc").write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cohort = gazeveil.read(tmp_path)
    assert len(cohort) == 1
    assert any("edf2asc" in s.reason for s in cohort.skipped)


def test_files_that_cannot_be_read_are_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake(tmp_path / "p1.edf", monkeypatch)

    def refuse(error: Exception) -> None:
        def read_edf(_: object) -> None:
            raise error

        monkeypatch.setitem(sys.modules, "eyelinkio", SimpleNamespace(read_edf=read_edf))

    for error, words in (
        (OSError("Could not load EDF api: no such file"), "does not run on this machine"),
        (OSError('Could not open file "p1.edf"'), "cannot read it"),
        (AssertionError(), "cannot read it"),
        (KeyError(77), "cannot read it"),
    ):
        refuse(error)
        with pytest.raises(FormatError, match=words):
            gazeveil.read(path, format="eyelink-edf")
    other = tmp_path / "brain.edf"
    other.write_bytes(b"0       X X X X" + b" " * 500)
    with pytest.raises(FormatError, match="does not begin as EyeLink EDF"):
        gazeveil.read(other, format="eyelink-edf")
