"""The people on the page, what is released of them, and who attacks it meanwhile.

Releases are made when they are looked at and kept, so that a second look shows the same draw.
Attacks by the quick battery take seconds: one thread computes them one after the other, and what
was asked for last goes first.

What the page draws of recordings: a trace and a map, as plain numbers.

Pictures are thinned for the screen; nothing here is a release of its own.

The page as one text: markup, style, script and, where it is saved, its figures.
"""

from __future__ import annotations

import base64
import json
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.registry import battery
from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.evaluation.report.page import STYLE
from gazeveil.evaluation.run import evaluate
from gazeveil.features.recording_set import FeaturePipeline
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere, smooth_map
from gazeveil.gaze.recording import Recording
from gazeveil.pages import render
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.heatmaps import viewer_weights
from gazeveil.privacy.mechanism import Mechanism, PieceMechanism
from gazeveil.privacy.registry import mechanism

#: Longest trace, in seconds, and most points of it.
TRACE_S, POINTS = 10.0, 500

#: Cells of a map from top to bottom, and steps of its shades.
MAP_ROWS, SHADES = 36, 99

_BLUR_DEG = 1.0


def trace_line(
    recordings: Iterable[Recording], begin_ns: int | None = None
) -> dict[str, list[float | None]]:
    """The first seconds of a recording, or of the pieces that were made for it one after the other:
    `t` in seconds since its (or its stimulus') beginning, `x` and `y` in degrees, None where lost.

    Parameters
    ----------
    recordings : iterable of Recording
        One, or pieces of one, whose times count from one beginning.
    begin_ns : int, optional
        Time zero; the first sample where it is not given.
    """
    parts = sorted((r for r in recordings if len(r)), key=lambda r: int(r.t_ns[0]))
    if not parts:
        return {"t": [], "x": [], "y": []}
    zero = int(parts[0].t_ns[0]) if begin_ns is None else begin_ns
    t = np.concatenate([(r.t_ns - zero) / 1e9 for r in parts])
    x, y = (
        np.concatenate([np.where(r.valid, getattr(r, name), np.nan) for r in parts])
        for name in ("x_deg", "y_deg")
    )
    rows = np.flatnonzero(t <= TRACE_S)
    rows = rows[:: max(1, -(-len(rows) // POINTS))]
    return {"t": np.round(t[rows], 3).tolist(), "x": _numbers(x[rows]), "y": _numbers(y[rows])}


def map_shades(recordings: Iterable[Recording], like: Recording) -> list[list[int]]:
    """Where all viewers of a stimulus looked, each of the same weight: shades from 0 to
    :data:`SHADES` of the darkest cell. The map covers the space of `like`.
    """
    space = like.space
    columns = max(1, round(MAP_ROWS * space.width_deg / space.height_deg))
    total = np.zeros((MAP_ROWS, columns))
    for recording in recordings:
        total += viewer_weights(recording, MAP_ROWS, columns)
    blur = 2 * _BLUR_DEG if isinstance(space, Sphere) else _BLUR_DEG
    blurred = smooth_map(total, space, blur)
    top = float(blurred.max())
    shades: list[list[int]] = (
        np.round(SHADES * blurred / top if top else blurred).astype(int).tolist()
    )
    return shades


def extent(recording: Recording) -> list[float]:
    """x0, x1, y0, y1 of the recording's space, in degrees; y grows downwards."""
    wide, high = recording.space.width_deg, recording.space.height_deg
    sides = (
        (0.0, wide, 0.0, high)
        if isinstance(recording.space, Sphere)
        else (-wide / 2, wide / 2, -high / 2, high / 2)
    )
    return [round(side, 3) for side in sides]


def _numbers(values: Floats) -> list[float | None]:
    return [None if v != v else round(v, 2) for v in values.tolist()]


_WEB = Path(__file__).with_name("web")


def page(figures: object = None) -> str:
    """The whole page. `figures` is everything a saved page shows, as JSON has it; without them the
    page asks its server.
    """
    # Data must not end the element that holds it, nor begin a comment in it.
    held = json.dumps(figures, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "policy": policy(live=figures is None),
        "style": _style(),
        "script": _script(),
        "figures": "" if figures is None else held,
    }
    return render("explore/web/explore.html", **{name: Markup(t) for name, t in parts.items()})


def policy(live: bool) -> str:
    """Content security policy of the page: its own script only, and requests to its own server or
    to none.
    """
    return (
        f"default-src 'none'; script-src '{_hash(_script())}'; style-src '{_hash(_style())}';"
        f" connect-src {chr(39)}{'self' if live else 'none'}{chr(39)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


@cache
def _script() -> str:
    return (_WEB / "explore.js").read_text(encoding="utf-8")


@cache
def _style() -> str:
    return STYLE + (_WEB / "explore.css").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()


#: Seconds of the windows of mechanisms that count them in samples.
WINDOW_S = 0.5

#: Kinds whose releases are recordings: they have a trace, and attackers can look at them.
KINDS = ("stream", "cohort")

#: `{w}` is half a second of samples at the rate of the recordings.
_DEFAULT = (
    "gaussian:sigma_deg=1/2|1|2|5|10",
    "temporal:K=2|3|5|10",
    "spatial:L=256|128|64|32",
    "kaleido:epsilon=30|10|3|1,w={w},r_deg=2",
    "clock-render:epsilon=30|10|3|1,r_deg=2,form=offline",
    "k-same-synth:k=2|3|4,match=crowd",
    "event-synth-pd:k=2|3|4,gamma=4",
    "dpgazesynth-one-report:epsilon=10|3|1",
    "mosaic:piece_s=5|3|2,epsilon=10,r_deg=2,crowd=4",
)


@dataclass(frozen=True)
class Slider:
    """A mechanism and the values of the one parameter that is moved: as the command line has them,
    weak protection first where the built-in ones say so, and the mechanism's text at each.
    """

    parameter: str
    values: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def mechanism(self) -> Mechanism[object]:
        """The mechanism at the first value."""
        return mechanism(self.texts[0])

    @property
    def public_texts(self) -> tuple[str, ...]:
        """The texts as a page may show them: of a file its name, not where it lies."""
        pairs = zip(self.texts, map(mechanism, self.texts), strict=True)
        return tuple(t if m.public_text == str(m) else m.public_text for t, m in pairs)


def parse_slider(text: str) -> Slider:
    """A slider from a mechanism's text `name:parameter=value|value|...,other=value,...`; a text
    without `|` has one value.

    Raises
    ------
    ParameterError
        For more than one moved parameter, or a mechanism that cannot be made.

    Examples
    --------
    >>> parse_slider("kaleido:epsilon=1|3,w=60,r_deg=2").texts
    ('kaleido:epsilon=1,w=60,r_deg=2', 'kaleido:epsilon=3,w=60,r_deg=2')
    """
    name, _, rest = text.partition(":")
    pairs = [pair.partition("=")[::2] for pair in rest.split(",")] if rest else []
    moved = [key.strip() for key, value in pairs if "|" in value]
    if len(moved) > 1:
        raise ParameterError(
            f"One parameter is moved, and '{text}' moves {' and '.join(moved)}. Give all but one a"
            " single value.",
            name="mechanism",
            got=text,
        )
    parameter = moved[0] if moved else (pairs[0][0].strip() if pairs else "")
    values = next(
        (tuple(v.strip() for v in value.split("|")) for key, value in pairs if key == parameter),
        ("",),
    )
    texts = tuple(
        name
        + (":" if pairs else "")
        + ",".join(f"{key}={value if key == parameter else given}" for key, given in pairs)
        for value in values
    )
    for one in texts:
        made = mechanism(one)
        if made.kind not in KINDS:
            checks.refuse(
                "explore",
                "mechanism",
                "one whose releases are recordings (kind stream or cohort)",
                one,
                "`gazeveil list mechanisms` lists the kinds.",
            )
    return Slider(parameter, values, texts)


def sliders(rate_hz: float, texts: Sequence[str] = ()) -> tuple[Slider, ...]:
    """The sliders of a page.

    Parameters
    ----------
    rate_hz : float
        Of the recordings: windows of half a second are counted in samples.
    texts : sequence of str
        Mechanisms of one's own (:func:`parse_slider`); the built-in choice where there are none.

    Examples
    --------
    >>> sliders(120.0)[3].texts[1]
    'kaleido:epsilon=10,w=60,r_deg=2'
    """
    w = str(max(1, round(WINDOW_S * rate_hz)))
    return tuple(parse_slider(text.replace("{w}", w)) for text in texts or _DEFAULT)


#: Who attacks, how, and how often.
BATTERY = "quick"
SCENARIOS = ("raw/private", "private/private")
REPETITIONS = 3

#: Seed of splits and noise, and seconds between windows.
SEED = 2026
_STEP_S = 1.0

#: Looks that are kept; each holds one stimulus of a few people.
_KEPT = 64

# Seconds for which an attack that runs may still end by itself.
_WAIT_S = 2.0

#: What is attacked: the people on the page, as numbers, and the mechanism (None: as recorded).
Job = tuple[tuple[int, ...], str | None]


@dataclass(frozen=True)
class Limits:
    """How much of a folder is taken, so that an attack takes seconds: so many people and stimuli,
    and so many seconds of each recording, at most.
    """

    people: int = 12
    stimuli: int = 6
    seconds: float = 20.0


@dataclass(frozen=True)
class StimulusRelease:
    """A release of one stimulus: the recordings in it by whose they are, and its promise."""

    recordings: tuple[Recording, ...]
    owners: tuple[str, ...]
    guarantee: Guarantee | None


def take(cohort: Cohort, limits: Limits) -> Cohort:
    """The part of a cohort that is explored: the stimuli that most people saw, the people who saw
    most of them, and the beginning of each recording, loaded.

    Raises
    ------
    DataError
        If there is nothing to explore.
    """
    viewers: dict[str, set[str]] = {}
    for person, stimulus, *_ in cohort.keys:
        viewers.setdefault(stimulus, set()).add(person)
    order = sorted(cohort.stimuli, key=lambda s: -len(viewers[s]))
    stimuli = [s for s in cohort.stimuli if s in order[: limits.stimuli]]
    seen = {p: sum(p in viewers[s] for s in stimuli) for p in cohort.people}
    first = sorted(cohort.people, key=lambda p: -seen[p])[: limits.people]
    people = [p for p in cohort.people if p in first and seen[p]]
    taken = [_beginning(r, limits.seconds) for r in cohort.select(people, stimuli)]
    if not any(len(r) for r in taken):
        raise DataError("There are no samples to explore in these recordings.")
    return Cohort([r for r in taken if len(r)], cohort.people, name=cohort.name)


class Board:
    """Everything the page asks for: loaded recordings (:func:`take`), and mechanisms with the
    values of their parameter.
    """

    def __init__(self, cohort: Cohort, sliders: Sequence[Slider]) -> None:
        self.cohort, self.sliders = cohort, tuple(sliders)
        self.people = tuple(dict.fromkeys(person for person, *_ in sorted(cohort.keys)))
        self.stimuli = cohort.stimuli
        self.look = lru_cache(_KEPT)(self._look)
        self._scratch = tempfile.TemporaryDirectory(
            prefix="gazeveil-explore-", ignore_cleanup_errors=True
        )
        self._found: dict[Job, dict[str, object]] = {}
        self._wanted: list[Job] = []
        self._progress = (0, 0)
        self._change = threading.Condition()
        self._open = True
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        """Begin no further attack. One that runs ends with the process at the latest."""
        with self._change:
            self._open = False
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join(_WAIT_S)
        self._scratch.cleanup()

    def describe(self) -> dict[str, object]:
        """People, stimuli and mechanisms, for the page's controls."""
        return {
            "people": list(self.people),
            "stimuli": list(self.stimuli),
            "recordings": len(self.cohort),
            "battery": BATTERY,
            "attackers": list(battery(BATTERY)),
            "mechanisms": [
                {
                    "name": (made := slider.mechanism).name,
                    "summary": made.summary,
                    "parameter": slider.parameter,
                    "values": list(slider.values),
                    "texts": list(slider.public_texts),
                }
                for slider in self.sliders
            ],
        }

    def picture(
        self, group: Sequence[int], person: int, stimulus: int, text: str | None
    ) -> dict[str, object]:
        """Trace and map of a release, or of the recordings as they are where `text` is None.
        `group` and `person` are numbers of :attr:`people`.

        Returns
        -------
        dict
            `trace`, `map`, `extent`, `promise` and `status`; or `refusal`, a sentence.
        """
        who, what = self.people[person], self.stimuli[stimulus]
        try:
            raw = self._recording(who, what)
            look = self.look(tuple(sorted(group)), stimulus, text)
        except GazeveilError as error:
            return {"refusal": str(error)}
        own = [r for r, owner in zip(look.recordings, look.owners, strict=True) if owner == who]
        pieces = text is not None and isinstance(mechanism(text), PieceMechanism)
        line = trace_line(own if pieces else own[:1], 0 if pieces else None)
        return {
            "trace": line,
            "map": map_shades(look.recordings, raw),
            "extent": extent(raw),
            "promise": "" if look.guarantee is None else look.guarantee.plain,
            "exact": "" if look.guarantee is None else str(look.guarantee),
            "status": "" if look.guarantee is None else look.guarantee.status,
        }

    def attacked(self, group: Sequence[int], slider: int, value: int) -> dict[str, object]:
        """What attackers found so far at every value of a slider; what is missing is computed from
        now on, the value named first.

        Returns
        -------
        dict
            `baseline` and `values`, each a figure, `{"refusal": sentence}` or None where it is not
            known yet; `left`, how many are missing; `done` and `cells` of the one that runs.
        """
        people = tuple(sorted(group))
        texts = self.sliders[slider].texts
        jobs: list[Job] = [(people, None), *((people, text) for text in texts)]
        first: list[Job] = [(people, None), (people, texts[value])]
        with self._change:
            self._wanted = [job for job in dict.fromkeys((*first, *jobs)) if job not in self._found]
            if self._thread is None and self._open:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
            self._change.notify_all()
            done, cells = self._progress
            return {
                "baseline": self._found.get(jobs[0]),
                "values": [self._found.get(job) for job in jobs[1:]],
                "left": len(self._wanted),
                "done": done,
                "cells": cells,
            }

    def attack(self, group: Sequence[int], text: str | None) -> dict[str, object]:
        """What attackers find, computed now; a refusal is a sentence."""
        job = (tuple(sorted(group)), text)
        if job not in self._found:
            self._found[job] = self._compute(job)
        return self._found[job]

    def _work(self) -> None:
        while True:
            with self._change:
                while self._open and not self._wanted:
                    self._change.wait()
                if not self._open:
                    return
                job = self._wanted[0]
                self._progress = (0, 0)
            found = self._compute(job)
            with self._change:
                self._found[job] = found
                self._wanted = [other for other in self._wanted if other != job]

    def _compute(self, job: Job) -> dict[str, object]:
        people, text = job
        chosen = self.cohort.select([self.people[i] for i in people])
        try:
            folder = Path(self._scratch.name) / "-".join(map(str, people))
            return attack_release(chosen, text, folder, self._tell)
        except GazeveilError as error:
            return {"refusal": str(error)}

    def _tell(self, done: int, cells: int) -> None:
        self._progress = (done, cells)

    def _recording(self, person: str, stimulus: str) -> Recording:
        for recording in self.cohort.select([person], [stimulus]):
            return recording
        raise DataError(f"{person} has no recording of {stimulus}. Choose another stimulus.")

    def _look(self, group: tuple[int, ...], stimulus: int, text: str | None) -> StimulusRelease:
        if not group:
            checks.refuse("explore", "people", "at least one person", "nobody")
        chosen = self.cohort.select([self.people[i] for i in group], [self.stimuli[stimulus]])
        if text is None:
            return StimulusRelease(tuple(chosen), tuple(r.person for r in chosen), None)
        made: Any = mechanism(text)
        if isinstance(made, PieceMechanism):
            release = made.release_with_origins(chosen)
            pieces = tuple(release.release.data)
            owners = tuple(release.origins[r.person][0] for r in pieces)
            return StimulusRelease(pieces, owners, release.release.guarantee)
        released = made.release(chosen)
        recordings = tuple(released.data)
        return StimulusRelease(recordings, tuple(r.person for r in recordings), released.guarantee)


def _beginning(recording: Recording, seconds: float) -> Recording:
    if not len(recording):
        return recording
    stop = int((recording.t_ns - recording.t_ns[0] < seconds * 1e9).sum())
    return recording.slice(0, max(1, stop)) if stop < len(recording) else recording


def attack_release(
    cohort: Cohort,
    text: str | None,
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, object]:
    """The strongest attacker of the quick battery on releases of a cohort; without a text on the
    recordings as they are. Cells of the study are kept in the folder: those that several releases
    share are computed once. `progress` is called with cells done and all cells.

    Returns
    -------
    dict
        `attack`, `scenario`, `value`, `low`, `high` (95 % over people), `chance`, `n`, `unit`
        (people or pieces), `repetitions`, and `tried`: attackers times scenarios.

    Raises
    ------
    GazeveilError
        In one sentence, where these people cannot be attacked or the mechanism refuses them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes of a study; the page says how it was measured
        results = evaluate(
            cohort,
            [] if text is None else [text],
            BATTERY,
            scenarios=SCENARIOS,
            repetitions=REPETITIONS,
            seed=SEED,
            executor=1,
            out=folder,
            progress=progress,
            preparation=FeaturePipeline(window_s=_window_s(cohort), step_s=_STEP_S),
        )
    rows = [
        row
        for row in results.worst_case().to_dicts()
        if (row["mechanism"] != "none") == (text is not None)
    ]
    if not rows:
        reason = results.failures[0]["sentence"] if results.failures else "Nobody attacked it."
        raise DataError(reason)
    row = max(rows, key=lambda r: r["value"])
    own = results.frame.filter(mechanism=row["mechanism"], parameters=row["parameters"])
    names = ("attack", "scenario", "value", "low", "high", "chance", "n", "repetitions")
    found = {name: row[name] for name in names}
    found["unit"] = "pieces" if "dealt_rate" in own["metric"].to_list() else "people"
    found["tried"] = own.filter(metric="identification_rate").height
    # NaN is no JSON.
    return {k: None if v != v else round(v, 4) if isinstance(v, float) else v
            for k, v in found.items()}  # fmt: skip


def _window_s(cohort: Cohort) -> float:
    """Windows short enough for the shortest recording, and 10 s at most."""
    seconds = min((r.duration_s for r in cohort if len(r)), default=0.0)
    if seconds < 2 * _STEP_S:
        raise DataError("The recordings are too short to attack. Take some of at least 2 seconds.")
    return min(10.0, max(_STEP_S, float(int(seconds / 2))))
