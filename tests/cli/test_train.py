"""`gazeveil train`: people apart, a card, a kill and what comes after it."""

import json
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.registry import attack
from gazeveil.cli import train
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.simulate import simulate
from gazeveil.models.ekyt.weights import load_ekyt
from tests.support.command_line import run

torch = pytest.importorskip("torch", reason="the extra 'deep' is not installed")

QUICK = ("--rate", 30, "--window", 2, "--device", "cpu")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "simulated"
    simulate(8, 2, 6.0, 30.0, seed=0).write(path)
    return path


@pytest.fixture(scope="module")
def folder(people: Path) -> Path:
    out, figures = people.parent / "network", people.parent / "figures.json"
    assert run("train", people, *QUICK, "--out", out, "--steps", 3, "--json", figures) == 0
    return out


def test_the_folder_holds_weights_and_a_card_that_says_how_to_handle_them(folder: Path) -> None:
    assert sorted(p.name for p in folder.iterdir()) == ["card.json", "card.md", "weights.npz"]
    card = json.loads((folder / "card.json").read_text("utf-8"))
    assert card == json.loads((folder.parent / "figures.json").read_text("utf-8"))
    assert (card["people_trained"], card["people_held_out"], card["rate_hz"]) == (6, 2, 30.0)
    assert {v["condition"] for v in card["verified"]} == {"duration_s"}
    assert all(0 <= v["eer"] <= 1 and v["people"] == 2 for v in card["verified"])
    page = (folder / "card.md").read_text("utf-8")
    for words in (
        "trained on | simulated",
        "people trained on | 6",
        "as you would the raw recordings",
    ):
        assert words in page
    assert load_ekyt(folder / "weights.npz").about == card


def test_the_weights_serve_the_attacker(folder: Path) -> None:
    people = RecordingSet(Cohort(list(simulate(3, 1, 6.0, 60.0, seed=9))))
    who = attack(f"ekyt:weights={folder / 'weights.npz'}")
    # The same recordings on both sides: everybody is nearest to themselves.
    assert who.identify(people, people, 0).credit().mean() == 1.0


def test_the_file_marks_the_recordings_of_the_people_trained_on_and_no_others(folder: Path) -> None:
    model = load_ekyt(folder / "weights.npz")
    people = gazeveil.read(folder.parent / "simulated")
    known = model.marks.people(people)
    assert len(known) == 6
    assert all(model.marks.knows(r) == (r.person in known) for r in people)
    assert "salted marks" in (folder / "card.md").read_text("utf-8")
    header = str(np.load(folder / "weights.npz", allow_pickle=False)["header"])
    assert not any(f'"{person}"' in header for person in people.people)
    both = RecordingSet(people)
    who = attack(f"ekyt:weights={folder / 'weights.npz'},device=cpu")
    assert who.trained_on(both) == known
    others = both.select(people=[p for p in people.people if p not in known])
    assert who.trained_on(others) == frozenset()
    assert len(who.identify(others, others, 0).probes) == 2
    with pytest.raises(DataError, match=r"trained on 6 of these 8 people.*Leave them out"):
        who.identify(both, both, 0)


def test_nobody_is_trained_on_and_judged(
    people: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: dict[str, set[str]] = {}
    original = train.by_people

    def watch(*arguments):
        trained, held_out = original(*arguments)
        seen.update(trained=set(trained.persons), held_out=set(held_out.persons))
        return trained, held_out

    monkeypatch.setattr(train, "by_people", watch)
    options = ("--steps", 1, "--hold-out", 0.5)
    assert run("train", people, *QUICK, "--out", tmp_path / "n", *options) == 0
    assert not seen["trained"] & seen["held_out"]
    assert len(seen["trained"]) == len(seen["held_out"]) == 4


def test_the_same_command_after_a_kill_ends_with_the_same_weights(
    folder: Path,
    people: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, original = tmp_path / "network", train.bar

    class Stop:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def __call__(self, done: int, total: int) -> None:
            if done == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(train, "EVERY", 1)
    monkeypatch.setattr(train, "bar", lambda _: Stop())
    assert run("train", people, *QUICK, "--out", out, "--steps", 3) == 130
    assert "the same command goes on from there" in " ".join(capsys.readouterr().out.split())
    assert [p.name for p in out.iterdir()] == ["checkpoint.pt"]
    monkeypatch.setattr(train, "bar", original)
    assert run("train", people, *QUICK, "--out", out, "--steps", 3) == 0
    assert "Going on from" in capsys.readouterr().out
    ours, theirs = (load_ekyt(f / "weights.npz").network.parts for f in (out, folder))
    for name, value in theirs.state_dict().items():
        if not name.startswith("classifier."):
            assert torch.equal(value, ours.state_dict()[name]), name


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--hold-out", 1), "a share from 0 to below 1. Got 1.0 instead"),
        (("--hold-out", 0.1), "two usable recordings each"),
        (("--hold-out", 0.1), "Use --hold-out 0 to train without judging."),
        (("--channels", "eye"), "must be one of gaze, gaze+head"),
        (("--device", "moon"), "'--device' option must be"),
    ],
)
def test_bad_input_is_one_sentence(
    people: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[object, ...],
    sentence: str,
) -> None:
    assert run("train", people, *arguments, "--out", tmp_path / "network") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert sentence in said
    assert "Traceback" not in said
    assert not (tmp_path / "network").exists()


def test_weights_that_are_there_are_not_overwritten(
    folder: Path, people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", people, *QUICK, "--out", folder) == 2
    assert "holds weights already" in capsys.readouterr().err
