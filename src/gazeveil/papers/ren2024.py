"""Ren et al. 2024 (DPGazeSynth, 2024): synthetic gaze under local differential privacy, compared
with Kaleido.

Fig. 2: macro F1 of an RBF network trained on raw gaze and asked about protected gaze, 12 people of
360_em, 10 recordings to learn from and 3 to be asked about. Table 2: which of three tasks of
GazeBaseVR is performed. Table 3: distance of the two paths. Table 4: Jensen-Shannon divergence of
where gaze is. The radius r is 5 or 10 % of the smaller side of the space: 9 or 18 degrees on the
sphere of 360_em, 1.5 or 3 on GazeBaseVR's screen of 47 x 30; DPGazeSynth's grids have 60 and 30
cells.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from gazeveil.papers.figures import (
    BESIDE,
    Asked,
    CellQuery,
    Lookup,
    NotComparable,
    Order,
    PublishedFigure,
    published_figures,
    unprinted,
)
from gazeveil.papers.protocols import PAPERS_NETWORK

LOCATIONS: Mapping[str, Sequence[str]] = {
    "fig2": ("5.2", "Fig 2"),
    "tables": ("Table 2", "Table 3", "Table 4", "5.3"),
}

#: Share of the smaller side -> DPGazeSynth's grid.
RADII = {"5%": "60", "10%": "30"}

#: Dataset -> the same shares in degrees of its space.
RADII_DEG = {"360_em": {"5%": "9", "10%": "18"}, "GazeBaseVR": {"5%": "1.5", "10%": "3"}}

EPSILONS = ("3", "2", "1")

DATASETS = ("360_em", "GazeBaseVR")

#: What Fig. 2 shows, in words: DPGazeSynth at chance, raw gaze nearly 1.
UNPRINTED = tuple(
    unprinted("ren2024", "Fig 2", "360_em", "re-identification F1", name, f"epsilon={e}; r={r}")
    for name in ("kaleido", "dpgazesynth")
    for e in EPSILONS
    for r in RADII
)

#: The metrics of Tables 3 and 4 -> (utility, metric).
METRICS = {
    "RMSE (root of SUM, not mean)": ("signal", "rmse_published_deg"),
    "density error (JSD, 60x60 grid)": ("density", "jsd_pooled"),
}

_OTHER_UNIT = "the paper names no unit (pixels of a plane fit its size), ours are degrees"


def protected(dataset: str, mechanism: str, epsilon: str, radius: str) -> dict[str, str]:
    """Our parameters of a setting of the paper; DPGazeSynth's radius is that of equation (8)."""
    if mechanism == "kaleido":
        return {"epsilon": epsilon, "r_deg": RADII_DEG[dataset][radius]}
    return {"epsilon": epsilon, "G": RADII[radius], "r_deg": "eq8"}


def f1(
    mechanism: str = "none",
    epsilon: str = "",
    radius: str = "",
    attack: str = PAPERS_NETWORK,
    reading: str = "",
) -> CellQuery:
    """The cell of a macro F1."""
    parameters = protected("360_em", mechanism, epsilon, radius) if epsilon else {}
    return CellQuery(
        "360_em",
        "f1_macro",
        mechanism,
        parameters,
        "raw/raw" if mechanism == "none" else "raw/private",
        reading=reading or BESIDE.get(mechanism, ""),
        attack=attack,
        tolerance="identification",
    )


def task(
    mechanism: str = "none", epsilon: str = "", radius: str = "", reading: str = ""
) -> CellQuery:
    """The cell of a task accuracy in percent."""
    parameters = protected("GazeBaseVR", mechanism, epsilon, radius) if epsilon else {}
    return CellQuery(
        "GazeBaseVR",
        "accuracy",
        mechanism,
        parameters,
        "raw/raw" if mechanism == "none" else "raw/private",
        reading=reading or BESIDE.get(mechanism, ""),
        utility="task",
        scale=100,
        tolerance="accuracy",
    )


def distance(
    dataset: str, metric: str, mechanism: str, epsilon: str, radius: str, reading: str = ""
) -> CellQuery:
    """The cell of a distance between raw and protected gaze."""
    utility, name = METRICS[metric]
    other = _OTHER_UNIT if utility == "signal" else "the base of the paper's logarithm is not known"
    return CellQuery(
        dataset,
        name,
        mechanism,
        protected(dataset, mechanism, epsilon, radius),
        reading=reading or BESIDE.get(mechanism, ""),
        utility=utility,
        other_model=other,
    )


def ask(figure: PublishedFigure, lookup: Lookup) -> Asked:
    """Where the answer to one of the paper's figures stands."""
    if figure.location == "5.3":
        return NotComparable("the text contradicts Table 2, which stands in its own rows")
    if figure.location == "Fig 2":
        return f1(figure.mechanism, *(figure.parameters[n] for n in ("epsilon", "r")))
    if figure.metric == "re-identification F1":
        # "Almost on par with a random baseline", for every setting.
        return f1() if figure.mechanism == "none" else f1("dpgazesynth", "1", "5%")
    if figure.mechanism == "none":
        return task()
    epsilon = figure.parameters["epsilon"]
    radius = "5%" if "5%" in figure.parameter or "G=60" in figure.parameter else "10%"
    if figure.metric == "task recognition accuracy":
        return task(figure.mechanism, epsilon, radius)
    return distance(figure.dataset, figure.metric, figure.mechanism, epsilon, radius)


def orders(lookup: Lookup, figure: str) -> Iterator[Order]:
    """DPGazeSynth against Kaleido, as the paper has it."""
    if figure in ("", "fig2"):
        yield Order(
            "ren2024-kaleido-f1",
            "360_em, F1: Kaleido at 1 and 10 % < at 3 and 5 % < raw",
            [f1("kaleido", "1", "10%"), f1("kaleido", "3", "5%"), f1()],
            "raw nearly 1, Kaleido lower",
        )
        yield Order(
            "ren2024-f1",
            "360_em, F1 at epsilon 1, r 5 %: DPGazeSynth < Kaleido",
            [f1(m, "1", "5%") for m in ("dpgazesynth", "kaleido")],
            "in words",
        )
    if figure in ("", "tables"):
        yield from _table_orders()


def _table_orders() -> Iterator[Order]:
    for radius, epsilon in itertools.product(RADII, EPSILONS):
        theirs = {
            f.mechanism: f.value
            for f in published_figures("ren2024")
            if f.location == "Table 2" and f.parameter and _is(f, epsilon, radius)
        }
        yield Order(
            f"ren2024-task-{epsilon}-{radius}",
            f"GazeBaseVR, task at epsilon {epsilon}, r {radius}: Kaleido < DPGazeSynth",
            [task(m, epsilon, radius) for m in ("kaleido", "dpgazesynth")],
            f"{theirs.get('kaleido')} < {theirs.get('dpgazesynth')}",
        )
    yield Order(
        "ren2024-task-raw",
        "GazeBaseVR, task: Kaleido < raw",
        [task("kaleido", "1", "10%"), task()],
        "33.91 < 98.5",
    )
    for dataset, metric in itertools.product(DATASETS, METRICS):
        yield Order(
            f"ren2024-{METRICS[metric][1]}-{dataset}",
            f"{dataset}, {metric} at epsilon 1, r 5 %: DPGazeSynth < Kaleido",
            [distance(dataset, metric, m, "1", "5%") for m in ("dpgazesynth", "kaleido")],
            "DPGazeSynth is nearer in every row",
        )


def _is(figure: PublishedFigure, epsilon: str, radius: str) -> bool:
    return figure.parameters.get("epsilon") == epsilon and radius in figure.parameter.replace(
        "r=", ""
    )
