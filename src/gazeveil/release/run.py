"""Writing a publication: by one process or many, to the end or not at all, and on from where it was
interrupted.

::

    names = begun_names(out) if resume else None
    publication = protected(cohort, mechanism, choices, names=names)
    run(publication, out, raw=cohort, workers=8, resume=resume)

Everything happens in a hidden work folder beside the release (:mod:`gazeveil.release.work.folder`).
When a run is killed, the parts that are finished stay there; the next one says so and goes on with
`resume`. Parts of mechanisms that draw something for all recordings first (`noise_unit` is `fit` or
`release`) cannot be continued: their draw starts anew. Nothing of the first one was published.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.gaze.cohort import Cohort
from gazeveil.io.staging import free
from gazeveil.privacy.publication.ledger.charging import Charging
from gazeveil.privacy.publication.names import PublicNames
from gazeveil.privacy.publication.publication import Publication
from gazeveil.privacy.publication.signing import SigningKey
from gazeveil.processes import cores
from gazeveil.release.work.folder import WorkFolder, clean
from gazeveil.release.work.job import (
    OnCluster,
    OwnProcesses,
    Progress,
    ReleaseJob,
    RunResult,
    ThisProcess,
    Workers,
)

__all__ = ["RunResult", "begun_names", "check_out", "clean", "run"]

#: Raw files below this many bytes in all are protected faster than processes start.
SMALL_BYTES = 1 << 26

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def begun_names(out: Path) -> PublicNames | None:
    """Return the names of an interrupted run that can go on; None where there is none.

    A resumed run uses these names, because the finished parts have them already.
    """
    folder = WorkFolder(out)
    journal = folder.journal() if folder.exists else None
    return journal.head.names if journal is not None and journal.head.can_go_on else None


def check_out(out: Path, resume: bool) -> None:
    """Refuse a place that is taken, before any work is done.

    Raises
    ------
    DataError
        If the place holds other data, if another run is writing it, or if a run was interrupted and
        `resume` is off.
    """
    folder = WorkFolder(out)
    if not folder.exists:
        free(out)
        return
    with folder.locked():
        journal = folder.journal()
    if journal is not None and journal.finished and resume:
        return
    free(out)
    if not resume:
        done = 0 if journal is None else len(journal.parts)
        total = "" if journal is None else f" of {len(journal.head.names.recordings)}"
        raise DataError(
            f"A run that writes {out} was interrupted: {done}{total} recordings are finished in"
            f" {folder.path}. Go on with --resume, or remove it with --clean."
        )


def run(
    publication: Publication,
    out: Path,
    *,
    raw: Cohort | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    resume: bool = False,
    progress: Progress = lambda done, total: None,
    signing_key: SigningKey | None = None,
) -> RunResult:
    """Write a publication whole, or not at all.

    Parameters
    ----------
    publication : Publication
        What to write. To resume, it was prepared with :func:`begun_names`.
    out : Path
        A folder that does not exist yet or is empty.
    raw : Cohort, optional
        The raw recordings; with them `resume` sees which of their files have changed.
    workers : int, optional
        How many processes protect recordings, each with one in memory. Left out, as many as cores,
        or this one alone where there is little to do.
    cluster : str, optional
        The address of a Dask scheduler, whose workers share this disk, instead.
    resume : bool
        Whether to go on with a run that was interrupted.
    progress : callable
        Told (parts done, parts in all).
    signing_key : SigningKey, optional
        Signs the certificate.

    Raises
    ------
    DataError
        If the place is taken, what is to be resumed was made of something else, a recording cannot
        be read, or the disk is full. Nothing is released then.
    """
    check_out(out, resume)
    folder = WorkFolder(out)
    folder.make()
    with folder.locked():
        try:
            job = ReleaseJob(publication, folder, raw, resume)
            return job.go(_workers(job, workers, cluster), progress, signing_key)
        except GazeveilError as error:
            left = _left(folder)
            if left and not isinstance(error, ParameterError):
                raise DataError(f"{error} {left}") from error
            raise
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"Stopped, nothing was released. {_left(folder)}") from None
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise DataError(
                f"There is no room for the release on the disk of {folder.path.parent}. Nothing"
                f" was released. {_left(folder)}"
            ) from error


def _left(folder: WorkFolder) -> str:
    """Describe the remains of an interrupted run; remove a folder without a finished part."""
    journal = folder.journal()
    if journal is None or not journal.parts or not journal.head.can_go_on:
        folder.remove()
        return ""
    return (
        f"{len(journal.parts)} of {len(journal.head.names.recordings)} recordings are finished: go"
        " on with --resume, or remove them with --clean."
    )


def _workers(job: ReleaseJob, workers: int | None, cluster: str | None) -> Workers:
    if job.complete:
        return ThisProcess()
    if cluster is not None:
        return OnCluster(cluster)
    tasks = len(job.tasks())
    if workers is None:
        small = sum(int(s.partition(":")[0] or 0) for s in job.stamps.values()) < SMALL_BYTES
        workers = 1 if small else cores()
    count = min(checks.count("publish", "workers", workers), max(1, tasks))
    return ThisProcess() if count == 1 else OwnProcesses(count)


@dataclass(frozen=True)
class Running:
    """Workers of a release, and whether to resume it.

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
