"""What a file holds is read once, and again when the file has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gazeveil.errors import FormatError
from gazeveil.io.parsing.assemble import read_json


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": 1}')
    assert read_json(file) is read_json(file)
    file.write_text('{"a": 2}')
    os.utime(file, ns=(0, 1))  # a change within one tick of the disk's clock has the same time
    assert read_json(file) == {"a": 2}


def test_a_fault_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    with pytest.raises((FormatError, OSError)):
        read_json(file)
    file.write_text("{}")
    assert read_json(file) == {}
