"""Games against releases of tables: what `release(table)` gives, against what
`release.guarantee.map(change)` says.

Four kinds of games, all of small tables whose people have recordings of unequal lengths, one of
them so short that it is padded:

* *level*: all values of the changed unit are 0 against all of them 1, which moves a sum by its
  whole sensitivity;
* *wave*: all 0 against 0 and 1 in turn, which moves a spectrum: a mechanism that chooses
  coefficients by the data shows which ones it chose;
* *others*: one person changes and everybody else's values are looked at, which padding or scales
  taken from the data would move;
* *shape*: one person's number of rows changes up to the public length, and nothing countable about
  the release may change.

Where everybody has noise of their own, everybody is a trial: all people change at once and each is
judged alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.errors import GazeveilError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.privacy.audit.games import Game, claim_of
from gazeveil.privacy.guarantee import OF_PEOPLE
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.promise.loss import Change
from gazeveil.privacy.tables.exponential import ExponentialDP
from gazeveil.privacy.tables.noisy import NoisyTable

_FEATURES = ("a", "b")
_PEOPLE_PER_TRIAL, _CELLS = 3, 300_000
_RELEASES = 500  # of a whole table per input
_OTHERS = 24
_BEYOND = (-3.0, 4.0)  # what data hold instead of 0 and 1


@dataclass(frozen=True)
class _Cast:
    """Who is in a table: rows of each recording of a person who is changed, features, and rows of a
    chunk, where the mechanism has them.
    """

    rows: tuple[int, ...]
    features: int
    chunk: int | None

    @classmethod
    def of(cls, mechanism: Mechanism[Any], recordings: int = 2, features: int = 2) -> _Cast:
        """As few rows as the mechanism's parameters allow: the fewer values share a loss, the
        better it is seen.
        """
        parameters = mechanism.parameters()
        chunk = parameters.get("chunk")
        numbers = {name: n for name, n in parameters.items() if isinstance(n, int)}
        bins = (
            numbers.get("k", 2) if isinstance(mechanism, NoisyTable) else 2
        )  # elsewhere k is a number of people
        least = max(2, 2 * bins - 2, numbers.get("D", 2), numbers.get("chunk", 2))
        longest = parameters.get("length") or (2 * least if chunk else least)
        assert isinstance(longest, int)
        rows = (
            (*[longest] * (recordings - 1), max(1, longest // 2)) if recordings > 1 else (longest,)
        )
        return cls(rows, features, chunk if isinstance(chunk, int) else None)

    @property
    def length(self) -> int:
        """The public length."""
        return max(self.rows)

    def changed(self, unit: str) -> Bools:
        """Cells that a change of a unit changes, shape (recordings, length, features)."""
        cells = np.zeros((len(self.rows), self.length, self.features), dtype=np.bool_)
        for recording, rows in enumerate(self.rows):
            cells[recording, :rows] = True
        if unit != "user":
            cells[1:] = False
        if unit in ("recording-feature", "chunk"):
            cells[:, :, 1:] = False
        if unit == "chunk":
            assert self.chunk is not None
            cells[:, : (self.length // self.chunk - 1) * self.chunk] = False
        return cells

    def person(self, unit: str, pattern: str, side: int) -> Floats:
        """Values of one person on one side: beyond the bounds, which count as the bounds; what does
        not change is at the midpoint.
        """
        turn = (
            np.arange(self.length) % 2 == 0
            if pattern == "wave"
            else np.ones(self.length, dtype=np.bool_)
        )
        changed = self.changed(unit)
        return np.where(changed & turn[:, None], _BEYOND[side], np.where(changed, _BEYOND[0], 0.5))

    def table(
        self, people: list[Floats], rows: list[tuple[int, ...]] | None = None
    ) -> FeatureTable:
        """A table of people; everybody has the recordings and rows of the cast unless others are
        given.
        """
        lengths = rows or [self.rows] * len(people)
        keys, parts = [], []
        for number, (values, mine) in enumerate(zip(people, lengths, strict=True)):
            for recording, count in enumerate(mine):
                keys.append((f"p{number:06}", f"s{recording}", "1", ""))
                parts.append(values[recording, :count])
        indices = [np.arange(len(p), dtype=np.int64) for p in parts]
        bounds = np.array([[0.0, 1.0]] * self.features)
        return FeatureTable(
            np.concatenate(parts),
            _FEATURES[: self.features],
            Keys.of_recordings(keys, indices),
            bounds,
        )


def _scores(released: Floats, change: Bools) -> Floats:
    """Statistics of released values, shape (trials, recordings, length, features), on the cells
    that were changed.
    """
    length = min(released.shape[2], change.shape[1])
    cells = change[:, :length]
    inside = np.clip(released[:, :, :length], 0.0, 1.0)
    mine = inside[:, cells]
    even = np.broadcast_to((np.arange(length) % 2 == 0)[:, None], cells.shape)[cells]
    turns = np.diff(np.sign(inside - 0.5), axis=2) != 0
    return np.stack(
        (
            mine.sum(axis=1),
            mine[:, even].sum(axis=1),
            turns.sum(axis=(1, 2, 3)).astype(np.float64),
            inside[:, ~cells].sum(axis=1),
        ),
        axis=1,
    )


def _stacked(released: FeatureTable, people: int, recordings: int) -> Floats:
    """Values by person and recording; a release has one length."""
    return released.values.reshape(people, recordings, -1, released.values.shape[1])


def at_a_named_length(mechanism: Mechanism[Any]) -> Mechanism[Any]:
    """Return the mechanism with the length of the games' own tables, where no length is given. A
    length derived from data is not promised, so the audit would have no claim to test.
    """
    if getattr(mechanism, "length", 0) is not None:
        return mechanism
    named: dict[str, Any] = {"length": _Cast.of(mechanism).length}
    return replace(mechanism, **named)


def tables(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """The games for tables with differential privacy."""
    cast, person = _Cast.of(mechanism), _Cast.of(mechanism, recordings=3, features=1)
    alone = isinstance(mechanism, NoisyTable | ExponentialDP)
    names = mechanism.parameters().get("k") if not alone else None
    crowd = max(3, names) if isinstance(names, int) else 3
    people = [np.full((2, cast.length, cast.features), 0.5)] * crowd
    try:
        guarantee = mechanism.release(cast.table(people)).guarantee
        of_person = mechanism.release(
            person.table([np.full((3, person.length, 1), 0.5)] * crowd)
        ).guarantee
    except GazeveilError:
        return  # these parameters are not for tables as small as these: nothing was released
    if guarantee.definition in OF_PEOPLE or guarantee.status != "proved":
        return
    shape = _shape(mechanism, cast, crowd)
    yield shape
    if shape.exact:
        return  # releases of unequal shapes are told apart without looking at their values
    units = [("chunk", Change.chunk(cast.chunk))] if cast.chunk is not None else []
    units += [(u, Change(u)) for u in ("recording-feature", "recording", "user")]
    several = cast
    for unit, change in units:
        # Of a person one feature in three recordings: few values, so that their sum is well seen.
        cast, promise = (person, of_person) if unit == "user" else (several, guarantee)
        claim = claim_of(promise, change)
        if claim is not None:
            if alone:
                yield from (
                    _each(mechanism, cast, unit, pattern, claim)
                    for pattern in (
                        ("level", "wave") if unit == "recording-feature" else ("level",)
                    )
                )
            elif unit in ("user", guarantee.unit):
                yield _whole(mechanism, cast, unit, claim, crowd)
    yield from _others(mechanism)


_PATTERNS = {"level": "all 0 against all 1", "wave": "all 0 against 0 and 1 in turn"}


def _each(
    mechanism: Mechanism[Any], cast: _Cast, unit: str, pattern: str, claim: tuple[float, float]
) -> Game:
    """Everybody is a trial."""

    def play(side: int, trials: int, seed: int | None) -> Floats:
        values = cast.person(unit, pattern, side)
        people = max(100, min(_PEOPLE_PER_TRIAL * trials, _CELLS // values.size))
        released = mechanism.release(cast.table([values] * people), seed).data
        return _scores(_stacked(released, people, len(cast.rows)), cast.changed(unit))

    description = (
        f"A table of people with recordings of {cast.rows} rows, each with noise of their own; of"
        f" each a {unit} is {_PATTERNS[pattern]}."
    )
    return Game(unit, claim[0], description, play, delta=claim[1])


def _whole(
    mechanism: Mechanism[Any], cast: _Cast, unit: str, claim: tuple[float, float], crowd: int
) -> Game:
    """Every release is a trial: people share noise."""

    def play(side: int, trials: int, seed: int | None) -> Floats:
        rest = [np.full((len(cast.rows), cast.length, cast.features), 0.5)] * (crowd - 1)
        table = cast.table([cast.person(unit, "level", side), *rest])
        scores = []
        for number in range(min(trials, _RELEASES)):
            released = mechanism.release(table, None if seed is None else seed + number).data
            each = _stacked(released, len(np.unique(released.keys.person)), len(cast.rows))
            scores.append(_scores(each.mean(axis=0, keepdims=True), cast.changed(unit))[0])
        return np.array(scores)

    description = (
        f"A table of {crowd} people with recordings of {cast.rows} rows; a {unit} of one of them is"
        f" {_PATTERNS['level']}."
    )
    return Game(unit, claim[0], description, play, delta=claim[1])


def _others(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """One person changes; all others have one row of one recording, and the rest
    of it is padding.
    """
    cast = _Cast.of(mechanism, recordings=1, features=1)
    k = mechanism.parameters().get("k")
    others = max(_OTHERS, k - 1) if isinstance(k, int) else _OTHERS
    rest = [np.full((1, cast.length, 1), 0.5)] * others
    lengths = [cast.rows, *[(1,)] * others]
    claim = claim_of(
        mechanism.release(cast.table([cast.person("user", "level", 0), *rest], lengths)).guarantee,
        Change.person(),
    )
    if claim is None:
        return

    def play(side: int, trials: int, seed: int | None) -> Floats:
        table = cast.table([cast.person("user", "level", side), *rest], lengths)
        scores = []
        for number in range(min(trials, _RELEASES)):
            released = mechanism.release(table, None if seed is None else seed + number).data
            theirs = np.clip(
                _stacked(released, len(np.unique(released.keys.person)), 1)[1:, 0, :, 0], 0.0, 1.0
            )
            scores.append((theirs[:, 1:].sum(), theirs[:, 0].sum(), np.ptp(theirs)))
        return np.array(scores)

    description = (
        f"One person with {cast.rows[0]} rows, all 0 against all 1; what {others} others with one"
        " row each get, and their padding, is judged."
    )
    yield Game("user", claim[0], description, play, delta=claim[1])


def _shape(mechanism: Mechanism[Any], cast: _Cast, crowd: int) -> Game:
    """Neighbours: one person with all rows, against the same person with a single row of the same
    recordings. A second person has all rows in both.
    """
    people = [np.full((len(cast.rows), cast.length, cast.features), 0.5)] * crowd
    shapes = []
    for mine in (cast.rows, (1,) * len(cast.rows)):
        released = mechanism.release(cast.table(people, [mine, *[cast.rows] * (crowd - 1)])).data
        keys = released.keys
        shapes.append(
            (
                released.values.shape,
                *(
                    keys[name].tobytes()
                    for name in ("person", "stimulus", "session", "task", "index")
                ),
            )
        )
    description = (
        "Rows, names and order of what is released, if one person has one row instead of as many as"
        " the public length allows."
    )
    return Game(
        "recording-feature", 0.0, description, exact=0.0 if shapes[0] == shapes[1] else math.inf
    )
