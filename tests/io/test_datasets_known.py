"""Datasets are described, checked, and known by the content of their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gazeveil.errors import FormatError, ParameterError
from gazeveil.io import registry
from gazeveil.io.reading import read
from gazeveil.io.source import Head
from tests.support.dataset_files import SNIFFED, write
from tests.support.places import ROOT

# --- the listing
# --------------------------------------------------------------------------------------------------


def test_openneeds_says_that_its_layout_is_not_public(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "x\n1\n")
    for place in (path, tmp_path):
        with pytest.raises(FormatError, match="not public"):
            read(place, format="openneeds")


def test_every_dataset_is_described_and_stands_in_the_documentation() -> None:
    entries = registry.describe()
    assert len(entries) == 21
    page = (ROOT / "docs" / "reference" / "datasets.md").read_text(encoding="utf-8")
    for entry in entries:
        for text in (
            entry.format,
            entry.title,
            entry.publisher,
            entry.licence,
            entry.citation,
            entry.layout,
        ):
            assert text, entry
            assert text in page, f"docs/reference/datasets.md does not say '{text}'"
        assert entry.text().startswith(entry.title)
        assert entry.to_dict()["format"] == entry.format
        for option in entry.options:
            assert f"`{option}=" in page, (
                f"docs/reference/datasets.md does not tell the option {option} of {entry.format}"
            )
    with pytest.raises(ParameterError, match="Did you mean 'gazecom'"):
        registry.entry("gazecon")


def knowing(head: Head) -> list[str]:
    """The datasets that take a file for theirs."""
    readable = [e.format for e in registry.describe() if e.format not in registry.WITHOUT_READER]
    return [name for name in readable if registry.get(name).sniff(head)]


@pytest.mark.parametrize(("name", "file", "content"), SNIFFED)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_is_known_by_its_content(
    tmp_path: Path, name: str, file: str, content: str, suffix: str
) -> None:
    path = write(tmp_path / (file + suffix), content)
    assert knowing(Head.of(path)) == [name]
    found = registry.sniff(path)
    assert found.name == name


@pytest.mark.parametrize(
    "content",
    [
        "",
        "a,b\n1,2\n",
        "time,x,y\n0,1,2\n",
        "{}",
        "[]",
        "1 2 3 4\n",
        "0,0,0\n",
        "\x00\x01",
        "frame,x\n",
    ],
)
@pytest.mark.parametrize("file", ["a.csv", "a.txt", "a.json", "a.npy", "a.mat", "a.pck", "a.arff"])
def test_other_files_are_left_alone(tmp_path: Path, file: str, content: str) -> None:
    head = Head.of(write(tmp_path / file, content))
    assert knowing(head) == []
