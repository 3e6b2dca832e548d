"""A part of a study of several parts, and its recordings: files, simulated people, several cohorts
as one, some people at random, or the table of windows.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.attacks.registry import is_battery
from gazeveil.errors import ParameterError
from gazeveil.evaluation.sources import Files, Simulated, opened
from gazeveil.evaluation.study import Study, find_path, from_toml
from gazeveil.features.recording_set import FeaturePipeline, RecordingSet
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort, Handle, natural
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.io.known import known_table
from gazeveil.io.registry import get as format_named
from gazeveil.papers import protocols

#: Format -> checksum of the files of that dataset that were graded.
CHECKSUMS: Mapping[str, str] = tomllib.loads(
    Path(__file__).with_name("checksums.toml").read_text(encoding="utf-8")
)

#: The screen of the study of GazeBaseVR.
VR_SCREEN = known_table("gazebase-vr").screen

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
    "documents",
    "with_files",
)
#: The value of `attributes` for the ages and genders of that table.
TABLE_1 = "davidjohn2023 supplement Table 1"
_JOINS = ("tasks", "datasets")

# Runs of VR-Saliency may carry no viewer, and rows of the public arrays of DGaze and EHTask never
# do. An attacker needs two recordings of a participant, with different stimuli, to learn from.
_WHY = "the files do not say who looked (nobody has recordings of two stimuli under one name)"

NAMELESS = f"{_WHY}, so no attacker is asked"

SIMULATED_INSTEAD = f"{_WHY}, so people are simulated"


@dataclass(frozen=True)
class StudyPart:
    """One study of several.

    Parameters
    ----------
    label : str
        Dataset and variant.
    said : mapping
        Its keys, those of the whole file included.
    real : bool
        Whether its files are there; else it is simulated.
    here : Path
        Folder of the file.
    notes : tuple of str
        What else is left out, and why.
    """

    label: str
    said: Mapping[str, Any]
    real: bool
    here: Path
    notes: tuple[str, ...] = ()

    @property
    def dataset(self) -> str:
        """The label without its variant."""
        return self.label.partition(",")[0]

    @property
    def layouts(self) -> list[str]:
        """The folder of each dataset of the part, how its files lie there, and their checksum."""
        return [f"{t.get('path')}/ ({_layout(t)})" for t in tables_in(self.said.get("cohort"))]

    @property
    def source(self) -> str:
        """Origin of the recordings, and whether files are those that were graded."""
        tables = tables_in(self.said.get("cohort")) if self.real else []
        known = [CHECKSUMS.get(str(table.get("format"))) for table in tables]
        if not all(known) or not known:
            return "recordings of a dataset never graded here" if known else "simulated people"
        same = [checksum(find_path(str(t["path"]), self.here)) for t in tables] == known
        words = "the files" if same else "other files than those"
        return f"recordings of the dataset, {words} that were graded"

    def resolved(self) -> StudyPart:
        """Return the part after a look at its files.

        Files without participant names are not attacked. Where nothing else is to be measured,
        people are simulated.
        """
        if not (self.real and self.said.get("attacks")):
            return self
        unattacked = replace(self, said={**self.said, "attacks": [], "utilities": ["signal"]})
        study = unattacked.study()
        held = opened(study.source, study.people, study.stimuli, study.preparation)
        if not are_nameless(held.keys):
            return self
        if self.said.get("utilities"):
            return replace(self, said={**self.said, "attacks": []}, notes=(NAMELESS,))
        if self.said.get("simulate"):
            return replace(self, real=False, notes=(SIMULATED_INSTEAD,))
        raise ParameterError(f"Part '{self.label}': {NAMELESS}.", name="cohort")

    def study(self) -> Study:
        """The study, ready to run; sources that are no plain files are opened here."""
        plain = {k: v for k, v in self.said.items() if k not in _OWN}
        cohorts, simulated = tables_in(plain.get("cohort")), tables_in(plain.get("simulate"))
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
            "attacks": [
                t if is_battery(t) else protocols.attack(t) for t in plain.get("attacks", [])
            ],
            "utilities": [protocols.utility(t) for t in plain.get("utilities", [])],
        }
        study = self._plain(plain)
        if len(cohorts if self.real else simulated) > 1:
            study = replace(
                study,
                source=self._joined(cohorts if self.real else simulated, plain),
                people=None,
                stimuli=None,
            )
        most = {} if self._is_joined else self._most(cohorts[0] if self.real and cohorts else {})
        if most or any(self.said.get(k) for k in ("draw", "attributes", "windows")):
            study = self._reduced(study, most)
        return study

    @property
    def _is_joined(self) -> bool:
        return len(tables_in(self.said.get("cohort" if self.real else "simulate"))) > 1

    @staticmethod
    def _most(cohort: Mapping[str, Any]) -> dict[str, int]:
        """At most how many people and stimuli of the files are taken: files may have fewer."""
        return {k: v for k in ("people", "stimuli") if isinstance(v := cohort.get(k), int)}

    def _plain(self, toml: Mapping[str, Any]) -> Study:
        """The study of one cohort; `space = "sphere"` puts simulated people into a headset,
        `space = "gazebase-vr"` before its screen.
        """
        sections = {
            n: {k: v for k, v in toml.get(n, {}).items() if k not in ("dataset", "space")}
            for n in ("cohort", "simulate")
        }
        capped = self._most(sections["cohort"])
        sections["cohort"] = {k: v for k, v in sections["cohort"].items() if k not in capped}
        study = from_toml(
            {**toml, **{n: s for n, s in sections.items() if n in toml}}, self.here, self.label
        )
        space = toml.get("simulate", {}).get("space")
        if space is None or not isinstance(study.source, Simulated):
            return study
        where = {"sphere": Sphere(), "gazebase-vr": VR_SCREEN}[
            checks.one_of("simulate", "space", space, ("sphere", "gazebase-vr"))
        ]
        options = {**study.source.options, "space": where}
        return replace(study, source=replace(study.source, options=options))

    def _joined(self, tables: Sequence[Mapping[str, Any]], plain: Mapping[str, Any]) -> Cohort:
        """Several cohorts as one: the same people at several tasks, or different people."""
        join = checks.one_of("part", "join", self.said.get("join", "tasks"), _JOINS)
        items: list[Recording | Handle] = []
        people: dict[str, Mapping[str, object]] = {}
        for table in tables:
            name = str(table.get("dataset", ""))
            section = "cohort" if self.real else "simulate"
            study = self._plain({**plain, "cohort": {}, "simulate": {}, section: table})
            held = opened(study.source, study.people, study.stimuli, FeaturePipeline())
            cohort = most_seen(held, self._most(table if self.real else {})).cohort
            if cohort is None:
                raise ParameterError(
                    "Parts that join several cohorts need recordings, not tables.", name="cohort"
                )
            if join == "tasks":
                items += cohort.items
                people |= dict(cohort.people)
            else:
                items += [_handle(item, name) for item in cohort.items]
                people |= {f"{name} {p}": a for p, a in cohort.people.items()}
        return Cohort(items, people, name=self.label)

    def _reduced(self, study: Study, most: Mapping[str, int]) -> Study:
        """The study on some people, the first or at random, with other attributes, or on the table
        of windows.
        """
        raw = opened(study.source, study.people, study.stimuli, study.preparation)
        raw = most_seen(raw, most)
        rng = np.random.default_rng(study.seed)
        drawn = self.said.get("draw", {})
        chosen = {}
        for kind, names in (("people", raw.persons), ("stimuli", raw.stimuli)):
            if kind in drawn and drawn[kind] < len(names):
                chosen[kind] = tuple(
                    sorted(
                        rng.permutation(sorted(names, key=natural))[
                            : checks.count("draw", kind, drawn[kind])
                        ].tolist(),
                        key=natural,
                    )
                )
        raw = raw.select(**chosen) if chosen else raw
        if "attributes" in self.said:
            raw = _with_table_1(raw, str(self.said["attributes"]))
        if self.said.get("windows"):
            raw = _windows(
                raw,
                study,
                tuple(self.said.get("drop", ())),
                bool(self.said.get("documents", False)),
            )
        return replace(
            study,
            source=raw if raw.cohort is None or "attributes" in self.said else raw.cohort,
            people=None,
            stimuli=None,
        )


@dataclass(frozen=True)
class MultiPartStudy:
    """A file of parts."""

    name: str
    paper: str
    figure: str
    quick: bool
    parts: tuple[StudyPart, ...]

    def only(self, label: str | None = None, have_data: bool = False) -> MultiPartStudy:
        """The part of a label, by all of it or its dataset; with `have_data` those whose files are
        there.

        Raises
        ------
        ParameterError
            For a label the study does not have, or where no files are there.
        """
        labels = dict.fromkeys(name for p in self.parts for name in (p.label, p.dataset))
        if label is not None:
            checks.one_of("reproduce", "--part", label, tuple(labels))
        chosen = [p for p in self.parts if label in (None, p.label, p.dataset)]
        found = [p for p in chosen if p.real or not have_data]
        if not found:
            folders = dict.fromkeys(line for p in chosen for line in p.layouts)
            raise ParameterError(
                f"No files of {self.name} are there. Put a dataset into its folder: "
                + "; ".join(folders),
                name="--data",
            )
        return replace(self, parts=tuple(found))


def checksum(folder: Path) -> str:
    """SHA-256 of the sorted lines of checksums and paths of a folder's files."""
    lines = (
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(folder).as_posix()}\n"
        for file in folder.rglob("*")
        if file.is_file()
    )
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def tables_in(value: object) -> list[dict[str, Any]]:
    """`cohort` or `simulate` of a part as a list of tables."""
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


def most_seen(raw: RecordingSet, most: Mapping[str, int]) -> RecordingSet:
    """At most so many stimuli, those with the most viewers, and people, those who saw the most of
    them; in natural order among equals.
    """
    viewers: dict[str, set[str]] = {s: set() for s in raw.stimuli}
    for key in raw.keys:
        viewers[key[1]].add(key[0])
    stimuli = sorted(viewers, key=lambda s: (-len(viewers[s]), natural(s)))
    stimuli = stimuli[: most.get("stimuli", len(stimuli))]
    seen = {p: sum(p in viewers[s] for s in stimuli) for p in raw.persons}
    people = sorted(seen, key=lambda p: (-seen[p], natural(p)))
    people = people[: most.get("people", len(people))]
    return raw.select(people=people, stimuli=stimuli) if most else raw


def are_nameless(keys: Iterable[RecordingKey]) -> bool:
    """Whether no participant has recordings of two stimuli, tasks or sessions.

    Examples
    --------
    >>> are_nameless([("run 1", "park", "1", ""), ("run 2", "park", "1", "")])
    True
    >>> are_nameless([("ann", "park", "1", ""), ("ann", "sea", "1", "")])
    False
    """
    seen: dict[str, RecordingKey] = {}
    return all(seen.setdefault(key[0], key) == key for key in keys)


def _windows(raw: RecordingSet, study: Study, drop: Sequence[str], documents: bool) -> RecordingSet:
    """The table of windows alone, without some columns and maybe without tasks.

    Windows in which no feature was measured, such as the end of MPIIPrivacEye's P10 R1, are left
    out: mechanisms on sequences have no place for them. MPIIPrivacEye's windows carry what the
    annotators saw, as an annotation and not as a feature.
    """
    table = raw.windows
    dropped = [c for c in drop if c in table.columns]
    table = table.drop(dropped) if dropped else table
    empty = np.isnan(table.values).all(axis=1)
    table = table.where(~empty) if empty.any() else table
    if isinstance(study.source, Files) and study.source.format == "mpiiprivaceye":
        table = _annotated(table, study.source.path)
    if documents:
        table = replace(table, keys=replace(table.keys, task=np.full(len(table), "")))
    return RecordingSet(None, {"window": table}, raw.pipeline, raw.people)


def _annotated(table: FeatureTable, path: str) -> FeatureTable:
    """The table with the annotation of those of its windows that the files annotate."""
    from gazeveil.io.datasets.mpii import privacy_by_window
    from gazeveil.utility.classify import PRIVACY_COLUMN

    by_window = privacy_by_window(path)
    keys = zip(
        table.keys.person.tolist(),
        table.keys.stimulus.tolist(),
        table.keys.index.tolist(),
        strict=True,
    )
    labels = np.array([by_window.get(key, -1) for key in keys], dtype=np.float64)
    return replace(table, annotations={PRIVACY_COLUMN: np.where(labels < 0, np.nan, labels)})


def _layout(table: Mapping[str, Any]) -> str:
    dataset = format_named(str(table["format"])).dataset if "format" in table else None
    checksum = CHECKSUMS.get(str(table.get("format")), "not known")
    files = "any files" if dataset is None else dataset.layout
    return f"{files}; SHA-256 of the files that were graded: {checksum}"


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
    return (item if isinstance(item, Recording) else item.load()).with_(
        person=person, stimulus=stimulus
    )


def _with_table_1(raw: RecordingSet, which: str) -> RecordingSet:
    """The people with the ages and genders of Table 1 of the supplement of David-John et al. 2023,
    dataset by dataset in natural order.
    """
    from gazeveil.papers.davidjohn2023 import PEOPLE

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
    return RecordingSet(raw.cohort, raw.tables, raw.pipeline, people)
