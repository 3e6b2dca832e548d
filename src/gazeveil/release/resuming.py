"""An interrupted publication and its charge: it goes on under its names, or the charge is taken
back.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gazeveil.privacy.publication.identities.names import PublicNames
from gazeveil.privacy.publication.ledger.charging import Charging
from gazeveil.release.run import begun_names
from gazeveil.release.work.folder import WorkFolder


@dataclass(frozen=True)
class Running:
    """Who works on a release, and whether it is begun already.

    Parameters
    ----------
    workers : int, optional
        How many processes protect recordings, each with one in memory; left out, as many as there
        is work for.
    cluster : str, optional
        The address of a Dask scheduler, whose workers share this disk, instead.
    resume : bool
        Whether to go on with a run that was interrupted.
    """

    workers: int | None = None
    cluster: str | None = None
    resume: bool = False


def begun(out: Path, resume: bool, charging: Charging | None) -> PublicNames | None:
    """The names of an interrupted run that goes on; one that has to start anew is not charged
    twice.

    Parameters
    ----------
    out : Path
        The release.
    resume : bool
        Whether it is to go on.
    charging : Charging, optional
        Takes the charge of a run back that starts anew.
    """
    if not resume:
        return None
    names, earlier = begun_names(out), interrupted_names(out)
    if names is None and earlier is not None and charging is not None:
        charging.cancel(out, earlier)
    return names


def interrupted_names(out: Path) -> PublicNames | None:
    """The names of a run that was interrupted, whether it can go on or not; None where there is
    none.
    """
    folder = WorkFolder(out)
    journal = folder.journal() if folder.exists else None
    return None if journal is None or journal.finished else journal.head.names
