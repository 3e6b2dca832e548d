"""David-John et al. (Butler, Jain, ETRA 2022, "For Your Eyes Only"):
k-same-select, Marginals and Exponential-DP on tables of features.

Fig. 1: people recognised by networks trained on private tables and tested on raw ones, seven
datasets; for MPIIDPEye one network on the 52 window features, elsewhere two on fixations and
saccades weighed 0.4 and 0.6. Fig. 2: document type on MPIIDPEye, a support vector machine trained
on private first halves and tested on raw second ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gazeveil.evaluation.study import RATE
from gazeveil.papers.figures import (
    Asked,
    CellQuery,
    Formula,
    Lookup,
    NotComparable,
    Order,
    PublishedFigure,
    people_in,
    published_figures,
    shape,
)
from gazeveil.papers.protocols import PAPERS_NETWORK

LOCATIONS: Mapping[str, Sequence[str]] = {
    "fig1": ("Table 2", "4.1", "Fig 1"),
    "fig2": ("4.2", "4.2 and abstract", "Fig 2", "5"),
}

UNPRINTED: tuple[PublishedFigure, ...] = ()

#: Datasets in the paper's order.
DATASETS = ("MPIIDPEye", "ET-DK2", "VR-Saliency", "360_em", "VR-EyeTracking", "OpenNEEDS", "EHTask")

#: Name in the paper -> (ours, its parameter, the values of the axis).
MECHANISMS = {
    "k-same-select-sequence": ("k-same-select", "k", ("2", "4", "6", "8")),
    "marginals-PD": ("marginals", "k", ("2", "4", "6", "8")),
    "exponential-DP": (
        "exponential-dp",
        "epsilon",
        ("100", "80", "60", "40", "20", "10", "5", "2", "1"),
    ),
}

#: The paper's way to recognise documents.
DOCUMENT = "document:classifier=svm,split=halves,vote=False"


def attack_on(dataset: str, network: str = PAPERS_NETWORK) -> str:
    """The paper's attacker, or ours of the same kind: one network on windows for reading, two on
    events elsewhere.
    """
    return f"{network},table=windows" if dataset == "MPIIDPEye" else network


def rate(
    dataset: str, name: str = "none", value: str = "", attack: str = "", reading: str = ""
) -> CellQuery:
    """The cell of an identification rate in percent."""
    scenario = "raw/raw" if name == "none" else "private/raw"
    return CellQuery(
        dataset,
        RATE,
        name,
        _parameter(name, value),
        scenario,
        reading=reading,
        attack=attack or attack_on(dataset),
        scale=100,
        tolerance="identification",
    )


def document(name: str = "none", value: str = "", reading: str = "") -> CellQuery:
    """The cell of an accuracy of document types in percent."""
    scenario = "raw/raw" if name == "none" else "private/raw"
    return CellQuery(
        "MPIIDPEye",
        "accuracy",
        name,
        _parameter(name, value),
        scenario,
        reading=reading,
        utility=DOCUMENT,
        scale=100,
        tolerance="accuracy",
    )


def _parameter(name: str, value: str) -> dict[str, str]:
    parameter = next((p for m, p, _ in MECHANISMS.values() if m == name), "")
    return {parameter: value} if parameter and value else {}


def ask(figure: PublishedFigure, lookup: Lookup) -> Asked:
    """Where the answer to one of the paper's figures stands."""
    if figure.metric == "runtime":
        return NotComparable("time on the authors' machine")
    if figure.metric in ("participants", "stimuli"):
        return shape(figure, figure.dataset, lookup)
    if figure.model == "chance":
        return (
            Formula(100 / 3, 0)
            if figure.metric.startswith("document")
            else Formula(100 / people_in("davidjohn2022", figure.dataset), 1)
        )
    if figure.parameter.startswith("all"):
        return NotComparable("a bound on several figures, which stand in their own rows")
    name, value = "none", ""
    if figure.mechanism != "none":
        name = MECHANISMS[figure.mechanism][0]
        value = "8" if figure.parameter == "large k" else next(iter(figure.parameters.values()))
    return (
        document(name, value)
        if figure.metric.startswith("document")
        else rate(figure.dataset, name, value)
    )


def orders(lookup: Lookup, figure: str) -> Iterator[Order]:
    """What the paper claims, and what a stronger attacker makes of it."""
    if figure in ("", "fig1"):
        for d in DATASETS:
            yield Order(
                f"davidjohn2022-k-{d}",
                f"{d}: k-same k = 8 < k = 2 < raw",
                [rate(d, "k-same-select", "8"), rate(d, "k-same-select", "2"), rate(d)],
                _published_rates(d, "k-same-select-sequence", ("k=8", "k=2", "")),
            )
        for d in DATASETS[1:]:
            yield from _linkage_orders(d)
    if figure in ("", "fig2"):
        for k in MECHANISMS["marginals-PD"][2]:
            yield from _document_orders(k)


def _linkage_orders(dataset: str) -> Iterator[Order]:
    """Regrouping for every stimulus averages each person with others every time: over many stimuli
    the person stays, and linkage finds them.
    """
    setting = (dataset, "k-same-select", "4")
    regrouped = rate(*setting, "linkage", "published")
    yield Order(
        f"davidjohn2022-regrouped-{dataset}",
        f"{dataset}: by linkage, k-same k = 4 with one grouping < regrouped for every stimulus",
        [rate(*setting, "linkage", "corrected"), regrouped],
        "not in the paper, whose attacker calls both safe",
        claimed=False,
    )
    yield Order(
        f"davidjohn2022-stronger-{dataset}",
        f"{dataset}: published k-same k = 4, the paper's RBF network < linkage",
        [rate(*setting, reading="published"), regrouped],
        "not in the paper, which has one attacker",
        claimed=False,
    )


def _document_orders(k: str) -> Iterator[Order]:
    """Yield expected orders of document types, at chance-level identification and epsilon 20."""
    ours = [document("marginals", k), document("k-same-select", k)]
    theirs = (("marginals-PD", f"k={k}"), ("k-same-select-sequence", f"k={k}"))
    yield Order(
        f"davidjohn2022-document-hidden-k{k}",
        "document type where nobody is recognised: exponential-DP (1) < marginals < k-same,"
        f" k = {k}",
        [document("exponential-dp", "1"), *ours],
        _published_documents(("exponential-DP", "epsilon=1"), *theirs),
    )
    yield Order(
        f"davidjohn2022-document-k{k}",
        f"document type: exponential-DP (20) < marginals < k-same < raw, k = {k}",
        [document("exponential-dp", "20"), *ours, document()],
        _published_documents(("exponential-DP", "epsilon=20"), *theirs, ("none", "")),
    )


def _published_rates(dataset: str, name: str, parameters: Sequence[str]) -> str:
    rows = {
        (f.mechanism, f.parameter): f.value
        for f in published_figures("davidjohn2022")
        if f.location == "Fig 1" and f.dataset == dataset
    }
    return " < ".join(rows[("none", "") if not p else (name, p)] for p in parameters)


def _published_documents(*wanted: tuple[str, str]) -> str:
    rows = {
        (f.mechanism, f.parameter): f.value
        for f in published_figures("davidjohn2022")
        if f.location == "Fig 2"
    }
    return " < ".join(rows[w] for w in wanted)
