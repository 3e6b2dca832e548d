"""`--to same`: the format that the recordings were read from, where it can be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.cohort import ReadAs
from gazeveil.gaze.recording import Recording
from gazeveil.io.gaze_table import GazeTable
from gazeveil.privacy.publication.outputs.arff import ArffOutput
from gazeveil.privacy.publication.outputs.bids import BidsOutput
from gazeveil.privacy.publication.outputs.csv import CsvOutput
from gazeveil.privacy.publication.outputs.output import Output, PublicPeople, Row
from gazeveil.privacy.publication.outputs.parquet import ParquetOutput

if TYPE_CHECKING:
    from gazeveil.privacy.publication.certificate import Description

#: Formats that are written as they were read.
WRITTEN = ("arff", "bids", "csv", "gazecom", "parquet")


class SameOutput:
    """Another output, chosen by what the input was read as: the format, and for CSV its columns and
    units.

    Raises
    ------
    ParameterError
        For a format that is read and not written.
    """

    def __init__(self, source: ReadAs | str) -> None:
        read_as = ReadAs(source) if isinstance(source, str) else source
        self._output = _chosen(read_as)
        self.name = self._output.name

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """See :class:`~gazeveil.privacy.publication.outputs.output.Output`."""
        return self._output.write_recording(folder, number, recording)

    def finish(
        self, folder: Path, rows: Sequence[Row], people: PublicPeople, description: Description
    ) -> None:
        """See :class:`~gazeveil.privacy.publication.outputs.output.Output`."""
        self._output.finish(folder, rows, people, description)


def _chosen(read_as: ReadAs) -> Output:
    name = read_as.format
    if name == "parquet":
        return ParquetOutput()
    if name == "bids":
        return BidsOutput()
    if name in ("arff", "gazecom"):
        return ArffOutput(gazecom=name == "gazecom")
    if name == "csv":
        try:
            return CsvOutput(GazeTable.of(read_as.options))
        except DataError as error:
            raise ParameterError(
                f"The 'to' choice of a publication cannot be 'same' here: {str(error)[0].lower()}"
                f"{str(error)[1:]} Choose csv, parquet or bids.",
                name="to",
                got="same",
            ) from error
    shown = f"{name} is read and not written" if name else "these recordings came from no file"
    raise ParameterError(
        f"The 'to' choice of a publication cannot be 'same' here: {shown}. Written as they were"
        f" read are {', '.join(WRITTEN)}; choose csv, parquet or bids.",
        name="to",
        got="same",
    )
