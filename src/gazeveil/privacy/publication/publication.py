"""A publication: everything that is decided before the first file is written.

::

    publication = prepare(release, choices)
    summaries = [part.write(folder) for part in publication.parts]   # in any order, by anybody
    publication.finish(folder, summaries)

Its promise is that of the mechanism, adjusted for the publication's own changes and channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from gazeveil import checks
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort, Handle, ReadAs
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.publication.alignment import Alignment, look_at, needs_every, public_alignment
from gazeveil.privacy.publication.certificate import Description, SigningKey, write_certificate
from gazeveil.privacy.publication.names import (
    FIELDS,
    PeopleTable,
    PublicationChoices,
    PublicNames,
    allowed_names,
    attribute_names,
    chance,
    check_names,
    listed_stimuli,
    people_table,
    public_names,
    write_key,
)
from gazeveil.privacy.publication.outputs import (
    CHANNELS,
    TIMES_OF_PIECES,
    Output,
    Part,
    PartSummary,
    check_piece_choices,
    makes_pieces,
    output,
    piece_alignment,
    viewers_of,
)
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.losses.public_clock import LOST, NEVER_COVERED


@dataclass(frozen=True, eq=False)
class Publication:
    """A release of recordings with its published names, ready to be written.

    Parameters
    ----------
    release : Release
        What is published.
    choices : PublicationChoices
        How.
    alignment : Alignment
        What all recordings have in common.
    aligned_first : bool
        Whether they were aligned before they were protected.
    names : PublicNames
        Raw and published names; secret.
    table : PeopleTable
        What is published about people.
    output : Output
        The format.
    released_hz : Fraction, optional
        The rate of what is published, where the mechanism gives another than it takes, as one that
        leaves samples out does.
    measure : callable, optional
        Attacks what was written and gives `attack` and `utility` for the certificate; called when
        all parts are there.
    texts : mapping of str to str
        Further files of the release, by name.
    """

    release: Release[Any] = field(repr=False)
    choices: PublicationChoices
    alignment: Alignment = field(repr=False)
    aligned_first: bool
    names: PublicNames = field(repr=False)
    table: PeopleTable = field(repr=False)
    output: Output = field(repr=False)
    released_hz: Fraction | None = None
    measure: Callable[[Path], Mapping[str, Any]] | None = field(default=None, repr=False)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def parts(self) -> tuple[Part, ...]:
        """One for each recording, in the published order, which is random."""
        items = {item.key: item for item in _cohort(self.release).items}
        kept = (*self.release.kept, *self.choices.keep)
        return tuple(
            Part(number, public, _loader(items[raw]), self.output, self._written, kept)
            for number, (raw, public) in enumerate(self.names.recordings.items(), start=1)
        )

    @property
    def pieces(self) -> bool:
        """Whether names are those of pieces, not of people."""
        return makes_pieces(self.release.provenance.mechanism)

    @property
    def _written(self) -> Alignment:
        """The alignment of what is published."""
        if self.pieces:
            return replace(self.alignment, times_kept=True, lengths_s={})
        if self.released_hz is None:
            return self.alignment
        return replace(self.alignment, rate_hz=self.released_hz)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the curator; not to be published."""
        numbered = []
        for place, words in ((1, "stimuli"), (3, "tasks")):
            pairs = self.names.recordings.items()
            changed = {raw[place] for raw, public in pairs if raw[place] != public[place]}
            if changed:
                numbered.append(f"names of {words} that became numbers: {len(changed)}")
        if not numbered:
            return self.table.notes
        told = (
            f"{', '.join(numbered)}, because they may tell who or when. To publish them, list"
            ' them: stimuli = ["NAME"] in dataset.toml.'
        )
        return (*self.table.notes, told.capitalize())

    def description(
        self, summaries: Sequence[PartSummary], measured: Mapping[str, Any] | None = None
    ) -> Description:
        """What the certificate says."""
        keep, measured = self.choices.keep, measured or {}
        return Description(
            published_promise(
                self.release, self.choices, self.alignment, self.aligned_first, self.table
            ),
            self.release.provenance,
            people_table=self.table.guarantee,
            kept=tuple(dict.fromkeys((*self.release.kept, *keep))),
            alignment={
                **self._written.to_dict(),
                "before_protection": self.aligned_first,
                "pseudonyms": "kept" if "person" in keep else "random",
                **listed_stimuli(self.choices, self.names),
                **(
                    {"times": TIMES_OF_PIECES, "durations": "public"}
                    if self.pieces
                    else {"sessions": "kept" if "session" in keep else "numbered in random order"}
                ),
            },
            contents={
                **self._counted(summaries),
                "samples": sum(s.samples for s in summaries),
                "format": self.output.name,
            },
            attack=measured.get("attack"),
            utility=measured.get("utility"),
        )

    def _counted(self, summaries: Sequence[PartSummary]) -> dict[str, int]:
        """How many people, recordings and stimuli there are, as far as the files show it."""
        named = list(self.names.recordings.values())
        stimuli = {"stimuli": len({n[1] for n in named})}
        if not self.pieces:
            return {"people": len({n[0] for n in named}), "recordings": len(named), **stimuli}
        viewers = viewers_of((named[s.number - 1][1], s.start_ns) for s in summaries)
        return {"pieces": len(named), "viewers": viewers, **stimuli}

    def finish(
        self,
        folder: Path,
        summaries: Sequence[PartSummary],
        measured: Mapping[str, Any] | None = None,
        signing_key: SigningKey | None = None,
    ) -> None:
        """Write the index, the people's table, the dictionary, the certificate and the key file
        into the folder where all parts were written. `measured` has `attack` and `utility` for the
        certificate; left out, :attr:`measure` is asked.
        """
        ordered = sorted(summaries, key=lambda s: s.number)
        people = {
            public: dict(self.table.rows.get(raw, {})) for raw, public in self.names.people.items()
        }
        rows = [s.row for s in ordered]
        self.output.finish(folder, rows, people, self.description(ordered, measured))
        if measured is None and self.measure is not None:
            measured = self.measure(folder)
        description = self.description(ordered, measured)
        for name, text in self.texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        write_certificate(folder, description, signing_key)
        if self.choices.key_file is not None:
            write_key(self.choices.key_file, self.names)


def prepare(
    release: Release[Any],
    choices: PublicationChoices | None = None,
    seed: int | None = None,
    alignment: Alignment | None = None,
    source_format: ReadAs | str = "",
    names: PublicNames | None = None,
    released_hz: Fraction | None = None,
    people: Sequence[str] = (),
) -> Publication:
    """Decide what is published under which names.

    Parameters
    ----------
    release : Release of a Recording or a Cohort
        What may be published.
    choices : PublicationChoices, optional
        The safe ones by default.
    seed : int, optional
        For tests: names and order follow from it.
    alignment : Alignment, optional
        That of the recordings before they were protected. Left out, they are aligned as they are
        written.
    source_format : ReadAs or str
        What the input was read as, for `to="same"`; left out, what the release's recordings say.
    names : PublicNames, optional
        Of a publication that was begun and goes on.
    released_hz : Fraction, optional
        The rate of the release, where it is not that of the alignment.
    people : sequence of str
        Who is behind a release of pieces, whose own names do not say so.
    """
    chosen = PublicationChoices() if choices is None else choices
    cohort = _cohort(release)
    chosen, hidden = allowed_names(chosen, release.raw, cohort.keys)
    check_keep(chosen, release.kept, cohort.people)
    check_names(chosen, cohort.keys)
    first = alignment is not None
    pieces = makes_pieces(release.provenance.mechanism)
    if pieces:
        check_piece_choices(release.provenance.mechanism, chosen)
    if alignment is None:
        looks = look_at(cohort, needs_every(chosen) or pieces)
        alignment = public_alignment(looks, chosen)
        if pieces:
            alignment = piece_alignment(alignment, (look.rate_hz for look in looks))
    if names is not None and set(names.recordings) != set(cohort.keys):
        raise DataError(
            "The recordings are not those of the publication that was begun. Start it again from"
            " the beginning."
        )
    if names is None:
        names = public_names(cohort.keys, chosen, chance(seed), people, hidden)
    recorded = {} if pieces else names.people
    table = people_table({p: a for p, a in cohort.people.items() if p in recorded}, chosen)
    made = output(chosen.to, source_format or cohort.read_as or "")
    return Publication(release, chosen, alignment, first, names, table, made, released_hz)


def _cohort(release: Release[Any]) -> Cohort:
    data = release.data
    return Cohort([data]) if isinstance(data, Recording) else data


def _loader(item: Recording | Handle) -> Any:
    return partial(_itself, item) if isinstance(item, Recording) else item.load


def _itself(recording: Recording) -> Recording:
    return recording


# --- the promise
# --------------------------------------------------------------------------------------------------


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
