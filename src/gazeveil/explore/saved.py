"""The page as one file, for sending on.

A page that is sent on must not hold a participant's gaze. Several releases of the same gaze add up:
their average undoes the noise. So its pictures are of simulated people; of real ones it gives only
the number re-identified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gazeveil import __version__
from gazeveil.errors import ParameterError
from gazeveil.explore.board import Board, Limits, take
from gazeveil.explore.view import page
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.simulate import simulate

#: Whose traces, and of how many stimuli, a saved page has.
TRACES, STIMULI = 2, 2

_STAND_INS, _SECONDS, _SEED = 8, 10.0, 2026
_RATE_STEP_HZ = 10.0

_NOT_COMPUTED = "It could not be computed for these recordings; `gazeveil explore` says why."

#: Called with what is done and all there is.
Progress = Callable[[int, int], None]


def save(board: Board, path: str | Path, progress: Progress = lambda done, total: None) -> Path:
    """Write the page with every value of every parameter computed. `progress` is called with
    releases done and all releases.

    Raises
    ------
    ParameterError
        If the path is not that of an HTML file.
    """
    target = Path(path)
    if target.suffix.lower() not in {".html", ".htm"} or target.is_dir():
        raise ParameterError(
            f"The page is saved as one HTML file. Got '{path}' instead. Name one such as"
            " explore.html.",
            name="path",
            got=str(path),
        )
    shown = Board(stand_ins(board.cohort), board.sliders)
    try:
        figures = _figures(board, shown, progress)
    finally:
        shown.close()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(figures), encoding="utf-8")
    return target


def stand_ins(cohort: Cohort) -> Cohort:
    """Simulate people at about the rate of a cohort, on a screen or a sphere as it is. Nothing else
    of it is used: an exact rate or a viewing distance can identify a person.
    """
    first = cohort[0]
    task = "free-viewing" if isinstance(first.space, Sphere) else "reading"
    rate_hz = max(_RATE_STEP_HZ, round(first.rate_hz / _RATE_STEP_HZ) * _RATE_STEP_HZ)
    people = simulate(_STAND_INS, STIMULI, _SECONDS, rate_hz, task=task, seed=_SEED)
    return take(people, Limits(_STAND_INS, STIMULI, _SECONDS))


def _figures(board: Board, shown: Board, progress: Progress) -> dict[str, object]:
    # Long: what a saved page holds, in one place, so that a reader sees that nothing else is.
    everybody = list(range(len(board.people)))
    viewers = list(range(len(shown.people)))
    traced = [(p, s) for p in viewers[:TRACES] for s in range(min(STIMULI, len(shown.stimuli)))]
    total = 1 + sum(len(slider.texts) for slider in board.sliders)
    done = 0

    def release(text: str | None) -> tuple[dict[str, object], dict[str, object]]:
        nonlocal done
        pictures: dict[str, object] = {
            f"{p}/{s}": shown.picture(viewers, p, s, text) for p, s in traced
        }
        found = board.attack(everybody, text)
        if "refusal" in found:
            found = {"refusal": _NOT_COMPUTED}  # its own sentence may name people
        done += 1
        progress(done, total)
        return pictures, found

    progress(0, total)
    baseline = release(None)
    values = [[release(text) for text in slider.texts] for slider in board.sliders]
    return {
        "board": {
            **board.describe(),
            "people": _numbered("Person", {p for p, _ in traced}),
            "stimuli": _numbered("Stimulus", {s for _, s in traced}),
            "stimuli_attacked": len(board.stimuli),
            "people_attacked": len(board.people),
            "version": __version__,
        },
        "recorded": baseline[0],
        "pictures": [[pictures for pictures, _ in row] for row in values],
        "attacks": [
            {"baseline": baseline[1], "values": [found for _, found in row], "left": 0}
            for row in values
        ],
    }


def _numbered(word: str, numbers: Iterable[int]) -> list[str]:
    return [f"{word} {number + 1}" for number in sorted(numbers)]
