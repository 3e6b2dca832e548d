"""Doubts about the layout of a table, from its first rows, when it is found: columns that may name
people or trials, validity that is not used, units and axes that the values deny.

What all rows leave in doubt when they are read is in :mod:`gazeveil.io.plain.survey`. A doubt never
drops a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from gazeveil.gaze.facts import Doubt
from gazeveil.io.parsing.table import UNIT_NS, YES, printable
from gazeveil.io.plain.guess import (
    FASTEST_HZ,
    SLOWEST_HZ,
    gaze_of,
    gaze_unit_of,
    is_code,
    missing_of,
    time_unit_of,
)
from gazeveil.io.plain.layout import Layout, chosen_columns
from gazeveil.io.plain.roles import EYES, FLAG_ROLES, KEY_ROLES, key_columns, may_say_lost, squeezed
from gazeveil.io.plain.text import LEAST_ROWS, FirstRows

# Gaze that is further from the eyes than this share of their spread is something else.
_PAIR_APART = 0.2
# Rows that come more slowly and have a duration are fixations.
_SAMPLES_HZ, _DURATION = 8.0, re.compile(r"dur|dauer|end", re.I)
# A column of validity that lets fewer rows with gaze pass means it the other way round.
_LEAST_VALID = 0.5
#: Units that values of one kind fit.
_FITS = {
    "px": ("px", "px-centred", "equirect"),
    "px-centred": ("px-centred",),
    "fraction": ("fraction", "rad", "lonlat-rad", "vector", "vector-openxr", "deg"),
    "deg": ("deg", "lonlat", "rad", "lonlat-rad", "px-centred"),
}


def listed(names: Iterable[str]) -> str:
    """Names of columns for a sentence."""
    return ", ".join(f"'{printable(n)}'" for n in names)


def toml_list(values: Iterable[str]) -> str:
    """Texts as a list of TOML, for a remedy."""
    return "[" + ", ".join(f'"{v}"' for v in values) + "]"


def first_doubts(first: FirstRows, layout: Layout, options: Mapping[str, object]) -> list[Doubt]:
    """Doubts about the layout of a file, from its first rows."""
    if len(first.cells) < LEAST_ROWS:
        return []
    keyed = any(r in KEY_ROLES for r, _ in layout.columns)
    # Of a table of many recordings all rows are looked at before anything is read.
    unused = {} if keyed else {n: len(set(first.words(n))) for n in layout.unused}
    return [
        *_y_doubts(first, layout),
        *_time_doubts(first, layout, options),
        *_unit_doubts(first, layout, options),
        *_valid_doubts(first, layout, options),
        *_pair_doubts(first, layout, options),
        *_key_doubts(first, layout, options),
        *unused_validity(first.path.name, unused),
    ]


def _key_doubts(first: FirstRows, layout: Layout, options: Mapping[str, object]) -> Iterator[Doubt]:
    """Doubts about columns that name recordings: two that fit one role and say different things,
    and those that have too many words to be used.
    """
    file, said = first.path.name, {*chosen_columns(options), *options}
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
            if count > 1:
                yield Doubt(topic, sentence, f'[columns]\n{role} = "{name}"')
        elif rivals := [n for n in others if not _say_the_same(first, n, column)]:
            sentence = (
                f"'{column}' of {file} is taken for the {role}, and {listed(rivals)} may be it"
                f" too. Say columns={{'{role}': ...}}, or ignore={rivals}."
            )
            lines = "\n".join(f'{role} = "{n}"' for n in (column, *rivals))
            yield Doubt(topic, sentence, f"[columns]\n{lines}")


def _say_the_same(first: FirstRows, one: str, other: str) -> bool:
    """Whether two columns tell the same rows apart; of two that have one word each, whether their
    names begin alike (`participant_id`, `participant_no`).
    """
    words = first.words(one), first.words(other)
    pairs = len(set(zip(*words, strict=True)))
    akin = pairs > 1 or squeezed(one)[:4] == squeezed(other)[:4]
    return akin and all(len(set(w)) == pairs for w in words)


def _y_doubts(first: FirstRows, layout: Layout) -> Iterator[Doubt]:
    if dict(layout.facts)["y_axis"].origin == "guessed":
        column = next(n for e in EYES if (n := layout.column(f"{e}y")) is not None)
        yield Doubt(
            "y_axis",
            f"'{column}' of {first.path.name} is taken to grow downwards; where it grows upwards,"
            " as PsychoPy's does, say y_axis='up'.",
            '[units]\ny_axis = "down"',
        )


def _time_doubts(
    first: FirstRows, layout: Layout, options: Mapping[str, object]
) -> Iterator[Doubt]:
    column, unit = layout.column("t"), layout.time_unit
    if column is None or unit not in UNIT_NS:
        return
    ticks = first.numbers(column)
    steps = np.diff(ticks[np.isfinite(ticks)])
    steps = steps[steps > 0]
    if len(steps) < LEAST_ROWS // 2:
        return
    rate_hz = 1e9 / (float(np.median(steps)) * UNIT_NS[unit])
    other = time_unit_of(ticks)
    if not SLOWEST_HZ <= rate_hz <= FASTEST_HZ and other not in (None, unit):
        yield Doubt(
            "clock",
            f"Times in '{column}' of {first.path.name} are taken for {unit}, which makes"
            f" {rate_hz:.4g} Hz: they look like {other}. Say time_unit='{other}'.",
            f'[units]\ntime = "{other}"',
        )
    lasting = [n for n in layout.unused if _DURATION.match(n)]
    if rate_hz < _SAMPLES_HZ and lasting:
        yield Doubt(
            "clock",
            f"Rows of {first.path.name} come at {rate_hz:.2g} Hz, and {listed(lasting)} stands"
            " beside them: these look like fixations, not samples of gaze. Export the samples.",
        )
    said_hz = options.get("rate_hz")
    if isinstance(said_hz, int | float) and not 0.8 < rate_hz / said_hz < 1.25:
        yield Doubt(
            "clock",
            f"rate_hz={said_hz:g} was said, but times in '{column}' of {first.path.name} make"
            f" {rate_hz:.4g} Hz. Check the rate and the unit of time.",
        )


def _unit_doubts(
    first: FirstRows, layout: Layout, options: Mapping[str, object]
) -> Iterator[Doubt]:
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
            if whole:
                reason = "all values are whole numbers"
            elif far and layout.space != "sphere":
                reason = "it runs beyond 90"
            looks = "px" if reason else looks
        around = layout.unit == "deg" and layout.space != "screen"  # up to 360 on a sphere
        if not reason and not around and looks is not None and layout.unit not in _FITS[looks]:
            reason = f"it runs from {values.min():g} to {values.max():g}"
        if reason and looks is not None:
            words = {"px": "pixels", "px-centred": "pixels from the centre", "deg": "degrees"}
            taken = words.get(layout.unit, layout.unit)
            needs = " and the screen" if looks in ("px", "px-centred", "fraction") else ""
            yield Doubt(
                "unit",
                f"Gaze in '{x_name}' and '{y_name}' of {first.path.name} is taken for {taken},"
                f" but {reason}: these look like {words.get(looks, looks + 's')}. Say"
                f" unit='{looks}'{needs}.",
                f'[units]\ngaze = "{looks}"',
            )
            return


def _pair_doubts(
    first: FirstRows, layout: Layout, options: Mapping[str, object]
) -> Iterator[Doubt]:
    """Doubts about a pair of gaze that is not where the eyes look, and about degrees that are all
    positive.
    """
    pairs = list(gaze_of(first, dict(layout.columns), options))
    places = [np.stack((x, y)) for _, _, x, y in pairs]
    names, file = listed(pairs[0][:2]), first.path.name
    if layout.unit == "deg" and layout.space == "screen" and np.nanmin(places[0]) >= 0:
        words = (
            f"Degrees in {names} of {file} are all positive, and degrees of a screen count from its"
            " centre. If they count from a corner, subtract its centre."
        )
        yield Doubt("unit", words, '[units]\ngaze = "deg"')
    elif len(places) >= 3 and layout.column("x") is not None:
        eyes = np.stack(places[1:])
        off = np.nanmedian(np.abs(places[0] - np.nanmean(eyes, axis=0)))
        if off > _PAIR_APART * np.nanstd(eyes):
            said = ", ".join(f"'{r}': '{n}'" for r, n in layout.columns if r[-2:] in ("_x", "_y"))
            words = (
                f"{names} of {file} are taken for gaze and are not where the eyes look: they may"
                f" be a target or a mouse. If so, say columns={{{said}}}."
            )
            yield Doubt("unit", words, f'[columns]\nx = "{pairs[0][0]}"\ny = "{pairs[0][1]}"')


def _valid_doubts(
    first: FirstRows, layout: Layout, options: Mapping[str, object]
) -> Iterator[Doubt]:
    """Doubts about columns of validity that call the rows with gaze lost."""
    lost = missing_of(options)
    for role, column in ((r, n) for r, n in layout.columns if r in FLAG_ROLES):
        eye = role.removesuffix("valid").removesuffix("lost")
        seen = np.zeros(len(first.cells), dtype=np.bool_)
        of_eye = {r: n for r, n in layout.columns if r.startswith(eye)}
        for _, _, x, y in gaze_of(first, of_eye, options):
            seen |= np.isfinite(x) & np.isfinite(y) & ~is_code(x, y, lost)
        yes = np.isin([w.lower() for w in first.words(column)], YES)
        passed = int(((yes if role.endswith("valid") else ~yes) & seen).sum())
        count = int(seen.sum())
        if count >= LEAST_ROWS and passed < _LEAST_VALID * count:
            yield Doubt(
                "validity",
                f"The column '{column}' of {first.path.name} calls {count - passed} of the"
                f" first {count} samples that have gaze lost: 1, yes, true and valid mean"
                f" {role.removeprefix(eye)} there, 0 means the contrary. If 0 means valid, as"
                " Tobii writes it, write 1 for valid and 0 for lost; if the column is something"
                " else, rename it.",
                f"ignore = {toml_list([column])}",
            )
            return


def unused_validity(file: str, distinct: Mapping[str, int]) -> Iterator[Doubt]:
    """The doubt about columns that are not used and may say which samples are lost; `distinct` has
    the number of different words in each.
    """
    names = [n for n, words in distinct.items() if words > 1 and may_say_lost(n)]
    if names:
        yield Doubt(
            "validity",
            f"{listed(names)} of {file} {'is' if len(names) == 1 else 'are'} not used. If it says"
            f" which samples are lost, say columns={{'valid': '{names[0]}'}} (1 is valid; other"
            f" codes with valid=[...]) or columns={{'lost': '{names[0]}'}} (1 is lost); if not,"
            f" ignore={names}.",
            f"ignore = {toml_list(names)}",
        )
