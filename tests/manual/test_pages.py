"""Pages say what the package has.

Pages of lessons and guides are easy to read, and the manual stays short.

A newcomer with an empty environment sees what the page of the first ten minutes shows.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from benchmarks import newcomer

from gazeveil.cli.main import VERBS
from tests.support.manual import pages
from tests.support.places import ROOT
from tests.support.readability import page_ease


def test_every_extra_is_on_the_page_of_installing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z0-9]+)` \|", text, re.MULTILINE))
    assert listed == set(project["optional-dependencies"]) - {"dev"}


def test_every_page_is_in_a_list_of_pages() -> None:
    listed: set[str] = set()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for body in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for line in body.splitlines():
                if line and not line.startswith(":"):
                    listed |= {str(p) for p in page.parent.glob(f"{line}.md")}
    manual = {str(p) for p in pages() if p.is_relative_to(ROOT / "docs")}
    assert manual - listed == {str(ROOT / "docs" / "index.md")}


def test_every_verb_is_somewhere_in_the_manual() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    said = set(re.findall(r"gazeveil ([a-z][a-z-]+)", text))
    assert {verb.replace("_", "-") for verb in VERBS} - said == set()


def test_workflows_run_commands_that_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    known = {"make": targets, "gazeveil": VERBS, "pip": ["install"]}
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    jobs = [j for f in files for j in yaml.safe_load(f.read_text("utf-8"))["jobs"].values()]
    lines = [step["run"].split() for job in jobs for step in job["steps"] if "run" in step]
    assert [line for line in lines if line[1] not in known[line[0]]] == [] != lines


def test_the_readme_is_short_and_has_one_table_and_one_picture() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 700
    assert len(re.findall(r"^\| -", text, re.MULTILINE)) <= 1
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert (ROOT / picture).is_file()


MECHANISMS = sorted((ROOT / "docs" / "reference" / "mechanisms").glob("*.md"))
SHAPE = ["When to use it", "Promise", "How it works", "Parameters", "Figure", "Paper and proof"]


@pytest.mark.parametrize("page", [p for p in MECHANISMS if p.stem != "index"], ids=lambda p: p.stem)
def test_pages_of_mechanisms_are_short_and_of_one_shape(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert [h for h in headings if h in SHAPE] == SHAPE
    assert len(headings) <= len(SHAPE) + 1
    assert "![" in text.split("## Figure")[1]
    assert "Proof" in text.split("## Paper and proof")[1]
    assert len(text.split()) <= 500


def test_first_lessons_say_what_the_strong_battery_finds() -> None:
    """The figures stand in the results of the battery, so that they are renewed with them."""
    table = (ROOT / "docs" / "results" / "attackers.md").read_text(encoding="utf-8")
    screen = table.split("<!-- end gazecom -->")[0]
    told = {
        name: re.search(rf"^\| `{name}.*?\| \d+ \| (\d+) \(", screen, re.MULTILINE)
        for name in (
            "gaussian` sigma_deg=10 ",
            "spatial` L=64 ",
            "temporal` K=3 ",
            "k-same-synth` k=4",
        )
    }
    rates = [m[1] for m in told.values() if m is not None]
    noise, spatial, temporal, groups = rates
    for path in ("src/gazeveil/cli/demo.py", "src/gazeveil/explore/web/explore.html"):
        words = " ".join((ROOT / path).read_text(encoding="utf-8").split())
        for rate in (noise, spatial, temporal):
            assert f"{rate} %" in words, path
    for name, rate in (("screen", noise), ("csv", groups)):
        page = (ROOT / "docs" / "start" / f"tutorial-{name}.md").read_text(encoding="utf-8")
        assert f"[{rate} % of 24" in page


DOCS = ROOT / "docs"
LESSONS = [
    page
    for page in pages()
    if page.is_relative_to(DOCS / "start") or page.is_relative_to(DOCS / "howto")
]


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_lesson_reads_easily(page: Path) -> None:
    assert page_ease(page) >= 50


def test_the_manual_grows_no_longer() -> None:
    manual = [page for page in pages() if page.is_relative_to(DOCS)]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in manual) <= 75_000


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("python", newcomer.PYTHONS)
def test_the_first_ten_minutes_from_a_wheel(python: str, tmp_path: Path) -> None:
    if (command := newcomer.find(python)) is None:
        pytest.skip(f"{python} is not installed")
    wheel = newcomer.build_wheel(tmp_path, python)
    assert newcomer.walk(command, [wheel], tmp_path) == []
