"""Doubts about a table: people or trials that merge, validity that is not used, numbers that mean
lost, dead eyes, times that stand twice, units that the values deny.

Checks of the first rows run when a table is found, checks of all rows when it is read. A doubt
never drops a row. Two findings change what is read and say so: a number that only a tracker writes
for "lost", and an eye that never moves beside one that does, are lost samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gaze.facts import Doubt
from gazeveil.io.parsing.table import UNIT_NS, YES, printable
from gazeveil.io.plain.guess import (
    FASTEST_HZ,
    LOST_CODES,
    SLOWEST_HZ,
    gaze_of,
    gaze_unit_of,
    is_code,
    missing_of,
    time_unit_of,
)
from gazeveil.io.plain.layout import Layout
from gazeveil.io.plain.roles import (
    EYES,
    FLAG_ROLES,
    PUPIL_ROLES,
    VALIDITY_WORDS,
    key_role,
    squeezed,
)
from gazeveil.io.plain.text import LEAST_ROWS, FirstRows

#: Columns in which 0 means that there is no eye, where they ever hold more.
SURE_ROLES = ("confidence", *PUPIL_ROLES)
# A step of the clock from which it counts as a jump, in usual steps.
_JUMP_STEPS = 20
# Columns that separate recordings change at breaks of the clock, with few exceptions.
_AT_BREAKS = 0.9
# Columns with such a name may separate recordings, if they hold long runs of one word.
_MAY_SEPARATE = re.compile(
    r"(?:id|code|name|item|page|condition|cond|block|phase|group|site|run|round|section|level|"
    r"list|question|text|sentence|paragraph|version|set|file|recording|bedingung|gruppe|条件)"
    r"(?:s|id|no|nr|num|number|name|index|idx|order)*"
)
_PERSON_LIKE = re.compile(r"(?:id|code|name|who|wer|user|姓名|编号)(?:no|nr|number|name)*")
_LONG_RUN = 50
# A code of a lost sample: its share of the samples, and the least number of them.
_CODE_SHARE, _CODE_COUNT = 0.005, 5
# Pairs that stand so often are no gaze; eyes so far apart do not look at one place.
_REPEATED_SHARE, _REPEATED_WHOLE = 0.05, 0.2
_APART_DEG = 5.0
# A column of validity that lets fewer rows with gaze pass means it the other way round.
_LEAST_VALID = 0.05
_MOST_WORDS = 10_000
#: Units that values of one kind fit.
_FITS = {
    "px": ("px", "px-centred", "equirect"),
    "px-centred": ("px-centred", "px"),
    "fraction": ("fraction", "rad", "lonlat-rad", "vector", "vector-openxr", "deg"),
    "deg": ("deg", "lonlat", "rad", "lonlat-rad", "px-centred"),
}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{printable(n)}'" for n in names)


def _toml(values: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{v}"' for v in values) + "]"


def first_doubts(first: FirstRows, layout: Layout, options: Mapping[str, object]) -> list[Doubt]:
    """Doubts about the layout of a file, from its first rows."""
    if len(first.cells) < LEAST_ROWS:
        return []
    return [
        *_y_doubts(first, layout),
        *_time_doubts(first, layout, options),
        *_unit_doubts(first, layout, options),
        *_valid_doubts(first, layout, options),
        *unused_validity(first.path.name, {n: len(set(first.words(n))) for n in layout.unused}),
    ]


def _y_doubts(first: FirstRows, layout: Layout) -> list[Doubt]:
    fact = dict(layout.facts)["y_axis"]
    if fact.origin != "guessed":
        return []
    column = next(n for e in EYES if (n := layout.column(f"{e}y")) is not None)
    return [
        Doubt(
            "y_axis",
            f"'{column}' of {first.path.name} is taken to grow downwards; where it grows upwards,"
            " as PsychoPy's does, say y_axis='up'.",
            '[units]\ny_axis = "down"',
        )
    ]


def _time_doubts(first: FirstRows, layout: Layout, options: Mapping[str, object]) -> list[Doubt]:
    column, unit = layout.column("t"), layout.time_unit
    if column is None or unit not in UNIT_NS:
        return []
    ticks = first.numbers(column)
    steps = np.diff(ticks[np.isfinite(ticks)])
    steps = steps[steps > 0]
    if len(steps) < LEAST_ROWS // 2:
        return []
    rate_hz = 1e9 / (float(np.median(steps)) * UNIT_NS[unit])
    other = time_unit_of(ticks)
    doubts = []
    if not SLOWEST_HZ <= rate_hz <= FASTEST_HZ and other not in (None, unit):
        doubts.append(
            Doubt(
                "clock",
                f"Times in '{column}' of {first.path.name} are taken for {unit}, which makes"
                f" {rate_hz:.4g} Hz: they look like {other}. Say time_unit='{other}'.",
                f'[units]\ntime = "{other}"',
            )
        )
    said_hz = options.get("rate_hz")
    if isinstance(said_hz, int | float) and not 0.8 < rate_hz / said_hz < 1.25:
        doubts.append(
            Doubt(
                "clock",
                f"rate_hz={said_hz:g} was said, but times in '{column}' of {first.path.name} make"
                f" {rate_hz:.4g} Hz. Check the rate and the unit of time.",
            )
        )
    return doubts


def _unit_doubts(first: FirstRows, layout: Layout, options: Mapping[str, object]) -> list[Doubt]:
    for x_name, y_name, x, y in gaze_of(first, dict(layout.columns), options):
        looks = gaze_unit_of(x, y)
        seen = np.isfinite(x) & np.isfinite(y) & ~is_code(x, y)
        values = np.stack((x[seen], y[seen]))
        if values.shape[1] < LEAST_ROWS:
            continue
        reason = ""
        if layout.unit == "deg":
            whole = bool((values == np.round(values)).all()) and len(np.unique(values)) > 5
            far = float(np.percentile(np.abs(values), 98)) > 90 and values.min() < 0
            beyond = far and layout.space != "sphere"
            reason = "it runs beyond 90" if beyond else ""
            reason = "all values are whole numbers" if whole else reason
            looks = "px" if reason else looks
        around = layout.unit == "deg" and layout.space != "screen"  # up to 360 on a sphere
        if not reason and not around and looks is not None and layout.unit not in _FITS[looks]:
            low, high = values.min(), values.max()
            reason = f"it runs from {low:g} to {high:g}"
        if reason and looks is not None:
            words = {"px": "pixels", "px-centred": "pixels from the centre", "deg": "degrees"}
            taken = words.get(layout.unit, layout.unit)
            needs = " and the screen" if looks in ("px", "px-centred", "fraction") else ""
            return [
                Doubt(
                    "unit",
                    f"Gaze in '{x_name}' and '{y_name}' of {first.path.name} is taken for {taken},"
                    f" but {reason}: these look like {words.get(looks, looks + 's')}. Say"
                    f" unit='{looks}'{needs}.",
                    f'[units]\ngaze = "{looks}"',
                )
            ]
    return []


def _valid_doubts(first: FirstRows, layout: Layout, options: Mapping[str, object]) -> list[Doubt]:
    """Doubts about columns of validity that call the rows with gaze lost."""
    for role, column in layout.columns:
        if role not in FLAG_ROLES:
            continue
        eye = role.removesuffix("valid").removesuffix("lost")
        lost = missing_of(options)
        seen = np.zeros(len(first.cells), dtype=np.bool_)
        pairs = {r: n for r, n in layout.columns if not eye or r.startswith(eye)}
        for _, _, x, y in gaze_of(first, pairs, options):
            seen |= np.isfinite(x) & np.isfinite(y) & ~is_code(x, y, lost)
        yes = np.isin([w.lower() for w in first.words(column)], YES)
        passed = int(((yes if role.endswith("valid") else ~yes) & seen).sum())
        count = int(seen.sum())
        if count >= LEAST_ROWS and passed < _LEAST_VALID * count:
            return [
                Doubt(
                    "validity",
                    f"The column '{column}' of {first.path.name} calls {count - passed} of the"
                    f" first {count} samples that have gaze lost: 1, yes, true and valid mean"
                    f" {role.removeprefix(eye)} there, 0 means the contrary. If 0 means valid, as"
                    " Tobii writes it, write 1 for valid and 0 for lost; if the column is something"
                    " else, rename it.",
                    f"ignore = {_toml([column])}",
                )
            ]
    return []


def unused_validity(file: str, distinct: Mapping[str, int]) -> list[Doubt]:
    """The doubt about columns that are not used and may say which samples are lost; `distinct` has
    the number of different words in each.
    """
    names = [n for n, words in distinct.items() if words > 1 and VALIDITY_WORDS.search(n)]
    if not names:
        return []
    column = names[0]
    return [
        Doubt(
            "validity",
            f"{_listed(names)} of {file} {'is' if len(names) == 1 else 'are'} not used. If it says"
            f" which samples are lost, say columns={{'valid': '{column}'}} (1 is valid; other codes"
            f" with valid=[...]) or columns={{'lost': '{column}'}} (1 is lost); if not,"
            f" ignore={names}.",
            f"ignore = {_toml(names)}",
        )
    ]


@dataclass
class FileSurvey:
    """Rows of a file in their order: where the clock breaks, and which unused columns change there.

    Parameters
    ----------
    layout : Layout
        How the file is read.
    """

    layout: Layout
    rows: int = 0
    breaks: int = 0
    twice: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    at_breaks: dict[str, int] = field(default_factory=dict)
    words: dict[str, set[str | None]] = field(default_factory=dict)
    alternating: set[str] | None = None
    _step: float = 0.0
    _last: tuple[int, pl.DataFrame] | None = None

    def add(self, frame: pl.DataFrame, t_ns: Ints, keys: tuple[str, ...]) -> None:
        """Take in the next rows; breaks where a key column changes are no surprise."""
        if not len(t_ns):
            return
        unused = [n for n in self.layout.unused if n in frame.columns]
        texts = frame.select(pl.col(*unused, *keys).cast(pl.String)) if unused or keys else None
        times = t_ns
        if self._last is not None:
            times = np.concatenate(([self._last[0]], t_ns))
            texts = None if texts is None else pl.concat([self._last[1], texts])
        steps = np.diff(times)
        if not self._step:
            rising = steps[steps > 0]
            self._step = float(np.median(rising)) if len(rising) else 0.0
        broken = (steps < 0) | (steps > _JUMP_STEPS * self._step if self._step else False)
        same = steps == 0
        alone = same & ~np.append(False, same[:-1]) & ~np.append(same[1:], False)
        self.rows += len(t_ns)
        self.twice += 2 * int(np.count_nonzero(alone))
        if texts is not None:
            changed = texts.select(pl.all().ne_missing(pl.all().shift(1))).slice(1)
            for name in keys:
                broken &= ~changed[name].to_numpy()
            for name in unused:
                self._column(name, texts[name], changed[name].to_numpy(), broken)
        self.breaks += int(np.count_nonzero(broken))
        self._last = int(t_ns[-1]), (pl.DataFrame() if texts is None else texts.tail(1))

    def _column(self, name: str, words: pl.Series, changed: Bools, broken: Bools) -> None:
        self.changes[name] = self.changes.get(name, 0) + int(np.count_nonzero(changed))
        at = int(np.count_nonzero(changed & broken))
        self.at_breaks[name] = self.at_breaks.get(name, 0) + at
        known = self.words.setdefault(name, set())
        if len(known) < _MOST_WORDS:
            known |= set(words.unique().to_list())

    def doubts(self, file: str) -> list[Doubt]:
        """Doubts about all rows together."""
        distinct = {n: len(w - {None, ""}) for n, w in self.words.items()}
        return [
            *self._merged(file, distinct),
            *self._doubled(file, distinct),
            *unused_validity(file, distinct),
        ]

    def separators(self) -> list[str]:
        """Unused columns that change where the clock breaks and nowhere else, or that hold long
        runs of words, each word in one run or under a name that may separate recordings.
        """
        found = []
        for name, words in self.words.items():
            changes, at_breaks = self.changes[name], self.at_breaks[name]
            if len(words - {None}) < 2 or VALIDITY_WORDS.search(name):
                continue
            named = _MAY_SEPARATE.fullmatch(squeezed(name)) is not None
            once = changes + 1 == len(words) and not any("." in w for w in words if w)
            in_runs = changes * _LONG_RUN <= self.rows and (named or once)
            if (at_breaks and at_breaks >= _AT_BREAKS * changes) or in_runs:
                found.append(name)
        return found

    def _merged(self, file: str, distinct: Mapping[str, int]) -> list[Doubt]:
        names = self.separators()
        if not names:
            return []
        roles = self._proposed(names, distinct)
        said = ", ".join(f"'{r}': '{n}'" for r, n in roles.items())
        changing = "changes" if len(names) == 1 else "change"
        where = (
            f"The clock of {file} goes back or jumps {self.breaks:,} times, and {_listed(names)}"
            f" {changing} there"
            if self.breaks
            else f"{_listed(names)} of {file} {changing} in long runs"
        )
        lines = "\n".join(f'{r} = "{n}"' for r, n in roles.items())
        return [
            Doubt(
                "session",
                f"{where}: these rows look like several recordings that are read as one. Say"
                f" columns={{{said}}}, or ignore={names} if they are one recording.",
                f"[columns]\n{lines}",
            )
        ]

    def _proposed(self, names: list[str], distinct: Mapping[str, int]) -> dict[str, str]:
        """Roles for columns that separate: by name, else the one that changes most is the trial."""
        used = {r for r, _ in self.layout.columns}
        roles: dict[str, str] = {}
        for name in names:
            role = key_role(name)
            if role is None and _PERSON_LIKE.fullmatch(squeezed(name)):
                role = "person"
            if role is not None and role not in used:
                roles.setdefault(role, name)
        rest = [n for n in names if n not in roles.values()]
        if rest and not {"trial", "stimulus"} & {*roles, *used}:
            roles["trial"] = max(rest, key=lambda n: (self.at_breaks[n], self.changes[n]))
        return roles or {"trial": names[0]}

    def _doubled(self, file: str, distinct: Mapping[str, int]) -> list[Doubt]:
        if self.rows < 2 * LEAST_ROWS or self.twice < 0.95 * self.rows:
            return []
        eyes = [n for n, c in self.changes.items() if distinct[n] == 2 and c >= self.rows - 2]
        if eyes:
            column = eyes[0]
            word = sorted(str(w) for w in self.words[column] if w)[0]
            return [
                Doubt(
                    "clock",
                    f"Each time of {file} stands twice, and '{column}' alternates: rows of two"
                    f" eyes. Say rows={{'{column}': '{word}'}} for one of them, or write one row"
                    " for each time with left_x, left_y, right_x and right_y.",
                    f'rows = {{"{column}" = "{word}"}}',
                )
            ]
        rate_hz = 2e9 / self._step if self._step else 0.0
        return [
            Doubt(
                "clock",
                f"Each time of {file} stands twice, so that half of the samples are lost. If the"
                f" clock is coarse, say rate_hz={rate_hz:g}; if two eyes take turns, write one row"
                " for each time.",
                f"rate_hz = {rate_hz:g}",
            )
        ]


@dataclass
class GazeSurvey:
    """Gaze of one recording in the file's units: its extent, codes of lost samples, dead eyes, and
    which of pupil and confidence were measured at all.
    """

    measured: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    codes: dict[str, dict[float, int]] = field(default_factory=dict)
    low: dict[str, float] = field(default_factory=dict)
    high: dict[str, float] = field(default_factory=dict)
    whole: dict[str, bool] = field(default_factory=dict)
    top: dict[str, tuple[float, float]] = field(default_factory=dict)
    top_counts: dict[str, int] = field(default_factory=dict)

    def add(self, frame: pl.DataFrame) -> None:
        """Take in the next rows."""
        self.measured |= {r for r in SURE_ROLES if r in frame.columns and (frame[r] > 0).any()}
        for eye in EYES:
            if f"{eye}x" not in frame.columns or f"{eye}y" not in frame.columns:
                continue
            x, y = (frame[f"{eye}{axis}"].to_numpy() for axis in "xy")
            self._pair(eye, x, y)

    def _pair(self, eye: str, x: Floats, y: Floats) -> None:
        seen = np.isfinite(x) & np.isfinite(y)
        alike = seen & (x == y)
        codes = self.codes.setdefault(eye, {})
        for code in LOST_CODES if alike.any() else ():
            count = int(np.count_nonzero(alike & (x == code)))
            if count:
                codes[code] = codes.get(code, 0) + count
        self.counts[eye] = self.counts.get(eye, 0) + int(np.count_nonzero(seen))
        rest = seen & ~is_code(x, y) if codes else seen
        for axis, values in (("x", x[rest]), ("y", y[rest])):
            if len(values):
                name = f"{eye}{axis}"
                self.low[name] = min(self.low.get(name, np.inf), float(values.min()))
                self.high[name] = max(self.high.get(name, -np.inf), float(values.max()))
                is_whole = bool((values[:200] == np.round(values[:200])).all())
                self.whole[eye] = self.whole.get(eye, True) and is_whole
        if eye not in self.top and rest.any():
            self.top[eye] = _commonest(x[rest], y[rest])
        if eye in self.top:
            at = (x == self.top[eye][0]) & (y == self.top[eye][1])
            self.top_counts[eye] = self.top_counts.get(eye, 0) + int(np.count_nonzero(at))

    def lost_codes(self, eye: str, corner: bool) -> list[float]:
        """Numbers that mean lost, not gaze: outside of what else the eye looks at, or 0 where that
        is the corner of the screen, or any where gaze has fractions of a unit.
        """
        found = []
        for code, count in self.codes.get(eye, {}).items():
            if count < max(_CODE_COUNT, _CODE_SHARE * self.counts[eye]):
                continue
            outside = any(
                not self.low.get(f"{eye}{a}", np.inf) <= code <= self.high.get(f"{eye}{a}", -np.inf)
                for a in "xy"
            )
            if outside or (corner and code == 0) or not self.whole.get(eye, True):
                found.append(code)
        return found

    def still(self, eye: str) -> bool:
        """Whether an eye never moves: its samples are one place, or a code."""
        names = (f"{eye}x", f"{eye}y")
        return self.counts.get(eye, 0) >= LEAST_ROWS and all(
            self.low.get(n, 0.0) == self.high.get(n, 0.0) for n in names
        )

    def dead(self) -> list[str]:
        """Eyes that never move beside one that does."""
        still = [eye for eye in self.counts if self.still(eye)]
        return still if 0 < len(still) < len(self.counts) else []

    def doubts(self, file: str, layout: Layout, corner: bool) -> list[Doubt]:
        """Doubts about gaze, with what was done."""
        doubts = []
        for eye in self.counts if layout.missing != () else ():
            pair = _listed(layout.column(f"{eye}{axis}") or "" for axis in "xy")
            n = max(1, self.counts[eye])
            if eye in self.dead():
                doubts.append(
                    Doubt(
                        "validity",
                        f"Gaze in {pair} of {file} never moves: that eye is taken for lost.",
                        "",
                    )
                )
                continue
            taken = self.lost_codes(eye, corner) if layout.missing is None else ()
            for code, count in self.codes.get(eye, {}).items():
                if count < max(_CODE_COUNT, _CODE_SHARE * n):
                    continue
                share = f"{100 * count / n:.2g} % of the samples of {file} have {code:g} in both"
                verdict = (
                    f"taken for lost. Say missing=[{code:g}], or missing=[] if it is gaze."
                    if code in taken
                    else f"taken for gaze. If that means lost, say missing=[{code:g}]."
                )
                doubts.append(
                    Doubt(
                        "validity", f"{share} {pair}: {verdict}", f"[units]\nmissing = [{code:g}]"
                    )
                )
            doubts += self._repeated(eye, pair, file)
        return doubts

    def _repeated(self, eye: str, pair: str, file: str) -> list[Doubt]:
        n, count = self.counts[eye], self.top_counts.get(eye, 0)
        least = _REPEATED_WHOLE if self.whole.get(eye, True) else _REPEATED_SHARE
        if n < 10 * LEAST_ROWS or count < least * n or self.still(eye):
            return []
        x, y = self.top[eye]
        return [
            Doubt(
                "validity",
                f"{100 * count / n:.2g} % of the samples of {file} have exactly ({x:g}, {y:g}) in"
                f" {pair}, which no eye does. If that means lost, say missing=[{x:g}, {y:g}].",
                f"[units]\nmissing = [{x:g}, {y:g}]",
            )
        ]


def _commonest(x: Floats, y: Floats) -> tuple[float, float]:
    """The pair of numbers that stands most often among a thousand of them."""
    step = max(1, len(x) // 1000)
    pairs, counts = np.unique(x[::step] + 1j * y[::step], return_counts=True)
    top = pairs[counts.argmax()]
    return float(top.real), float(top.imag)


def apart_doubts(file: str, left_deg: Floats, right_deg: Floats) -> list[Doubt]:
    """The doubt about eyes that look at places far from one another."""
    both = np.isfinite(left_deg).all(axis=1) & np.isfinite(right_deg).all(axis=1)
    if np.count_nonzero(both) < LEAST_ROWS:
        return []
    gap = np.abs(left_deg[both] - right_deg[both])
    gap = np.minimum(gap, 360.0 - gap)  # longitudes go round
    apart = float(np.median(np.hypot(gap[:, 0], gap[:, 1])))
    if apart <= _APART_DEG:
        return []
    return [
        Doubt(
            "validity",
            f"The eyes of {file} look {apart:.1f} degrees apart in the median, so that their mean"
            " is no gaze. Check the columns and units, or name one eye with columns=.",
        )
    ]
