"""The manual says what the code says."""

import importlib.util
import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest

import gazeveil
from gazeveil.evaluation.study import FRAME
from gazeveil.io import registry as formats
from gazeveil.privacy import registry
from tests.support.places import ROOT


def test_the_page_of_formats_is_what_the_readers_say() -> None:
    spec = importlib.util.spec_from_file_location(
        "formats_page", ROOT / "docs" / "reference" / "formats_page.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "reference" / "formats.md").read_text(
        encoding="utf-8"
    ) == module.page(), "run python docs/reference/formats_page.py"
    datasets = (ROOT / "docs" / "reference" / "datasets.md").read_text(encoding="utf-8")
    sections = module.page() + datasets.replace("## ", "## `")
    assert all(f"## `{name}" in sections for name in formats.names())


@pytest.mark.parametrize("name", registry.mechanisms())
def test_every_mechanism_has_its_proof_and_its_page(name: str) -> None:
    page = ROOT / "docs" / "reference" / "mechanisms" / f"{name}.md"
    assert page.is_file()
    text = page.read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert pictures, f"{page} shows nothing"
    for picture in pictures:
        assert (page.parent / picture).is_file(), picture
    # One page may prove a family: heatmap, spatial.
    assert any(
        name == p.stem or name.startswith(f"{p.stem}-") for p in (ROOT / "proofs").glob("*.md")
    )


def test_every_mechanism_has_the_recipe_of_its_picture() -> None:
    recipes = runpy.run_path(str(ROOT / "docs" / "reference" / "mechanisms" / "recipes.py"))[
        "names"
    ]()
    assert set(registry.mechanisms()) <= set(recipes)
    assert len(recipes) == len(set(recipes))
    for name in recipes:
        assert (ROOT / "docs" / "figures" / f"{name}.png").is_file(), name


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if "_build" in page.parts:
            continue
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_page_of_the_architecture_is_what_contracts_and_a_profiler_say(tmp_path: Path) -> None:
    path = ROOT / "docs" / "explain" / "architecture_page.py"
    made = runpy.run_path(str(path))
    text, again = path.with_name("architecture.md"), "run python docs/explain/architecture_page.py"
    assert (ROOT / "docs" / "figures" / "architecture.svg").read_text("utf-8") == made[
        "picture"
    ](), again
    page = text.read_text(encoding="utf-8")
    assert page == made["page"](tmp_path), again
    assert path.with_name("weight.md").read_text("utf-8") == made["weight"](), again
    walked = re.search(r"One recording passes (\d+) files", page)
    assert walked is not None
    assert int(walked[1]) <= 60


def test_the_glossary_has_every_public_class_and_every_column_of_results() -> None:
    text = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([^`]+)`", text))
    classes = {name for name in gazeveil.__all__ if name[0].isupper()}
    assert classes - words == set(), "docs/reference/glossary.md lacks them"
    assert set(FRAME) - words == set()
    values = (gazeveil.Recording, gazeveil.Events, gazeveil.Screen)
    units = ("_deg", "_ns", "_s", "_ms", "_hz", "_px", "_mm")
    measured = {f.name for cls in values for f in fields(cls) if f.name.endswith(units)}
    assert measured - words == set()
    assert "`Room`" not in text


@pytest.mark.parametrize(
    ("plain", "raised", "set_"),
    [
        ("(dx)^2 + R'^2 <= r^2.", ["2", "2", "2"], "(dx)2 + R'2 ≤ r2."),
        ("e^epsilon0, 2^-4,800 and 2^(p-N)", ["epsilon0", "-4,800", "p-N"], None),
        ("s)^(-3/2), g^-(i+1), 2^2k", ["-3/2", "-(i+1)", "2k"], None),
        ("|y^| of y^_j, R^ and a^|x|: hats", [], "|y^| of y^_j, R^ and a^|x|: hats"),
        ("read -> write, a <== b, <=>", [], "read -> write, a <== b, <=>"),
    ],
)
def test_the_manual_raises_exponents_and_leaves_hats(
    plain: str, raised: list[str], set_: str | None
) -> None:
    pytest.importorskip("docutils", reason="docutils is not installed: the manual is not built")
    made = runpy.run_path(str(ROOT / "docs" / "formulas.py"))["pieces"](plain)
    assert [text for text, up in made if up] == raised
    assert set_ is None or "".join(text for text, _ in made) == set_
