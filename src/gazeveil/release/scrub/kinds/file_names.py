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

from gazeveil.io.datasets.em360 import PARTS, SPLITS, person_and_video
from gazeveil.io.datasets.layout import person_in_folder
from gazeveil.io.datasets.mpiidpeye import person_and_recording
from gazeveil.io.datasets.vr_eyetracking import names as frame_names
from gazeveil.io.source import stem
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.kinds.json_files import video_name

Naming: TypeAlias = Callable[[Sequence[str], Path, ScrubJob], tuple[list[str], str]]

_GAZEBASE = re.compile(r"^S_(\d)(\d{3,})_S(\d{1,2})_(?:(\d{1,2})_)?([^_].*)$", re.IGNORECASE)
_TASKS = frozenset({"fxs", "hss", "ran", "tex", "vd1", "vd2", "blg", "vrg", "pur", "vid"})
_MPII_FOLDERS = frozenset(
    {"Eye_Tracking_Data", "Eye_Movement_Features", "Features_and_Ground_Truth"}
)
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


def in_stimulus_folder(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """`<stimulus>/<person>_<stimulus>`."""
    person, stimulus = person_in_folder(file)
    alone = person == stem(file)
    name = job.label(person) if alone else f"{job.label(person)}_{job.label(stimulus)}"
    return [job.label(f) for f in folders], name


def of_360_em(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """`<part>/<video>/<person>_<video>`, whichever way round the folders were."""
    person, video = person_and_video(file)
    outer = list(folders)
    inner = []
    if outer and not PARTS.match(outer[-1]) and outer[-1].lower() not in SPLITS:
        outer.pop()
        inner = [job.label(video)]
    return [*(_part(f, job) for f in outer), *inner], f"{job.label(person)}_{job.label(video)}"


def _part(folder: str, job: ScrubJob) -> str:
    plain = folder.lower()
    if plain in ("gaze", "ground_truth") or plain in SPLITS:
        return folder
    return f"output_{job.label(folder)}" if PARTS.match(folder) else job.label(folder)


def of_gazebase(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """`S_<round><subject>_S<session>_<task>`, with another number for the subject."""
    match = _GAZEBASE.match(stem(file))
    if match is None:
        return labelled(folders, file, job)
    task = match[5] if match[5].lower() in _TASKS else job.label(match[5])
    count = f"{match[4]}_" if match[4] else ""
    name = f"S_{match[1]}{job.number(match[2])}_S{match[3]}_{count}{task}"
    return [job.label(f) for f in folders], name


def of_mpii(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """`P<person>_R<recording>`, with another number for the person."""
    shown = [f if f in _MPII_FOLDERS else job.label(f) for f in folders]
    names = person_and_recording(file)
    if names is None or len(names[1]) > 3:
        return shown, job.label(stem(file))
    name = f"P{job.number(names[0])}_{names[1]}"
    if "pami_features" in file.name.lower():
        return shown, f"Data_{name}_Pami_Features_52"
    return shown, f"{name}_data" if "_data" in stem(file).lower() else name


def of_frames(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """`<person>/<video>._<session>_ori_<n>`."""
    _, video, session = frame_names(file)
    ending = re.search(r"_ori_(\d{1,3})$", stem(file))
    date = session.removesuffix(f".{ending[1]}") if ending else session
    name = f"{job.label(video_name(video))}._{job.label(date)}_ori_{ending[1] if ending else 0}"
    return [job.label(f) for f in folders], name


def of_scanpaths(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """`HE/Scanpaths/L`, `HE/Scanpaths/R` and `H/Scanpaths` say what was tracked."""
    shown = [job.label(f) for f in folders]
    for i, folder in enumerate(folders):
        if folder == "Scanpaths":
            shown[i] = folder
            if i and folders[i - 1] in ("H", "HE"):
                shown[i - 1] = folders[i - 1]
            if i + 1 < len(folders) and folders[i + 1] in ("L", "R"):
                shown[i + 1] = folders[i + 1]
    return shown, job.label(stem(file))


def of_glasses2(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """`recordings/<id>/segments/<n>/livedata.json`."""
    shown = []
    for i, folder in enumerate(folders):
        counted = i > 0 and folders[i - 1] == "segments" and re.fullmatch(r"\d{1,3}", folder)
        known = folder in ("projects", "recordings", "segments")
        shown.append(folder if counted or known else job.label(folder))
    return shown, stem(file)


def as_it_is(folders: Sequence[str], file: Path, job: ScrubJob) -> tuple[list[str], str]:
    """A file that software names."""
    return [job.label(f) for f in folders], stem(file)
