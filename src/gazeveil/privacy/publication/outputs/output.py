"""Formats of a release: what each has to do.

A format writes one recording at a time into a folder, and the files that speak of all recordings at
the end. It invents no names: people, stimuli and sessions have their published names already, the
number of a recording says nothing, and nothing of the input's own files is known to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from gazeveil.gaze.recording import Recording

if TYPE_CHECKING:
    from gazeveil.privacy.publication.certificate import Description

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
