"""Formats by name or by sniffing, and :func:`read`.

A reader is a module of `gazeveil.io` (vendors) or `gazeveil.io.datasets` (public datasets) with one
`FORMAT`. Its `scan` turns a file, or a folder for formats that own one, into handles without
loading samples; its `sniff` answers from the path and the first bytes whether a file is its own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.gaze.cohort import Attributes, Cohort, Handle, Skipped, natural
from gazeveil.gaze.recording import Recording
from gazeveil.io.source import Head
from gazeveil.registry import Registry

#: Format name -> module. Sniffing asks in this order, so the particular comes before the general.
MODULES: dict[str, str] = {
    "parquet": "parquet",
    "bids": "bids.read",
    "360-em": "datasets.em360",
    "gazecom": "datasets.gazecom",
    "eyenavgs": "datasets.eyenavgs",
    "gazebase-vr": "datasets.gazebase_vr",
    "gazebase": "datasets.gazebase",
    "et-dk2": "datasets.et_dk2",
    "vr-saliency": "datasets.vr_saliency",
    "vr-eyetracking": "datasets.vr_eyetracking",
    "dgaze": "datasets.dgaze",
    "ehtask": "datasets.ehtask",
    "mpiidpeye": "datasets.mpiidpeye",
    "mpiiprivaceye": "datasets.mpiiprivaceye",
    "openneeds": "datasets.openneeds",
    "salient360": "datasets.salient360",
    "osie": "datasets.osie",
    "webqamgaze": "datasets.webqamgaze",
    "neuroliaa": "datasets.neuroliaa",
    "irf": "datasets.irf",
    "hmr": "datasets.hmr",
    "cateyes": "datasets.cateyes",
    "eyelink-asc": "vendors.eyelink.asc",
    "tobii-glasses3": "vendors.tobii.glasses3",
    "tobii-tx300": "vendors.tobii.tx300",
    "tobii-tsv": "vendors.tobii.tsv",
    "pupil-neon": "vendors.pupil.neon",
    "pupil-invisible": "vendors.pupil.invisible",
    "pupil-core": "vendors.pupil.core",
    "smi": "vendors.smi",
    "vive-pro-eye": "vendors.vive_pro_eye",
    "pico": "vendors.pico",
    "unity-hmd": "vendors.unity_hmd",
    "arff": "vendors.arff",
    "csv": "csv",
}

#: Options `read` itself understands; the others go to the format.
COMMON_OPTIONS = frozenset({"people", "clash"})

# Files that belong to a folder of recordings without being one.
_NOT_DATA = frozenset(
    {
        "readme",
        "readme.md",
        "readme.txt",
        "license",
        "license.txt",
        "license.md",
        "citation.cff",
        ".ds_store",
        "thumbs.db",
    }
)


@dataclass(frozen=True)
class Dataset:
    """What `gazeveil datasets` tells about a public dataset."""

    title: str
    publisher: str
    licence: str
    citation: str
    layout: str


@dataclass(frozen=True)
class Format:
    """One file format or dataset layout.

    Parameters
    ----------
    name : str
        As in `read(path, format=name)`.
    title : str
        One line for listings.
    sniff : callable
        `sniff(head) -> bool` for a file; see :class:`gazeveil.io.source.Head`.
    scan : callable
        `scan(path, root, **options) -> iterable of Handle`; `root` is the folder that was asked for
        (or the file's parent).
    options : frozenset of str
        Names of the options `scan` takes.
    sniff_folder : callable, optional
        `sniff_folder(folder) -> bool` for formats that own a whole folder; `scan` then gets the
        folder.
    dataset : Dataset, optional
        For public datasets.
    people : callable, optional
        `people(root, files) -> mapping of person to attributes`, from a participants file beside
        the recordings or from the recordings' own files.
    foreign_files : callable, optional
        `foreign_files(folder) -> iterable of files` that lie in a folder the format owns but are no
        part of it.
    sample : callable, optional
        `sample(folder) -> path`: writes a small file or folder of this format, for
        `gazeveil check`.
    """

    name: str
    title: str
    sniff: Callable[[Head], bool]
    scan: Callable[..., Iterable[Handle]]
    options: frozenset[str] = frozenset()
    sniff_folder: Callable[[Path], bool] | None = None
    dataset: Dataset | None = None
    people: Callable[[Path, Iterable[Path]], Mapping[str, Attributes]] | None = field(default=None)
    foreign_files: Callable[[Path], Iterable[Path]] | None = field(default=None)
    sample: Callable[[Path], Path] | None = field(default=None)


REGISTRY: Registry[Format] = Registry(
    "format",
    "gazeveil.io",
    {name: (module, "FORMAT") for name, module in MODULES.items()},
    lambda value: isinstance(value, Format),
    "a gazeveil.io.registry.Format",
    groups=("gazeveil.formats", "gazeveil.datasets"),
    owner="read",
    parameter="format",
)


def names() -> tuple[str, ...]:
    """All format names, sorted."""
    return REGISTRY.names()


def get(name: str) -> Format:
    """The format of that name."""
    return REGISTRY.get(name)


def in_sniffing_order() -> Iterator[Format]:
    """All formats: ours, those of other packages, and plain CSV, which takes what is left."""
    for name in MODULES:
        if name == "csv":
            yield from REGISTRY.added().values()
        yield get(name)


def sniff(path: Path) -> Format | None:
    """The first format that knows this file or folder, or None."""
    if path.is_dir():
        return next(
            (f for f in in_sniffing_order() if f.sniff_folder is not None and f.sniff_folder(path)),
            None,
        )
    head = Head.of(path)
    return next((f for f in in_sniffing_order() if f.sniff(head)), None)


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
    seen = {h.person for h in handles}
    handles = [replace(h, load=partial(_load_named, h.load, h.source)) for h in handles]
    people = {p: a for p, a in people.items() if p in seen}
    if common.get("people") is not None:
        people = {**people, **_people(common["people"], seen)}
    if clash == "session":
        handles = _number_sessions(handles)
    return Cohort(handles, people, skipped, name=place.stem if place.is_file() else place.name)


def _scan_folder(
    folder: Path, chosen: Format | None, options: Mapping[str, object]
) -> tuple[Format, list[Handle], list[Skipped]]:
    whole = (
        chosen
        if chosen is not None and chosen.sniff_folder is not None and chosen.sniff_folder(folder)
        else None
    )
    if chosen is None:
        whole = sniff(folder)
    if whole is not None:
        checks.known_options(f"Format {whole.name}", options, whole.options)
        handles = list(whole.scan(folder, folder, **options))
        others = () if whole.foreign_files is None else whole.foreign_files(folder)
        return (
            whole,
            handles,
            [Skipped(str(p), f"not part of the {whole.name} folder") for p in others],
        )
    skipped: list[Skipped] = []
    candidates: list[tuple[Path, Format | None]] = []
    owned: list[Path] = []
    # Folders that are one recording each (Glasses 3, Pupil exports) are taken whole, files one by
    # one.
    for place, refused in sorted(
        _walk(folder), key=lambda p: natural(p[0].relative_to(folder).as_posix())
    ):
        if any(o in place.parents for o in owned):
            continue
        if refused:
            skipped.append(Skipped(str(place), refused))
            continue
        if place.is_dir():
            found = (
                sniff(place)
                if chosen is None
                else (
                    chosen
                    if chosen.sniff_folder is not None and chosen.sniff_folder(place)
                    else None
                )
            )
            if found is not None:
                owned.append(place)
                candidates.append((place, found))
            continue
        if place.name.lower() in _NOT_DATA:
            skipped.append(Skipped(str(place), "not a recording"))
        elif chosen is None:
            candidates.append((place, sniff(place)))
        else:
            candidates.append((place, chosen if chosen.sniff(Head.of(place)) else None))
    votes = Counter(f.name for _, f in candidates if f is not None)
    if not votes:
        # A folder of EDF files or archives gets the sentence that one of them would get.
        unread = next((p for p, _ in candidates if _remedy(p)), None)
        if chosen is None or (chosen.dataset is None and unread is not None):
            raise _unknown(unread or folder)
        # A dataset whose layout is not public says so here.
        remedy = (
            "Check the path and the format name."
            if chosen.dataset is None
            else f"Expected layout of {chosen.dataset.title}: {chosen.dataset.layout}."
        )
        raise FormatError(folder, f"no file here looks like {chosen.name}", remedy)
    most = votes.most_common(1)[0][0]
    main = next(f for _, f in candidates if f is not None and f.name == most)
    checks.known_options(f"Format {main.name}", options, main.options)
    handles = []
    for place, found in candidates:
        if found is None or found.name != main.name:
            skipped.append(Skipped(str(place), _why_not(place, main, found)))
        else:
            handles += main.scan(place, folder, **options)
    return main, handles, skipped


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Everything in a folder, with the reason for what is not looked at; links to folders are
    followed, each folder once.
    """
    visited = {os.path.realpath(folder)}
    top = os.path.realpath(folder)
    pending = [folder]
    while pending:
        here = pending.pop()
        try:
            entries = list(here.iterdir())
        except OSError as error:
            raise FormatError(
                here, f"the folder cannot be opened ({error.strerror})", "Check the permissions."
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
                yield (
                    place,
                    ("a link that leads nowhere" if place.is_symlink() else "not a regular file"),
                )


def _why_not(place: Path, main: Format, found: Format | None) -> str:
    """Why a file is no part of the cohort."""
    if found is not None:
        return f"not {main.name} but {found.name}"
    if place.is_file() and place.stat().st_size == 0:
        return "the file is empty"
    known = _remedy(place)
    return f"{known[0]}: {known[1]}" if known else f"not {main.name}"


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
    known = _remedy(place)
    if known is not None:
        return FormatError(place, *known)
    return FormatError(
        place,
        "its format is not known",
        "Name it (format= in Python, --format on the command line), one of: "
        + ", ".join(names())
        + ".",
    )


def _people(given: object, seen: set[str]) -> dict[str, Attributes]:
    if isinstance(given, Mapping):
        for attributes in given.values():
            if not isinstance(attributes, Mapping):
                checks.refuse(
                    "read",
                    "people",
                    "a mapping of person to a mapping of attributes, or a CSV/TSV file",
                    attributes,
                )
        return {str(p): dict(a) for p, a in given.items()}
    if isinstance(given, str | os.PathLike):
        found = import_module("gazeveil.io.people").read_people(Path(given))
        return {p: a for p, a in found.items() if p in seen}
    raise ParameterError(
        f"The 'people' option of read must be a mapping or a CSV/TSV file. Got {given!r} instead.",
        name="people",
        got=given,
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
