"""David-John et al. (Hosfelt, Butler, Jain, IEEE TVCG 2021): Gaussian noise,
temporal and spatial downsampling of streams of gaze.

Fig. 3: how well people are recognised from raw gaze, by dataset and by how many stimuli train. Fig.
4: the same under each mechanism and parameter. Tables 4 to 6: the strongest setting of each
mechanism and what it costs gaze prediction, areas of interest and saliency maps. Gaze is predicted
with the network the paper uses, trained as its authors train it, where the study has it; else with
a linear model, whose errors are ordered, never equated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from gazeveil.evaluation.columns import RATE
from gazeveil.evaluation.results import Results
from gazeveil.papers import drawing
from gazeveil.papers.comparison.lookup import Estimate, Lookup, shape
from gazeveil.papers.figure import (
    Asked,
    CellQuery,
    Formula,
    Identity,
    NotComparable,
    Order,
    PublishedFigure,
    people_in,
    published_figures,
)
from gazeveil.papers.protocols import OUR_NETWORK, PAPERS_NETWORK, PAPERS_PREDICTOR
from gazeveil.privacy.stream.downsample import Spatial

LOCATIONS: Mapping[str, Sequence[str]] = {
    "fig3": ("Table 3", "6.1"),
    "fig4": ("Table 4", "Table 5", "Table 6"),
    "tables": ("Table 4", "Table 5", "Table 6", "6.2", "abstract", "Table 1"),
}

#: Datasets in the paper's order.
DATASETS = ("ET-DK2", "VR-Saliency", "VR-EyeTracking", "360_em", "DGaze")

#: Shares of the stimuli that train, as cohort labels carry them; 75/25 has none.
SPLITS = {"75/25": "", "50/50": ", 50/50", "25/75": ", 25/75"}

#: The paper's attacker: all events, and fixations and saccades weigh the same.
ATTACK = PAPERS_NETWORK

#: Name in the paper -> (ours, its parameter, the values of Fig. 4's axis as far as known).
MECHANISMS = {
    "gaussian-noise": ("gaussian", "sigma_deg", ("1", "2", "5", "10")),
    "temporal-downsample": ("temporal", "K", ("2", "3")),
    "spatial-downsample": ("spatial", "L", ("2", "4", "8", "16", "32", "64")),
}

#: Scenarios of a prediction that learns from raw gaze, and of one that learns from protected gaze.
_RETRAINED = ("raw/private", "private/private")


def cohort(dataset: str, split: str = "75/25") -> str:
    """The label of a part; DGaze has two scenes per person and so is always cut 50/50."""
    return dataset if dataset == "DGaze" else dataset + SPLITS[split]


def rate(label: str, name: str = "none", value: str = "", attack: str = ATTACK) -> CellQuery:
    """The cell of an identification rate in percent."""
    parameter = next((p for m, p, _ in MECHANISMS.values() if m == name), "")
    return CellQuery(
        label,
        RATE,
        name,
        {parameter: value} if parameter and value else {},
        "raw/raw" if name == "none" else "private/private",
        attack=attack,
        scale=100,
        tolerance="identification",
    )


def prediction(
    name: str = "none", value: str = "", scenario: str = "raw/raw", lookup: Lookup | None = None
) -> CellQuery:
    """The cell of an error of gaze prediction in degrees: the paper's network and the dataset's
    arrays where `lookup` has them, else the linear model and recordings.
    """
    parameter = next((p for m, p, _ in MECHANISMS.values() if m == name), "")
    arrays = lookup is not None and lookup.real("DGaze, arrays")
    linear = CellQuery(
        "DGaze, arrays" if arrays else "DGaze",
        "error_deg",
        name,
        {parameter: value} if parameter else {},
        scenario,
        utility="prediction-of-rows" if arrays else "prediction",
        other_model="the paper predicts with the DGaze network, ours is linear",
    )
    if lookup is None:
        return linear
    network = replace(
        linear,
        utility=f"{linear.utility}:{PAPERS_PREDICTOR}",
        other_model="",
        tolerance="prediction",
    )
    return lookup.or_else(network, linear)


def ask(figure: PublishedFigure, lookup: Lookup) -> Asked:
    """Where the answer to one of the paper's figures stands."""
    if figure.location == "Table 1" or figure.dataset == "MIT300":
        return NotComparable("cited from other work on other recordings")
    if figure.metric in ("participants", "stimuli"):
        return shape(figure, cohort(figure.dataset), lookup)
    if figure.model == "chance":
        return Formula(
            100 / people_in("davidjohn2021", figure.dataset),
            2 if figure.value.endswith("77") else 1,
        )
    if figure.metric == "identification rate":
        label = {
            "only 8 stimuli": f"{figure.dataset}, 8 stimuli",
            "18 random subjects": f"{figure.dataset}, 18 people",
        }.get(figure.parameter, figure.dataset)
        return rate(label, *_ours(figure))
    if figure.metric.startswith("gaze prediction error"):
        return _prediction(figure, lookup)
    if figure.metric == "AOI dwell-time RMSE":
        # The paper's error of 36 ms under 10 degrees of noise is only possible with event labels of
        # the raw stream.
        return _carried(figure, "dwell_rmse_s", "aoi", "dwell")
    if figure.metric == "saliency KL divergence":
        # Under 10 degrees of noise no fixation is found again: as for dwell times, the labels must
        # have come along.
        return _carried(figure, "kl", "saliency", "kl")
    return NotComparable("no such measure here")


def _carried(figure: PublishedFigure, metric: str, utility: str, tolerance: str) -> CellQuery:
    """The cell of a figure whose events carry the labels of the raw stream."""
    name, value = _ours(figure)
    return CellQuery(
        figure.dataset,
        metric,
        name,
        {MECHANISMS[figure.mechanism][1]: value},
        events="carried",
        utility=utility,
        tolerance=tolerance,
    )


def _prediction(figure: PublishedFigure, lookup: Lookup) -> Asked:
    if figure.mechanism == "all three":
        return NotComparable("a bound on several figures, which stand in their own rows")
    if figure.mechanism == "none":
        return prediction(lookup=lookup)
    trained = (
        "re-trained" in figure.metric + figure.parameter and "not re-trained" not in figure.metric
    )
    query = prediction(*_ours(figure), _RETRAINED[trained], lookup)
    return replace(query, above_raw="increase" in figure.metric)


def _ours(figure: PublishedFigure) -> tuple[str, str]:
    """Our name of a mechanism and the value of its parameter."""
    if figure.mechanism == "none":
        return "none", ""
    name, _, _ = MECHANISMS[figure.mechanism]
    return name, next(iter(figure.parameters.values())).removesuffix(" deg")


def orders(lookup: Lookup, figure: str) -> Iterator[Order | Identity]:
    """The paper's orders, and its grid steps."""
    if figure in ("", "fig3"):
        yield from _training_orders()
    if figure in ("", "fig4", "tables"):
        yield from _mechanism_orders()
    if figure in ("", "tables"):
        yield from _utility_orders(lookup)
    if figure in ("", "fig4", "tables"):
        steps = Spatial(L=64, reading="published").steps_deg
        yield Identity(
            "davidjohn2021-steps",
            "Table 2, spatial downsampling L = 64: steps in degrees",
            "6.0 x 5.33",
            f"{float(steps[0]):.1f} x {float(steps[1]):.2f}",
            steps == (Fraction(6), Fraction(16, 3)),
        )


def _training_orders() -> Iterator[Order]:
    """More to learn from and fewer people to tell apart, more people recognised."""
    for d in DATASETS[:4]:
        yield Order(
            f"davidjohn2021-more-training-{d}",
            f"{d}: more stimuli to train on, more people recognised",
            [rate(cohort(d, s)) for s in ("25/75", "50/50", "75/25")],
            "25/75 < 50/50 < 75/25",
        )
    yield Order(
        "davidjohn2021-8-stimuli",
        "ET-DK2: eight stimuli give less than fifty",
        [rate("ET-DK2, 8 stimuli"), rate("ET-DK2")],
        "47 < 85",
    )
    yield Order(
        "davidjohn2021-18-people",
        "VR-Saliency: 18 people are recognised more often than 130",
        [rate("VR-Saliency"), rate("VR-Saliency, 18 people")],
        "9 < 22",
    )
    for d in DATASETS:
        yield Order(
            f"davidjohn2021-gap-{d}",
            f"{d}: the RBF network as published < the same on drawn events, people balanced",
            [rate(d), rate(d, attack=OUR_NETWORK)],
            "not in the paper, which trains on all events",
            claimed=False,
        )


def _mechanism_orders() -> Iterator[Order]:
    """Which mechanism hides most."""
    strongest = (("gaussian", "10"), ("spatial", "64"), ("temporal", "3"))
    in_words = "Gaussian hides most, temporal downsampling least"
    for d in DATASETS:
        for attack, title in drawing.ATTACKERS.items():
            yield Order(
                f"davidjohn2021-order-{d}-{drawing.ATTACKER_FILES[attack]}",
                f"{d}: Gaussian < spatial < temporal < raw, attacked by {title}",
                [*(rate(d, *m, attack=attack) for m in strongest), rate(d, attack=attack)],
                "30 < 48 < 79 < 85" if d == "ET-DK2" else in_words,
                claimed=attack == ATTACK,
            )


def _utility_orders(lookup: Lookup) -> Iterator[Order]:
    """How much each costs the analyst: dwell times on one dataset, saliency maps over the datasets,
    and gaze prediction.
    """
    costs = (("temporal", "K", "3"), ("gaussian", "sigma_deg", "10"), ("spatial", "L", "64"))

    def carried(dataset: str, metric: str, utility: str) -> list[CellQuery]:
        return [
            CellQuery(dataset, metric, m, {p: v}, events="carried", utility=utility)
            for m, p, v in costs
        ]

    yield Order(
        "davidjohn2021-dwell",
        "ET-DK2, error of dwell times, labels carried: temporal < Gaussian < spatial",
        carried("ET-DK2", "dwell_rmse_s", "aoi"),
        "0.006 < 0.0359 < 0.2473",
    )
    for d in ("VR-EyeTracking", "VR-Saliency", "360_em"):
        yield Order(
            f"davidjohn2021-kl-{d}",
            f"{d}, KL divergence of saliency maps, labels carried: temporal < Gaussian < spatial",
            carried(d, "kl", "saliency"),
            "0.0019 < 0.0367 < 0.1293, each on another dataset",
        )
    yield Order(
        "davidjohn2021-retraining",
        "DGaze, error of prediction under Gaussian noise: raw < retrained < not retrained",
        [
            prediction(lookup=lookup),
            *(prediction("gaussian", "10", s, lookup) for s in _RETRAINED[::-1]),
        ],
        "4.3 < 5.44 < 9.5",
    )


def draw(results: Results, folder: str | Path) -> list[Path]:
    """The paper's Fig. 3, Fig. 4 and Tables 4 to 6, as far as the study holds them."""
    lookup = Lookup(results)
    figure = lookup.figure
    paths: list[Path] = []
    if figure in ("", "fig3"):
        paths += _fig3(lookup, folder)
    if figure in ("", "fig4"):
        paths += _fig4(lookup, folder)
    if figure in ("", "tables"):
        paths += _tables(lookup, folder)
    return paths


def _fig3(lookup: Lookup, folder: str | Path) -> list[Path]:
    theirs = {
        (
            f.dataset
            if "split" in f.parameter
            else f.dataset + (", 8 stimuli" if "8" in f.parameter else ", 18 people")
        ): f.number
        for f in _raw_rates()
    }
    controls = ("ET-DK2, 8 stimuli", "VR-Saliency, 18 people")
    groups = [*DATASETS, *controls]
    whole = lookup.titled(
        "David-John et al. 2021 Fig. 3: people recognised from raw gaze, by share of stimuli that"
        " train, mean and deviation of the draws"
    )
    drawn, panels = drawing.picture(1, 3, 9, 10, whole)
    for panel, (attack, title) in zip(panels, drawing.ATTACKERS.items(), strict=True):
        series = []
        for split in SPLITS:
            ours = {
                g: lookup.find(rate(g if g in controls else cohort(g, split), attack=attack))
                for g in groups
                if split == "75/25" or g in DATASETS[:4]
            }
            series.append(
                drawing.Curve(split, ours, theirs if split == "75/25" and attack == ATTACK else {})
            )
        drawing.bars(panel, groups, series, "people recognised, %")
        panel.set_title(title, fontsize=9)
        panel.set_ylim(0, 105)
    drawing.key(drawn, panels)
    return [drawing.save(drawn, folder, "davidjohn2021-fig3")]


def _raw_rates() -> list[PublishedFigure]:
    return [
        f
        for f in published_figures("davidjohn2021")
        if f.location == "6.1" and f.metric == "identification rate" and f.model != "chance"
    ]


def _fig4(lookup: Lookup, folder: str | Path) -> list[Path]:
    paths = []
    for attack, attacker in drawing.ATTACKERS.items():
        title = lookup.titled(
            "David-John et al. 2021 Fig. 4: people recognised under each mechanism, attacked by"
            f" {attacker}"
        )
        drawn, panels = drawing.picture(3, 1, 12, 4.2, title)
        for panel, (name, (ours, parameter, grid)) in zip(panels, MECHANISMS.items(), strict=True):
            series = []
            for d in DATASETS:
                estimates: dict[str, Estimate | None] = {"raw": lookup.find(rate(d, attack=attack))}
                estimates |= {v: lookup.find(rate(d, ours, v, attack)) for v in grid}
                theirs = _table_rates(d, name) if attack == ATTACK else {}
                series.append(drawing.Curve(d, estimates, theirs))
            unit = "people recognised, %" if name == "gaussian-noise" else ""
            drawing.curves(panel, series, unit, spread="sd")
            panel.set_title(f"{ours}, {parameter}", fontsize=9)
            panel.set_ylim(0, 105)
        drawing.key(drawn, panels, chance=False)
        paths.append(
            drawing.save(drawn, folder, f"davidjohn2021-fig4-{drawing.ATTACKER_FILES[attack]}")
        )
    return paths


def _table_rates(dataset: str, name: str) -> dict[str, float]:
    """The two points Tables 4 to 6 give of a curve of Fig. 4: raw, and the strongest setting."""
    table = f"Table {4 + list(MECHANISMS).index(name)}"
    rows = [
        f
        for f in published_figures("davidjohn2021")
        if f.location == table and f.dataset == dataset and f.metric == "identification rate"
    ]
    return {_ours(f)[1] or "raw": f.number for f in rows}


def _tables(lookup: Lookup, folder: str | Path) -> list[Path]:
    paths = []
    header = (
        "dataset",
        "by the paper's network, raw -> private, %",
        "by ours, %",
        "by linkage, %",
        "published, %",
        "utility",
        "ours",
        "published",
    )
    for number, name in zip((4, 5, 6), MECHANISMS, strict=True):
        rows = []
        own, parameter, grid = MECHANISMS[name]
        for f in published_figures("davidjohn2021"):
            if f.location != f"Table {number}" or f.metric == "identification rate":
                continue
            cells = [
                [
                    lookup.find(rate(f.dataset, attack=a)),
                    lookup.find(rate(f.dataset, own, grid[-1], a)),
                ]
                for a in drawing.ATTACKERS
            ]
            asked = ask(f, lookup)
            utility = lookup.find(asked) if isinstance(asked, CellQuery) else None
            pairs = [
                " -> ".join(drawing.number(None if c is None else c.value) for c in pair)
                for pair in cells
            ]
            theirs = _table_rates(f.dataset, name)
            rates = f"{theirs['raw']:.0f} -> {theirs[grid[-1]]:.0f}"
            unit = {"deg": "deg", "s": "s"}.get(f.unit, "")
            value = "-" if utility is None else f"{utility.value:.4g} {unit}".strip()
            rows.append((f.dataset, *pairs, rates, f.metric, value, f"{f.value} {unit}".strip()))
        title = f"David-John et al. 2021 Table {number}: {own}, {parameter} = {grid[-1]}"
        paths.append(
            drawing.table(
                folder, f"davidjohn2021-table{number}", lookup.titled(title), header, rows
            )
        )
    return paths + _retraining(lookup, folder)


def _retraining(lookup: Lookup, folder: str | Path) -> list[Path]:
    """Gaze prediction with and without training on protected gaze, for all three mechanisms."""
    groups = ["raw", *(f"{m}, {g[-1]}" for m, _, g in MECHANISMS.values())]
    series = []
    for scenario, which in zip(_RETRAINED, ("raw", "protected"), strict=True):
        ours = {"raw": lookup.find(prediction(lookup=lookup))}
        for name, _, grid in MECHANISMS.values():
            query = prediction(name, grid[-1], scenario, lookup)
            ours[f"{name}, {grid[-1]}"] = lookup.find(query)
        theirs = {"raw": 4.3}
        for f in published_figures("davidjohn2021"):
            if (
                f.location == "6.2"
                and f.dataset == "DGaze"
                and f.mechanism == "gaussian-noise"
                and ("re-trained" in f.parameter) == (scenario != "raw/private")
            ):
                theirs["gaussian, 10"] = f.number
            if (
                "increase" in f.metric
                and f.mechanism in MECHANISMS
                and ("not re-trained" in f.metric) == (scenario == "raw/private")
            ):
                name, value = _ours(f)
                theirs[f"{name}, {value}"] = 4.3 + f.number
        series.append(drawing.Curve(f"trained on {which} gaze", ours, theirs))
    if all(f is None or math.isnan(f.value) for c in series for f in c.ours.values()):
        return []
    title = "David-John et al. 2021 Tables 4 to 6: gaze 100 ms ahead, with and without retraining"
    drawn, panels = drawing.picture(1, 1, 7.5, 4, lookup.titled(title))
    drawing.bars(panels[0], groups, series, "mean error, degrees", "interval")
    drawing.key(drawn, panels, ("published (DGaze network)",), chance=False)
    return [drawing.save(drawn, folder, "davidjohn2021-prediction")]
