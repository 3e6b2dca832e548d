"""ET-DK2: 18 people look at 50 panoramas for 25 s each; SMI in an Oculus DK2, 60 Hz.

`S####.csv[.gz]`, one file per person with all images: the person is the file name, each `IMG_INDEX`
is one recording, and its name is taken from `img_index.csv` where that lies beside the files or one
folder above (a column of numbers and a column of names). Rows with `IS_GRAY` true show a grey
screen between images: they are no samples and are counted in `counts["gray"]` of their image, or of
the next one where their own has no other rows.

Gaze is the direction `GIW_X/Y/Z` (Unity axes, the same as ours) where these are points of a sphere
around the viewer, which means lengths that differ by less than a fifth; else the texture place
`GIW_TEXTURE_X/Y`: fractions from the lower left corner where they stay within 0 and 1, else
longitude -180 to 180 and latitude -90 to 90. Where both are there but lie more than 5 degrees apart
in the median and the texture is in degrees, the texture counts, since areas of interest are given
on the image. `metadata["gaze_from"]` says which it was. A miss is (-1, -1) in the texture or a zero
vector. The head comes from `HEAD_EUL_X/Y/Z` (pitch down, yaw right, roll left). Head positions are
not kept. `metadata["aoi_file"]` names the file with two rectangles per image where there is one.

Time is `UNITY_TIMESTAMP`, or `SMI_TIMESTAMP` where that does not advance; the unit is the one that
comes nearest to 60 Hz.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Sphere, angle_deg, eye_in_head, wrap_x
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import TICK_S, assemble, columns, guess_unit, kept
from gazeveil.io.parsing.naming import Names
from gazeveil.io.parsing.table import Table, open_sheet, read_table
from gazeveil.io.registry import PUBLISHED, Dataset, Format
from gazeveil.io.source import Head, stem

_TRUE = frozenset({"true", "1", "1.0", "yes", "t"})
_RATE_HZ = 60.0


def sniff(head: Head) -> bool:
    """A CSV file with an image index, the grey flag and gaze in the world."""
    return {"img_index", "is_gray", "giw_x", "giw_y", "giw_z"} <= columns(head)


def scan(path: Path, root: Path) -> Iterator[Handle]:
    """One recording per image; the file is read once to see which images it has."""
    folders = list(dict.fromkeys((path.parent, root, path.parent.parent)))
    named = (folder / "img_index.csv" for folder in folders)
    titles = _image_names(next((place for place in named if place.is_file()), None))
    files = (p for folder in folders for p in sorted(folder.glob("*")) if p.is_file())
    aoi = next((str(p) for p in files if "aoi" in p.name.lower()), "")
    groups, gray = _groups(path)
    for index in dict.fromkeys(groups[~gray].tolist()):
        names = Names(stem(path), titles.get(index, str(index)), task="free-viewing")
        yield names.handle(partial(load, path, names, index, aoi), path)


def load(path: Path, names: Names, index: int, aoi_file: str) -> Recording:
    """The rows of one image as a recording."""
    table = _table(path)
    groups, gray = _groups(path)
    mine = groups == index
    rows = mine & ~gray
    space = Sphere()
    vectors, source = _gaze(table, rows)
    x_deg, y_deg = space.degrees(vectors)
    head = eye = None
    if table.has("HEAD_EUL_X", "HEAD_EUL_Y", "HEAD_EUL_Z"):
        angles = (table.floats(f"HEAD_EUL_{axis}")[rows] for axis in "XYZ")
        pitch, yaw, roll = (np.mod(angle + 180.0, 360.0) - 180.0 for angle in angles)
        head = np.stack((wrap_x(180.0 + yaw), 90.0 + pitch, -roll), axis=1)
        eye = np.stack(eye_in_head(vectors, head), axis=1)
    return assemble(
        path,
        **vars(names),
        t_ns=_times_ns(table, rows),
        space=space,
        x_deg=x_deg,
        y_deg=y_deg,
        head_deg=head,
        eye_in_head_deg=eye,
        not_samples={"gray": int(np.count_nonzero(mine & gray))},
        metadata={"image_index": index, "gaze_from": source, "aoi_file": aoi_file},
    )


# One file holds fifty recordings.
@kept(2)
def _table(path: Path) -> Table:
    return read_table(path, ",")


def _groups(path: Path) -> tuple[Ints, Bools]:
    """(image of each row, whether it is grey)."""
    table = _table(path)
    index = table.floats("IMG_INDEX")
    if not np.isfinite(index).all():
        row = int(np.flatnonzero(~np.isfinite(index))[0])
        raise FormatError(
            path, "the row has no IMG_INDEX", "Mend or remove the line.", table.line_of(row)
        )
    groups = index.astype(np.int64)
    gray = np.array([w.lower() in _TRUE for w in table.words("IS_GRAY")], dtype=np.bool_)
    shown = np.flatnonzero(~gray)
    homeless = np.flatnonzero(gray & ~np.isin(groups, groups[shown]))
    if len(shown) and len(homeless):
        after = np.minimum(np.searchsorted(shown, homeless), len(shown) - 1)
        groups[homeless] = groups[shown[after]]
    return groups, gray


def _times_ns(table: Table, rows: Bools) -> Ints:
    ticks = table.maybe_floats("UNITY_TIMESTAMP")
    stands = ticks is None or (np.count_nonzero(rows) > 1 and not np.ptp(ticks[rows]))
    name = "SMI_TIMESTAMP" if stands else "UNITY_TIMESTAMP"
    # Nanosecond clocks do not fit a double, so the table reads the digits; the guess needs no such
    # care.
    return table.times_ns(name, unit=guess_unit(table.floats(name), _RATE_HZ, TICK_S))[rows]


def _gaze(table: Table, rows: Bools) -> tuple[Floats, str]:
    """Directions, and the columns that they are from."""
    vectors = np.stack([table.floats(f"GIW_{axis}")[rows] for axis in "XYZ"], axis=1).reshape(-1, 3)
    length = np.linalg.norm(vectors, axis=1)
    valid = np.isfinite(length) & (length > 0)
    vectors[~valid] = np.nan
    if not table.has("GIW_TEXTURE_X", "GIW_TEXTURE_Y"):
        return vectors, "GIW"
    place, unit = _texture(*(table.floats(f"GIW_TEXTURE_{axis}")[rows] for axis in "XY"))
    middle = float(np.median(length[valid])) if valid.any() else 0.0
    spread = np.percentile(np.abs(length[valid] - middle), 95) if valid.any() else np.inf
    # A column filled with one value is a placeholder, not a gaze.
    filled = np.count_nonzero(valid) > 2 and not np.ptp(vectors[valid], axis=0).any()
    both = valid & np.isfinite(place).all(axis=1)
    apart = unit == "degrees" and both.any() and np.median(angle_deg(vectors[both], place[both]))
    if np.isfinite(place).any() and (spread >= 0.2 * middle or filled or apart > 5.0):
        return place, f"GIW_TEXTURE ({unit})"
    return vectors, "GIW"


def _texture(u: Floats, v: Floats) -> tuple[Floats, str]:
    missed = ~(np.isfinite(u) & np.isfinite(v)) | ((u == -1) & (v == -1))
    seen = np.stack((u, v))[:, ~missed]
    fractions = bool(((seen >= 0) & (seen <= 1)).all())
    x, y = (360.0 * u, 180.0 * (1.0 - v)) if fractions else (180.0 + u, 90.0 - v)
    vectors = Sphere().vectors(x, y)
    vectors[missed] = np.nan
    return vectors, "fractions" if fractions else "degrees"


def _image_names(place: Path | None) -> Mapping[int, str]:
    """Names by number, from a table with a column of numbers and one of names."""
    table = None if place is None else open_sheet(place)
    if table is None:
        return {}
    columns = [table.words(n) for n in table.names]
    whole = [words for words in columns if words and all(w.isdigit() for w in words)]
    texts = [words for words in columns if words not in whole]
    pairs = zip(whole[0], texts[0], strict=True) if whole and texts else ()
    return {int(i): name for i, name in pairs if name}


FORMAT = Format(
    "et-dk2",
    "ET-DK2: panoramas in an Oculus DK2 (CSV, 60 Hz)",
    sniff,
    scan,
    dataset=Dataset(
        title="ET-DK2",
        publisher="David-John, Jain et al. (University of Florida), Zenodo 4642612",
        licence="see the Zenodo record",
        citation=(
            "David-John et al. 2021, A privacy-preserving approach to streaming eye-tracking data,"
            " IEEE TVCG 27(5)"
        ),
        layout="S####.csv[.gz], img_index.csv, an AOI file",
    ),
    companion=lambda path: path.name == "img_index.csv" or "aoi" in path.name.lower(),
    scrub=PUBLISHED,
)
