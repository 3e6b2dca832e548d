"""Formats that releases are written in.

A format writes one recording at a time into a folder, and the files that speak of all recordings at
the end. It invents no names: people, stimuli and sessions have their published names already, the
number of a recording says nothing, and nothing of the input's own files is known to it.

A part is one recording of a publication: loaded, protected, renamed and written by a free worker.
Parts do not know one another, so any process may write any of them, in any order; what a part
writes depends on nothing but the part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gazeveil import checks
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.cohort import ReadAs
from gazeveil.gaze.recording import KEY_NAMES, Recording, RecordingKey
from gazeveil.privacy import registry
from gazeveil.privacy.mechanism import PieceMechanism
from gazeveil.privacy.publication.alignment import Alignment
from gazeveil.privacy.publication.names import PublicationChoices

if TYPE_CHECKING:
    from gazeveil.privacy.publication.certificate import Description

#: What `--to` takes; `same` is what the input was read as, where that can be written.
OUTPUTS = ("parquet", "csv", "bids", "same")

#: Formats that are written as they were read.
WRITTEN = ("arff", "bids", "csv", "gazecom", "parquet")

#: One line of the index of a release; plain values, as JSON has them.
Row: TypeAlias = Mapping[str, object]

#: Published name of a person -> generalised attributes.
PublicPeople: TypeAlias = Mapping[str, Mapping[str, object]]


class Output(Protocol):
    """A format that releases are written in.

    Attributes
    ----------
    name : str
        As `--to` says it.
    """

    name: str

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """Write the files of one recording.

        Parameters
        ----------
        folder : Path
            Root of the release, or an empty folder whose files are then moved there: nothing may
            be read from it.
        number : int
            From 1, in the order of the release.
        recording : Recording
            Protected, aligned and renamed.

        Returns
        -------
        dict
            The recording's line of the index, with `file` and whatever :meth:`finish` needs.
        """
        ...

    def finish(
        self, folder: Path, rows: Sequence[Row], people: PublicPeople, description: Description
    ) -> None:
        """Write the index, the table of people and the dictionary of the data.

        Parameters
        ----------
        folder : Path
            Root of the release, with all recordings in it.
        rows : sequence of mapping
            What :meth:`write_recording` returned, by number.
        people : mapping of person to attributes
            Everybody, in the order of their first recording; empty attributes where none are
            published.
        description : Description
            What the certificate will say.
        """
        ...


class ParquetOutput:
    """The canonical folder, which Gazeveil reads back sample by sample: one Parquet file for each
    recording, and `cohort.json`.
    """

    name = "parquet"

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """See :class:`Output`."""
        from gazeveil.io.parquet import index_row, write_recording

        file = f"recordings/{number:06d}.parquet"
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        write_recording(recording, folder / file)
        return index_row(recording, file)

    def finish(
        self, folder: Path, rows: Sequence[Row], people: PublicPeople, description: Description
    ) -> None:
        """See :class:`Output`."""
        from gazeveil.io.parquet import write_index

        write_index(folder, rows, people)


def output(name: str, source: ReadAs | str = "") -> Output:
    """A format by its name, one of :data:`OUTPUTS`.

    Parameters
    ----------
    name : str
        As `--to` says it.
    source : ReadAs or str
        What the input was read as: the format, and for CSV its columns and units.

    Raises
    ------
    ParameterError
        For `same` where the input's format is read and not written.
    """
    checks.one_of("publication", "to", name, OUTPUTS)
    read_as = ReadAs(source) if isinstance(source, str) else source
    written = read_as.format if name == "same" else name
    if written not in WRITTEN:
        known = (
            f"{written} is read and not written"
            if written
            else "these recordings came from no file"
        )
        raise _not_same(
            f"{known}. Written as they were read are {', '.join(WRITTEN)}; choose csv, parquet or"
            " bids."
        )
    # Most need polars, and so are loaded when they are asked for.
    if written == "bids":
        from gazeveil.privacy.publication.outputs.text import BidsOutput

        return BidsOutput()
    if written in ("arff", "gazecom"):
        from gazeveil.privacy.publication.outputs.text import ArffOutput

        return ArffOutput(gazecom=written == "gazecom")
    if written == "csv":
        from gazeveil.privacy.publication.outputs.text import CsvOutput

        try:
            return CsvOutput(read_as.options if name == "same" else None)
        except DataError as error:
            why = str(error)
            raise _not_same(f"{why[0].lower()}{why[1:]} Choose csv, parquet or bids.") from error
    return ParquetOutput()


def _not_same(why: str) -> ParameterError:
    sentence = f"The 'to' choice of a publication cannot be 'same' here: {why}"
    return ParameterError(sentence, name="to", got="same")


# --- parts
# --------------------------------------------------------------------------------------------------


#: Parts of a recording that are neither gaze nor names; they go out if they are kept.
CHANNELS = (
    "left_deg",
    "right_deg",
    "head_deg",
    "eye_in_head_deg",
    "pupil",
    "confidence",
    "labels",
    "events",
    "messages",
    "metadata",
)

_NOTHING: Mapping[str, Any] = {"labels": {}, "messages": (), "metadata": {}}


@dataclass(frozen=True)
class PartSummary:
    """What is said about a part once it is written; plain values, which may be sent and stored.

    Parameters
    ----------
    number : int
        Of the part.
    row : mapping
        Its line of the index, as the format made it.
    samples, valid : int
        How many samples there are, and how many have gaze.
    start_ns : int
        Its first time, in nanoseconds.
    """

    number: int
    row: Mapping[str, object]
    samples: int
    valid: int
    start_ns: int = 0


@dataclass(frozen=True, eq=False)
class Part:
    """One recording of a publication.

    Parameters
    ----------
    number : int
        From 1, in the published order.
    names : (person, stimulus, session, task)
        As they are published.
    load : callable
        Gives the protected recording; the same one each time.
    output : Output
        The format.
    alignment : Alignment
        Applied to what is loaded; it changes nothing where that was done before the protection.
    kept : tuple of str
        Channels that go out.
    """

    number: int
    names: RecordingKey
    load: Callable[[], Recording] = field(repr=False)
    output: Output = field(repr=False)
    alignment: Alignment = field(repr=False)
    kept: tuple[str, ...] = ()

    def recording(self) -> Recording:
        """What is published."""
        made = self.alignment.applied(self.load())
        dropped = {n: _NOTHING.get(n) for n in CHANNELS if n not in self.kept}
        names = dict(zip(KEY_NAMES, self.names, strict=True))
        return made.with_(**names, **dropped, counts={}, truth=None)

    def write(self, folder: Path) -> PartSummary:
        """Write it below a folder, whose other files are of other parts."""
        made = self.recording()
        row = self.output.write_recording(folder, self.number, made)
        start_ns = int(made.t_ns[0]) if len(made) else 0
        return PartSummary(self.number, row, len(made), int(made.valid.sum()), start_ns)


#: What may be kept: the names that pieces have in common.
KEPT_OF_PIECES = ("stimulus", "task")

#: How times are told in a certificate.
TIMES_OF_PIECES = "from the beginning of the stimulus"


def makes_pieces(mechanism: str) -> bool:
    """Whether the mechanism of that name releases pieces."""
    known = mechanism in registry.mechanisms()
    return known and issubclass(registry.get(mechanism), PieceMechanism)


def check_piece_choices(owner: str, choices: PublicationChoices) -> None:
    """Refuse what pieces have not: a lasting name, a person's attributes, a tracker's times."""
    kept = [name for name in choices.keep if name not in KEPT_OF_PIECES]
    if kept:
        checks.refuse(
            owner,
            "keep",
            f"one of {', '.join(KEPT_OF_PIECES)}: pieces have no person, no session and no times of"
            " the tracker",
            kept[0],
            "Leave it out.",
        )
    if choices.key_file is not None:
        checks.refuse(
            owner,
            "key_file",
            "left out: nobody keeps whose a piece is",
            str(choices.key_file),
            "Leave it out.",
        )


def piece_alignment(alignment: Alignment, rates_hz: Iterable[float]) -> Alignment:
    """How pieces are written: with their own times and their one rate.

    Parameters
    ----------
    alignment : Alignment
        Of the recordings.
    rates_hz : iterable of float
        Of pieces.

    Raises
    ------
    DataError
        For pieces of several rates: a rate that one person alone has would link their pieces.
    """
    rates = sorted(set(rates_hz))
    if len(rates) != 1:
        raise DataError(
            f"The pieces of this release have {len(rates)} rates, and a rate of one's own tells"
            " which pieces belong together. Give all recordings one rate before they are protected."
            " Nothing was written."
        )
    return replace(
        alignment, rate_hz=Fraction(repr(float(rates[0]))), times_kept=True, lengths_s={}
    )


def viewers_of(pieces: Iterable[tuple[str, int]]) -> int:
    """The largest number of pieces, each a stimulus and a first time in nanoseconds, at one time of
    one stimulus.
    """
    return max(Counter(pieces).values(), default=0)
