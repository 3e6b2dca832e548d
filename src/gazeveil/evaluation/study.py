"""A study: one cohort, some mechanisms, attackers and utilities, the scenarios and how often; from
Python or from a TOML file.

A study is a value: making one checks every name and every parameter, and what cannot be together is
refused in one sentence before any work. What is computed from it follows from the study alone (and
the recordings), never from the order of work.

Inference attacks in a study: they stand among its attacks, and like a utility that does not
train they are given the raw recordings and one release.

Columns of the tables of results, and the words that stand in them.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.attacks import registry as batteries
from gazeveil.attacks.base import Attack, InferenceAttack
from gazeveil.attacks.infer import KINDS
from gazeveil.attacks.registry import attack as attack_by_name
from gazeveil.errors import DataError, FormatError, GazeveilError, ParameterError
from gazeveil.evaluation.sources import Files, Selection, Simulated, Source
from gazeveil.features.recording_set import EVENTS, FeaturePipeline, RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.registry import mechanism as mechanism_by_name
from gazeveil.registry import build, parse
from gazeveil.utility.base import Utility, UtilityResult
from gazeveil.utility.registry import utility as utility_by_name

#: What makes a cell of the comparison, apart from who attacks or measures.
CELL = ("mechanism", "reading", "parameters", "events", "scenario")

_FIGURE = dict.fromkeys((*CELL, "attack", "utility", "metric"), pl.String())

#: Columns of :attr:`gazeveil.evaluation.results.Results.frame`, in order.
FRAME: dict[str, pl.DataType] = {
    "cohort": pl.String(),
    **_FIGURE,
    **dict.fromkeys(("value", "low", "high"), pl.Float64()),
    "n": pl.Int64(),
    "chance": pl.Float64(),
    **dict.fromkeys(("repetitions", "seed"), pl.Int64()),
    **dict.fromkeys(("p_value", "sd"), pl.Float64()),
    **dict.fromkeys(("better", "note"), pl.String()),
}

#: Columns of :attr:`gazeveil.evaluation.results.Results.outcomes`, in order.
OUTCOMES: dict[str, pl.DataType] = {
    **_FIGURE,
    "repetition": pl.Int64(),
    "part": pl.String(),
    "value": pl.Float64(),
    "answer": pl.String(),
    "beaten_by": pl.Int64(),
    "tied": pl.String(),
}

#: Between names that score the same, in the column `tied`; no name holds it.
BETWEEN = "\x1f"

#: Columns of :meth:`gazeveil.evaluation.results.Results.strongest_against`, in order.
AGAINST: dict[str, pl.DataType] = {
    "cohort": pl.String(),
    **dict.fromkeys((*CELL[:4], "strongest", "scenario"), pl.String()),
    **dict.fromkeys(("value", "low", "high", "chance"), pl.Float64()),
    **dict.fromkeys(("n", "tried"), pl.Int64()),
    **dict.fromkeys(("chosen", "chosen_low", "chosen_high", "p_value", "guessed"), pl.Float64()),
    **dict.fromkeys(("other", "other_scenario"), pl.String()),
    **dict.fromkeys(("other_value", "other_low", "other_high"), pl.Float64()),
    **dict.fromkeys(("difference", "difference_low", "difference_high"), pl.Float64()),
    "called_safe": pl.Boolean(),
}

#: The scenario of one release split afterwards: it misleads where its parts share noise and there
#: is another.
ONE_RELEASE = "release/release"

#: The attack metric every headline quotes.
RATE = "identification_rate"

#: The same of an attacker who is told which pieces belong together: a bound, never a headline.
BOUND = "bound_rate"

#: A control that attacks on pieces have, and no others (names dealt anew within windows).
DEALT = "dealt_rate"

#: The unprotected baseline.
NONE = "none"


def mechanism_text(mechanism: str, reading: str = "", parameters: str = "") -> str:
    """The full text of a mechanism from its three columns, as guarantees and examples have it.

    Examples
    --------
    >>> mechanism_text("gaussian", "corrected", "sigma_deg=10")
    'gaussian:sigma_deg=10,reading=corrected'
    >>> mechanism_text("none")
    'none'
    """
    rest = ",".join(filter(None, (parameters, f"reading={reading}" if reading else "")))
    return mechanism + (":" + rest if rest else "")


#: Names of rates in a study's results, whose `identification_rate` is over split recordings.
_RATES = {"record-linkage": ("linkage_rate", "matching_rate"), "demographics": ("linkage_rate",)}

#: Errors of the attacker: more of them is better for people.
_ERRORS = ("mae",)


@dataclass(frozen=True)
class InferredResult(UtilityResult):
    """A figure of an inference attack with its own interval and number of people or recordings."""

    low: float = math.nan
    high: float = math.nan
    n: int = 0


@dataclass(frozen=True)
class Inference(Utility):
    """An inference attack, to be measured by a study.

    Parameters
    ----------
    attack : InferenceAttack
        Any of :data:`gazeveil.attacks.infer.KINDS` but membership.
    """

    attack: InferenceAttack

    name: ClassVar[str] = "inference"
    needs: ClassVar[tuple[str, ...]] = ("fixation", "saccade")
    trains: ClassVar[bool] = False
    #: It compares whole recordings, so that a study needs no split for it.
    same_stimulus: ClassVar[bool] = True

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """What the attacker finds in the release `test`; see :class:`Utility`."""
        results = self.attack.run(raw, test, seed).results
        metrics = _RATES.get(self.attack.kind, tuple(r.metric for r in results))
        return tuple(
            InferredResult(
                metric,
                r.value,
                np.empty(0),
                "person",
                (),
                r.chance,
                "higher" if metric in _ERRORS else "lower",
                r.protocol,
                r.low,
                r.high,
                r.n,
            )
            for metric, r in zip(metrics, results, strict=True)
        )

    def __str__(self) -> str:
        """The command line's form: the kind, and the parameters that are not the defaults."""
        parameters = {f.name: getattr(self.attack, f.name) for f in fields(self.attack)}
        defaults = {f.name: f.default for f in fields(self.attack)}
        rest = ",".join(f"{k}={v}" for k, v in parameters.items() if v != defaults[k])
        return self.attack.kind + (f":{rest}" if rest else "")


def attacker(text: str) -> Attack | Inference:
    """An attacker of a study by its text: one that names people, or an inference attack.

    Examples
    --------
    >>> str(attacker("attributes:attribute=age")), str(attacker("linkage"))
    ('attributes:attribute=age', 'linkage')
    """
    kind = text.partition(":")[0]
    if kind == "membership":
        raise ParameterError(
            "'membership' needs people who are not in the release, and a study protects"
            " everybody's recordings. Use `gazeveil attack --kind membership`.",
            name="attacks",
            got=text,
        )
    if kind not in KINDS:
        return attack_by_name(text)
    return Inference(build("attack", KINDS[kind], parse(text, "attack")[1]))


#: Train/test: what the attacker or analyst learns from, and what is asked about. `private/private`
#: are two independent releases, `release/release` is one release split afterwards (Bozkir et al.'s
#: (2021) protocol, which misleads where one release's noise is common to both parts).
SCENARIOS = ("raw/raw", "private/raw", "raw/private", "private/private", "release/release")

#: What a study measures unless it says otherwise.
DEFAULT_SCENARIOS = ("raw/private", "private/private")

#: How gallery and probe are told apart: by stimulus, as halves of every recording (Bozkir et al.
#: 2021), or each person's last session against the others.
SPLITS = ("stimulus", "halves", "session")

#: What mechanisms on tables are given: the tables of fixations and saccades, or the table of
#: windows.
TABLES = ("events", "windows")


#: What may be given as objects or as texts: key, class, and how a text is made into one.
_BUILT: tuple[tuple[str, type | tuple[type, ...], Callable[[str], Any]], ...] = (
    ("mechanisms", Mechanism, mechanism_by_name),
    ("attacks", (Attack, Inference), attacker),
    ("utilities", Utility, utility_by_name),
)


@dataclass(frozen=True, eq=False)
class Study:
    """The specification of a study.

    Parameters
    ----------
    source : Cohort, RecordingSet, FeatureTable, Files or Simulated
        The recordings.
    mechanisms, attacks, utilities : tuples of objects or texts `name:parameter=value,...`
        What protects, what attacks, what is measured. The unprotected baseline `none` is always
        there. Among the attacks may stand names of batteries
        (:data:`gazeveil.attacks.registry.BATTERIES`).
    scenarios : tuple of str
        Some of :data:`SCENARIOS`.
    repetitions : int
        How many draws of the split and of the mechanisms' noise.
    seed : int
        Everything random follows from it.
    name : str
        For the report; default the cohort's.
    people, stimuli : tuple of str or int, optional
        Which ones, or how many (the first in natural order).
    split : str
        One of :data:`SPLITS`.
    train : float
        With `split="stimulus"`: share of the stimuli the attacker learns from.
    events : tuple of str
        `redetected`, `carried` or both: where the events of released samples come from.
    preparation : FeaturePipeline
        Detector and windows.
    tables : str
        One of :data:`TABLES`, for mechanisms on tables.
    paper : str
        Which paper the study mirrors; see :func:`gazeveil.papers.grading.compare`.
    battery : str
        Which battery attacks, in words; follows from `attacks`.

    Raises
    ------
    ParameterError, DataError
        In one sentence, for unknown names, repeated entries and contradictions.
    """

    source: Source
    mechanisms: tuple[Mechanism[Any], ...] = ()
    attacks: tuple[Attack | Inference, ...] = ()
    utilities: tuple[Utility, ...] = ()
    scenarios: tuple[str, ...] = DEFAULT_SCENARIOS
    repetitions: int = 10
    seed: int = 0
    name: str = ""
    people: Selection = None
    stimuli: Selection = None
    split: str = "stimulus"
    train: float = 0.75
    events: tuple[str, ...] = ("redetected",)
    preparation: FeaturePipeline = field(default_factory=FeaturePipeline)
    tables: str = "events"
    paper: str = ""
    battery: str = ""

    def __post_init__(self) -> None:
        store = object.__setattr__
        if not isinstance(self.source, Cohort | RecordingSet | FeatureTable | Files | Simulated):
            checks.refuse(
                "Study", "cohort", "a Cohort, a RecordingSet, a FeatureTable or a path", self.source
            )
        named = _listed("attacks", self.attacks)
        store(self, "battery", self.battery or batteries.describe(named))
        store(self, "attacks", batteries.unfold(named))
        for name, base, by_name in _BUILT:
            store(self, name, _built(name, getattr(self, name), base, by_name))
        for name, known in (("scenarios", SCENARIOS), ("events", EVENTS)):
            listed = _listed(name, getattr(self, name))
            store(self, name, tuple(checks.one_of("Study", name, v, known) for v in listed))
        store(self, "repetitions", checks.count("Study", "repetitions", self.repetitions))
        store(self, "seed", checks.count("Study", "seed", self.seed, least=0))
        if self.seed >= 2**63:
            checks.refuse("Study", "seed", "below 2**63", self.seed)
        for name in ("people", "stimuli"):
            store(self, name, _selection(name, getattr(self, name)))
        checks.one_of("Study", "split", self.split, SPLITS)
        checks.one_of("Study", "tables", self.tables, TABLES)
        store(self, "train", checks.number("Study", "train", self.train))
        if not 0 < self.train < 1:
            usual = "0.75 is the papers' usual share."
            checks.refuse("Study", "train", "above 0 and below 1", self.train, usual)
        for name in ("name", "paper"):
            if not isinstance(getattr(self, name), str):
                checks.refuse("Study", name, "text", getattr(self, name))
        for name in ("mechanisms", "attacks", "utilities", "scenarios", "events"):
            _refuse_twice(name, [str(v) for v in getattr(self, name)])
        _try_detector(self.preparation)
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        if not self.attacks and not self.utilities:
            raise ParameterError(
                "A study needs something to measure. Name an attack (for example linkage) or a"
                " utility (for example saliency).",
                name="attacks",
            )
        if not self.scenarios:
            raise ParameterError(
                "A study needs at least one scenario. Leave 'scenarios' out for "
                + " and ".join(DEFAULT_SCENARIOS)
                + ".",
                name="scenarios",
            )
        if not self.events:
            raise ParameterError(
                "A study needs at least one of the events redetected and carried.", name="events"
            )
        if self.mechanisms and self.scenarios == ("raw/raw",):
            raise ParameterError(
                "The scenario raw/raw has no place for a mechanism, and the study names some. Add"
                " for example private/private.",
                name="scenarios",
            )
        called: dict[str, str] = {}
        parts: tuple[Mechanism[Any] | Utility, ...] = (*self.mechanisms, *self.utilities)
        for part in parts:
            if called.setdefault(part.public_text, str(part)) != str(part):
                raise ParameterError(
                    f"Two files of {part.name} have the same name in different folders, and"
                    " results give names alone. Rename one of them.",
                    name="mechanisms" if isinstance(part, Mechanism) else "utilities",
                    got=str(part),
                )
        for mechanism in self.mechanisms:
            if mechanism.kind in ("map", "people"):
                output = "maps" if mechanism.kind == "map" else "attributes of people"
                raise ParameterError(
                    f"'{mechanism.name}' releases {output}, and the attackers and utilities of a"
                    " study look at recordings or tables of features. Leave it out.",
                    name="mechanisms",
                    got=str(mechanism),
                )
            if mechanism.kind != "stream" and self.events == ("carried",):
                raise ParameterError(
                    f"'{mechanism.name}' passes no event labels on, so its events cannot be"
                    " carried. Use events = ['redetected'].",
                    name="events",
                    got="carried",
                )

    def describe(self) -> dict[str, object]:
        """The plan as JSON has it."""
        p = self.preparation
        return {
            "name": self.name,
            "paper": self.paper,
            "mechanisms": [m.public_text for m in self.mechanisms],
            "attacks": [str(a) for a in self.attacks],
            "battery": self.battery,
            "utilities": [u.public_text for u in self.utilities],
            "scenarios": list(self.scenarios),
            "repetitions": self.repetitions,
            "seed": self.seed,
            "split": self.split,
            "train": self.train,
            "events": list(self.events),
            "tables": self.tables,
            "preparation": {
                "detector": p.method,
                **{k: str(v) for k, v in sorted(p.parameters.items())},
                "window_s": p.window_s,
                "step_s": p.step_s,
            },
        }

    @classmethod
    def read(cls, path: str | Path) -> Study:
        """A study from a TOML file; paths in it are relative to the file, or to the folder
        GAZEVEIL_DATA names.

        Raises
        ------
        FormatError
            Naming the file, for whatever is wrong in it.
        """
        place = Path(path)
        return read_toml(place, lambda toml: from_toml(toml, place.parent.resolve(), place.stem))


Made = TypeVar("Made")


def read_toml(
    place: Path, make: Callable[[dict[str, Any]], Made], missing: str = "Check the path."
) -> Made:
    """What is made of a TOML file's keys.

    Parameters
    ----------
    place : Path
        The file.
    make : callable
        Given the keys.
    missing : str
        The next step where there is no file.

    Raises
    ------
    FormatError
        Naming the file, for whatever is wrong in it.
    """
    try:
        keys = tomllib.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FormatError(place, "there is no such file", missing) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise FormatError(place, f"it is not TOML ({reason})", "Mend the file.") from error
    try:
        return make(keys)
    except FormatError:
        raise
    except GazeveilError as error:
        raise FormatError(place, str(error).rstrip(".")) from error


_PLAIN = frozenset(f.name for f in fields(Study)) - {
    *("source", "people", "stimuli", "preparation", "battery")
}
_COHORT = ("path", "format", "options", "table", "people", "stimuli")


def from_toml(options: Mapping[str, Any], here: Path, stem: str) -> Study:
    """A study from what a TOML file says.

    Parameters
    ----------
    options : mapping
        Its keys.
    here : Path
        Its folder.
    stem : str
        The study's name if it has none.

    Notes
    -----
    Where the file does not say who attacks, the battery
    :data:`gazeveil.attacks.registry.DEFAULT` does; `attacks = []` leaves attackers out.
    """
    checks.known_options("A study", options, {*_PLAIN, "cohort", "simulate", "preparation"})
    sections = {name: options.get(name, {}) for name in ("cohort", "simulate", "preparation")}
    for name, section in sections.items():
        if not isinstance(section, Mapping):
            raise ParameterError(
                f"'{name}' of a study is a section of its own: write [{name}] and then its keys.",
                name=name,
                got=section,
            )
    plain = {
        "name": stem,
        "attacks": batteries.DEFAULT,
        **{k: v for k, v in options.items() if k in _PLAIN},
    }
    cohort = sections["cohort"]
    checks.known_options("The section [cohort]", cohort, _COHORT)
    chosen: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v
        for k, v in cohort.items()
        if k in ("people", "stimuli")
    }
    study = Study(
        _source(cohort, sections["simulate"], here),
        **plain,
        **chosen,
        preparation=_preparation(sections["preparation"]),
    )
    return replace(study, utilities=tuple(_beside(u, here) for u in study.utilities))


def _beside(utility: Utility, here: Path) -> Utility:
    """A utility whose parameters name files beside the study (areas of interest, say) with their
    whole paths.
    """
    texts = {
        f.name: getattr(utility, f.name)
        for f in fields(utility)
        if isinstance(getattr(utility, f.name), str)
    }
    files = {
        name: str(here / text)
        for name, text in texts.items()
        if text and not Path(text).is_file() and (here / text).is_file()
    }
    return replace(utility, **files) if files else utility


def _source(cohort: Mapping[str, Any], simulated: Mapping[str, Any], here: Path) -> Source:
    if "path" in cohort:
        place = find_path(str(cohort["path"]), here)
        if place.exists() or not simulated:
            if not place.exists():
                raise FormatError(
                    place,
                    "there is no such file or folder",
                    "Check the path, set GAZEVEIL_DATA, or add a [simulate] section to fall"
                    " back on.",
                )
            options = cohort.get("options", {})
            if not isinstance(options, Mapping):
                raise ParameterError(
                    "'options' of [cohort] must be a table such as {unit = \"px\"}.",
                    name="options",
                    got=options,
                )
            return Files(str(place), cohort.get("format"), dict(options), cohort.get("table"))
    if not simulated:
        raise ParameterError(
            "A study needs a [cohort] with a path, or a [simulate] section.", name="cohort"
        )
    return simulated_source(simulated)


def simulated_source(options: Mapping[str, Any]) -> Simulated:
    """A simulated cohort from the keys of a `[simulate]` section."""
    from gazeveil.gaze.simulate import simulate

    own = [f.name for f in fields(Simulated) if f.name != "options"]
    further = [
        n for n in signature(simulate).parameters if n not in own and n not in ("space", "tracker")
    ]
    checks.known_options("The section [simulate]", options, {*own, *further})
    missing = [n for n in ("people", "stimuli", "seconds", "rate_hz") if n not in options]
    if missing:
        raise ParameterError(f"The section [simulate] needs '{missing[0]}'.", name=missing[0])
    source = Simulated(
        **{k: v for k, v in options.items() if k in own},
        options={k: v for k, v in options.items() if k in further},
    )
    source.open()  # it is lazy: this checks the parameters and makes nothing
    return source


def find_path(path: str, here: Path) -> Path:
    """Where a path of a study file leads: from the file's folder, else from the folder
    GAZEVEIL_DATA names; it need not exist.
    """
    place = Path(path).expanduser()
    if place.is_absolute() or (here / place).exists():
        return here / place
    data = os.environ.get("GAZEVEIL_DATA")
    return (
        Path(data).expanduser() / place
        if data and (Path(data).expanduser() / place).exists()
        else here / place
    )


def _preparation(section: Mapping[str, Any]) -> FeaturePipeline:
    """Detector, its parameters, and the windows."""
    from gazeveil.events import METHODS

    method = checks.one_of(
        "The section [preparation]", "detector", section.get("detector", "ivt"), METHODS
    )
    parameters = {k: v for k, v in section.items() if k not in ("detector", "window_s", "step_s")}
    windows: dict[str, Any] = {
        k: checks.positive("The section [preparation]", k, section[k])
        for k in ("window_s", "step_s")
        if k in section
    }
    if not parameters and method == "ivt":
        parameters = {"setting": "george"}
    return FeaturePipeline(method, parameters, **windows)


def _try_detector(preparation: FeaturePipeline) -> None:
    """A detector looks at its parameters only when it works: it is given a fifth of a second of
    nothing, so that a mistake shows now.
    """
    t = np.arange(50, dtype=np.int64) * 4_000_000
    FeaturePipeline(preparation.method, preparation.parameters).events_of(
        Recording("nobody", "nothing", t, np.full(50, 180.0), np.full(50, 90.0))
    )


def _built(
    name: str, value: object, base: type | tuple[type, ...], by_name: Callable[[str], Any]
) -> tuple[Any, ...]:
    items: list[Any] = []
    for entry in _listed(name, value):
        if isinstance(entry, str):
            # The baseline is always there, so naming it adds nothing.
            items += [] if entry == NONE and base is Mechanism else [by_name(entry)]
        elif isinstance(entry, base):
            items.append(entry)
        else:
            checks.refuse(
                "Study",
                name,
                "objects or texts such as"
                f" {'gaussian:sigma_deg=5' if base is Mechanism else 'name:parameter=value'}",
                entry,
            )
    return tuple(items)


def _listed(name: str, value: object) -> tuple[Any, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        checks.refuse("Study", name, "a list", value)
    return tuple(value)


def _selection(name: str, selection: object) -> Selection:
    if selection is None or (isinstance(selection, int) and not isinstance(selection, bool)):
        return selection if selection is None else checks.count("Study", name, selection)
    names = _listed(name, selection)
    if not names or not all(isinstance(n, str) for n in names):
        checks.refuse("Study", name, "a list of names or a count", selection)
    _refuse_twice(name, list(names))
    return names


def _refuse_twice(name: str, texts: list[str]) -> None:
    twice = next((t for t in texts if texts.count(t) > 1), None)
    if twice is not None:
        raise DataError(
            f"The study names '{twice}' more than once under '{name}'. Each cell is computed once;"
            " leave the others out."
        )
