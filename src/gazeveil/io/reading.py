""":func:`read`: a file or a folder of recordings as a cohort."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.gaze.cohort import Attributes, Cohort, Handle, Skipped, natural
from gazeveil.gaze.recording import Recording
from gazeveil.io.registry import WITHOUT_READER, Format, get, names, sniff
from gazeveil.io.source import Head

#: Options `read` itself understands; the others go to the format.
COMMON_OPTIONS = frozenset({"people", "clash"})

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
    ]
)


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
        Options of the format; and `people`, a mapping or a CSV/TSV file of attributes, and
        `clash="error" | "session"`: what to do with two recordings of one person, stimulus, session
        and task ("session" numbers them).

    Raises
    ------
    FormatError
        Nothing there, or nothing readable; the message names the file and the remedy.
    """
    place = Path(path)
    if not place.exists():
        raise FormatError(place, "there is no such file or folder", "Check the path.")
    if isinstance(format, str) and format in WITHOUT_READER:
        raise FormatError(place, *WITHOUT_READER[format])
    common = {k: options.pop(k) for k in COMMON_OPTIONS & options.keys()}
    clash = checks.one_of("read", "clash", common.get("clash", "error"), ("error", "session"))
    chosen = get(format) if isinstance(format, str) else format
    if place.is_dir():
        chosen, handles, skipped = _scan_folder(place, chosen, options)
    else:
        chosen = chosen or sniff(place)
        if chosen is None:
            raise _unknown(place)
        checks.known_options(f"Format {chosen.name}", options, chosen.options)
        handles, skipped = list(chosen.scan(place, place.parent, **options)), []
    root = place if place.is_dir() else place.parent
    files = dict.fromkeys(Path(h.source) for h in handles if h.source)
    people: dict[str, Attributes] = (
        dict(chosen.people(root, files)) if chosen.people is not None else {}
    )
    recorded = {h.person for h in handles}
    handles = [replace(h, load=partial(_load_named, h.load, h.source)) for h in handles]
    people = {p: a for p, a in people.items() if p in recorded}
    if common.get("people") is not None:
        people = {**people, **_people(common["people"], recorded)}
    if clash == "session":
        handles = _number_sessions(handles)
    return Cohort(handles, people, skipped, name=place.stem if place.is_file() else place.name)


def _scan_folder(
    folder: Path, chosen: Format | None, options: Mapping[str, object]
) -> tuple[Format, list[Handle], list[Skipped]]:
    """The format of a folder, its recordings, and what is left out."""
    owner = _sniffed(folder, chosen)
    if owner is not None:
        checks.known_options(f"Format {owner.name}", options, owner.options)
        handles = list(owner.scan(folder, folder, **options))
        return owner, handles, _foreign(owner, folder)
    candidates, skipped = _candidates(folder, chosen)
    votes = Counter(f.name for _, f in candidates if f is not None)
    if not votes:
        raise _nothing_found(folder, chosen, [p for p, _ in candidates])
    most = votes.most_common(1)[0][0]
    main = next(f for _, f in candidates if f is not None and f.name == most)
    checks.known_options(f"Format {main.name}", options, main.options)
    handles = []
    for place, of_place in candidates:
        if of_place is None or of_place.name != main.name:
            skipped.append(Skipped(str(place), _why_not(place, main, of_place)))
        else:
            handles += main.scan(place, folder, **options)
            skipped += _foreign(main, place) if place.is_dir() else []
    return main, handles, skipped


def _foreign(owner: Format, folder: Path) -> list[Skipped]:
    """Files of a folder that a format owns and that are no part of it."""
    places = () if owner.foreign_files is None else owner.foreign_files(folder)
    return [Skipped(str(place), f"not part of the {owner.name} folder") for place in places]


def _sniffed(place: Path, chosen: Format | None) -> Format | None:
    """The format of a file or folder: the chosen one, or any where none is chosen."""
    if chosen is None:
        return sniff(place)
    return chosen if chosen.knows(place) else None


def _candidates(
    folder: Path, chosen: Format | None
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
        of_place = _sniffed(place, chosen)
        if not place.is_dir():
            candidates.append((place, of_place))
        elif of_place is not None:
            owned.append(place)
            candidates.append((place, of_place))
    return candidates, skipped


def _nothing_found(folder: Path, chosen: Format | None, files: list[Path]) -> FormatError:
    # A folder of EDF files or archives gets the sentence that one of them would get.
    unread = next((p for p in files if _remedy(p)), None)
    if chosen is None or (chosen.dataset is None and unread is not None):
        return _unknown(unread or folder)
    remedy = (
        "Check the path and the format name."
        if chosen.dataset is None
        else f"Expected layout of {chosen.dataset.title}: {chosen.dataset.layout}."
    )
    return FormatError(folder, f"no file here looks like {chosen.name}", remedy)


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


def _why_not(place: Path, main: Format, of_place: Format | None) -> str:
    """Why a file is no part of the cohort."""
    if of_place is not None:
        return f"not {main.name} but {of_place.name}"
    if place.is_file() and place.stat().st_size == 0:
        return "the file is empty"
    remedy = _remedy(place)
    return f"{remedy[0]}: {remedy[1]}" if remedy else f"not {main.name}"


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
            "Convert it with SR Research's edf2asc, then read the .asc file it writes.",
        )
    if head.data.startswith(
        (b"PK\x03\x04", b"7z\xbc\xaf", b"Rar!", b"BZh", b"\xfd7zXZ")
    ) or head.name.endswith((".tar", ".tgz")):
        return "it is an archive of another kind than gzip", "Unpack it and read the files in it."
    return None


def _unknown(place: Path) -> FormatError:
    if place.is_dir():
        return FormatError(
            place,
            "no file in this folder looks like a known recording",
            "See `gazeveil datasets` for the layouts, or name one (format= in Python, --format on"
            " the command line).",
        )
    if place.stat().st_size == 0:
        return FormatError(
            place, "the file is empty", "Copy it again from the tracker or the archive."
        )
    remedy = _remedy(place)
    if remedy is not None:
        return FormatError(place, *remedy)
    return FormatError(
        place,
        "its format is not known",
        f"Name it (format= in Python, --format on the command line), one of: {', '.join(names())}.",
    )


def _people(people: object, recorded: set[str]) -> dict[str, Attributes]:
    """The `people` option as a table."""
    if isinstance(people, Mapping):
        allowed = "a mapping of person to a mapping of attributes, or a CSV/TSV file"
        for attributes in people.values():
            if not isinstance(attributes, Mapping):
                checks.refuse("read", "people", allowed, attributes)
        return {str(p): dict(a) for p, a in people.items()}
    if isinstance(people, str | os.PathLike):
        # Only here: tables of people need polars.
        from gazeveil.io.people import read_people

        return {p: a for p, a in read_people(Path(people)).items() if p in recorded}
    raise ParameterError(
        f"The 'people' option of read must be a mapping or a CSV/TSV file. Got {people!r} instead.",
        name="people",
        got=people,
    )


def _number_sessions(handles: list[Handle]) -> list[Handle]:
    """Give recordings that clash the sessions 1, 2, ... in the order they were found."""
    totals = Counter(h.key for h in handles)
    used: Counter[tuple[str, str, str, str]] = Counter()
    result = []
    for h in handles:
        if totals[h.key] > 1:
            used[h.key] += 1
            session = f"{h.session}.{used[h.key]}"
            h = replace(h, session=session, load=partial(_load_with_session, h.load, session))
        result.append(h)
    return result


def _load_named(load: Callable[[], Recording], source: str) -> Recording:
    """Load, and let every error name the file: what a recording refuses does not know where it came
    from.
    """
    try:
        return load()
    except FormatError:
        raise
    except (DataError, ParameterError) as error:
        raise FormatError(
            source, str(error).rstrip("."), "Mend the file or leave it out."
        ) from error


def _load_with_session(load: Callable[[], Recording], session: str) -> Recording:
    return load().with_(session=session)
