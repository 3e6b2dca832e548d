"""Games against releases about people: heat maps, and synthetic gaze of windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import Game, claim_of
from gazeveil.privacy.heatmaps import HeatmapGaussian, HeatmapLaplace
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.promise.change import Change
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
