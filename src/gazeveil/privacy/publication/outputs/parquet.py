"""`--to parquet`: the canonical folder, which Gazeveil reads back sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gazeveil.gaze.recording import Recording
from gazeveil.io.parquet import index_row, write_index, write_recording
from gazeveil.privacy.publication.outputs.output import PublicPeople, Row

if TYPE_CHECKING:
    from gazeveil.privacy.publication.certificate import Description


class ParquetOutput:
    """One Parquet file for each recording, and `cohort.json`."""

    name = "parquet"

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """See :class:`~gazeveil.privacy.publication.outputs.output.Output`."""
        file = f"recordings/{number:06d}.parquet"
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        write_recording(recording, folder / file)
        return index_row(recording, file)

    def finish(
        self, folder: Path, rows: Sequence[Row], people: PublicPeople, description: Description
    ) -> None:
        """See :class:`~gazeveil.privacy.publication.outputs.output.Output`."""
        write_index(folder, rows, people)
