"""From raw recordings to a publication: look, align, protect, and give new names.

Alignment comes before the protection: the promise then speaks of samples on the public clock, and
what a tracker's own clock would tell never reaches a mechanism.

The function behind `Release.write`: everything in this process, one recording at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from gazeveil import checks
from gazeveil.gaze.cohort import Cohort, ReadAs
from gazeveil.gaze.recording import Recording
from gazeveil.io.staging import free, staged
from gazeveil.privacy.api import protect
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.pieces import PieceMechanism
from gazeveil.privacy.publication.alignment import (
    Look,
    aligned,
    look_at,
    needs_every,
    public_alignment,
)
from gazeveil.privacy.publication.choices import PublicationChoices
from gazeveil.privacy.publication.ledger import Charging, ReleaseLedger, charged
from gazeveil.privacy.publication.names import PublicNames, check_key_file, check_names
from gazeveil.privacy.publication.outputs import (
    CHANNELS,
    Part,
    PartSummary,
    check_piece_choices,
    output,
)
from gazeveil.privacy.publication.publication import Publication, check_keep, prepare
from gazeveil.privacy.publication.signing import SigningKey
from gazeveil.privacy.publication.single_file import write_file
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
