"""Games against releases about people: heat maps, and synthetic gaze of windows.

The game of promises that at least k people share what is released: over random cohorts, how many
names share everything that a stranger sees of a release.

That is names of recordings, rates, spaces, times and losses, and the values themselves where a
record is shared and not its law. A mechanism whose people share laws hands them over besides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.audit.games import Game, asked_unit, claim_of
from gazeveil.privacy.heatmaps import HeatmapGaussian, HeatmapLaplace
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.promise.loss import Change
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import Synthesis

_SCREEN = Screen(1920, 1080, 520.0, 290.0, 600.0)
_RELEASES = 800  # of heat maps per input
_LOOKERS = 600  # people of each side in one release
_SAMPLES = 40


# --- heat maps
# --------------------------------------------------------------------------------------------------


def maps(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """One viewer looks left or right: at one of two stimuli, at all of twelve, and at one of them
    twice.
    """
    assert isinstance(mechanism, HeatmapGaussian | HeatmapLaplace)
    # The promise does not depend on the size of the maps, and small ones are quickly drawn.
    small = replace(mechanism, rows=1, columns=2, smooth_deg=0.0)
    for unit, stimuli, sessions in (("recording", 2, 1), ("user", 12, 1), ("user", 1, 2)):
        try:
            release = small.release(_viewers(0, unit, stimuli, sessions))
        except DataError:
            continue  # nothing was released
        claim = claim_of(release.guarantee, Change(unit))
        if claim is not None:
            description = (
                f"Maps of {stimuli} stimuli with {sessions} recording(s) each of one viewer: a"
                f" {unit} on the left against the right half."
            )
            yield Game(
                unit,
                claim[0],
                description,
                _play_maps(small, unit, stimuli, sessions),
                delta=claim[1],
            )


def _viewers(side: int, unit: str, stimuli: int, sessions: int) -> Cohort:
    """A viewer who changes, with recordings of unequal lengths, and one who does not."""
    recordings = []
    for stimulus in range(stimuli):
        for session in range(sessions):
            moves = unit == "user" or (stimulus == 0 and session == 0)
            x = 90.0 + 180.0 * (side if moves else 0)
            recordings.append(
                _still("a", f"s{stimulus}", f"{session}", x, _SAMPLES * (1 + stimulus))
            )
        recordings.append(_still("b", f"s{stimulus}", "0", 90.0, _SAMPLES))
    return Cohort(recordings)


def _still(person: str, stimulus: str, session: str, x_deg: float, samples: int) -> Recording:
    t = np.arange(samples, dtype=np.int64) * 10**7
    return Recording(
        person,
        stimulus,
        t,
        np.full(samples, x_deg),
        np.full(samples, 90.0),
        space=Sphere(),
        rate_hz=100.0,
        session=session,
    )


def _play_maps(
    mechanism: Mechanism[Any], unit: str, stimuli: int, sessions: int
) -> Callable[[int, int, int | None], Floats]:
    def play(side: int, trials: int, seed: int | None) -> Floats:
        cohort, scores = _viewers(side, unit, stimuli, sessions), []
        for number in range(min(trials, _RELEASES)):
            released = mechanism.release(cohort, None if seed is None else seed + number).data
            cells = np.array([m.noisy.reshape(-1) for m in released.values()])
            # The viewer who does not change looks left; around the two sums the likelihood ratio of
            # Laplace noise is linear.
            inside = np.clip(cells - np.array([1.0, 0.0]), 0.0, float(sessions))
            scores.append(
                (
                    *(inside[:, 0] - inside[:, 1])[:1],
                    (inside[:, 0] - inside[:, 1]).sum(),
                    (cells[:, 0] - cells[:, 1]).sum(),
                    cells.sum(),
                )
            )
        return np.array(scores)

    return play


# --- windows
# --------------------------------------------------------------------------------------------------


def windows(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """People whose windows begin at one side of the screen against the other, in one release: each
    of them is a trial.

    Half of the people look left and half of them right, so that what is learned of all is the same
    for both.
    """
    if not isinstance(mechanism, Synthesis):
        return
    long = max(1, round(float(mechanism.window_s) * 100.0))
    # The finer the grid the smaller is r, and the more is lost from edge to edge; the first promise
    # that is small enough to be seen broken is attacked.
    for cells, count in ((20, 2), (20, 1), (8, 1)):
        small = replace(mechanism, G=min(mechanism.G, cells))
        guarantee = small.release(
            Cohort([_looks("a", -0.45, count * long), _looks("b", 0.45, count * long)])
        ).guarantee
        if guarantee.status != "proved":
            return
        claim = claim_of(guarantee, Change.person())
        wrong = (
            ""
            if dict(guarantee.user) == guarantee.map(Change.person()).numbers()
            else "The number printed for a person is not what the map says."
        )
        yield Game(
            "user",
            None,
            f"What {count} window(s) of a person add up to is printed as the map has it.",
            broken=wrong,
        )
        if claim is not None:
            description = (
                f"A person with {count} window(s) that begin at the left edge of the screen against"
                " the right edge."
            )
            yield Game(
                "user", claim[0], description, _play_windows(small, count, long), delta=claim[1]
            )
            return


def _play_windows(
    mechanism: Mechanism[Any], count: int, long: int
) -> Callable[[int, int, int | None], Floats]:
    made: dict[tuple[int, int | None], Floats] = {}

    def play(side: int, trials: int, seed: int | None) -> Floats:
        # One release serves both sides: the people of a side are those who look there.
        if (trials, seed) not in made:
            people = 2 * min(trials, _LOOKERS)
            cohort = Cohort(
                [
                    _looks(f"p{i:05}", 0.45 * (1 if i % 2 else -1), count * long)
                    for i in range(people)
                ]
            )
            made[trials, seed] = np.array(
                [(r.x_deg[::long].mean(), r.x_deg[0]) for r in mechanism.release(cohort, seed).data]
            )
        return made[trials, seed][side::2]

    return play


def _looks(person: str, side: float, samples: int) -> Recording:
    t = np.arange(samples, dtype=np.int64) * 10**7
    return Recording(
        person,
        "s",
        t,
        np.full(samples, side * _SCREEN.width_deg),
        np.zeros(samples),
        space=_SCREEN,
        rate_hz=100.0,
    )


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
