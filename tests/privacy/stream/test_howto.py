"""The stream mechanism of the how-to page: built from its module as a newcomer would."""

from __future__ import annotations

import importlib
import re
import sys

import pytest

from gazeveil.errors import ParameterError
from gazeveil.privacy.audit.run import audit
from gazeveil.privacy.conformance import conform
from tests.support.places import ROOT

MODULE = ROOT / "docs" / "howto" / "offset.py"
sys.path.insert(0, str(MODULE.parent))
OFFSET = importlib.import_module("offset").Offset
sys.path.remove(str(MODULE.parent))


def test_five_import_lines_from_public_places_are_enough() -> None:
    imports = re.findall(r"^(?:from|import) gazeveil.*$", MODULE.read_text("utf-8"), re.MULTILINE)
    assert len(imports) <= 5
    assert not [line for line in imports if re.search(r"[ .]_", line)]


def test_the_page_names_places_of_this_tree_and_its_registry_line() -> None:
    page = (ROOT / "docs" / "howto" / "add_mechanism.md").read_text("utf-8")
    for place in re.findall(r"`((?:src|proofs|docs|tests)/[^`]*)offset[^`]*`", page):
        assert (ROOT / place.rpartition("/")[0]).is_dir()
    registry = (ROOT / "src" / "gazeveil" / "privacy" / "registry.py").read_text("utf-8")
    assert '"temporal": ("stream.filters", "Temporal"),' in registry  # the form of the line
    assert '"offset": ("stream.offset", "Offset"),' in page


def test_it_passes_the_kit_and_claims_nothing() -> None:
    assert conform(OFFSET(most_deg=3)) == []
    assert audit(OFFSET(most_deg=3), trials=100).epsilon_claimed is None
    with pytest.raises(ParameterError, match="at most 10 degrees"):
        OFFSET(most_deg=11)
