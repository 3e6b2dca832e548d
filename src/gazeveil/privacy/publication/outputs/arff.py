"""ARFF files: times in microseconds and pixels of the screen, whose geometry stands in the header.

`<person>/<stimulus>.arff`, or as GazeCom has them `<stimulus>/<person>_<stimulus>.arff`, with a
column for the final label that says 0, unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gazeveil.errors import DataError
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording
from gazeveil.io.tables_file import write_people

if TYPE_CHECKING:
    from gazeveil.privacy.publication.certificate import Description
    from gazeveil.privacy.publication.outputs import PublicPeople, Row

_HEADER = """\
@RELATION gaze

%@METADATA width_px {width_px!r}
%@METADATA height_px {height_px!r}
%@METADATA width_mm {width_mm!r}
%@METADATA height_mm {height_mm!r}
%@METADATA distance_mm {distance_mm!r}

@ATTRIBUTE time NUMERIC
@ATTRIBUTE x NUMERIC
@ATTRIBUTE y NUMERIC
@ATTRIBUTE confidence NUMERIC
{more}
@DATA
"""


class ArffOutput:
    """One ARFF file for each recording on a screen; confidence is 1, or 0 where gaze is lost. With
    `gazecom` folders and columns are GazeCom's.
    """

    def __init__(self, gazecom: bool = False) -> None:
        self.name = "gazecom" if gazecom else "arff"
        self._gazecom = gazecom

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        space = recording.space
        if not isinstance(space, Screen):
            raise DataError(
                "ARFF files are written for recordings on a screen alone. Choose csv, parquet or"
                " bids."
            )
        stimulus, person = _part(recording.stimulus), _part(recording.person)
        extra = "" if recording.session == "1" else f"_{_part(recording.session)}"
        extra += f"_{_part(recording.task)}" if recording.task else ""
        file = f"{person}/{stimulus}{extra}.arff"
        if self._gazecom:
            file = f"{stimulus}{extra}/{person}_{stimulus}{extra}.arff"
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        x_px, y_px = space.to_px(recording.x_deg, recording.y_deg)
        lost = ~recording.valid
        columns = (
            recording.t_ns / 1000,
            np.where(lost, 0.0, x_px),
            np.where(lost, 0.0, y_px),
            recording.valid.astype(np.int64),
        )
        rows = zip(*(c.tolist() for c in columns), strict=True)
        more, label = (
            ("@ATTRIBUTE handlabeller_final NUMERIC\n", ",0") if self._gazecom else ("", "")
        )
        text = "".join(f"{t:.3f},{x!r},{y!r},{c}{label}\n" for t, x, y, c in rows)
        header = _HEADER.format(**vars(space), more=more)
        (folder / file).write_text(header + text, encoding="utf-8")
        return {"file": file}

    def finish(
        self, folder: Path, rows: Sequence[Row], people: PublicPeople, description: Description
    ) -> None:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        files = [str(row["file"]).lower() for row in rows]
        if len(set(files)) < len(files):
            raise DataError("Two recordings would share an ARFF file. Choose csv, parquet or bids.")
        if any(people.values()):
            write_people(people, folder / "people.csv")


def _part(text: str) -> str:
    """A part of a path."""
    return re.sub(r"[^\w.-]", "-", text).strip(".") or "none"
