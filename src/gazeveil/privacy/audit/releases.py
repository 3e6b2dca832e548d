"""Games against whole releases: of stream mechanisms, and of tables.

Games against releases of stream mechanisms: a cohort of unequal rates, spaces and lengths, and
every change its promise has a small loss for.

Everybody in the cohort has the same recordings, so one release is as many trials as there are
people: each recording has noise of its own. Gaze lies still; the change moves it by as much as the
change allows. What is released of the changed samples is judged by its mean along the move, which
is best for Gaussian noise, and by how much nearer new places are to one of the two places, which
for Laplace noise of one scale is the likelihood ratio.

Games against releases of tables: what `release(table)` gives, against what
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
from fractions import Fraction
from typing import Any

import numpy as np

from gazeveil.arrays import Bools, Floats
from gazeveil.errors import GazeveilError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import GAME_SCREEN, Game, claim_of
from gazeveil.privacy.guarantee import OF_PEOPLE, Guarantee
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.promise.loss import Change
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.tables.exponential import ExponentialDP
from gazeveil.privacy.tables.noisy import NoisyTable

#: Losses above this cannot be refuted with a few thousand releases.
MOST_EPSILON = 4.0

_PEOPLE = 100  # in one release


@dataclass(frozen=True)
class RecordingKind:
    """One recording that everybody has.

    Parameters
    ----------
    stimulus : str
        Its name.
    rate_hz : float
        Samples per second.
    space : Sphere or Screen
        What degrees mean.
    samples : int
        Its length.
    """

    stimulus: str
    rate_hz: float
    space: Space
    samples: int


def kinds(window: int) -> tuple[RecordingKind, ...]:
    """Recordings of unequal rates, spaces and lengths, one of them as long as a window of so many
    samples at the highest rate.
    """
    return (
        RecordingKind("slow", 60.0, Sphere(), max(60, min(window, 600))),
        RecordingKind("fast", 1000.0, Sphere(), max(60, min(window, 1000))),
        RecordingKind("screen", 120.0, GAME_SCREEN, 60),
    )


@dataclass(frozen=True)
class Places:
    """Where gaze lies, and where the change moves it to (x and y in degrees), on a sphere and on a
    screen.
    """

    before: tuple[float, float]
    after: tuple[float, float]


def places(space: Space, move_deg: float, pole: bool) -> Places:
    """Two places that far apart: in the middle of the space, or across a pole of the sphere."""
    if not isinstance(space, Sphere):
        return Places((0.0, 0.0), (min(move_deg, 80.0), 0.0))
    if pole:
        return Places((0.0, min(move_deg, 90.0) / 2), (180.0, min(move_deg, 90.0) / 2))
    return Places((90.0, 90.0), (90.0 + min(move_deg, 180.0), 90.0))


def still(person: str, kind: RecordingKind, spot: Places, changed: slice) -> Recording:
    """Gaze that lies still, moved in some samples."""
    x, y = np.full(kind.samples, spot.before[0]), np.full(kind.samples, spot.before[1])
    x[changed], y[changed] = spot.after
    t = np.rint(np.arange(kind.samples) * (1e9 / kind.rate_hz)).astype(np.int64)
    return Recording(person, kind.stimulus, t, x, y, space=kind.space, rate_hz=kind.rate_hz)


def evidence(released: Recording, spot: Places, changed: slice) -> tuple[float, float, float]:
    """Of the changed samples: how much nearer they are to the second place on average and new
    places in all, and how far they lie along the move.
    """
    x, y = released.x_deg[changed], released.y_deg[changed]
    good = np.isfinite(x)
    x, y = x[good], y[good]
    if not len(x):
        return 0.0, 0.0, 0.0
    if isinstance(released.space, Sphere):
        v = released.space.vectors(x, y)
        ends = [
            released.space.vectors(np.array([p[0]]), np.array([p[1]]))[0]
            for p in (spot.before, spot.after)
        ]
        near, far = (np.degrees(np.arccos(np.clip(v @ e, -1.0, 1.0))) for e in ends)
        along = v @ (ends[1] - ends[0])
    else:
        near, far = (np.hypot(x - p[0], y - p[1]) for p in (spot.before, spot.after))
        along = x
    lean = near - far
    fresh = np.concatenate(([True], (np.diff(x) != 0) | (np.diff(y) != 0)))
    return float(lean.mean()), float(lean[fresh].sum()), float(along.mean())


@dataclass(frozen=True)
class CohortGame:
    """One change in one or all recordings of every person, played through `release(cohort)`.

    Parameters
    ----------
    mechanism : StreamMechanism
        Under attack.
    all_kinds : tuple of RecordingKind
        What everybody has.
    changed : tuple of (RecordingKind, slice)
        Which samples of which recordings change.
    move_deg : float
        How far.
    pole : bool
        Whether gaze lies at a pole of the sphere.
    """

    mechanism: StreamMechanism
    all_kinds: tuple[RecordingKind, ...]
    changed: tuple[tuple[RecordingKind, slice], ...]
    move_deg: float
    pole: bool = False

    def cohort(self, side: int, people: int) -> Cohort:
        """One of two neighbours, for many people at once; one more person has all recordings, so
        that the promise is about all of them.
        """
        named = [
            (f"p{i}", kind, some if side else slice(0, 0))
            for i in range(people)
            for kind, some in self.changed
        ]
        named += [("other", kind, slice(0, 0)) for kind in self.all_kinds]
        return Cohort(
            [
                still(person, kind, places(kind.space, self.move_deg, self.pole), some)
                for person, kind, some in named
            ]
        )

    def play(self, side: int, trials: int, seed: int | None) -> Floats:
        """The evidence of each person, shape (trials, 3)."""
        rows: list[Floats] = []
        changed = {kind.stimulus: (kind, some) for kind, some in self.changed}
        for begin in range(0, trials, _PEOPLE):
            people = min(_PEOPLE, trials - begin)
            sums = {f"p{i}": np.zeros(3) for i in range(people)}
            for released in self.mechanism.release(
                self.cohort(side, people), seed=None if seed is None else seed + 2 * begin + side
            ).data:
                if released.person in sums:
                    kind, some = changed[released.stimulus]
                    # Where samples are left out, so are changed ones.
                    kept = slice(
                        some.start // self.mechanism.stride, -(-some.stop // self.mechanism.stride)
                    )
                    sums[released.person] += evidence(
                        released, places(kind.space, self.move_deg, self.pole), kept
                    )
            rows.append(np.array(list(sums.values())))
        return np.concatenate(rows)


def changes(guarantee: Guarantee) -> Iterator[tuple[str, Change]]:
    """The promise's own change, and the ones its sentence names besides."""
    own = guarantee.change
    assert own is not None
    move = own.move_deg if own.move_deg is not None else Fraction(1)
    yield "its own change", own
    yield "one sample", Change.sample(move, own.metric)
    samples = guarantee.numbers.get("w_samples")
    if samples is not None:
        yield (
            f"{samples} samples in a row",
            Change.window(int(samples), move_deg=move, metric=own.metric),
        )
    yield "a tenth of a second", Change.window(seconds="1/10", move_deg=move, metric=own.metric)
    yield "a recording", Change.recording(move, own.metric)
    yield "a person", Change.person(move, own.metric)


def changed_samples(change: Change, kind: RecordingKind) -> slice:
    """Which samples of a recording a change may touch, as many as it allows, away from the
    beginning where there is room.
    """
    if change.unit in ("recording", "user"):
        return slice(0, kind.samples)
    count = (
        1
        if change.unit == "sample"
        else (
            change.samples
            if change.samples is not None
            else math.ceil((change.seconds or 0) * Fraction(kind.rate_hz))
        )
    )
    count = min(count, kind.samples)
    begin = (kind.samples - count) // 2
    return slice(begin, begin + count)


def mixed_guarantee(mechanism: StreamMechanism, every: tuple[RecordingKind, ...]) -> Guarantee:
    """What a release of all these recordings promises."""
    return mechanism.release(
        Cohort([still("p0", kind, places(kind.space, 1.0, False), slice(0, 0)) for kind in every])
    ).guarantee


def cohort_games(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """Every change with a small promised loss, in the recording that loses most
    by its own promise.
    """
    if not isinstance(mechanism, StreamMechanism):
        return
    promise = mechanism.promise(100.0, Sphere())
    if promise.status != "proved" or promise.losses is None:
        return
    # Recordings must be as long as the windows that the promise speaks of, which are known once
    # there is one.
    taken = tuple(kind for kind in kinds(60) if _takes(mechanism, kind))
    if not taken:
        return
    window = mixed_guarantee(mechanism, taken).numbers.get("w_samples", Fraction(60))
    every = tuple(kind for kind in kinds(int(window)) if _takes(mechanism, kind))
    mixed = mixed_guarantee(mechanism, every)
    seen: set[tuple[object, ...]] = set()
    for extent, change in changes(mixed):
        bound = claim_of(mixed, change, MOST_EPSILON)
        if bound is None or change.move_deg is None:
            continue
        worst = every if change.unit == "user" else (_worst(mechanism, every, change),)
        group = tuple((kind, changed_samples(change, kind)) for kind in worst)
        where = tuple((kind.stimulus, some.start, some.stop) for kind, some in group)
        if (where, bound) in seen:
            continue
        seen.add((where, bound))
        names = " and ".join(
            f"{kind.samples} samples at {kind.rate_hz:g} Hz on a"
            f" {type(kind.space).__name__.lower()}"
            for kind, _ in group
        )
        about = (
            f"A cohort of unequal rates and spaces: {extent} of {names}, moved by"
            f" {float(change.move_deg):g} degrees."
        )
        yield Game(
            change.unit,
            bound[0],
            about,
            CohortGame(mechanism, every, group, float(change.move_deg)).play,
            delta=bound[1],
        )
    # By the space's own distance a small move turns x by half a turn at a pole.
    near_pole = Change.sample(mixed.change.move_deg if mixed.change is not None else 1, "space")
    bound = claim_of(mixed, near_pole, MOST_EPSILON)
    if bound is not None and near_pole.move_deg is not None:
        game = CohortGame(
            mechanism, every, ((every[0], slice(30, 31)),), float(near_pole.move_deg), pole=True
        )
        yield Game(
            "sample",
            bound[0],
            "One sample, moved across a pole of the sphere.",
            game.play,
            delta=bound[1],
        )


def _takes(mechanism: StreamMechanism, kind: RecordingKind) -> bool:
    """Whether a mechanism takes recordings of that rate: some windows are too long for it."""
    try:
        mechanism.promise(kind.rate_hz, kind.space)
    except GazeveilError:
        return False
    return True


def _worst(
    mechanism: StreamMechanism, every: tuple[RecordingKind, ...], change: Change
) -> RecordingKind:
    """The recording whose own promise loses most for a change: a promise about all of them must not
    be below that.
    """

    def own(kind: RecordingKind) -> Fraction:
        alone = mechanism.promise(kind.rate_hz, kind.space).losses
        samples = changed_samples(change, kind)
        return (
            alone.loss(
                Change.window(
                    samples.stop - samples.start, move_deg=change.move_deg, metric=change.metric
                )
            ).amount
            if alone
            else Fraction(0)
        )

    return max(every, key=own)


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
