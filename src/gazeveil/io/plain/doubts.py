"""Doubts about a table: people or trials that merge, validity that is not used, numbers that mean
lost, dead eyes, times that stand twice, units that the values deny.

Checks of the first rows run when a table is found, checks of all rows when it is read. A doubt
never drops a row. Two findings change what is read and say so: a number that only a tracker writes
for "lost", and an eye that never moves beside one that does, are lost samples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from gazeveil.io.plain.layout import Layout, chosen_columns
from gazeveil.io.plain.roles import (
    EYES,
    FLAG_ROLES,
    KEY_ROLES,
    PUPIL_ROLES,
    key_columns,
    may_say_lost,
    squeezed,
)
from gazeveil.io.plain.text import LEAST_ROWS, FirstRows

#: Columns in which 0 means that there is no eye, where they ever hold more.
SURE_ROLES = ("confidence", *PUPIL_ROLES)
# A step of the clock from which it counts as a jump, in usual steps.
_JUMP_STEPS = 20
# Columns that separate recordings change at breaks of the clock, with few exceptions.
_AT_BREAKS = 0.9
# Columns with such a name may separate recordings, if they hold long runs of one word; others, if
# the runs are as long in seconds too.
_MAY_SEPARATE = re.compile(
    r"(?:id|code|name|item|page|condition|cond|block|phase|group|site|run|round|section|level|"
    r"list|question|text|sentence|paragraph|version|set|file|recording|bedingung|gruppe|条件)"
    r"(?:s|id|no|nr|num|number|name|index|idx|order)*"
)
_PERSON_LIKE = re.compile(
    r"(?:id|code|name|who|wer|user|sujeto|sujet|participante?|student|kind|child|driver|fahrer|"
    r"email|kürzel|proefpersoon|deelnemer|soggetto|pseudonym|姓名|编号)(?:no|nr|id|number|name|code)*"
)
_EYE_WORDS = frozenset({"l", "r", "left", "right", "links", "rechts"})
_LONG_RUN, _LONG_RUN_S = 50, 1.0
_FRACTION = re.compile(r"[-+]?\d*[.,]\d+(?:e[-+]?\d+)?", re.I)
# Words that take turns: at most so many, in nearly all rows.
_MOST_TURNS = 200
# A code of a lost sample: its share of the samples, and the least number of them.
_CODE_SHARE, _CODE_COUNT = 0.005, 5
# Pairs that stand so often are no gaze; eyes so far apart do not look at one place.
_REPEATED_SHARE, _REPEATED_WHOLE = 0.02, 0.2
_APART_DEG = 5.0
# Gaze that is further from the eyes than this share of their spread is something else.
_PAIR_APART = 0.2
# Rows that come more slowly and have a duration are fixations.
_SAMPLES_HZ, _DURATION = 8.0, re.compile(r"dur|dauer|end", re.I)
# Places outside of the screen: samples that are exactly there, and the share that may be.
_LEAST_THERE, _MOST_OUTSIDE = 3, 0.1
# A column of validity that lets fewer rows with gaze pass means it the other way round.
_LEAST_VALID = 0.5
_MOST_WORDS = 10_000
#: Units that values of one kind fit.
_FITS = {
    "px": ("px", "px-centred", "equirect"),
    "px-centred": ("px-centred",),
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
    keyed = any(r in KEY_ROLES for r, _ in layout.columns)
    unused = {n: len(set(first.words(n))) for n in layout.unused}
    return [
        *_y_doubts(first, layout),
        *_time_doubts(first, layout, options),
        *_unit_doubts(first, layout, options),
        *_valid_doubts(first, layout, options),
        *_pair_doubts(first, layout, options),
        *_key_doubts(first, layout, options),
        # Of a table of many recordings all rows are looked at before anything is read.
        *(() if keyed else unused_validity(first.path.name, unused)),
    ]


def _key_doubts(first: FirstRows, layout: Layout, options: Mapping[str, object]) -> list[Doubt]:
    """Doubts about columns that name recordings: two that fit one role and say different things,
    and those that have too many words to be used.
    """
    doubts, file = [], first.path.name
    said = {*chosen_columns(options), *options}
    for role, names in key_columns((*dict(layout.columns).values(), *layout.unused)).items():
        column, topic = layout.column(role), "person" if role == "person" else "session"
        others = [n for n in names if n in layout.unused]
        if role in said or not others:
            continue
        if column is None:
            name, count = others[0], len(set(first.words(others[0])))
            sentence = (
                f"'{name}' of {file} has {count} values in the first {len(first.cells)} rows and is"
                f" not used. If it tells recordings apart, say columns={{'{role}': '{name}'}}, else"
                f" ignore=['{name}']."
            )
            doubts += [Doubt(topic, sentence, f'[columns]\n{role} = "{name}"')] * (count > 1)
            continue
        rivals = [n for n in others if not _say_the_same(first, n, column)]
        if rivals:
            sentence = (
                f"'{column}' of {file} is taken for the {role}, and {_listed(rivals)} may be it"
                f" too. Say columns={{'{role}': ...}}, or ignore={rivals}."
            )
            lines = "\n".join(f'{role} = "{n}"' for n in (column, *rivals))
            doubts.append(Doubt(topic, sentence, f"[columns]\n{lines}"))
    return doubts


def _say_the_same(first: FirstRows, one: str, other: str) -> bool:
    """Whether two columns tell the same rows apart; of two that have one word each, whether their
    names begin alike (`participant_id`, `participant_no`).
    """
    words = first.words(one), first.words(other)
    pairs = len(set(zip(*words, strict=True)))
    akin = pairs > 1 or squeezed(one)[:4] == squeezed(other)[:4]
    return akin and all(len(set(w)) == pairs for w in words)


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
    lasting = [n for n in layout.unused if _DURATION.match(n)]
    if rate_hz < _SAMPLES_HZ and lasting:
        doubts.append(
            Doubt(
                "clock",
                f"Rows of {first.path.name} come at {rate_hz:.2g} Hz, and {_listed(lasting)} stands"
                " beside them: these look like fixations, not samples of gaze. Export the samples.",
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


def _pair_doubts(first: FirstRows, layout: Layout, options: Mapping[str, object]) -> list[Doubt]:
    """Doubts about a pair of gaze that is not where the eyes look, and about degrees that are all
    positive.
    """
    pairs = gaze_of(first, dict(layout.columns), options)
    places = [np.stack((x, y)) for _, _, x, y in pairs]
    names, file = _listed(pairs[0][:2]), first.path.name
    if layout.unit == "deg" and layout.space == "screen" and np.nanmin(places[0]) >= 0:
        words = (
            f"Degrees in {names} of {file} are all positive, and degrees of a screen count from its"
            " centre. If they count from a corner, subtract its centre."
        )
        return [Doubt("unit", words, '[units]\ngaze = "deg"')]
    if len(places) < 3 or layout.column("x") is None:
        return []
    eyes = np.stack(places[1:])
    off = np.nanmedian(np.abs(places[0] - np.nanmean(eyes, axis=0)))
    if off <= _PAIR_APART * np.nanstd(eyes):
        return []
    said = ", ".join(f"'{r}': '{n}'" for r, n in layout.columns if r[-2:] in ("_x", "_y"))
    words = (
        f"{names} of {file} are taken for gaze and are not where the eyes look: they may be a"
        f" target or a mouse. If so, say columns={{{said}}}."
    )
    return [Doubt("unit", words, f'[columns]\nx = "{pairs[0][0]}"\ny = "{pairs[0][1]}"')]


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
    names = [n for n, words in distinct.items() if words > 1 and may_say_lost(n)]
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
    """Rows of a file, recording by recording: where the clock breaks, which columns change there or
    take turns, and how often a recording goes on behind rows of another.

    Parameters
    ----------
    layout : Layout
        How the file is read.
    """

    layout: Layout
    rows: int = 0
    breaks: int = 0
    twice: int = 0
    runs: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    at_breaks: dict[str, int] = field(default_factory=dict)
    words: dict[str, set[str | None]] = field(default_factory=dict)
    turns: set[str] = field(default_factory=set)
    _step: float = 0.0
    _parts: dict[tuple[str, ...], int] = field(default_factory=dict)
    _at: int = -1
    _last: tuple[int, int, pl.DataFrame] | None = None

    def add(
        self, frame: pl.DataFrame, t_ns: Ints, groups: Sequence[tuple[tuple[str, ...], Ints]]
    ) -> None:
        """Take in the next rows; `groups` has the rows of each recording."""
        order = np.concatenate([rows for _, rows in groups])
        if not len(order):
            return
        numbers = [self._parts.setdefault(part, len(self._parts)) for part, _ in groups]
        part = np.repeat(numbers, [len(rows) for _, rows in groups])
        in_file = part[np.argsort(order)]
        self.runs += int(np.count_nonzero(np.diff(in_file))) + int(in_file[0] != self._at)
        self._at = int(in_file[-1])
        flags = [n for r, n in self.layout.columns if r in FLAG_ROLES]
        names = [n for n in dict.fromkeys((*self.layout.unused, *flags)) if n in frame.columns]
        texts, times = (
            pl.DataFrame({n: frame[n].cast(pl.String)[order] for n in names}),
            t_ns[order],
        )
        if self._last is not None and self._last[0] == part[0]:
            times = np.concatenate(([self._last[1]], times))
            part, texts = np.append(part[0], part), pl.concat([self._last[2], texts])
        steps, within = np.diff(times), np.diff(part) == 0
        if not self._step:
            rising = steps[within & (steps > 0)]
            self._step = float(np.median(rising)) if len(rising) else 0.0
        broken = (steps < 0) | (steps > _JUMP_STEPS * self._step if self._step else False)
        same = steps == 0
        alone = same & ~np.append(False, same[:-1]) & ~np.append(same[1:], False)
        self.rows += len(order)
        self.twice += 2 * int(np.count_nonzero(alone & within))
        self.breaks += int(np.count_nonzero(broken & within))
        if names:
            changed = texts.select(pl.all().ne_missing(pl.all().shift(1))).slice(1)
        for name in names:
            self._column(name, texts[name], changed[name].to_numpy() & within, broken)
        self._last = int(part[-1]), int(times[-1]), texts.tail(1)

    def _column(self, name: str, words: pl.Series, changed: Bools, broken: Bools) -> None:
        count = int(np.count_nonzero(changed))
        self.changes[name] = self.changes.get(name, 0) + count
        at = int(np.count_nonzero(changed & broken))
        self.at_breaks[name] = self.at_breaks.get(name, 0) + at
        known = self.words.setdefault(name, set())
        if len(known) < _MOST_WORDS:
            known |= set(words.unique().to_list())
        if count >= _AT_BREAKS * len(changed) > LEAST_ROWS:
            turn = min(_MOST_TURNS, len(known))
            again = (words == words.shift(turn)).slice(turn)
            if 2 * turn < len(words) and (again.mean() or 0) > _AT_BREAKS:  # type: ignore[operator]
                self.turns.add(name)

    def doubts(self, file: str) -> list[Doubt]:
        """Doubts about all rows together."""
        distinct = {n: len(w - {None, ""}) for n, w in self.words.items()}
        varying = {n: c for n, c in distinct.items() if self.changes[n] and n in self.layout.unused}
        return [
            *self._merged(file),
            *self._doubled(file),
            *unused_validity(file, varying),
            *self._constant_flags(file, distinct),
        ]

    def separators(self) -> list[str]:
        """Unused columns that change within a recording where its clock breaks and nowhere else,
        that take turns, or that hold long runs of words.
        """
        found = []
        for name, words in self.words.items():
            changes, at_breaks = self.changes[name], self.at_breaks[name]
            words = words - {None, ""}
            used = name not in self.layout.unused or may_say_lost(name) or name in self._eyes()
            if used or len(words) < 2 or not changes:
                continue
            named = _MAY_SEPARATE.fullmatch(squeezed(name)) is not None
            run = self.rows / (changes + len(self._parts))
            long = run * self._step >= _LONG_RUN_S * 1e9
            numbers = all(_FRACTION.fullmatch(w) for w in words if w)
            in_runs = run >= _LONG_RUN and (named or (long and not numbers))
            if at_breaks >= max(1, _AT_BREAKS * changes) or in_runs or name in self.turns:
                found.append(name)
        return found

    def _eyes(self) -> list[str]:
        """Columns that take turns between two eyes."""
        words = {n: {str(w).lower() for w in self.words[n]} for n in self.turns}
        doubled = self.twice >= 0.95 * self.rows
        return [
            n
            for n, w in words.items()
            if len(w) == 2 and (w <= _EYE_WORDS or (doubled and "eye" in n.lower()))
        ]

    def _merged(self, file: str) -> list[Doubt]:
        names = self.separators()
        again = self.runs > len(self._parts) and self.runs * _LONG_RUN <= self.rows
        if not names:
            keys = _listed(n for r, n in self.layout.columns if r in KEY_ROLES)
            doubt = Doubt(
                "session",
                f"The rows of {len(self._parts)} recordings of {file}, by {keys}, come in"
                f" {self.runs} runs: what came again is read as one with what came first. If that"
                " is wrong, write a column 'trial' that counts on, and say"
                " columns={'trial': ...}.",
            )
            return [doubt] if again else []
        roles = self._proposed(names)
        said = ", ".join(f"'{r}': '{n}'" for r, n in roles.items())
        changing = "changes" if len(names) == 1 else "change"
        where = (
            f"The clock of {file} goes back or jumps {self.breaks:,} times, and {_listed(names)}"
            f" {changing} there"
            if self.breaks
            else f"{_listed(names)} of {file} {changing} in long runs or in turns"
        )
        person = self.layout.column("person")
        other = f" (if '{person}' counts anew with it, write both into one column)"
        if person is None:
            other = "" if "person" in roles else " ('person' if its words are participants)"
        lines = "\n".join(f'{r} = "{n}"' for r, n in roles.items())
        return [
            Doubt(
                "session",
                f"{where}: these rows look like several recordings that are read as one. Say"
                f" columns={{{said}}}{other}, or ignore={names} if they are one recording.",
                f"[columns]\n{lines}",
            )
        ]

    def _proposed(self, names: list[str]) -> dict[str, str]:
        """Roles for columns that separate: by name, else the one that changes most has the first
        role that no column has.
        """
        used = {r for r, _ in self.layout.columns}
        roles: dict[str, str] = {}
        for name in names:
            role = next(iter(key_columns([name])), None)
            if role is None and (name in self.turns or _PERSON_LIKE.fullmatch(squeezed(name))):
                role = "person"
            if role is not None and role not in used:
                roles.setdefault(role, name)
        rest = [n for n in names if n not in roles.values()]
        free = [r for r in ("trial", "session", "task") if r not in {*used, *roles}]
        if rest and free and (not roles or not {"trial", "stimulus"} & {*roles, *used}):
            roles[free[0]] = max(rest, key=lambda n: (self.at_breaks[n], self.changes[n]))
        return roles

    def _constant_flags(self, file: str, distinct: Mapping[str, int]) -> list[Doubt]:
        """The doubt about flags that are the same in all rows of each recording."""
        names = [n for n, c in distinct.items() if c > 1 and not self.changes[n]]
        names = [n for n in names if n not in self.layout.unused]
        sentence = (
            f"{_listed(names)} of {file} never changes within a recording, and where it calls one"
            " lost all its samples are. If it says something of trials and not of samples, say"
            f" ignore={names}."
        )
        return [Doubt("validity", sentence, f"ignore = {_toml(names)}")] if names else []

    def _doubled(self, file: str) -> list[Doubt]:
        eyes = self._eyes()
        if eyes:
            column = eyes[0]
            word = sorted(str(w) for w in self.words[column] if w)[0]
            twice = "Each time of {file} stands twice, and" if self.twice else "In {file}"
            return [
                Doubt(
                    "clock",
                    f"{twice.format(file=file)} '{column}' alternates: rows of two eyes. Say"
                    f" rows={{'{column}': '{word}'}} for one of them, or write one row for each"
                    " time with left_x, left_y, right_x and right_y.",
                    f'rows = {{"{column}" = "{word}"}}',
                )
            ]
        if self.rows < 2 * LEAST_ROWS or self.twice < 0.95 * self.rows or self.separators():
            return []
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

    layout: Layout
    positive: set[str] = field(default_factory=set)
    negative: dict[str, set[float]] = field(default_factory=dict)
    outside: dict[str, Counter[complex]] = field(default_factory=dict)
    far: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    codes: dict[str, dict[float, int]] = field(default_factory=dict)
    low: dict[str, float] = field(default_factory=dict)
    high: dict[str, float] = field(default_factory=dict)
    whole: dict[str, bool] = field(default_factory=dict)
    top: dict[str, tuple[float, float]] = field(default_factory=dict)
    top_counts: dict[str, int] = field(default_factory=dict)

    def add(self, frame: pl.DataFrame) -> None:
        """Take in the next rows."""
        for role in [r for r in SURE_ROLES if r in frame.columns]:
            self.positive |= {role} if (frame[role] > 0).any() else set()
            below = frame[role].filter(frame[role] < 0).head(LEAST_ROWS)
            self.negative.setdefault(role, set()).update(below)
        for eye in EYES:
            if f"{eye}x" not in frame.columns or f"{eye}y" not in frame.columns:
                continue
            x, y = (frame[f"{eye}{axis}"].to_numpy() for axis in "xy")
            self._pair(eye, x, y)

    @property
    def edges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Left and right, top and bottom of a screen of known size, else of everything."""
        screen, unit = self.layout.screen, self.layout.unit
        if screen is None or unit not in ("px", "px-centred", "fraction"):
            return (-np.inf, np.inf), (-np.inf, np.inf)
        sizes = (1.0, 1.0) if unit == "fraction" else (screen.width_px, screen.height_px)
        width, height = ((-s / 2, s / 2) if unit == "px-centred" else (0.0, s) for s in sizes)
        return width, height

    @property
    def relative(self) -> set[str]:
        """Columns with several negative numbers: changes of a size, or z-scores, and no sizes."""
        return {r for r, below in self.negative.items() if len(below) > 1}

    @property
    def measured(self) -> set[str]:
        """Columns in which 0 means that there is no eye."""
        return self.positive - self.relative

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
        inside = [(v > low) & (v < high) for v, (low, high) in zip((x, y), self.edges, strict=True)]
        out = seen & ~(inside[0] & inside[1])
        self.far[eye] = self.far.get(eye, 0) + int(np.count_nonzero(out))
        places, times = np.unique(x[out] + 1j * y[out], return_counts=True)
        again = {p: int(n) for p, n in zip(places, times, strict=True) if n >= _LEAST_THERE}
        self.outside.setdefault(eye, Counter()).update(again)
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
            doubts += self._outside(eye, pair, file)
        for name in sorted(filter(None, map(layout.column, self.relative))):
            sentence = f"'{name}' of {file} has negative numbers: it is no size, and is not used."
            doubts.append(Doubt("validity", sentence, f'ignore = ["{name}"]'))
        return doubts

    def _outside(self, eye: str, pair: str, file: str) -> list[Doubt]:
        """Doubts about places outside of the screen, or on its edge: one that is told again and
        again, and many.
        """
        n, places, codes = self.counts[eye], self.outside[eye], self.codes.get(eye, {})
        known = {c for c, k in codes.items() if k >= max(_CODE_COUNT, _CODE_SHARE * n)}
        again = [
            (p, k) for p, k in places.most_common(4) if not (p.real == p.imag and p.real in known)
        ]
        doubts = []
        for place, count in again if not self.whole.get(eye, True) else again[:1]:
            x, y = place.real, place.imag
            ways = [v for v, (a, b) in zip((x, y), self.edges, strict=True) if not a < v < b]
            lost = ", ".join(f"{v:.10g}" for v in dict.fromkeys(ways))
            sentence = (
                f"{count} samples of {file} are exactly ({x:.10g}, {y:.10g}) in {pair}, outside of"
                f" the screen or on its edge. If that means lost, say missing=[{lost}]."
            )
            doubts.append(Doubt("validity", sentence, f"[units]\nmissing = [{lost}]"))
        far = self.far[eye] - sum(places.values())
        if far > _MOST_OUTSIDE * n and not doubts:
            sentence = (
                f"{100 * far / n:.2g} % of the samples of {file} lie outside of the screen in"
                f" {pair}. Check the unit, and say the screen= on which gaze was recorded."
            )
            doubts.append(Doubt("screen", sentence, "[screen]"))
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
