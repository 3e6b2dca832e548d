"""Read a file or a folder of recordings as a cohort; write the `dataset.toml` that says how."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gazeveil import checks
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.gaze.cohort import (
    FRAMES,
    Attributes,
    Cohort,
    Handle,
    ReadAs,
    Skipped,
    cohort_in_frame,
)
from gazeveil.gaze.recording import (
    FILE,
    GUESSED,
    KEY_NAMES,
    PATH,
    Doubt,
    Fact,
    Recording,
    RecordingKey,
)
from gazeveil.io.folder import EXPECTED, Found, scan_file, scan_folder, scan_index
from gazeveil.io.known import FILE_NAME, HEADING, beside, dataset_toml, read_dataset_file
from gazeveil.io.parsing.naming import COPY, DATE, spelling_doubts
from gazeveil.io.parsing.table import printable
from gazeveil.io.plain.roles import GAZE_ROLES
from gazeveil.io.plain.text import FirstRows
from gazeveil.io.registry import WITHOUT_READER, Format, get
from gazeveil.io.source import Head
from gazeveil.io.tables_file import read_people

#: Options `read` itself understands; the others go to the format.
COMMON_OPTIONS = frozenset({"people", "clash", "index", "frame", "stimuli", "confirmed"})

#: Files that a sentence names; `cohort.skipped` has them all.
_MOST_NAMED = 8
#: Share of the samples of a recording that may be lost by their times without a word.
_MOST_FAULTS = 0.01


class ReadingWarning(UserWarning):
    """Something was guessed, looks wrong or is left out."""


def read(
    path: str | os.PathLike[str],
    format: str | Format | None = None,  # noqa: A002 - the name users know
    **options: object,
) -> Cohort:
    """Read a file or a folder of recordings.

    Files are indexed now and loaded when iterated. In a folder, files of another kind are skipped
    and listed in `cohort.skipped`, with hidden files and links that lead nowhere; links to other
    folders are followed, each folder once.

    Parameters
    ----------
    path : path
        A file or a folder; gzip files are read as they are.
    format : str or Format, optional
        A name from `gazeveil.io.registry.names()`; found by looking at the files if not given.
    **options
        Options of the format; and `people`, a mapping or a CSV/TSV file of attributes, `index`, a
        table that says whose each file is (:mod:`gazeveil.io.known`), and
        `clash="error" | "session"`: what to do with two recordings of one person, stimulus, session
        and task ("session" numbers them), `frame="world" | "head"`: what gaze on a sphere is
        relative to (:mod:`gazeveil.gaze.cohort`), `stimuli`, names of stimuli and tasks that may be
        published, `confirmed`, topics of `cohort.facts` whose guess you call right when you publish
        (`person`, `session`, `loss`, ...), and `dataset`, the path of a `dataset.toml`; one
        that lies in the folder, or beside the file, is read anyway (False: not). What is said here
        goes before what it says.

    Warns
    -----
    ReadingWarning
        Of columns and units that were guessed, of people or units that look wrong, and of files
        that are left out. `cohort.doubts` has the questions, `cohort.facts` and `recording.facts`
        what was taken and where that comes from.

    Raises
    ------
    FormatError
        Nothing there, or nothing readable; the message names the file and the remedy.
    """
    place = Path(path)
    if not place.exists():
        raise FormatError(place, "there is no such file or folder", "Check the path.")
    format, options = _with_dataset_file(place, format, options)  # noqa: A001
    if isinstance(format, str) and format in WITHOUT_READER:
        raise FormatError(place, *WITHOUT_READER[format])
    common = {k: options.pop(k) for k in COMMON_OPTIONS & options.keys()}
    clash = checks.one_of("read", "clash", common.get("clash", "error"), ("error", "session"))
    frame = checks.one_of("read", "frame", common.get("frame", "world"), FRAMES)
    chosen = get(format) if isinstance(format, str) else format
    found = _found(place, chosen, options, common)
    root = place if place.is_dir() else place.parent
    handles, chosen = list(_undated(map(_in_text, found.handles))), found.format
    doubts = (*found.doubts, *spelling_doubts(h.person for h in handles))
    _point_out(found, doubts, root)
    files = dict.fromkeys(Path(h.source) for h in handles if h.source)
    table = chosen.people(root, files) if chosen.people is not None else {}
    people: dict[str, Attributes] = {_text(p): a for p, a in table.items()}
    recorded = {h.person for h in handles}
    guessed: Any = found.options.get("guessed", ())
    told = {_key(d) for d in doubts} | ({"screen"} & {*guessed})
    by_format = Fact(f"layout of {chosen.name}", FILE)
    facts = [{"person": by_format, "stimulus": by_format, **h.facts} for h in handles]
    handles = [
        replace(h, load=partial(_load_named, h.load, h.source, told, f), facts=f)
        for h, f in zip(handles, facts, strict=True)
    ]
    people = {p: a for p, a in people.items() if p in recorded}
    if common.get("people") is not None:
        people = {**people, **_people(common["people"], recorded)}
    if clash == "session":
        handles = list(_number_sessions(handles))
    name = place.stem if place.is_file() else place.name
    try:
        cohort = Cohort(handles, people, found.skipped, name, _read_as(found, doubts, common))
    except DataError as error:
        copy = next((d for d in doubts if d.topic == COPY), None)
        if copy is None:
            raise
        raise FormatError(place, copy.sentence.rstrip("."), "Then read again.") from error
    return cohort if frame == "world" else cohort_in_frame(cohort, frame)


def _read_as(found: Found, doubts: tuple[Doubt, ...], common: Mapping[str, object]) -> ReadAs:
    """The options that a recording of this layout is written with, what reading left open, and what
    the user said of it.
    """
    stimuli, confirmed = (_texts(n, common.get(n)) for n in ("stimuli", "confirmed"))
    options = {k: v for k, v in found.options.items() if k != "guessed"}
    describe, files = found.format.describe, [h.source for h in found.handles if h.source]
    described: dict[str, Any] = {}
    if describe is not None and files:
        described = dict(describe(Path(files[0]), found.options))
    unused = tuple(described.pop("unused", ()))
    return ReadAs(
        found.format.name,
        options | described,
        doubts,
        dict(described.get("columns", {})),
        unused,
        stimuli,
        confirmed or (),
    )


def _texts(name: str, value: object) -> tuple[str, ...] | None:
    """An option that is a list of texts."""
    if value is not None and not (
        isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    ):
        checks.refuse("read", name, "a list of texts", value)
    return None if value is None else tuple(value)


def _found(
    place: Path, chosen: Format | None, options: Mapping[str, object], common: Mapping[str, object]
) -> Found:
    """The recordings in a place; what is named beside them is none of them."""
    if not place.is_dir():
        return scan_file(place, chosen, options)
    beside_them = [
        Path(p).resolve()
        for n in ("people", "index")
        if isinstance(p := common.get(n), str | os.PathLike)
    ]
    index = common.get("index")
    found = (
        scan_folder(place, chosen, options)
        if index is None
        else scan_index(place, Path(str(index)), chosen, options)
    )
    skipped = tuple(
        Skipped(s.path, "not a recording") if Path(s.path).resolve() in beside_them else s
        for s in found.skipped
    )
    return replace(found, skipped=skipped)


def _with_dataset_file(
    place: Path, chosen: str | Format | None, options: Mapping[str, object]
) -> tuple[str | Format | None, dict[str, object]]:
    """Format and options, with what the dataset.toml says where the call does not."""
    said = {k: v for k, v in options.items() if k != "dataset"}
    option = options.get("dataset", True)
    if option is False:
        return chosen, said
    if option is not True and not isinstance(option, str | os.PathLike):
        checks.refuse("read", "dataset", "the path of a dataset.toml, or False", option)
    path = beside(place) if option is True else Path(option)
    if path is None:
        return chosen, said
    file = read_dataset_file(path)
    if chosen is not None and file.format not in (None, getattr(chosen, "name", chosen)):
        return chosen, said  # what the file says is about another format
    merged = {**file.options, **said}
    of_file, of_user = file.options.get("columns"), said.get("columns")
    if isinstance(of_file, Mapping) and isinstance(of_user, Mapping):
        merged["columns"] = {**of_file, **of_user}
    if chosen is None and file.format is None and "columns" in merged:
        return "csv", merged
    return chosen or file.format, merged


def _point_out(found: Found, doubts: Iterable[Doubt], root: Path) -> None:
    """Warn of what was guessed, looks wrong or is left out."""
    if multiprocessing.parent_process() is not None:
        return  # the process that was started by a person says it once
    sentences = [*found.guesses, *(d.sentence for d in doubts)]
    if sentences and found.guesses:
        sentences.append(
            "Write what is right into a dataset.toml (`gazeveil inspect PATH --write-dataset`)."
        )
    if surprising := [s for s in found.skipped if s.reason not in EXPECTED]:
        sentences.append(left_out(surprising, root))
    for sentence in sentences:
        _warn(sentence)


def _warn(sentence: str) -> None:
    # Names of files stand in it, and those may hold anything: line breaks, no text at all.
    warnings.warn(printable(sentence, len(sentence)), ReadingWarning, stacklevel=4)


def left_out(skipped: Sequence[Skipped], root: Path) -> str:
    """The sentence that names skipped files."""
    shown = []
    for s in skipped[:_MOST_NAMED]:
        place = Path(s.path)
        name = place.relative_to(root).as_posix() if place.is_relative_to(root) else s.path
        shown.append(f"{name} ({s.reason})")
    more = len(skipped) - _MOST_NAMED
    files = "1 file was" if len(skipped) == 1 else f"{len(skipped)} files were"
    return f"{files} left out: {', '.join(shown)}" + (f" and {more} more." if more > 0 else ".")


def _people(people: object, recorded: set[str]) -> dict[str, Attributes]:
    """The `people` option as a table."""
    if isinstance(people, Mapping):
        for attributes in people.values():
            if not isinstance(attributes, Mapping):
                allowed = "a mapping of person to a mapping of attributes, or a CSV/TSV file"
                checks.refuse("read", "people", allowed, attributes)
        return {str(p): dict(a) for p, a in people.items()}
    if isinstance(people, str | os.PathLike):
        return {p: a for p, a in read_people(Path(people)).items() if p in recorded}
    raise ParameterError(
        f"The 'people' option of read must be a mapping or a CSV/TSV file. Got {people!r} instead.",
        name="people",
        got=people,
    )


def _text(name: str) -> str:
    """A name as text: bytes of a file's name that are no UTF-8 (a name of an old archive) are
    written out, so that two names stay two.
    """
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _in_text(handle: Handle) -> Handle:
    """A handle whose names can be written to every file."""
    names = {n: _text(getattr(handle, n)) for n in KEY_NAMES}
    same = tuple(names.values()) == handle.key
    return handle if same else _renamed(handle, chunks=None, **names)


def _renamed(handle: Handle, **names: Any) -> Handle:
    """A handle under other names, which its recording has too."""
    keys = {n: v for n, v in names.items() if n in KEY_NAMES}
    return replace(handle, **names, load=partial(_load_as, handle.load, keys))


def _load_as(load: Callable[[], Recording], names: Mapping[str, str]) -> Recording:
    return load().with_(**names)


def _undated(handles: Iterable[Handle]) -> Iterator[Handle]:
    """Give sessions that a guessed path calls by dates the numbers 1, 2, ... of a person's viewings
    of the stimulus, in the order they were found: a date is no session of an experiment.
    """
    viewed = Counter[RecordingKey]()
    for h in handles:
        said, key = h.facts.get("session"), (h.person, h.stimulus, "", h.task)
        if said is not None and said.origin == GUESSED and DATE.fullmatch(h.session):
            viewed[key] += 1
            h = _renamed(h, session=str(viewed[key]))
        yield h


def _number_sessions(handles: list[Handle]) -> Iterator[Handle]:
    """Give recordings that clash the sessions 1, 2, ... in the order they were found."""
    totals = Counter(h.key for h in handles)
    used: Counter[RecordingKey] = Counter()
    for h in handles:
        used[h.key] += 1
        yield _renamed(h, session=f"{h.session}.{used[h.key]}") if totals[h.key] > 1 else h


def _load_named(
    load: Callable[[], Recording], source: str, told: set[str], facts: Mapping[str, Fact]
) -> Recording:
    """Load, let every error name the file (what a recording refuses does not know where it came
    from), add what is known of its names, and ask what was not asked before: `told` has the
    questions that were.
    """
    try:
        recording = load()
        recording = recording.with_(
            metadata={**recording.metadata, "facts": {**facts, **recording.facts}}
        )
    except FormatError:
        raise
    except (DataError, ParameterError) as error:
        raise FormatError(
            source, str(error).rstrip("."), "Mend the file or leave it out."
        ) from error
    faults = recording.metadata.get("time_faults", 0)
    if isinstance(faults, int) and faults > _MOST_FAULTS * len(recording):
        words = (
            f"{faults:,} of {len(recording):,} samples of {Path(source).name} are lost because"
            " their times repeat or go back. If the clock is coarse, say rate_hz=; if rows are out"
            " of order, sort them; if they are several trials, name their column."
        )
        asked = (*recording.doubts, Doubt("clock", words, 'confirmed = ["loss"]'))
        recording = recording.with_(metadata={**recording.metadata, "doubts": asked})
    doubts = [d for d in recording.doubts if _key(d) not in told]
    screen = recording.facts.get("screen")
    if screen is not None and screen.origin == GUESSED and "screen" not in told:
        told.add("screen")
        words = f"{Path(source).name} does not say its screen: assumed {screen.value}."
        doubts.append(Doubt("screen", f"{words} Degrees depend on it: say screen=."))
    told |= {_key(d) for d in doubts}
    if multiprocessing.parent_process() is None:
        for doubt in doubts:
            _warn(doubt.sentence)
    return recording


def _key(doubt: Doubt) -> str:
    """What makes two doubts one question."""
    return doubt.remedy or doubt.sentence


#: Options of `read` itself that the file keeps.
_COMMON = ("people", "clash", "frame", "stimuli", "confirmed")

_FORM = """\
{heading}
# Not all of it could be guessed: take the # away and fill in.
# {problem}
format = "csv"
# pattern = "{{person}}/{{stimulus}}.csv"   # where the path says who looked at what
# rate_hz = 250                            # where no column has times
# people = "people.csv"                    # a table with a column 'person'

[columns]                                  # columns of {file}:
{columns}
# t = ""
# x = ""
# y = ""

[units]
# time = "ms"                              # s, ms, us, ns, 100ns or frame
# gaze = "px"                              # deg, rad, lonlat, px, px-centred, fraction, equirect

# [screen]                                 # for px, px-centred and fraction
# width_px = 1920
# height_px = 1080
# width_mm = 531
# height_mm = 299
# distance_mm = 650
"""


def write_dataset_file(
    path: str | os.PathLike[str],
    format: str | Format | None = None,  # noqa: A002 - as read has it
    **options: object,
) -> Path:
    """Write the `dataset.toml` of a folder, or of the folder a file lies in; returns its path. The
    arguments are those of :func:`gazeveil.read`.

    Raises
    ------
    DataError
        If there is one already, which a person may have written.
    FormatError
        Where the layout cannot be guessed: a form to fill in is written.
    """
    place = Path(path)
    if not place.exists():
        raise FormatError(place, "there is no such file or folder", "Check the path.")
    root = place if place.is_dir() else place.parent
    target = root / FILE_NAME
    if target.exists():
        raise DataError(f"{target} exists already. Edit it, or remove it to have it written anew.")
    chosen = get(format) if isinstance(format, str) else format
    reading = {k: v for k, v in options.items() if k not in (*_COMMON, "dataset")}
    try:
        found = (scan_folder if place.is_dir() else scan_file)(place, chosen, reading)
    except FormatError as error:
        if not _write_form(place, target, error):
            raise
        raise FormatError(
            target, f"a form to fill in was written ({error.problem})", "Fill it in and try again."
        ) from error
    common = {k: v for k, v in options.items() if k in _COMMON}
    target.write_text(_dataset_text(found, root, common), encoding="utf-8")
    return target


def _dataset_text(found: Found, root: Path, common: Mapping[str, object]) -> str:
    options = {k: v for k, v in {**common, **found.options}.items() if k != "guessed"}
    guessed = (f for h in found.handles for f in h.facts.values() if f.origin == GUESSED)
    patterns = dict.fromkeys(f.value for f in guessed if f.basis == PATH)
    notes = [*found.guesses, *(f"Guessed from the names of files: {p}" for p in patterns)]
    files = [Path(h.source) for h in found.handles if h.source]
    for doubt in found.doubts:
        # Patterns stay comments: which of them is right only a person can say.
        notes += [doubt.sentence] + doubt.remedy.splitlines() * (doubt.topic == "person")
    if found.format.describe is not None and files:
        described = found.format.describe(files[0], options)
        options["columns"] = _columns(described, options.get("columns"))
        options.setdefault("y_axis", described["y_axis"])
    if "people" not in options and (table := _people_table(found)) is not None:
        options["people"] = table.relative_to(root).as_posix()
        notes.append(f"{options['people']} names some of the people: it is taken for their table.")
    return dataset_toml(found.format.name, options, tuple(notes))


def _columns(described: Mapping[str, object], said: object) -> dict[str, object]:
    """The columns that every file must have, by name: time, gaze, and what was said."""
    found = described.get("columns")
    roles = {str(k): v for k, v in found.items()} if isinstance(found, Mapping) else {}
    gaze = ("x", "y") if {"x", "y"} <= roles.keys() else GAZE_ROLES
    return {
        **{r: roles[r] for r in ("t", *gaze) if r in roles},
        **(dict(said) if isinstance(said, Mapping) else {}),
    }


def _people_table(found: Found) -> Path | None:
    """A table of people among the files that are no recordings; None where there is none."""
    recorded = {h.person for h in found.handles} | found.names
    for skipped in found.skipped:
        path = Path(skipped.path)
        if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
            continue
        try:
            people = read_people(path)
        except FormatError:
            continue
        if recorded & people.keys():
            return path
    return None


def _write_form(place: Path, target: Path, error: FormatError) -> bool:
    """Write a form for the first table of a place; False where there is none."""
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    first = next((t for p in files if (t := FirstRows.of(Head.of(p), {})).is_headed), None)
    if first is None:
        return False
    columns = "\n".join(f"#   {name}" for name in first.names)
    target.write_text(
        _FORM.format(
            heading=HEADING,
            problem=" ".join(error.problem.split()),
            file=first.path.name,
            columns=columns,
        ),
        encoding="utf-8",
    )
    return True
