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

from gazeveil.arrays import Floats
from gazeveil.errors import FormatError
from gazeveil.models import weights_file
from gazeveil.models.ekyt.network import dense_network
from gazeveil.models.ekyt.velocity import VelocityInput
from gazeveil.models.ekyt.weights import EkytModel, load_ekyt
from gazeveil.models.ekyt.windows import VelocityScale
from gazeveil.models.headset.dgaze import gaze_predictor
from gazeveil.models.headset.ehtask import activity_network
from gazeveil.models.headset.weights import (
    PredictorInput,
    RateRange,
    RecogniserInput,
    TrainedPredictor,
    TrainedRecogniser,
    load_dgaze,
    load_ehtask,
)
from gazeveil.models.marks import RecordingMarks
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")

LOAD: dict[str, Callable[[Path], Any]] = {
    "ekyt": load_ekyt,
    "dgaze": load_dgaze,
    "ehtask": load_ehtask,
}


def predictor() -> TrainedPredictor:
    scale = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    network = gaze_predictor(scale, 6, 4, "published", 1)
    given = PredictorInput(0.1, 0.5, 6, "none", "published", (0, 1, 5), 4, RateRange(36.0, 72.0))
    return TrainedPredictor(network, given, RecordingMarks("s", frozenset("ab")), {"people": 3})


def recogniser() -> TrainedRecogniser:
    mean, scale = np.arange(6, dtype=np.float32), np.full(6, 2.0, dtype=np.float32)
    network = activity_network(mean, scale, 2, "corrected", 1)
    rates = RateRange(None, None)
    given = RecogniserInput(4.0, 25.0, "recorded", "corrected", ("reads", "sucht"), rates)
    return TrainedRecogniser(network, given, RecordingMarks("s", frozenset()), {})


def save(kind: str, path: Path) -> Path:
    if kind == "ekyt":
        scale = VelocityScale(np.zeros(2), np.ones(2))
        EkytModel(dense_network(2, 1, 0), VelocityInput(50.0, 1.0), scale).save(path)
    else:
        (predictor() if kind == "dgaze" else recogniser()).save(path)
    return path


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Path:
    """The file with its header or arrays changed."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays.pop("header")))
    change(header, arrays)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)
    return path


def test_networks_of_headsets_come_back_bit_for_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    history, maps = rng.normal(size=(5, 3, 6)), rng.normal(size=(5, 4))
    mine, again = predictor(), load_dgaze(save("dgaze", tmp_path / "d.npz"))
    assert (again.given, again.marks, again.about) == (mine.given, mine.marks, mine.about)
    both = (m.network.predict(history, maps) for m in (mine, again))
    np.testing.assert_array_equal(*both)
    windows: Floats = rng.normal(size=(40, 6, 100))
    ours, theirs = recogniser(), load_ehtask(save("ehtask", tmp_path / "e.npz"))
    assert (theirs.given, theirs.marks) == (ours.given, ours.marks)
    ours.network.parts.eval()
    scores = [
        m.network.forward(torch.as_tensor(m.network.standardised(windows))) for m in (ours, theirs)
    ]
    assert torch.equal(*scores)


class Payload:
    """What a stranger would have run."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        return open, (str(self.file), "w")


@pytest.mark.parametrize("kind", LOAD)
def test_a_file_runs_no_code(kind: str, tmp_path: Path) -> None:
    trap, file = tmp_path / "trap", tmp_path / "w.npz"
    with np.load(save(kind, file)) as archive:
        arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
    name = next(n for n in arrays if n.startswith("network."))
    arrays[name] = np.array([Payload(trap)], dtype=object)
    np.savez(file, allow_pickle=True, **arrays)
    with pytest.raises(FormatError, match="this is no file of weights"):
        LOAD[kind](file)
    file.write_bytes(pickle.dumps(Payload(trap)))
    with pytest.raises(FormatError, match="this is no file of weights"):
        LOAD[kind](file)
    # The trap is a real one.
    assert not trap.exists()
    pickle.loads(file.read_bytes()).close()
    assert trap.exists()


@pytest.mark.parametrize("kind", LOAD)
def test_wrong_files_are_one_sentence(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = save(kind, tmp_path / "w.npz")
    whole = file.read_bytes()
    with pytest.raises(FormatError, match="there is no such file"):
        LOAD[kind](tmp_path)
    for content in (b"", b"no archive", whole[: len(whole) // 2], whole[:-30]):
        file.write_bytes(content)
        with pytest.raises(FormatError, match="this is no file of weights"):
            LOAD[kind](file)
    file.write_bytes(whole)
    for other in LOAD.keys() - {kind}:
        with pytest.raises(FormatError, match=f"of the network {kind}, and {other} needs its own"):
            LOAD[other](file)
    # A megabyte that unpacks to more than memory holds, at a small scale.
    monkeypatch.setattr(weights_file, "MOST_BYTES", len(whole) + 1)
    np.savez_compressed(file, header=np.array("{}"), a=np.zeros(len(whole)))
    assert file.stat().st_size < len(whole)
    with pytest.raises(FormatError, match="this is no file of weights"):
        LOAD[kind](file)


def _set(part: str, name: str, value: object) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        (arrays if part == "arrays" else header[part] if part else header)[name] = value

    return change


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("dgaze", _set("given", "lags", 10**9)),
        ("dgaze", _set("given", "map_size", 10**9)),
        ("dgaze", _set("given", "lags", 8)),
        ("dgaze", _set("given", "channels", [0, 1])),
        ("dgaze", _set("given", "channels", [0, 1, -1])),
        ("dgaze", _set("given", "channels", [0, 0, 1])),
        ("dgaze", _set("given", "horizon_s", "soon")),
        ("dgaze", _set("given", "head", "a" * 10**6)),
        ("dgaze", _set("given", "rates", {"low_hz": "a", "high_hz": 1})),
        ("dgaze", _set("", "given", [])),
        ("dgaze", _set("", "marks", {"salt": "s", "marks": 3})),
        ("dgaze", _set("arrays", "scale", np.zeros(3))),
        ("dgaze", _set("arrays", "scale", np.ones((3, 3)))),
        ("dgaze", _set("arrays", "network.more", np.ones(3))),
        ("ehtask", _set("given", "classes", ["a"] * 2)),
        ("ehtask", _set("given", "classes", [str(i) for i in range(2000)])),
        ("ehtask", _set("given", "classes", ["a", "b", "c"])),
        ("ehtask", _set("given", "reading", "improved")),
        ("ehtask", _set("arrays", "mean", np.zeros(5))),
        ("ekyt", _set("", "channels", "eye")),
        ("ekyt", _set("arrays", "deviation", np.zeros(2))),
        ("ekyt", _set("arrays", "mean", np.zeros(4))),
    ],
)
def test_contents_that_do_not_fit_are_one_sentence(
    kind: str, change: Callable[[dict[str, Any], dict[str, Any]], object], tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match="these weights belong to another network"):
        LOAD[kind](rewritten(save(kind, tmp_path / "w.npz"), change))


def test_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    file = save("dgaze", tmp_path / "w.npz")
    rewritten(file, _set("arrays", "scale", np.array([1.0, np.nan, 1.0])))
    with pytest.raises(FormatError, match="not finite"):
        load_dgaze(file)
    rewritten(file, _set("arrays", "scale", np.array(["1", "2", "3"])))
    with pytest.raises(FormatError, match="this is no file of weights"):
        load_dgaze(file)
