"""Detectors and people on the same labelled recordings: one row of figures for each.

Recordings are grouped by their `task`. In each group the chosen detector and I-VT are
compared with every column of labels, and the samples and events of all columns are pooled; then
each labeller is compared with each other one. So a detector has to be as close to the people as
they are to each other.

Where no label of a group is `pso`, the people counted post-saccadic oscillations as parts of
saccades: there `pso` is read as `saccade` on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import isnan
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from gazeveil.arrays import Ints, Texts
from gazeveil.errors import DataError
from gazeveil.events import detect
from gazeveil.events.agreement import Agreement, pool
from gazeveil.gaze.events import KINDS, Events
from gazeveil.gaze.recording import Recording

#: Classes with a sample F1, and those with figures of events.
WORDS = ("fixation", "saccade", "pursuit", "pso")
EVENT_WORDS = ("fixation", "saccade")

_Pair: TypeAlias = tuple[Events, Events, Ints]


@dataclass(frozen=True)
class ComparisonRow:
    """How close one detector or labeller is to labels.

    Parameters
    ----------
    group : str
        The `task` of the recordings, or an empty text.
    name : str
        The detector, or `A against B` for two labellers.
    against : tuple of str
        The columns of labels taken for the truth.
    recordings : int
        How many recordings were compared.
    words : tuple of str
        The classes that labels of the group have.
    joined : mapping of str to str
        Words that were read as others on both sides.
    agreement : Agreement
        All figures.
    """

    group: str
    name: str
    against: tuple[str, ...]
    recordings: int
    words: tuple[str, ...]
    joined: Mapping[str, str]
    agreement: Agreement

    def __post_init__(self) -> None:
        object.__setattr__(self, "joined", MappingProxyType(dict(self.joined)))

    @property
    def kappa(self) -> float:
        """Cohen's kappa over all words."""
        return self.agreement.kappa

    def figure(self, word: str, name: str) -> float:
        """One figure of :class:`~gazeveil.events.agreement.ClassAgreement`; NaN where the labels do
        not have the class.
        """
        if word not in self.words or word not in self.agreement.classes:
            return float("nan")
        return float(getattr(self.agreement[word], name))

    def as_dict(self) -> dict[str, object]:
        """The row as JSON has it: None for a figure that does not exist."""

        def by_word(words: Iterable[str], name: str) -> dict[str, float | None]:
            return {word: _known(self.figure(word, name)) for word in words}

        return {
            "group": self.group,
            "name": self.name,
            "against": list(self.against),
            "recordings": self.recordings,
            "samples": self.agreement.samples,
            "f1": by_word(WORDS, "f1"),
            "kappa": _known(self.kappa),
            "event_f1": by_word(EVENT_WORDS, "event_f1"),
            "event_f1_overlap": by_word(EVENT_WORDS, "event_f1_overlap"),
            "saccade_onset_distance_ms": _known(self.figure("saccade", "onset_distance_ms")),
            "saccade_offset_distance_ms": _known(self.figure("saccade", "offset_distance_ms")),
            "joined": dict(self.joined),
        }


class Comparison:
    """Detectors and labellers, compared on one recording after the other. The detector in the first
    row is named as :func:`~gazeveil.events.detect` takes it.

    Only runs of words are kept of a recording, so a large cohort may be read lazily.
    """

    def __init__(
        self, method: str = "auto", parameters: Mapping[str, object] | None = None
    ) -> None:
        self.method = method
        self.parameters = dict(parameters or {})
        self._groups: dict[str, _Group] = {}
        self._left_out: set[str] = set()

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns of labels with words that are not events."""
        return tuple(sorted(self._left_out))

    def add(self, recording: Recording, events: Events | None = None) -> None:
        """Compare one recording; one without labels of events is left out. `events` is what the
        chosen detector finds in it, where that is known already.
        """
        labels = label_columns(recording)
        self._left_out |= set(recording.labels) - set(labels)
        if not labels:
            return
        group = self._groups.setdefault(recording.task, _Group())
        truth = {name: Events.from_words(w, recording.t_ns) for name, w in labels.items()}
        group.words.update(*(t.kind.tolist() for t in truth.values()))
        for name, detector in self._detectors(events).items():
            found = Events.from_words(detector(recording), recording.t_ns)
            for column, true in truth.items():
                group.add(name, column, recording, (true, found, recording.t_ns))
        for a, b in combinations(labels, 2):
            pair = truth[b], truth[a], recording.t_ns
            group.add(f"{a} against {b}", b, recording, pair)

    def rows(self) -> list[ComparisonRow]:
        """One row per group and detector or pair of labellers, in this order.

        Raises
        ------
        DataError
            If no recording has labels.
        """
        if not self._groups:
            raise DataError(
                "No recording has a column of labels with the words of events ("
                + ", ".join(KINDS)
                + "). Read a folder that was labelled, or give labels to Recording."
            )
        return [
            group.row(name, row)
            for name, group in self._groups.items()
            for row in dict.fromkeys([*self._detectors(None), *group.pairs])
        ]

    def _detectors(self, events: Events | None) -> dict[str, Callable[[Recording], Texts]]:
        def chosen(recording: Recording) -> Texts:
            found = detect(recording, self.method, **self.parameters) if events is None else events
            return found.words(len(recording))

        given = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        # I-VT as it is has its row anyway.
        first = (
            {} if self.method == "ivt" and not given else {f"{self.method} {given}".strip(): chosen}
        )
        return {**first, "I-VT": lambda recording: detect(recording, "ivt").words(len(recording))}


def label_columns(recording: Recording) -> dict[str, Texts]:
    """The columns of labels whose words are all words of events; none without samples."""
    if len(recording) == 0:
        return {}
    return {name: words for name, words in recording.labels.items() if np.isin(words, KINDS).all()}


@dataclass
class _Group:
    """What is known of the recordings of one task so far."""

    words: set[str] = field(default_factory=set)
    pairs: dict[str, list[_Pair]] = field(default_factory=dict)
    against: dict[str, dict[str, None]] = field(default_factory=dict)
    recordings: dict[str, dict[object, None]] = field(default_factory=dict)

    def add(self, name: str, against: str, recording: Recording, pair: _Pair) -> None:
        self.pairs.setdefault(name, []).append(pair)
        self.against.setdefault(name, {})[against] = None
        self.recordings.setdefault(name, {})[recording.key] = None

    def row(self, group: str, name: str) -> ComparisonRow:
        join = {} if "pso" in self.words else {"pso": "saccade"}
        return ComparisonRow(
            group,
            name,
            tuple(self.against.get(name, ())),
            len(self.recordings[name]),
            tuple(word for word in WORDS if word in self.words),
            join,
            pool(self.pairs[name], join=join),
        )


def _known(value: float) -> float | None:
    return None if isnan(value) else value
