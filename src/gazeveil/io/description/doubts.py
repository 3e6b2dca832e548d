"""Which readings look wrong: trackers taken for people, files taken for people, one person spelled
in two ways, units that give no tracker's rate or no eye's degrees.

A doubt is a sentence for the user and never changes what is read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.cohort import Handle
from gazeveil.io.csv_layout import recognise, said_gaze_unit, said_time_unit
from gazeveil.io.description.guess import FASTEST_HZ, SLOWEST_HZ, time_unit_of
from gazeveil.io.description.peek import LEAST_ROWS, FirstRows
from gazeveil.io.parsing.delimited import YES
from gazeveil.io.parsing.table import UNIT_NS
from gazeveil.io.source import Head, stem

_TRACKERS = (
    "tobii|eyelink|smi|pupil|gazepoint|vive|pico|quest|hololens|varjo|neon|webcam|tracker|camera"
)
_KINDS = (
    "device|glasses|left|right|eye|data|raw|csv|recordings?|gaze|samples?|exports?|session|train|"
    "test|control|patients?|condition|block|trial"
)
_NOT_PEOPLE = re.compile(rf"^(?:(?:{_TRACKERS})(?![a-z]).*|(?:{_KINDS})[\W_]*\d*)$", re.I)
_PERSON = re.compile(
    r"^(?:p|pp|s|sub|subj|subject|user|u|obs|observer|part|participant|vp|person|id|n)[\W_]?\d+$",
    re.I,
)
# What trackers write where there is no gaze, and the share of rows from which it is pointed out.
_LOST, _LEAST_LOST = (0.0, -1.0, -100.0, 9999.0, -9999.0, 99999.0, -32768.0), 0.01
_EYES = ("", "left_", "right_")
# A column of validity that lets fewer rows with gaze pass means it the other way round.
_LEAST_VALID = 0.05
_JOINT = re.compile(r"[_\-. ]+")


def doubts_about_names(handles: Sequence[Handle], root: Path) -> list[str]:
    """Doubts about who was taken for whom, where the path alone said it: recordings under `root`
    whose person is a folder or a file name.
    """
    people = list(dict.fromkeys(h.person for h in handles))
    if not handles:
        return []
    shown = ", ".join(f"'{p}'" for p in people[:4]) + (", ..." if len(people) > 4 else "")
    pattern = suggest_pattern([Path(h.source) for h in handles if h.source], root)
    remedy = f"Say pattern={pattern!r}" if pattern else "Say pattern='{person}/{stimulus}.csv'"
    remedy += " or as your paths have it, as an option or in dataset.toml."
    devices = [p for p in people if _NOT_PEOPLE.match(p)]
    if devices and len(devices) >= 0.5 * len(people):
        return [
            f"The people were taken from folders or file names and are called {shown}: these look"
            f" like trackers or kinds of data, not people. {remedy}"
        ]
    files = len({h.source for h in handles})
    if len(handles) >= 3 and len(people) == len(handles) == files:
        return [
            f"Every file was taken for a person of its own ({len(people)} people, {shown})."
            f" If some of them are one person, what is promised per person is wrong. {remedy}"
        ]
    if pattern and pattern.startswith("{stimulus}/"):
        return [
            f"The people were taken from folders ({shown}), but the file names look like people."
            f" {remedy}"
        ]
    return []


def doubts_about_spelling(people: Iterable[str]) -> list[str]:
    """Doubts about people whose names differ in case, blanks or the form of Unicode alone (a Mac
    and a PC write the same accent in two ways).
    """
    spelled: dict[str, dict[str, None]] = {}
    for person in people:
        # The canonical form first: folding case may undo it.
        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", person).casefold())
        key = "".join(c for c in plain if not c.isspace() and unicodedata.category(c) != "Cf")
        spelled.setdefault(key, {})[person] = None
    alike = [tuple(names) for names in spelled.values() if len(names) > 1]
    if not alike:
        return []
    first = " and ".join(ascii(name[:40]) for name in alike[0][:3])
    more = f", and {len(alike) - 1} more such" if len(alike) > 1 else ""
    return [
        f"The people {first}{more} differ in case, blanks or accents alone. If they are one person,"
        " what is promised per person is wrong: give them one name."
    ]


def suggest_pattern(files: Sequence[Path], root: Path) -> str | None:
    """A pattern that tells fewer people than files, from parts of names that recur; None where the
    names give no hint.
    """
    places = [f.relative_to(root) for f in files if f.is_relative_to(root)]
    if len(places) < 2 or len(places) != len(files):
        return None
    suffixes = {_suffix(p) for p in places}
    parts = [_JOINT.split(stem(p)) for p in places]
    if len(suffixes) != 1:
        return None
    ending = suffixes.pop()
    widths = {len(p) for p in parts}
    depth = {len(p.parts) for p in places}
    if len(widths) != 1 or len(depth) != 1:
        return None
    width, nested = widths.pop(), depth.pop() > 1
    columns = [[p[i] for p in parts] for i in range(width)]
    person = next((i for i, c in enumerate(columns) if all(_PERSON.match(w) for w in c)), None)
    if nested:
        folders = [p.parts[-2] for p in places]
        if person is None or all(_PERSON.match(f) for f in folders):
            return None
        fields = _fields(parts, places, person, "{}")
        return "{stimulus}/" + fields + ending if fields else None
    if person is None and width > 1:
        recurring = [i for i, c in enumerate(columns) if 1 < len(set(c)) < len(c)]
        person = recurring[0] if recurring else None
    if person is None or width < 2 or len(set(columns[person])) == len(places):
        return None
    fields = _fields(parts, places, person, "{stimulus}")
    return fields + ending if fields else None


def _fields(
    parts: Sequence[Sequence[str]], places: Sequence[Path], person: int, rest: str
) -> str | None:
    """The pattern of a file name whose `person`-th part is the person."""
    joints = {tuple(_JOINT.findall(stem(p))) for p in places}
    if len(joints) != 1:
        return None
    joint = joints.pop()
    width = len(parts[0])
    words = ["{person}" if i == person else "" for i in range(width)]
    if width == 1:
        return "{person}"
    # What stands on one side of the person is one field, so that a stimulus may have joints too.
    before, after = person > 0, person < width - 1
    text = ""
    if before:
        text += (rest if not after else "{}") + joint[person - 1]
    text += words[person]
    if after:
        text += joint[person] + rest
    return text


def _suffix(path: Path) -> str:
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return name[len(stem(path)) :]


def doubts_about_units(files: Iterable[Path], options: Mapping[str, object]) -> list[str]:
    """Doubts about the units of delimited files, from the first rows of the first one
    that has any.
    """
    for path in files:
        rows = FirstRows.of(Head.of(path), options)
        if rows.is_headed and len(rows.cells) >= LEAST_ROWS:
            said = options.get("columns")
            chosen = {str(k): str(v) for k, v in said.items()} if isinstance(said, Mapping) else {}
            roles = {**recognise(rows.names), **chosen}
            return [
                *_time_doubts(rows, roles, options),
                *_gaze_doubts(rows, roles, options),
                *_valid_doubts(rows, roles, options),
            ]
    return []


def _time_doubts(
    rows: FirstRows, roles: Mapping[str, str], options: Mapping[str, object]
) -> list[str]:
    column = roles.get("t")
    if column not in rows.names or column is None or "frame_interval_s" in options:
        return []
    unit = options.get("time_unit") or said_time_unit(column)
    ticks = rows.numbers(column)
    steps = np.diff(ticks[np.isfinite(ticks)])
    steps = steps[steps > 0]
    if unit not in UNIT_NS or len(steps) < LEAST_ROWS // 2:
        return []
    rate_hz = 1e9 / (float(np.median(steps)) * UNIT_NS[str(unit)])
    other = time_unit_of(ticks)
    sentences = []
    if not SLOWEST_HZ <= rate_hz <= FASTEST_HZ and other not in (None, unit):
        sentences.append(
            f"Times in '{column}' of {rows.path.name} are taken for {unit}, which makes"
            f" {rate_hz:.4g} Hz: they look like {other}. Say time_unit='{other}'."
        )
    said_hz = options.get("rate_hz")
    if isinstance(said_hz, int | float) and not 0.8 < rate_hz / said_hz < 1.25:
        sentences.append(
            f"rate_hz={said_hz:g} was said, but times in '{column}' of {rows.path.name} make"
            f" {rate_hz:.4g} Hz. Check the rate and the unit of time."
        )
    return sentences


def _gaze_doubts(
    rows: FirstRows, roles: Mapping[str, str], options: Mapping[str, object]
) -> list[str]:
    pair = next(
        ((roles[f"{e}x"], roles[f"{e}y"]) for e in _EYES if {f"{e}x", f"{e}y"} <= roles.keys()),
        None,
    )
    if pair is None or not set(pair) <= set(rows.names):
        return []
    unit = options.get("unit") or said_gaze_unit(pair)
    values = np.stack([rows.numbers(c) for c in pair])
    values = values[:, np.isfinite(values).all(axis=0)]
    if values.shape[1] < LEAST_ROWS:
        return []
    lost = _lost_doubts(rows, pair, values, options)
    if unit != "deg":
        return lost
    whole = bool((values == np.round(values)).all()) and len(np.unique(values)) > 5
    if whole or (float(np.percentile(np.abs(values), 98)) > 90 and values.min() < 0):
        return [
            f"Gaze in '{pair[0]}' and '{pair[1]}' of {rows.path.name} is taken for degrees, but"
            f" {'all values are whole numbers' if whole else 'it runs beyond 90'}: these look like"
            " pixels. Say unit='px' and the screen.",
            *lost,
        ]
    return lost


def _lost_doubts(
    rows: FirstRows, pair: tuple[str, str], values: Floats, options: Mapping[str, object]
) -> list[str]:
    """Doubts about numbers that stand for a lost sample and look like places."""
    said = options.get("missing", ())
    known = said if isinstance(said, list | tuple) else (said,)
    for number in _LOST:
        share = float((values == number).all(axis=0).mean())
        if share >= _LEAST_LOST and number not in known:
            return [
                f"{100 * share:.0f} % of the first rows of {rows.path.name} have {number:g} in both"
                f" '{pair[0]}' and '{pair[1]}'. If that means lost, say missing={number:g}."
            ]
    return []


def _valid_doubts(
    rows: FirstRows, roles: Mapping[str, str], options: Mapping[str, object]
) -> list[str]:
    """Doubts about columns of validity that call the rows with gaze lost."""
    for role in ("valid", "left_valid", "right_valid"):
        column, eye = roles.get(role), role.removesuffix("valid")
        if column is None or column not in rows.names:
            continue
        seen = _seen(rows, roles, (eye,) if eye else _EYES, options)
        words = [row[rows.names.index(column)].strip().lower() for row in rows.cells]
        passed = int((np.isin(words, YES) & seen).sum())
        count = int(seen.sum())
        if count >= LEAST_ROWS and passed < _LEAST_VALID * count:
            return [
                f"The column '{column}' of {rows.path.name} calls {count - passed} of the first"
                f" {count} samples that have gaze lost: 1, yes, true and valid mean valid there, 0"
                " means lost. If 0 means valid, as Tobii writes it, write 1 for valid and 0 for"
                " lost; if the column is something else, rename it."
            ]
    return []


def _seen(
    rows: FirstRows, roles: Mapping[str, str], eyes: Iterable[str], options: Mapping[str, object]
) -> Bools:
    """Rows in which one of these eyes has gaze."""
    said = options.get("missing", ())
    lost = [*_LOST, *(said if isinstance(said, list | tuple) else (said,))]
    seen = np.zeros(len(rows.cells), dtype=np.bool_)
    for eye in eyes:
        pair = [n for a in "xy" if (n := roles.get(f"{eye}{a}")) in rows.names and n is not None]
        if len(pair) == 2:
            x, y = (rows.numbers(name) for name in pair)
            seen |= np.isfinite(x) & np.isfinite(y) & ~((x == y) & np.isin(x, lost))
    return seen
