"""Files of weights from a stranger: they run no code, fill no memory, and those that do not fit are
one sentence.
"""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import FormatError
from gazeveil.models.ekyt import weights
from gazeveil.models.ekyt.weights import EkytModel, RecordingMarks, dense_network, load_ekyt
from gazeveil.models.ekyt.windows import VelocityInput, VelocityScale

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Weights of a network that was not trained."""
    scale, marks = VelocityScale(np.zeros(2), np.ones(2)), RecordingMarks("s", frozenset("ab"))
    made = EkytModel(dense_network(2, 1, 0), VelocityInput(50.0, 1.0), scale, {"people": 3}, marks)
    made.save(tmp_path / "w.npz")
    return tmp_path / "w.npz"


def test_header_and_marks_come_back(file: Path) -> None:
    again = load_ekyt(file)
    assert (again.about, again.marks) == ({"people": 3}, RecordingMarks("s", frozenset("ab")))


class Payload:
    """What a stranger would have run."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        return open, (str(self.file), "w")


def test_a_file_runs_no_code(file: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    with np.load(file) as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    arrays["network.embedding.weight"] = np.array([Payload(trap)], dtype=object)
    np.savez(file, allow_pickle=True, **arrays)
    with pytest.raises(FormatError, match="this is no file of weights"):
        load_ekyt(file)
    file.write_bytes(pickle.dumps(Payload(trap)))
    with pytest.raises(FormatError, match="this is no file of weights"):
        load_ekyt(file)
    # The trap is a real one.
    assert not trap.exists()
    pickle.loads(file.read_bytes()).close()
    assert trap.exists()


def test_wrong_files_are_one_sentence(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = file.read_bytes()
    with pytest.raises(FormatError, match="there is no such file"):
        load_ekyt(file.parent)
    for content in (b"", b"no archive", whole[: len(whole) // 2], whole[:-30]):
        file.write_bytes(content)
        with pytest.raises(FormatError, match="this is no file of weights"):
            load_ekyt(file)
    # A megabyte that unpacks to more than memory holds, at a small scale.
    monkeypatch.setattr(weights, "MOST_BYTES", len(whole) + 1)
    np.savez_compressed(file, header=np.array("{}"), a=np.zeros(len(whole)))
    assert file.stat().st_size < len(whole)
    with pytest.raises(FormatError, match="this is no file of weights"):
        load_ekyt(file)


@pytest.mark.parametrize(
    ("part", "name", "value", "problem"),
    [
        ("header", "format", "gazeveil-other-1", "no file of weights"),
        ("header", "channels", "eye", "belong to another network"),
        ("header", "window_s", "soon", "belong to another network"),
        ("header", "marks", {"salt": "s", "marks": 3}, "belong to another network"),
        ("arrays", "deviation", np.zeros(2), "belong to another network"),
        ("arrays", "mean", np.zeros(4), "belong to another network"),
        ("arrays", "network.more", np.ones(3), "belong to another network"),
        ("arrays", "mean", np.array([1.0, np.nan]), "not finite"),
        ("arrays", "mean", np.array(["1", "2"]), "no file of weights"),
    ],
)
def test_contents_that_do_not_fit_are_one_sentence(
    file: Path, part: str, name: str, value: object, problem: str
) -> None:
    with np.load(file) as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays.pop("header")))
    (arrays if part == "arrays" else header)[name] = value
    np.savez(file, header=np.array(json.dumps(header)), **arrays)
    with pytest.raises(FormatError, match=problem):
        load_ekyt(file)
