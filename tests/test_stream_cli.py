"""`gazeveil protect`: a folder or a file in, a canonical folder and a sentence out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gazeveil import read, simulate
from gazeveil.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return simulate(2, 2, 3.0, 100.0, seed=1).write(tmp_path / "raw")


def test_a_folder_is_protected_and_the_promise_printed(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "protect", raw, tmp_path / "out", "--mechanism", "gaussian:sigma_deg=5", "--json", tmp_path / "f.json")
    assert code == 0
    assert "gaussian (corrected) promises zero-concentrated differential privacy" in out
    assert "This is a test" not in out
    figures = json.loads((tmp_path / "f.json").read_text())
    assert (figures["recordings"], figures["guarantee"]["status"], figures["provenance"]["seeded"]) == (4, "proved", False)
    before, after = read(raw), read(tmp_path / "out")
    assert before.keys == after.keys
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a.valid, b.valid)
        assert not np.isin(b.x_deg[b.valid], a.x_deg).any()


def test_one_file_and_a_seed(raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = raw / "recordings" / "000001.parquet"
    for name in ("a", "b"):
        code, out, err = run(capsys, "protect", file, tmp_path / name, "-m", "gaussian:sigma_deg=5", "--seed", 3)
        assert (code, err) == (0, "")
        assert "This is a test" in out
        assert "is claimed but not proved" in out
    np.testing.assert_array_equal(read(tmp_path / "a")[0].x_deg, read(tmp_path / "b")[0].x_deg)


BAD = [
    (["{raw}", "{out}", "-m", "gaussian:sigma_deg=0"], "sigma_deg"),
    (["{raw}", "{out}", "-m", "lpa:epsilon=1"], "kind 'stream'"),
    (["{raw}", "{out}", "-m", "gausian:sigma_deg=1"], "Did you mean 'gaussian'"),
    (["{raw}", "{raw}", "-m", "temporal:K=2"], "not an empty folder"),
    (["{raw}/nothing", "{out}", "-m", "temporal:K=2"], "no such file"),
    (["{raw}", "{out}", "-m", "temporal:K=2", "--keep", "soul"], "keep"),
    (["{raw}", "{out}"], "--mechanism"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_input_is_one_sentence_and_code_two(arguments: list[str], words: str, raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "protect", *(a.format(raw=raw, out=tmp_path / "out") for a in arguments))
    assert code == 2
    assert words in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()
