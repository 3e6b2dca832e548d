"""How far two labellings of the same samples agree: a detector and a human, or two humans.

* Sample F1 of a class: 2 TP / (2 TP + FP + FN) over samples. Every sample counts: one that neither
  side calls by a class of interest is a negative for all of them, so `undefined` and `noise` are
  ordinary other classes.
* Cohen's kappa over all words that occur (Cohen 1960), and per class against all the rest.
* Event F1 of a class: an event is a run of one word. Events of both sides are paired one to one,
  greedily by intersection over union (largest first, ties by the earlier event), and a pair is a
  hit when its intersection over union is at least 0.5. Above 0.5 at most one partner is possible,
  so the pairing is then also the best one.
* Event F1 by overlap of a class (Hooge et al. 2018, Startsev et al. 2019): pairs are one to one
  again, greedily by overlap in samples (largest first, ties by the earlier event), and one shared
  sample is enough for a pair.
* Onset and offset error: median over hits of (found minus true) in ms, and the median of its size.

Several recordings are pooled by their samples and events, never by averaging figures: see
:func:`pool`. Classes that one side does not tell apart can be joined first: people who do not label
post-saccadic oscillations call them saccades, so they are compared with `join={"pso": "saccade"}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from gazeveil import checks
from gazeveil.arrays import Codes, Floats, Ints
from gazeveil.errors import DataError
from gazeveil.gaze.events import KINDS, Events

_CODE = {kind: code for code, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class ClassAgreement:
    """Agreement on one class of events.

    Parameters
    ----------
    samples_true, samples_found, samples_both : int
        Samples of this class in the truth, in the detection, in both.
    events_true, events_found, hits, overlaps : int
        The same for events; `hits` are pairs with enough intersection over union, `overlaps` pairs
        that overlap at all.
    kappa : float
        Cohen's kappa of this class against the rest.
    onset_error_ms, offset_error_ms : float
        Median of found minus true over hits; NaN without hits.
    onset_distance_ms, offset_distance_ms : float
        Median size of that error.
    """

    samples_true: int
    samples_found: int
    samples_both: int
    events_true: int
    events_found: int
    hits: int
    overlaps: int
    kappa: float
    onset_error_ms: float
    offset_error_ms: float
    onset_distance_ms: float
    offset_distance_ms: float

    @property
    def f1(self) -> float:
        """Sample F1; NaN where neither side has the class."""
        return _f1(self.samples_both, self.samples_true, self.samples_found)

    @property
    def event_f1(self) -> float:
        """F1 over events by intersection over union; NaN where neither side has one."""
        return _f1(self.hits, self.events_true, self.events_found)

    @property
    def event_f1_overlap(self) -> float:
        """F1 over events by overlap of any size; NaN where neither side has one."""
        return _f1(self.overlaps, self.events_true, self.events_found)


@dataclass(frozen=True)
class Agreement:
    """Agreement of a detection with a truth.

    Parameters
    ----------
    classes : mapping of str to ClassAgreement
        One entry for each word that either side uses.
    kappa : float
        Cohen's kappa over all words; NaN where both sides use one and the same word throughout.
    samples : int
        Samples compared.
    overlap : float
        Least intersection over union of a hit.

    Examples
    --------
    >>> true = ["fixation"] * 8 + ["saccade"] * 2
    >>> detected = ["fixation"] * 6 + ["saccade"] * 4
    >>> a = agreement(true, detected, t_ns=np.arange(10) * 1_000_000)
    >>> print(a)
    10 samples, kappa 0.545, a hit is an overlap of at least 0.5
    class        F1  kappa  event F1  by overlap  events true found   onset  offset (median ms)
    fixation  0.857  0.545     1.000       1.000            1     1    +0.0    -2.0
    saccade   0.667  0.545     1.000       1.000            1     1    -2.0    +0.0
    """

    classes: Mapping[str, ClassAgreement]
    kappa: float
    samples: int
    overlap: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", MappingProxyType(dict(self.classes)))

    def __reduce__(
        self,
    ) -> tuple[type[Agreement], tuple[dict[str, ClassAgreement], float, int, float]]:
        return Agreement, (dict(self.classes), self.kappa, self.samples, self.overlap)

    def __getitem__(self, word: str) -> ClassAgreement:
        return self.classes[word]

    @property
    def f1(self) -> dict[str, float]:
        """Sample F1 by word."""
        return {kind: scores.f1 for kind, scores in self.classes.items()}

    def __str__(self) -> str:
        lines = [
            (
                f"{self.samples} samples, kappa {self.kappa:.3f}, a hit is an overlap of at least"
                f" {self.overlap:g}"
            ),
            "class        F1  kappa  event F1  by overlap  events true found   onset  offset"
            " (median ms)",
        ]
        for kind, c in self.classes.items():
            counts = f"{c.events_true:11d} {c.events_found:5d}"
            lines.append(
                f"{kind:<9} {c.f1:5.3f} {c.kappa:6.3f}     {c.event_f1:5.3f}"
                f"       {c.event_f1_overlap:5.3f}  {counts}"
                f" {c.onset_error_ms:+7.1f} {c.offset_error_ms:+7.1f}"
            )
        return "\n".join(lines)


def agreement(
    truth: Events | ArrayLike,
    detected: Events | ArrayLike,
    t_ns: ArrayLike | None = None,
    overlap: float = 0.5,
    *,
    join: Mapping[str, str] | None = None,
) -> Agreement:
    """Compare two labellings of one recording.

    Parameters
    ----------
    truth, detected : Events or array of str, shape (n,)
        One word of `KINDS` per sample, or events; samples in no event are `undefined`.
    t_ns : array of int64, shape (n,), optional
        Times of the samples; without them onset and offset errors are NaN.
    overlap : float
        Least intersection over union of a hit, above 0 up to 1.
    join : mapping of str to str, optional
        Words of both sides to read as another word before comparing, e.g. `{"pso": "saccade"}`.
        Neighbouring events that have one word afterwards are one event.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> true = ["fixation"] * 6 + ["saccade"] * 4
    >>> detected = ["fixation"] * 6 + ["saccade"] * 3 + ["pso"]
    >>> round(agreement(true, detected)["saccade"].f1, 3)
    0.857
    >>> agreement(true, detected, join={"pso": "saccade"})["saccade"].f1
    1.0
    """
    return pool([(truth, detected, t_ns)], overlap, join=join)


def pool(
    labelled: Iterable[tuple[Events | ArrayLike, Events | ArrayLike, ArrayLike | None]],
    overlap: float = 0.5,
    *,
    join: Mapping[str, str] | None = None,
) -> Agreement:
    """Compare many recordings as one: samples and events are added up before any figure is made.
    The arguments are those of :func:`agreement`.
    """
    least = checks.positive("agreement", "overlap", overlap)
    if least > 1:
        checks.refuse("agreement", "overlap", "a number above 0 and at most 1", overlap)
    joined = _joined(join)
    size = len(KINDS)
    table = np.zeros((size, size), dtype=np.int64)
    counts = np.zeros((size, 4), dtype=np.int64)
    errors: list[list[Floats]] = [[] for _ in KINDS]
    for truth, detected, times in labelled:
        n = _samples(truth, detected) if times is None else len(np.asarray(times))
        a, ea = _codes_and_events("truth", truth, n, joined)
        b, eb = _codes_and_events("found", detected, n, joined)
        table += np.bincount(a.astype(np.int64) * size + b, minlength=size * size).reshape(
            size, size
        )
        for code in range(size):
            ta, tb = (np.ascontiguousarray(e[e[:, 2] == code]) for e in (ea, eb))
            i, j, share, both = _overlaps(ta, tb)
            enough = share >= least
            pairs = _pairs(i[enough], j[enough], share[enough])
            counts[code] += (len(ta), len(tb), len(pairs), len(_pairs(i, j, both)))
            if times is not None:
                t = np.asarray(times, dtype=np.int64)
                errors[code].append((t[tb[pairs[:, 1], :2]] - t[ta[pairs[:, 0], :2]]) / 1e6)
    classes = {
        kind: _scores(table, code, counts[code], errors[code])
        for code, kind in enumerate(KINDS)
        if table[code].any() or table[:, code].any()
    }
    return Agreement(classes, _kappa(table), int(table.sum()), least)


def _scores(table: Ints, code: int, counts: Ints, errors: list[Floats]) -> ClassAgreement:
    """One class from the table of samples (truth, found), its counted events and its errors."""
    true, seen, both = int(table[code].sum()), int(table[:, code].sum()), int(table[code, code])
    rest = int(table.sum()) - true - seen + both
    error = np.concatenate(errors) if errors else np.empty((0, 2))
    signed = np.median(error, axis=0) if len(error) else np.full(2, np.nan)
    unsigned = np.median(np.abs(error), axis=0) if len(error) else np.full(2, np.nan)
    return ClassAgreement(
        samples_true=true,
        samples_found=seen,
        samples_both=both,
        events_true=int(counts[0]),
        events_found=int(counts[1]),
        hits=int(counts[2]),
        overlaps=int(counts[3]),
        kappa=_kappa(np.array([[both, true - both], [seen - both, rest]])),
        onset_error_ms=float(signed[0]),
        offset_error_ms=float(signed[1]),
        onset_distance_ms=float(unsigned[0]),
        offset_distance_ms=float(unsigned[1]),
    )


def _f1(both: int, true: int, detected: int) -> float:
    return 2 * both / (true + detected) if true + detected else float("nan")


def _kappa(table: Ints) -> float:
    total = table.sum()
    if total == 0:
        return float("nan")
    by_chance = float((table.sum(axis=0) / total) @ (table.sum(axis=1) / total))
    return (
        (float(np.trace(table)) / float(total) - by_chance) / (1 - by_chance)
        if by_chance < 1
        else float("nan")
    )


def _samples(truth: Events | ArrayLike, detected: Events | ArrayLike) -> int:
    for labelling in (truth, detected):
        if not isinstance(labelling, Events):
            return len(np.asarray(labelling))
    ends = [
        int(labelling.offset.max()) + 1
        for labelling in (truth, detected)
        if isinstance(labelling, Events) and len(labelling)
    ]
    return max(ends, default=0)


def _joined(join: Mapping[str, str] | None) -> Ints:
    """The code that each code is read as."""
    result = np.arange(len(KINDS))
    if join is None:
        return result
    allowed = "a mapping of words to words of " + ", ".join(KINDS)
    if not isinstance(join, Mapping):
        checks.refuse("agreement", "join", allowed, join)
    for word, other in join.items():
        for given in (word, other):
            if not isinstance(given, str) or given not in _CODE:
                checks.refuse("agreement", "join", allowed, given)
        result[_CODE[word]] = _CODE[other]
    return result


def _codes_and_events(
    name: str, labelling: Events | ArrayLike, n: int, joined: Ints
) -> tuple[Codes, Ints]:
    """One code per sample, and events as rows (onset, offset, code)."""
    if isinstance(labelling, Events):
        return _of_events(name, labelling, n, joined)
    labels = np.asarray(labelling)
    if labels.shape != (n,):
        raise DataError(f"The {name} of agreement has shape {labels.shape} for {n} samples.")
    codes = np.full(n, -1, dtype=np.int8)
    for kind, code in _CODE.items():
        codes[labels == kind] = joined[code]
    if (codes < 0).any():
        checks.refuse(
            "agreement",
            name,
            "words of " + ", ".join(KINDS),
            str(labels[int(np.flatnonzero(codes < 0)[0])]),
        )
    if n == 0:
        return codes, np.empty((0, 3), dtype=np.int64)
    onset = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))
    offset = np.append(onset[1:] - 1, n - 1)
    return codes, np.stack((onset, offset, codes[onset].astype(np.int64)), axis=1)


def _of_events(name: str, events: Events, n: int, joined: Ints) -> tuple[Codes, Ints]:
    codes = np.full(n, joined[_CODE["undefined"]], dtype=np.int8)
    if len(events) == 0:
        return codes, np.empty((0, 3), dtype=np.int64)
    if events.offset.max() >= n or events.onset.min() < 0:
        raise DataError(
            f"The {name} of agreement has events outside the {n} samples. Compare events of the"
            " same recording."
        )
    before = np.array([_CODE[k] for k in events.kind.tolist()], dtype=np.int64)
    after = joined[before]
    for code, first, last in zip(after, events.onset, events.offset, strict=True):
        codes[first : last + 1] = code
    # Only what the join made equal is one event: equal neighbours from before were apart already.
    one = (
        (after[1:] == after[:-1])
        & (before[1:] != before[:-1])
        & (events.onset[1:] == events.offset[:-1] + 1)
    )
    begins, ends = np.append(True, ~one), np.append(~one, True)
    return codes, np.stack((events.onset[begins], events.offset[ends], after[begins]), axis=1)


def _pairs(i: Ints, j: Ints, size: Floats) -> Ints:
    """Rows (index in a, index in b) of one-to-one pairs, the largest first; ties by the earlier."""
    order = np.lexsort((j, i, -size))
    used_a, used_b = set(), set()
    result = []
    for k in order.tolist():
        first, second = int(i[k]), int(j[k])
        if first not in used_a and second not in used_b:
            used_a.add(first)
            used_b.add(second)
            result.append((first, second))
    return np.array(sorted(result), dtype=np.int64).reshape(-1, 2)


def _overlaps(a: Ints, b: Ints) -> tuple[Ints, Ints, Floats, Floats]:
    """Indices of all events that overlap, their intersection over union and their intersection in
    samples.
    """
    low = np.searchsorted(b[:, 1], a[:, 0], side="left")
    partners = np.searchsorted(b[:, 0], a[:, 1], side="right") - low
    i = np.repeat(np.arange(len(a)), partners)
    j = np.arange(len(i)) - np.repeat(np.cumsum(partners) - partners - low, partners)
    shared = np.minimum(a[i, 1], b[j, 1]) - np.maximum(a[i, 0], b[j, 0]) + 1
    whole = np.maximum(a[i, 1], b[j, 1]) - np.minimum(a[i, 0], b[j, 0]) + 1
    return i, j, shared / whole, shared.astype(np.float64)
