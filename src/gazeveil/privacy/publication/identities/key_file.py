"""The key of pseudonyms: who is who, for the holder of the raw data alone.

It is written apart from the release, for its owner only (mode 0600), and never over a file that is
there. Whoever scores attackers reads it; attackers never do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from gazeveil.errors import DataError, FormatError
from gazeveil.gaze.cohort import Attributes, Cohort, Handle
from gazeveil.gaze.recording import KEY_NAMES, Recording, RecordingKey
from gazeveil.privacy.publication.identities.names import PublicNames

_FORMAT = "gazeveil-pseudonym-key"
_VERSION = 1

_TAKEN = "{} exists already, and a key is never overwritten. Name another file."


def check_key_file(path: Path, out: Path) -> None:
    """Refuse a key file that exists, or that would be published with the release (the folder or
    file `out`).
    """
    if path.exists():
        raise DataError(
            f"{path} exists already, and a key is never overwritten. Name another file."
        )
    if out.resolve() in path.resolve().parents or path.resolve() == out.resolve():
        raise DataError(
            f"{path} is inside the release {out}: whoever gets the release would know who is who."
            " Name a file elsewhere."
        )


def write_key(path: Path, names: PublicNames) -> None:
    """Write who is who, readable for the owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {"format": _FORMAT, "version": _VERSION, "recordings": names.to_list()}
    text = json.dumps(stored, indent=1, ensure_ascii=False) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise DataError(_TAKEN.format(path)) from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def read_key(path: Path) -> PublicNames:
    """Read who is who.

    Raises
    ------
    FormatError
        For a file that :func:`write_key` did not write.
    """
    problem = "this is not a key of pseudonyms", "Name the file of `--key-file`."
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["format"] != _FORMAT or stored["version"] != _VERSION:
            raise FormatError(path, *problem)
        return PublicNames.from_list(stored["recordings"])
    except (UnicodeDecodeError, ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(path, *problem) from error


def raw_names(copy: Cohort, names: PublicNames, people: Mapping[str, Attributes]) -> Cohort:
    """A published copy under the raw names of its key, for whoever scores attackers. `people` says
    what is true of people, by raw name.

    Raises
    ------
    DataError
        If the key is that of another release.
    """
    back = {public: raw for raw, public in names.recordings.items()}
    unknown = [key for key in copy.keys if key not in back]
    if unknown:
        raise DataError(
            f"The key does not know {len(unknown)} of the {len(copy)} recordings of the copy, e.g."
            f" that of person '{unknown[0][0]}'. It belongs to another release."
        )
    items = [_renamed(item, back[item.key]) for item in copy.items]
    recorded = {item.person for item in items}
    attributes = {p: a for p, a in people.items() if p in recorded}
    return Cohort(items, attributes, copy.skipped, copy.name, copy.read_as)


def _renamed(item: Recording | Handle, key: RecordingKey) -> Recording | Handle:
    keys = dict(zip(KEY_NAMES, key, strict=True))
    if isinstance(item, Recording):
        return item.with_(**keys)
    load = partial(_load, item.load, keys)
    return replace(item, **keys, load=load, chunks=None)  # type: ignore[arg-type]


def _load(load: Callable[[], Recording], keys: dict[str, str]) -> Recording:
    return load().with_(**keys)
