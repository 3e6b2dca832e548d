"""Format -> how its files are copied and called, for formats whose files stand by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from gazeveil.release.inventory.sampling import lines_of
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.kinds import arff, file_names, glasses2, headsets, json_files, plain
from gazeveil.release.scrub.kinds import published as tables
from gazeveil.release.scrub.kinds import screen_trackers as screens
from gazeveil.release.scrub.kinds.file_names import Naming
from gazeveil.release.scrub.tables import Lines, TableRules, scrubbed_table

Maker: TypeAlias = Callable[[Path, ScrubJob], Iterable[str]]


@dataclass(frozen=True)
class ScrubRecipe:
    """How the files of one format are copied.

    Parameters
    ----------
    make : callable
        Gives the lines of a file's copy.
    naming : callable
        Gives its folders and its name.
    """

    make: Maker
    naming: Naming = file_names.labelled


def _table(rules: TableRules) -> Maker:
    def make(path: Path, job: ScrubJob) -> Iterable[str]:
        return scrubbed_table(partial(lines_of, path), rules, job)

    return make


def _by_lines(scrubbed: Callable[[Lines, ScrubJob], Iterable[str]]) -> Maker:
    def make(path: Path, job: ScrubJob) -> Iterable[str]:
        return scrubbed(partial(lines_of, path), job)

    return make


#: Formats of files that are one recording, or several, by themselves.
RECIPES: dict[str, ScrubRecipe] = {
    "360-em": ScrubRecipe(_by_lines(arff.scrubbed_arff), file_names.of_360_em),
    "gazecom": ScrubRecipe(_by_lines(arff.scrubbed_arff), file_names.in_stimulus_folder),
    "arff": ScrubRecipe(_by_lines(arff.scrubbed_arff)),
    "eyenavgs": ScrubRecipe(_table(tables.EYENAVGS), file_names.in_stimulus_folder),
    "gazebase-vr": ScrubRecipe(_table(tables.GAZEBASE_VR), file_names.of_gazebase),
    "gazebase": ScrubRecipe(_table(tables.GAZEBASE), file_names.of_gazebase),
    "et-dk2": ScrubRecipe(_table(tables.ET_DK2)),
    "vr-eyetracking": ScrubRecipe(_by_lines(tables.scrubbed_frames), file_names.of_frames),
    "mpiidpeye": ScrubRecipe(_by_lines(tables.scrubbed_pupils), file_names.of_mpii),
    "mpiiprivaceye": ScrubRecipe(_by_lines(tables.scrubbed_matrix), file_names.of_mpii),
    "salient360": ScrubRecipe(_by_lines(tables.scrubbed_scanpaths), file_names.of_scanpaths),
    "webqamgaze": ScrubRecipe(json_files.scrubbed_worker),
    "neuroliaa": ScrubRecipe(json_files.scrubbed_search),
    "tobii-glasses2": ScrubRecipe(_by_lines(glasses2.scrubbed_livedata), file_names.of_glasses2),
    "tobii-sdk": ScrubRecipe(_table(screens.TOBII_SDK)),
    "vive-pro-eye": ScrubRecipe(_table(headsets.VIVE), file_names.person_first),
    "pico": ScrubRecipe(_table(headsets.PICO)),
    "unity-hmd": ScrubRecipe(_by_lines(headsets.scrubbed_unity)),
    "gazepoint": ScrubRecipe(_by_lines(screens.scrubbed_gazepoint)),
    "varjo": ScrubRecipe(_table(headsets.VARJO)),
    "csv": ScrubRecipe(_by_lines(plain.scrubbed_csv)),
}
#: Files that lie beside recordings of a format, by name -> format and how they are copied.
COMPANIONS: dict[str, tuple[str, ScrubRecipe]] = {
    "img_index.csv": (
        "et-dk2",
        ScrubRecipe(_by_lines(tables.scrubbed_image_names), file_names.as_it_is),
    ),
    "frame_interval_s.json": (
        "vr-eyetracking",
        ScrubRecipe(json_files.scrubbed_intervals, file_names.as_it_is),
    ),
    "vr_eyetracking_frame_interval_s.json": (
        "vr-eyetracking",
        ScrubRecipe(json_files.scrubbed_intervals, file_names.as_it_is),
    ),
    "participant.json": (
        "tobii-glasses2",
        ScrubRecipe(glasses2.scrubbed_participant, file_names.of_glasses2),
    ),
}
