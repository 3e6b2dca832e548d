"""The random words of a Kaleido stream: one sequence for tests, one for tries of points.

A test takes one word, a try of a point a record of a few words.
"""

from __future__ import annotations

from collections.abc import Callable

from gazeveil.privacy.randomness.records import WordRecords
from gazeveil.privacy.randomness.rng import Source
from gazeveil.privacy.stream.kaleido import step
from gazeveil.privacy.stream.kaleido.step import words_of_record


class Draws:
    """The two sequences of a stream; where it is narrow, most tries take four words."""

    def __init__(self, source: Source, narrow: bool) -> None:
        self.tests = WordRecords(source.child("tests"), 1)
        self.points = WordRecords(source.child("points"), words_of_record(narrow))

    def serve(self, decide: Callable[[int], tuple[int, int]], count: int, skip: int) -> None:
        """Run a block of `count` samples with a slot every `skip`, with further words whenever they
        run out. `decide` processes samples from the given one on; it returns the samples done and
        why it stopped.
        """
        with self.tests, self.points:
            done = 0
            while done < count:
                done, why = decide(done)
                if done < count:
                    (self.tests if why == step.NEEDS_TESTS else self.points).more(
                        (count - done) // skip + 1
                    )
