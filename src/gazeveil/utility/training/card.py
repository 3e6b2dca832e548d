"""The card of a trained predictor of gaze or recogniser of activities: what it learnt from, how
well it does for people it never saw beside what it must beat, and how its file must be handled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from gazeveil.models.weights_file import HANDLING, MARKS

#: Fewest people whose figures have an interval.
FEWEST_PEOPLE = 3

#: Titles and names of the networks.
NETWORKS = {
    "dgaze": ("Card of a network that predicts gaze", "in the manner of DGaze (Hu et al. 2020)"),
    "ehtask": (
        "Card of a network that recognises activities",
        "in the manner of EHTask (Hu et al. 2022)",
    ),
}

#: Metrics in words, with how a figure is written.
_METRICS = {
    "error_deg": ("mean angle to gaze, in degrees; lower is better", "{:.2f}"),
    "accuracy": ("share of windows named rightly; higher is better", "{:.3f}"),
}


@dataclass(frozen=True)
class HeldOutFigure:
    """How well something does for people who were held out.

    Parameters
    ----------
    model : str
        The network's name, or that of a floor: `hold`, `linear`, `kalman`, `forest`, `chance`; or
        :func:`trained_on`.
    value, low, high : float or None
        Mean over people and Student's 95 % interval, cut at what is possible; None where there is
        none (:func:`student`).
    network_better_by, gain_low, gain_high : float or None
        By how much the network is better, person by person, with its interval; None for the
        network itself and for a floor that has no figure for each person.
    people : int
        Who are counted.
    """

    model: str
    value: float | None
    low: float | None
    high: float | None
    network_better_by: float | None
    gain_low: float | None
    gain_high: float | None
    people: int


def held_out_figure(
    model: str, parts: ArrayLike, network: ArrayLike | None = None, higher: bool = False
) -> HeldOutFigure:
    """The figure of a model from its parts, one per person.

    Parameters
    ----------
    model : str
        As in :class:`HeldOutFigure`.
    parts : array, shape (people,)
        NaN for somebody without a figure.
    network : array, shape (people,), optional
        The network's parts, for a floor.
    higher : bool
        Whether higher is better.

    Examples
    --------
    >>> figure = held_out_figure("hold", [3.0, 5.0], [2.0, 4.0])
    >>> figure.value, figure.network_better_by, figure.people
    (4.0, 1.0, 2)
    """
    own = np.asarray(parts, dtype=np.float64)
    value, low, high = student(own)
    if low is not None and high is not None:
        low, high = max(low, 0.0), min(high, 1.0) if higher else high
    gain: tuple[float | None, float | None, float | None] = (None, None, None)
    if network is not None:
        apart = own - np.asarray(network, dtype=np.float64)
        gain = student(-apart if higher else apart)
    return HeldOutFigure(model, value, low, high, *gain, int(np.isfinite(own).sum()))


def trained_on(network: str) -> str:
    """The name of a figure of the people that a network was trained on."""
    return f"{network}, people trained on"


def student(values: ArrayLike) -> tuple[float | None, float | None, float | None]:
    """Mean of the finite values and Student's 95 % interval; None for what is not known: values of
    fewer than three people, or all alike, do not say how others would differ.
    """
    from scipy import stats

    given = np.asarray(values, dtype=np.float64)
    own = given[np.isfinite(given)]
    if len(own) == 0:
        return None, None, None
    mean = float(own.mean())
    if len(own) < FEWEST_PEOPLE or np.ptp(own) == 0:
        return mean, None, None
    half = float(stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / math.sqrt(len(own)))
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class NetworkCard:
    """What is to be said of a network.

    Parameters
    ----------
    network : {"dgaze", "ehtask"}
        Which.
    data : str
        What it was trained on, in words.
    recordings : int
        How many, those of held-out people included.
    people_trained, people_held_out : int
        No person is in both.
    stimuli_shared, stimuli_held_out : int
        How many of the stimuli that held-out people saw were trained on too, and how many they saw.
    given : str
        Its input, in words.
    steps, seed : int
        Of its training.
    last_loss : float
        Mean over the last tenth of the steps.
    version : str
        Of Gazeveil.
    metric : str
        What `figures` are: `error_deg` or `accuracy`.
    figures : tuple of HeldOutFigure
        The network first, then its floors, last the network for people it was trained on; empty
        where nobody was held out.
    """

    network: str
    data: str
    recordings: int
    people_trained: int
    people_held_out: int
    stimuli_shared: int
    stimuli_held_out: int
    given: str
    steps: int
    seed: int
    last_loss: float
    version: str
    metric: str
    figures: tuple[HeldOutFigure, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            **asdict(self),
            "figures": [asdict(f) for f in self.figures],
            "handling": f"{HANDLING} {MARKS}",
        }

    def markdown(self) -> str:
        """The card as a page."""
        title, name = NETWORKS[self.network]
        shared = f"{self.stimuli_shared:,} of {self.stimuli_held_out:,} were trained on too"
        facts: Mapping[str, str] = {
            "network": f"`{self.network}`, {name}",
            "trained on": self.data.replace("|", "/"),
            "recordings": f"{self.recordings:,}",
            "people trained on": f"{self.people_trained:,}",
            "people held out": f"{self.people_held_out:,}, none of them trained on",
            "stimuli of people held out": shared if self.people_held_out else "none",
            "input": self.given,
            "training": (f"{self.steps:,} steps, seed {self.seed}, last loss {self.last_loss:.3f}"),
            "made with": f"Gazeveil {self.version}",
        }
        lines = [f"# {title}", "", "| | |", "|---|---|"]
        lines += [f"| {name} | {value} |" for name, value in facts.items()]
        lines += ["", "## Handling", "", HANDLING, "", MARKS, "", "## People it never saw", ""]
        if not self.figures:
            lines.append("Nobody was held out, so nothing is known of other people.")
        else:
            lines += _table(self.metric, self.figures)
        return "\n".join(lines) + "\n"

    def sentence(self) -> str:
        """The figures in one sentence; empty where nobody was held out."""
        if not self.figures:
            return ""
        form = _METRICS[self.metric][1]
        told = {f.model: _figure(form, f.value, f.low, f.high) for f in self.figures}
        known = told.pop(trained_on(self.network), "not known")
        others = ", ".join(f"{model} {figure}" for model, figure in told.items())
        return f"{self.metric} of people held out: {others}; of people trained on: {known}."


def _table(metric: str, figures: Sequence[HeldOutFigure]) -> list[str]:
    words, form = _METRICS[metric]
    lines = [
        f"`{metric}`: {words}. Mean over people; in brackets Student's 95 % interval over"
        f" them, from {FEWEST_PEOPLE} people on who are not all alike. The last line is of people"
        " it was trained on: what is better there it remembers of them, as far as so few tell.",
        "",
        "| model | figure | the network is better by | people |",
        "|---|---|---|---|",
    ]
    for f in figures:
        gain = (
            ""
            if f.network_better_by is None
            else _figure(form, f.network_better_by, f.gain_low, f.gain_high)
        )
        lines.append(
            f"| {f.model} | {_figure(form, f.value, f.low, f.high)} | {gain} | {f.people} |"
        )
    return lines


def _figure(form: str, value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "not known"
    if low is None or high is None:
        return form.format(value)
    return f"{form.format(value)} ({form.format(low)} to {form.format(high)})"
