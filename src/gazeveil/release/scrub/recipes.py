"""Format -> how its files are copied and called, for formats whose files stand by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from gazeveil.release.inventory.sampling import lines_of
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.kinds import arff, file_names, glasses2, headsets, plain
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
    "arff": ScrubRecipe(_by_lines(arff.scrubbed_arff)),
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
    "participant.json": (
        "tobii-glasses2",
        ScrubRecipe(glasses2.scrubbed_participant, file_names.of_glasses2),
    )
}
