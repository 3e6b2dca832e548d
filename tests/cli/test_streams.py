"""`gazeveil protect`: a folder or a file in, a canonical folder and a sentence out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gazeveil import read, simulate
from gazeveil.privacy.publication.names import read_key
from tests.support.command_line import heard as run


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return simulate(2, 2, 3.0, 100.0, seed=1).write(tmp_path / "raw")


def test_one_file_and_a_seed(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = raw / "recordings" / "000001.parquet"
    for name in ("a", "b"):
        code, out, err = run(
            capsys, "protect", file, tmp_path / name, "-m", "gaussian:sigma_deg=5", "--seed", 3
        )
        assert (code, err) == (0, "")
        assert "This is a test" in out
        assert "Claimed, not promised" in out
    np.testing.assert_array_equal(read(tmp_path / "a")[0].x_deg, read(tmp_path / "b")[0].x_deg)


BAD = [
    (["{raw}", "{out}", "-m", "gaussian:sigma_deg=0"], "sigma_deg"),
    (["{raw}", "{out}", "-m", "lpa:epsilon=1"], "takes a feature table"),
    (["{raw}", "{out}", "-m", "gausian:sigma_deg=1"], "Did you mean 'gaussian'"),
    (["{raw}", "{raw}", "-m", "temporal:K=2"], "not an empty folder"),
    (["{raw}/nothing", "{out}", "-m", "temporal:K=2"], "no such file"),
    (["{raw}", "{out}", "-m", "temporal:K=2", "--keep", "soul"], "keep"),
    (["{raw}", "{out}"], "--mechanism"),
    (
        ["{raw}", "{out}", "-m", "k-same-synth:k=3"],
        "k-same-synth with k = 3 needs at least 3 people, and this cohort has recordings of 2",
    ),
    (
        ["{raw}", "{out}", "-m", "k-same-synth:k=2", "--keep", "pupil"],
        "nothing of the raw data can be kept",
    ),
    (["{raw}", "{raw}", "-m", "dpgazesynth:epsilon=1"], "not an empty folder"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_input_is_one_sentence_and_code_two(
    arguments: list[str], words: str, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(
        capsys, "protect", *(a.format(raw=raw, out=tmp_path / "out") for a in arguments)
    )
    assert code == 2
    assert words in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


#: Mechanisms with few people, and a word of what they promise.
PROMISES = {
    "gaussian:sigma_deg=5": "zero-concentrated differential privacy",
    "k-same-synth:k=2": "promises 2-anonymity of the released record",
    "k-same-synth:k=2,reading=published": "makes no privacy promise",
    "dpgazesynth:epsilon=1,G=8": "(epsilon, w, r, t)-differential privacy with epsilon = 1",
    "dpgazesynth:epsilon=1,G=8,reading=published": "makes no privacy promise",
    "dpgazesynth-one-report:epsilon=1,G=8": (
        "(epsilon, w, r, t)-differential privacy with epsilon = 1"
    ),
}


@pytest.mark.parametrize(("text", "promise"), PROMISES.items())
def test_a_folder_becomes_one_of_new_samples_and_the_promise_is_printed(
    text: str, promise: str, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = ("--json", tmp_path / "f.json", "--key-file", tmp_path / "key.json")
    code, out, err = run(capsys, "protect", raw, tmp_path / "out", "-m", text, *written)
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    # Group mechanisms tell the curator how many people share a cell.
    assert ("For you alone" in said) == text.startswith("k-same")
    before, after = read(raw), read(tmp_path / "out")
    figures = json.loads((tmp_path / "f.json").read_text())
    assert promise in figures["sentence"]
    assert (figures["recordings"], figures["samples"]) == (4, sum(len(r) for r in after))
    assert figures["provenance"]["mechanism"] == text.partition(":")[0]
    assert not figures["provenance"]["seeded"]
    named = read_key(tmp_path / "key.json").recordings
    assert (set(named), set(named.values())) == (set(before.keys), set(after.keys))
    assert not set(before.people) & set(after.people)
    published = {r.key: r for r in after}
    for own in before:
        r = published[named[own.key]]
        assert r.valid.any()
        assert not np.isin(r.x_deg[r.valid], own.x_deg).any()


def test_what_groups_leave_out_is_told_to_whoever_protects_and_to_nobody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort = simulate(4, 2, 3.0, 100.0, seed=1).load()
    alone = type(cohort)([r for r in cohort if r.stimulus == cohort.stimuli[0] or r.person == "p1"])
    code, out, _ = run(
        capsys,
        "protect",
        alone.write(tmp_path / "raw"),
        tmp_path / "out",
        "-m",
        "k-same-synth:k=2",
        "--json",
        tmp_path / "f.json",
    )
    assert code == 0
    assert "4 recordings, " in out
    counts = "recordings left out: 1, fewest sharing: 2, most sharing: 2, suppressed: 1."
    assert f"never to be published: {counts}" in " ".join(out.split())
    assert "suppressed" not in (tmp_path / "f.json").read_text()
    assert not any(
        "suppressed" in f.read_text(errors="replace")
        for f in (tmp_path / "out").rglob("*")
        if f.is_file()
    )
    assert read(tmp_path / "out").stimuli == (cohort.stimuli[0],)
