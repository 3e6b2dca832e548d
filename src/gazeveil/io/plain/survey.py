"""Surveys of all rows of a table, and their doubts: people or trials that merge, times that stand
twice, numbers that mean lost, dead eyes, places outside of the screen.

A doubt never drops a row. Two findings change what is read and say so: a number that only a tracker
writes for "lost", and an eye that never moves beside one that does, are lost samples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.gaze.recording import Doubt
from gazeveil.io.plain.guess import LOST_CODES, is_code, listed, toml_list, unused_validity
from gazeveil.io.plain.layout import Layout
from gazeveil.io.plain.roles import (
    EYES,
    FLAG_ROLES,
    KEY_ROLES,
    SURE_ROLES,
    key_columns,
    may_say_lost,
    squeezed,
)
from gazeveil.io.plain.text import LEAST_ROWS

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
# Places outside of the screen: samples that are exactly there, and the share that may be.
_LEAST_THERE, _MOST_OUTSIDE = 3, 0.1
_MOST_WORDS = 10_000


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
    changes: Counter[str] = field(default_factory=Counter)
    at_breaks: Counter[str] = field(default_factory=Counter)
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
        # Recordings that stand one behind another are in order already.
        straight = len(order) == frame.height and bool((np.diff(order) == 1).all())
        in_file = part if straight else part[np.argsort(order)]
        self.runs += int(np.count_nonzero(np.diff(in_file))) + int(in_file[0] != self._at)
        self._at = int(in_file[-1])
        flags = [n for r, n in self.layout.columns if r in FLAG_ROLES]
        names = [n for n in dict.fromkeys((*self.layout.unused, *flags)) if n in frame.columns]
        texts = frame.select(pl.col(names).cast(pl.String))
        times = t_ns
        if not straight:
            texts, times = texts.select(pl.all().gather(order)), t_ns[order]
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
        self.changes[name] += count
        self.at_breaks[name] += int(np.count_nonzero(changed & broken))
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
            *self._repeating(file),
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

    def _repeating(self, file: str) -> Iterator[Doubt]:
        """The doubt about recordings that go on behind rows of another."""
        again = self.runs > len(self._parts) and self.runs * _LONG_RUN <= self.rows
        if again and not self.separators():
            keys = listed(n for r, n in self.layout.columns if r in KEY_ROLES)
            yield Doubt(
                "session",
                f"The rows of {len(self._parts)} recordings of {file}, by {keys}, come in"
                f" {self.runs} runs: what came again is read as one with what came first. If that"
                " is wrong, write a column 'trial' that counts on, and say"
                " columns={'trial': ...}.",
            )

    def _merged(self, file: str) -> Iterator[Doubt]:
        """The doubt about recordings that are read as one."""
        names = self.separators()
        if not names:
            return
        roles = self._proposed(names)
        said = ", ".join(f"'{r}': '{n}'" for r, n in roles.items())
        changing = "changes" if len(names) == 1 else "change"
        where = (
            f"The clock of {file} goes back or jumps {self.breaks:,} times, and {listed(names)}"
            f" {changing} there"
            if self.breaks
            else f"{listed(names)} of {file} {changing} in long runs or in turns"
        )
        person = self.layout.column("person")
        other = f" (if '{person}' counts anew with it, write both into one column)"
        if person is None:
            other = "" if "person" in roles else " ('person' if its words are participants)"
        lines = "\n".join(f'{r} = "{n}"' for r, n in roles.items())
        yield Doubt(
            "session",
            f"{where}: these rows look like several recordings that are read as one. Say"
            f" columns={{{said}}}{other}, or ignore={names} if they are one recording.",
            f"[columns]\n{lines}",
        )

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

    def _constant_flags(self, file: str, distinct: Mapping[str, int]) -> Iterator[Doubt]:
        """The doubt about flags that are the same in all rows of each recording."""
        names = [n for n, c in distinct.items() if c > 1 and not self.changes[n]]
        names = [n for n in names if n not in self.layout.unused]
        if names:
            yield Doubt(
                "validity",
                f"{listed(names)} of {file} never changes within a recording, and where it calls"
                " one lost all its samples are. If it says something of trials and not of samples,"
                f" say ignore={names}.",
                f"ignore = {toml_list(names)}",
            )

    def _doubled(self, file: str) -> Iterator[Doubt]:
        """The doubt about times that stand twice, or rows of two eyes in turns."""
        eyes = self._eyes()
        if eyes:
            word = sorted(str(w) for w in self.words[eyes[0]] if w)[0]
            where = f"Each time of {file} stands twice, and" if self.twice else f"In {file}"
            yield Doubt(
                "clock",
                f"{where} '{eyes[0]}' alternates: rows of two eyes. Say"
                f" rows={{'{eyes[0]}': '{word}'}} for one of them, or write one row for each"
                " time with left_x, left_y, right_x and right_y.",
                f'rows = {{"{eyes[0]}" = "{word}"}}',
            )
        elif (
            self.rows >= 2 * LEAST_ROWS and self.twice >= 0.95 * self.rows and not self.separators()
        ):
            rate_hz = 2e9 / self._step if self._step else 0.0
            yield Doubt(
                "clock",
                f"Each time of {file} stands twice, so that half of the samples are lost. If the"
                f" clock is coarse, say rate_hz={rate_hz:g}; if two eyes take turns, write one row"
                " for each time.",
                f"rate_hz = {rate_hz:g}",
            )


@dataclass
class GazeSurvey:
    """Gaze of one recording in the file's units: its extent, codes of lost samples, dead eyes, and
    which of pupil and confidence were measured at all.
    """

    layout: Layout
    positive: set[str] = field(default_factory=set)
    negative: dict[str, set[float]] = field(default_factory=dict)
    outside: dict[str, Counter[complex]] = field(default_factory=dict)
    far: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    codes: dict[str, Counter[float]] = field(default_factory=dict)
    low: dict[str, float] = field(default_factory=dict)
    high: dict[str, float] = field(default_factory=dict)
    whole: dict[str, bool] = field(default_factory=dict)
    top: dict[str, tuple[float, float]] = field(default_factory=dict)
    top_counts: Counter[str] = field(default_factory=Counter)

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
        codes = self.codes.setdefault(eye, Counter())
        codes += Counter({c: int(np.count_nonzero(x[alike] == c)) for c in LOST_CODES})
        self.counts[eye] += int(np.count_nonzero(seen))
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
        self.far[eye] += int(np.count_nonzero(out))
        places, times = np.unique(x[out] + 1j * y[out], return_counts=True)
        again = {p: int(n) for p, n in zip(places, times, strict=True) if n >= _LEAST_THERE}
        self.outside.setdefault(eye, Counter()).update(again)
        if eye not in self.top and rest.any():
            self.top[eye] = _commonest(x[rest], y[rest])
        if eye in self.top:
            top_x, top_y = self.top[eye]
            self.top_counts[eye] += int(np.count_nonzero((x == top_x) & (y == top_y)))

    def lost_codes(self, eye: str, corner: bool) -> list[float]:
        """Numbers that mean lost, not gaze: outside of what else the eye looks at, or 0 where that
        is the corner of the screen, or any where gaze has fractions of a unit.
        """
        names = (f"{eye}x", f"{eye}y")
        low = [self.low.get(n, np.inf) for n in names]
        high = [self.high.get(n, -np.inf) for n in names]
        return [
            code
            for code in self._frequent(eye)
            if not max(low) <= code <= min(high)
            or (corner and code == 0)
            or not self.whole.get(eye, True)
        ]

    def _frequent(self, eye: str) -> dict[float, int]:
        """Numbers that may mean lost and stand often enough for it, with how often."""
        least = max(_CODE_COUNT, _CODE_SHARE * self.counts.get(eye, 0))
        return {code: n for code, n in self.codes.get(eye, {}).items() if n >= least}

    def still(self, eye: str) -> bool:
        """Whether an eye never moves: its samples are one place, or a code."""
        return self.counts.get(eye, 0) >= LEAST_ROWS and all(
            self.low.get(n, 0.0) == self.high.get(n, 0.0) for n in (f"{eye}x", f"{eye}y")
        )

    def dead(self) -> list[str]:
        """Eyes that never move beside one that does."""
        still = [eye for eye in self.counts if self.still(eye)]
        return still if 0 < len(still) < len(self.counts) else []

    def doubts(self, file: str, layout: Layout, corner: bool) -> Iterator[Doubt]:
        """Doubts about gaze, with what was done."""
        for eye in self.counts if layout.missing != () else ():
            pair = listed(layout.column(f"{eye}{axis}") or "" for axis in "xy")
            n = max(1, self.counts[eye])
            if eye in self.dead():
                sentence = f"Gaze in {pair} of {file} never moves: that eye is taken for lost."
                yield Doubt("validity", sentence, "")
                continue
            taken = self.lost_codes(eye, corner) if layout.missing is None else ()
            for code, count in self._frequent(eye).items():
                share = f"{100 * count / n:.2g} % of the samples of {file} have {code:g} in both"
                verdict = (
                    f"taken for lost. Say missing=[{code:g}], or missing=[] if it is gaze."
                    if code in taken
                    else f"taken for gaze. If that means lost, say missing=[{code:g}]."
                )
                yield Doubt(
                    "validity", f"{share} {pair}: {verdict}", f"[units]\nmissing = [{code:g}]"
                )
            yield from self._repeated(eye, pair, file)
            yield from self._outside(eye, pair, file)
        for name in sorted(filter(None, map(layout.column, self.relative))):
            sentence = f"'{name}' of {file} has negative numbers: it is no size, and is not used."
            yield Doubt("validity", sentence, f'ignore = ["{name}"]')

    def _outside(self, eye: str, pair: str, file: str) -> Iterator[Doubt]:
        """Doubts about places outside of the screen, or on its edge: one that is told again and
        again, and many.
        """
        n, places, known = self.counts[eye], self.outside[eye], self._frequent(eye)
        again = [
            (p, k) for p, k in places.most_common(4) if not (p.real == p.imag and p.real in known)
        ]
        for place, count in again if not self.whole.get(eye, True) else again[:1]:
            x, y = place.real, place.imag
            ways = [v for v, (a, b) in zip((x, y), self.edges, strict=True) if not a < v < b]
            lost = ", ".join(f"{v:.10g}" for v in dict.fromkeys(ways))
            sentence = (
                f"{count} samples of {file} are exactly ({x:.10g}, {y:.10g}) in {pair}, outside of"
                f" the screen or on its edge. If that means lost, say missing=[{lost}]."
            )
            yield Doubt("validity", sentence, f"[units]\nmissing = [{lost}]")
        far = self.far[eye] - sum(places.values())
        if far > _MOST_OUTSIDE * n and not again:
            sentence = (
                f"{100 * far / n:.2g} % of the samples of {file} lie outside of the screen in"
                f" {pair}. Check the unit, and say the screen= on which gaze was recorded."
            )
            yield Doubt("screen", sentence, "[screen]")

    def _repeated(self, eye: str, pair: str, file: str) -> Iterator[Doubt]:
        """The doubt about a place that stands more often than an eye can rest there."""
        n, count = self.counts[eye], self.top_counts[eye]
        least = _REPEATED_WHOLE if self.whole.get(eye, True) else _REPEATED_SHARE
        if n >= 10 * LEAST_ROWS and count >= least * n and not self.still(eye):
            x, y = self.top[eye]
            yield Doubt(
                "validity",
                f"{100 * count / n:.2g} % of the samples of {file} have exactly ({x:g}, {y:g}) in"
                f" {pair}, which no eye does. If that means lost, say missing=[{x:g}, {y:g}].",
                f"[units]\nmissing = [{x:g}, {y:g}]",
            )


def _commonest(x: Floats, y: Floats) -> tuple[float, float]:
    """The pair of numbers that stands most often among a thousand of them."""
    step = max(1, len(x) // 1000)
    pairs, counts = np.unique(x[::step] + 1j * y[::step], return_counts=True)
    top = pairs[counts.argmax()]
    return float(top.real), float(top.imag)


def apart_doubts(file: str, left_deg: Floats, right_deg: Floats) -> Iterator[Doubt]:
    """The doubt about eyes that look at places far from one another."""
    both = np.isfinite(left_deg).all(axis=1) & np.isfinite(right_deg).all(axis=1)
    gap = np.abs(left_deg[both] - right_deg[both])
    gap = np.minimum(gap, 360.0 - gap)  # longitudes go round
    apart = float(np.median(np.hypot(gap[:, 0], gap[:, 1]))) if len(gap) >= LEAST_ROWS else 0.0
    if apart > _APART_DEG:
        yield Doubt(
            "validity",
            f"The eyes of {file} look {apart:.1f} degrees apart in the median, so that their mean"
            " is no gaze. Check the columns and units, or name one eye with columns=.",
        )
