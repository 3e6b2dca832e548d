"""The example package is installed, found by entry point, listed, used, and passes its kits; a
broken part of each kind is rejected. The format, the attack and the mechanism of the how-to pages
also work in the places of this tree that the pages name.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks import registry as attacks
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.conformance import check_attack
from gazeveil.cli.main import main
from gazeveil.conformance import CheckResult
from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers import Tracker
from gazeveil.io import registry as formats
from gazeveil.io.conformance import check_format
from gazeveil.io.registry import Format
from gazeveil.privacy import registry as mechanisms
from gazeveil.privacy.mechanism import Claim
from gazeveil.registry import Registry, is_class_of
from gazeveil.relay.conformance import check_tracker
from gazeveil.release.scrub import scrub
from gazeveil.utility.base import Utility, UtilityResult, check_utility
from tests.privacy.test_fingerprints import fingerprint
from tests.support.command_line import Said
from tests.support.places import ROOT

PARTS = {
    "list mechanisms": "randomized-response",
    "list formats": "gaze-lines",
    "list attacks": "mean-place",
    "list utilities": "path-length",
}

CHECKED = (*PARTS.values(), "circle")

USES = ("inspect in", "scrub in scrubbed")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package in it, built without a network."""
    folder = tmp_path_factory.mktemp("plugins")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([*pip, *offline, str(ROOT / "examples" / "plugins")], check=True)
    return folder


@pytest.fixture(scope="module")
def lines_of_gaze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people on four stimuli, in files of the example's format with a remark in each."""
    folder = tmp_path_factory.mktemp("lines") / "in"
    for r in gazeveil.simulate(3, 4, 2.0, 60.0, seed=1):
        rows = zip(r.t_ns / 1e6 + 500, r.x_deg, r.y_deg, r.valid, strict=True)
        text = (f"{t:.3f} {x:.2f} {y:.2f}" if ok else f"{t:.3f} - -" for t, x, y, ok in rows)
        path = folder / f"wearer{r.person}" / f"{r.stimulus}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["gaze-lines 1 60", "# recorded by Berta", *text]) + "\n")
    return folder


@pytest.fixture(scope="module")
def said(installed: Path, lines_of_gaze: Path) -> dict[str, Said]:
    """What lists, checks and uses of the parts say, all in one process that has the package."""
    commands = [*PARTS, *(f"check {name}" for name in CHECKED), *USES]
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
        cwd=lines_of_gaze.parent,
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


def test_the_format_is_read_by_looking_at_the_file_and_copied(said: dict[str, Said]) -> None:
    assert said["scrub in scrubbed"].code == 0, said["scrub in scrubbed"].err
    assert re.search(r"format\W+gaze-lines", said["inspect in"].out)


def in_the_tree(
    patch: pytest.MonkeyPatch, folder: Path, page: str, package: str
) -> tuple[str, tuple[str, str]]:
    """The example module of a page where its registry line says: the line's name and place."""
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text("utf-8")
    for place in re.findall(r"`((?:src|docs|tests)/[^`]*)`", text):
        assert (ROOT / place).parent.is_dir(), place
    (line,) = re.findall(r'one line \| `("[^`]*),`', text)
    ((name, where),) = ast.literal_eval("{" + line + "}").items()
    module, attribute = (where, "FORMAT") if isinstance(where, str) else where
    inner, _, file = module.rpartition(".")
    *_, example = re.findall(r"\]\((\S+\.py)\)", text)
    shutil.copy(ROOT / "docs" / "howto" / example, folder / f"{file}.py")
    assert f"`src/gazeveil/{package}/{inner}/{file}.py`" in text
    home = import_module(f"gazeveil.{package}.{inner}")
    patch.setattr(home, "__path__", [*home.__path__, str(folder)])
    return name, (module, attribute)


def test_a_format_in_the_tree_is_one_module_and_one_line(
    lines_of_gaze: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, where = in_the_tree(monkeypatch, tmp_path, "add_format", "io")
    monkeypatch.setitem(formats.REGISTRY.built_in, name, where)
    monkeypatch.setattr(formats, "MODULES", {name: where[0], **formats.MODULES})
    raw = gazeveil.read(lines_of_gaze)
    assert len(raw) == 12
    assert {r.person for r in raw} == {folder.name for folder in lines_of_gaze.iterdir()}
    scrub(lines_of_gaze, tmp_path / "out")
    copied = [path.read_text() for path in (tmp_path / "out").rglob("*.txt")]
    assert len(copied) == 12
    assert all(re.match(r"gaze-lines 1 60\n0\.000 ", text) for text in copied)
    assert not [text for text in copied if "Berta" in text]
    assert "wearer" not in str([*(tmp_path / "out").rglob("*")])
    again = {r.x_deg.tobytes(): r for r in gazeveil.read(tmp_path / "out")}
    assert again.keys() == {r.x_deg.tobytes() for r in raw}


def test_an_attack_in_the_tree_is_one_module_and_one_line(
    lines_of_gaze: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, where = in_the_tree(monkeypatch, tmp_path, "add_attack", "attacks")
    monkeypatch.setitem(attacks.BUILT_IN, name, where)
    cohort = gazeveil.simulate(4, 4, 2.0, 60.0, seed=1)
    found = gazeveil.evaluate(
        cohort, ["gaussian:sigma_deg=5"], attacks=[name], repetitions=1, executor=1
    )
    assert found.failures == ()
    assert name in found.frame["attack"].to_list()
    assert failed(check_attack(attacks.attack(name))) == ""


def test_a_mechanism_in_the_tree_is_one_module_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, where = in_the_tree(monkeypatch, tmp_path, "add_mechanism", "privacy")
    monkeypatch.setitem(mechanisms.BUILT_IN, name, where)
    module = (tmp_path / f"{name}.py").read_text("utf-8")
    imported = re.findall(r"^(?:from|import) gazeveil.*$", module, re.MULTILINE)
    assert len(imported) <= 5
    assert failed(gazeveil.check_mechanism(gazeveil.mechanism(f"{name}:most_deg=3"))) == ""
    assert fingerprint(f"{name}:most_deg=3") == fingerprint(f"{name}:most_deg=3")
    with pytest.raises(ParameterError, match="at most 10 degrees"):
        gazeveil.mechanism(f"{name}:most_deg=11")


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
    gazeveil.register(NameReader)
    try:
        assert str(attacks.attack("name-reader")) == "name-reader"
        with pytest.raises(ParameterError, match="not taken"):
            gazeveil.register(NameReader)
    finally:
        attacks.REGISTRY.forget("name-reader")
    with pytest.raises(ParameterError, match="a class of one of"):
        gazeveil.register(Path)
