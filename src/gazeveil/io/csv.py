"""Any delimited text with a time and a gaze column: CSV, TSV, semicolons, with a column map and
units.

Common column names are recognised (`t`, `time`, `timestamp`; `x`, `gaze_x`, `left_x`, ...), with or
without a unit in the name (`t_ms`, `x_deg`, `gaze x [px]`, `timestamp [ns]`). A unit that no name
and no option says is asked for, never guessed. Rows of several people or stimuli in one file give
one recording each, in order of first appearance.

Options
-------
columns : mapping of role to column name; the roles are the keys of :data:`ROLES` time_unit : `s`,
`ms`, `us`, `ns`, `100ns` unit : one of :data:`UNITS` y_axis : `down` (default) or `up`, where the
file's y grows upwards space : `screen` or `sphere`, for degrees, radians and fractions screen : the
:class:`~gazeveil.gaze.geometry.Screen`, needed for pixels and fractions of it panorama : (width_px,
height_px) of the equirectangular picture, for `unit="equirect"` missing : a number that stands for
a lost sample (or several), such as -1 separator, decimal, comment : as the file has them; found
from it where not given; comments begin with `#` person, stimulus, session, task, pattern : see
:mod:`gazeveil.io.parsing.naming`

Files with the columns `target_id`, `tar_x`, `tar_y` are validation data as ETDQualitizer
(Niehorster et al.) lays them out: times in milliseconds, pixels from the centre of the screen. They
are read without options on the screen of its published example, and `metadata["assumed_geometry"]`
says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.geometry import Floats, Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.io.parsing.assemble import assemble
from gazeveil.io.parsing.delimited import Sheet, header_cells, key, open_sheet, stamp
from gazeveil.io.parsing.headset import mean_of_eyes
from gazeveil.io.parsing.naming import OPTIONS, Given, Names, given
from gazeveil.io.parsing.table import UNIT_NS, listed
from gazeveil.io.registry import Format
from gazeveil.io.source import Head, read_bytes
from gazeveil.io.vendors.arff import WORDS

#: What gaze may be counted in.
UNITS = ("deg", "rad", "lonlat", "px", "px-centred", "fraction", "equirect")

#: Role -> names that are recognised, compared without case, punctuation and unit.
ROLES: dict[str, tuple[str, ...]] = {
    "t": (
        "t",
        "time",
        "timestamp",
        "timestamps",
        "recordingtime",
        "sampletime",
        "recordingtimestamp",
        "gazetimestamp",
    ),
    "x": (
        "x",
        "gazex",
        "xgaze",
        "gazepointx",
        "porx",
        "posx",
        "gx",
        "eyex",
        "xpos",
        "lon",
        "longitude",
    ),
    "y": (
        "y",
        "gazey",
        "ygaze",
        "gazepointy",
        "pory",
        "posy",
        "gy",
        "eyey",
        "ypos",
        "lat",
        "latitude",
    ),
    "left_x": (
        "leftx",
        "xleft",
        "lx",
        "xl",
        "leftgazex",
        "gazexleft",
        "gazeleftx",
        "leftgazepointx",
        "gazepointleftx",
        "lporx",
    ),
    "left_y": (
        "lefty",
        "yleft",
        "ly",
        "yl",
        "leftgazey",
        "gazeyleft",
        "gazelefty",
        "leftgazepointy",
        "gazepointlefty",
        "lpory",
    ),
    "right_x": (
        "rightx",
        "xright",
        "rx",
        "xr",
        "rightgazex",
        "gazexright",
        "gazerightx",
        "rightgazepointx",
        "gazepointrightx",
        "rporx",
    ),
    "right_y": (
        "righty",
        "yright",
        "ry",
        "yr",
        "rightgazey",
        "gazeyright",
        "gazerighty",
        "rightgazepointy",
        "gazepointrighty",
        "rpory",
    ),
    "valid": ("valid", "isvalid", "validity"),
    "left_valid": ("leftvalid", "validleft", "lvalid"),
    "right_valid": ("rightvalid", "validright", "rvalid"),
    "pupil": ("pupil", "pupilsize", "pupildiameter", "pupilarea"),
    "left_pupil": (
        "leftpupil",
        "pupilleft",
        "leftpupilsize",
        "leftpupildiameter",
        "pupildiameterleft",
    ),
    "right_pupil": (
        "rightpupil",
        "pupilright",
        "rightpupilsize",
        "rightpupildiameter",
        "pupildiameterright",
    ),
    "confidence": ("confidence", "conf"),
    "label": ("label", "labels", "event", "eventtype", "eyemovementtype", "emtype"),
    "person": (
        "person",
        "participant",
        "participantid",
        "participantname",
        "subject",
        "subjectid",
        "subj",
        "user",
        "userid",
        "username",
        "observer",
    ),
    "stimulus": (
        "stimulus",
        "stimulusname",
        "stimulusid",
        "stim",
        "image",
        "imagename",
        "video",
        "videoname",
        "clip",
        "media",
        "medianame",
        "trial",
        "trialid",
    ),
    "session": ("session", "sessionid"),
    "task": ("task", "taskname"),
}

#: Spellings of units in column names.
_TIME_WORDS = {
    "s": "s",
    "sec": "s",
    "seconds": "s",
    "ms": "ms",
    "msec": "ms",
    "us": "us",
    "µs": "us",
    "μs": "us",
    "usec": "us",
    "ns": "ns",
    "100ns": "100ns",
}
_GAZE_WORDS = {
    "deg": "deg",
    "degree": "deg",
    "degrees": "deg",
    "°": "deg",
    "rad": "rad",
    "px": "px",
    "pix": "px",
    "pixel": "px",
    "pixels": "px",
}
_SUFFIX = re.compile(
    r"^(?P<base>.*?)[\s_.\-]*(?:\[\s*(?P<square>[^\]]+?)\s*\]|\(\s*(?P<round>[^)]+?)\s*\)|(?<=[\s_.\-])(?P<bare>[A-Za-z0-9µμ°]+))\s*$"
)

# The screen of ETDQualitizer's published example.
_VALIDATION_SCREEN = Screen(1920, 1080, 528.0, 297.0, 650.0)
_VALIDATION_KEYS = frozenset({"timestamp", "targetid", "tarx", "tary"})
# Stands in where degrees on a screen come without the screen: only its proportions to a viewer are
# used, for plots.
_ASSUMED_SCREEN = Screen(1920, 1080, 531.0, 299.0, 650.0)

_OPTIONS = frozenset(
    {
        "columns",
        "time_unit",
        "unit",
        "y_axis",
        "space",
        "screen",
        "panorama",
        "missing",
        "separator",
        "decimal",
        "comment",
    }
)


@dataclass(frozen=True)
class Layout:
    """How one file is to be read: column of each role, units, geometry."""

    columns: tuple[tuple[str, str], ...]
    time_unit: str
    unit: str
    y_axis: str
    space: str | None
    screen: Screen | None
    panorama: tuple[float, float] | None
    missing: tuple[float, ...]
    separator: str | None
    decimal: str | None
    comment: str
    assumed: bool = False

    def column(self, role: str) -> str | None:
        """The file's column for a role, or None."""
        return dict(self.columns).get(role)


def split_unit(name: str) -> tuple[str, str]:
    """A column name's key without its unit, and the unit's word; the word is empty where the name
    says none.
    """
    found = _SUFFIX.match(name.strip())
    if found is not None:
        word = (found["square"] or found["round"] or found["bare"]).lower()
        if word in _TIME_WORDS or word in _GAZE_WORDS:
            return key(found["base"]), word
        if found["square"] or found["round"]:
            return key(found["base"]), ""
    return key(name), ""


def recognise(names: Iterable[str]) -> dict[str, str]:
    """Role -> column, for the names that are recognised; an earlier spelling in :data:`ROLES` goes
    first.
    """
    by_key: dict[str, str] = {}
    for name in names:
        by_key.setdefault(split_unit(name)[0], name)
    found = {}
    for role, spellings in ROLES.items():
        hit = next((by_key[s] for s in spellings if s in by_key), None)
        if hit is not None:
            found[role] = hit
    return found


def _has_gaze(roles: Mapping[str, str]) -> bool:
    return any({f"{eye}x", f"{eye}y"} <= roles.keys() for eye in ("", "left_", "right_"))


def sniff(head: Head) -> bool:
    """Delimited text with a recognisable time, x and y."""
    cells = header_cells(head)
    roles = recognise(cells)
    # A first row of numbers is no header, however many separators it has.
    return len(cells) >= 3 and "t" in roles and _has_gaze(roles)


def plan(path: Path, names: list[str], options: Mapping[str, object]) -> Layout:
    """Match columns and units, from the options first and from the names second.

    Raises
    ------
    FormatError
        For a column or a unit that neither says; the message names the option.
    """
    roles = recognise(names)
    wanted = options.get("columns")
    if wanted is not None:
        if not isinstance(wanted, Mapping):
            checks.refuse("Format csv", "columns", "a mapping of role to column name", wanted)
        checks.known_options(
            "The columns map of format csv", {str(k): v for k, v in wanted.items()}, ROLES
        )
        present = {key(n): n for n in names}
        said = {}
        for role, name in wanted.items():
            if key(str(name)) not in present:
                raise FormatError(
                    path,
                    f"there is no column '{name}' for '{role}' (columns: {listed(names)})",
                    "Mend the columns= map.",
                )
            said[str(role)] = present[key(str(name))]
        # A column the user gave to one role is not taken for another.
        roles = {**{r: n for r, n in roles.items() if n not in said.values()}, **said}
        if _has_gaze(said):
            roles = {r: n for r, n in roles.items() if r in said or r not in _GAZE_ROLES}
    if "t" not in roles:
        raise FormatError(
            path,
            f"no time column is recognised (columns: {listed(names)})",
            "Name it with columns={'t': ...}.",
        )
    if not _has_gaze(roles):
        raise FormatError(
            path,
            f"no gaze columns are recognised (columns: {listed(names)})",
            "Name them with columns={'x': ..., 'y': ...}.",
        )
    validation = {key(n) for n in names} >= _VALIDATION_KEYS and "unit" not in options
    time_unit = _time_unit(path, roles["t"], options, validation)
    unit = _gaze_unit(path, roles, options, validation)
    screen = options.get("screen")
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse("Format csv", "screen", "a Screen", screen)
    assumed = validation and screen is None
    screen = _VALIDATION_SCREEN if assumed else screen
    space = options.get("space")
    if space is not None:
        checks.one_of("Format csv", "space", space, ("screen", "sphere"))
    if unit in ("lonlat", "equirect"):
        space = "sphere"
    elif unit in ("px", "px-centred"):
        if space == "sphere":
            checks.refuse(
                "Format csv",
                "unit",
                "equirect for pixels on the sphere",
                unit,
                "Say unit='equirect' and panorama=(width, height).",
            )
        if screen is None:
            raise FormatError(
                path,
                "pixels need a screen to become degrees",
                "Give screen=Screen(width_px, height_px, width_mm, height_mm, distance_mm).",
            )
        space = "screen"
    elif space is None and screen is not None:
        space = "screen"
    if unit == "fraction" and (space is None or (space == "screen" and screen is None)):
        raise FormatError(
            path,
            "fractions need to know of what",
            "Give screen=Screen(...), or space='sphere' for fractions of a panorama.",
        )
    panorama = options.get("panorama")
    if unit == "equirect" and not (isinstance(panorama, tuple | list) and len(panorama) == 2):
        raise FormatError(
            path, "pixels of a panorama need its size", "Give panorama=(width_px, height_px)."
        )
    size = None
    if isinstance(panorama, tuple | list):
        size = (
            checks.positive("Format csv", "panorama", panorama[0]),
            checks.positive("Format csv", "panorama", panorama[1]),
        )
    lost = options.get("missing", ())
    return Layout(
        columns=tuple(sorted(roles.items())),
        time_unit=time_unit,
        unit=unit,
        y_axis=checks.one_of("Format csv", "y_axis", options.get("y_axis", "down"), ("down", "up")),
        space=None if space is None else str(space),
        screen=screen,
        panorama=size,
        missing=tuple(
            checks.number("Format csv", "missing", m)
            for m in (lost if isinstance(lost, tuple | list) else (lost,))
        ),
        separator=_one_character("separator", options.get("separator")),
        decimal=(
            None
            if options.get("decimal") is None
            else checks.one_of("Format csv", "decimal", options["decimal"], (".", ","))
        ),
        comment=str(options.get("comment", "#")),
        assumed=assumed,
    )


_GAZE_ROLES = ("x", "y", "left_x", "left_y", "right_x", "right_y")


def _one_character(name: str, value: object) -> str | None:
    if value is not None and not (isinstance(value, str) and len(value) == 1):
        checks.refuse("Format csv", name, "one character", value)
    return value


def _time_unit(path: Path, column: str, options: Mapping[str, object], validation: bool) -> str:
    if options.get("time_unit") is not None:
        return checks.one_of("Format csv", "time_unit", options["time_unit"], UNIT_NS)
    said = _TIME_WORDS.get(split_unit(column)[1])
    if said is None and validation:
        said = "ms"
    if said is None:
        raise FormatError(
            path,
            f"the time column '{column}' does not say its unit",
            "Say time_unit='s', 'ms', 'us', 'ns' or '100ns'.",
        )
    return said


def _gaze_unit(
    path: Path, roles: Mapping[str, str], options: Mapping[str, object], validation: bool
) -> str:
    if options.get("unit") is not None:
        return checks.one_of("Format csv", "unit", options["unit"], UNITS)
    if validation:
        return "px-centred"
    columns = [roles[r] for r in _GAZE_ROLES if r in roles]
    words = {_GAZE_WORDS.get(split_unit(c)[1]) for c in columns}
    said = next(iter(words)) if len(words) == 1 else None
    if said is None:
        raise FormatError(
            path,
            f"the gaze columns {', '.join(repr(c) for c in columns)} do not say their unit",
            f"Say unit= one of: {', '.join(UNITS)}.",
        )
    return said


@lru_cache(maxsize=1)
def _open(
    path: Path, _stamp: tuple[int, int], layout: Layout
) -> tuple[Sheet, dict[tuple[str, ...], NDArray[np.int64]]]:
    """The file and its rows by person, stimulus, session and task; kept until the next file, so
    that it is parsed once.
    """
    sheet = open_sheet(path, layout.separator, layout.decimal, layout.comment)
    return sheet, dict(
        sheet.groups(*(layout.column(r) for r in ("person", "stimulus", "session", "task")))
    )


def load(path: Path, names: Names, part: tuple[str, ...] | None, layout: Layout) -> Recording:
    """One recording of the file."""
    sheet, parts = _open(path, stamp(path), layout)
    rows = parts[part] if part is not None else np.arange(len(sheet), dtype=np.int64)
    gaze = {
        r: _lost(sheet.floats(c)[rows], layout.missing)
        for r in _GAZE_ROLES
        if (c := layout.column(r)) is not None
    }
    space, space_assumed = _space(path, layout, gaze)
    placed = {
        eye: _place(layout, space, gaze[f"{eye}x"], gaze[f"{eye}y"])
        for eye in ("", "left_", "right_")
        if {f"{eye}x", f"{eye}y"} <= gaze.keys()
    }
    for eye in ("left_", "right_"):
        flag = layout.column(f"{eye}valid")
        if flag is not None and eye in placed:
            placed[eye][~sheet.flags(flag)[rows]] = np.nan
    flag = layout.column("valid")
    both = placed.get("")
    metadata: dict[str, object] = {"unit": layout.unit}
    if layout.assumed or space_assumed:
        metadata["assumed_geometry"] = True
    label, confidence = layout.column("label"), layout.column("confidence")
    return assemble(
        path,
        person=names.person,
        stimulus=names.stimulus,
        session=names.session,
        task=names.task,
        t_ns=_times(path, stamp(path), layout)[rows],
        space=space,
        x_deg=None if both is None else both[:, 0],
        y_deg=None if both is None else both[:, 1],
        left_deg=placed.get("left_"),
        right_deg=placed.get("right_"),
        valid=None if flag is None else sheet.flags(flag)[rows],
        pupil=_pupil(sheet, layout, rows),
        confidence=None if confidence is None else sheet.floats(confidence)[rows],
        labels={} if label is None else {"label": _words(sheet, label)[rows]},
        metadata=metadata,
    )


def _lost(values: Floats, missing: tuple[float, ...]) -> Floats:
    return np.where(np.isin(values, missing), np.nan, values) if missing else values


@lru_cache(maxsize=1)
def _times(path: Path, at: tuple[int, int], layout: Layout) -> NDArray[np.int64]:
    """Times of all rows; kept as the file is."""
    sheet, _ = _open(path, at, layout)
    column = layout.column("t")
    assert column is not None
    written = (
        sheet.table.column(column).str.strip_chars().cast(pl.Float64, strict=False).abs().max()
    )
    largest = written if isinstance(written, float) and np.isfinite(written) else 0.0
    too_large = largest * UNIT_NS[layout.time_unit] > 9.2e18
    if too_large and layout.time_unit != "100ns":
        raise FormatError(
            sheet.table.path,
            f"times as large as {largest:g} {layout.time_unit} are no times",
            f"Check time_unit='{layout.time_unit}'.",
        )
    return sheet.times_ns(column, unit=layout.time_unit, relative=too_large)


def _pupil(sheet: Sheet, layout: Layout, rows: NDArray[np.int64]) -> Floats | None:
    sizes = [
        _lost(sheet.floats(c)[rows], layout.missing)
        for r in ("pupil", "left_pupil", "right_pupil")
        if (c := layout.column(r)) is not None
    ]
    if not sizes:
        return None
    return (
        sizes[0]
        if layout.column("pupil") is not None or len(sizes) == 1
        else mean_of_eyes(sizes[0], sizes[1])
    )


def _words(sheet: Sheet, column: str) -> NDArray[np.str_]:
    words = (
        sheet.table.column(column)
        .fill_null("undefined")
        .str.strip_chars()
        .str.to_lowercase()
        .replace({"": "undefined", **WORDS})
    )
    return words.to_numpy().astype(np.str_)


def _space(path: Path, layout: Layout, gaze: Mapping[str, Floats]) -> tuple[Space, bool]:
    """The space, and whether its screen is assumed."""
    if layout.space == "sphere":
        return Sphere(), False
    if layout.space == "screen":
        return layout.screen or _ASSUMED_SCREEN, layout.screen is None
    # Degrees without a word about their space: only values that rule one of the two out decide.
    scale = 180 / np.pi if layout.unit == "rad" else 1.0
    values = [
        scale * np.concatenate([v for r, v in gaze.items() if r.endswith(axis)]) for axis in "xy"
    ]
    low, high = ([float(f(v, initial=0.0)) for v in values] for f in (np.nanmin, np.nanmax))
    if min(low) < 0 and max(high) < 90 and min(low) > -90:
        return _ASSUMED_SCREEN, True
    if min(low) >= 0 and max(high) >= 90 and high[0] < 360 and high[1] < 180:
        return Sphere(), False
    if min(low) < -90 or high[0] >= 360 or high[1] >= 180:
        problem = (
            f"gaze runs from {low[0]:g} to {high[0]:g} (x) and from {low[1]:g} to {high[1]:g} (y),"
            " which cannot be degrees"
        )
        raise FormatError(
            path,
            problem,
            "If these are pixels, say unit='px' and give the screen; for longitude and latitude say"
            " unit='lonlat'.",
        )
    raise FormatError(
        path,
        "these degrees may be a screen's or a sphere's",
        "Say space='sphere', or space='screen' (with screen=Screen(...) if you know it).",
    )


def _place(layout: Layout, space: Space, x: Floats, y: Floats) -> Floats:
    """File units to degrees of the space, shape (n, 2)."""
    up = layout.y_axis == "up"
    if layout.unit in ("deg", "rad"):
        if layout.unit == "rad":
            x, y = np.degrees(x), np.degrees(y)
        if up:
            y = 180.0 - y if isinstance(space, Sphere) else -y
    elif layout.unit == "lonlat":
        # Latitude grows upwards by definition; `y_axis="up"` says no more than that.
        x, y = x + 180.0, 90.0 - y
    elif isinstance(space, Sphere):
        width, height = (
            layout.panorama
            if layout.unit == "equirect" and layout.panorama is not None
            else (1.0, 1.0)
        )
        x, y = 360.0 * x / width, 180.0 * (height - y if up else y) / height
    elif layout.unit == "px-centred":
        x, y = space.from_px(x + space.width_px / 2, (-y if up else y) + space.height_px / 2)
    else:
        if layout.unit == "fraction":
            x, y = x * space.width_px, y * space.height_px
        x, y = space.from_px(x, space.height_px - y if up else y)
    return np.stack((x, y), axis=1)


def scan(path: Path, root: Path, **options: object) -> Iterable[Handle]:
    """One recording per file, or per person, stimulus, session and task that its rows name."""
    said: Given = given(**options)
    head = Head.of(path)
    comment = str(options.get("comment", "#"))
    cells = header_cells(head, comment or "\0")
    separator = _one_character("separator", options.get("separator"))
    if separator is not None:
        line = next(
            (t for t in head.lines if t.strip() and not (comment and t.startswith(comment))), ""
        )
        cells = [c.strip().strip('"') for c in line.split(separator)]
    if not cells:
        read_bytes(path)
        raise FormatError(
            path,
            "its first line is not a header with separated column names",
            "Check the file, or say separator=.",
            1,
        )
    layout = plan(path, cells, options)
    parts: Iterable[tuple[str, ...] | None] = [None]
    if any(layout.column(r) is not None for r in ("person", "stimulus", "session", "task")):
        parts = _open(path, stamp(path), layout)[1]
    handles = []
    for part in parts:
        words = dict(zip(("person", "stimulus", "session", "task"), part or (), strict=False))
        names = said.names(path, root, **words)
        handles.append(
            Handle(
                names.person,
                names.stimulus,
                partial(load, path, names, part, layout),
                names.session,
                names.task,
                str(path),
            )
        )
    return handles


FORMAT = Format(
    "csv",
    "Delimited text with a column map (CSV, TSV, semicolons)",
    sniff,
    scan,
    _OPTIONS | OPTIONS,
)
