"""Tables of known layout: formats that a shipped `dataset.toml` describes.

Each `<format>.toml` beside this module has the keys of :mod:`gazeveil.io.dataset_file` and
`title`, `match` (columns that a file must have) or `magic` (its first bytes), optionally `table` (a
reader of :mod:`gazeveil.io.plain.text`) and `[dataset]` (a public dataset's publisher,
licence and citation). What a user says goes before it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path

from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.facts import Doubt
from gazeveil.io.dataset_file import described
from gazeveil.io.plain import reader
from gazeveil.io.plain.layout import chosen_columns
from gazeveil.io.plain.roles import squeezed
from gazeveil.io.registry import Dataset, Format, Guess
from gazeveil.io.source import Head

_OWN = ("title", "match", "magic", "table", "dataset")


def __getattr__(name: str) -> Format:
    """The format of a name."""
    file = resources.files(__name__) / f"{name}.toml"
    if not file.is_file():
        raise AttributeError(name)
    content = tomllib.loads(file.read_text("utf-8"))
    own = {k: content.pop(k) for k in _OWN if k in content}
    options = {
        **described(Path(f"{name}.toml"), content).options,
        **({"table": own["table"]} if "table" in own else {}),
    }
    published = own.get("dataset")
    return Format(
        name,
        own["title"],
        partial(_sniff, tuple(squeezed(c) for c in own.get("match", ())), own.get("magic", "")),
        partial(_scan, options),
        reader.FORMAT.options,
        dataset=None if published is None else Dataset(**published),
        complete=partial(_complete, options),
        describe=partial(_describe, options),
        doubts=partial(_doubts, options),
    )


def _sniff(match: tuple[str, ...], magic: str, head: Head) -> bool:
    if magic:
        return head.data.startswith(magic.encode("latin-1"))
    return set(match) <= {squeezed(c) for c in head.cells}


def _merged(known: Mapping[str, object], said: Mapping[str, object]) -> dict[str, object]:
    columns = {**chosen_columns(known), **chosen_columns(said)}
    return {**known, **said, **({"columns": columns} if columns else {})}


def _scan(known: Mapping[str, object], path: Path, root: Path, **said: object) -> Iterable[Handle]:
    return reader.scan(path, root, **_merged(known, said))


def _complete(
    known: Mapping[str, object], files: Sequence[Path], said: Mapping[str, object]
) -> Guess:
    return reader.complete(files, _merged(known, said))


def _describe(
    known: Mapping[str, object], path: Path, said: Mapping[str, object]
) -> dict[str, object]:
    return reader.describe(path, _merged(known, said))


def _doubts(known: Mapping[str, object], path: Path, said: Mapping[str, object]) -> list[Doubt]:
    return reader.doubts(path, _merged(known, said))
