"""The layout of a table: which column is which, in what units, in what space, and where each of
these facts comes from.

Options go first and the names of the columns second; what neither says is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import FormatError
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import FILE, GUESSED, SAID, Fact
from gazeveil.io.parsing.assemble import read_json, screen_in_words
from gazeveil.io.parsing.table import NO, UNIT_NS, YES, listed
from gazeveil.io.plain.roles import (
    DEPTH_ROLES,
    EYES,
    FLAG_ROLES,
    GAZE_ROLES,
    KEY_ROLES,
    ROLES,
    ask_which,
    flag_role,
    has_gaze,
    recognise,
    said_gaze_unit,
    said_time_unit,
    said_y_axis,
    spellings,
    squeezed,
    unread_unit,
)
from gazeveil.io.plain.text import FirstRows, comment_of, separator_of

#: What gaze may be counted in.
UNITS = (
    *("deg", "rad", "lonlat", "lonlat-rad", "px", "px-centred", "fraction", "equirect"),
    *("vector", "vector-openxr"),
)
#: Units of directions: x right, y up and z forward (Unity, Varjo) or backward (OpenXR, OpenGL).
VECTOR_UNITS = ("vector", "vector-openxr")
#: Units whose y grows upwards by definition, unless the user says otherwise.
_UP = ("lonlat", "lonlat-rad", *VECTOR_UNITS)
# A key has few values: more than this share of the first rows, and it counts them; people and
# trials have short recordings too.
_MOST_VALUES, _MOST_KEYS = 0.1, 0.5

# The screen of ETDQualitizer's published example.
_VALIDATION_SCREEN = Screen(1920, 1080, 528.0, 297.0, 650.0)
_VALIDATION_KEYS = frozenset({"timestamp", "targetid", "tarx", "tary"})

#: Options that say the layout.
LAYOUT_OPTIONS = frozenset(
    [
        "columns",
        "optional",
        "ignore",
        "valid",
        "metadata",
        "rows",
        "time_unit",
        "unit",
        "x_axis",
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
    """How one file is read: column of each role, units, geometry, and what is not used."""

    columns: tuple[tuple[str, str], ...]
    unused: tuple[str, ...]
    time_unit: str
    unit: str
    y_axis: str
    space: str | None
    screen: Screen | None
    panorama: tuple[float, float] | None
    missing: tuple[float, ...] | None
    separator: str | None
    decimal: str | None
    comment: str
    assumed: bool = False
    rate_hz: float | None = None
    frame_interval_s: float | tuple[tuple[str, float], ...] | None = None
    rows: tuple[tuple[str, str], ...] = ()
    table: str | None = None
    valid: tuple[str, ...] | None = None
    metadata: tuple[tuple[str, object], ...] = ()
    whole_times: bool = False
    x_axis: str = "right"
    comment_said: bool = False
    facts: tuple[tuple[str, Fact], ...] = field(default=(), compare=False)

    def column(self, role: str) -> str | None:
        """The file's column for a role, or None."""
        return dict(self.columns).get(role)


def is_validation(names: Iterable[str]) -> bool:
    """Whether these are the columns of ETDQualitizer's validation data, whose units are known."""
    return {squeezed(n) for n in names} >= _VALIDATION_KEYS


def chosen_columns(options: Mapping[str, object], name: str = "columns") -> dict[str, str]:
    """The option `columns`, or one like it, as role to name."""
    columns = options.get(name)
    return {str(k): str(v) for k, v in columns.items()} if isinstance(columns, Mapping) else {}


def plan_layout(first: FirstRows, options: Mapping[str, object]) -> Layout:
    """Match columns and units, from the options first and from the names second.

    Raises
    ------
    FormatError
        For a column or a unit that neither says; the message names the option.
    """
    path, names = first.path, list(first.names)
    rate_hz = options.get("rate_hz")
    rate_hz = None if rate_hz is None else checks.positive(_OWNER, "rate_hz", rate_hz)
    roles = _roles(first, options, rate_hz is not None)
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
    missing, decimal = options.get("missing"), options.get("decimal")
    if decimal is not None:
        decimal = checks.one_of(_OWNER, "decimal", decimal, (".", ","))
    kept_rows = _mapping(path, names, options, "rows")
    y_axis, y_fact = _y_axis(roles, unit, options, validation)
    used = {*roles.values(), *(name for name, _ in kept_rows), *_listed(options, "ignore")}
    layout = Layout(
        columns=tuple(sorted(roles.items())),
        unused=() if "*" in used else tuple(n for n in names if n and n not in used),
        time_unit=time_unit,
        unit=unit,
        space=_space(path, unit, options, screen),
        panorama=_panorama(path, unit, options.get("panorama")),
        y_axis=y_axis,
        screen=screen,
        missing=None
        if missing is None
        else tuple(
            checks.number(_OWNER, "missing", m)
            for m in (missing if isinstance(missing, tuple | list) else (missing,))
        ),
        separator=separator_of(options),
        decimal=decimal,
        comment=comment_of(options),
        comment_said="comment" in options,
        assumed=assumed or options.get("assumed") is True,
        rate_hz=rate_hz,
        frame_interval_s=interval_s,
        rows=kept_rows,
        table=None if options.get("table") is None else str(options["table"]),
        valid=None if "valid" not in options else _listed(options, "valid"),
        metadata=tuple(dict(options.get("metadata", ())).items()),  # type: ignore[call-overload]
        x_axis=checks.one_of(_OWNER, "x_axis", options.get("x_axis", "right"), ("right", "left")),
        whole_times="t" in roles and all(c.lstrip("+-").isdigit() for c in first.words(roles["t"])),
    )
    facts = {**_layout_facts(layout, options), "y_axis": y_fact}
    return replace(layout, facts=tuple(facts.items()))


def _layout_facts(layout: Layout, options: Mapping[str, object]) -> dict[str, Fact]:
    """Facts of clock, unit, screen and validity."""
    guessed = options.get("guessed", ())
    assert isinstance(guessed, tuple)

    def fact(option: str, value: str, basis: str) -> Fact:
        if option in guessed:
            return Fact(value, GUESSED, "its values")
        return Fact(value, SAID, option) if option in options else Fact(value, FILE, basis)

    clock = layout.column("t")
    if clock is None:
        facts = {"clock": Fact(f"{layout.rate_hz:g} Hz, no column of times", SAID, "rate_hz")}
    else:
        option = "frame_interval_s" if layout.time_unit == "frame" else "time_unit"
        facts = {"clock": fact(option, f"'{clock}', {layout.time_unit}", "name of the column")}
    facts["unit"] = fact("unit", layout.unit, "names of the columns")
    if layout.screen is not None and layout.space == "screen" and not layout.assumed:
        facts["screen"] = Fact(screen_in_words(layout.screen), SAID, "screen")
    flags = [f"'{name}' ({role})" for role, name in layout.columns if role in FLAG_ROLES]
    flags += [f"{m:g} means lost" for m in layout.missing or ()]
    basis = "option 'missing'" if layout.missing else "names of the columns"
    where = SAID if layout.missing else FILE
    facts["validity"] = Fact(", ".join(flags) or "where gaze is a number", where, basis)
    return facts


def _y_axis(
    roles: Mapping[str, str], unit: str, options: Mapping[str, object], validation: bool
) -> tuple[str, Fact]:
    """Direction in which y grows, and where that comes from."""
    said = options.get("y_axis")
    if said is not None:
        axis = checks.one_of(_OWNER, "y_axis", said, ("down", "up"))
        return axis, Fact(axis, SAID, "y_axis")
    if unit in _UP:
        return "up", Fact("up", FILE, "the unit")
    named = said_y_axis(next(roles[f"{eye}y"] for eye in EYES if f"{eye}y" in roles))
    if named is not None or validation:
        axis = named or "down"
        return axis, Fact(axis, FILE, "name of the column")
    return "down", Fact("down", GUESSED, "what is usual")


def _listed(options: Mapping[str, object], name: str) -> tuple[str, ...]:
    """An option of one word or several."""
    value = options.get(name, ())
    words = value if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(w, str | int | float) for w in words):
        checks.refuse(_OWNER, name, "words or numbers", value)
    return tuple(str(w) for w in words)


def _mapping(
    path: Path, names: list[str], options: Mapping[str, object], name: str
) -> tuple[tuple[str, str], ...]:
    """An option of columns and words, with the file's own spelling of each column."""
    value = options.get(name)
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        checks.refuse(_OWNER, name, "a mapping of column name to word", value)
    present = spellings(names)
    for column in value:
        if squeezed(str(column)) not in present:
            raise FormatError(
                path, f"there is no column '{column}' (columns: {listed(names)})", f"Mend {name}=."
            )
    return tuple((present[squeezed(str(c))], str(word)) for c, word in value.items())


def _frame_interval_s(option: object) -> float | tuple[tuple[str, float], ...] | None:
    """Seconds per frame: one number, or one for each stimulus."""
    if isinstance(option, str | os.PathLike):
        option = read_json(Path(option))
    if isinstance(option, Mapping):
        return tuple(
            (str(k), checks.positive(_OWNER, "frame_interval_s", v)) for k, v in option.items()
        )
    return None if option is None else checks.positive(_OWNER, "frame_interval_s", option)


def _roles(first: FirstRows, options: Mapping[str, object], rated: bool) -> dict[str, str]:
    """Role -> column; gaze is among them, and time unless a rate gives it."""
    path, names, ignored = first.path, list(first.names), _listed(options, "ignore")
    free = [n for n in names if n not in ignored and "*" not in ignored]
    roles, chosen = recognise(free), dict[str, str]()
    roles = {r: n for r, n in roles.items() if r not in KEY_ROLES or _is_key(first, r, n)}
    optional = chosen_columns(options, "optional")
    present = spellings(names)
    roles |= {r: present[key] for r, n in optional.items() if (key := squeezed(n)) in present}
    if options.get("columns") is not None:
        chosen = _chosen_columns(path, names, options["columns"])
        # A column the user gave to one role is not taken for another.
        roles = {**{r: n for r, n in roles.items() if n not in chosen.values()}, **chosen}
        if has_gaze(chosen):
            known = {*chosen, *optional}
            roles = {r: n for r, n in roles.items() if r in known or r not in GAZE_ROLES}
    for name in free:
        role = flag_role(name)
        # Only yes and no: codes and other words are asked about.
        coded = "valid" in options or {w.lower() for w in first.words(name)} <= {*YES, *NO}
        if role is not None and role not in roles and name not in roles.values() and coded:
            roles[role] = name
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
    ask_which(path, free, {r: n for r, n in roles.items() if r not in chosen}, chosen)
    return roles


def _is_key(first: FirstRows, role: str, name: str) -> bool:
    """Whether a column tells recordings apart and does not count rows."""
    words = first.words(name)
    most = _MOST_KEYS if role in ("person", "trial") else _MOST_VALUES
    return len(set(words)) <= max(10, most * len(words))


def _chosen_columns(path: Path, names: list[str], columns: object) -> dict[str, str]:
    """The `columns` option with the file's own spelling of each column."""
    if not isinstance(columns, Mapping):
        checks.refuse(_OWNER, "columns", "a mapping of role to column name", columns)
    chosen = {str(role): str(name) for role, name in columns.items()}
    checks.known_options("The columns map of format csv", chosen, ROLES)
    present = spellings(names)
    for role, name in chosen.items():
        if squeezed(name) not in present:
            raise FormatError(
                path,
                f"there is no column '{name}' for '{role}' (columns: {listed(names)})",
                "Mend the columns= map.",
            )
    return {r: n if n in names else present[squeezed(n)] for r, n in chosen.items()}


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
    for eye in EYES:
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
    if unit in ("equirect", *_UP):
        # Angles from straight ahead are those of a screen too, where that is said.
        return "screen" if space == "screen" and unit.startswith("lonlat") else "sphere"
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
