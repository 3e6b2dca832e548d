"""The cells of a study: what each one is, under which name it is kept, and which of them share
their work.

A cell is one attack or one utility on one mechanism, one way of finding events, one scenario and
one repetition. Its name on disk is the SHA-256 of everything its figure depends on (code,
recordings, seed, protocol, the cell itself) and of nothing else: neither the study's name nor which
other cells there are.

Finished cells in a folder; each is written whole or not at all.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gazeveil.attacks.base import Attack
from gazeveil.errors import DataError
from gazeveil.evaluation.sources import look_at_samples
from gazeveil.evaluation.study import NONE, Inference, Study
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.mechanism import Mechanism, PieceMechanism
from gazeveil.utility.base import Utility

#: Kinds of cells; `about` holds a mechanism's promise and example.
KINDS = ("attack", "utility", "about")

# What inference attacks say of the names they take, in words.
_NAMES = {"yes": "do not last", "no": "last"}

#: What a utility that does not train is compared with and measured on.
COMPARED = "raw/private"


@dataclass(frozen=True)
class Cell:
    """One figure to compute.

    Parameters
    ----------
    mechanism : str
        Its full text, or `none`.
    events, scenario : str
        As in a study.
    kind : str
        One of :data:`KINDS`.
    what : str
        The attack's or utility's text.
    repetition : int
        From 0.
    """

    mechanism: str
    events: str
    scenario: str
    kind: str
    what: str
    repetition: int

    def __str__(self) -> str:
        parts = [
            self.what or self.kind,
            self.mechanism,
            self.scenario,
            self.events,
            f"repetition {self.repetition + 1}",
        ]
        return ", ".join(p for p in parts if p)


@dataclass(frozen=True)
class CellBatch:
    """Cells that share their releases, and so are computed in one process."""

    mechanism: str
    events: str
    repetition: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class StudyPlan:
    """All cells of a study in the order of its results.

    Parameters
    ----------
    cells : tuple of Cell
        What to compute.
    left_out : tuple of str
        What cannot be computed or would only say again what another cell says, one sentence each;
        the latter come last.
    repeats : int
        How many of them only say again what another cell says.
    """

    cells: tuple[Cell, ...]
    left_out: tuple[str, ...]
    repeats: int = 0

    def batches(self, selection: Collection[Cell]) -> list[CellBatch]:
        """The wanted cells by mechanism, repetition and events, in order; promises and examples
        last.
        """
        groups: dict[tuple[bool, str, int, str], list[Cell]] = {}
        for cell in self.cells:
            if cell in selection:
                groups.setdefault(
                    (cell.kind == "about", cell.mechanism, cell.repetition, cell.events), []
                ).append(cell)
        return [
            CellBatch(m, e, r, tuple(cells))
            for (_, m, r, e), cells in sorted(groups.items(), key=lambda g: g[0][0])
        ]


def plan(study: Study, raw: RecordingSet) -> StudyPlan:
    """Which cells a study has.

    Parameters
    ----------
    study : Study
        What is asked for.
    raw : RecordingSet
        What there is, samples not loaded.

    Raises
    ------
    DataError
        In one sentence, if the recordings at hand do not allow what the study asks for.
    """
    _refuse_impossible(study, raw)
    cells: list[Cell] = []
    left_out: list[str] = []
    repeats: list[str] = []
    measured: list[tuple[str, Attack | Utility]] = [
        *(("attack", attack) for attack in study.attacks),
        *(("utility", utility) for utility in study.utilities),
    ]
    for mechanism in (None, *study.mechanisms):
        text = NONE if mechanism is None else str(mechanism)
        events = [
            e
            for e in study.events
            if mechanism is None or mechanism.kind == "stream" or e == "redetected"
        ]
        events = events[:1] if mechanism is None else events
        if len(events) < len(study.events) and mechanism is not None:
            left_out.append(f"{text} passes no event labels on: its events are not carried.")
        for found_by, (kind, who) in itertools.product(events, measured):
            why = _lacks(study, mechanism, raw, who)
            if why:
                left_out.append(why)
                continue
            for scenario, repetitions in _scenarios(study, mechanism, who):
                why = (
                    _nothing_to_join(who, mechanism, scenario) or _says_nothing(who, scenario)
                    if isinstance(who, Attack)
                    else ""
                )
                if why:
                    repeats.append(why)
                    continue
                cells += [
                    Cell(text, found_by, scenario, kind, str(who), r) for r in range(repetitions)
                ]
        cells.append(Cell(text, study.events[0], "", "about", "", 0))
    if not any(c.kind != "about" for c in cells):
        reason = f" {[*left_out, *repeats][0]}" if left_out or repeats else ""
        raise DataError(f"No attack or utility of the study can be computed.{reason}")
    again = tuple(dict.fromkeys(repeats))
    return StudyPlan(tuple(cells), (*dict.fromkeys(left_out), *again), len(again))


def _scenarios(
    study: Study, mechanism: Mechanism[Any] | None, who: Attack | Utility
) -> Iterator[tuple[str, int]]:
    """The scenarios of an attacker or a utility, each with its repetitions."""
    splits = isinstance(who, Attack) or who.trains
    if mechanism is None:
        # Without a mechanism and without a split there is nothing random but the utility's own
        # seed.
        yield "raw/raw", study.repetitions if splits else 1
    else:
        for scenario in study.scenarios if splits else (COMPARED,):
            if scenario != "raw/raw":
                yield scenario, study.repetitions


def table_names(tables: str, raw: RecordingSet) -> tuple[str, ...]:
    """Which tables a table mechanism protects: those of events or those of windows, as far as they
    are there.
    """
    return tuple(
        name
        for name in (("window",) if tables == "windows" else ("fixation", "saccade"))
        if raw.has(name)
    )


def tables_of(who: Attack | Utility) -> tuple[str, ...]:
    """The tables an attacker or a utility reads. An attacker without a declaration reads events, if
    there are any.
    """
    if not who.needs and isinstance(who, Attack):
        return "fixation", "saccade"
    return tuple(name for name in who.needs if name != "samples")


def _lacks(
    study: Study, mechanism: Mechanism[Any] | None, raw: RecordingSet, who: Attack | Utility
) -> str:
    """Why a release cannot be attacked or measured so, or nothing."""
    if isinstance(who, Inference) and who.attack.pieces != _pieces_of(mechanism):
        return (
            f"{who} needs names that {_NAMES[who.attack.pieces]}, and"
            f" {'raw recordings have' if mechanism is None else f'{mechanism.name} gives'} names"
            f" that {_NAMES[_pieces_of(mechanism)]}."
        )
    in_tables = mechanism is not None and mechanism.kind == "table"
    held = table_names(study.tables, raw) if in_tables else tuple(raw.tables)
    # Of a release that is not made yet only its kind is known: samples as the raw ones are, or
    # tables without rows.
    kind = _tables_alone(held) if in_tables else raw
    blind = isinstance(who, Attack) and who.denoiser != "none" and kind.cohort is None
    if who.can(kind) and not blind:
        return ""
    if mechanism is None:
        return (
            f"{who} cannot use the recordings given, which hold"
            f" {'samples' if raw.cohort is not None else 'tables of features only'}."
        )
    remedy = ""
    other = "events" if study.tables == "windows" else "windows"
    if (
        in_tables
        and not blind
        and table_names(other, raw)
        and who.can(_tables_alone(table_names(other, raw)))
    ):
        remedy = f" Set tables = '{other}'."
    return (
        f"{who} cannot use a release of {mechanism.name}, which holds {' and '.join(held)} tables"
        f" and no samples.{remedy}"
    )


def _tables_alone(names: tuple[str, ...]) -> RecordingSet:
    texts = np.empty(0, dtype=np.str_)
    no_keys = Keys(texts, texts, texts, texts, np.empty(0, dtype=np.int64))
    no_rows = FeatureTable(np.empty((0, 1)), ("feature",), no_keys)
    return RecordingSet(None, dict.fromkeys(names, no_rows))


def _says_nothing(attack: Attack, scenario: str) -> str:
    """Why a cell would only say again what another one says, or nothing."""
    if scenario == "raw/raw":
        return ""
    if attack.knowledge != "black-box" and not scenario.startswith("raw/"):
        return (
            f"{attack} in {scenario} is the black-box attacker again: what it knows of the"
            " mechanism matters where it learns from raw recordings."
        )
    if same_stimulus(attack) and scenario == "release/release":
        return f"{attack} in release/release would compare a release with itself."
    return ""


def _nothing_to_join(attack: Attack, mechanism: Mechanism[Any] | None, scenario: str) -> str:
    """Why an attacker who joins pieces has nothing to do, or nothing."""
    if not getattr(attack, "joins_pieces", False):
        return ""
    if _pieces_of(mechanism) == "no":
        whose = "raw recordings have" if mechanism is None else f"{mechanism.name} gives"
        return f"{attack} joins pieces, and {whose} names that last: nothing is left to join."
    if not scenario.endswith("/private") and scenario != "release/release":
        return f"{attack} in {scenario} has nothing to join: names of raw recordings last."
    return ""


def _pieces_of(mechanism: Mechanism[Any] | None) -> str:
    return "yes" if isinstance(mechanism, PieceMechanism) else "no"


def same_stimulus(attack: Attack | Inference) -> bool:
    """Whether an attacker compares recordings of the same stimulus, and so needs no split."""
    return bool(getattr(attack, "same_stimulus", False))


def _refuse_impossible(study: Study, raw: RecordingSet) -> None:
    if raw.cohort is None:
        for mechanism in study.mechanisms:
            if mechanism.kind != "table":
                raise DataError(
                    f"{mechanism.name} protects samples, and the study's cohort holds tables of"
                    " features only. Choose a mechanism of the kind 'table'."
                )
        if study.mechanisms and not table_names(study.tables, raw):
            other = "windows" if study.tables == "events" else "events"
            raise DataError(
                f"The study protects tables of {study.tables}, and its cohort holds"
                f" {', '.join(sorted(raw.tables))}. Set tables = '{other}'."
            )
        if "carried" in study.events:
            raise DataError(
                "The study's cohort holds tables of features: there are no events to carry. Use"
                " events = ['redetected']."
            )
    if not study.attacks:
        return
    _refuse_too_few(study, raw.keys)


def _refuse_too_few(study: Study, keys: Collection[tuple[str, ...]], those: str = "people") -> None:
    """Refuse recordings that leave no two people to tell apart; `those` says which people count."""
    stimuli: dict[str, set[str]] = {}
    sessions: dict[str, set[str]] = {}
    for key in keys:
        stimuli.setdefault(key[0], set()).add(key[1])
        sessions.setdefault(key[0], set()).add(key[2])
    if len(stimuli) < 2:
        raise DataError(
            f"An attacker needs at least two {those} to tell apart, and the study has"
            f" {len(stimuli)}. Add recordings of other people."
        )
    if all(same_stimulus(a) for a in study.attacks):
        return
    several = sum(len(s) > 1 for s in stimuli.values())
    if study.split == "stimulus" and several < 2:
        raise DataError(
            f"A split by stimulus needs at least two {those} who saw at least two stimuli, and"
            f" {several or 'none'} of the {len(stimuli)} {those} did. Use split = 'halves', or"
            " name stimuli so that those seen by several people have one name."
        )
    if study.split == "session" and sum(len(s) > 1 for s in sessions.values()) < 2:
        raise DataError(
            f"A split by session needs at least two {those} with two sessions. Use split ="
            " 'stimulus' or 'halves'."
        )


def check_samples(study: Study, raw: RecordingSet) -> str:
    """Look at the samples of a study's recordings before any work.

    Returns
    -------
    str
        A sentence about sampling rates that differ; empty where they do not.

    Raises
    ------
    DataError
        In one sentence, where so much gaze is lost that nothing can be attacked or measured.
    """
    if raw.cohort is None:
        return ""
    seen = look_at_samples(raw.cohort)
    if study.attacks and not seen.usable and seen.events_alone:
        raise DataError(
            "The study's recordings hold events and no samples, and attackers look at samples. To"
            " measure utilities alone, leave the attackers out (attacks = 'none', --no-attacks)."
        )
    if not seen.usable and not seen.events_alone:
        raise DataError(
            f"All gaze of the study's {len(raw.keys)} recordings is lost: none has two valid"
            " samples. Look at them with `gazeveil inspect`, and check units and the column that"
            " says which samples are valid."
        )
    if study.attacks and len(seen.usable) < len(raw.keys):
        _refuse_too_few(study, seen.usable, "people with valid gaze")
    return seen.rates_note


def seed_of(seed: int, *words: object) -> int:
    """A seed below 2**31 from the study's seed and words, by SHA-256: the same whatever else is
    computed, and in which order.
    """
    text = json.dumps([seed, *(str(w) for w in words)], ensure_ascii=False)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 33


def key_of(context: dict[str, object], cell: Cell, classes: dict[str, str]) -> str:
    """The name of a cell on disk.

    Parameters
    ----------
    context : dict
        What all cells of the study share: code, fingerprint, seed, protocol.
    cell : Cell
        The cell.
    classes : dict
        Where the classes of the mechanism, attack and utility texts are defined: two classes of one
        name are two things.
    """
    own = {**vars(cell), "classes": [classes.get(cell.mechanism, ""), classes.get(cell.what, "")]}
    text = json.dumps({"context": context, "cell": own}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


#: What a cell holds: plain values as JSON has them.
Content: TypeAlias = dict[str, Any]

#: Folder of the cells inside a study's folder.
CELLS = "cells"


class Store:
    """Cells by their names, in a study's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cells = folder / CELLS
        self._cells.mkdir(parents=True, exist_ok=True)

    def get(self, name: str) -> Content | None:
        """A cell, or None where it is not finished; a file that is not whole JSON (a disk that
        failed) counts as not finished.
        """
        try:
            content = json.loads((self._cells / f"{name}.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def contents(self, keys: Mapping[Cell, str]) -> dict[Cell, Content]:
        """The finished ones of some cells."""
        found = ((cell, self.get(key)) for cell, key in keys.items())
        return {cell: content for cell, content in found if content is not None}

    def put(self, name: str, content: Content) -> None:
        """Keep a finished cell; one that is there already stays as it is."""
        if self.get(name) is not None:
            return
        # Workers of two studies may write the same cell at one time: each has a file of its own
        # until it is whole.
        waiting = self._cells / f".{name}.{os.getpid()}.part"
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
        waiting.write_text(text, encoding="utf-8")
        waiting.replace(self._cells / f"{name}.json")

    def tidy(self) -> None:
        """Remove what a killed run left half written."""
        for left in self._cells.glob(".*.part"):
            left.unlink(missing_ok=True)
