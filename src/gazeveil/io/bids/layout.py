"""Names, labels and sidecars of a BIDS folder.

A file name is `<entity>-<label>_..._<suffix>.<extension>`. By the inheritance principle a JSON file
applies to every data file with the same suffix, in its folder or below, whose entities include all
of its own; the deeper and the more particular one wins.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gazeveil.io.parsing.loaded import read_json

#: Version of the specification that is written.
VERSION = "1.11.0"

#: Key of the sidecar under which Gazeveil keeps what BIDS has no field for.
OWN = "GazeveilRecording"

#: Folders of a dataset that hold no raw recordings.
_ASIDE = frozenset({"derivatives", "sourcedata", "code", "stimuli", "phenotype"})


@dataclass(frozen=True)
class Name:
    """A BIDS file name taken apart."""

    path: Path
    entities: tuple[tuple[str, str], ...]
    suffix: str

    @classmethod
    def of(cls, path: Path) -> Name | None:
        """The parts of a file name, or None where it is not of that form."""
        stem = re.sub(r"\.(tsv\.gz|tsv|json)$", "", path.name)
        if stem == path.name:
            return None
        *parts, suffix = stem.split("_")
        pairs = [p.split("-", 1) for p in parts]
        if any(len(p) != 2 or not p[1] for p in pairs):
            return None
        return cls(path, tuple((p[0], p[1]) for p in pairs), suffix)

    def get(self, entity: str) -> str | None:
        """The label of one entity."""
        return dict(self.entities).get(entity)

    def group(self) -> tuple[tuple[str, str], ...]:
        """The entities that tell recordings apart: all but `recording`, which tells eyes apart."""
        return tuple(e for e in self.entities if e[0] != "recording")


def data_files(root: Path, suffix: str) -> Iterator[Name]:
    """All `*_<suffix>.tsv[.gz]` of the raw dataset, in order."""
    for path in sorted(root.rglob(f"*_{suffix}.tsv*")):
        if any(p.startswith(".") or p in _ASIDE for p in path.relative_to(root).parts[:-1]):
            continue
        name = Name.of(path)
        if name is not None and name.suffix == suffix:
            yield name


def sidecar(
    name: Name, root: Path, suffix: str | None = None, without: Iterable[str] = ()
) -> dict[str, object]:
    """Everything the JSON files say about a data file, by inheritance. With `suffix` those that
    describe the same run under another suffix (`events`); `without` are entities to forget.
    """
    wanted = suffix or name.suffix
    own = {k: v for k, v in name.entities if k not in set(without)}
    merged: dict[str, object] = {}
    for inner in reversed(name.path.relative_to(root).parents):
        applicable = []
        for path in (root / inner).glob(f"*{wanted}.json"):
            # At the root the name may be the bare suffix: `physio.json`.
            candidate = Name(path, (), wanted) if path.name == f"{wanted}.json" else Name.of(path)
            if (
                candidate is not None
                and candidate.suffix == wanted
                and all(own.get(k) == v for k, v in candidate.entities)
            ):
                applicable.append(candidate)
        for candidate in sorted(applicable, key=lambda n: (len(n.entities), n.path.name)):
            merged |= read_json(candidate.path)
    return merged


def labels(texts: Iterable[str], empty: str) -> Mapping[str, str]:
    """A label of letters and digits for each text, all different even without regard to case;
    `empty` stands for none.
    """
    result: dict[str, str] = {}
    used: set[str] = set()
    for text in dict.fromkeys(texts):
        plain = re.sub(r"[^A-Za-z0-9]", "", text) or empty
        label, number = plain, 1
        while label.lower() in used:
            number += 1
            label = f"{plain}x{number}"
        used.add(label.lower())
        result[text] = label
    return result


#: What a sidecar says about a column whose cells are escaped.
ESCAPES = r"\t is a tab, \n and \r are ends of lines, \s is a blank at an end, \\ is a backslash"

_LETTER = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_CHARACTER = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r", "s": " ", "q": '"'}


def escaped(text: str) -> str:
    r"""A text that fits a cell.

    Examples
    --------
    >>> escaped("trial\t1 ")
    'trial\\t1\\s'
    """
    plain = "".join(_LETTER.get(c, c) for c in text)
    return re.sub(r"^ | $", r"\\s", plain)


def unescaped(cell: str) -> str:
    """The text that :func:`escaped` made a cell of."""
    return re.sub(r"\\(.)", lambda at: _CHARACTER.get(at[1], at[0]), cell)


def unquoted(text: str) -> str:
    """A text that fits a cell of a file that some programs read with quotes."""
    return escaped(text).replace('"', "\\q")


def tsv(frame: pl.DataFrame, header: bool) -> bytes:
    """A table as TSV: `n/a` for what is missing, no quotes."""
    buffer = io.BytesIO()
    plain = frame.with_columns(
        pl.selectors.float().fill_nan(None), pl.selectors.string().replace("", None)
    )
    plain.write_csv(
        buffer, separator="\t", include_header=header, null_value="n/a", quote_style="never"
    )
    return buffer.getvalue()
