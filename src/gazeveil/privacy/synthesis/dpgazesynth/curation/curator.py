"""The curator: adds whole numbers up, and nothing else, until everything is in; then it learns
(Ren et al. 2024, 4.4 and 4.5).

Sums of any two parts of the messages add up to the sum of both, in any order, so any number of
curators can share the work (:meth:`Curator.merge`). A message that is malformed, made under other
parameters, cut short or sent twice is refused with a reason and counted; it never stops the sum.

The curator is not trusted: whatever it does, it only ever sees noisy answers. It is not protected
either: devices that lie within the format can shift what is learned, as with any local privacy.
Answers no honest device sends are refused
(:mod:`gazeveil.privacy.synthesis.dpgazesynth.reports.packing`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from gazeveil.errors import DataError, GazeveilError
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import RecordingKey
from gazeveil.privacy.noise.frequency_oracle import Tally
from gazeveil.privacy.synthesis.dpgazesynth.plan import WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.reports.messages import (
    Buffer,
    Envelope,
    Report,
    ReportHeader,
    digest,
    envelopes,
    reason,
)
from gazeveil.privacy.synthesis.dpgazesynth.reports.packing import tally
from gazeveil.privacy.synthesis.dpgazesynth.reports.scheme import Model, Scheme


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
