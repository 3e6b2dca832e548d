"""Sniffing asks, and imports, only the readers that a file may be of."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gazeveil.io import known, registry
from gazeveil.io.source import Head
from tests.support.identifiers import FORMATS, plant
from tests.support.recordings import real

_SNIFF = """
import sys
from pathlib import Path
from gazeveil.io.registry import sniff
found = sniff(Path(sys.argv[1]))
print(getattr(found, "name", None))
print(*(m for m in sys.modules if m.startswith(("gazeveil.io.vendors.", "gazeveil.io.datasets."))))
"""


def _readers(path: Path) -> tuple[str, set[str]]:
    """The format found in a process of its own, and the files of readers imported for it."""
    done = subprocess.run(
        [sys.executable, "-c", _SNIFF, str(path)], capture_output=True, text=True, check=True
    )
    name, modules = done.stdout.split("\n")[:2]
    return name, {m.removeprefix("gazeveil.io.") for m in modules.split()}


@pytest.mark.parametrize(
    ("name", "text", "readers"),
    [
        ("a.csv", "t_ms,x_px,y_px\n0,1,2\n", set()),
        ("a.txt", "nothing known\n", set()),
        ("a.json", "[]", {"datasets.webqamgaze", "datasets.scanpaths", "parsing.layout"}),
        ("a.asc", "MSG 1 x\n", {"vendors.eyelink"}),
    ],
)
def test_only_readers_that_may_know_a_file_are_imported(
    name: str, text: str, readers: set[str], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    _, imported = _readers(path)
    ours = {m for m in imported if any(m == r or m.startswith(f"{r}.") for r in readers)}
    assert imported - ours == set()
    assert bool(ours) == bool(readers)


_WALK = """
import sys
from pathlib import Path
import gazeveil
from gazeveil import io
folder, files = str(Path(io.__file__).parent), set()
def note(frame, event, argument):
    # Bodies of modules and classes run when they are imported.
    if event == "call" and frame.f_code.co_flags & 1:
        files.add(frame.f_code.co_filename)
sys.setprofile(note)
samples = sum(len(r) for r in gazeveil.read(sys.argv[1], unit="deg", space="screen"))
sys.setprofile(None)
print(samples, sum(f.startswith(folder) for f in files))
"""


def test_reading_a_table_runs_few_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"{4 * i},{i % 7 - 3.5},{i % 5 - 2.25}" for i in range(50)]
    path.write_text("\n".join(["t_ms,x_deg,y_deg", *rows, ""]), "utf-8")
    run = [sys.executable, "-W", "ignore", "-c", _WALK, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    samples, files = map(int, done.stdout.split())
    assert samples == 50
    assert 5 < files <= 16


def _all_know_alike(paths: list[Path]) -> int:
    """Marks leave no format out that knows a file; how many files are known."""
    known = 0
    for path in paths:
        place = Head.of(path) if path.is_file() else path
        head = place if isinstance(place, Head) else None
        asked = [f.name for f in registry.in_sniffing_order() if f.knows(path, head)]
        marked = [f.name for f in registry.in_sniffing_order(place) if f.knows(path, head)]
        assert marked == asked, path
        known += bool(asked)
    return known


@pytest.mark.parametrize("name", FORMATS)
def test_no_mark_hides_a_file_that_a_reader_knows(name: str, tmp_path: Path) -> None:
    plant(name, tmp_path)
    assert _all_know_alike([tmp_path, *sorted(tmp_path.rglob("*"))]) or name == "people"


@pytest.mark.parametrize("name", registry.KNOWN)
def test_the_mark_of_a_known_table_asks_for_what_its_description_has(name: str) -> None:
    about = tomllib.loads((Path(known.__file__).parent / f"{name}.toml").read_text("utf-8"))
    first = about.get("magic", "").encode("latin-1") or ",".join([*about["match"], "more"]).encode()
    asked = registry.in_sniffing_order(Head(Path("a.csv"), first))
    assert name in [form.name for form in asked]


def test_no_mark_hides_a_published_file() -> None:
    root = real("vendor_samples").parent
    places = [p for f in sorted(root.rglob("*")) if f.is_dir() for p in sorted(f.iterdir())[:1]]
    assert _all_know_alike(places) > 10
