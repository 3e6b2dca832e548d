"""A publication: everything that is decided before the first file is written.

::

    publication = prepare(release, choices)
    summaries = [part.write(folder) for part in publication.parts]   # in any order, by anybody
    publication.finish(folder, summaries)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gazeveil.privacy.publication.alignment import Alignment
from gazeveil.privacy.publication.choices import PublicationChoices
from gazeveil.privacy.publication.part import Part, PartSummary
from gazeveil.privacy.publication.signing import SigningKey
from gazeveil.privacy.release import Release


@dataclass(frozen=True, eq=False)
class Publication:
    """A release of recordings with its published names, ready to be written.

    Parameters
    ----------
    parts : tuple of Part
        One for each recording, in a random order.
    """

    parts: tuple[Part, ...] = field(repr=False)

    def finish(
        self,
        folder: Path,
        summaries: Sequence[PartSummary],
        measured: Mapping[str, Any] | None = None,
        signing_key: SigningKey | None = None,
    ) -> None:
        """Write the index, the people's table, the dictionary and the certificate.

        Parameters
        ----------
        folder : Path
            Where all parts were written.
        summaries : sequence of PartSummary
            What they returned, in any order.
        measured : mapping, optional
            `attack` and `utility` for the certificate.
        signing_key : SigningKey, optional
            Signs the certificate.
        """
        raise NotImplementedError


def prepare(
    release: Release[Any],
    choices: PublicationChoices | None = None,
    seed: int | None = None,
    alignment: Alignment | None = None,
    source_format: str = "",
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
    source_format : str
        What the input was read as, for `to="same"`.
    """
    raise NotImplementedError
