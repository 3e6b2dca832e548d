"""`--to bids`: a derivative dataset of BIDS 1.11, with the promise in its description.

The files of a recording are those of :mod:`gazeveil.io.bids.write`. Labels are the published names
where these are letters and digits, else what is left of them and six digits of their hash, so that
recordings need not know of one another. `.bidsignore` names the certificate, which BIDS does not
know.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gazeveil import __version__
from gazeveil.errors import DataError
from gazeveil.gaze.recording import Recording
from gazeveil.io.bids.layout import VERSION
from gazeveil.io.bids.write import write_json, write_participants, write_run

if TYPE_CHECKING:
    from gazeveil.privacy.publication.certificate import Description
    from gazeveil.privacy.publication.outputs import PublicPeople, Row

_README = """\
# Protected gaze recordings

This dataset was made from recordings of people by Gazeveil, so that it can be published. It is a
derivative: the recordings it was made from are not part of it, and the gaze in it is not theirs
sample by sample.

Each recording has its line of sight as `recording-eye3` (cyclopean): `timestamp` in nanoseconds
from its first sample, `x_coordinate` and `y_coordinate` in degrees, `valid`.

`PRIVACY.md` says on one page what is promised to the people in it and what is not; `PRIVACY.json`
says it for programs and lists the hash of every file. `gazeveil verify` checks both.
"""

# Columns of participants.tsv that BIDS gives values of its own; generalised ones get another name.
_RESERVED = frozenset(
    {"age", "sex", "handedness", "species", "strain", "strain_rrid", "name", "participant_id"}
)

#: Letters and digits of a label that are a text's own.
_MOST_LABEL = 36


class BidsOutput:
    """A BIDS derivative."""

    name = "bids"

    def write_recording(self, folder: Path, number: int, recording: Recording) -> dict[str, object]:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        names = {
            "person": bids_label(recording.person, "person"),
            "session": bids_label(recording.session, "none"),
            "task": bids_label(recording.task, "gaze"),
            "stimulus": bids_label(recording.stimulus, "stimulus"),
        }
        # BIDS has no place for a recording without samples; the person stays in the table.
        file = write_run(recording, folder, **names) if len(recording) else ""
        return {"file": file, "participant": recording.person, **names}

    def finish(
        self, folder: Path, rows: Sequence[Row], people: PublicPeople, description: Description
    ) -> None:
        """See :class:`~gazeveil.privacy.publication.outputs.Output`."""
        _refuse_same_labels(rows)
        write_json(folder / "dataset_description.json", _described(description))
        (folder / "README").write_text(_README, encoding="utf-8")
        (folder / ".bidsignore").write_text("PRIVACY.*\n", encoding="utf-8")
        renamed = {p: {_column(n): v for n, v in a.items()} for p, a in people.items()}
        about = {_column(n): f"{n} of the person" for a in people.values() for n in a}
        rows_of = {bids_label(p, "person"): a for p, a in renamed.items()}
        write_participants(folder, rows_of, about)


def bids_label(text: str, empty: str) -> str:
    """Letters and digits that stand for a text, the same wherever it is met.

    Examples
    --------
    >>> bids_label("p04c1", "person"), bids_label("", "gaze"), bids_label("clip 1", "stimulus")
    ('p04c1', 'gaze', 'clip1x95f954')
    """
    # Four labels make the name of a file, which has at most 255 bytes.
    plain = re.sub(r"[^A-Za-z0-9]", "", text)[:_MOST_LABEL]
    if plain == text:
        return plain or empty
    return f"{plain or empty}x{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _column(name: str) -> str:
    return f"{name}_published" if name.lower() in _RESERVED else name


def _refuse_same_labels(rows: Sequence[Row]) -> None:
    """File systems that forget case would mix two recordings."""
    first: dict[str, str] = {}
    for file in (str(row["file"]) for row in rows if row["file"]):
        if first.setdefault(file.lower(), file) != file:
            raise DataError(
                f"Two files differ in capital letters alone ({first[file.lower()]} and {file})."
                " Rename a stimulus or a task, or choose another format."
            )


def _described(description: Description) -> Mapping[str, object]:
    """The content of `dataset_description.json`."""
    origin = description.origin
    versions = {"Gazeveil": __version__, **origin.versions}
    return {
        "Name": "Protected gaze recordings",
        "BIDSVersion": VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [
            {
                "Name": "Gazeveil",
                "Version": __version__,
                "Description": f"gaze protected by {origin.mechanism}",
            }
        ],
        "Privacy": {
            "Promise": str(description.guarantee),
            "Mechanism": origin.mechanism,
            "Reading": origin.reading,
            "Parameters": dict(origin.parameters),
            "Seeded": origin.seeded,
            "Kept": list(description.kept),
            "Versions": versions,
            "Certificate": "PRIVACY.json",
        },
    }
