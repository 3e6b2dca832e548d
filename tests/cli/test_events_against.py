"""`gazeveil events --against labels`: detectors and labellers in one table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gazeveil import Cohort, Recording, detect, simulate
from tests.support.command_line import heard as run
from tests.support.event_signals import SCREEN


def words(recording: Recording) -> np.ndarray:
    return detect(recording, "ivt").words(len(recording))


def folder(path: Path, *names: str, pso: bool = False) -> Path:
    """Two recordings; the second labeller is one sample late, and so on."""
    recordings = []
    for r in simulate(2, 1, 4.0, 250.0, space=SCREEN, seed=4):
        labels = {name: np.roll(words(r), k) for k, name in enumerate(names)}
        for column in labels.values():
            column[-5:] = "pso" if pso else "fixation"
        recordings.append(r.with_(labels=labels, truth=None))
    return Cohort(recordings).write(path)


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def cells(out: str, name: str) -> list[str]:
    line = next(line for line in out.splitlines() if line.strip().startswith(name + " "))
    return line.replace(name, "", 1).split()


def test_the_table_has_detectors_and_labellers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path / "made", "ann", "ben")
    code, out, _ = run(capsys, "events", made, "--against", "labels", "--json", tmp_path / "f.json")
    assert code == 0
    assert all(len(line) <= 120 for line in out.splitlines())
    flat = " ".join(out.split())
    for part in (
        "Events of 2 recordings by auto",
        "Detectors and labellers against the labels",
        "free-viewing, 2 recordings",
        "Detectors against ann, ben; events with",
        "The labels of free-viewing have no pso, so pso counts as saccade there.",
    ):
        assert part in flat
    rows = json.loads((tmp_path / "f.json").read_text())["comparison"]
    assert [row["name"] for row in rows] == ["auto", "I-VT", "ann against ben"]
    for row in rows:
        f1, event = row["f1"], row["event_f1"]
        shares = [f1["fixation"], f1["saccade"], row["kappa"], *event.values()]
        assert (f1["pursuit"], f1["pso"]) == (None, None)
        assert cells(out, row["name"]) == [f"{share:.3f}" for share in shares]
    assert rows[2]["saccade_onset_distance_ms"] == 4.0
    assert {row["joined"]["pso"] for row in rows} == {"saccade"}


def test_labels_with_pso_are_not_joined_and_the_method_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path / "made", "ann", pso=True)
    given = ("--method", "ivt", "--parameter", "setting=ren2024", "--against", "labels")
    code, out, _ = run(capsys, "events", made, *given, "--json", tmp_path / "f.json")
    assert code == 0
    assert "counts as saccade" not in out
    assert "Detectors against ann; events" in out
    rows = json.loads((tmp_path / "f.json").read_text())["comparison"]
    assert [row["name"] for row in rows] == ["ivt setting=ren2024", "I-VT"]
    assert (rows[1]["f1"]["pso"], rows[1]["joined"]) == (0.0, {})


def test_a_folder_without_labels_gets_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path / "made")
    code, _, err = run(capsys, "events", made, "--against", "labels")
    assert code == 2
    assert err.strip() == (
        "The '--against' option needs labels of events, and no recording here has any. Name a"
        " folder that was labelled, or leave the option out."
    )
