"""The example package is installed, found by entry point, listed, used, and passes its kits; a
broken part of each kind is rejected.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.conformance import check_attack
from gazeveil.cli.main import main
from gazeveil.conformance import CheckResult
from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers import Tracker
from gazeveil.io.conformance import check_format
from gazeveil.io.registry import Format
from gazeveil.privacy.mechanism import Claim
from gazeveil.registry import Registry, is_class_of
from gazeveil.relay.conformance import check_tracker
from gazeveil.utility.base import Utility, UtilityResult, check_utility
from tests.support.command_line import Said
from tests.support.places import ROOT

PARTS = {
    "list mechanisms": "randomized-response",
    "list formats": "gaze-lines",
    "list attacks": "mean-place",
    "list utilities": "path-length",
}

CHECKED = (*PARTS.values(), "circle")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package in it, built without a network."""
    folder = tmp_path_factory.mktemp("plugins")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([*pip, *offline, str(ROOT / "examples" / "plugins")], check=True)
    return folder


def gazeveil_with(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT / "src")])
    return subprocess.run(
        [sys.executable, "-m", "gazeveil.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.fixture(scope="module")
def said(installed: Path) -> dict[str, Said]:
    """What lists and checks of the parts say, all in one process that has the package."""
    commands = [*PARTS, *(f"check {name}" for name in CHECKED)]
    code = (
        "import json, sys; from dataclasses import asdict;"
        " from tests.support.command_line import gazeveil;"
        " said = [asdict(gazeveil(*command.split())) for command in sys.argv[1:]];"
        " json.dump(said, sys.stdout)"
    )
    path = os.pathsep.join([str(installed), str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code, *commands],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return {c: Said(**s) for c, s in zip(commands, json.loads(done.stdout), strict=True)}


@pytest.mark.parametrize(("verb", "name"), PARTS.items())
def test_the_part_is_found_by_entry_point_and_listed(
    said: dict[str, Said], verb: str, name: str
) -> None:
    assert name in said[verb].out


@pytest.mark.parametrize("name", CHECKED)
def test_the_part_passes_its_kit(said: dict[str, Said], name: str) -> None:
    done = said[f"check {name}"]
    assert done.code == 0, done.out + done.err
    assert "0 failed" in done.out


def test_the_format_is_read_by_looking_at_the_file(installed: Path, tmp_path: Path) -> None:
    file = tmp_path / "anna" / "a.gaze"
    file.parent.mkdir()
    file.write_text("gaze-lines 1 100\n0 180 90\n10 181 90\n")
    done = gazeveil_with(installed, "inspect", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "anna" in done.stdout or "1 recording" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing-like-this"], "must be one of"),
        (["csv"], "--sample"),
        (["no_such_module:Thing"], "cannot be imported"),
        (["lpa"], "needs the parameter"),
        (["lpa:epsilon=1", "--kind", "gadget"], "must be one of"),
    ],
)
def test_bad_input_of_check_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["check", *words])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "Traceback" not in said


def failed(results: list[CheckResult]) -> str:
    return "\n".join(str(r) for r in results if not r.passed)


@dataclass(frozen=True)
class NoNoise(gazeveil.Mechanism[Any]):
    """Releases people as they are and calls that private."""

    name: ClassVar[str] = "no-noise"
    kind: ClassVar[str] = "people"
    paper: ClassVar[str] = "none"
    summary: ClassVar[str] = "Nothing"
    claims: ClassVar[Mapping[str, Claim]] = {"corrected": Claim("epsilon-ldp", "user", "proved")}

    def release(self, data: Any, seed: int | None = None) -> Any:
        return data


def test_a_mechanism_without_a_guarantee_is_rejected() -> None:
    found = failed(gazeveil.check_mechanism(NoNoise()))
    assert "must return a Release with a Guarantee" in found
    assert "no audit game" in found
    assert "no `label`" in found
    assert "no `plot`" in found


def test_a_format_that_loses_rows_and_crashes_is_rejected(tmp_path: Path) -> None:
    from gazeveil.gaze.cohort import Handle

    def load(path: Path) -> gazeveil.Recording:
        rows = np.array([float(line) for line in path.read_text().splitlines()])
        kept = rows[rows > 5]
        t_ns = np.arange(len(kept)) * 10**7
        return gazeveil.Recording(
            "p", "s", t_ns, kept, kept, rate_hz=100.0, counts={"rows": len(rows)}
        )

    def scan(path: Path, root: Path) -> Iterator[Handle]:
        yield Handle("p", "s", lambda: load(path))

    sample = tmp_path / "a.dat"
    sample.write_text("\n".join(map(str, range(20))))
    found = failed(check_format(Format("bad", "bad", lambda head: True, scan), sample))
    for sentence in ("rows became", "it claims a file", "instead of a sentence"):
        assert sentence in found


@dataclass(frozen=True)
class NameReader(Attack):
    """Reads the answer from the names."""

    name: ClassVar[str] = "name-reader"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    def identify(self, gallery: Any, probe: Any, seed: int) -> Scores:
        people = tuple(sorted(gallery.persons))
        same = np.array(people)[:, None] == np.array(people)[None, :]
        return Scores(people, people, same.astype(float))


def test_an_attack_that_reads_names_is_rejected() -> None:
    assert "by the name of the probe" in failed(check_attack(NameReader()))


@dataclass(frozen=True)
class Blind(Utility):
    """Gives the same figure whatever it sees."""

    name: ClassVar[str] = "blind"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    def measure(self, raw: Any, train: Any, test: Any, seed: int) -> tuple[UtilityResult, ...]:
        return (UtilityResult("error", 1.0, np.ones(1), "person", ("p",)),)


def test_a_utility_that_does_not_look_is_rejected() -> None:
    found = failed(check_utility(Blind()))
    assert "no figure is worse" in found
    assert "raw against raw has the error" in found


class Flood(Tracker):
    """Gives a thousand samples at once, with times that stand still."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.rate_hz, self.space = "flood", 10.0, gazeveil.Sphere()

    async def samples(self) -> AsyncIterator[Block | None]:
        ones = np.ones(1000)
        yield block(np.zeros(1000, dtype=np.int64), ones, ones, ones > 0)


def test_a_tracker_out_of_pace_is_rejected() -> None:
    found = failed(check_tracker(Flood))
    assert "times do not grow" in found
    assert "samples came in" in found


def test_a_broken_entry_point_is_one_warning_and_nobody_replaces_a_built_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = [
        EntryPoint("lost", "no_such_module:Thing", "gazeveil.attacks"),
        EntryPoint("wrong", "pathlib:Path", "gazeveil.attacks"),
        EntryPoint("ours", "pathlib:Path", "gazeveil.attacks"),
    ]
    monkeypatch.setattr("gazeveil.registry.entry_points", lambda group: points)
    registry = Registry(
        "attack", "pathlib", {"ours": ("", "")}, is_class_of(Attack), "a class derived from Attack"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert registry.names() == ("ours",)
    sentences = [str(w.message) for w in caught]
    assert len(sentences) == 3
    assert "'lost' is left out" in sentences[0]
    assert "must be a class derived from Attack" in sentences[1]
    assert "the name is taken" in sentences[2]


def test_register_sees_the_kind_from_the_part() -> None:
    from gazeveil.attacks.registry import REGISTRY, attack

    gazeveil.register(NameReader)
    try:
        assert str(attack("name-reader")) == "name-reader"
        with pytest.raises(ParameterError, match="not taken"):
            gazeveil.register(NameReader)
    finally:
        REGISTRY.forget("name-reader")
    with pytest.raises(ParameterError, match="a class of one of"):
        gazeveil.register(Path)
