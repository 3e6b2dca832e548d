"""The game of promises that at least k people share what is released: over random cohorts, how many
names share everything that a stranger sees of a release.

That is names of recordings, rates, spaces, times and losses, and the values themselves where a
record is shared and not its law. A mechanism whose people share laws hands them over besides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.audit.games import Game, asked_unit
from gazeveil.privacy.mechanism import Mechanism

#: `laws(data, seed)` gives what each recording of a release is drawn from.
Laws: TypeAlias = Callable[[Any, int], Mapping[RecordingKey, Iterable[NDArray[Any]]]]

_COHORTS = {"table": 30, "cohort": 8, "people": 200}
_TASKS = 4
_MOST_K = 40  # of a black-box game


def how_many(most: int, k: int) -> int:
    """Cohorts of a game: fewer where k and with it a cohort is large, so that an audit ends in a
    reasonable time.
    """
    return max(2, min(most, most * 20 // k))


def crowd_game(mechanism: Mechanism[Any], unit: str | None, laws: Laws | None = None) -> Game:
    """Count the people who share a record: at least k, over random cohorts of k to 4k people.

    Parameters
    ----------
    mechanism : Mechanism
        With a parameter k.
    unit : str or None
        What was asked for.
    laws : callable, optional
        See :data:`Laws`.
    """
    k = mechanism.parameters()["k"]
    assert isinstance(k, int)
    rng, make = np.random.default_rng(0), _MAKERS[mechanism.kind]
    sizes: list[int] = []
    cohorts = how_many(_COHORTS[mechanism.kind], k)
    for seed in range(cohorts):
        people, tasks = int(rng.integers(k, 4 * k)), int(rng.integers(1, _TASKS + 1))
        data = make(rng, people, tasks, mechanism)
        try:
            release = mechanism.release(data, seed)
        except DataError:
            continue  # nothing was released
        alike = release.guarantee.alike
        records = _records(release.data, values=alike in ("record", "attributes"))
        for key, arrays in (laws(data, seed) if laws else {}).items():
            if key[0] in records:
                records[key[0]] += (key[1:], *(a.tobytes() for a in arrays))
        sizes.append(min(Counter(records.values()).values()))
    smallest = min(sizes, default=k)
    description = (
        f"{len(sizes)} releases of {cohorts} random cohorts with unequal lengths, rates, screens"
        f" and times: the smallest number of people with one record is {smallest}, k = {k} is"
        " claimed."
    )
    broken = "A record is shared by fewer than k people." if smallest < k else ""
    return Game(asked_unit(unit, "user", ("user",)), None, description, broken=broken)


def crowds(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """The game, for promises of plausible deniability."""
    k = mechanism.parameters().get("k")
    if (
        mechanism.claim.definition == "plausible-deniability"
        and isinstance(k, int)
        and k <= _MOST_K
    ):
        yield crowd_game(mechanism, None)


def _records(data: Any, values: bool) -> dict[str, tuple[object, ...]]:
    """Everything to be seen under each name."""
    records: dict[str, list[object]] = {}
    if isinstance(data, Cohort):
        for r in sorted(data, key=lambda recording: recording.key):
            visible = (r.key[1:], len(r), r.rate_hz, repr(r.space), r.t_ns.tobytes())
            records.setdefault(r.person, []).append(visible)
    elif isinstance(data, FeatureTable):
        for name in np.unique(data.keys.person).tolist():
            own = data.select(people=name)
            seen_rows = (own.values.tobytes(),) if values else ()
            records[name] = [
                own.keys.stimulus.tobytes(),
                own.keys.task.tobytes(),
                own.keys.index.tobytes(),
                *seen_rows,
            ]
    else:
        records = {
            name: [*sorted((a, str(v)) for a, v in attributes.items())]
            for name, attributes in data.items()
        }
    return {name: tuple(record) for name, record in records.items()}


def _cohort(rng: np.random.Generator, people: int, tasks: int, _: Mechanism[Any]) -> Cohort:
    """Scanpaths of people whose recordings have lengths, rates, screens and beginnings of their
    own, several stimuli each.
    """
    recordings = []
    for person in range(people):
        rate = float(rng.choice([100.0, 120.0]))
        screen = Screen(1920, 1080, float(rng.choice([520.0, 530.0])), 290.0, 600.0)
        recordings += [
            _scanpath(rng, f"p{person}", f"s{stimulus}", rate, screen) for stimulus in range(tasks)
        ]
    return Cohort(recordings)


def _scanpath(
    rng: np.random.Generator, person: str, stimulus: str, rate_hz: float, screen: Screen
) -> Recording:
    lengths = rng.integers(15, 50, int(rng.integers(8, 13)))
    places = rng.uniform(-8, 8, (len(lengths), 2))
    gaze = np.repeat(places, lengths, axis=0) + rng.normal(0, 0.1, (int(lengths.sum()), 2))
    t = int(rng.integers(0, 10**9)) + np.rint(np.arange(len(gaze)) * 1e9 / rate_hz).astype(np.int64)
    return Recording(person, stimulus, t, gaze[:, 0], gaze[:, 1], space=screen, rate_hz=rate_hz)


def _table(rng: np.random.Generator, people: int, tasks: int, _: Mechanism[Any]) -> FeatureTable:
    keys, parts = [], []
    for person in range(people):
        for task in range(tasks):
            keys.append((f"p{person:03}", f"s{task}", "1", f"t{task}"))
            parts.append(rng.random((int(rng.integers(2, 9)), 2)))
    indices = [np.arange(len(p), dtype=np.int64) for p in parts]
    return FeatureTable(
        np.concatenate(parts),
        ("a", "b"),
        Keys.of_recordings(keys, indices),
        np.array([[0.0, 1.0]] * 2),
    )


def _people(
    rng: np.random.Generator, people: int, _: int, mechanism: Mechanism[Any]
) -> dict[str, dict[str, object]]:
    """Attributes of people, with rare values among them."""
    names = mechanism.parameters().get("attributes")
    assert isinstance(names, tuple)
    draw: dict[str, Callable[[], object]] = {
        "gender": lambda: "FMX"[int(min(2, rng.exponential(0.6)))],
        "age": lambda: int(20 + rng.exponential(15)),
    }
    return {
        str(i): {n: draw.get(n, lambda: float(rng.integers(0, 9)))() for n in names}
        for i in range(people + 10)
    }


_MAKERS: Mapping[str, Callable[[np.random.Generator, int, int, Mechanism[Any]], Any]] = {
    "table": _table,
    "cohort": _cohort,
    "people": _people,
}
