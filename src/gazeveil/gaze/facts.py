"""Facts that reading rests on, with their origin, and the questions that it leaves open.

A fact is *said by the file*, *said by the user* (an option or a `dataset.toml`) or *guessed* (from
a path, a name or values). A doubt is a question for the user: what reading took, why that may be
wrong, and the lines of a `dataset.toml` that answer it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

#: Said by the file; said by an option or a dataset.toml; guessed.
FILE, SAID, GUESSED = "file", "said", "guessed"

#: Topics of facts, in the order in which they are shown.
TOPICS = (
    *("person", "stimulus", "session", "task"),
    *("clock", "unit", "y_axis", "screen", "validity"),
)


#: Value or basis of a fact that stands in a path.
PATH = "its path"


class Fact(NamedTuple):
    """One answer that reading needs: its value, its origin and what the origin is in detail."""

    value: str
    origin: str
    basis: str = ""

    @property
    def from_path(self) -> bool:
        """Whether a part of a path is the answer, by whatever rule."""
        return PATH in (self.value, self.basis)


class Doubt(NamedTuple):
    """A question that reading leaves open: its topic, one sentence, and the lines of a
    `dataset.toml` that answer it.
    """

    topic: str
    sentence: str
    remedy: str = ""


def merged(facts: Iterable[Mapping[str, Fact]]) -> dict[str, dict[Fact, int]]:
    """Topic -> facts of several recordings with the number of recordings each holds for."""
    found: dict[str, dict[Fact, int]] = {}
    for of_one in facts:
        for topic, fact in of_one.items():
            counts = found.setdefault(topic, {})
            counts[fact] = counts.get(fact, 0) + 1
    return {t: found[t] for t in (*TOPICS, *sorted(found.keys() - set(TOPICS))) if t in found}
