"""JSON: one document, or one per line (Tobii Glasses 3)."""

from __future__ import annotations

import json
import re

from gazeveil.errors import FormatError
from gazeveil.io.source import read_text
from gazeveil.release.inventory.notes import FileNotes
from gazeveil.release.inventory.sampling import Sampled

_FEW = 20
_MANY_KEYS = 40
_SOME_KEYS = 5
_PAIR = re.compile(r'"([^"\\]{1,80})"\s*:\s*("(?:[^"\\]|\\.)*"|-?[\d.eE+-]+)')


def is_lines(sampled: Sampled) -> bool:
    """Whether each line is a document of its own."""
    first, _, rest = sampled.text.partition("\n")
    if not rest.strip():
        return False
    try:
        json.loads(first)
    except (json.JSONDecodeError, RecursionError):
        return False
    return True


def is_json(text: str) -> bool:
    """Whether a text begins as JSON does."""
    return text.lstrip()[:1] in ("{", "[")


def look(sampled: Sampled, notes: FileNotes, all_items: bool = False) -> int:
    """Note every key's value; of a long list the first 20 unless all are asked for.

    Returns
    -------
    int
        The number of lines that were looked at.
    """
    return (_look_lines if is_lines(sampled) else _look_whole)(sampled, notes, all_items)


def _look_lines(sampled: Sampled, notes: FileNotes, all_items: bool) -> int:
    looked = 0
    for _, line in sampled.lines:
        looked += 1
        try:
            walk("", json.loads(line), notes, all_items)
        except (json.JSONDecodeError, RecursionError):
            notes.text("a line", line)
    return looked


def _look_whole(sampled: Sampled, notes: FileNotes, all_items: bool) -> int:
    """One document, read whole: keys at its end say as much as those at its beginning."""
    text = sampled.text
    try:
        text = read_text(sampled.path)
        walk("", json.loads(text), notes, all_items)
    except (json.JSONDecodeError, RecursionError, FormatError):
        for name, value in _PAIR.findall(text):
            notes.value(name, value.strip('"'))
    return text.count("\n") + 1


def walk(field: str, value: object, notes: FileNotes, all_items: bool) -> None:
    """Note a value and everything in it; `field` is the path of keys that led there."""
    if isinstance(value, dict):
        many = _keys_are_data(value)
        for name, inner in value.items():
            notes.text(f"{field}.*" if field else "*", name)
            below = f"{field}.*" if many else (f"{field}.{name}" if field else name)
            walk(below, inner, notes, all_items)
    elif isinstance(value, list):
        for inner in value if all_items else value[:_FEW]:
            walk(field, inner, notes, all_items)
    elif isinstance(value, bool) or value is None:
        return
    else:
        notes.value(field or "value", str(value), name=field.rsplit(".", 1)[-1])


def _keys_are_data(value: dict[str, object]) -> bool:
    """Whether keys are names of trials or people rather than of fields."""
    alike = len({type(inner) for inner in value.values()}) == 1
    nested = alike and isinstance(next(iter(value.values())), dict | list)
    return len(value) > _MANY_KEYS or (len(value) > _SOME_KEYS and nested)
