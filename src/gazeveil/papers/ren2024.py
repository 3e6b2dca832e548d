"""Ren et al. 2024 (DPGazeSynth, 2024): synthetic gaze under local differential privacy, compared
with Kaleido.

Fig. 2: macro F1 of an RBF network trained on raw gaze and asked about protected gaze, 12 people of
360_em, 10 recordings to learn from and 3 to be asked about. Table 2: which of three tasks of
GazeBaseVR is performed. Table 3: distance of the two paths. Table 4: Jensen-Shannon divergence of
where gaze is. The radius r is 5 or 10 % of the smaller side of the space: 9 or 18 degrees on the
sphere of 360_em, 1.5 or 3 on GazeBaseVR's screen of 47 x 30; DPGazeSynth's grids have 60 and 30
cells. DPGazeSynth's corrected reading and
`dpgazesynth-one-report`, which the paper does not know, stand beside its figures.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gazeveil.evaluation.results import Results
from gazeveil.papers import drawing
from gazeveil.papers.comparison.lookup import Lookup
from gazeveil.papers.figure import (
    BESIDE,
    Asked,
    CellQuery,
    NotComparable,
    Order,
    PublishedFigure,
    published_figures,
)
from gazeveil.papers.protocols import OUR_NETWORK, PAPERS_NETWORK

LOCATIONS: Mapping[str, Sequence[str]] = {
    "fig2": ("5.2",),
    "tables": ("Table 2", "Table 3", "Table 4", "5.3"),
}

#: Share of the smaller side -> DPGazeSynth's grid.
RADII = {"5%": "60", "10%": "30"}

#: Dataset -> the same shares in degrees of its space.
RADII_DEG = {"360_em": {"5%": "9", "10%": "18"}, "GazeBaseVR": {"5%": "1.5", "10%": "3"}}

EPSILONS = ("3", "2", "1")

DATASETS = ("360_em", "GazeBaseVR")

#: The metrics of Tables 3 and 4 -> (utility, metric).
METRICS = {
    "RMSE (root of SUM, not mean)": ("signal", "rmse_published_deg"),
    "density error (JSD, 60x60 grid)": ("density", "jsd_pooled"),
}

#: Columns of Tables 2 to 4: title -> (mechanism, reading); an empty reading is the one that stands
#: beside the paper.
COMPARED = {
    "Kaleido": ("kaleido", ""),
    "DPGazeSynth": ("dpgazesynth", ""),
    "corrected": ("dpgazesynth", "corrected"),
    "one report": ("dpgazesynth-one-report", ""),
}

_OTHER_UNIT = "the paper's screen units are not known, ours are degrees"


def protected(dataset: str, mechanism: str, epsilon: str, radius: str) -> dict[str, str]:
    """Our parameters of a setting of the paper."""
    if mechanism == "kaleido":
        return {"epsilon": epsilon, "r_deg": RADII_DEG[dataset][radius]}
    return {"epsilon": epsilon, "G": RADII[radius]}


def f1(
    mechanism: str = "none",
    epsilon: str = "",
    radius: str = "",
    attack: str = PAPERS_NETWORK,
    reading: str = "",
) -> CellQuery:
    """The cell of a macro F1."""
    parameters = protected("360_em", mechanism, epsilon, radius) if epsilon else {}
    scenario = "raw/raw" if mechanism == "none" else "raw/private"
    return CellQuery(
        "360_em",
        "f1_macro",
        mechanism,
        parameters,
        scenario,
        reading=reading or BESIDE.get(mechanism, ""),
        attack=attack,
        tolerance="identification",
    )


def task(
    mechanism: str = "none", epsilon: str = "", radius: str = "", reading: str = ""
) -> CellQuery:
    """The cell of a task accuracy in percent."""
    parameters = protected("GazeBaseVR", mechanism, epsilon, radius) if epsilon else {}
    scenario = "raw/raw" if mechanism == "none" else "raw/private"
    reading = reading or BESIDE.get(mechanism, "")
    return CellQuery(
        "GazeBaseVR",
        "accuracy",
        mechanism,
        parameters,
        scenario,
        reading=reading,
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
    reading = reading or BESIDE.get(mechanism, "")
    return CellQuery(
        dataset,
        name,
        mechanism,
        protected(dataset, mechanism, epsilon, radius),
        reading=reading,
        utility=utility,
        other_model=other,
    )


def ask(figure: PublishedFigure, lookup: Lookup) -> Asked:
    """Where the answer to one of the paper's figures stands."""
    if figure.location == "5.3":
        return NotComparable("the text contradicts Table 2, which stands in its own rows")
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


def draw(results: Results, folder: str | Path) -> list[Path]:
    """The paper's Fig. 2 and Tables 2 to 4, as far as the study holds them."""
    lookup = Lookup(results)
    figure = lookup.figure
    paths: list[Path] = []
    if figure in ("", "fig2"):
        paths.append(_fig2(lookup, folder))
    if figure in ("", "tables"):
        paths += _tables(lookup, folder)
    return paths


def _fig2(lookup: Lookup, folder: str | Path) -> Path:
    title = (
        "Ren et al. 2024 Fig. 2: people recognised from protected gaze by a network that learned"
        " raw gaze (macro F1)"
    )
    drawn, panels = drawing.picture(2, 1, 9.5, 3.8, lookup.titled(title))
    for panel, radius in zip(panels, RADII, strict=True):
        series = []
        drawn_lines = [(label, *of, PAPERS_NETWORK) for label, of in COMPARED.items()]
        drawn_lines += [
            ("Kaleido, by the balanced network", "kaleido", "", OUR_NETWORK),
            ("Kaleido, by linkage", "kaleido", "", "linkage"),
            ("corrected, by linkage", "dpgazesynth", "corrected", "linkage"),
        ]
        for label, mechanism, reading, attack in drawn_lines:
            ours = {
                "raw": lookup.find(f1(attack=attack)),
                **{e: lookup.find(f1(mechanism, e, radius, attack, reading)) for e in EPSILONS},
            }
            published = (
                {"raw": 1.0}
                if label == "Kaleido"
                else dict.fromkeys(EPSILONS, 1 / 12)
                if label == "DPGazeSynth"
                else {}
            )
            series.append(drawing.Curve(label, ours, published))
        drawing.curves(panel, series, "F1" if radius == "5%" else "", chance=1 / 12)
        panel.set_title(f"r = {radius}, by epsilon", fontsize=9)
        panel.set_ylim(0, 1.05)
    drawing.key(drawn, panels, ("published, in words",))
    return drawing.save(drawn, folder, "ren2024-fig2")


def _tables(lookup: Lookup, folder: str | Path) -> list[Path]:
    raw = lookup.find(task())
    title = lookup.titled(
        "Ren et al. 2024 Table 2: task recognised, %, published in brackets; raw"
        f" {drawing.number(None if raw is None else raw.value)} (98.5)"
    )
    header: tuple[str, ...] = ("mechanism", "epsilon", "r = 5 %", "r = 10 %")
    paths = [drawing.table(folder, "ren2024-table2", title, header, _task_rows(lookup), _NOTE)]
    header = ("r", "epsilon", *(f"{d}, {label}" for d in DATASETS for label in COMPARED))
    units = (
        "root of the summed squares, ours in degrees",
        "Jensen-Shannon divergence, ours in bits",
    )
    for number, metric, unit in zip((3, 4), METRICS, units, strict=True):
        title = lookup.titled(f"Ren et al. 2024 Table {number}: {unit}, published in brackets")
        rows = _distance_rows(lookup, metric)
        paths.append(drawing.table(folder, f"ren2024-table{number}", title, header, rows, _NOTE))
    return paths


def _task_rows(lookup: Lookup) -> list[list[str]]:
    theirs = [f for f in published_figures("ren2024") if f.location == "Table 2"]
    rows = []
    for (label, (mechanism, reading)), epsilon in itertools.product(COMPARED.items(), EPSILONS):
        line = [label, epsilon]
        for radius in RADII:
            same = [f for f in theirs if f.mechanism == mechanism and _is(f, epsilon, radius)]
            query = task(mechanism, epsilon, radius, reading)
            line.append(_beside(lookup, query, [] if reading else same, ".1f"))
        rows.append(line)
    return rows


def _distance_rows(lookup: Lookup, metric: str) -> list[list[str]]:
    theirs = [f for f in published_figures("ren2024") if f.metric == metric]
    rows = []
    for radius, epsilon in itertools.product(RADII, EPSILONS):
        line = [radius, epsilon]
        for dataset, (mechanism, reading) in itertools.product(DATASETS, COMPARED.values()):
            same = [
                f
                for f in theirs
                if (f.dataset, f.mechanism) == (dataset, mechanism) and _is(f, epsilon, radius)
            ]
            query = distance(dataset, metric, mechanism, epsilon, radius, reading)
            line.append(_beside(lookup, query, [] if reading else same, ".4g"))
        rows.append(line)
    return rows


_NOTE = "missing: not in this run. Corrected and one report: not in the paper"


def _beside(
    lookup: Lookup, query: CellQuery, theirs: Sequence[PublishedFigure], digits: str
) -> str:
    """Our figure, and the published one in brackets where there is one."""
    estimate = lookup.find(query)
    ours = "missing" if estimate is None else f"{estimate.value:{digits}}"
    return f"{ours} ({theirs[0].number:.4g})" if theirs else ours
