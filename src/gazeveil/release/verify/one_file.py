"""What a release shows that is one file: the names and counts of a feature table, of heat maps or
of a table of people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from gazeveil.errors import GazeveilError
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.recording import KEY_NAMES
from gazeveil.privacy.rational import exact
from gazeveil.release.verify.files import VerifyCheck

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
    certificate: Mapping[str, Any], shown: ReleasedFile | None, unread: str = ""
) -> VerifyCheck:
    """Counts are those that the certificate states, and it states no others. `unread` says why the
    file could not be read, where it could not.
    """
    if shown is None:
        return VerifyCheck("contents", (unread,))
    stated = {k: v for k, v in certificate.get("contents", {}).items() if k != "format"}
    failures = [
        f"The certificate counts {stated.get(name)} {name}, and there are {count}."
        for name, count in shown.counts.items()
        if stated.get(name) != count
    ]
    failures += [
        f"The certificate counts {stated[name]} {name}, which the file does not show."
        for name in stated
        if name not in shown.counts
    ]
    if shown.smallest_group is not None and certificate["guarantee"]["status"] != "refuted":
        k = exact("certificate", "k", str(certificate["guarantee"]["numbers"]["k"]))
        if shown.smallest_group < k:
            failures.append(
                f"Only {shown.smallest_group} of the people share a row, and {k} are promised."
            )
    return VerifyCheck("contents", tuple(failures), "counts fit")
