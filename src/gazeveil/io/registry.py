"""Formats by name or by sniffing.

A reader is a module of `gazeveil.io` (vendors) or `gazeveil.io.datasets` (public datasets) with one
`FORMAT`. Its `scan` turns a file, or a folder for formats that own one, into handles without
loading samples; its `sniff` answers from the path and the first bytes whether a file is its own.

What `gazeveil list datasets` tells of each public dataset.

Rules by which files of a format are copied without identifiers; each format declares its own.

Rules are values: columns, keys and lines that stay, are shifted in time, get a label or go. What no
rule names goes. :mod:`gazeveil.release.scrub` walks over files and applies them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from gazeveil import checks
from gazeveil.gaze.cohort import Attributes, Handle
from gazeveil.gaze.recording import Doubt
from gazeveil.io.source import Head, key
from gazeveil.registry import Registry

_BRACKETS = re.compile(r"[\[(][^\])]*[\])]")


def bare(name: str) -> str:
    """A column name's key without what stands in brackets."""
    return key(_BRACKETS.sub("", name))


@dataclass(frozen=True)
class TableRules:
    """What happens to the columns of a table; each pattern fits the whole :func:`bare` name.

    Parameters
    ----------
    keep : str
        Measured numbers and words of the tracker.
    shift : str
        Times, which begin at zero.
    label : str
        Texts that get a label.
    event : str
        Texts that stay where they are among `words`, and else get a label.
    midpoint : str
        Places of the left and of the right eye.
    group : str
        Columns that tell recordings of one table apart: each has a clock that begins at zero.
    words : frozenset of str
        Words that may stay, in lower case.
    missing : str
        What stands for a value that is taken out.
    quoted : bool
        Whether cells may be quoted where the separator is not a comma.
    one_clock : bool
        Whether all times count by one clock, also those of files beside the table.
    whole : bool
        Whether columns that no pattern fits stay in place, emptied.
    """

    keep: str
    shift: str = ""
    label: str = ""
    event: str = ""
    midpoint: str = ""
    group: str = ""
    words: frozenset[str] = frozenset()
    missing: str = ""
    quoted: bool = False
    one_clock: bool = False
    whole: bool = False

    def action(self, name: str) -> str | None:
        """Name of the field whose pattern a column fits; None where it goes."""
        plain = bare(name)
        names = ("shift", "label", "event", "midpoint", "keep")
        found = (n for n in names if plain and re.fullmatch(getattr(self, n), plain))
        return next(found, "empty" if self.whole else None)


@dataclass(frozen=True)
class LineRules:
    """What happens to lines: the first pattern that fits a whole line decides.

    Groups called `shift`, `label`, `message` and `events` (with or without a number) are treated as
    their name says; the rest of the line stays, or `template` takes its place, with the groups by
    name. A line that no pattern fits goes.

    Parameters
    ----------
    rules : sequence of (pattern, template)
        An empty template keeps the line, None drops it.
    table : TableRules, optional
        For the lines behind the one that `begins` fits, unless a pattern fits them.
    begins : str
        The line of column names, or the last before the rows where `Scrub.names` gives them.
    """

    rules: Sequence[tuple[str, str | None]]
    table: TableRules | None = None
    begins: str = ""

    @cached_property
    def compiled(self) -> list[tuple[Callable[[str], re.Match[str] | None], str | None]]:
        """The rules, each pattern as a function that fits a whole line."""
        return [(re.compile(pattern).fullmatch, template) for pattern, template in self.rules]


@dataclass(frozen=True)
class DocumentRules:
    """What happens to the keys of a JSON document.

    Parameters
    ----------
    keys : mapping of str to treatment
        `keep` (numbers and harmless words), `numbers`, `label`, `shift`, `removed` (writes that
        word), `zero`, a set of words that may stay, or a mapping for an object; the key `*` stands
        for all other objects.
    lines : bool
        Whether each line is a document.
    need : tuple of str
        Keys without which a line goes.
    constants : mapping
        Entries that are written anew.
    """

    keys: Mapping[str, object]
    lines: bool = False
    need: tuple[str, ...] = ()
    constants: Mapping[str, object] = field(default_factory=dict)


Rule: TypeAlias = TableRules | LineRules | DocumentRules


@dataclass(frozen=True)
class Scrub:
    """How files of a format are copied.

    Parameters
    ----------
    rule : TableRules, LineRules or DocumentRules, optional
        For a file that is one recording, or several, by itself.
    files : mapping of pattern to rule
        For files of a folder that the format owns, by lower-case name without `.gz`. A group in the
        pattern is a part of the name that gets a label.
    anywhere : mapping of str to rule
        For files of such a name wherever they lie: they stand beside recordings.
    names : callable
        `names(file, root) -> column names` of a table that has no line of them; None of another.
    pattern : str
        How readers find people and stimuli in the path: its fields get labels of their own.
    entities : str
        Pattern of the parts of path names that get a label (group `label`) or stay where they are
        harmless (group `word`); without it every part gets one.
    aside : frozenset of str
        Folders below one that the format owns of which nothing is copied.
    run : str
        What is taken off the name of a file that shares its clock with those of the same rest.
    columns : mapping of role to name, optional
        For tables of the plain reader, of which the columns stay that have a role: how they are
        called in the copy where that is not their own name.
    instead : str
        Why files are not copied, and what to do instead.
    """

    rule: Rule | None = None
    files: Mapping[str, Rule] = field(default_factory=dict)
    anywhere: Mapping[str, Rule] = field(default_factory=dict)
    names: Callable[[Path, Path], Sequence[str] | None] = lambda file, root: None
    pattern: str = ""
    entities: str = ""
    aside: frozenset[str] = frozenset()
    run: str = ".*"
    columns: Mapping[str, str] | None = None
    instead: str = ""


_AS_CSV = "read it, write it with `Cohort.write` or as CSV, and scrub that, or use `publish`"
#: Formats whose files are not copied.
PUBLISHED = Scrub(instead="it is of a public dataset, which is published already: cite it")
NUMPY = Scrub(instead=f"NumPy files are binary: {_AS_CSV}")
MATLAB = Scrub(instead=f"MATLAB files are binary: {_AS_CSV}")


#: Format name -> module, and the name of its format where that is not `FORMAT`. Sniffing asks in
#: this order, so the particular comes before the general.
MODULES: dict[str, str] = {
    "parquet": "parquet",
    "bids": "bids.read",
    "360-em": "vendors.arff:EM360",
    "gazecom": "vendors.arff:GAZECOM",
    "eyenavgs": "datasets.headsets:EYENAVGS",
    "et-dk2": "datasets.headsets:ET_DK2",
    "vr-eyetracking": "datasets.headsets:VR_EYETRACKING",
    "dgaze": "datasets.arrays:DGAZE",
    "ehtask": "datasets.arrays:EHTASK",
    "mpiidpeye": "datasets.mpii:DPEYE",
    "mpiiprivaceye": "datasets.mpii:PRIVACEYE",
    "salient360": "datasets.scanpaths:SALIENT360",
    "osie": "datasets.scanpaths:OSIE",
    "webqamgaze": "datasets.webqamgaze",
    "neuroliaa": "datasets.scanpaths:NEUROLIAA",
    "irf": "datasets.arrays:IRF",
    "lund2013": "datasets.arrays:LUND2013",
    "eyelink-asc": "vendors.eyelink.asc",
    "eyelink-edf": "vendors.eyelink.edf",
    "tobii-glasses2": "vendors.tobii_devices:GLASSES2",
    "tobii-glasses3": "vendors.tobii_devices:GLASSES3",
    "tobii-sdk": "vendors.tobii_devices",
    "tobii-tsv": "vendors.tobii_tsv",
    "pupil-neon-native": "vendors.neon_native",
    "pupil-neon": "vendors.pupil:NEON_FORMAT",
    "pupil-invisible": "vendors.pupil:INVISIBLE_FORMAT",
    "pupil-core": "vendors.pupil:CORE_FORMAT",
    "smi": "vendors.smi",
    "unity-hmd": "vendors.unity_hmd",
    "arff": "vendors.arff",
    "csv": "plain.reader",
}

Mark = Callable[[Head], bool]


def _begins(data: bytes) -> Mark:
    return lambda head: head.data.startswith(data)


def _ends(*suffixes: str) -> Mark:
    return lambda head: head.name.endswith(suffixes)


def _has(*columns: str) -> Mark:
    return lambda head: head.keys.issuperset(columns)


_COUNTED_ROW = re.compile(r"\W*(?:idx|index)\b|[-+]?\.?0", re.IGNORECASE)
_PERSON_AND_RECORDING = re.compile(r"p\d+_r\d+|pami_features|eye_tracking_data", re.IGNORECASE)

#: What every file of a format has: its reader is imported only to be asked about such a file. A
#: format without a mark is asked about every file.
_MARKS: dict[str, Mark] = {
    "parquet": _begins(b"PAR1"),
    "eyelink-edf": _begins(b"SR_RESEARCH"),
    **dict.fromkeys(("dgaze", "ehtask", "irf"), _begins(b"\x93NUMPY")),
    **dict.fromkeys(("360-em", "gazecom", "arff"), _ends(".arff")),
    **dict.fromkeys(("osie", "lund2013"), _ends(".mat")),
    **dict.fromkeys(("webqamgaze", "neuroliaa"), _ends(".json")),
    **dict.fromkeys(("pupil-neon", "pupil-invisible"), _ends("gaze.csv")),
    **dict.fromkeys(("bids", "pupil-neon-native"), lambda head: False),
    "eyenavgs": _has("viewindex"),
    "gazebase-vr": _has("n", "x", "y", "lx", "ly", "rx", "ry"),
    "gazebase": _has("n", "x", "y", "val"),
    "et-dk2": _has("imgindex", "isgray"),
    "vr-eyetracking": lambda head: head.first.lstrip().startswith("frame"),
    **dict.fromkeys(
        ("mpiidpeye", "mpiiprivaceye"),
        lambda head: _PERSON_AND_RECORDING.search(str(head.path)) is not None,
    ),
    "salient360": lambda head: _COUNTED_ROW.match(head.text.lstrip()) is not None,
    "eyelink-asc": lambda head: head.name.endswith(".asc") or "CONVERTED FROM" in head.text,
    "tobii-glasses2": _ends("livedata.json"),
    "tobii-glasses3": _ends("gazedata", "gazedata.json"),
    "tobii-sdk": lambda head: (
        not head.keys.isdisjoint(("devicetimestamp", "systemtimestamp", "lgazepos2dx"))
    ),
    "tobii-tsv": lambda head: any("recordingtimestamp" in k for k in head.keys),
    "pupil-core": _ends("gaze_positions.csv"),
    "smi": lambda head: head.text.lstrip().startswith("##"),
    "vive-pro-eye": _has("eyevalidl", "time100ns"),
    "pico": _has("timeline", "combineeyegazevectorx"),
    "unity-hmd": lambda head: not head.keys.isdisjoint(("oculots", "ocutimestamp", "ettimestamp")),
    "gazepoint": _has("bpogx", "bpogy", "bpogv"),
    "iohub": _begins(b"\x89HDF"),
    "xdf": _begins(b"XDF:"),
    "hmr": _has("xcoord", "ycoord"),
    "cateyes": _has("theta", "phi"),
    "vr-saliency": _has("gazelat", "gazelon"),
    "eyelink-report": _has("recordingsessionlabel", "trialindex"),
    "gorilla": _has("xpred", "ypred"),
    "jspsych": _has("webgazerdata"),
    "varjo": _has("rawtimestamp", "gazeforwardx"),
    "csv": lambda head: bool(head.keys),
}
#: A file that lies in every folder that a format owns.
_IN_FOLDER = {
    "parquet": "cohort.json",
    "bids": "dataset_description.json",
    "lund2013": "*_labelled_*.mat*",
    "tobii-glasses3": "gazedata*",
    "pupil-neon-native": "info.json",
    **dict.fromkeys(("pupil-neon", "pupil-invisible"), "gaze.csv*"),
    "pupil-core": "gaze_positions.csv*",
}

#: Tables of known layout, each a file of :mod:`gazeveil.io.known`.
KNOWN = (
    *("gazebase-vr", "gazebase", "vive-pro-eye", "pico", "gazepoint", "hmr", "cateyes"),
    "vr-saliency",
    *("eyelink-report", "gorilla", "jspsych", "iohub", "xdf", "varjo"),
)

#: Datasets that are listed but cannot be read -> why, and what to do.
WITHOUT_READER: dict[str, tuple[str, str]] = {
    "openneeds": (
        "the file layout of OpenNEEDS is not public",
        "Write the recordings as CSV and read them as csv (format= in Python, --format on the"
        " command line).",
    )
}


@dataclass(frozen=True)
class Guess:
    """Options that a format guessed, and the sentences that say so."""

    options: Mapping[str, object] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """What `gazeveil list datasets` tells about a public dataset."""

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
    companion : callable, optional
        `companion(file) -> bool`: whether a file lies beside recordings and is read with them, as a
        table of frame times is; it is no recording and is not reported as left out.
    why_not : callable, optional
        `why_not(head, options, guessing) -> str`: why a file is not of this format under these
        options, empty where it is; for formats whose columns are said or guessed.
    complete : callable, optional
        `complete(files, options)`: options that were not said and can be guessed, as a value with
        `options` and `sentences`.
    describe : callable, optional
        `describe(file, options)`: the options in full, with what the file's own names say.
    doubts : callable, optional
        `doubts(file, options) -> iterable of Doubt`: what of the file's layout is open to doubt.
    scrub : Scrub, optional
        How files are copied without identifiers; without it they are not.
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
    companion: Callable[[Path], bool] | None = field(default=None)
    sample: Callable[[Path], Path] | None = field(default=None)
    why_not: Callable[[Head, Mapping[str, object], bool], str] | None = field(default=None)
    complete: Callable[[Sequence[Path], Mapping[str, object]], Guess] | None = field(default=None)
    describe: Callable[[Path, Mapping[str, object]], Mapping[str, object]] | None = field(
        default=None
    )
    doubts: Callable[[Path, Mapping[str, object]], Iterable[Doubt]] | None = field(default=None)
    scrub: Scrub | None = None

    def knows(self, path: Path, head: Head | None = None) -> bool:
        """Whether a file, or a folder that is one recording or dataset, is of this format."""
        if path.is_dir():
            return self.sniff_folder is not None and self.sniff_folder(path)
        return self.sniff(head or Head.of(path))


REGISTRY: Registry[Format] = Registry(
    "format",
    "gazeveil.io",
    {
        **{
            name: (where.partition(":")[0], where.partition(":")[2] or "FORMAT")
            for name, where in MODULES.items()
        },
        **{name: ("known", name) for name in KNOWN},
    },
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


def in_sniffing_order(place: Head | Path | None = None) -> Iterator[Format]:
    """All formats that a file, or a folder, may be of: ours, those of other packages, and plain
    CSV, which takes what is left.
    """
    for name in MODULES:
        if name == "csv":
            yield from (get(known) for known in KNOWN if _may_be(known, place))
            yield from REGISTRY.added().values()
        if _may_be(name, place):
            yield get(name)


def _may_be(name: str, place: Head | Path | None) -> bool:
    if isinstance(place, Path):
        file = _IN_FOLDER.get(name)
        return file is not None and next(place.glob(file), None) is not None
    return place is None or name not in _MARKS or _MARKS[name](place)


def sniff(path: Path) -> Format | None:
    """The first format that knows this file or folder, or None."""
    head = None if path.is_dir() else Head.of(path)
    return next((f for f in in_sniffing_order(head or path) if f.knows(path, head)), None)


@dataclass(frozen=True)
class DatasetEntry:
    """One public dataset.

    Parameters
    ----------
    format : str
        Name for `read(path, format=...)`.
    title, publisher, licence, citation : str
        As the publisher says.
    layout : str
        Files and folders expected.
    options : tuple of str
        Options of `read` for this format.
    """

    format: str
    title: str
    publisher: str
    licence: str
    citation: str
    layout: str
    options: tuple[str, ...] = ()

    def text(self) -> str:
        """Some lines for reading."""
        lines = [f"{self.title} (format '{self.format}')"]
        lines += [
            f"  {name:<10} {getattr(self, name)}"
            for name in ("publisher", "licence", "citation", "layout")
        ]
        if self.options:
            lines.append(f"  {'options':<10} {', '.join(self.options)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


#: Listed so that who looks for it learns why it cannot be read.
_OPENNEEDS = DatasetEntry(
    format="openneeds",
    title="OpenNEEDS",
    publisher="Emery, Zannoli, Warren, Xiao, Talathi (Facebook Reality Labs)",
    licence="on request from the publisher",
    citation=(
        "Emery et al. 2021, OpenNEEDS: a dataset of gaze, head, hand, and scene signals during"
        " exploration in open-ended VR environments, ETRA"
    ),
    layout=(
        "not public, so there is no reader: write the recordings as CSV and read them with"
        " format='csv'"
    ),
)


def describe() -> list[DatasetEntry]:
    """All known public datasets, by format name."""
    return [entry(name) for name in _names()]


def _names() -> list[str]:
    """Formats of public datasets: ours by code or by a shipped description, and others' own."""
    return sorted([*(name for name in names() if get(name).dataset is not None), *WITHOUT_READER])


def entry(name: str) -> DatasetEntry:
    """One dataset.

    Raises
    ------
    ParameterError
        For a name that is not a dataset's.
    """
    if checks.one_of("datasets", "name", name, _names()) == _OPENNEEDS.format:
        return _OPENNEEDS
    form = get(name)
    assert form.dataset is not None
    # A shipped description says what its tables need.
    options = () if name in KNOWN else tuple(sorted(form.options))
    return DatasetEntry(form.name, **asdict(form.dataset), options=options)
