"""Format -> how its files are copied and called, for formats whose files stand by themselves, and
why files of others are not copied.

Which file is what, and what it is called in the copy.

Of a path only the names that vendors' software gives (`gaze.csv`, `exports`, `recording.g3`) and
known suffixes stay; every other part becomes a label, the same one wherever it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from gazeveil.errors import FormatError
from gazeveil.io.bids.layout import Name
from gazeveil.io.plain.layout import Layout
from gazeveil.io.registry import KNOWN, in_sniffing_order
from gazeveil.io.source import Head, stem
from gazeveil.io.vendors.neon_native import is_native
from gazeveil.io.vendors.pupil_cloud import is_folder as is_cloud
from gazeveil.io.vendors.pupil_core import sniff_folder as is_core
from gazeveil.io.vendors.tobii_glasses3 import sniff_folder as is_glasses3
from gazeveil.release.inventory.sampling import lines_of
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.kinds import arff, bids, glasses, plain, trackers
from gazeveil.release.scrub.kinds.eyelink import scrubbed_asc
from gazeveil.release.scrub.kinds.plain import DescribedTables, is_description, same_units
from gazeveil.release.scrub.kinds.smi import scrubbed_smi
from gazeveil.release.scrub.tables import (
    Beginnings,
    Lines,
    TableRules,
    beginnings,
    earliest,
    is_people_file,
    is_people_table,
    scrubbed_people,
    scrubbed_table,
)

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


_SUFFIX = re.compile(r"(?:\.(?:asc|txt|tsv|csv|json|arff))?(?:\.gz)?$", re.IGNORECASE)
_FOLDERS = frozenset({"exports", "meta", "surfaces", "beh", "eeg", "meg", "func", "ieeg", "nirs"})
_VIDEO = re.compile(r"\.(?:mp4|avi|mov|mkv|wmv|mjpeg|jpe?g|png|bmp|tiff?)$", re.IGNORECASE)


@dataclass(frozen=True)
class FileCopy:
    """A file that is copied: its format, its new place, and what makes its lines."""

    source: Path
    target: PurePosixPath
    format: str
    lines: Callable[[], Iterable[str]]


@dataclass(frozen=True)
class LeftOut:
    """A file that is not copied, and why."""

    source: Path
    reason: str


class Recogniser:
    """Finds out what the files below a folder are.

    Parameters
    ----------
    root : Path
        The folder that was asked for.
    files : iterable of Path
        The files below it.
    job : ScrubJob
        Labels and counts.
    """

    def __init__(self, root: Path, files: Iterable[Path], job: ScrubJob) -> None:
        self.root = root
        self.files = list(files)
        self.job = job
        self._described = DescribedTables.of(root)
        self._kinds: dict[Path, str] = {}
        self._clocks: dict[object, Beginnings | None] = {}
        self._offsets_s: dict[Path, Decimal] = {}
        self._layout: Layout | None = None

    def recognise(self, file: Path) -> FileCopy | LeftOut:
        """What a file is."""
        if file.stat().st_size == 0:
            return LeftOut(file, "the file is empty")
        dataset = next((f for f in self._above(file) if self._kind(f) == "bids"), None)
        try:
            if dataset is not None:
                return self._of_bids(file, dataset)
            if any(self._kind(f) == "pupil-neon-native" for f in self._above(file)):
                return LeftOut(file, NOT_TEXT["pupil-neon-native"])
            return self._of_folder(file) or self._alone(file)
        except FormatError as error:
            return LeftOut(file, error.problem)

    def _above(self, file: Path) -> list[Path]:
        """Folders from the root down to the one that holds a file."""
        inside = [p for p in file.parents if p == self.root or self.root in p.parents]
        return inside[::-1]

    def _kind(self, folder: Path) -> str:
        """What a folder is as a whole, or nothing."""
        if folder not in self._kinds:
            kinds = (
                ("bids", bids.is_dataset),
                ("pupil-neon-native", is_native),
                ("tobii-glasses3", is_glasses3),
                ("pupil-core", is_core),
                ("pupil", is_cloud),
            )
            self._kinds[folder] = next((name for name, is_it in kinds if is_it(folder)), "")
        return self._kinds[folder]

    def _target(self, file: Path, name: str) -> PurePosixPath:
        """The new path of a file whose own name is given."""
        inside = file.parent.relative_to(self.root).parts
        folders = [
            part
            if part in _FOLDERS or (i and inside[i - 1] == "exports" and re.fullmatch(r"\d+", part))
            else self.job.label(part)
            for i, part in enumerate(inside)
        ]
        return PurePosixPath(*folders, name)

    def _named(self, file: Path) -> PurePosixPath:
        """The new path of a file that a person gave its name."""
        suffix = _SUFFIX.search(file.name)
        ending = suffix[0] if suffix else ""
        stem = file.name[: len(file.name) - len(ending)]
        return self._target(file, self.job.label(stem) + ending.lower())

    def _of_folder(self, file: Path) -> FileCopy | None:
        """A file of a folder that is one recording."""
        plain = Head(file, b"").name
        lines = partial(lines_of, file)
        kind = self._kind(file.parent)
        if kind == "tobii-glasses3" or (
            file.parent.name == "meta" and self._kind(file.parent.parent) == "tobii-glasses3"
        ):
            return self._of_glasses3(file, plain)
        if plain in ("info.json", "info.player.json"):
            make = partial(trackers.scrubbed_info, file, self.job)
            return FileCopy(file, self._target(file, file.name), "pupil info", make)
        if plain in ("info.csv", "export_info.csv"):
            make_rows = partial(trackers.scrubbed_info_table, lines, self.job)
            return FileCopy(file, self._target(file, file.name), "pupil info", make_rows)
        if kind == "pupil" and plain in trackers.CLOUD_FILES:
            return self._table(file, file.name, "pupil", trackers.CLOUD, trackers.CLOUD_FILES)
        if kind == "pupil-core" and plain in trackers.CORE_FILES:
            return self._table(file, file.name, "pupil-core", trackers.CORE, trackers.CORE_FILES)
        surface = trackers.SURFACE_FILE.match(file.name)
        if surface is not None and self._kind(file.parent.parent) == "pupil-core":
            name = surface[1] + self.job.label(surface[2]) + surface[3]
            return self._table(file, name, "pupil-core", trackers.CORE, trackers.CORE_FILES, 1)
        return None

    def _table(
        self,
        file: Path,
        name: str,
        kind: str,
        rules: TableRules,
        names: tuple[str, ...],
        up: int = 0,
    ) -> FileCopy:
        """A table that shares its clock with others of the same folder."""
        folder = file.parents[up]
        if folder not in self._clocks:
            beside = [f for f in self.files if f.parent == folder and Head(f, b"").name in names]
            self._clocks[folder] = earliest(beginnings(partial(lines_of, f), rules) for f in beside)
        make = partial(
            scrubbed_table, partial(lines_of, file), rules, self.job, self._clocks[folder]
        )
        return FileCopy(file, self._target(file, name), kind, make)

    def _of_glasses3(self, file: Path, plain: str) -> FileCopy | None:
        name, kind = file.name, "tobii-glasses3"
        stem = plain.removesuffix(".json")
        if stem in glasses.STREAMS:
            folder = file.parent
            if folder not in self._offsets_s:
                beside = [f for f in self.files if f.parent == folder]
                streams = [
                    f for f in beside if Head(f, b"").name.removesuffix(".json") in glasses.STREAMS
                ]
                found = [glasses.first_time(lines_of(f)) for f in streams]
                times = [t for t in found if t is not None]
                self._offsets_s[folder] = min(times, default=Decimal(0))
            offset = self._offsets_s[folder]
            make = partial(glasses.scrubbed_stream, partial(lines_of, file), self.job, offset)
            return FileCopy(file, self._target(file, name), kind, make)
        if plain in ("recording.g3", "participant"):
            maker = (
                glasses.scrubbed_recording
                if plain == "recording.g3"
                else glasses.scrubbed_participant
            )
            return FileCopy(file, self._target(file, name), kind, partial(maker, file, self.job))
        return None

    def _alone(self, file: Path) -> FileCopy | LeftOut:
        """A file that is a recording or a table of people by itself."""
        lines = partial(lines_of, file)
        if _VIDEO.search(file.name):
            return LeftOut(file, "pictures and videos may show people")
        if self._described is not None:
            described = self._of_description(file, self._described)
            if described is not None:
                return described
        head = Head.of(file)
        stem = head.name.rsplit(".", 1)[0]
        format_name = self._sniffed(head)
        if format_name in NOT_TEXT:
            return LeftOut(file, NOT_TEXT[format_name])
        if format_name == "eyelink-asc":
            make = partial(scrubbed_asc, lines, self.job)
            return FileCopy(file, self._named(file), "eyelink-asc", make)
        if format_name == "smi":
            return FileCopy(file, self._named(file), "smi", partial(scrubbed_smi, lines, self.job))
        if format_name == "tobii-tsv":
            make_rows = partial(scrubbed_table, lines, trackers.PRO_LAB, self.job)
            return FileCopy(file, self._named(file), format_name, make_rows)
        if head.name in COMPANIONS:
            return self._cooked(file, *COMPANIONS[head.name])
        if head.name.endswith((".csv", ".tsv")) and is_people_table(lines, stem):
            make_people = partial(scrubbed_people, lines, self.job)
            named = is_people_file(stem)
            target = self._target(file, file.name) if named else self._named(file)
            return FileCopy(file, target, "people", make_people)
        if format_name in RECIPES:
            return self._cooked(file, format_name, RECIPES[format_name])
        why = why_not_text(file.name)
        return LeftOut(
            file,
            why
            or "scrub does not know this kind of file, or not the names of its columns, which a"
            " dataset.toml may say",
        )

    def _of_description(self, file: Path, tables: DescribedTables) -> FileCopy | LeftOut | None:
        """A table that a `dataset.toml` describes, or that file itself."""
        suffix = _SUFFIX.search(file.name)
        mine = is_description(file) and file.parent == self.root
        layout = None if mine or not (suffix and suffix[0]) else tables.layout(file)
        if layout is None and not mine:
            return None
        if self._layout is None:
            self._layout = tables.first([f for f in self.files if _SUFFIX.search(f.name)])
        if self._layout is None:
            return LeftOut(file, "it describes tables, and none of them is here")
        if layout is None:
            make_lines = partial(tables.description, self._layout, self.job)
            return FileCopy(file, PurePosixPath(file.name), file.name, make_lines)
        if not same_units(layout, self._layout):
            return LeftOut(file, "its units differ from those of the first table")
        assert suffix is not None
        target = tables.target(file, suffix[0].lower(), self.job)
        return FileCopy(file, target, "csv", partial(tables.table, file, layout, self.job))

    def _sniffed(self, head: Head) -> str:
        """The format that `read` would take a file for, or an empty text; tables of known layout
        without a recipe are plain tables.
        """
        formats = (f for f in in_sniffing_order(head) if f.name in RECIPES or f.name not in KNOWN)
        return next((f.name for f in formats if f.sniff(head)), "")

    def _cooked(self, file: Path, kind: str, recipe: ScrubRecipe) -> FileCopy:
        """A file of a format that has a recipe."""
        suffix = _SUFFIX.search(file.name)
        folders, name = recipe.naming(file.parent.relative_to(self.root).parts, file, self.job)
        target = PurePosixPath(*folders, name + (suffix[0].lower() if suffix else ""))
        return FileCopy(file, target, kind, partial(recipe.make, file, self.job))

    def _of_bids(self, file: Path, dataset: Path) -> FileCopy | LeftOut:
        inside = file.relative_to(dataset).parts
        lines = partial(lines_of, file)
        before = self._target(dataset / "x", "x").parent
        target = before.joinpath(*(bids.public_name(part, self.job) for part in inside))
        if any(part in bids.ASIDE or part.startswith(".") for part in inside):
            return LeftOut(file, "it lies beside the recordings of the dataset")
        name = Name.of(file)
        make: Callable[[], Iterable[str]] | None = None
        if file.name == "dataset_description.json":
            make = partial(bids.scrubbed_description, file, self.job)
        elif file.name == "participants.tsv":
            make = partial(scrubbed_people, lines, self.job)
        elif name is not None and file.suffix == ".json":
            if name.suffix in ("physio", "events", "physioevents", "eyetrack"):
                make = partial(bids.scrubbed_sidecar, file, self.job)
        elif name is not None and name.suffix in ("physio", "physioevents"):
            clock = self._run_clock(name, dataset)
            make = partial(bids.scrubbed_samples, name, dataset, lines, self.job, clock)
        elif name is not None and name.suffix == "events":
            make = partial(bids.scrubbed_events, lines, self.job)
        if make is None:
            return LeftOut(file, "free text or a kind of file that scrub does not know")
        return FileCopy(file, target, "bids", make)

    def _run_clock(self, name: Name, dataset: Path) -> Beginnings | None:
        """Where the clock of a run begins: one for the samples of both eyes and their events."""
        run = (name.path.parent, name.group())
        if run not in self._clocks:
            found = []
            for file in self.files:
                other = Name.of(file) if file.parent == name.path.parent else None
                if (
                    other is not None
                    and other.suffix == "physio"
                    and other.group() == name.group()
                    and file.suffix != ".json"
                ):
                    found.append(bids.run_beginning(other, dataset, partial(lines_of, file)))
            self._clocks[run] = earliest(found)
        return self._clocks[run]
