"""The files of a release against the hashes of its certificate, the page against the certificate,
and the certificate against its signature.

What a release shows that is one file: the names and counts of a feature table, of heat maps or
of a table of people.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gazeveil import __version__
from gazeveil.errors import GazeveilError
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.recording import KEY_NAMES
from gazeveil.privacy.publication.certificate import (
    JSON_NAME,
    PAGE_NAME,
    SIGNATURE_NAME,
    beside,
    signer,
)
from gazeveil.privacy.publication.page import digest, page
from gazeveil.privacy.rational import exact

Certificate = Mapping[str, object]


@dataclass(frozen=True)
class VerifyCheck:
    """One question about a release, and the answer: what is wrong, one sentence each, or a note on
    what was seen, or why the question could not be asked.
    """

    name: str
    failures: tuple[str, ...] = ()
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failures


@dataclass(frozen=True)
class VerifiedRelease:
    """All answers, in the order they were asked."""

    checks: tuple[VerifyCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """All that is wrong."""
        return tuple(f for check in self.checks for f in check.failures)

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "passed": self.passed,
            "checks": [
                {"name": c.name, "passed": c.passed, "failures": list(c.failures), "note": c.note}
                for c in self.checks
            ],
        }


def check_files(
    hashes: Mapping[str, Mapping[str, object]], certificate: Certificate
) -> VerifyCheck:
    """Every listed file is there, unchanged, and no other is; `hashes` are those of those that
    are there.
    """
    listed = certificate.get("files")
    if not isinstance(listed, Mapping):
        return VerifyCheck("files", (f"{JSON_NAME} lists no files.",))
    failures = [f"{name} is missing." for name in sorted(listed.keys() - hashes.keys())]
    failures += [f"{name} is not in the certificate." for name in sorted(hashes.keys() - listed)]
    failures += [
        f"{name} was changed: its SHA-256 is not the one of the certificate."
        for name in sorted(hashes.keys() & listed.keys())
        if hashes[name] != listed[name]
    ]
    return VerifyCheck("files", tuple(failures), f"{len(hashes)} files, each with its hash")


def check_page(folder: Path, certificate: Certificate) -> VerifyCheck:
    """The page says what the certificate says.

    A page of this version is made again and compared. Another version may word it otherwise; its
    page must hold the hash of the statement.
    """
    try:
        written = beside(folder, PAGE_NAME).read_bytes()
        expected = page(certificate).encode("utf-8")
        version = certificate["versions"]["gazeveil"]  # type: ignore[index]
    except FileNotFoundError:
        return VerifyCheck("page", (f"{PAGE_NAME} is missing.",))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return VerifyCheck("page", (f"{JSON_NAME} is not whole: no page can be made from it.",))
    other = version != __version__
    if digest(certificate).encode() not in written or (written != expected and not other):
        failure = f"{PAGE_NAME} and {JSON_NAME} differ: one of them was edited."
        return VerifyCheck("page", (failure,))
    if other:
        note = f"{PAGE_NAME} is of version {version} and holds the hash of what {JSON_NAME} says"
        return VerifyCheck("page", note=note)
    return VerifyCheck("page", note=f"{PAGE_NAME} says what {JSON_NAME} says")


def check_signature(folder: Path, key: str | None) -> VerifyCheck:
    """The certificate is signed, and by the pinned key where one is given."""
    file = beside(folder, SIGNATURE_NAME)
    if not file.is_file():
        if key is None:
            return VerifyCheck("signature", note="not signed")
        return VerifyCheck("signature", (f"{SIGNATURE_NAME} is missing, and a key was given.",))
    try:
        signature = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        signature = None
    public = (
        signer(signature, beside(folder, JSON_NAME).read_bytes())
        if isinstance(signature, Mapping)
        else None
    )
    if public is None:
        failure = f"{SIGNATURE_NAME} does not fit {JSON_NAME}: one of them was changed."
        return VerifyCheck("signature", (failure,))
    if key is None:
        note = f"signed by {public}; pin the key you trust with --key"
        return VerifyCheck("signature", note=note)
    if public != key:
        return VerifyCheck("signature", (f"signed by {public}, not by the given key {key}.",))
    return VerifyCheck("signature", note=f"signed by the given key {public}")


_SUFFIXES = (".parquet", ".csv", ".tsv")

#: What the file is called in a folder, by the kind of its mechanism.
_STEMS = {"table": "features", "map": "maps"}


@dataclass(frozen=True)
class ReleasedFile:
    """The one file of a release.

    Parameters
    ----------
    counts : mapping of str to int
        What a certificate may count of it.
    people, stimuli : frozenset of str
        Names in it.
    table : FeatureTable, optional
        Where it is one.
    smallest_group : int, optional
        How few people share a row of a table of people.
    """

    counts: Mapping[str, int]
    people: frozenset[str] = frozenset()
    stimuli: frozenset[str] = frozenset()
    table: FeatureTable | None = field(default=None, repr=False)
    smallest_group: int | None = None


def released_file(place: Path, kind: str) -> tuple[ReleasedFile | None, str]:
    """What the file of a release shows, or why it cannot be read.

    Parameters
    ----------
    place : Path
        The file, or the folder that holds it.
    kind : {"table", "map", "people"}
        Of the mechanism that made it.
    """
    paths = [place]
    if place.is_dir():
        named = sorted(place.glob(f"{_STEMS.get(kind, '*')}.*"))
        paths = [p for p in named if p.suffix in _SUFFIXES]
    if len(paths) != 1:
        return None, f"The release must hold one table, and has {len(paths)}."
    try:
        return _shown(paths[0], kind), ""
    except (GazeveilError, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as e:
        return None, f"{paths[0].name} cannot be read: {(str(e).splitlines() or [''])[0]}"


def _shown(path: Path, kind: str) -> ReleasedFile:
    if kind == "table":
        table = FeatureTable.read(path)
        columns = [table.keys[n].astype(str).tolist() for n in KEY_NAMES]
        recordings = set(zip(*columns, strict=True))
        people, stimuli = frozenset(columns[0]), frozenset(columns[1])
        counts = {
            "people": len(people),
            "recordings": len(recordings),
            "stimuli": len(stimuli),
            "rows": len(columns[0]),
        }
        return ReleasedFile(counts, people, stimuli, table)
    frame = _frame(path)
    if kind == "map":
        stimuli = frozenset(str(v) for v in frame["stimulus"])
        return ReleasedFile({"stimuli": len(stimuli)}, stimuli=stimuli)
    people = frozenset(str(v) for v in frame["person"])
    groups = Counter(frame.drop("person").rows())
    return ReleasedFile(
        {"people": frame.height}, people, smallest_group=min(groups.values(), default=0)
    )


def _frame(path: Path) -> pl.DataFrame:
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    separator = "\t" if path.suffix == ".tsv" else ","
    return pl.read_csv(path, separator=separator, infer_schema=False)


def check_file_contents(
    certificate: Mapping[str, Any], file: ReleasedFile | None, unread: str = ""
) -> VerifyCheck:
    """Counts are those that the certificate states, and it states no others. `unread` says why the
    file could not be read, where it could not.
    """
    if file is None:
        return VerifyCheck("contents", (unread,))
    stated = {k: v for k, v in certificate.get("contents", {}).items() if k != "format"}
    failures = [
        f"The certificate counts {stated.get(name)} {name}, and there are {count}."
        for name, count in file.counts.items()
        if stated.get(name) != count
    ]
    failures += [
        f"The certificate counts {stated[name]} {name}, which the file does not show."
        for name in stated
        if name not in file.counts
    ]
    if file.smallest_group is not None and certificate["guarantee"]["status"] != "refuted":
        k = exact("certificate", "k", str(certificate["guarantee"]["numbers"]["k"]))
        if file.smallest_group < k:
            failures.append(
                f"Only {file.smallest_group} of the people share a row, and {k} are promised."
            )
    return VerifyCheck("contents", tuple(failures), "counts fit")
