"""The promise of a published release: that of its mechanism, adjusted for the publication's own
changes and channels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from gazeveil import checks
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.publication.alignment import Alignment
from gazeveil.privacy.publication.choices import FIELDS, PublicationChoices
from gazeveil.privacy.publication.part import CHANNELS, makes_pieces
from gazeveil.privacy.publication.people_table import PeopleTable, attribute_names
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.losses.public_clock import LOST, NEVER_COVERED

_RATE, _LENGTH, _ATTRIBUTES = (
    "the rate of each recording",
    "how long each recording is",
    "the attributes of people",
)
_BEGINNING = NEVER_COVERED[0]

#: What a public length does not hide where losses show: it is filled up with lost samples.
_ENDS = (
    "how long a recording was that is shorter than the public length, which ends in lost samples"
)

#: What the public clock, lengths and screens are made from: functions of the data, which no
#: mechanism has protected.
_MEDIANS = (
    "the public rate, lengths of stimuli, sizes of screens and viewing distances, which are rounded"
    " medians of the recordings unless they were named or, for screens, are the same for several"
    " people: of a stimulus that one person saw, that person's own"
)

#: What a mechanism with a clock of its own says, which has the public one here.
_MEDIAN_RATE = "the median rate of the recordings"

#: What every release of recordings shows.
ALWAYS = ("who saw what, and in how many sessions",)


def check_keep(
    choices: PublicationChoices,
    channels: tuple[str, ...],
    people: Mapping[str, Mapping[str, object]],
) -> None:
    """Refuse to keep what is not known, and channels that the release does not hold."""
    attributes = attribute_names(people)
    for name in choices.keep:
        if name in FIELDS or name in channels or name in attributes:
            continue
        if name in CHANNELS:
            checks.refuse(
                "publication",
                "keep",
                "a part that was kept when the data were protected",
                name,
                f"Protect them with keep=({name!r},).",
            )
        allowed = sorted({*FIELDS, *CHANNELS, *attributes})
        near = get_close_matches(name, allowed, n=1)
        checks.refuse(
            "publication",
            "keep",
            f"one of {', '.join(allowed)}",
            name,
            f"Did you mean '{near[0]}'?" if near else "",
        )


def published_promise(
    release: Release[Any],
    choices: PublicationChoices,
    alignment: Alignment,
    aligned_first: bool,
    table: PeopleTable,
) -> Guarantee:
    """The guarantee of the files, as the certificate has it."""
    promise = release.guarantee
    if makes_pieces(release.provenance.mechanism):
        return _of_pieces(promise, choices, alignment, aligned_first)
    data = release.data
    keys = [data.key] if isinstance(data, Recording) else data.keys
    stimuli = {key[1] for key in keys}
    hidden = {_ATTRIBUTES, "who saw what"}
    if alignment.rate_hz is not None:
        hidden.add(_RATE)
    if alignment.lengths_s and stimuli <= set(alignment.lengths_s):
        hidden |= {_LENGTH, _BEGINNING}
    shown = _shown(choices, alignment, aligned_first, table, stimuli)
    if alignment.lengths_s and any(c.startswith(LOST) for c in promise.not_covered):
        shown.append(_ENDS)
    promise = replace(
        promise, not_covered=tuple(c for c in promise.not_covered if c not in hidden)
    ).with_not_covered(*shown, *ALWAYS)
    return replace(promise, assumptions=(*promise.assumptions, *_clock(alignment, aligned_first)))


def promise_of_file(promise: Guarantee, alignment: Alignment, *not_covered: str) -> Guarantee:
    """Return the guarantee of a table or of maps made of recordings on a public clock. There the
    length and rate of one person changed the samples taken of all others.
    """
    if alignment.rate_hz is not None or alignment.lengths_s or alignment.screens:
        not_covered = (*not_covered, _MEDIANS)
    promise = promise.with_not_covered(*not_covered)
    return replace(promise, assumptions=(*promise.assumptions, *_clock(alignment, True)))


def _of_pieces(
    promise: Guarantee, choices: PublicationChoices, alignment: Alignment, aligned_first: bool
) -> Guarantee:
    """Pieces show no length of a recording and no sessions, and have a public clock already."""
    shown = [f"{FIELDS[n]}, kept as they were" for n in choices.keep if n in FIELDS]
    if not aligned_first:
        return promise.with_not_covered(*shown)
    covered = tuple(c for c in promise.not_covered if c != _MEDIAN_RATE)
    promise = replace(promise, not_covered=covered).with_not_covered(*shown, _MEDIANS)
    return replace(promise, assumptions=(*promise.assumptions, *_clock(alignment, True)))


def _shown(
    choices: PublicationChoices,
    alignment: Alignment,
    aligned_first: bool,
    table: PeopleTable,
    stimuli: set[str],
) -> list[str]:
    shown = [f"{FIELDS[n]}, kept as they were" for n in choices.keep if n in FIELDS]
    shown += [
        f"the {n} of people, kept as it was" for n in table.kept if "attributes" not in choices.keep
    ]
    if alignment.rate_hz is not None or alignment.lengths_s or alignment.screens:
        shown.append(_MEDIANS)
    if not stimuli <= set(alignment.lengths_s):
        shown.append(_LENGTH)
    differ = alignment.rate_hz is not None and alignment.slowest_hz < float(alignment.rate_hz)
    if differ:
        when = "repeated" if aligned_first else "repeated protected"
        shown.append(f"the tracker's own rate, where {when} samples show it")
    if len(alignment.screens) > 1:
        alone = alignment.screens.alone
        people = "one person is" if alone == 1 else f"{alone} people are each"
        told = f", and {people} the only one at a screen, which tells who that is" if alone else ""
        shown.append(f"who sat at which screen{told}")
    return shown


def _clock(alignment: Alignment, aligned_first: bool) -> list[str]:
    if alignment.times_kept:
        return []
    rate = "its own rate" if alignment.rate_hz is None else f"{float(alignment.rate_hz):g} Hz"
    when = "before" if aligned_first else "after"
    clause = f"every recording was put on a clock of {rate} that begins at 0 {when} the protection"
    most = alignment.most_steps
    if aligned_first and most > 1 and not math.isnan(alignment.slowest_hz):
        clause += f", so that one sample of the tracker is up to {most} samples in a row"
    return [clause]
