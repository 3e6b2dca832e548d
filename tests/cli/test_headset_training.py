"""`gazeveil train --network dgaze` and `ehtask`: people apart, a card with floors, a kill and what
comes after it.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from gazeveil import Cohort, simulate
from gazeveil.cli import headset_training
from gazeveil.cli.main import main
from gazeveil.io.parquet import write
from gazeveil.models.headset.weights import load_dgaze, load_ehtask
from tests.support.torch_threads import one_thread  # noqa: F401 a fixture

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")

SMALL = ("--simulate", 4, "--stimuli", 1, "--seconds", 6, "--sessions", 1, "--rate", 30)
QUICK = (*SMALL, "--every", 2, "--device", "cpu", "--steps", 4, "--hold-out", 0.5)
OWN: dict[str, tuple[object, ...]] = {"dgaze": (), "ehtask": ("--window", 2)}
FLOORS = {"dgaze": ["hold", "linear", "kalman"], "ehtask": ["forest", "chance"]}


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(a) for a in arguments])
    return int(stopped.value.code or 0)


def train(network: str, out: Path, *more: object) -> int:
    return run("train", "--network", network, *QUICK, *OWN[network], "--out", out, *more)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {name: tmp_path_factory.mktemp("train") / name for name in OWN}
    for name, out in made.items():
        assert train(name, out, "--json", out.parent / "figures.json") == 0
    return made


@pytest.mark.parametrize("network", OWN)
def test_the_card_says_who_was_trained_on_and_what_must_be_beaten(
    network: str, folders: dict[str, Path]
) -> None:
    out = folders[network]
    assert sorted(p.name for p in out.iterdir()) == ["card.json", "card.md", "weights.npz"]
    card = json.loads((out / "card.json").read_text("utf-8"))
    assert card == json.loads((out.parent / "figures.json").read_text("utf-8"))
    assert (card["people_trained"], card["people_held_out"]) == (2, 2)
    models = [network, *FLOORS[network], f"{network}, people trained on"]
    assert [f["model"] for f in card["figures"]] == models
    assert all(np.isfinite(f["value"]) and f["people"] == 2 for f in card["figures"])
    page = (out / "card.md").read_text("utf-8")
    for words in ("people trained on | 2", "remember them", "marks", *models):
        assert words in page
    model = load_dgaze(out / "weights.npz") if network == "dgaze" else None
    model = model or load_ehtask(out / "weights.npz")
    assert model.about == card
    # The file holds no name, and marks of exactly the recordings of two people.
    names = {r.person for r in simulate(4, 1, 6.0, 30.0, seed=0)}
    header = str(np.load(out / "weights.npz")["header"])
    assert not [name for name in names if name in header or name in page]
    known = {r.person for r in simulate(4, 1, 6.0, 30.0, seed=0) if model.marks.knows(r)}
    assert len(known) == 2


@pytest.mark.parametrize("network", OWN)
def test_the_same_command_after_a_kill_ends_with_the_same_file(
    network: str,
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, original = tmp_path / "network", headset_training.bar

    class Stop:
        def __enter__(self) -> "Stop":
            return self

        def __exit__(self, *_: object) -> bool:
            return False

        def __call__(self, done: int, total: int) -> None:
            if (done, total) == (3, 4):
                raise KeyboardInterrupt

    monkeypatch.setattr(headset_training, "bar", lambda _: Stop())
    assert train(network, out) == 130
    assert "the same command goes on from there" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setattr(headset_training, "bar", original)
    assert train(network, out) == 0
    assert "Going on from" in capsys.readouterr().out
    ours, theirs = (np.load(f / "weights.npz") for f in (out, folders[network]))
    assert ours.files == theirs.files
    for name in ours.files:
        np.testing.assert_array_equal(ours[name], theirs[name])
    assert train(network, out) == 2
    assert "holds weights already" in capsys.readouterr().err


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings") / "people"
    write(Cohort(list(simulate(2, 1, 2.0, 30.0, seed=1))), folder)
    return folder


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--network", "dgase", *SMALL), "must be one of ekyt, dgaze, ehtask. Got 'dgase'"),
        (("dgaze", *SMALL), "The network is chosen with --network dgaze"),
        (("--network", "dgaze", *SMALL, "--window", 2), "'--window' option belongs to ekyt and"),
        (("--network", "ehtask", *SMALL, "--channels", "gaze"), "belongs to ekyt, and the network"),
        (("--horizon", 0.2, *SMALL), "'--horizon' option belongs to dgaze"),
        (("{}", "--network", "dgaze", "--rate", 60), "rate of simulated people"),
        (("{}", "--network", "ehtask", "--window", 1), "only 'free-viewing'"),
        (("{}", "--network", "dgaze", "--past", 5), "nothing to train on"),
        (("{}", "--network", "dgaze", "--horizon", 0), "must be a positive finite number"),
        (("{}", "--network", "dgaze", "--head", "eye"), "must be one of none, recorded"),
        (("{}", "--network", "dgaze", "--steps", 0), "a whole number of at least 1"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path,
    recordings: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[object, ...],
    sentence: str,
) -> None:
    given = (str(a).format(recordings) for a in arguments)
    assert run("train", *given, "--out", tmp_path / "network") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert sentence in said
    assert "Traceback" not in said
    assert not (tmp_path / "network").exists()


def test_one_person_under_two_names_is_not_trained_on_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (one,) = simulate(1, 1, 5.0, 60.0, seed=1)
    write(Cohort([one, one.with_(person="another name")]), tmp_path / "people")
    options = ("--network", "dgaze", "--out", tmp_path / "network")
    assert run("train", tmp_path / "people", *options) == 2
    assert (
        "begins with exactly the gaze of a recording under another name" in capsys.readouterr().err
    )
