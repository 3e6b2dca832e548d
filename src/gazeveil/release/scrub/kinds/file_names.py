"""New names of files whose reader takes people and stimuli from their path.

Each function takes the folders from the root down, the file and the labels, and gives the new
folders and the new name without its suffix, so that the reader finds the same people and the same
stimuli under other names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from gazeveil.io.source import stem
from gazeveil.release.scrub.job import ScrubJob

Naming: TypeAlias = Callable[[Sequence[str], Path, ScrubJob], tuple[list[str], str]]

_ENDINGS = ("_all_gaze", "_scanpaths", "_data", "_events")


def labelled(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """A label for every folder and for the file; endings that readers look for stay."""
    name = stem(file)
    ending = next((e for e in _ENDINGS if name.lower().endswith(e)), "")
    return [job.label(f) for f in folders], job.label(name[: len(name) - len(ending)]) + ending


def person_first(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """`<person>_<stimulus>` at the first underscore."""
    person, _, stimulus = stem(file).partition("_")
    name = f"{job.label(person)}_{job.label(stimulus)}" if stimulus else job.label(stem(file))
    return [job.label(f) for f in folders], name


def of_glasses2(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """`recordings/<id>/segments/<n>/livedata.json`."""
    shown = []
    for i, folder in enumerate(folders):
        counted = i > 0 and folders[i - 1] == "segments" and re.fullmatch(r"\d{1,3}", folder)
        known = folder in ("projects", "recordings", "segments")
        shown.append(folder if counted or known else job.label(folder))
    return shown, stem(file)
