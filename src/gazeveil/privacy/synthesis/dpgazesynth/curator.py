"""The curator: adds whole numbers up, and nothing else, until everything is in; then it learns
(Ren et al. 2024, 4.4 and 4.5).

Sums of any two parts of the messages add up to the sum of both, in any order, so any number of
curators can share the work (:meth:`Curator.merge`). A message that is malformed, made under other
parameters, cut short or sent twice is refused with a reason and counted; it never stops the sum.

The curator is not trusted: whatever it does, it only ever sees noisy answers. It is not protected
either: devices that lie within the format can shift what is learned, as with any local privacy.
Answers no honest device sends are refused
(:mod:`gazeveil.privacy.synthesis.dpgazesynth.messages`).

In one process with its devices it needs no message: sums of unary reports are then drawn as sums.
Each of n reports has one bit per category: fair at its own category, else 1 with probability q. The
number of ones at a category that `counts` of the n reports hold is Binomial(counts, 1/2) +
Binomial(n - counts, q), independently over categories. A curator in the same process needs these
numbers and nothing else, so drawing them gives the same release, with the same probabilities, as
drawing every bit.

A binomial number of any size is a sum of binomial numbers of 1, 2, 4, ..., 4096 trials, each from
an alias table in whole numbers (:mod:`gazeveil.privacy.noise.blocks`): right to 2**-1200 per draw.
Proof: proofs/dpgazesynth.md.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.compiled import compiled
from gazeveil.errors import DataError, GazeveilError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.noise.blocks import AliasTable, alias_table, look_up
from gazeveil.privacy.noise.local import OUE, Tally
from gazeveil.privacy.randomness.rng import WordArray, Words
from gazeveil.privacy.synthesis.dpgazesynth.grid import WindowLayout, Windows
from gazeveil.privacy.synthesis.dpgazesynth.messages import (
    Buffer,
    Envelope,
    Report,
    ReportHeader,
    digest,
    envelopes,
    reason,
    tally,
)
from gazeveil.privacy.synthesis.dpgazesynth.model import samples_of
from gazeveil.privacy.synthesis.dpgazesynth.scheme import Model, Scheme, Streams, looked_at

_BITS = 12  # the largest table has 2**12 trials

# More than the rounding of 4096 products can take away.
_GUARD = 64


def _law(trials: int, chance: Fraction, bits: int) -> Sequence[int]:
    """Binomial probabilities in units of 2**-bits, from the likeliest number of ones outwards."""
    top, rest = chance.numerator, chance.denominator - chance.numerator
    likeliest = int((trials + 1) * chance)
    weights = [0] * (trials + 1)
    weights[likeliest] = 1 << (bits + _GUARD)
    for k in range(likeliest, trials):
        weights[k + 1] = weights[k] * (trials - k) * top // ((k + 1) * rest)
    for k in range(likeliest, 0, -1):
        weights[k - 1] = weights[k] * k * rest // ((trials - k + 1) * top)
    return weights


@lru_cache(maxsize=256)
def _table(trials: int, chance: Fraction) -> AliasTable:
    return alias_table(lambda bits: _law(trials, chance, bits))


@compiled
def _add(
    times: Ints,
    shift: Ints,
    begin: Ints,
    escape: Ints,
    keep: WordArray,
    alias: Ints,
    out: Ints,
    done: int,
    words: WordArray,
    position: int,
) -> tuple[int, int, bool]:
    """Sums of `times[i, j]` draws of table j, until one escapes or the words run out."""
    while done < len(out):
        total, after = 0, position
        for j in range(len(shift)):
            for _ in range(times[done, j]):
                x, _, after = look_up(
                    shift[j],
                    keep[begin[j] : begin[j + 1]],
                    alias[begin[j] : begin[j + 1]],
                    words,
                    after,
                )
                if after < 0:
                    return done, position, False
                if x == escape[j]:
                    return done, position, True
                total += x
        out[done] = total
        done += 1
        position = after
    return done, position, False


class _Binomials:
    """The kernel of :func:`binomials`."""

    def __init__(self, times: Ints, tables: Sequence[AliasTable]) -> None:
        self.times, self.tables = times, tables
        self.arrays = (
            np.array([63 - t.bits for t in tables], dtype=np.int64),
            np.cumsum([0, *(len(t.keep) for t in tables)]).astype(np.int64),
            np.array([len(t.owned) for t in tables], dtype=np.int64),
            np.concatenate([t.keep for t in tables]),
            np.concatenate([t.alias for t in tables]),
        )

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        while True:
            done, position, escaped = _add(self.times, *self.arrays, out, done, words, position)
            if not escaped:
                return done, position
            total, after = 0, position
            for table, times in zip(self.tables, self.times[done].tolist(), strict=True):
                for _ in range(times):
                    x, _, after = table.look_up(words, after) if after >= 0 else (0, 0, -1)
                    total += x
            if after < 0:
                return done, position
            out[done] = total
            done, position = done + 1, after


def binomials(trials: Ints, chance: Fraction, words: Words) -> Ints:
    """For each number of trials how many succeed, if each does with probability `chance` (between 0
    and 1, both excluded).
    """
    whole = np.asarray(trials, dtype=np.int64)
    if len(whole) == 0 or whole.max() == 0:
        return np.zeros(len(whole), dtype=np.int64)
    bits = min(_BITS, int(whole.max()).bit_length() - 1)
    times = np.column_stack([*((whole >> j) & 1 for j in range(bits)), whole >> bits])
    tables = [_table(1 << j, chance) for j in range(bits + 1)]
    return words.run(
        _Binomials(np.ascontiguousarray(times), tables),
        len(whole),
        max(1, int(times.sum(axis=1).mean())),
    )


def added_up(oracle: OUE, counts: Ints, words: Words) -> Tally:
    """The tally of OUE reports of which `counts` are about each category."""
    reports = int(counts.sum())
    ones = binomials(counts, oracle.p, words) + binomials(reports - counts, oracle.q, words)
    return Tally(ones, reports)


class Curator:
    """Sums of answers, and the noisy starts and times of each recording.

    Parameters
    ----------
    scheme : Scheme
        How devices report.
    parameters : str
        The public parameters in words; messages made under others are refused.
    space : {"screen", "sphere"}, optional
        What messages are about; others are refused. Without it the kind that comes first counts, or
        in :meth:`add` the more common one.

    Attributes
    ----------
    sums : dict of str to Tally
        Supports of each category, by question.
    reports : dict of key to Report
        Noisy starts and times, without answers.
    refused : Counter of str
        How many messages were refused, by reason.
    """

    def __init__(self, scheme: Scheme, parameters: str, space: str | None = None) -> None:
        self.scheme, self.parameters, self.space = scheme, parameters, space
        self.sums: dict[str, Tally] = {}
        self.reports: dict[RecordingKey, Report] = {}
        self.plans: dict[Space, WindowLayout] = {}
        self.refused: Counter[str] = Counter()
        self._digest = digest(parameters)
        self._contents: set[bytes] = set()

    def add(self, *files: Buffer) -> int:
        """Add the messages of files.

        Of messages about the same recording, and of copies of a message under other names, one is
        taken: the one whose content comes first in the order of digests, so that the order of files
        and messages does not matter. Of messages about spheres and about screens the more common
        kind is taken, so that a single stray one does not shut the others out.

        Returns
        -------
        int
            How many were taken. The others are counted in :attr:`refused`.
        """
        messages = [message for data in files for message in envelopes(data)]
        self.refused.update(reason for reason in messages if isinstance(reason, str))
        sound = [(_on_a_sphere(m), m) for m in messages if isinstance(m, Envelope)]
        usual = Counter(
            sphere for sphere, m in sound if sphere is not None and m.parameters == self._digest
        ).most_common()
        spheres = [sphere for sphere, count in usual if count == usual[0][1]]
        sound.sort(
            key=lambda each: (
                each[0] not in spheres,
                not each[0],
                each[1].content,
                bytes(each[1].head),
            )
        )
        return sum(self.add_envelope(message) for _, message in sound)

    def add_envelope(self, envelope: Envelope) -> bool:
        """Add one message; whether it was taken."""
        try:
            self._take(envelope)
        except GazeveilError as error:
            self.refused[reason(error)] += 1
            return False
        return True

    def _take(self, envelope: Envelope) -> None:
        if envelope.parameters != self._digest:
            raise DataError("it was made under other public parameters")
        head = ReportHeader.from_bytes(envelope.head)
        content = envelope.content
        if head.key in self.reports:
            raise DataError("this recording was reported already")
        if envelope.body and content in self._contents:
            raise DataError("it is a copy of another message")
        plan = self._plan(head)
        report = self.scheme.from_body(plan, head, envelope.body)
        # All is looked at before anything is added.
        added = {
            name: tally(oracle, report.answers[name])
            for name, oracle in self.scheme.questions(plan).items()
        }
        self.keep(plan, replace(report, answers={}), added)
        self._contents.add(content)

    def _plan(self, head: ReportHeader) -> WindowLayout:
        if self.space is not None and isinstance(head.space, Sphere) != (self.space == "sphere"):
            raise DataError("it is about another kind of space than the public parameters say")
        if self.plans and isinstance(head.space, Sphere) != isinstance(
            next(iter(self.plans)), Sphere
        ):
            raise DataError("it is about another kind of space than the other messages")
        return self.scheme.plan(head.space, head.rate_hz)

    def keep(self, plan: WindowLayout, report: Report, added: dict[str, Tally]) -> None:
        """Add what a sound report says."""
        for name, more in added.items():
            self.sums[name] = self.sums[name] + more if name in self.sums else more
        self.reports[report.head.key] = report
        self.plans.setdefault(report.head.space, plan)

    def merge(self, other: Curator) -> None:
        """Add everything another curator added.

        Raises
        ------
        DataError
            If the other one works under other parameters, or both counted the same message: sums
            cannot be taken apart again. Nothing is added then.
        """
        if other.parameters != self.parameters:
            raise DataError(
                "These two curators work under different public parameters; their sums mean"
                " different things."
            )
        twice = sorted(self.reports.keys() & other.reports.keys())
        if twice or {c for c in self._contents & other._contents if c != digest("")}:
            who = f" (person '{twice[0][0]}', stimulus '{twice[0][1]}')" if twice else ""
            raise DataError(
                f"Both curators counted the same message{who}. Give it to one of them alone."
            )
        for report in other.reports.values():
            self._plan(report.head)
        for name, more in other.sums.items():
            self.sums[name] = self.sums[name] + more if name in self.sums else more
        self.reports |= other.reports
        self.plans |= {s: p for s, p in other.plans.items() if s not in self.plans}
        self.refused += other.refused
        self._contents |= other._contents

    @property
    def windows(self) -> int:
        """Windows that were reported."""
        return sum(len(r) for r in self.reports.values())

    def in_order(self) -> list[Report]:
        """Reports in an order that does not depend on when they came."""
        return [self.reports[key] for key in sorted(self.reports)]

    def learn(self) -> Model:
        """A model of the population.

        Raises
        ------
        DataError
            If nothing was reported.
        """
        if not self.windows:
            raise DataError(
                "No window was reported, so there is nothing to learn from. Collect messages of"
                " recordings first."
            )
        plans = {space: self.plans[space] for space in sorted(self.plans, key=repr)}
        return self.scheme.learn(plans, self.sums, self.in_order())


def _on_a_sphere(envelope: Envelope) -> bool | None:
    """Which kind of space a message is about; None where its head cannot be read."""
    try:
        return isinstance(ReportHeader.from_bytes(envelope.head).space, Sphere)
    except GazeveilError:
        return None


# Unary answers about more categories than this are drawn as their sum.
_FEW = 1024


def private_windows(
    scheme: Scheme, cohort: Cohort
) -> Iterator[tuple[WindowLayout, ReportHeader, Windows]]:
    """What the devices know; of a recording itself only what is public stays in memory."""
    kind: type[Space] | None = None
    for recording in cohort:
        if kind is not None and not isinstance(recording.space, kind):
            raise DataError(
                "Screens and spheres have different grids and cannot be learned about together."
                " Release them one after the other."
            )
        kind = type(recording.space)
        yield looked_at(scheme, recording)


def collect(
    scheme: Scheme,
    parameters: str,
    private: Iterable[tuple[WindowLayout, ReportHeader, Windows]],
    streams: Streams,
) -> Curator:
    """Devices and curator in one process: the noisy starts and times of every recording, and the
    sums of all answers.

    Sums of unary answers about many categories are drawn as sums; see
    :mod:`gazeveil.privacy.synthesis.dpgazesynth.curator`.
    """
    curator = Curator(scheme, parameters)
    counted: dict[str, tuple[OUE, Ints]] = {}
    for plan, head, windows in private:
        own = streams.of(*head.key)
        report, truth = scheme.ask(plan, head, windows, own)
        added: dict[str, Tally] = {}
        for name, oracle in scheme.questions(plan).items():
            if isinstance(oracle, OUE) and oracle.categories > _FEW:
                before = counted[name][1] if name in counted else 0
                counted[name] = (
                    oracle,
                    before + np.bincount(truth[name], minlength=oracle.categories),
                )
            else:
                added[name] = oracle.tally(
                    oracle.report(truth[name], Words(own.source("answers", name)))
                )
        curator.keep(plan, report, added)
    for name, (unary, counts) in counted.items():
        curator.sums[name] = added_up(unary, counts, Words(streams.source("sums", name)))
    return curator


def synthetic(
    scheme: Scheme, model: Model | None, report: Report, still: bool, key: bytes
) -> Recording:
    """A synthetic recording; the same each time for the same key."""
    head = report.head
    named = hashlib.blake2b("\x1f".join(head.key).encode(), key=key, digest_size=16).digest()
    rng = np.random.Generator(np.random.Philox(key=np.frombuffer(named, dtype=np.uint64)))
    x, y = np.empty(0), np.empty(0)
    if model is not None and len(report):
        plan = scheme.plan(head.space, head.rate_hz)
        cells, lengths = scheme.walk(plan, model, report, rng)
        x, y = samples_of(plan.grid, cells, lengths, head.samples, head.rate_hz, still, rng)
    t = head.begin_ns + np.rint(np.arange(head.samples) * (1e9 / head.rate_hz)).astype(np.int64)
    return Recording(
        head.person,
        head.stimulus,
        t,
        x,
        y,
        np.ones(len(t), dtype=np.bool_),
        space=head.space,
        rate_hz=head.rate_hz,
        session=head.session,
        task=head.task,
    )
