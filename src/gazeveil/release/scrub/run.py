""":func:`scrub`: a copy of a folder without identifiers."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from gazeveil.errors import DataError, FormatError
from gazeveil.io.known import FILE_NAME, beside
from gazeveil.io.source import free, staged
from gazeveil.release.inventory import Inventory, inventory
from gazeveil.release.inventory.finding import PLAIN
from gazeveil.release.inventory.looks import files_below, lines_of
from gazeveil.release.scrub.copies import ScrubJob
from gazeveil.release.scrub.places import FileCopy, LeftOut, Recogniser

#: 2000-01-01 00:00:00 UTC: the time that every file of a copy has.
NEUTRAL_S = 946_684_800
_SHORTEST = 4
#: What scrub itself writes: a copy can be scrubbed again.
_OURS = re.compile(
    r"recording\.edf|removed|1 January 2000|Scrubbed recordings|(?:message_)?id[0-9a-f]{8}"
    r"|Sat Jan  1 00:00:00 2000|01\.01\.2000 00:00:00"
)
_LETTERS = re.compile(r"[^\W\d_]{2}").search


@dataclass(frozen=True)
class ScrubReport:
    """What a run did.

    Parameters
    ----------
    formats : mapping of str to int
        Format -> number of files that were copied.
    done : mapping of str to int
        What was done -> how often.
    not_copied : mapping of str to str
        File below the folder that was asked for -> why it was not copied.
    kept : tuple of str
        Texts that stay as they are, for a person to read.
    """

    formats: Mapping[str, int]
    done: Mapping[str, int]
    not_copied: Mapping[str, str]
    kept: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "formats": dict(self.formats),
            "done": dict(self.done),
            "not_copied": dict(self.not_copied),
            "kept": list(self.kept),
            "protects_gaze": False,
        }


def scrub(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    keep_text: Iterable[str] = (),
    keep: Iterable[str] = (),
    key_file: str | os.PathLike[str] | None = None,
    progress: Callable[[list[Path]], Iterable[Path]] = lambda files: files,
) -> ScrubReport:
    """Copy recordings of vendors' formats without identifiers; gaze stays as it is.

    Parameters
    ----------
    source : path
        A file or a folder.
    target : path
        The folder to write; it must not exist or be empty.
    keep_text : iterable of str
        Regular expressions of messages, stimuli and names that stay as they are.
    keep : iterable of str
        Attributes of people's tables that stay as they are.
    key_file : path, optional
        Where to write who is who, readable for its owner alone; not inside `target`.
    progress : callable
        Wraps the list of files, for a progress bar.

    Returns
    -------
    ScrubReport

    Raises
    ------
    FormatError
        Where there is no such file or folder, or nothing in it can be copied.
    DataError
        Where the target is not empty, the key would be published, or an identifier would be left.
    """
    place, folder = Path(source), free(Path(target))
    _check_places(place, folder, key_file)
    job = ScrubJob(keep_text, keep, _identifiers(inventory(place)))
    root = place if place.is_dir() else place.parent
    files = files_below(place)
    described = beside(place)
    if place.is_file() and described is not None and described not in files:
        files.append(described)
    recogniser = Recogniser(root, files, job)
    formats: Counter[str] = Counter()
    left: dict[str, LeftOut] = {}
    with staged(folder) as staging:
        for file in progress(files):
            copy = recogniser.recognise(file)
            if isinstance(copy, FileCopy):
                copy = _written(copy, staging)
            if isinstance(copy, LeftOut):
                left[file.relative_to(root).as_posix()] = copy
                continue
            formats[copy.format] += 1
            _refuse_leaks(staging, copy, job)
        if not formats:
            raise _nothing(place, list(left.values()))
        (staging / PAGE).write_text(page(formats, job.done, len(left)), encoding="utf-8")
        if (staging / "dataset_description.json").is_file():
            (staging / ".bidsignore").write_text(f"{PAGE}\n", encoding="utf-8")
        if key_file is not None:
            _write_key(Path(key_file), job)
        for written in (*sorted(staging.rglob("*"), reverse=True), staging):
            os.utime(written, (NEUTRAL_S, NEUTRAL_S))
    reasons = {file: copy.reason for file, copy in left.items()}
    return ScrubReport(dict(formats), +job.done, reasons, tuple(sorted(job.kept)))


def _nothing(place: Path, left: list[LeftOut]) -> FormatError:
    """What to say where nothing was copied: the way out, where there is one for all files."""
    reason = left[0].reason if len({copy.reason for copy in left}) == 1 else ""
    remedy = (
        f"{reason[:1].upper()}{reason[1:]}."
        if reason and left[0].is_way_out
        else "It takes every text format of `gazeveil list formats`, and tables whose columns a"
        " dataset.toml beside them says; `gazeveil publish` reads binary ones too."
    )
    why = f": {reason.rstrip('.')}" if reason and not left[0].is_way_out else ""
    return FormatError(place, f"no file here is of a format that scrub can copy{why}", remedy)


def _check_places(place: Path, folder: Path, key_file: str | os.PathLike[str] | None) -> None:
    if not place.exists():
        raise FormatError(place, "there is no such file or folder", "Check the path.")
    if place.resolve() in (folder.resolve(), *folder.resolve().parents) and place.is_dir():
        raise DataError(
            f"{folder} lies inside {place}, so the copy would be copied. Name a folder elsewhere."
        )
    if key_file is None:
        return
    key = Path(key_file)
    if key.exists():
        raise DataError(f"{key} exists already, and a key is never overwritten. Name another file.")
    if folder.resolve() in key.resolve().parents:
        raise DataError(
            f"{key} is inside {folder}: whoever gets the copy would know who is who. Name a file"
            " elsewhere."
        )


def _identifiers(found: Inventory) -> set[str]:
    """Values of the inventory that may stand nowhere in the copy; short ones are left to the rules
    of each format.
    """
    values = {
        value
        for f in found.of("name", "serial", "e-mail", "path", "date")
        # That file is written anew, of numbers and words of its format alone.
        if f.field != "file name" and Path(f.file).name != FILE_NAME
        for value in f.values
    }
    return {
        v
        for v in values
        if len(v) >= _SHORTEST and v.lower() not in PLAIN and not _OURS.fullmatch(v)
    }


def _written(copy: FileCopy, staging: Path) -> FileCopy | LeftOut:
    """Write a copy, zipped where its name ends in `.gz`; a file that breaks off is left out and
    named. The archive says neither name nor time.
    """
    target = staging / copy.target
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("wb") as raw:
            zipped = target.name.endswith(".gz")
            archive = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if zipped else nullcontext(raw)
            with archive as file:
                file.writelines(f"{line}\n".encode() for line in copy.lines())
    except FormatError as error:
        target.unlink(missing_ok=True)
        return LeftOut(copy.source, error.problem)
    return copy


def _refuse_leaks(staging: Path, copy: FileCopy, job: ScrubJob) -> None:
    """The second look: no known identifier in any line or in the name of the copy."""
    found = job.leak(copy.target.as_posix())
    for line in () if found else lines_of(staging / copy.target):
        # Rows of numbers hold no names; looking at them would take most of the time.
        if _LETTERS(line) and (found := job.leak(line)) is not None:
            break
    if found is not None:
        raise DataError(
            f"'{found}' would still stand in the copy of {copy.source}, and it looks like an"
            " identifier. Name it with --keep-text if it may stay; otherwise take it out of the"
            " file. Nothing was written."
        )


def _write_key(path: Path, job: ScrubJob) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": "gazeveil-scrub-key", "labels": job.labels}, indent=1) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


#: Name of the page in the copy.
PAGE = "SCRUB.md"

NOT_PROTECTED = (
    "This does not protect gaze. The gaze in these files is as it was recorded: people can be"
    " recognised by how they look, and age, sex, health and interests can be guessed from it. Use"
    " `gazeveil publish` for a release that protects gaze."
)

CHECKS = (
    "Open a few files and read their headers, messages and column names.",
    "Labels stand for names: the holder of the raw files can undo them as long as these exist, and"
    " times, lengths and gaze link a file to its raw one.",
    "Rates, lengths, screens and models of trackers are as they were: a rare one can point to a"
    " lab, a day or a person.",
    "Texts that you named with --keep-text, columns that you named with --keep, and task and"
    " condition words of BIDS stay as they are: read them.",
    "Results of a calibration stay in EyeLink files, and they describe the eye.",
    "Stimuli, pictures and videos are not copied: a scene video shows faces and places.",
    "Files that were not copied may be needed to use the others; look through them before you add"
    " one by hand.",
    "Few people, or one with a rare condition, can be found by what is known about the study.",
)


def page(formats: Mapping[str, int], done: Mapping[str, int], not_copied: int) -> str:
    """The page of a copy.

    Parameters
    ----------
    formats : mapping of str to int
        Format -> number of files that were copied.
    done : mapping of str to int
        What was done -> how often.
    not_copied : int
        Number of files that were not copied.
    """
    lines = ["# Identifiers were taken out of these files", "", f"**{NOT_PROTECTED}**", ""]
    lines += ["## What was done", ""]
    lines += [
        f"- {count} files of the format {name} were copied." for name, count in formats.items()
    ]
    lines.append(f"- {not_copied} files were not copied, because their kind is not known.")
    lines += [f"- {what}: {count}." for what, count in sorted(done.items()) if count]
    lines += [
        "- File names, names of people, sessions, stimuli and messages are random labels; equal"
        " texts have equal labels.",
        "- Dates are 1 January 2000, clocks begin at 0, serial numbers, paths and addresses are"
        " gone, and so is everything in a field that is not known to be harmless.",
        "- Where a file had the places of both eyes, both have the place between them, so that the"
        " distance between the eyes is gone; positions of the head, which hold height, are left"
        " out.",
        "- All files have the same time of change.",
        "",
        "## What a person should still check",
        "",
    ]
    lines += [f"{i}. {check}" for i, check in enumerate(CHECKS, 1)]
    return "\n".join(lines) + "\n"
