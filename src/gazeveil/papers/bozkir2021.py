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
from dataclasses import replace
from fractions import Fraction

from gazeveil.features.definitions import WINDOW
from gazeveil.papers.figures import (
    Asked,
    CellQuery,
    Formula,
    Identity,
    Lookup,
    NotComparable,
    Order,
    PublishedFigure,
    unprinted,
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
        *(f"Fig {number}" for number in (7, 8, 9)),
    ),
    "mpiiprivaceye": (
        *("Table 4", "Table 5", "Table 9", "Classification results", "1/17"),
        *(f"Fig {number}" for number in (10, 11, 12)),
    ),
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

#: What Figs 7 to 12 show.
UNPRINTED = tuple(
    unprinted("bozkir2021", f"Fig {n}", dataset, "1/|NMSE|", method, f"epsilon={total}", model="")
    for n, (dataset, methods) in UTILITY_FIGURES.items()
    for method in methods
    for total in BUDGETS
)

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
    return CellQuery(
        dataset,
        "accuracy",
        name,
        {**parameters, **({"epsilon": BUDGETS[total]} if method else {})},
        scenario or ("release/release" if method else "raw/raw"),
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
    if figure.metric == "1/|NMSE|":
        error = nmse(figure.dataset, figure.mechanism, figure.parameters["epsilon"])
        return replace(error, inverse=True)
    if figure.model == "chance":
        people = 20 if figure.dataset == "MPIIDPEye" else 17
        guess = 1 / 3 if figure.metric.startswith("document") else 1 / people
        return Formula(guess, 4 if "88" in figure.value else 2)
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
