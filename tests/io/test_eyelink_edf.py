"""EyeLink EDF through eyelinkio: with its own example files where its library runs, and with what
it returns, made up here, everywhere.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import FormatError, MissingExtraError
from gazeveil.gaze.geometry import Screen

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
