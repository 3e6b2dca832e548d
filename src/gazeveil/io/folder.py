"""The recordings in a folder: which files are of one format, which are left out, and why."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle, Skipped, natural
from gazeveil.gaze.recording import Doubt
from gazeveil.io.known import FILE_NAME, read_index
from gazeveil.io.parsing.naming import BY_PATH, IN_FILE, PatternError, copies, question_of
from gazeveil.io.registry import Format, get, names, sniff
from gazeveil.io.source import Head

# Files that belong to a folder of recordings without being one.
_NOT_DATA = frozenset(
    [
        "readme",
        "readme.md",
        "readme.txt",
        "license",
        "license.txt",
        "license.md",
        "citation.cff",
        ".ds_store",
        "thumbs.db",
        FILE_NAME,
        # What a release, or a copy without identifiers, has beside its recordings.
        "scrub.md",
        "privacy.json",
        "privacy.md",
        "privacy.sig",
        "data.md",
        "data_dictionary.json",
    ]
)


#: Suffixes of tables whose first line is the header, and nothing below it a file without rows.
_TABLES = (".csv", ".tsv", ".txt")

#: Kinds of files that labs have and that are not read, and the way out.
_OTHERS = (
    ((".xlsx", ".xls", ".ods"), "it is a spreadsheet", "Save it as CSV, one file per sheet."),
    (
        (".feather", ".arrow", ".ipc"),
        "it is an Arrow file",
        "Write it as CSV: `polars.read_ipc(path).write_csv(...)`, or pandas' read_feather.",
    ),
    (
        (".pkl", ".pickle", ".pck", ".p", ".joblib"),
        "it is a Python pickle, which runs code when it is opened",
        "Open it where you trust it and write its samples as CSV.",
    ),
    (
        (".sav", ".rds", ".rdata", ".dta"),
        "it is a table of a statistics program",
        "Save it as CSV.",
    ),
)

#: Reasons of skipped files that are no surprise to anybody.
EXPECTED = ("hidden", "not a recording", "read with the recordings")


@dataclass(frozen=True)
class Found:
    """What was found in a place: the format that most files have, the recordings, what is left out
    and why, the options with what was guessed, the guesses in words, what is open to doubt,
    and the names of people that the paths may mean.
    """

    format: Format
    handles: tuple[Handle, ...]
    skipped: tuple[Skipped, ...]
    options: Mapping[str, object]
    guesses: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    names: frozenset[str] = frozenset()


def scan_file(place: Path, chosen: Format | None, options: Mapping[str, object]) -> Found:
    """The recordings of one file.

    Raises
    ------
    FormatError
        Where its format is not known.
    """
    chosen = chosen or sniff(place) or _own_columns([place], options)
    if chosen is None:
        raise unknown(place)
    checks.known_options(f"Format {chosen.name}", options, chosen.options)
    options, guesses = _completed(chosen, [place], options)
    handles = tuple(chosen.scan(place, place.parent, **options))
    doubts = () if chosen.doubts is None else tuple(chosen.doubts(place, options))
    return Found(chosen, handles, (), options, guesses, doubts)


def scan_folder(folder: Path, chosen: Format | None, options: Mapping[str, object]) -> Found:
    """The format of a folder, its recordings, and what is left out."""
    owner = _sniffed(folder, chosen)
    if owner is not None:
        checks.known_options(f"Format {owner.name}", options, owner.options)
        owned = tuple(owner.scan(folder, folder, **options))
        return Found(owner, owned, tuple(_foreign(owner, folder)), options)
    if chosen is not None:
        checks.known_options(f"Format {chosen.name}", options, chosen.options)
    candidates, skipped = _candidates(folder, chosen, options)
    if not any(f is not None for _, f in candidates):
        files = [p for p, _ in candidates if p.is_file()]
        own = _own_columns(files, options) if chosen in (None, get("csv")) else None
        if own is None:
            raise _nothing_found(folder, chosen, [p for p, _ in candidates])
        candidates = [(p, own if not _misfit(own, p, options, True) else None) for p in files]
    main = _most(candidates)
    checks.known_options(f"Format {main.name}", options, main.options)
    of_main = [p for p, f in candidates if f is not None and f.name == main.name]
    options, guesses = _completed(main, [p for p in of_main if not _no_rows(p)], options)
    reasons = {place: _why_not(place, main, of, options) for place, of in candidates}
    skipped += [Skipped(str(place), reason) for place, reason in reasons.items() if reason]
    files = [place for place, reason in reasons.items() if not reason]
    scanned = _scanned(main, files, folder, options)
    # Files whose person was taken from their path, by the common rule.
    taken = (Path(h.source) for h in scanned.handles if h.facts.get("person") == BY_PATH)
    by_path = list(dict.fromkeys(taken))
    question = question_of(by_path, folder)
    doubts = question.doubts()
    if question.pattern is not None and len(by_path) == len(files):
        guessed = (*options.get("guessed", ()), "pattern")  # type: ignore[misc]
        options = {**options, "pattern": question.pattern, "guessed": guessed}
        scanned = _scanned(main, files, folder, options)
    skipped += scanned.skipped
    if not scanned.handles:
        raise scanned.misfit or FormatError(
            folder, f"no file of format {main.name} here has any rows", "Check the files."
        )
    doubts += [*copies(files), *_one_person(main, scanned.handles, options), *scanned.doubts]
    named = frozenset(p for reading in question.readings for p in reading.people)
    return Found(main, scanned.handles, tuple(skipped), options, guesses, tuple(doubts), named)


@dataclass(frozen=True)
class _Scanned:
    """Recordings of some files, files without any, and doubts about the files' layout."""

    handles: tuple[Handle, ...]
    skipped: tuple[Skipped, ...]
    doubts: tuple[Doubt, ...]
    misfit: PatternError | None


def _scanned(
    main: Format, files: Sequence[Path], folder: Path, options: Mapping[str, object]
) -> _Scanned:
    handles: list[Handle] = []
    skipped: list[Skipped] = []
    doubts: dict[tuple[str, str], Doubt] = {}
    misfit = None
    for place in files:
        try:
            found = list(main.scan(place, folder, **options))
        except PatternError as error:
            misfit = misfit or error
            skipped.append(Skipped(str(place), error.problem))
            continue
        handles += found
        if not found:
            skipped.append(Skipped(str(place), "no recording in it"))
        elif main.doubts is not None:
            for doubt in main.doubts(place, options):
                # One question is asked once, however many files raise it.
                doubts.setdefault((doubt.topic, doubt.remedy or doubt.sentence), doubt)
        skipped += _foreign(main, place) if place.is_dir() else []
    return _Scanned(tuple(handles), tuple(skipped), tuple(doubts.values()), misfit)


def _named_in(files: Sequence[str], person: str) -> bool:
    top = len(os.path.commonpath(files))
    return all(person in re.split(r"[\W_]+", f[top:]) for f in files)


def _one_person(
    main: Format, handles: Sequence[Handle], options: Mapping[str, object]
) -> list[Doubt]:
    """The doubt about tables that all name one person, where their paths may tell people apart."""
    files = list(dict.fromkeys(h.source for h in handles))
    people = {h.person for h in handles if h.facts.get("person") == IN_FILE}
    # Where the paths name the person too, the files are one person's.
    if main.describe is None or len(files) < 2 or len(people) != 1 or _named_in(files, *people):
        return []
    (person,) = people
    columns = main.describe(Path(files[0]), options)["columns"]
    column = columns.get("person") if isinstance(columns, Mapping) else None
    if column is None or any(h.person != person for h in handles):
        return []
    sentence = (
        f"'{column}' is '{person}' in all {len(files)} files. If they are of several people, say"
        f" ignore=['{column}'], and the paths or another column name them."
    )
    return [Doubt("person", sentence, f'ignore = ["{column}"]')]


def scan_index(
    folder: Path, index: Path, chosen: Format | None, options: Mapping[str, object]
) -> Found:
    """The recordings that an index lists."""
    chosen = chosen or get("csv")
    files = read_index(index)
    checks.known_options(f"Format {chosen.name}", options, chosen.options)
    rowed = [f for f in files if not _no_rows(f)]
    first = files[rowed[0]] if rowed else {}
    options, guesses = _completed(chosen, rowed, {**options, **first})
    own = {n for o in files.values() for n in o}
    options = {k: v for k, v in options.items() if k not in own}
    handles: list[Handle] = []
    doubts: list[Doubt] = []
    for file in rowed:
        handles += chosen.scan(file, folder, **options, **files[file])
        if chosen.doubts is not None and not doubts:
            doubts += chosen.doubts(file, {**options, **files[file]})
    skipped = [Skipped(str(f), "no rows below its header") for f in files if f not in rowed]
    for place, refused in sorted(_walk(folder)):
        if place not in files and not place.is_dir():
            reason = refused or ("not a recording" if _is_aside(place) else "")
            skipped.append(Skipped(str(place), reason or "not in the index"))
    options = {**options, **{k: v for k, v in first.items() if k in ("screen", "space")}}
    return Found(chosen, tuple(handles), tuple(skipped), options, guesses, tuple(doubts))


def _is_aside(place: Path) -> bool:
    """Whether a file belongs to a folder of recordings without being one."""
    name = place.name.lower()
    return name in _NOT_DATA or name.endswith(
        (".md", ".toml", ".json", ".events.csv", ".messages.csv")
    )


def _most(candidates: list[tuple[Path, Format | None]]) -> Format:
    """The format that most files have."""
    formats = [f for _, f in candidates if f is not None]
    most = Counter(f.name for f in formats).most_common(1)[0][0]
    return next(f for f in formats if f.name == most)


def _own_columns(files: list[Path], options: Mapping[str, object]) -> Format | None:
    """Plain CSV, where some file of own columns can be read as it; None where none can."""
    csv = get("csv")
    return csv if any(not _misfit(csv, p, options, True) for p in files) else None


def _misfit(chosen: Format, place: Path, options: Mapping[str, object], guessing: bool) -> str:
    """Explain why a file is not of a format under these options; empty if it is, or if unknown."""
    return "" if chosen.why_not is None else chosen.why_not(Head.of(place), options, guessing)


def _completed(
    chosen: Format, files: list[Path], options: Mapping[str, object]
) -> tuple[Mapping[str, object], tuple[str, ...]]:
    """The options with what the format guesses, and the guesses in words."""
    if chosen.complete is None:
        return options, ()
    guess = chosen.complete(files, options)
    guessed = {"guessed": tuple(guess.options)} if guess.options else {}
    return {**options, **guess.options, **guessed}, guess.sentences


def _no_rows(place: Path) -> bool:
    """Whether a file is a table without any row."""
    if not place.is_file():
        return False
    head = Head.of(place)
    if head.name.endswith(".arff"):
        return head.text.rstrip().lower().endswith("@data")
    lines = [t for t in head.lines if t.strip() and not t.startswith("#")]
    one_line = head.name.endswith(_TABLES) and len(lines) == 1 and len(head.data) < 1 << 15
    return one_line and any(sign in lines[0] for sign in "\t;,|")


def _foreign(owner: Format, folder: Path) -> list[Skipped]:
    """Files of a folder that a format owns and that are no part of it."""
    places = () if owner.foreign_files is None else owner.foreign_files(folder)
    return [Skipped(str(place), f"not part of the {owner.name} folder") for place in places]


def _sniffed(
    place: Path, chosen: Format | None, options: Mapping[str, object] | None = None
) -> Format | None:
    """The format of a file or folder: the chosen one, or any where none is chosen."""
    if chosen is None:
        return sniff(place)
    if chosen.why_not is not None and options and place.is_file():
        return None if chosen.why_not(Head.of(place), options, False) else chosen
    return chosen if chosen.knows(place) else None


def _candidates(
    folder: Path, chosen: Format | None, options: Mapping[str, object]
) -> tuple[list[tuple[Path, Format | None]], list[Skipped]]:
    """Files and folders that may be recordings with their format, and what is left out.

    Folders that are one recording each (Glasses 3, Pupil exports) are taken whole, files one by
    one.
    """
    candidates: list[tuple[Path, Format | None]] = []
    skipped: list[Skipped] = []
    owned: list[Path] = []
    places = sorted(_walk(folder), key=lambda p: natural(p[0].relative_to(folder).as_posix()))
    for place, refused in places:
        if any(o in place.parents for o in owned):
            continue
        if refused or (place.name.lower() in _NOT_DATA and not place.is_dir()):
            skipped.append(Skipped(str(place), refused or "not a recording"))
            continue
        of_place = _sniffed(place, chosen, options)
        if not place.is_dir():
            candidates.append((place, of_place))
        elif of_place is not None:
            owned.append(place)
            candidates.append((place, of_place))
    return candidates, skipped


def _nothing_found(folder: Path, chosen: Format | None, files: list[Path]) -> FormatError:
    # A folder of EDF files or archives gets the sentence that one of them would get.
    unread = next((p for p in files if _remedy(p)), None)
    if unread is None and (chosen is None or chosen.name == "csv"):
        table = next((f for p in files if (f := _unread_table(p, folder)) is not None), None)
        if table is not None:
            return table
    if chosen is None or (chosen.dataset is None and unread is not None):
        return unknown(unread or folder)
    remedy = (
        "Check the path and the format name."
        if chosen.dataset is None
        else f"Expected layout of {chosen.dataset.title}: {chosen.dataset.layout}."
    )
    return FormatError(folder, f"no file here looks like {chosen.name}", remedy)


def _unread_table(path: Path, folder: Path) -> FormatError | None:
    """The error for a folder whose tables have columns that cannot be told; None for a file that is
    no table.
    """
    csv = get("csv")
    head = Head.of(path) if path.is_file() else None
    if head is None or csv.why_not is None or not head.name.endswith(_TABLES):
        return None
    reason = csv.why_not(head, {}, True)
    if not head.text.strip() or "\0" in head.text[:1000] or not reason:
        return None
    return FormatError(
        folder,
        "no file in this folder looks like a known recording"
        f" ({path.relative_to(folder).as_posix()}: {reason})",
        "Say the columns in a dataset.toml (`gazeveil inspect PATH --write-dataset` writes a form),"
        " or name a format (format= in Python, --format on the command line).",
    )


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Everything in a folder, with the reason for what is not looked at; links to folders are
    followed, each folder once.
    """
    visited = {os.path.realpath(folder)}
    top = os.path.realpath(folder)
    pending = [folder]
    while pending:
        current = pending.pop()
        try:
            entries = list(current.iterdir())
        except OSError as error:
            raise FormatError(
                current, f"the folder cannot be opened ({error.strerror})", "Check the permissions."
            ) from error
        for place in entries:
            if place.name.startswith("."):
                yield place, "hidden"
            elif place.is_dir():
                real = os.path.realpath(place)
                if place.is_symlink() and (real in visited or Path(top) in Path(real).parents):
                    yield place, "a link to a folder that is read in its own place"
                elif real not in visited:
                    visited.add(real)
                    pending.append(place)
                    yield place, ""
            elif place.is_file():
                yield place, ""
            else:
                link = place.is_symlink()
                yield place, "a link that leads nowhere" if link else "not a regular file"


def _why_not(
    place: Path, main: Format, of_place: Format | None, options: Mapping[str, object]
) -> str:
    """Why a file is no part of the cohort; an empty text where it is."""
    if main.companion is not None and place.is_file() and main.companion(place):
        return "read with the recordings"
    if of_place is not None and of_place.name != main.name:
        return f"not {main.name} but {of_place.name}"
    if of_place is None and place.is_file() and place.stat().st_size == 0:
        return "the file is empty"
    if _no_rows(place):
        return "no rows below its header"
    misfit = _misfit(main, place, options, False) if place.is_file() else ""
    if of_place is not None:
        return misfit
    remedy = _remedy(place)
    return (
        f"{remedy[0]}: {remedy[1]}"
        if remedy
        else f"not {main.name}" + (f": {misfit}" if misfit and options else "")
    )


def _remedy(place: Path) -> tuple[str, str] | None:
    """What a file is and what to do with it, for the kinds that are often met
    and cannot be read.
    """
    if not place.is_file():
        return None
    head = Head.of(place)
    if head.name.endswith(".edf") or head.data.startswith(b"SR_RESEARCH"):
        return (
            "EyeLink EDF is a closed binary format",
            "Install what reads it (pip install 'gazeveil[edf]'), or convert it with SR Research's"
            " edf2asc and read the .asc file it writes.",
        )
    for suffixes, what, way in _OTHERS:
        if head.name.endswith(suffixes):
            return what, way
    if head.data.startswith(
        (b"PK\x03\x04", b"7z\xbc\xaf", b"Rar!", b"BZh", b"\xfd7zXZ")
    ) or head.name.endswith((".tar", ".tgz")):
        return "it is an archive of another kind than gzip", "Unpack it and read the files in it."
    if "Table Header for Fixations" in head.text:
        return (
            "it is an event export of BeGaze, without samples",
            "Export the raw data from BeGaze.",
        )
    return None


def unknown(place: Path) -> FormatError:
    """The error for a file or folder of no known format."""
    if place.is_dir():
        return FormatError(
            place,
            "no file in this folder looks like a known recording",
            "See `gazeveil list datasets` for the layouts, name a format (format= in Python,"
            " --format on the command line), or say the columns in a dataset.toml.",
        )
    if place.stat().st_size == 0:
        return FormatError(
            place, "the file is empty", "Copy it again from the tracker or the archive."
        )
    remedy = _remedy(place)
    if remedy is not None:
        return FormatError(place, *remedy)
    if Head.of(place).name.endswith((".json", ".jsonl")):
        return FormatError(
            place,
            "it is JSON of no known kind",
            "Write one row per sample as CSV: person, stimulus, t_ms, x_px and y_px.",
        )
    return FormatError(
        place,
        "its format is not known",
        f"Name it (format= in Python, --format on the command line), one of: {', '.join(names())}.",
    )
