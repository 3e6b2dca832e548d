"""What the quick battery finds in releases of the people on the page."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from gazeveil.attacks.registry import battery
from gazeveil.errors import DataError
from gazeveil.evaluation.api import evaluate
from gazeveil.evaluation.results import Results
from gazeveil.features.recording_set import FeaturePipeline
from gazeveil.gaze.cohort import Cohort

#: Who attacks, how, and how often.
BATTERY = "quick"
SCENARIOS = ("raw/private", "private/private")
REPETITIONS = 3

_SEED = 2026
_STEP_S = 1.0


@dataclass(frozen=True)
class AttackFigure:
    """The strongest attacker of the battery on one release.

    Parameters
    ----------
    attack, scenario : str
        Who it was, and what it learnt from and was asked about.
    value, low, high : float or None
        Share of people recognised, with its 95 % interval over people where there is one.
    chance : float
        What guessing finds.
    n : int
        People (of pieces: pieces).
    repetitions : int
        Draws of what was learnt from, and of the noise.
    unit : str
        `people` or `pieces`.
    tried : int
        Attackers times scenarios among which it is the strongest.
    """

    attack: str
    scenario: str
    value: float
    low: float | None
    high: float | None
    chance: float
    n: int
    repetitions: int
    unit: str
    tried: int

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def attack_release(
    cohort: Cohort,
    text: str | None,
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
) -> AttackFigure:
    """Attack releases of a cohort with the quick battery; without a text the recordings as they
    are. Cells of the study are kept in the folder: those that several releases share are computed
    once. `progress` is called with cells done and all cells.

    Raises
    ------
    GazeveilError
        In one sentence, where these people cannot be attacked or the mechanism refuses them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes of a study; the page says how it was measured
        results = evaluate(
            cohort,
            [] if text is None else [text],
            BATTERY,
            scenarios=SCENARIOS,
            repetitions=REPETITIONS,
            seed=_SEED,
            executor=1,
            out=folder,
            progress=progress,
            preparation=FeaturePipeline(window_s=_window_s(cohort), step_s=_STEP_S),
        )
    return _figure(results, protected=text is not None)


def attackers() -> tuple[str, ...]:
    """The attackers of the battery."""
    return battery(BATTERY)


def _window_s(cohort: Cohort) -> float:
    """Windows short enough for the shortest recording, and 10 s at most."""
    seconds = min((r.duration_s for r in cohort if len(r)), default=0.0)
    if seconds < 2 * _STEP_S:
        raise DataError("The recordings are too short to attack. Take some of at least 2 seconds.")
    return min(10.0, max(_STEP_S, float(int(seconds / 2))))


def _figure(results: Results, protected: bool) -> AttackFigure:
    rows = [
        row for row in results.worst_case().to_dicts() if (row["mechanism"] != "none") == protected
    ]
    if not rows:
        reason = results.failures[0]["sentence"] if results.failures else "Nobody attacked it."
        raise DataError(reason)
    row = max(rows, key=lambda r: r["value"])
    rates = results.frame.filter(
        metric="identification_rate", mechanism=row["mechanism"], parameters=row["parameters"]
    )
    pieces = "dealt_rate" in results.frame.filter(mechanism=row["mechanism"])["metric"].to_list()
    return AttackFigure(
        row["attack"],
        row["scenario"],
        row["value"],
        row["low"],
        row["high"],
        row["chance"],
        row["n"],
        row["repetitions"],
        "pieces" if pieces else "people",
        rates.height,
    )


def _plain(value: object) -> object:
    """A number as JSON may have it: rounded, and nothing where it is not a number."""
    if isinstance(value, float):
        return None if value != value else round(value, 4)
    return value
