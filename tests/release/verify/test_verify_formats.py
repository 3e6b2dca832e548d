"""Releases of every format, of maps and of feature tables are verified; raw rows in text are found
as they are in Parquet.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.release.verify import verify
from tests.release.verify.test_verify import MECHANISM, certified_anew, named, red
from tests.support.command_line import run


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw") / "recordings"
    named(gazeveil.simulate(8, 2, 4.0, 120.0, task="reading", seed=1)).write(folder)
    return folder


def plant(file: Path, raw: Path, samples: int, write: Callable[[float], str]) -> None:
    """Put recorded samples into a text file whose gaze is in the columns 1 and 2."""
    packed = file.suffix == ".gz"
    text = gzip.decompress(file.read_bytes()).decode() if packed else file.read_text("utf-8")
    lines = text.splitlines()
    sign = "\t" if "\t" in lines[0] else ","
    original = gazeveil.read(raw)[3]
    at = np.flatnonzero(original.valid)[100 : 100 + samples]
    for line, i in enumerate(at, start=30):
        cells = lines[line].split(sign)
        cells[1:3] = write(float(original.x_deg[i])), write(float(original.y_deg[i]))
        lines[line] = sign.join(cells)
    data = ("\n".join(lines) + "\n").encode()
    file.write_bytes(gzip.compress(data, mtime=0) if packed else data)


@pytest.fixture(scope="module", params=["csv", "bids"])
def released(
    raw: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """A release in text that is what its certificate says."""
    out = tmp_path_factory.mktemp("released") / "out"
    with pytest.MonkeyPatch.context() as patch:  # before a test has a home of its own
        patch.setenv("GAZEVEIL_HOME", str(out.parent / "home"))
        assert run("protect", raw, out, "--mechanism", MECHANISM, "--to", request.param) == 0
    assert verify(out, raw).failures == ()
    return out


@pytest.mark.parametrize(
    ("samples", "write"),
    [(1, repr), (8, repr), (8, "{:.3f}".format)],
    ids=["one", "run", "rounded"],
)
def test_raw_rows_in_text_are_red(
    released: Path, samples: int, write: Callable[[float], str], raw: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(released, tmp_path / "out"))
    files = [*out.glob("recordings/*.csv"), *out.glob("**/*_physio.tsv.gz")]
    plant(sorted(files)[4], raw, samples, write)
    assert red(verify(out)) == ["files"]
    certified_anew(out)
    assert verify(out).passed
    assert red(verify(out, raw)) == ["raw rows"]


def test_a_feature_table_is_verified_with_the_certificate_beside_it(
    raw: Path, tmp_path: Path
) -> None:
    table = gazeveil.window_features(gazeveil.read(raw), window_s=2, step_s=0.5)
    file = tmp_path / "features.csv"
    gazeveil.protect(table, "dct-knorm:epsilon=10").write(file)
    assert verify(file, raw).failures == ()
    (tmp_path / "other.txt").write_text("anna-schmidt", "utf-8")  # not part of the release
    assert verify(file, raw).passed
    text = file.read_text("utf-8")
    file.write_text(text.replace("0", "1", 1), "utf-8")
    assert red(verify(file))[0] == "files"
    file.write_text(text + "bob.jones\n", "utf-8")
    assert {"files", "identifiers"} <= set(red(verify(file, raw)))
    file.unlink()
    assert run("verify", file) == 2


def test_long_names_become_files_that_a_disk_takes(tmp_path: Path) -> None:
    long = ("x" * 5000, "y" * 5000)
    cohort = gazeveil.Cohort(
        r.with_(stimulus=name, session=name[:300], task=name[:400])
        for r, name in zip(gazeveil.simulate(2, 1, 2.0, 60.0, seed=1), long, strict=True)
    )
    gazeveil.protect(cohort, MECHANISM).write(tmp_path / "out", to="bids")
    assert verify(tmp_path / "out").passed
    assert len(gazeveil.read(tmp_path / "out")) == 2
