"""The manual says what the code says."""

import importlib.util
import re
from pathlib import Path

import pytest

from gazeveil.io import registry as formats
from gazeveil.privacy import registry

ROOT = Path(__file__).parent.parent


def test_the_page_of_formats_is_what_the_readers_say() -> None:
    spec = importlib.util.spec_from_file_location("formats_page", ROOT / "docs" / "formats_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "formats.md").read_text(encoding="utf-8") == module.page(), "run python docs/formats_page.py"
    assert all(f"## `{name}`" in module.page() for name in formats.names())


@pytest.mark.parametrize("name", registry.mechanisms())
def test_every_mechanism_has_its_proof_and_its_page(name: str) -> None:
    page = ROOT / "docs" / "mechanisms" / f"{name}.md"
    assert page.is_file()
    text = page.read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert pictures, f"{page} shows nothing"
    for picture in pictures:
        assert (page.parent / picture).is_file(), picture
    # One page may prove a family: heatmap, spatial.
    assert any(name == p.stem or name.startswith(f"{p.stem}-") for p in (ROOT / "proofs").glob("*.md"))


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        if "_build" in page.parts:
            continue
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
