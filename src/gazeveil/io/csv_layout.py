"""The layout of a delimited file: which column is which, in what units, in what space.

Options go first and the names of the columns second; what neither says is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen
from gazeveil.io.parsing.delimited import key
from gazeveil.io.parsing.json_text import read_json
from gazeveil.io.parsing.table import UNIT_NS, listed

#: What gaze may be counted in.
UNITS = (
    *("deg", "rad", "lonlat", "px", "px-centred", "fraction", "equirect"),
    *("vector", "vector-openxr"),
)
#: Units of directions: x right, y up and z forward (Unity, Varjo) or backward (OpenXR, OpenGL).
VECTOR_UNITS = ("vector", "vector-openxr")

GAZE_ROLES = ("x", "y", "left_x", "left_y", "right_x", "right_y")
#: The third component of directions.
DEPTH_ROLES = ("z", "left_z", "right_z")
# Names behind a bar say less: they go by where no name before it is there.
_SPELLINGS = {
    "t": (
        "gazetimestamp recordingtimestamp recordingtime sampletime | t time timestamp timestamps"
    ),
    "x": "gazex xgaze gazepointx porx gx | x posx eyex xpos lon longitude",
    "y": "gazey ygaze gazepointy pory gy | y posy eyey ypos lat latitude",
    "left_x": (
        "leftgazex gazexleft gazeleftx leftgazepointx gazepointleftx lporx | leftx xleft lx xl"
    ),
    "left_y": (
        "leftgazey gazeyleft gazelefty leftgazepointy gazepointlefty lpory | lefty yleft ly yl"
    ),
    "right_x": (
        "rightgazex gazexright gazerightx rightgazepointx gazepointrightx rporx |"
        " rightx xright rx xr"
    ),
    "right_y": (
        "rightgazey gazeyright gazerighty rightgazepointy gazepointrighty rpory |"
        " righty yright ry yr"
    ),
    "z": "gazez zgaze gz | z eyez",
    "left_z": "leftgazez gazezleft gazeleftz | leftz zleft lz zl",
    "right_z": "rightgazez gazezright gazerightz | rightz zright rz zr",
    "valid": "valid isvalid validity",
    "left_valid": "leftvalid validleft lvalid",
    "right_valid": "rightvalid validright rvalid",
    "pupil": "pupil pupilsize pupildiameter pupilarea",
    "left_pupil": "leftpupil pupilleft leftpupilsize leftpupildiameter pupildiameterleft",
    "right_pupil": "rightpupil pupilright rightpupilsize rightpupildiameter pupildiameterright",
    "confidence": "confidence conf",
    "label": "label labels event eventtype eyemovementtype emtype",
    "person": (
        "person participant participantid participantname subject subjectid subj user "
        "userid username observer"
    ),
    "stimulus": (
        "stimulus stimulusname stimulusid stim image imagename video videoname clip "
        "media medianame trial trialid"
    ),
    "session": "session sessionid",
    "task": "task taskname",
}
#: Role -> names that are recognised, compared without case, punctuation and unit.
ROLES = {role: tuple(names.replace("|", "").split()) for role, names in _SPELLINGS.items()}
_RANKS = {role: [r.split() for r in names.split("|")] for role, names in _SPELLINGS.items()}

#: Spellings of units in column names.
_TIME_UNITS = {
    **dict.fromkeys(("s", "sec", "seconds"), "s"),
    **dict.fromkeys(("ms", "msec"), "ms"),
    **dict.fromkeys(("us", "µs", "μs", "usec"), "us"),
    "ns": "ns",
    "100ns": "100ns",
}
_GAZE_UNITS = {
    **dict.fromkeys(("deg", "degree", "degrees", "°", "dva"), "deg"),
    "rad": "rad",
    **dict.fromkeys(("px", "pix", "pixel", "pixels"), "px"),
}
#: Units that are known and not read: a guess must not overrule a name that says one.
_UNREAD_TIME = frozenset({"min", "mins", "minutes", "h", "hours"})
_UNREAD_GAZE = frozenset(
    {"m", "metres", "meters", "cm", "mm", "in", "inch", "inches", "arcmin", "arcsec", "mrad"}
    | {"percent", "pct", "%"}
)
_SUFFIX = re.compile(
    r"^(?P<base>.*?)[\s_.\-]*"
    r"(?:\[\s*(?P<square>[^\]]+?)\s*\]|\(\s*(?P<round>[^)]+?)\s*\)"
    r"|(?<=[\s_.\-])(?P<bare>[A-Za-z0-9µμ°]+))\s*$"
)

# The screen of ETDQualitizer's published example.
_VALIDATION_SCREEN = Screen(1920, 1080, 528.0, 297.0, 650.0)
_VALIDATION_KEYS = frozenset({"timestamp", "targetid", "tarx", "tary"})

#: Options that say the layout.
LAYOUT_OPTIONS = frozenset(
    [
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
        "rate_hz",
        "frame_interval_s",
        "assumed",
    ]
)
_OWNER = "Format csv"


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
    rate_hz: float | None = None
    frame_interval_s: float | tuple[tuple[str, float], ...] | None = None

    def column(self, role: str) -> str | None:
        """The file's column for a role, or None."""
        return dict(self.columns).get(role)


def split_unit(name: str) -> tuple[str, str]:
    """A column name's key without its unit, and the unit's word; the word is empty where the name
    says none.
    """
    parts = _SUFFIX.match(name.strip())
    if parts is not None:
        unit = (parts["square"] or parts["round"] or parts["bare"]).lower()
        if unit in _TIME_UNITS or unit in _GAZE_UNITS:
            return key(parts["base"]), unit
        if parts["square"] or parts["round"]:
            return key(parts["base"]), ""
    return key(name), ""


def unread_unit(name: str, of: str) -> str:
    """The unit that a column of `"time"` or `"gaze"` says in its name, where it is a known one that
    is not read; else an empty text.
    """
    parts = _SUFFIX.match(name.strip())
    if parts is None:
        return ""
    unit = (parts["square"] or parts["round"] or parts["bare"]).lower()
    return unit if unit in (_UNREAD_TIME if of == "time" else _UNREAD_GAZE) else ""


def recognise(names: Iterable[str]) -> dict[str, str]:
    """Role -> column, for the names that are recognised; an earlier spelling in :data:`ROLES` goes
    first.

    A name that says gaze goes before one that does not: where `left_gaze_x` and its kind are there,
    `x` and `y` are a target or a mouse.
    """
    fitting = _fitting(names)
    explicit = [
        r for r in GAZE_ROLES if r in fitting and split_unit(fitting[r][0])[0] in _RANKS[r][0]
    ]
    if has_gaze(dict.fromkeys(explicit, "")) and not {"x", "y"} & set(explicit):
        fitting = {role: found for role, found in fitting.items() if role not in ("x", "y", "z")}
    return {role: found[0] for role, found in fitting.items()}


def _fitting(names: Iterable[str]) -> dict[str, list[str]]:
    """Role -> the columns that fit it equally well, at least one."""
    by_key: dict[str, str] = {}
    for name in names:
        by_key.setdefault(split_unit(name)[0], name)
    found = {
        role: [[by_key[s] for s in spellings if s in by_key] for spellings in ranks]
        for role, ranks in _RANKS.items()
    }
    return {role: next(filter(None, ranks)) for role, ranks in found.items() if any(ranks)}


def has_gaze(roles: Mapping[str, str]) -> bool:
    """Whether both coordinates of gaze, or of an eye, are there."""
    return any({f"{eye}x", f"{eye}y"} <= roles.keys() for eye in ("", "left_", "right_"))


def is_validation(names: Iterable[str]) -> bool:
    """Whether these are the columns of ETDQualitizer's validation data, whose units are known."""
    return {key(n) for n in names} >= _VALIDATION_KEYS


def plan_layout(path: Path, names: list[str], options: Mapping[str, object]) -> Layout:
    """Match columns and units, from the options first and from the names second.

    Raises
    ------
    FormatError
        For a column or a unit that neither says; the message names the option.
    """
    rate_hz = _rate_hz(options)
    roles = _roles(path, names, options, rate_hz is not None)
    validation = is_validation(names) and "unit" not in options
    interval_s = _frame_interval_s(options.get("frame_interval_s"))
    time_unit = (
        _time_unit(path, roles["t"], options, validation, interval_s is not None)
        if "t" in roles
        else "frame"
    )
    unit = _gaze_unit(path, roles, options, validation)
    roles = _with_depth(path, names, roles, unit)
    screen = options.get("screen")
    if screen is not None and not isinstance(screen, Screen):
        checks.refuse(_OWNER, "screen", "a Screen", screen)
    assumed = validation and screen is None
    screen = _VALIDATION_SCREEN if assumed else screen
    missing, decimal = options.get("missing", ()), options.get("decimal")
    if decimal is not None:
        decimal = checks.one_of(_OWNER, "decimal", decimal, (".", ","))
    return Layout(
        columns=tuple(sorted(roles.items())),
        time_unit=time_unit,
        unit=unit,
        space=_space(path, unit, options, screen),
        panorama=_panorama(path, unit, options.get("panorama")),
        y_axis=checks.one_of(
            _OWNER,
            "y_axis",
            options.get("y_axis", "up" if unit in VECTOR_UNITS else "down"),
            ("down", "up"),
        ),
        screen=screen,
        missing=tuple(
            checks.number(_OWNER, "missing", m)
            for m in (missing if isinstance(missing, tuple | list) else (missing,))
        ),
        separator=separator_of(options),
        decimal=decimal,
        comment=comment_of(options),
        assumed=assumed or options.get("assumed") is True,
        rate_hz=rate_hz,
        frame_interval_s=interval_s,
    )


def _rate_hz(options: Mapping[str, object]) -> float | None:
    rate_hz = options.get("rate_hz")
    return None if rate_hz is None else checks.positive(_OWNER, "rate_hz", rate_hz)


def _frame_interval_s(option: object) -> float | tuple[tuple[str, float], ...] | None:
    """Seconds per frame: one number, or one for each stimulus."""
    if isinstance(option, str | os.PathLike):
        option = read_json(Path(option))
    if isinstance(option, Mapping):
        return tuple(
            (str(k), checks.positive(_OWNER, "frame_interval_s", v)) for k, v in option.items()
        )
    return None if option is None else checks.positive(_OWNER, "frame_interval_s", option)


def said_time_unit(column: str) -> str | None:
    """The unit of time that a column's name says, or None."""
    return _TIME_UNITS.get(split_unit(column)[1])


def said_gaze_unit(columns: Iterable[str]) -> str | None:
    """The one unit of gaze that all these names say, or None."""
    units = {_GAZE_UNITS.get(split_unit(c)[1]) for c in columns}
    return units.pop() if len(units) == 1 else None


def separator_of(options: Mapping[str, object]) -> str | None:
    """The separator that the options say, or None."""
    separator = options.get("separator")
    if separator is not None and not (isinstance(separator, str) and len(separator) == 1):
        checks.refuse(_OWNER, "separator", "one character", separator)
    return separator


def comment_of(options: Mapping[str, object]) -> str:
    """What a line of comment begins with."""
    return str(options.get("comment", "#"))


def _roles(
    path: Path, names: list[str], options: Mapping[str, object], rated: bool
) -> dict[str, str]:
    """Role -> column; gaze is among them, and time unless a rate gives it."""
    roles, chosen = recognise(names), dict[str, str]()
    if options.get("columns") is not None:
        chosen = _chosen_columns(path, names, options["columns"])
        # A column the user gave to one role is not taken for another.
        roles = {**{r: n for r, n in roles.items() if n not in chosen.values()}, **chosen}
        if has_gaze(chosen):
            roles = {r: n for r, n in roles.items() if r in chosen or r not in GAZE_ROLES}
    for missing, subject, remedy in (
        ("t" not in roles and not rated, "no time column is", "Name it with columns={'t': ...}."),
        (
            not has_gaze(roles),
            "no gaze columns are",
            "Name them with columns={'x': ..., 'y': ...}.",
        ),
    ):
        if missing:
            raise FormatError(path, f"{subject} recognised (columns: {listed(names)})", remedy)
    ask_which(path, names, {r: n for r, n in roles.items() if r not in chosen}, chosen)
    return roles


def ask_which(
    path: Path | str, names: Sequence[str], roles: Mapping[str, str], chosen: Mapping[str, str]
) -> None:
    """Refuse where another column fits the time, or gaze, as well as the one that was taken.

    Parameters
    ----------
    path : Path or str
        The file, for the message.
    names : sequence of str
        Its columns.
    roles, chosen : mapping of role to column
        What was recognised, and what the user said.
    """
    fitting = _fitting(names)
    for role in ("t", *GAZE_ROLES):
        both = [n for n in fitting.get(role, ()) if n not in chosen.values()]
        if role in roles and len(both) > 1:
            wanted = "'t': ..." if role == "t" else f"'{role[:-1]}x': ..., '{role[:-1]}y': ..."
            raise FormatError(
                path,
                f"{' and '.join(repr(n) for n in both)} may each be '{role}'",
                f"Say which is, with columns={{{wanted}}}, as an option or in dataset.toml.",
            )


def _chosen_columns(path: Path, names: list[str], columns: object) -> dict[str, str]:
    """The `columns` option with the file's own spelling of each column."""
    if not isinstance(columns, Mapping):
        checks.refuse(_OWNER, "columns", "a mapping of role to column name", columns)
    wanted = {str(role): str(name) for role, name in columns.items()}
    checks.known_options("The columns map of format csv", wanted, ROLES)
    present = {key(n): n for n in names}
    for role, name in wanted.items():
        if key(name) not in present:
            problem = f"there is no column '{name}' for '{role}' (columns: {listed(names)})"
            raise FormatError(path, problem, "Mend the columns= map.")
    return {role: present[key(name)] for role, name in wanted.items()}


def _time_unit(
    path: Path, column: str, options: Mapping[str, object], validation: bool, framed: bool
) -> str:
    if options.get("time_unit") is not None:
        unit = checks.one_of(_OWNER, "time_unit", options["time_unit"], (*UNIT_NS, "frame"))
        if unit == "frame" and not framed:
            raise FormatError(
                path,
                f"the time column '{column}' counts frames, and nobody says how long one is",
                "Give frame_interval_s=, one number or one for each stimulus.",
            )
        return unit
    if framed:
        return "frame"
    said = said_time_unit(column) or ("ms" if validation else None)
    if said is None:
        _refuse_unread(path, column, "time", "Convert it to seconds ('time_s')")
        raise FormatError(
            path,
            f"the time column '{column}' does not say its unit",
            "Say time_unit='s', 'ms', 'us', 'ns' or '100ns', as an option or in dataset.toml.",
        )
    return said


def _gaze_unit(
    path: Path, roles: Mapping[str, str], options: Mapping[str, object], validation: bool
) -> str:
    if options.get("unit") is not None:
        return checks.one_of(_OWNER, "unit", options["unit"], UNITS)
    if validation:
        return "px-centred"
    columns = [roles[r] for r in GAZE_ROLES if r in roles]
    unit = said_gaze_unit(columns)
    if unit is None:
        for column in columns:
            _refuse_unread(
                path, column, "gaze", "Convert it to degrees or pixels ('x_deg', 'x_px')"
            )
        raise FormatError(
            path,
            f"the gaze columns {', '.join(repr(c) for c in columns)} do not say their unit",
            f"Say unit= one of: {', '.join(UNITS)}, as an option or in dataset.toml.",
        )
    return unit


def _refuse_unread(path: Path, column: str, of: str, remedy: str) -> None:
    unit = unread_unit(column, of)
    if unit:
        option = "time_unit=" if of == "time" else "unit="
        raise FormatError(
            path,
            f"the column '{column}' says '{unit}', which is no unit of {of} that is read",
            f"{remedy}, or say {option} where the name is wrong.",
        )


def _with_depth(path: Path, names: list[str], roles: dict[str, str], unit: str) -> dict[str, str]:
    """The roles with the third components of directions, and without them in other units."""
    if unit not in VECTOR_UNITS:
        return {r: n for r, n in roles.items() if r not in DEPTH_ROLES}
    for eye in ("", "left_", "right_"):
        if {f"{eye}x", f"{eye}y"} <= roles.keys() and f"{eye}z" not in roles:
            raise FormatError(
                path,
                f"a direction has three components, and no column is recognised as '{eye}z'"
                f" (columns: {listed(names)})",
                f"Name it with columns={{'{eye}z': ...}}.",
            )
    return roles


def _space(
    path: Path, unit: str, options: Mapping[str, object], screen: Screen | None
) -> str | None:
    """`screen` or `sphere`; None where only the degrees themselves can tell."""
    space = options.get("space")
    if space is not None:
        space = checks.one_of(_OWNER, "space", space, ("screen", "sphere"))
    if unit in ("lonlat", "equirect", *VECTOR_UNITS):
        return "sphere"
    if unit in ("px", "px-centred"):
        if space == "sphere":
            allowed, remedy = (
                "equirect for pixels on the sphere",
                "Say unit='equirect' and panorama=(width, height).",
            )
            checks.refuse(_OWNER, "unit", allowed, unit, remedy)
        if screen is None:
            raise FormatError(
                path,
                "pixels need a screen to become degrees",
                "Give screen=Screen(width_px, height_px, width_mm, height_mm, distance_mm).",
            )
        return "screen"
    if space is None and screen is not None:
        space = "screen"
    if unit == "fraction" and (space is None or (space == "screen" and screen is None)):
        raise FormatError(
            path,
            "fractions need to know of what",
            "Give screen=Screen(...), or space='sphere' for fractions of a panorama.",
        )
    return space


def _panorama(path: Path, unit: str, size: object) -> tuple[float, float] | None:
    """Width and height in pixels."""
    if unit == "equirect" and not (isinstance(size, tuple | list) and len(size) == 2):
        raise FormatError(
            path, "pixels of a panorama need its size", "Give panorama=(width_px, height_px)."
        )
    if not isinstance(size, tuple | list):
        return None
    width_px, height_px = (checks.positive(_OWNER, "panorama", size[i]) for i in (0, 1))
    return width_px, height_px
