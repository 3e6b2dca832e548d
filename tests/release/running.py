"""Writes a release in a process of its own, for tests that kill it:

    python -m tests.release.running IN OUT MECHANISM WORKERS SEED RESUME [BYTES]

SEED and WORKERS may be `-`; BYTES is the largest file that this process may write. With
`GAZEVEIL_TEST_PAUSE=N` in its environment it stops itself (SIGSTOP) once N parts are finished.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import gazeveil
from gazeveil.errors import GazeveilError
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.publication.protecting import protected
from gazeveil.privacy.registry import mechanism
from gazeveil.release.run import RunResult, begun_names, run


def _pause(done: int, total: int) -> None:
    if os.environ.get("GAZEVEIL_TEST_PAUSE") == str(done):
        os.kill(os.getpid(), signal.SIGSTOP)


def written(
    source: Path,
    out: Path,
    name: str,
    workers: int | None = 1,
    seed: int | None = 5,
    resume: bool = False,
    cluster: str | None = None,
    choices: PublicationChoices | None = None,
    progress: Callable[[int, int], None] = _pause,
) -> RunResult:
    """Read, protect and write a folder of recordings; `progress` is told how many are finished."""
    cohort = gazeveil.read(source)
    publication = protected(
        cohort,
        mechanism(name),
        PublicationChoices() if choices is None else choices,
        seed,
        names=begun_names(out) if resume else None,
    )
    return run(
        publication, out, raw=cohort, executor=cluster or workers, resume=resume, progress=progress
    )


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


def main(arguments: list[str]) -> int:
    """As the command line does: one sentence and exit code 2."""
    source, out, name, workers, seed, resume, *most = arguments
    if most:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (int(most[0]), int(most[0])))
    try:
        written(Path(source), Path(out), name, _number(workers), _number(seed), resume == "resume")
    except GazeveilError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt as error:
        sys.stderr.write(f"{error}\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
