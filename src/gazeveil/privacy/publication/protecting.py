"""From raw recordings to a publication: look, align, protect, and give new names.

Alignment comes before the protection: the promise then speaks of samples on the public clock, and
what a tracker's own clock would tell never reaches a mechanism.

The function behind `Release.write`: everything in this process, one recording at a time.

Releases that are one file: feature tables, heat maps and tables of people, with a certificate
beside them.

The file appears last, so its certificate is always there too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort, ReadAs
from gazeveil.gaze.recording import KEY_NAMES, Recording, RecordingKey
from gazeveil.io.source import free, staged
from gazeveil.io.tables_file import write_maps, write_people
from gazeveil.privacy.heatmaps import HeatMap
from gazeveil.privacy.mechanism import Mechanism, PieceMechanism
from gazeveil.privacy.publication.alignment import (
    Alignment,
    Look,
    aligned,
    look_at,
    needs_every,
    public_alignment,
)
from gazeveil.privacy.publication.certificate import Description, SigningKey, write_certificate
from gazeveil.privacy.publication.ledger import Charging, ReleaseLedger, charged
from gazeveil.privacy.publication.names import (
    FIELDS,
    PublicationChoices,
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
from gazeveil.privacy.publication.outputs import (
    CHANNELS,
    Part,
    PartSummary,
    check_piece_choices,
    output,
)
from gazeveil.privacy.publication.publication import (
    ALWAYS,
    Publication,
    check_keep,
    prepare,
    promise_of_file,
)
from gazeveil.privacy.registry import protect
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.mechanism import StreamMechanism


def channels_of(choices: PublicationChoices, kind: str) -> tuple[str, ...]:
    """The channels that a mechanism of that kind is asked to pass on."""
    times = ("t_ns",) if "times" in choices.keep and kind == "stream" else ()
    return (*times, *(n for n in choices.keep if n in CHANNELS))


def protected(
    cohort: Cohort,
    mechanism: Mechanism[Any],
    choices: PublicationChoices,
    seed: int | None = None,
    looks: Sequence[Look] | None = None,
    source_format: ReadAs | str = "",
    names: PublicNames | None = None,
) -> Publication:
    """Recordings, protected by a mechanism of the kind stream or cohort, ready to be written.

    Parameters
    ----------
    cohort : Cohort
        Raw recordings.
    mechanism : Mechanism
        Who protects them.
    choices : PublicationChoices
        How they are published.
    seed : int, optional
        For tests: noise, names and order follow from it.
    looks : sequence of Look, optional
        What was seen of the recordings already.
    source_format : ReadAs or str
        What they were read as; left out, what the cohort says.
    names : PublicNames, optional
        Of a publication that was begun and goes on.
    """
    check_clock(mechanism)
    source = source_format or cohort.read_as or ""
    output(choices.to, source)  # a format that cannot be written is refused before any work
    channels = channels_of(choices, mechanism.kind)
    check_keep(choices, channels, cohort.people)
    check_names(choices, cohort.keys)
    if isinstance(mechanism, PieceMechanism):
        check_piece_choices(mechanism.name, choices)
    if looks is None:
        looks = look_at(cohort, needs_every(choices))
    alignment = public_alignment(looks, choices)
    release = protect(aligned(cohort, alignment), mechanism, seed, channels)
    release = replace(release, raw=cohort)  # which knows where its names come from
    rate_hz = released_rate(mechanism, alignment.rate_hz)
    people = sorted({key[0] for key in cohort.keys})
    return prepare(release, choices, seed, alignment, source, names, rate_hz, people)


def check_clock(mechanism: Mechanism[Any]) -> None:
    """Refuse a mechanism with a clock or lengths of its own: a publication has its own.

    Raises
    ------
    ParameterError
        For `clock_hz` or `duration_s`.
    """
    if not isinstance(mechanism, StreamMechanism | PieceMechanism):
        return
    for name, choice in (("clock_hz", "rate_hz"), ("duration_s", "durations")):
        value = getattr(mechanism, name, None)
        if value is not None:
            checks.refuse(
                mechanism.name,
                name,
                "left out where recordings are published, because they are put on a public clock"
                " first",
                value,
                f"Say it with {choice}, of [publication] in a file of `gazeveil publish --from`, or"
                " in Python.",
            )


def released_rate(mechanism: Mechanism[Any], rate_hz: Fraction | None) -> Fraction | None:
    """The rate of a release of recordings that have the public rate; None where that is the same or
    there is none.
    """
    if not isinstance(mechanism, StreamMechanism) or rate_hz is None:
        return None
    return None if mechanism.stride == 1 else rate_hz / mechanism.stride


#: Wraps the loop over parts, for a progress bar.
PartProgress = Callable[[Sequence[Part]], Iterable[Part]]

_BESIDE = ("seed", "signing_key")
_OF_LEDGER = ("ledger", "raw")


def write(release: Release[Any], path: Path, choices: Mapping[str, Any]) -> Path:
    """Publish a release of any kind; see :meth:`gazeveil.privacy.release.Release.write`."""
    known = [f.name for f in fields(PublicationChoices)]
    checks.known_options("Release.write", choices, [*known, *_BESIDE, *_OF_LEDGER])
    beside = {n: choices[n] for n in _BESIDE if n in choices}
    chosen = PublicationChoices(**{n: v for n, v in choices.items() if n in known})
    seeded = release.provenance.seeded or beside.get("seed") is not None
    raw = choices.get("raw", release.raw)
    charging = _charging(choices.get("ledger"), seeded or raw is None)
    if raw is not None and not seeded:
        charging.seen.note_all(raw)
    if not isinstance(release.data, Cohort | Recording):
        write_file(release, path, chosen, **beside, raw=raw, charging=charging)
        return path
    free(path)
    publication = prepare(replace(release, raw=raw), chosen, beside.get("seed"))
    with charged(
        publication.names,
        release.guarantee,
        path,
        charging,
        table=bool(publication.table.rows),
        pieces=publication.pieces,
    ):
        write_publication(publication, path, signing_key=beside.get("signing_key"))
    return path


def _charging(ledger: object, unknown: bool) -> Charging:
    """The ledger of a release; none for a test, without the recordings it was made of, or where the
    caller wants none.
    """
    if unknown or ledger is False:
        return Charging()
    if ledger is not None and not isinstance(ledger, str | Path):
        checks.refuse("Release.write", "ledger", "the path of a ledger, or False", ledger)
    return Charging(ReleaseLedger.at(None if ledger is None else Path(ledger)))


def write_publication(
    publication: Publication,
    path: Path,
    progress: PartProgress = lambda parts: parts,
    signing_key: SigningKey | None = None,
) -> list[PartSummary]:
    """Write a publication whole, or not at all, into a folder that does not exist yet or is empty.
    `progress` wraps the loop over parts.
    """
    if publication.choices.key_file is not None:
        check_key_file(publication.choices.key_file, path)
    with staged(path) as folder:
        summaries = [part.write(folder) for part in progress(publication.parts)]
        publication.finish(folder, summaries, signing_key=signing_key)
    return summaries


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
