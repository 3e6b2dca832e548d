"""The function behind `Release.write`: everything in this process, one recording at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from gazeveil import checks
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.io.staging import free, staged
from gazeveil.privacy.publication.choices import PublicationChoices
from gazeveil.privacy.publication.identities.key_file import check_key_file
from gazeveil.privacy.publication.ledger.charging import Charging, PeopleSeen, charged
from gazeveil.privacy.publication.ledger.ledger import ReleaseLedger
from gazeveil.privacy.publication.part import Part, PartSummary
from gazeveil.privacy.publication.publication import Publication, prepare
from gazeveil.privacy.publication.signing import SigningKey
from gazeveil.privacy.publication.single_file import write_file
from gazeveil.privacy.release import Release

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
    seen = PeopleSeen() if charging is None else charging.seen
    if raw is not None and not seeded:
        seen.note_all(raw)
    if not isinstance(release.data, Cohort | Recording):
        write_file(release, path, chosen, **beside, raw=raw, charging=charging, seen=seen)
        return path
    free(path)
    publication = prepare(replace(release, raw=raw), chosen, beside.get("seed"))
    with charged(
        publication.names,
        release.guarantee,
        path,
        seen,
        charging,
        table=bool(publication.table.rows),
        pieces=publication.pieces,
    ):
        write_publication(publication, path, signing_key=beside.get("signing_key"))
    return path


def _charging(ledger: object, unknown: bool) -> Charging | None:
    """The ledger of a release; none for a test, without the recordings it was made of, or where the
    caller wants none.
    """
    if unknown or ledger is False:
        return None
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
