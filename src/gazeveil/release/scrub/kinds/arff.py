"""ARFF: the screen, the attributes that hold gaze and labels, and their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gazeveil.errors import FormatError
from gazeveil.io.parsing.assemble import WORDS
from gazeveil.io.vendors.arff import CODES
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.tables import NEVER, Lines, TableRules, scrubbed_table

_METADATA = re.compile(
    r"^%@METADATA\s+((?:width|height)_(?:px|mm)|distance_mm|fov_(?:width|height)_(?:rad|deg))\s+"
    r"(\d{1,5}(?:\.\d{1,6})?)\s*$",
    re.IGNORECASE,
)
_RELATION = re.compile(r"^@RELATION\s+['\"]?(gaze_360|gaze_labels|gaze|gazecom)\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"^@ATTRIBUTE\s+(?:'([^']+)'|\"([^\"]+)\"|(\S+))\s+(.+)$", re.IGNORECASE)
_DATA = re.compile(r"^@DATA\s*$", re.IGNORECASE)
_MEASURED = r"(?:x|y|confidence|x_head|y_head|angle_deg_head)$"
_LABELS = (
    r"(?:(?:hand)?labeller_?(?:\d{1,2}|final)?|(?:primary|secondary)_label|em_type|label"
    r"|eye_?movement)$"
)
_NUMBER_TYPES = ("integer", "real", "numeric")
_WORDS = frozenset(
    [*WORDS, *WORDS.values(), *CODES, "saccade", "blink", "pso", "noise_cluster", "head_movement"]
)


def scrubbed_arff(lines: Lines, job: ScrubJob) -> Iterator[str]:
    """A file with its screen, its known attributes and their rows; comments and others go."""
    names: list[str] = []
    for line in lines():
        if _DATA.match(line.strip()):
            break
        attribute = _ATTRIBUTE.match(line.strip())
        if attribute is not None:
            names.append(_plain(attribute))
    else:
        raise FormatError("ARFF", "there is no @DATA line", "The file was cut.")
    rules = _rules(names)
    yield from _header(lines, rules, job)
    yield "@DATA"
    # Attributes that are left out would be planned by name twice: rows go by their place.
    yield from scrubbed_table(_rows(lines), rules, job, names=names)


def _rules(names: list[str]) -> TableRules:
    """Rules by key: names of attributes are compared as the reader compares them."""
    kept = [_exactly(n) for n in names if re.match(_MEASURED, n, re.IGNORECASE)]
    labels = [_exactly(n) for n in names if re.match(_LABELS, n, re.IGNORECASE)]
    return TableRules(
        keep="|".join(kept) or NEVER,
        shift=r"time$",
        event="|".join(labels) or NEVER,
        words=_WORDS | frozenset("01234"),
        missing="nan",
    )


def _exactly(name: str) -> str:
    return re.escape(re.sub(r"[^a-z0-9]+", "", name.lower())) + "$"


def _plain(attribute: re.Match[str]) -> str:
    return attribute[1] or attribute[2] or attribute[3]


def _header(lines: Lines, rules: TableRules, job: ScrubJob) -> Iterator[str]:
    relation = "recording"
    kept = []
    for line in lines():
        plain = line.strip()
        if _DATA.match(plain):
            break
        known, attribute = _RELATION.match(plain), _ATTRIBUTE.match(plain)
        metadata = _METADATA.match(plain)
        if known is not None:
            relation = known[1].lower()
        elif metadata is not None:
            kept.append(f"%@METADATA {metadata[1].lower()} {metadata[2]}")
        elif attribute is not None and rules.action(_plain(attribute)) is not None:
            kept.append(f"@ATTRIBUTE {_plain(attribute)} {_type(attribute[4], job)}")
        elif plain:
            job.done["header lines replaced"] += 1
    return iter([f"@RELATION {relation}", "", *kept, ""])


def _type(text: str, job: ScrubJob) -> str:
    """The type of an attribute: a number, or the words it may be."""
    plain = text.strip()
    if not plain.startswith("{"):
        first = plain.split()[0].lower()
        return first.upper() if first in _NUMBER_TYPES else "NUMERIC"
    words = [w.strip().strip("'\"") for w in plain.strip("{} \t").split(",")]
    return "{" + ",".join(job.event(w, _WORDS | frozenset("01234")) for w in words if w) + "}"


def _rows(lines: Lines) -> Lines:
    def rows() -> Iterator[str]:
        inside = False
        for line in lines():
            if inside and line.strip() and not line.lstrip().startswith("%"):
                # Blanks after commas are no part of a cell.
                yield ",".join(c.strip().strip("'\"") for c in line.split(","))
            inside = inside or _DATA.match(line.strip()) is not None

    return rows
