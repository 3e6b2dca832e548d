"""JSON by an allow-list: what no rule names is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.io.source import read_text
from gazeveil.release.inventory.patterns import is_clock
from gazeveil.release.scrub.job import ScrubJob

#: `keep` numbers and harmless words; `label` a text; `removed` writes that word; `zero` the number.
Rules = Mapping[str, object]

_LARGEST_WHOLE = 10**9


def load_json(path: Path) -> object:
    """The document of a file.

    Raises
    ------
    FormatError
        For a file that is no JSON.
    """
    try:
        return json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise FormatError(path, "it is not whole JSON", "Copy it again.") from error


def dump_json(value: object) -> list[str]:
    """The lines of a document."""
    return json.dumps(value, indent=1, ensure_ascii=False).split("\n")


def scrubbed_document(value: object, rules: Rules, job: ScrubJob) -> dict[str, object]:
    """The keys of an object that rules name, each as its rule says."""
    result: dict[str, object] = {}
    for name, inner in value.items() if isinstance(value, dict) else ():
        rule = rules.get(name)
        if rule is None:
            job.done["keys left out"] += 1
        elif isinstance(rule, Mapping):
            result[name] = scrubbed_document(inner, rule, job)
        elif rule == "keep":
            result[name] = kept(inner, job)
        elif rule == "label":
            result[name] = job.label(str(inner)) if inner is not None else None
        else:
            result[name] = 0 if rule == "zero" else "removed"
    return result


def kept(value: object, job: ScrubJob) -> object:
    """Numbers as they are, harmless words, and lists of both; a clock becomes 0."""
    if isinstance(value, list):
        return [kept(inner, job) for inner in value]
    if isinstance(value, str):
        return value if value == "" else job.word(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        whole_number = isinstance(value, int) and abs(value) > _LARGEST_WHOLE
        return 0 if whole_number or is_clock(value) else value
    return None
