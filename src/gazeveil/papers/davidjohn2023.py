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
from pathlib import Path

from gazeveil.evaluation.columns import RATE
from gazeveil.evaluation.results import Results
from gazeveil.papers import drawing
from gazeveil.papers.comparison.lookup import Lookup
from gazeveil.papers.figure import (
    BESIDE,
    Asked,
    CellQuery,
    Formula,
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

#: Ours as printed otherwise: a closed form in place of the network, latent normals, I-VT.
OUR_SYNTHESIS = {"generator": "ppca", "probability": "latent", "detector": "ivt"}

#: What the papers do not have and our bars do: event-synth-PD without the network, and the
#: corrected readings.
FURTHER: Sequence[tuple[str, Mapping[str, str], str]] = (
    ("event-synth-pd", {"k": "2", "gamma": "2.0", **OUR_SYNTHESIS}, "published"),
    ("event-synth-pd", {"k": "4", "gamma": "2.0", **OUR_SYNTHESIS}, "published"),
    ("k-same-synth", {"k": "4", "match": "index"}, "corrected"),
    ("k-same-synth", {"k": "4", "match": "crowd"}, "corrected"),
    ("event-synth-pd", {"k": "4", "gamma": "2.0"}, "corrected"),
)

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


def draw(results: Results, folder: str | Path) -> list[Path]:
    """The papers' tables and bars, as far as the study holds them."""
    lookup = Lookup(results)
    figure = lookup.figure
    paths: list[Path] = []
    if figure in ("", "groups", "demographic"):
        paths.append(_groups(folder))
    if figure in ("", "demographic"):
        paths.append(_demographic(lookup, folder))
    if figure in ("", "bars"):
        paths += [_bars(lookup, folder, d) for d in ("EHTask", "DGaze") if d in lookup.cohorts]
    return paths


def _groups(folder: str | Path) -> Path:
    rows = []
    for k in KS:
        ranges = ", ".join(
            f"({'any' if g is None else g}, {low}-{high})" for g, low, high in PUBLISHED[k]
        )
        best = Counter(
            (a["gender"], a["age"]) for a in Demographics(k).release(table_1()).data.values()
        )
        sizes = "/".join(map(str, group_sizes(k)))
        rows.append((str(k), ranges, sizes, f"{len(best)} groups, smallest {min(best.values())}"))
    title = (
        "David-John et al. 2023, supplement Table 2: ranges of gender and age, and how many of the"
        " 31 people of Table 1 each holds"
    )
    header = ("k", "published ranges", "sizes", "most groups there can be")
    return drawing.table(folder, "davidjohn2023-table2", title, header, rows)


def _demographic(lookup: Lookup, folder: str | Path) -> Path:
    whole = lookup.titled("David-John et al. 2023 Fig. 1: people found by age, gender and gaze")
    drawn, panels = drawing.picture(3, 1, 13, 4, whole)
    groups = [f"k = {k}" for k in KS]
    for panel, (attacker, title) in zip(panels, drawing.ATTACKERS.items(), strict=True):
        series = []
        for label, private in (("demographics", False), ("demographics and features", True)):
            theirs = {
                f"k = {f.parameters['k']}": f.number
                for f in published_figures("davidjohn2023")
                if f.metric == "attack success"
                and ("k-same" in f.mechanism) == private
                and attacker == ATTACK
            }
            estimates = {f"k = {k}": lookup.find(success(k, private, attacker)) for k in KS}
            series.append(drawing.Curve(f"{label} k-anonymous", estimates, theirs))
        drawing.bars(panel, groups, series, "people found, %", "interval")
        for g, k in enumerate(KS):
            ends, once = [g - 0.42, g + 0.42], "1/k" if g == 0 else None
            panel.plot(ends, [100 / k] * 2, "-", color=drawing.ink(-1), lw=1, label=once)
        panel.set_ylim(0, 105)
        panel.set_title(title, fontsize=9)
    drawing.key(drawn, panels)
    return drawing.save(drawn, folder, "davidjohn2023-demographic")


def _bars(lookup: Lookup, folder: str | Path, dataset: str) -> Path:
    """People recognised and utility of every setting, ours beside the published bar."""
    table = {"EHTask": "Table 3", "DGaze": "Table 4"}[dataset]
    settings = [
        f
        for f in published_figures("davidjohn2023")
        if f.location == table and f.metric == "identification rate"
    ]
    metric = {"EHTask": "activity accuracy", "DGaze": "gaze prediction error"}[dataset]
    # The text's values go before those read from bars.
    theirs = {
        (f.mechanism, "" if f.mechanism == "none" else f.parameter): f.number
        for f in sorted(
            published_figures("davidjohn2023"), key=lambda f: f.origin != "figure-pixel"
        )
        if (f.dataset, f.metric) == (dataset, metric)
    }
    title = (
        f"David-John et al. 2023: {dataset}, protected gaze to train on, raw gaze to be asked about"
    )
    height_in = 0.27 * (len(settings) + len(FURTHER)) + 1.6
    drawn, panels = drawing.picture(2, 1, 11, height_in, lookup.titled(title))
    names = [
        f.mechanism if f.mechanism == "none" else f"{f.mechanism}, {f.parameter}" for f in settings
    ]
    names += [
        f"{name} {reading}, " + "; ".join(f"{k}={v}" for k, v in setting.items())
        for name, setting, reading in FURTHER
    ]
    asked = [(*ours(f), "") for f in settings] + list(FURTHER)
    rates = [
        lookup.find(rate(dataset, name, setting, reading=reading))
        for name, setting, reading in asked
    ]
    utilities = [
        lookup.find(utility(dataset, name, setting, reading, lookup))
        for name, setting, reading in asked
    ]
    published_utilities = [
        theirs.get((f.mechanism, "" if f.mechanism == "none" else f.parameter)) for f in settings
    ]
    none = [None] * len(FURTHER)
    published = [*(f.number for f in settings), *none]
    drawing.sideways(panels[0], names, rates, published, "people recognised, %")
    unit = f"{metric}, {'%' if dataset == 'EHTask' else 'degrees'}"
    drawing.sideways(panels[1], names, utilities, [*published_utilities, *none], unit)
    panels[1].set_yticklabels([])
    drawing.key(drawn, panels)
    return drawing.save(drawn, folder, f"davidjohn2023-{dataset.lower()}")
