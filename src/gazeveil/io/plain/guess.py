"""A guess at the layout of tables whose columns have their own names.

Nothing is guessed that the values leave open: the unit of time is taken where one unit alone gives
a rate that trackers have (4 to 2,500 Hz spans less than the factor of 1,000 between units), pixels
where gaze runs far beyond degrees, fractions where it stays within 0 and 1, degrees where it lies
on both sides of 0; numbers that trackers write for "lost" count for nothing. A unit in the column's
own name is not overruled, also where it is one that is not read (`x_cm`). Every guess comes with
the sentence that says it.

Doubts about the layout of a table, from its first rows, when it is found: columns that may name
people or trials, validity that is not used, units and axes that the values deny.

What all rows leave in doubt when they are read is in :mod:`gazeveil.io.plain.survey`. A doubt never
drops a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Doubt
from gazeveil.io.parsing.assemble import screen_in_words
from gazeveil.io.parsing.table import UNIT_NS, YES, printable
from gazeveil.io.plain.layout import Layout, chosen_columns, is_validation
from gazeveil.io.plain.roles import (
    EYES,
    FLAG_ROLES,
    GAZE_ROLES,
    KEY_ROLES,
    has_gaze,
    key_columns,
    may_say_lost,
    recognise,
    said_gaze_unit,
    said_time_unit,
    squeezed,
    unread_unit,
)
from gazeveil.io.plain.text import LEAST_ROWS, FirstRows
from gazeveil.io.registry import Guess

#: Rates in hertz that trackers and webcams have.
SLOWEST_HZ, FASTEST_HZ = 4.0, 2500.0
#: Numbers that trackers write where there is no gaze.
LOST_CODES = (0.0, -1.0, -100.0, 9999.0, -9999.0, 99999.0, -32768.0, 1e8)
_UNIT_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

_TIME_WORDS = re.compile(r"time|stamp|clock|zeit|temps|tiempo|tempo|^t$|^ts|_ms$|_s$|ticks", re.I)
_COUNTER_WORDS = re.compile(r"frame|index|sample|row|count|number|^n$|^id$|^i$", re.I)
#: What a pair of columns called <word>x, <word>y holds, and how likely that is gaze.
_WORTH = (
    (re.compile(r"gaze|po[rg]|look|blick|regard", re.I), 4),
    (re.compile(r"eye|auge|^g[xy]|^fix|norm_pos", re.I), 2),
    # Gazepoint's best point of gaze is a sample; its point of fixation is not.
    (re.compile(r"bpog", re.I), 1),
    (re.compile(r"screen|pos|smooth|aver|mean|avg|cyclop|pred", re.I), 1),
    (
        re.compile(
            r"head|mouse|cursor|origin|cornea|camera|cam_|accel|gyro|quat|rot|q[xyzw]$", re.I
        ),
        -9,
    ),
    (re.compile(r"target|^tar|stim|vel|speed|pupil|size|dev|std|var|raw|res|fov", re.I), -6),
)
_LEFT, _RIGHT = (
    re.compile(r"left|(?:^|[^a-z])l(?:[^a-z]|$)|^l(?=[^a-z]|por|g|e)", re.I),
    re.compile(r"right|(?:^|[^a-z])r(?:[^a-z]|$)|^r(?=[^a-z]|por|g|e)", re.I),
)
_SWAPS = (("x", "y"), ("horizontal", "vertical"), ("hor", "ver"), ("h", "v"), ("lon", "lat"))

#: Usual screens, width and height in pixels, from small to large.
_RESOLUTIONS = (
    *((800, 600), (1024, 768), (1280, 720), (1280, 800), (1366, 768), (1280, 1024), (1440, 900)),
    *((1600, 900), (1680, 1050), (1920, 1080), (1920, 1200), (2560, 1440), (2560, 1600)),
    (3840, 2160),
)
# A 24-inch screen at a desk: what is taken where size and distance are not said.
_DIAGONAL_MM, _DISTANCE_MM = 610.0, 650.0


def guess_columns(rows: FirstRows, known: Mapping[str, str], timed: bool) -> dict[str, str]:
    """Columns of time and gaze that `known` does not have; fewer than needed where the names leave
    it open. With `timed` times come from a rate, so that no column needs to hold them.
    """
    if not rows.is_headed or len(rows.cells) < LEAST_ROWS:
        return {}
    free = [n for n in dict.fromkeys(rows.names) if n and n not in known.values()]
    numeric = {n: v for n in free if np.isfinite(v := rows.numbers(n)).mean() > 0.2}
    found: dict[str, str] = {}
    if "t" not in known and not timed:
        time = _time_column(numeric)
        if time is not None:
            found["t"] = time
    if not has_gaze(known):
        found |= _gaze_columns([n for n in numeric if n != found.get("t")])
    return found


def _time_column(numeric: Mapping[str, Floats]) -> str | None:
    rising = [n for n, v in numeric.items() if _rises(v) and not _COUNTER_WORDS.search(n)]
    named = [n for n in rising if _TIME_WORDS.search(n)]
    timed = [n for n in named or rising if time_unit_of(numeric[n]) is not None]
    return timed[0] if named and timed else (timed[0] if len(timed) == 1 else None)


def _rises(values: Floats) -> bool:
    if not np.isfinite(values).all():
        return False
    steps = np.diff(values)
    return bool((steps >= 0).mean() > 0.98 and (steps > 0).mean() > 0.4)


def _gaze_columns(names: Sequence[str]) -> dict[str, str]:
    worths = {name: sum(worth for word, worth in _WORTH if word.search(name)) for name in names}
    pairs = {(a, b): worths[a] for a in names for b in names if _is_pair(a, b)}
    pairs = {pair: worth for pair, worth in pairs.items() if worth >= 0}
    eyes: dict[str, str] = {}
    for side, expression in (("left", _LEFT), ("right", _RIGHT)):
        of_side = _best({p: w for p, w in pairs.items() if expression.search(p[0])})
        if of_side is not None:
            eyes |= {f"{side}_x": of_side[0], f"{side}_y": of_side[1]}
    both = {p: w for p, w in pairs.items() if p[0] not in eyes.values()}
    best = _best(both)
    if best is not None and (not eyes or both[best] > 0):
        return {"x": best[0], "y": best[1]}
    return eyes if best is None or eyes else {}


def _best(pairs: Mapping[tuple[str, str], int]) -> tuple[str, str] | None:
    """The pair that is worth most, None where several are."""
    top = [p for p, w in pairs.items() if w == max(pairs.values())]
    return top[0] if len(top) == 1 else None


def _is_pair(a: str, b: str) -> bool:
    """Whether b is a with its word for x replaced by that for y."""
    low_a, low_b = a.lower(), b.lower()
    return low_a != low_b and any(
        low_a[: at.start()] + second + low_a[at.end() :] == low_b
        for first, second in _SWAPS
        for at in re.finditer(first, low_a)
    )


def time_unit_of(ticks: Floats) -> str | None:
    """The one unit in which these times have a tracker's rate; None where there is none."""
    steps = np.diff(ticks[np.isfinite(ticks)])
    steps = steps[steps > 0]
    if len(steps) < LEAST_ROWS // 2:
        return None
    step = float(np.median(steps))
    fits = [u for u, s in _UNIT_S.items() if SLOWEST_HZ <= 1 / (step * s) <= FASTEST_HZ]
    return fits[0] if len(fits) == 1 else None


def is_code(x: Floats, y: Floats, missing: Sequence[float] = ()) -> Bools:
    """Where both coordinates are the same number that means lost."""
    return (x == y) & np.isin(x, [*LOST_CODES, *missing])


def gaze_unit_of(x: Floats, y: Floats) -> str | None:
    """`px`, `px-centred`, `fraction` or `deg` where the values allow no other; else None."""
    seen = np.isfinite(x) & np.isfinite(y) & ~is_code(x, y)
    if np.count_nonzero(seen) < LEAST_ROWS:
        return None
    values = np.stack((x[seen], y[seen]))
    low, high = np.percentile(values, 2, axis=1), np.percentile(values, 98, axis=1)
    if (high > 200).any():
        return "px-centred" if (low < -90).all() else "px"
    if (low >= 0).all() and (high <= 1.05).all() and float((high - low).max()) > 0.05:
        return "fraction"
    whole = float((values == np.round(values)).mean())
    both_sides = (low < 0).any() and (low > -60).all() and (high < 60).all()
    return "deg" if both_sides and whole < 0.9 and (high - low).max() > 1.5 else None


def guess_screen(x: Floats, y: Floats, unit: str) -> Screen:
    """The usual screen, at a desk, that holds these pixels and whose centre is nearest to their
    median: people look at the middle of a screen more than at its edges.
    """
    centred = 2.0 if unit == "px-centred" else 1.0
    seen = np.isfinite(x) & np.isfinite(y) & ~is_code(x, y)
    values = np.stack((x[seen], y[seen])) if seen.any() else np.zeros((2, 1))
    far = centred * np.percentile(np.abs(values), 98, axis=1)
    middle = np.median(values, axis=1) if unit == "px" else np.zeros(2)
    sizes = [r for r in _RESOLUTIONS if r[0] >= far[0] and r[1] >= far[1]] or [_RESOLUTIONS[-1]]
    if unit == "px":
        sizes.sort(key=lambda r: float(np.abs(middle / r - 0.5).max()))
    width_px, height_px = (1920, 1080) if unit == "fraction" else sizes[0]
    scale = _DIAGONAL_MM / float(np.hypot(width_px, height_px))
    return Screen(
        width_px, height_px, round(scale * width_px), round(scale * height_px), _DISTANCE_MM
    )


def guess_layout(looked: Sequence[FirstRows], options: Mapping[str, object]) -> Guess:
    """What the options and the column names leave open, as far as the values of the first rows of
    all files decide it; the files are of one layout.
    """
    looked = [rows for rows in looked if rows.is_headed and len(rows.cells) >= LEAST_ROWS]
    if not looked or is_validation(looked[0].names):
        return Guess()
    first = looked[0]
    said = chosen_columns(options)
    roles = {**recognise(first.names), **said}
    columns = guess_columns(first, roles, options.get("rate_hz") is not None)
    roles |= columns
    guessed: dict[str, object] = {"columns": {**said, **columns}} if columns else {}
    sentences = [
        "Guessed from names and values: " + ", ".join(f"{r} is '{c}'" for r, c in columns.items())
    ] * bool(columns)
    for part in (_guess_time(looked, roles, options), _guess_gaze(looked, roles, options)):
        guessed |= part.options
        sentences += part.sentences
    return Guess(guessed, tuple(s.rstrip(".") + "." for s in sentences))


def _guess_time(
    looked: Sequence[FirstRows], roles: Mapping[str, str], options: Mapping[str, object]
) -> Guess:
    column = roles.get("t")
    said = {"time_unit", "frame_interval_s"} & options.keys()
    if column is None or said or said_time_unit(column) or unread_unit(column, "time"):
        return Guess()
    ticks = [rows.numbers(column) for rows in looked if column in rows.names]
    units = {time_unit_of(t) for t in ticks}
    unit = units.pop() if len(units) == 1 else None
    if unit is None:
        return Guess()
    steps = np.diff(ticks[0])
    step = float(np.median(steps[steps > 0]))
    sentence = (
        f"Guessed from the steps of {step:g} between times: '{column}' counts {unit}"
        f" ({1 / (step * _UNIT_S[unit]):.4g} Hz)"
    )
    if step == 1:
        sentence += "; if it counts samples, say rate_hz= instead"
    return Guess({"time_unit": unit}, (sentence,))


def gaze_of(
    rows: FirstRows, roles: Mapping[str, str], options: Mapping[str, object]
) -> Iterator[tuple[str, str, Floats, Floats]]:
    """Both columns of gaze and of each eye, with their first values, NaN where `missing` says."""
    pairs = [(roles[f"{e}x"], roles[f"{e}y"]) for e in EYES if {f"{e}x", f"{e}y"} <= roles.keys()]
    lost = missing_of(options)
    for a, b in pairs:
        if {a, b} <= set(rows.names):
            x, y = (np.where(np.isin(v := rows.numbers(n), lost), np.nan, v) for n in (a, b))
            yield a, b, x, y


def _guess_gaze(
    looked: Sequence[FirstRows], roles: Mapping[str, str], options: Mapping[str, object]
) -> Guess:
    columns = [roles[r] for r in GAZE_ROLES if r in roles]
    found = [pair for rows in looked for pair in gaze_of(rows, roles, options)]
    if not found:
        return Guess()
    x_name, y_name = found[0][:2]
    x, y = (np.concatenate([pair[i] for pair in found]) for i in (2, 3))
    said = options.get("unit") or said_gaze_unit(columns)
    unit = said if isinstance(said, str) else gaze_unit_of(x, y)
    if unit is None or (not said and any(unread_unit(c, "gaze") for c in columns)):
        return Guess()
    guessed: dict[str, object] = {} if said else {"unit": unit}
    sentences = []
    if not said:
        plain = ~is_code(x, y)
        low, high = (f(np.stack((x[plain], y[plain])), axis=1) for f in (np.nanmin, np.nanmax))
        sentences.append(
            f"Guessed from gaze of {low[0]:g} to {high[0]:g} (x) and {low[1]:g} to {high[1]:g} (y):"
            f" '{x_name}' and '{y_name}' are {_UNIT_WORDS[unit]}"
        )
    needs_screen = unit in ("px", "px-centred", "fraction") and np.isfinite(x).sum() >= LEAST_ROWS
    if needs_screen and options.get("screen") is None and options.get("space") is None:
        screen = guess_screen(x, y, unit)
        guessed |= {"screen": screen, "assumed": True}
        sentences.append(
            f"Assumed a screen of {screen_in_words(screen)}: measure yours and say it, because"
            " degrees depend on it"
        )
    return Guess(guessed, tuple(sentences))


_UNIT_WORDS = {
    "px": "pixels from the top left corner",
    "px-centred": "pixels from the centre of the screen",
    "fraction": "fractions of the screen",
    "deg": "degrees",
}


def missing_of(options: Mapping[str, object]) -> list[float]:
    """Numbers that the option `missing` says are lost samples."""
    said = options.get("missing", ())
    values = said if isinstance(said, list | tuple) else [said]
    return [float(v) for v in values if isinstance(v, int | float)]


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
