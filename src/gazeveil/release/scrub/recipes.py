"""Format -> how its files are copied and called, for formats whose files stand by themselves, and
why files of others are not copied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from gazeveil.io.source import stem
from gazeveil.release.inventory.sampling import lines_of
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.kinds import arff, glasses, plain, trackers
from gazeveil.release.scrub.tables import Lines, TableRules, scrubbed_table

#: Gives the new folders and the new name, without its suffix, of a file whose reader takes people
#: and stimuli from its path, so that it finds the same ones under other names.
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
    naming: Naming = labelled


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
    "tobii-glasses2": ScrubRecipe(_by_lines(glasses.scrubbed_livedata), of_glasses2),
    "tobii-sdk": ScrubRecipe(_table(trackers.TOBII_SDK)),
    "vive-pro-eye": ScrubRecipe(_table(trackers.VIVE), person_first),
    "pico": ScrubRecipe(_table(trackers.PICO)),
    "gazepoint": ScrubRecipe(_by_lines(trackers.scrubbed_gazepoint)),
    "varjo": ScrubRecipe(_table(trackers.VARJO)),
    "csv": ScrubRecipe(_by_lines(plain.scrubbed_csv)),
}
#: Files that lie beside recordings of a format, by name -> format and how they are copied.
COMPANIONS: dict[str, tuple[str, ScrubRecipe]] = {
    "participant.json": ("tobii-glasses2", ScrubRecipe(glasses.scrubbed_participant, of_glasses2))
}


_AS_CSV = "read it, write it with `Cohort.write` or as CSV, and scrub that, or use `publish`"
#: Format -> why it is not copied, and what to do instead.
NOT_TEXT: dict[str, str] = {
    "eyelink-edf": "EyeLink EDF is binary: convert it with edf2asc and scrub the ASC file",
    "parquet": "Parquet is binary: `publish` reads it and releases it without identifiers",
    "pupil-neon-native": (
        "a native Neon recording is binary: export it with Pupil Cloud or Neon Player and scrub the"
        " export"
    ),
    "vr-saliency": f"a Python pickle may hold anything: {_AS_CSV}",
    "irf": f"NumPy files are binary: {_AS_CSV}",
    "dgaze": f"NumPy files are binary: {_AS_CSV}",
    "ehtask": f"NumPy files are binary: {_AS_CSV}",
    "lund2013": f"MATLAB files are binary: {_AS_CSV}",
    "osie": f"MATLAB files are binary: {_AS_CSV}",
    **dict.fromkeys(
        (
            *("eyenavgs", "gazebase", "gazebase-vr", "et-dk2", "vr-eyetracking", "mpiidpeye"),
            *(
                "mpiiprivaceye",
                "salient360",
                "unity-hmd",
                "webqamgaze",
                "neuroliaa",
                "gazecom",
                "360-em",
            ),
        ),
        "it is of a public dataset, which is published already: cite it",
    ),
}
_SUFFIXES = (
    (r"\.edf$", NOT_TEXT["eyelink-edf"]),
    (r"\.(?:pkl|pickle|p|joblib)$", NOT_TEXT["vr-saliency"]),
    (r"\.np[yz]$", NOT_TEXT["irf"]),
    (r"\.mat$", NOT_TEXT["osie"]),
    (r"\.(?:parquet|feather|arrow)$", NOT_TEXT["parquet"]),
    (r"\.idf$", "SMI's IDF is binary: convert it to text with the IDF Converter and scrub that"),
    (
        r"\.(?:xdf|hdf5?|h5|sqlite3?|db|raw|zip|7z|tar|xlsx?)(?:\.gz)?$",
        "a binary file may hold anything: export its tables as text and scrub these",
    ),
)


#: All sentences that say what to do instead.
WAYS_OUT = frozenset([*NOT_TEXT.values(), *(why for _, why in _SUFFIXES)])


def why_not_text(name: str) -> str | None:
    """Why a file of this name is not copied, or None where the name does not say."""
    return next((why for suffix, why in _SUFFIXES if re.search(suffix, name, re.IGNORECASE)), None)
