"""Formats by name or by sniffing.

A reader is a module of `gazeveil.io` (vendors) or `gazeveil.io.datasets` (public datasets) with one
`FORMAT`. Its `scan` turns a file, or a folder for formats that own one, into handles without
loading samples; its `sniff` answers from the path and the first bytes whether a file is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gazeveil.gaze.cohort import Attributes, Handle
from gazeveil.gaze.facts import Doubt
from gazeveil.io.source import Head
from gazeveil.registry import Registry

#: Format name -> module, and the name of its format where that is not `FORMAT`. Sniffing asks in
#: this order, so the particular comes before the general.
MODULES: dict[str, str] = {
    "parquet": "parquet",
    "bids": "bids.read",
    "360-em": "datasets.em360",
    "gazecom": "datasets.gazecom",
    "eyenavgs": "datasets.eyenavgs",
    "gazebase-vr": "datasets.gazebase:VR_FORMAT",
    "gazebase": "datasets.gazebase",
    "et-dk2": "datasets.et_dk2",
    "vr-eyetracking": "datasets.vr_eyetracking",
    "dgaze": "datasets.dgaze",
    "ehtask": "datasets.ehtask",
    "mpiidpeye": "datasets.mpiidpeye",
    "mpiiprivaceye": "datasets.mpiiprivaceye",
    "salient360": "datasets.salient360",
    "osie": "datasets.osie",
    "webqamgaze": "datasets.webqamgaze",
    "neuroliaa": "datasets.neuroliaa",
    "irf": "datasets.irf",
    "lund2013": "datasets.lund2013",
    "eyelink-asc": "vendors.eyelink.asc",
    "eyelink-edf": "vendors.eyelink.edf",
    "tobii-glasses2": "vendors.tobii.glasses2",
    "tobii-glasses3": "vendors.tobii.glasses3",
    "tobii-sdk": "vendors.tobii.sdk",
    "tobii-tsv": "vendors.tobii.tsv",
    "pupil-neon-native": "vendors.pupil.neon_native",
    "pupil-neon": "vendors.pupil.cloud:NEON_FORMAT",
    "pupil-invisible": "vendors.pupil.cloud:INVISIBLE_FORMAT",
    "pupil-core": "vendors.pupil.core",
    "smi": "vendors.smi",
    "vive-pro-eye": "vendors.vive_pro_eye",
    "pico": "vendors.pico",
    "unity-hmd": "vendors.unity_hmd",
    "gazepoint": "vendors.gazepoint",
    "arff": "vendors.arff",
    "csv": "plain.reader",
}

#: Formats whose files have one first word or one name, and those that own folders: no other file or
#: folder can be theirs, so that their readers are not imported to be asked.
_ONLY: dict[str, bytes | tuple[str, ...]] = {
    "parquet": b"PAR1",
    "eyelink-edf": b"SR_RESEARCH",
    **dict.fromkeys(("dgaze", "ehtask", "irf"), b"\x93NUMPY"),
    **dict.fromkeys(("360-em", "gazecom", "arff"), (".arff",)),
    **dict.fromkeys(("osie", "lund2013"), (".mat",)),
    **dict.fromkeys(("webqamgaze", "neuroliaa"), (".json",)),
    **dict.fromkeys(("pupil-neon", "pupil-invisible"), ("gaze.csv",)),
    "tobii-glasses2": ("livedata.json",),
    "tobii-glasses3": ("gazedata", "gazedata.json"),
    "pupil-neon-native": (),
}
_OWN_FOLDERS = (
    *("parquet", "bids", "lund2013", "tobii-glasses3"),
    *("pupil-neon-native", "pupil-neon", "pupil-invisible", "pupil-core"),
)

#: Tables of known layout, each a file of :mod:`gazeveil.io.known`.
KNOWN = (
    *("hmr", "cateyes", "vr-saliency"),
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
            yield from (get(known) for known in KNOWN)
            yield from REGISTRY.added().values()
        if _may_be(name, place):
            yield get(name)


def _may_be(name: str, place: Head | Path | None) -> bool:
    only = _ONLY.get(name)
    if isinstance(place, Path):
        return name in _OWN_FOLDERS
    if place is None or only is None:
        return True
    return place.data.startswith(only) if isinstance(only, bytes) else place.name.endswith(only)


def sniff(path: Path) -> Format | None:
    """The first format that knows this file or folder, or None."""
    head = None if path.is_dir() else Head.of(path)
    return next((f for f in in_sniffing_order(head or path) if f.knows(path, head)), None)
