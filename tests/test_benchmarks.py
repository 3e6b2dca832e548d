"""Benchmarks start as `make bench` starts them: with nothing but their own folder on the path, one
after the other, each judged by the figures it wrote.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.places import ROOT

#: Imports each benchmark and lets it read its options; the first thing each does is that.
READ_OPTIONS = """
import argparse, importlib, json, sys
sys.path.insert(0, sys.argv[1])
class Read(Exception):
    pass
read = argparse.ArgumentParser.parse_args
def stop(self, *given):
    read(self, *given)
    raise Read
for name, options in json.loads(sys.argv[2]).items():
    module = importlib.import_module(name)
    argparse.ArgumentParser.parse_args = stop
    sys.argv = [name, "--json", "figures.jsonl", *options]
    try:
        module.main()
    except Read:
        print(name)
    finally:
        argparse.ArgumentParser.parse_args = read
"""

#: Made-up benchmarks: what they do, by the word they must get.
HEAD = "import json, pathlib, sys, time\nout = pathlib.Path(sys.argv[2])\n"
MADE_UP = {
    "good": HEAD + "out.write_text(json.dumps({'figure': 'a', 'met': True}))",
    # As one that forgot to look at its floors: the exit code says nothing.
    "low": HEAD
    + "out.write_text(json.dumps({'figure': 'b', 'value': 1, 'floor': 2, 'met': False}))",
    "broken": "raise RuntimeError('it broke')",
    "empty": "print('nothing to measure')",
    "busy": HEAD + "out.write_text(json.dumps({'figure': 'c', 'met': None, 'why': 'too busy'}))",
    "hanging": HEAD
    + "import subprocess\n"
    + "child = subprocess.Popen(['sleep', '600'])\n"
    + "out.with_suffix('.pid').write_text(str(child.pid))\n"
    + "print('waits for ever')\n"
    + "time.sleep(600)",
    "sized": HEAD + "out.write_text(json.dumps({'figure': ' '.join(sys.argv[3:]), 'met': True}))",
}


def loaded(name: str) -> ModuleType:
    """A file of the folder, which is no package, as a module."""
    spec = importlib.util.spec_from_file_location(
        f"benchmarks_{name}", ROOT / "benchmarks" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run() -> ModuleType:
    return loaded("run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in MADE_UP.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def test_every_benchmark_of_make_bench_is_there_and_takes_its_options(
    run: ModuleType, tmp_path: Path
) -> None:
    options = {bench.name: bench.options for bench in run.BENCHES}
    assert sum(bench.usual_s for bench in run.BENCHES) <= 3600, "make bench takes at most an hour"
    done = subprocess.run(
        [sys.executable, "-c", READ_OPTIONS, str(ROOT / "benchmarks"), json.dumps(options)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list(options)


def test_each_benchmark_is_judged_and_one_that_hangs_holds_up_nobody(
    run: ModuleType, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = folder / "results"
    results.mkdir()
    # What an earlier run wrote must not stand for what this one did not reach.
    (results / "broken.jsonl").write_text('{"figure": "old", "met": true}\n', encoding="utf-8")
    chosen = [
        run.Bench(name, 1, 1) for name in ("hanging", "low", "broken", "empty", "busy", "good")
    ]
    outcomes = run.run_all(chosen, False, 2.0, folder, results)
    assert {o.name: o.word for o in outcomes} == {
        "hanging": "stopped",
        "low": "missed",
        "broken": "failed",
        "empty": "failed",
        "busy": "measured",
        "good": "passed",
    }
    assert [o.name for o in outcomes if o.bad] == ["hanging", "low", "broken", "empty"]
    printed = capsys.readouterr().out
    assert "b: 1 (floor 2)" in printed
    assert "RuntimeError: it broke" in printed
    assert "waits for ever" in printed
    assert "not judged: c, too busy" in printed
    assert "missed: low\nfailed: broken empty\nstopped: hanging" in run.summary(outcomes, results)
    child = (results / "hanging.pid").read_text(encoding="utf-8")
    # A process that was killed may still be listed until somebody asks how it ended.
    listed = subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, text=True)
    assert listed.stdout.strip() in ("", "Z", "Z+"), listed.stdout
