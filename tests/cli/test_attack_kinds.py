"""`gazeveil attack --kind`: every inference attack is reached from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("attack")
    counts = ("--people", "6", "--stimuli", "3", "--seconds", "5", "--rate", "100", "--seed", "1")
    assert run("simulate", here / "raw", *counts) == 0
    mechanism, key = "gaussian:sigma_deg=1/100", ("--key-file", here / "key.json")
    assert run("protect", here / "raw", here / "safe", "--mechanism", mechanism, *key) == 0
    return here


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("attributes:attribute=gender", "accuracy"),
        ("record-linkage", "identification_rate"),
        ("demographics:k=2", "identification_rate"),
        ("stimulus-risk:attacks=linkage,draws=99", "across_rate"),
    ],
)
def test_a_kind_is_run_and_written(folder: Path, tmp_path: Path, kind: str, metric: str) -> None:
    out = tmp_path / "found.json"
    key = ("--key-file", folder / "key.json")
    assert run("attack", folder / "raw", folder / "safe", *key, "--kind", kind, "--json", out) == 0
    found = json.loads(out.read_text())
    assert found["kind"] == kind.partition(":")[0]
    assert found["results"][0]["metric"] == metric
    assert found["results"][0]["n"] > 0


def test_stimuli_are_compared_and_how_far_to_read_it_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = folder / "raw"
    assert run("attack", raw, raw, "--kind", "stimulus-risk:attacks=linkage,draws=99") == 0
    said = capsys.readouterr().out
    assert "free-viewing-1" in said
    assert "of 3 stimuli differ from the mean. A difference below" in said


def test_membership_needs_people_who_are_not_in_the_release(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = ("--key-file", folder / "key.json")
    assert run("attack", folder / "raw", folder / "safe", *key, "--kind", "membership") == 2
    assert "who took part and targets who did not" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--kind", "nonsense"), "must be one of attributes, demographics, identify"),
        (("--kind", "record-linkage:foo=1"), "has no parameter 'foo'"),
        (("--kind", "attributes", "-a", "linkage"), "Leave them out, or leave --kind out"),
    ],
)
def test_a_bad_kind_gets_one_sentence(
    folder: Path, arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key = ("--key-file", folder / "key.json")
    assert run("attack", folder / "raw", folder / "safe", *key, *arguments) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_every_kind_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "attacks") == 0
    text = capsys.readouterr().out
    for kind in ("attributes", "membership", "record-linkage", "demographics", "known-looks"):
        assert kind in text
