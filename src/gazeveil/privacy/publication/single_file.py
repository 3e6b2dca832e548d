"""Releases that are one file: feature tables, heat maps and tables of people, with a certificate
beside them.

The file appears last, so its certificate is always there too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np

from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import KEY_NAMES, Recording, RecordingKey
from gazeveil.io.tables_file import write_maps, write_people
from gazeveil.privacy.heatmaps import HeatMap
from gazeveil.privacy.publication.alignment import Alignment
from gazeveil.privacy.publication.certificate import Description, write_certificate
from gazeveil.privacy.publication.choices import FIELDS, PublicationChoices
from gazeveil.privacy.publication.ledger import Charging, charged
from gazeveil.privacy.publication.names import (
    PublicNames,
    allowed_names,
    chance,
    check_key_file,
    check_names,
    listed_stimuli,
    names_that_pass,
    pseudonyms,
    public_names,
    tells,
    write_key,
)
from gazeveil.privacy.publication.publication import ALWAYS, check_keep, promise_of_file
from gazeveil.privacy.publication.signing import SigningKey
from gazeveil.privacy.release import Release

#: Writes the file to a place that is given.
Writer: TypeAlias = Callable[[Path], object]


def write_file(
    release: Release[Any],
    path: Path,
    choices: PublicationChoices,
    seed: int | None = None,
    signing_key: SigningKey | None = None,
    raw: Cohort | Recording | None = None,
    charging: Charging | None = None,
) -> Description:
    """Publish a feature table, maps or a table of people as a file with a certificate beside it.

    Parameters
    ----------
    release : Release
        What may be published.
    path : Path
        The file; its suffix chooses the format. The certificate goes beside it, as
        `<file>.PRIVACY.json` and `<file>.PRIVACY.md`.
    choices : PublicationChoices
        `keep`, `stimuli` and `key_file` count here.
    seed : int, optional
        For tests: names and order follow from it.
    signing_key : SigningKey, optional
        Signs the certificate.
    raw : Cohort or Recording, optional
        What it was made of: names of stimuli that carry a person or stand in paths do not pass.
    charging : Charging, optional
        Who is in it, and the ledger that it is charged to.

    Returns
    -------
    Description
        What the certificate says.

    Raises
    ------
    DataError
        If the file exists.
    """
    if path.exists():
        raise DataError(f"{path} exists already. Name another file.")
    if choices.key_file is not None:
        check_key_file(choices.key_file, path)
    write, names, description = described_file(release, choices, seed, raw)
    with charged(names, release.guarantee, path, charging or Charging()):
        _staged(path, write, description, signing_key)
    if choices.key_file is not None:
        write_key(choices.key_file, names)
    return description


def described_file(
    release: Release[Any],
    choices: PublicationChoices,
    seed: int | None = None,
    raw: Cohort | Recording | None = None,
    alignment: Alignment | None = None,
) -> tuple[Writer, PublicNames, Description]:
    """What writes the file, the names in it, and what its certificate says; parameters as of
    :func:`write_file`. `alignment` is that of the recordings before they were protected, where
    they were aligned.
    """
    check_keep(choices, (), {})
    table = release.data if isinstance(release.data, FeatureTable) else None
    keys = [("", name, "", "") for name in release.data] if table is None else table.recordings()
    choices, hidden = allowed_names(choices, raw, keys)
    if table is not None:
        write, names, contents = _table(table, choices, seed, hidden)
        shown = (*_kept(choices), *ALWAYS)
    elif all(isinstance(m, HeatMap) for m in release.data.values()):
        write, names, contents = _maps(release.data, choices, seed, raw, hidden)
        shown = tuple(c for c in _kept(choices) if c.startswith(FIELDS["stimulus"]))
    else:
        write, names, contents = _people(release.data, choices, seed)
        shown = tuple(c for c in _kept(choices) if c.startswith(FIELDS["person"]))
    promise = release.guarantee.with_not_covered(*shown)
    if alignment is not None:
        promise = promise_of_file(release.guarantee, alignment, *shown)
    # Maps hold no people, and a table of people no sessions: absent contents are not listed.
    told: dict[str, object] = {}
    if "people" in contents:
        told["pseudonyms"] = "kept" if "person" in choices.keep else "random"
    if "rows" in contents:
        told["sessions"] = "kept" if "session" in choices.keep else "numbered in random order"
    if "stimuli" in contents:
        told |= listed_stimuli(choices, names)
    described = Description(
        promise, release.provenance, kept=choices.keep, alignment=told, contents=contents
    )
    return write, names, described


def _kept(choices: PublicationChoices) -> tuple[str, ...]:
    return tuple(f"{FIELDS[n]}, kept as they were" for n in choices.keep if n in FIELDS)


def _staged(
    path: Path, write: Writer, description: Description, signing_key: SigningKey | None
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.parent / f".{path.name}.{uuid4().hex[:8]}"
    staging.mkdir()
    try:
        write(staging / path.name)
        write_certificate(staging / path.name, description, signing_key)
        for file in sorted(staging.iterdir(), key=lambda p: p.name == path.name):
            file.replace(path.parent / file.name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _table(
    table: FeatureTable, choices: PublicationChoices, seed: int | None, hidden: Collection[str]
) -> tuple[Writer, PublicNames, dict[str, object]]:
    """A table with published names, recordings in a random order; names of stimuli become numbers
    where they are hidden.
    """
    columns = [table.keys[n].astype(str).tolist() for n in KEY_NAMES]
    rows: list[RecordingKey] = list(zip(*columns, strict=True))
    places: dict[RecordingKey, list[int]] = {}
    for place, key in enumerate(rows):
        places.setdefault(key, []).append(place)
    check_names(choices, tuple(places))
    names = public_names(tuple(places), choices, chance(seed), hidden=hidden)
    order = np.array([i for raw in names.recordings for i in places[raw]], dtype=np.int64)
    public = [names.recordings[rows[i]] for i in order]
    person, stimulus, session, task = (
        np.array([p[k] for p in public], dtype=np.str_) for k in range(4)
    )
    keys = Keys(person, stimulus, session, task, table.keys.index[order])
    made = replace(table, values=table.values[order], keys=keys, counts={})
    contents: dict[str, object] = {
        "people": len(names.people),
        "recordings": len(names.recordings),
        "stimuli": len(names.stimuli),
        "rows": len(rows),
        "format": "feature table",
    }
    return made.write, names, contents


def _maps(
    maps: Mapping[str, HeatMap],
    choices: PublicationChoices,
    seed: int | None,
    raw: Cohort | Recording | None,
    hidden: Collection[str],
) -> tuple[Writer, PublicNames, dict[str, object]]:
    """Maps under published names of stimuli; maps are of no person."""
    if choices.stimuli is None and "stimulus" not in choices.keep:
        recorded = [raw.key] if isinstance(raw, Recording) else raw.keys if raw else ()
        passed = names_that_pass(recorded) if recorded else {s for s in maps if not tells(s, ())}
        passed -= set(hidden)
        choices = replace(choices, stimuli=tuple(s for s in maps if s in passed))
    keys: list[RecordingKey] = [("", s, "", "") for s in maps]
    check_names(choices, keys)
    names = public_names(keys, choices, chance(seed))
    public = {names.stimuli[s]: maps[s] for s in names.stimuli}
    contents: dict[str, object] = {"stimuli": len(maps), "format": "heat maps"}

    def write(path: Path) -> object:
        return write_maps({name: (m.space, m.cells, m.noisy) for name, m in public.items()}, path)

    return write, names, contents


def _people(
    people: Mapping[str, Mapping[str, object]], choices: PublicationChoices, seed: int | None
) -> tuple[Writer, PublicNames, dict[str, object]]:
    """A table of people under pseudonyms, in a random order."""
    source = chance(seed)
    named = {p: p for p in people} if "person" in choices.keep else pseudonyms(list(people), source)
    names = PublicNames({(raw, "", "", ""): (public, "", "", "") for raw, public in named.items()})
    rows = {public: dict(people[raw]) for raw, public in named.items()}
    contents: dict[str, object] = {"people": len(rows), "format": "table of people"}
    return lambda path: write_people(rows, path), names, contents
