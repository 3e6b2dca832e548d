"""Words for Kaleido, and the order in which a block of samples is dealt with: at once, or by two threads.

A stream has two sequences of words: one word for the test of each slot, and a record of a few words for each try of a point. Both are used in the
order in which the source gives them, so who made noise of them and when changes nothing that is released. The few reals that have to be known
more exactly go on in words of their own, which belong to the number of the record. Words, and what was made of them, are overwritten with zeros when
they are used; words that are left over stay for the next block, as in :class:`gazeveil.privacy.noise.rng.Words`.

In a long block a second thread makes noise of scale 1 of coming words, and finishes what the first one decided on; the first one helps where
it would wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from gazeveil.privacy.noise.rng import Source, WordArray, Words
from gazeveil.privacy.stream import kaleido_step as step

T = TypeVar("T")

#: What is made of records ahead.
Numbers: TypeAlias = Any
Make: TypeAlias = Callable[[WordArray], Numbers]

#: Records made at a time, how many times ahead, and slots from which on a second thread is worth its start.
CHUNK, CHUNKS, MANY = 32768, 3, 16384

_FEW = 64  # a session stays small when it is pickled
_NO_WORDS = np.empty(0, dtype=np.uint64)


class Task(Generic[T]):
    """Something to be done by one of two threads."""

    def __init__(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> None:
        self._function, self._arguments = function, arguments
        self._result: T | None = None
        self._error: BaseException | None = None
        self.done = Event()

    def run(self) -> None:
        """Do it."""
        try:
            self._result = self._function(*self._arguments)
        except BaseException as error:  # for the thread that waits for it
            self._error = error
        self.done.set()

    @property
    def result(self) -> T:
        """What came of it, or what it raised."""
        if self._error is not None:
            raise self._error
        return cast("T", self._result)


class Hands:
    """A second thread for tasks; whoever waits for one does others meanwhile."""

    def __enter__(self) -> Hands:
        self._tasks: SimpleQueue[Task[Any] | None] = SimpleQueue()
        self._thread = Thread(target=self._work)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._tasks.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()

    def give(self, function: Callable[..., T], *arguments: Any) -> Task[T]:
        """A task for whoever is free first."""
        task = Task(function, arguments)
        self._tasks.put(task)
        return task

    def result(self, task: Task[T]) -> T:
        """What came of a task."""
        while not task.done.is_set():
            try:
                other = self._tasks.get_nowait()
            except Empty:
                task.done.wait()
            else:
                assert other is not None
                other.run()
        return task.result


class Records(Words):
    """A sequence of words in records, numbered.

    Parameters
    ----------
    source : Source
        Where words come from.
    per : int
        Words of a record.
    """

    def __init__(self, source: Source, per: int) -> None:
        super().__init__(source)
        self.per = per
        self.first = 0  # number of the record that begins the words at hand
        self.position = 0
        self.numbers: Numbers | None = None  # made of the records at hand, if they are made ahead
        self._coming: deque[Task[tuple[WordArray, Numbers]]] = deque()
        self._taken = Event()  # whether the words asked for last were taken
        self._taken.set()
        self._further: dict[int, WordArray] = {}
        self._used: list[WordArray] = []

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "per": self.per, "first": self.first}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(state["source"], state["per"])  # type: ignore[misc]
        self._left = np.asarray(state["left"], dtype=np.uint64)
        self.first = int(state["first"])  # type: ignore[call-overload]

    @property
    def words(self) -> WordArray:
        """The words at hand."""
        return self._left

    def begin(self) -> None:
        """A block begins; a forked child does not go on with its parent's words."""
        if not self._identity.original:
            self._identity.renew(self._leave)

    def end(self) -> None:
        """A block ended: what was not used stays."""
        self._drop()
        while self._coming:
            further, numbers = self._coming.popleft().result
            self._left, numbers[...] = _joined(self._left, further), 0
        self._forget()

    def fail(self) -> None:
        """A block broke off: half-used words are not used again."""
        self._left[...] = 0
        self._left, self.position = _NO_WORDS, 0
        self._taken.set()
        self._coming.clear()
        self._forget()

    def _forget(self) -> None:
        if self.numbers is not None:
            self.numbers[...] = 0
            self.numbers = None
        if self._used or self._further:
            for words in (*self._used, *self._further.values()):
                words[...] = 0
            self._used.clear()
            self._further.clear()

    def more(self, records: int) -> None:
        """Further words after those at hand."""
        self._drop()
        self._left = _joined(self._left, self.source.take(records * self.per))

    def ahead(self, hands: Hands, make: Make, slots: int) -> None:
        """Let numbers be made of the words at hand and of some further ones, as far as so many slots may take them."""
        if self.numbers is None:
            self.numbers = make(self._left)
        while len(self._coming) < CHUNKS and slots * self.per > len(self._left) + len(self._coming) * CHUNK * self.per:
            taken = Event()
            self._coming.append(hands.give(self._make, make, min(CHUNK, slots), self._taken, taken))
            self._taken = taken

    def next(self, hands: Hands, make: Make, slots: int, needed: list[WordArray]) -> None:
        """Go on with further words, made ahead; the ones at hand are overwritten as soon as they are not needed."""
        words, numbers = hands.result(self._coming.popleft()) if self._coming else self._make(make, min(CHUNK, slots + _FEW), self._taken, Event())
        used, rest = self._left, self._left[self.position :].copy()
        if self.numbers is not None:
            self.numbers[...] = 0
        self.first += self.position // self.per
        self._left, self.position, self.numbers = _joined(rest, words), 0, None if len(rest) else numbers
        self._used.append(used)
        keep = {id(w) for w in needed}
        for gone in [w for w in self._used if id(w) not in keep]:
            gone[...] = 0
        self._used = [w for w in self._used if id(w) in keep]
        self.ahead(hands, make, slots)

    def further(self, record: int, count: int) -> WordArray:
        """Words in which reals of a record go on; the same ones whenever they are asked for within a block."""
        if record not in self._further:
            self._further[record] = self.source.child("further", record).take(count)
        return self._further[record]

    def _make(self, make: Make, records: int, before: Event, taken: Event) -> tuple[WordArray, Numbers]:
        before.wait()  # two threads must not take words in another order than they were asked to
        try:
            words = self.source.take(records * self.per)
        finally:
            taken.set()
        return words, make(words)

    def _drop(self) -> None:
        """Overwrite what was used."""
        self._left[: self.position] = 0
        self.first += self.position // self.per
        self._left, self.position = self._left[self.position :], 0


@dataclass(frozen=True)
class Drafts:
    """Publications that were decided on, and samples that show them.

    Parameters
    ----------
    drafts : array of int64
        See :mod:`gazeveil.privacy.stream.kaleido_block`.
    count : int
        How many.
    begin, end : int
        Samples to be shown: from the first publication to before the first one of the next drafts.
    words : array of uint64
        Words of points that they were drawn with.
    first : int
        Number of the record that the words begin with.
    """

    drafts: NDArray[np.int64]
    count: int
    begin: int
    end: int
    words: WordArray
    first: int


class Work(Protocol):
    """What is done with the words of a block."""

    def make_tests(self, words: WordArray) -> Numbers:
        """What can be known of words of tests."""
        ...

    def make_points(self, words: WordArray) -> Numbers:
        """What can be known of words of points."""
        ...

    def shown(self, done: int) -> Drafts:
        """What is shown from a sample on until there is a publication."""
        ...

    def decide(self, done: int, catch_up: Callable[[Drafts], None]) -> tuple[int, int, Drafts | None]:
        """Deal with samples from `done` on, as far as the words at hand go: samples done, why it stopped, and what is to be finished.

        `catch_up` returns when drafts and all earlier ones are finished.
        """
        ...

    def finish(self, drafts: Drafts) -> None:
        """Place drafts and show them in their samples; in any order."""
        ...

    def settle(self, drafts: Drafts) -> None:
        """These drafts, the last ones, are finished."""
        ...


class _Finishing:
    """Drafts on their way: held until it is known how far they are shown, which is up to the next one, then finished by one of two threads."""

    def __init__(self, work: Work, hands: Hands) -> None:
        self._work, self._hands = work, hands
        self._held = work.shown(0)
        self._tasks: deque[tuple[Task[None], WordArray]] = deque()

    def take(self, drafts: Drafts) -> None:
        """Further drafts."""
        if drafts.count == 0:
            self._held = replace(self._held, end=drafts.end)
        else:
            self._give(replace(self._held, end=drafts.begin))
            self._held = drafts

    def _give(self, drafts: Drafts) -> None:
        self._tasks.append((self._hands.give(self._work.finish, drafts), drafts.words))

    def catch_up(self, drafts: Drafts) -> None:
        """Finish these and all earlier ones."""
        self.take(drafts)
        self._give(self._held)
        while self._tasks:
            self._hands.result(self._tasks.popleft()[0])
        self._work.settle(self._held)
        self._held = self._work.shown(drafts.end)

    def needed(self) -> list[WordArray]:
        """Words that drafts are still to be placed with."""
        while self._tasks and self._tasks[0][0].done.is_set():
            self._hands.result(self._tasks.popleft()[0])
        return [self._held.words, *(words for _, words in self._tasks)]


class Draws:
    """The two sequences of a stream.

    Parameters
    ----------
    source : Source
        Where words come from.
    whole : array of int64
        Settings, see :mod:`gazeveil.privacy.stream.kaleido_step`.
    """

    def __init__(self, source: Source, whole: NDArray[np.int64]) -> None:
        self.tests = Records(source.child("tests"), 1)
        self.points = Records(source.child("points"), step.words_of_record(whole))

    def serve(self, work: Work, count: int, skip: int, front: Callable[[], None]) -> None:
        """Deal with `count` samples, slots being at least `skip` of them apart, once `front` was called."""
        self.tests.begin()
        self.points.begin()
        with self.tests._lock, self.points._lock:
            try:
                if count // skip >= MANY:
                    self._in_two_threads(work, count, skip, front)
                else:
                    front()
                    self._at_once(work, count, skip)
                self.tests.end()
                self.points.end()
            except BaseException:
                self.tests.fail()
                self.points.fail()
                raise

    def _at_once(self, work: Work, count: int, skip: int) -> None:
        done = 0
        while done < count:
            done, why, _ = work.decide(done, _nothing)
            if done < count:
                (self.tests if why == step.NEEDS_TESTS else self.points).more(min(max((count - done) // skip + 1, _FEW), CHUNK))

    def _in_two_threads(self, work: Work, count: int, skip: int, front: Callable[[], None]) -> None:
        done, slots = 0, -(-count // skip)
        with Hands() as hands:
            self.tests.ahead(hands, work.make_tests, slots)
            self.points.ahead(hands, work.make_points, slots)
            front()
            finishing = _Finishing(work, hands)
            while True:
                done, why, drafts = work.decide(done, finishing.catch_up)
                if done == count:
                    break
                if drafts is not None:
                    finishing.take(drafts)
                slots = -(-(count - done) // skip)
                if why == step.NEEDS_TESTS:
                    self.tests.next(hands, work.make_tests, slots, [])
                else:
                    self.points.next(hands, work.make_points, slots, finishing.needed())
            if drafts is not None:
                finishing.catch_up(drafts)


def _nothing(drafts: Drafts) -> None:
    """There are no drafts."""


def _joined(words: WordArray, further: WordArray) -> WordArray:
    """Words and further ones in one array; the old places are overwritten."""
    if not len(words):
        return further
    fresh = np.concatenate((words, further))
    words[...], further[...] = 0, 0
    return fresh
