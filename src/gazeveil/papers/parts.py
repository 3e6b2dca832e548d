"""Studies of several parts: a paper's figure spans datasets, splits and protocols, and each of them
is a study of its own.

A file with `[[part]]` tables. What stands above them holds for every part; a part may say
otherwise, and names its recordings:

* `label`: the dataset, or `dataset, variant`; it becomes the `cohort` of its rows.
* `cohort` (path, format, options...) and `simulate`, as in a plain study: the files where they are,
  else a simulated cohort of the same shape. A list of `simulate` tables is one cohort of several:
  the same people at several tasks (`join = "tasks"`), or different people (`join = "datasets"`,
  then each table has a `dataset`, and `cohort` may be a list too).
* `windows = true` reduces the recordings to their table of window features; `drop` leaves columns
  of it out. `documents = true` takes the task off its keys, so that every document is a task of its
  own, as David-John et al. 2022 and Bozkir et al. 2021 have it: their mechanisms work task by task.
* `people` and `stimuli` in `draw` take so many at random, `attributes = "davidjohn2023 supplement
  Table 1"` gives the people the ages and genders of that table.
* `files_only` names attacks and utilities that need what only the files have, such as an
  annotation; a simulated part goes without them.
* `curves` names a window feature whose correlation over people is kept for drawing (Bozkir et al.
  2021 Figs 3 to 6).

In texts of mechanisms, attacks and utilities `{1,2,5}` stands for each of the values. `[quick]`
says what the short form overrides; `most` in it caps people, stimuli and seconds, and lists in
braces are cut to their ends. A mechanism whose name is reserved but whose code is not there is left
out and listed as missing.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.errors import FormatError, GazeveilError, ParameterError
from gazeveil.evaluation.sources import Files, Simulated, opened
from gazeveil.evaluation.study import Study, find_path, from_toml
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort, Handle, natural
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.papers import protocols
from gazeveil.papers.catalogue import name_of
from gazeveil.papers.citations import FORMER, check_key
from gazeveil.papers.figure import RESERVED
from gazeveil.privacy.registry import mechanisms as known_mechanisms

#: Keys that hold texts of mechanisms, attacks and utilities.
TEXTS = ("mechanisms", "attacks", "utilities")
_OWN = (
    "label",
    "join",
    "windows",
    "drop",
    "draw",
    "attributes",
    "curves",
    "quick",
    "files_only",
    "documents",
)
_WHOLE = ("name", "paper", "figure", "part", "quick")
#: The value of `attributes` for the ages and genders of that table.
TABLE_1 = "davidjohn2023 supplement Table 1"
_JOINS = ("tasks", "datasets")


@dataclass(frozen=True)
class Part:
    """One study of several.

    Parameters
    ----------
    label : str
        Dataset and variant.
    said : mapping
        Its keys, those of the whole file included.
    real : bool
        Whether its files are there; else it is simulated.
    missing : tuple of str
        Mechanisms that were left out because their code is not there.
    here : Path
        Folder of the file.
    left_to_files : tuple of str
        Attacks and utilities that a simulated part goes without.
    """

    label: str
    said: Mapping[str, Any]
    real: bool
    missing: tuple[str, ...]
    here: Path
    left_to_files: tuple[str, ...] = ()

    @property
    def dataset(self) -> str:
        """The label without its variant."""
        return self.label.partition(",")[0]

    def study(self) -> Study:
        """The study, ready to run; sources that are no plain files are opened here."""
        plain = {k: v for k, v in self.said.items() if k not in _OWN}
        cohorts, simulated = _listed(plain.get("cohort")), _listed(plain.get("simulate"))
        plain |= {
            "cohort": cohorts[0] if cohorts else {},
            "simulate": simulated[0] if simulated else {},
        }
        if self.real:
            plain.pop("simulate")
        else:
            # Which people and stimuli of the files to take: simulated ones are made as many as are
            # wanted.
            plain["cohort"] = {}
        plain |= {
            "attacks": [protocols.attack(t) for t in plain.get("attacks", [])],
            "utilities": [protocols.utility(t) for t in plain.get("utilities", [])],
        }
        made = self._plain(plain)
        if len(cohorts if self.real else simulated) > 1:
            made = replace(
                made,
                source=self._joined(cohorts if self.real else simulated, plain),
                people=None,
                stimuli=None,
            )
        if "draw" in self.said or "attributes" in self.said or self.said.get("windows"):
            made = self._reduced(made)
        return made

    def _plain(self, said: Mapping[str, Any]) -> Study:
        """The study of one cohort; `space = "sphere"` puts simulated readers into a headset."""
        sections = {
            n: {k: v for k, v in said.get(n, {}).items() if k not in ("dataset", "space")}
            for n in ("cohort", "simulate")
        }
        made = from_toml(
            {**said, **{n: s for n, s in sections.items() if s}}, self.here, self.label
        )
        space = said.get("simulate", {}).get("space")
        if space is None or not isinstance(made.source, Simulated):
            return made
        checks.one_of("simulate", "space", space, ("sphere",))
        return replace(
            made, source=replace(made.source, options={**made.source.options, "space": Sphere()})
        )

    def _joined(self, tables: Sequence[Mapping[str, Any]], plain: Mapping[str, Any]) -> Cohort:
        """Several cohorts as one: the same people at several tasks, or different people."""
        how = checks.one_of("part", "join", self.said.get("join", "tasks"), _JOINS)
        items: list[Recording | Handle] = []
        people: dict[str, Mapping[str, object]] = {}
        for table in tables:
            name = str(table.get("dataset", ""))
            section = "cohort" if self.real else "simulate"
            one = self._plain({**plain, "cohort": {}, "simulate": {}, section: table})
            held = opened(one.source, one.people, one.stimuli, FeaturePipeline()).cohort
            if held is None:
                raise ParameterError(
                    "Parts that join several cohorts need recordings, not tables.", name="cohort"
                )
            if how == "tasks":
                items += held.items
                people |= dict(held.people)
            else:
                items += [_handle(item, name) for item in held.items]
                people |= {f"{name} {p}": a for p, a in held.people.items()}
        return Cohort(items, people, name=self.label)

    def _reduced(self, study: Study) -> Study:
        """The study on some people at random, with other attributes, or on the table of windows."""
        raw = opened(study.source, study.people, study.stimuli, study.preparation)
        rng = np.random.default_rng(study.seed)
        drawn = self.said.get("draw", {})
        chosen = {}
        for what, names in (("people", raw.persons), ("stimuli", raw.stimuli)):
            if what in drawn and drawn[what] < len(names):
                chosen[what] = tuple(
                    sorted(
                        rng.permutation(sorted(names, key=natural))[
                            : checks.count("draw", what, drawn[what])
                        ].tolist(),
                        key=natural,
                    )
                )
        raw = raw.select(**chosen) if chosen else raw
        if "attributes" in self.said:
            raw = _with_table_1(raw, str(self.said["attributes"]))
        if self.said.get("windows"):
            raw = _window_material(
                raw,
                study,
                tuple(self.said.get("drop", ())),
                bool(self.said.get("documents", False)),
            )
        source = raw if raw.cohort is None or "attributes" in self.said else raw.cohort
        return replace(study, source=source, people=None, stimuli=None)


@dataclass(frozen=True)
class MultiPartStudy:
    """A file of parts."""

    name: str
    paper: str
    figure: str
    quick: bool
    parts: tuple[Part, ...]


def has_parts(path: str | Path) -> bool:
    """Whether a study file has parts; False for what is no TOML.

    A file that is missing and bears the name of a study of the package counts as one: :func:`read`
    says how to run that.
    """
    place = Path(path)
    if not place.exists() and name_of(place):
        return True
    try:
        return "part" in tomllib.loads(place.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False


def read(path: str | Path, quick: bool = False) -> MultiPartStudy:
    """Read a file of parts.

    Parameters
    ----------
    path : path
        A TOML file.
    quick : bool
        The short form: fewer people, stimuli, seconds and repetitions, as the file says.

    Raises
    ------
    FormatError
        Naming the file, for whatever is wrong in it.
    """
    place = Path(path)
    try:
        said = tomllib.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FormatError(place, "there is no such file", _where_now(place)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(
            place, f"it is not TOML ({str(error).splitlines()[0].rstrip('.')})", "Mend the file."
        ) from error
    try:
        return _plan(said, place, quick)
    except FormatError:
        raise
    except GazeveilError as error:
        raise FormatError(place, str(error).rstrip(".")) from error


def _where_now(place: Path) -> str:
    """The next step where a study is missing: those of the package lay in a folder once."""
    name = name_of(place)
    if not name:
        return "Check the path."
    folder, key = place.parent.name, name.rpartition("/")[0]
    former = f" The folder '{folder}' is called '{key}' now." if folder.upper() in FORMER else ""
    return f"The package brings this study: run `gazeveil reproduce {name}`.{former}"


def _plan(said: Mapping[str, Any], place: Path, quick: bool) -> MultiPartStudy:
    listed = said.get("part", [])
    if (
        not isinstance(listed, list)
        or not listed
        or not all(isinstance(p, Mapping) and p.get("label") for p in listed)
    ):
        raise ParameterError(
            "A study of parts needs [[part]] tables, each with a label.", name="part", got=listed
        )
    shared = {k: v for k, v in said.items() if k not in _WHOLE}
    parts = []
    for one in listed:
        own = {
            **shared,
            **one,
            "preparation": {**shared.get("preparation", {}), **one.get("preparation", {})},
        }
        if quick:
            own = _quick(own, {**said.get("quick", {}), **one.get("quick", {})})
        parts.append(_part(own, place.parent.resolve(), quick))
    labels = [p.label for p in parts]
    twice = next((x for x in labels if labels.count(x) > 1), None)
    if twice is not None:
        raise ParameterError(
            f"The label '{twice}' names two parts. Give each its own.", name="label", got=twice
        )
    paper = check_key("study", said["paper"]) if said.get("paper") else ""
    return MultiPartStudy(
        str(said.get("name", place.stem)), paper, str(said.get("figure", "")), quick, tuple(parts)
    )


def _quick(own: dict[str, Any], short: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a part in its short form."""
    most = short.get("most", {})
    checks.known_options("most of [quick]", most, ("people", "stimuli", "seconds"))
    own |= {k: v for k, v in short.items() if k != "most"}
    own["cohort"] = _same_form(
        own.get("cohort"),
        lambda t: {**t, **{k: _fewer(t.get(k), v) for k, v in most.items() if k != "seconds"}},
    )
    own["simulate"] = _same_form(
        own.get("simulate"), lambda t: {**t, **{k: min(v, t[k]) for k, v in most.items() if k in t}}
    )
    if "draw" in own:
        own["draw"] = {k: min(v, max(2, most.get(k, v) // 2)) for k, v in own["draw"].items()}
    return own


def _fewer(wanted: object, most: int) -> object:
    """At most so many of the people or stimuli that are wanted."""
    if wanted is None:
        return most
    return wanted[:most] if isinstance(wanted, list) else min(int(str(wanted)), most)


def _part(own: Mapping[str, Any], here: Path, quick: bool) -> Part:
    said = dict(own)
    for what in TEXTS:
        said[what] = list(
            dict.fromkeys(
                text for given in said.get(what, []) for text in expand(str(given), quick)
            )
        )
    gone = [
        t
        for t in said["mechanisms"]
        if t.partition(":")[0] in RESERVED and t.partition(":")[0] not in known_mechanisms()
    ]
    said["mechanisms"] = [t for t in said["mechanisms"] if t not in gone]
    paths = [c for c in _listed(said.get("cohort")) if "path" in c]
    simulated = _listed(said.get("simulate"))
    real = bool(paths) and all(find_path(str(c["path"]), here).exists() for c in paths)
    if not real and not simulated:
        raise ParameterError(
            f"Part '{said['label']}' has no files here and no 'simulate' to fall back on.",
            name="simulate",
        )
    left = [
        t
        for what in ("attacks", "utilities")
        for t in said[what]
        if not real and t.partition(":")[0] in said.get("files_only", ())
    ]
    said |= {what: [t for t in said[what] if t not in left] for what in ("attacks", "utilities")}
    # A mechanism is what private scenarios are about: where all of a part's are missing, only the
    # baseline is left.
    if not said["mechanisms"]:
        said["scenarios"] = ["raw/raw"]
    return Part(str(said["label"]), said, real, tuple(gone), here, tuple(left))


def expand(text: str, ends: bool = False) -> list[str]:
    """Braces as a shell has them; with `ends` the first and the last value only.

    Examples
    --------
    >>> expand("kaleido:epsilon={10,1},w={50,200},r_deg=2")
    ['kaleido:epsilon=10,w=50,r_deg=2', 'kaleido:epsilon=10,w=200,r_deg=2',
    'kaleido:epsilon=1,w=50,r_deg=2', 'kaleido:epsilon=1,w=200,r_deg=2']
    """
    pieces = re.split(r"\{([^{}]*)\}", text)
    choices = [
        [c.strip() for c in piece.split(",")] if i % 2 else [piece]
        for i, piece in enumerate(pieces)
    ]
    if ends:
        choices = [[c[0], c[-1]] if len(c) > 2 else c for c in choices]
    return ["".join(combined) for combined in itertools.product(*choices)]


def _listed(value: object) -> list[dict[str, Any]]:
    if value is None or value == {}:
        return []
    tables = value if isinstance(value, list) else [value]
    if not all(isinstance(t, Mapping) for t in tables):
        raise ParameterError(
            "'cohort' and 'simulate' of a part are tables such as {people = 8, ...}, or lists of"
            " them.",
            name="cohort",
            got=value,
        )
    return [dict(t) for t in tables if isinstance(t, Mapping)]


def _same_form(value: object, change: Callable[[dict[str, Any]], dict[str, Any]]) -> object:
    changed = [change(t) for t in _listed(value)]
    return changed if isinstance(value, list) else (changed[0] if changed else {})


def _handle(item: Recording | Handle, dataset: str) -> Handle:
    """A recording under names that other datasets do not have."""
    person, stimulus = f"{dataset} {item.person}", f"{dataset} {item.stimulus}"
    return Handle(
        person,
        stimulus,
        partial(_renamed, item, person, stimulus),
        item.session,
        item.task,
        dataset,
    )


def _renamed(item: Recording | Handle, person: str, stimulus: str) -> Recording:
    recording = item if isinstance(item, Recording) else item.load()
    return recording.with_(person=person, stimulus=stimulus)


def _with_table_1(raw: RecordingSet, which: str) -> RecordingSet:
    """The people with the ages and genders of Table 1 of the supplement of David-John et al. 2023,
    dataset by dataset in natural order.
    """
    from gazeveil.papers.davidjohn2023 import PEOPLE

    if which == "S004 Table 1":
        checks.renamed("part", "attributes", which, TABLE_1)
    checks.one_of("part", "attributes", which, (TABLE_1,))
    people: dict[str, Mapping[str, object]] = {}
    for dataset, rows in PEOPLE.items():
        own = sorted((p for p in raw.persons if p.startswith(f"{dataset} ")), key=natural)
        if len(own) != len(rows):
            raise ParameterError(
                f"Table 1 of the supplement has {len(rows)} people of {dataset}, and the part has"
                f" {len(own)}.",
                name="attributes",
                got=which,
            )
        people |= {
            p: {"age": age, "gender": gender} for p, (age, gender) in zip(own, rows, strict=True)
        }
    return RecordingSet(raw.cohort, raw.tables, raw.preparation, people)


def _window_material(
    raw: RecordingSet, study: Study, drop: Sequence[str], documents: bool
) -> RecordingSet:
    """The table of windows alone, without some columns and maybe without tasks; MPIIPrivacEye's
    with its annotation.
    """
    from gazeveil.io.datasets.mpiiprivaceye import privacy_labels
    from gazeveil.utility.classification.classify import with_privacy_labels

    table = raw.windows
    gone = [c for c in drop if c in table.columns]
    table = table.drop(gone) if gone else table
    if documents:
        keys = replace(table.keys, task=np.full(len(table), ""))
        table = FeatureTable(table.values, table.columns, keys, table.bounds, table.counts)
    if isinstance(study.source, Files) and study.source.format == "mpiiprivaceye":
        table = with_privacy_labels(table, privacy_labels(study.source.path))
    return RecordingSet(None, {"window": table}, raw.preparation, raw.people)
