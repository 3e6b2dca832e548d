"""`gazeveil protect` takes a feature table where the mechanism does."""

from __future__ import annotations

from pathlib import Path

import pytest

from gazeveil.cli.main import main
from gazeveil.features import FeatureTable
from gazeveil.io.features_file import write_table
from gazeveil.privacy.conformance import sample_data


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    return int(str(stop.value.code))


def test_a_table_is_protected_into_a_new_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "table.parquet", tmp_path / "safe.parquet"
    write_table(sample_data("table"), table)
    assert run("protect", table, out, "-m", "lpa:epsilon=1") == 0
    assert "epsilon = 1" in capsys.readouterr().out
    assert len(FeatureTable.read(out)) == len(sample_data("table"))
    assert run("protect", table, out, "-m", "lpa:epsilon=1") == 2
    assert "exists already" in capsys.readouterr().err
    assert run("protect", tmp_path, tmp_path / "other", "-m", "lpa:epsilon=1") == 2
    assert "takes a feature table" in capsys.readouterr().err
