"""David-John et al. 2023 and its supplement: synthetic samples, Kaleido, and demographics with
gaze.

Tables 1 and 2 of the supplement: ages and genders of 31 people and the ranges that hide them in
groups of k. Fig. 1: an attacker who filters by age and gender first and then
recognises the gaze. Tables 3 and 4, Figs 4 and 8: people recognised by a
network trained on protected gaze, activities recognised and gaze predicted, for k-same-synth,
event-synth-PD and Kaleido on EHTask and DGaze.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from gazeveil.evaluation.study import RATE
from gazeveil.papers.figures import (
    BESIDE,
    Asked,
    CellQuery,
    Formula,
    Lookup,
    NotComparable,
    Order,
    PublishedFigure,
    published_figures,
)
from gazeveil.papers.protocols import (
    OUR_NETWORK,
    PAPERS_NETWORK,
    PAPERS_PREDICTOR,
    PAPERS_RECOGNISER,
)
from gazeveil.privacy.demographics import PUBLISHED, Demographics

SUPPLEMENT = ("Supplement sec 1", "Supplement Table 2", "Supplement counted from Tables 1 and 2")

LOCATIONS: Mapping[str, Sequence[str]] = {
    "groups": SUPPLEMENT,
    "demographic": (*SUPPLEMENT, "Fig 1"),
    "bars": ("Table 2", "Table 3", "Table 4", "5.2", "5.3", "Fig 4", "Fig 8", "Supplement sec 4"),
}

UNPRINTED: tuple[PublishedFigure, ...] = ()

#: Age and gender by dataset and subject, facts of Table 1 (whose heads of the two columns are
#: swapped).
PEOPLE: Mapping[str, Sequence[tuple[int, str]]] = {
    "ET-DK2": (
        *(
            (43, "M"),
            (27, "F"),
            (29, "M"),
            (32, "M"),
            (28, "F"),
            (26, "M"),
            (23, "F"),
            (30, "M"),
            (28, "F"),
        ),
        *(
            (26, "M"),
            (52, "M"),
            (26, "M"),
            (35, "M"),
            (50, "M"),
            (33, "M"),
            (31, "M"),
            (32, "M"),
            (36, "M"),
        ),
    ),
    "360_em": (
        *((38, "M"), (29, "M"), (23, "F"), (31, "F"), (27, "M"), (31, "M"), (23, "F")),
        *((24, "M"), (23, "M"), (27, "M"), (23, "M"), (23, "M"), (32, "M")),
    ),
}

#: The two sets together, as the paper joins them.
TOGETHER = "ET-DK2+360_em"

#: Group sizes for which the supplement gives ranges.
KS = (4, 6, 8, 15)

#: The paper's attacker; in its studies fixations weigh 0.4, saccades 0.6.
ATTACK = PAPERS_NETWORK

#: The paper's own event-synth-PD: its network, summed histograms of speeds, events by I-S5T.
PAPERS_SYNTHESIS = {"generator": "cvae", "probability": "histogram", "detector": "is5t"}

_OTHER_MODEL = "the paper's network is another model than ours"


def table_1() -> dict[str, dict[str, object]]:
    """The people of Table 1 by name: `ET-DK2 p1`..."""
    return {
        f"{d} p{i + 1}": {"age": age, "gender": gender}
        for d, rows in PEOPLE.items()
        for i, (age, gender) in enumerate(rows)
    }


@cache
def group_sizes(k: int) -> tuple[int, ...]:
    """Sizes of the groups that the supplement's ranges make of Table 1, in the order of Table 2."""
    released = Demographics(k, reading="published").release(table_1()).data
    counted = Counter((a["gender"], a["age"]) for a in released.values())
    return tuple(
        counted["any" if g is None else g, f"{low}-{high}"] for g, low, high in PUBLISHED[k]
    )


def rate(
    dataset: str,
    mechanism: str = "none",
    parameters: Mapping[str, str] | None = None,
    attack: str = ATTACK,
    reading: str = "",
) -> CellQuery:
    """The cell of an identification rate in percent."""
    scenario = "raw/raw" if mechanism == "none" else "private/raw"
    reading = reading or BESIDE.get(mechanism, "")
    return CellQuery(
        dataset,
        RATE,
        mechanism,
        dict(parameters or {}),
        scenario,
        reading=reading,
        attack=attack,
        scale=100,
        tolerance="identification",
    )


def utility(
    dataset: str,
    mechanism: str = "none",
    parameters: Mapping[str, str] | None = None,
    reading: str = "",
    lookup: Lookup | None = None,
) -> CellQuery:
    """The cell of the dataset's utility: activity accuracy in percent for EHTask, prediction error
    in degrees for DGaze; of the paper's network and on the dataset's arrays where `lookup` has
    them.
    """
    arrays = lookup is not None and lookup.real(f"{dataset}, arrays")
    label, rows = (f"{dataset}, arrays", "-of-rows") if arrays else (dataset, "")
    activity = dataset == "EHTask"
    ours = CellQuery(
        label,
        "accuracy" if activity else "error_deg",
        mechanism,
        dict(parameters or {}),
        "raw/raw" if mechanism == "none" else "private/raw",
        reading=reading or BESIDE.get(mechanism, ""),
        utility=("activity" if activity else "prediction") + rows,
        scale=100 if activity else 1,
        other_model=_OTHER_MODEL,
    )
    if lookup is None:
        return ours
    network = replace(
        ours,
        utility=f"{ours.utility}:{PAPERS_RECOGNISER if activity else PAPERS_PREDICTOR}",
        other_model="",
        tolerance="accuracy" if activity else "prediction",
    )
    return lookup.or_else(network, ours)


#: Who looks at the gaze of a demographic group, by who attacks elsewhere.
_BASES = {
    PAPERS_NETWORK: "base=rbfn,reading=published",
    OUR_NETWORK: "base=rbfn,reading=corrected",
    "linkage": "base=linkage",
}


def success(k: int, private: bool, attacker: str = ATTACK) -> CellQuery:
    """The cell of the demographic attack's success in percent."""
    label = f"{TOGETHER}, k = {k}"
    parameters = {"k": str(k)} if private else {}
    name, scenario = ("k-same-select", "private/raw") if private else ("none", "raw/raw")
    return CellQuery(
        label,
        RATE,
        name,
        parameters,
        scenario,
        attack=f"demographic:k={k},{_BASES[attacker]}",
        scale=100,
        tolerance="identification",
    )


def ask(figure: PublishedFigure, lookup: Lookup) -> Asked:
    """Where the answer to one of the paper's figures stands."""
    if figure.metric == "runtime":
        return NotComparable("time on the authors' machine")
    if figure.metric == "validation loss":
        return NotComparable("the loss of the authors' network on their recordings")
    if figure.metric == "individuals":
        return Formula(len(table_1()), 0, "the text says 24, Table 1 lists 31")
    if figure.metric == "groups":
        return Formula(len(group_sizes(int(figure.parameters["k"]))), 0)
    if figure.metric == "group sizes":
        return Formula("/".join(str(n) for n in group_sizes(int(figure.parameters["k"]))))
    if figure.metric == "attack success":
        return success(int(figure.parameters["k"]), "k-same" in figure.mechanism)
    if not figure.parameters and figure.mechanism != "none":
        return NotComparable("a bound on several figures, which stand in their own rows")
    name, parameters = ours(figure)
    return (
        rate(figure.dataset, name, parameters)
        if figure.metric == "identification rate"
        else utility(figure.dataset, name, parameters, lookup=lookup)
    )


def ours(figure: PublishedFigure) -> tuple[str, dict[str, str]]:
    """Our name of a mechanism and its parameters."""
    parameters = figure.parameters
    if figure.mechanism == "none":
        return "none", {}
    if figure.mechanism == "kaleido":
        return "kaleido", {
            "epsilon": parameters["epsilon"],
            "w": parameters["w"],
            "r_deg": parameters["r"].removesuffix("deg"),
        }
    own = PAPERS_SYNTHESIS if figure.mechanism == "event-synth-PD" else {}
    return figure.mechanism.lower(), {**parameters, **own}


def orders(lookup: Lookup, figure: str) -> Iterator[Order]:
    """What the papers claim."""
    if figure in ("", "demographic"):
        for k in KS:
            theirs = {
                ("k-same" in f.mechanism): f.value
                for f in published_figures("davidjohn2023")
                if f.metric == "attack success" and f.parameters["k"] == str(k)
            }
            yield Order(
                f"davidjohn2023-demographic-{k}",
                f"demographics and k-same features < demographics alone, k = {k}",
                [success(k, True), success(k, False)],
                f"{theirs[True]} < {theirs[False]}",
            )
    if figure in ("", "bars"):
        yield from _kaleido_orders(lookup)
        yield Order(
            "davidjohn2023-synth-prediction",
            "DGaze, error: k-same-synth k = 2 < event-synth-PD (2, 2.0)",
            [
                utility("DGaze", "k-same-synth", {"k": "2"}, lookup=lookup),
                utility(
                    "DGaze",
                    "event-synth-pd",
                    {"k": "2", "gamma": "2.0", **PAPERS_SYNTHESIS},
                    lookup=lookup,
                ),
            ],
            "5.4 < 6.7",
        )
        yield Order(
            "davidjohn2023-synth-activity",
            "EHTask, activity: k-same-synth k = 8 < event-synth-PD (4, 2.0)",
            [
                utility("EHTask", "k-same-synth", {"k": "8"}, lookup=lookup),
                utility(
                    "EHTask",
                    "event-synth-pd",
                    {"k": "4", "gamma": "2.0", **PAPERS_SYNTHESIS},
                    lookup=lookup,
                ),
            ],
            "29.1 < 70.0",
        )


def _kaleido_orders(lookup: Lookup) -> Iterator[Order]:
    """Kaleido at its strongest and at its weakest setting against raw gaze."""
    strong = {"epsilon": "1", "w": "200", "r_deg": "10"}
    weak = {"epsilon": "10", "w": "50", "r_deg": "2"}
    for dataset in ("EHTask", "DGaze"):
        yield Order(
            f"davidjohn2023-kaleido-{dataset}",
            f"{dataset}, people recognised: Kaleido (1, 200, 10 deg) < raw",
            [rate(dataset, "kaleido", strong), rate(dataset)],
            "6.0 < 28.0; DGaze at chance",
        )
        if dataset == "DGaze":
            yield Order(
                "davidjohn2023-prediction",
                "DGaze, error: raw < Kaleido (10, 50, 2 deg) < Kaleido (1, 200, 10 deg)",
                [
                    utility(dataset, lookup=lookup),
                    *(utility(dataset, "kaleido", s, lookup=lookup) for s in (weak, strong)),
                ],
                "4.3 < 5.0 < 9.3",
            )
        else:
            yield Order(
                "davidjohn2023-activity",
                "EHTask, activity: Kaleido (1, 200, 10 deg) < raw",
                [
                    utility(dataset, "kaleido", strong, lookup=lookup),
                    utility(dataset, lookup=lookup),
                ],
                "73.3 < 82.8",
            )
