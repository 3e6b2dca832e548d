"""Bozkir et al. (Günlü, Fuhl, Schaefer, Kasneci, PLOS ONE 2021): Fourier perturbation
of window features, with temporal correlations.

Tables 1 to 9: document type, gender, privacy sensitivity and person, recognised by four classifiers
from one release split afterwards (`release/release`), with and without a majority vote over the
windows of a recording, mean of 100 draws. Figs 7 to 12: 1/|NMSE| by budget, with the Laplace
mechanism for comparison. Figs 3 to 6: how features of one moment correlate with later ones over
people. The paper's budgets are those of all 48 features together (52 less the four minima of the
saccade n-grams): 48 x (0.01, 0.05, 0.1, 0.5, 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from gazeveil.evaluation.results import Results
from gazeveil.features.definitions import WINDOW
from gazeveil.papers import drawing
from gazeveil.papers.comparison.lookup import Estimate, Lookup
from gazeveil.papers.figure import (
    Asked,
    CellQuery,
    Formula,
    Identity,
    NotComparable,
    Order,
    PublishedFigure,
    published_figures,
)

LOCATIONS: Mapping[str, Sequence[str]] = {
    "mpiidpeye": (
        "Table 1",
        "Table 2",
        "Table 3",
        "Table 6",
        "Table 7",
        "Table 8",
        "Classification results",
        "1/20",
    ),
    "mpiiprivaceye": ("Table 4", "Table 5", "Table 9", "Classification results", "1/17"),
}

#: Features that are always 0 in the paper's data, which it leaves out.
DROPPED = tuple(name for name in WINDOW if name.startswith("wb") and name.endswith("_min"))

#: The paper's budgets of all features, and ours of one feature.
BUDGETS = {total: str(Fraction(total) / 48) for total in ("0.48", "2.4", "4.8", "24", "48")}

#: Methods in the paper's order -> (ours, its parameters but the budget).
METHODS: Mapping[str, tuple[str, dict[str, str]]] = {
    "FPA": ("fpa", {}),
    **{f"CFPA-{c}": ("cfpa", {"chunk": str(c)}) for c in (32, 64, 128)},
    **{f"DCFPA-{c}": ("dcfpa", {"chunk": str(c)}) for c in (32, 64, 128)},
}

#: Classifiers in the paper's order -> ours.
MODELS = {"k-NN": "knn", "SVM": "svm", "DT": "tree", "RF": "forest"}

#: Table -> (dataset, what is recognised, whether by vote).
TABLES = {
    1: ("MPIIDPEye", "document", True),
    2: ("MPIIDPEye", "gender", True),
    3: ("MPIIDPEye", "person", True),
    4: ("MPIIPrivacEye", "privacy", False),
    5: ("MPIIPrivacEye", "person", True),
    6: ("MPIIDPEye", "document", False),
    7: ("MPIIDPEye", "gender", False),
    8: ("MPIIDPEye", "person", False),
    9: ("MPIIPrivacEye", "person", False),
}

#: Figure of the paper -> (dataset, methods drawn).
UTILITY_FIGURES = {
    7: ("MPIIDPEye", ("LPA", "FPA")),
    8: ("MPIIDPEye", ("CFPA-32", "CFPA-64", "CFPA-128")),
    9: ("MPIIDPEye", ("DCFPA-32", "DCFPA-64", "DCFPA-128")),
    10: ("MPIIPrivacEye", ("LPA", "FPA")),
    11: ("MPIIPrivacEye", ("CFPA-32", "CFPA-64", "CFPA-128")),
    12: ("MPIIPrivacEye", ("DCFPA-32", "DCFPA-64", "DCFPA-128")),
}

_WHY_NOT = (
    "of whole signals FPA has the smaller error; 1/|NMSE| averaged over chunks gives the paper's"
    " order of CFPA and FPA with the same noise"
)

_NO_ANNOTATION = (
    "simulated recordings have no annotation of privacy; it needs the files of MPIIPrivacEye"
)


def accuracy(
    dataset: str,
    task: str,
    vote: bool,
    classifier: str,
    method: str = "",
    total: str = "",
    reading: str = "",
    scenario: str = "",
) -> CellQuery:
    """The cell of an accuracy; without a method the baseline."""
    names = {
        "document": f"document:classifier={classifier},split=people,vote={vote}",
        "gender": f"gender:classifier={classifier},vote={vote}",
        "privacy": f"privacy-sensitivity:classifier={classifier}",
        "person": f"person-by-window:classifier={classifier},vote={vote}",
    }
    name, parameters = METHODS[method] if method else ("none", {})
    budget = {"epsilon": BUDGETS[total]} if method else {}
    when = scenario or ("release/release" if method else "raw/raw")
    return CellQuery(
        dataset,
        "accuracy",
        name,
        {**parameters, **budget},
        when,
        reading=reading,
        utility=names[task],
        tolerance="accuracy",
    )


def nmse(dataset: str, method: str, total: str, reading: str = "published") -> CellQuery:
    """The cell of |NMSE|, the median over signals: the printed mean has no expectation, because the
    released mean it divides by may be near 0.
    """
    name, parameters = ("lpa", {}) if method == "LPA" else METHODS[method]
    return CellQuery(
        dataset,
        "nmse_median",
        name,
        {**parameters, "epsilon": BUDGETS[total]},
        reading=reading,
        utility="signal",
    )


def ask(figure: PublishedFigure, lookup: Lookup) -> Asked:
    """Where the answer to one of the paper's figures stands."""
    if figure.model == "chance":
        return Formula(
            (
                1 / 3
                if figure.metric.startswith("document")
                else 1 / (20 if figure.dataset == "MPIIDPEye" else 17)
            ),
            4 if "88" in figure.value else 2,
        )
    if (
        figure.dataset == "MPIIPrivacEye"
        and figure.metric.startswith("privacy")
        and not lookup.real("MPIIPrivacEye")
    ):
        return NotComparable(_NO_ANNOTATION)
    if figure.location == "Classification results":
        return accuracy(
            figure.dataset,
            "gender" if figure.metric.startswith("gender") else "privacy",
            "majority" in figure.model,
            "svm",
        )
    dataset, task, vote = TABLES[int(figure.location.removeprefix("Table "))]
    return accuracy(
        dataset,
        task,
        vote,
        MODELS[figure.model.partition(";")[0]],
        figure.mechanism,
        figure.parameters["epsilon"],
    )


def orders(lookup: Lookup, figure: str) -> Iterator[Order | Identity]:
    """What the text of the paper claims, and what is behind FPA's perfect identification."""
    used = len(WINDOW) - len(DROPPED)
    for total, own in BUDGETS.items():
        ours = float(used * Fraction(own))
        yield Identity(
            f"bozkir2021-budget-{total}",
            f"budget of all features: {used} x {float(Fraction(own)):g}",
            float(total),
            ours,
            math.isclose(ours, float(total)),
        )
    for dataset in ("MPIIDPEye", "MPIIPrivacEye"):
        if figure in ("", dataset.lower()):
            yield from _error_orders(dataset)
            yield from _person_orders(dataset)


def _error_orders(dataset: str) -> Iterator[Order]:
    """Which noise leaves most of a feature."""

    def order(name: str, methods: tuple[str, str], total: str, published: str) -> Order:
        return Order(
            f"bozkir2021-{name}",
            f"{dataset}, |NMSE| at {total}: {' < '.join(methods)}",
            [nmse(dataset, m, total) for m in methods],
            published,
            why=_WHY_NOT if "CFPA" in methods[0] else "",
        )

    for total in BUDGETS:
        exceeds = "CFPA's utility always exceeds FPA's"
        yield order(f"cfpa-{dataset}-{total}", ("CFPA-64", "FPA"), total, exceeds)
        yield order(f"lpa-{dataset}-{total}", ("FPA", "LPA"), total, "all exceed LPA's utility")
    best = "DCFPA with small chunks is best"
    yield order(f"dcfpa-{dataset}", ("DCFPA-32", "CFPA-32"), "0.48", best)


def _person_orders(dataset: str) -> Iterator[Order]:
    """From which release a forest names the person."""
    for vote in (True, False):
        yield Order(
            f"bozkir2021-person-{dataset}-{vote}",
            f"{dataset}, person by forest at 0.48, {'vote' if vote else 'no vote'}: DCFPA-128"
            " < FPA",
            [accuracy(dataset, "person", vote, "forest", m, "0.48") for m in ("DCFPA-128", "FPA")],
            "FPA identifies everybody",
        )

    def fpa(reading: str, scenario: str) -> CellQuery:
        return accuracy(dataset, "person", True, "forest", "FPA", "0.48", reading, scenario)

    # One release split afterwards carries its few noisy coefficients into both halves: it is the
    # noise that is recognised.
    split = fpa("published", "release/release")
    yield Order(
        f"bozkir2021-noise-{dataset}",
        f"{dataset}, person by forest from published FPA at 0.48: two releases < one release split",
        [fpa("published", "private/private"), split],
        "not in the paper, which splits one release",
        claimed=False,
    )
    yield Order(
        f"bozkir2021-corrected-{dataset}",
        f"{dataset}, person by forest from FPA at 0.48: corrected, two releases < published, one"
        " release split",
        [fpa("corrected", "private/private"), split],
        "not in the paper",
        claimed=False,
    )


def draw(results: Results, folder: str | Path) -> list[Path]:
    """The paper's Figs 3 to 12 and Tables 1 to 9, as far as the study holds them."""
    lookup = Lookup(results)
    paths = _correlations(results, lookup, folder)
    for number, (dataset, methods) in UTILITY_FIGURES.items():
        if dataset in lookup.cohorts:
            paths += _utilities(lookup, folder, number, dataset, methods)
    for number, (dataset, task, vote) in TABLES.items():
        if dataset in lookup.cohorts:
            paths += _table(lookup, folder, number, dataset, task, vote)
    return paths


def _correlations(results: Results, lookup: Lookup, folder: str | Path) -> list[Path]:
    """Figs 3 to 6 from the curves the study kept: raw and difference signals of one feature, one
    line per document or recording.
    """
    paths = []
    curves = results.study.get("curves", {})
    for place, dataset in ((3, "MPIIDPEye"), (5, "MPIIPrivacEye")):
        of_dataset = curves.get(dataset) if isinstance(curves, Mapping) else None
        if not of_dataset:
            continue
        drawn, panels = drawing.picture(
            2,
            1,
            10,
            3.6,
            lookup.titled(
                f"Bozkir et al. 2021 Figs {place} and {place + 1}: correlation with step 5 over"
                " people,"
                f" {of_dataset['feature']}, {dataset}"
            ),
        )
        for panel, kind in zip(panels, ("raw", "difference"), strict=True):
            for s, (label, values) in enumerate(of_dataset[kind].items()):
                series = np.array([math.nan if v is None else v for v in values])
                panel.plot(
                    np.arange(1, len(series) + 1), series, color=drawing.ink(s), lw=1.2, label=label
                )
            panel.axhline(0, color=drawing.ink(-1), lw=0.8)
            panel.set_title(f"{kind} signals", fontsize=9)
            panel.set_ylim(-1.05, 1.05)
            panel.set_xlabel("steps after the fifth", fontsize=9)
        drawing.key(drawn, panels, (), chance=False)
        paths.append(drawing.save(drawn, folder, f"bozkir2021-fig{place}-{place + 1}"))
    return paths


def _utilities(
    lookup: Lookup, folder: str | Path, number: int, dataset: str, methods: Sequence[str]
) -> list[Path]:
    series = [
        drawing.Curve(m, {t: _inverse(lookup.find(nmse(dataset, m, t))) for t in BUDGETS})
        for m in methods
    ]
    if all(f is None for c in series for f in c.ours.values()):
        return []
    drawn, panels = drawing.picture(
        1, 1, 6, 4, lookup.titled(f"Bozkir et al. 2021 Fig. {number}: 1/|NMSE|, {dataset}")
    )
    drawing.curves(panels[0], series, "1/|NMSE|, median over signals")
    panels[0].set_yscale("log")
    panels[0].set_xlabel("epsilon of all 48 features", fontsize=9)
    drawing.key(drawn, panels, (), chance=False)
    return [drawing.save(drawn, folder, f"bozkir2021-fig{number}")]


def _inverse(estimate: Estimate | None) -> Estimate | None:
    if estimate is None or not estimate.value > 0:
        return None
    return Estimate(
        1 / estimate.value,
        1 / estimate.high if estimate.high > 0 else math.nan,
        1 / estimate.low if estimate.low > 0 else math.nan,
        estimate.n,
        math.nan,
        math.nan,
    )


def _table(
    lookup: Lookup, folder: str | Path, number: int, dataset: str, task: str, vote: bool
) -> list[Path]:
    theirs = {
        (f.mechanism, f.parameters["epsilon"], f.model.partition(";")[0]): f.number
        for f in published_figures("bozkir2021")
        if f.location == f"Table {number}"
    }
    rows, some = [], False
    for method in METHODS:
        line = [method]
        for total in BUDGETS:
            estimates: list[Estimate | None] = [
                lookup.find(accuracy(dataset, task, vote, MODELS[m], method, total)) for m in MODELS
            ]
            some |= any(f is not None for f in estimates)
            ours = "/".join("-" if f is None else f"{f.value:.2f}" for f in estimates)
            line.append(f"{ours} ({'/'.join(f'{theirs[method, total, m]:.2g}' for m in MODELS)})")
        rows.append(line)
    if not some:
        return []
    task_label = {
        "document": "document type",
        "gender": "gender",
        "person": "person",
        "privacy": "privacy sensitivity",
    }[task]
    title = (
        f"Bozkir et al. 2021 Table {number}: {task_label}, {dataset},"
        f" {'majority vote' if vote else 'no vote'};"
        " k-NN/SVM/DT/RF, published in brackets"
    )
    return [
        drawing.table(
            folder,
            f"bozkir2021-table{number}",
            lookup.titled(title),
            ("method", *(f"epsilon = {t}" for t in BUDGETS)),
            rows,
        )
    ]
