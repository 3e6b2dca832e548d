"""From finished cells to results: one row per figure, in the order of the plan, so that the same
cells give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.attacks.result import (
    AttackResult,
    DealtNames,
    best_above,
    mean_interval,
    share_result,
)
from gazeveil.evaluation.plan import Cell, Content, StudyPlan
from gazeveil.evaluation.results import Examples, Results, frame_of, outcomes_of
from gazeveil.evaluation.study import BETWEEN, BOUND, DEALT, NONE, RATE, Study
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.utility.base import Utility

#: What guessing gives for an attack's further figures, where it is known.
_CHANCE = {"eer": 0.5, "d_prime": 0.0}

# Controls of attacks on pieces, with what they say.
_CONTROLS = {
    "flipped_rate": "scores turned round: far above guessing, the rate itself is an artefact",
    DEALT: "names dealt anew within windows: guessing",
}

Row = dict[str, object]


def collect(
    study: Study, plan: StudyPlan, cells: Mapping[Cell, Content], about: Mapping[str, object]
) -> Results:
    """Results of a study.

    Parameters
    ----------
    study : Study
        What was asked for.
    plan : StudyPlan
        Its cells, in order.
    cells : mapping of Cell to content
        What each says; a content with `failure`, or none at all, is a broken cell.
    about : mapping
        What to write beside the plan: the cohort, the code.
    """
    names = {
        NONE: (NONE, "", ""),
        **{str(m): (m.name, m.reading, _parameters(m.public_text)) for m in study.mechanisms},
    }
    # Results are sent on: they say what a file is called and not where it lies.
    shown = {NONE: NONE, **{str(m): m.public_text for m in study.mechanisms}}
    called = {str(u): u.public_text for u in study.utilities}
    bare = _without_folders(study)
    groups, failures = _grouped(plan, cells, shown, bare)
    rows: list[Row] = []
    outcomes: list[Row] = []
    for cell, contents in groups.items():
        mechanism, reading, parameters = names[cell.mechanism]
        shared: Row = {
            "mechanism": mechanism,
            "reading": reading,
            "parameters": parameters,
            "events": cell.events,
            "scenario": cell.scenario,
        }
        shared[cell.kind] = called.get(cell.what, cell.what)
        names_people = "credit" in contents[0][1]
        metric_rows = (_attack if names_people else _utility)(study, cell, contents)
        rows += [
            {
                "cohort": about["cohort_name"],
                **shared,
                **metric_row,
                "repetitions": len(contents),
                "seed": study.seed,
            }
            for metric_row in metric_rows
        ]
        parts = (_attack_parts if names_people else _utility_parts)(contents)
        outcomes += [{**shared, **p} for p in parts]
    done = {
        c.mechanism: cells[c]
        for c in plan.cells
        if c.kind == "about" and "failure" not in cells.get(c, {"failure": ""})
    }
    guarantees = tuple(
        {"mechanism": shown[text], **content["guarantee"]}
        for text, content in done.items()
        if "guarantee" in content
    )
    description = {
        **study.describe(),
        **{k: v for k, v in about.items() if k != "cohort_name"},
        "left_out": [bare(sentence) for sentence in plan.left_out],
        "repeats": plan.repeats,
        "independent": sorted({m.name for m in study.mechanisms if _independent(m, study.split)}),
        "failures": failures,
    }
    examples = {shown[text]: content for text, content in done.items()}
    return Results(
        frame_of(rows), outcomes_of(outcomes), guarantees, _examples(examples), description
    )


def _independent(mechanism: Mechanism[Any], split: str) -> bool:
    """Whether two parts of one release have noise of their own."""
    noise = getattr(mechanism, "independent", mechanism.noise_unit == "recording")
    return bool(noise) and split != "halves"


def _grouped(
    plan: StudyPlan,
    cells: Mapping[Cell, Content],
    shown: Mapping[str, str],
    bare: Callable[[str], str],
) -> tuple[dict[Cell, list[tuple[int, Content]]], list[Row]]:
    """Contents of the repetitions of each cell, and the cells that broke, with mechanisms as they
    are shown.
    """
    groups: dict[Cell, list[tuple[int, Content]]] = {}
    failures: list[Row] = []
    for cell in plan.cells:
        content = cells.get(cell, {"failure": "It was not computed."})
        if "failure" in content:
            public = replace(cell, mechanism=shown[cell.mechanism])
            failures.append({"cell": bare(str(public)), "sentence": bare(str(content["failure"]))})
        elif cell.kind != "about":
            first = Cell(cell.mechanism, cell.events, cell.scenario, cell.kind, cell.what, 0)
            groups.setdefault(first, []).append((cell.repetition, content))
    return groups, failures


def _without_folders(study: Study) -> Callable[[str], str]:
    """What writes a sentence without the folders of files that the study names."""
    parts: tuple[Mechanism[Any] | Utility, ...] = (*study.mechanisms, *study.utilities)
    named = (
        str(getattr(part, parameter))
        for part in parts
        for parameter in part.files
        if getattr(part, parameter)
    )
    files = sorted({text for text in named if PurePath(text).name != text}, key=len, reverse=True)

    def bare(sentence: str) -> str:
        for file in files:
            sentence = sentence.replace(file, PurePath(file).name)
        return sentence

    return bare


def _parameters(text: str) -> str:
    """`gaussian:sigma_deg=10,reading=corrected` without name and reading."""
    rest = text.partition(":")[2]
    return ",".join(p for p in rest.split(",") if not p.startswith("reading=")) if rest else ""


def _attack(study: Study, cell: Cell, contents: Sequence[tuple[int, Content]]) -> Iterable[Row]:
    shares = [float(np.mean(c["credit"])) for _, c in contents]
    chance = float(np.mean([1 / c["known"] for _, c in contents]))
    left_out = max(c["left_out"] for _, c in contents)
    notes = [
        contents[0][1]["protocol"],
        f"mean of {len(contents)} repetition{'s' if len(contents) > 1 else ''}",
    ]
    if left_out:
        notes.append(
            f"{left_out} {'people' if left_out > 1 else 'person'} left out for want of recordings"
            " on both sides"
        )
    if len(contents) < study.repetitions:
        notes.append(f"{study.repetitions - len(contents)} repetitions failed")
    n = round(float(np.mean([len(c["people"]) for _, c in contents])))

    def row(
        metric: str, values: Sequence[float], note: str, result: AttackResult | None = None
    ) -> Row:
        known = [v for v in values if math.isfinite(v)]
        return {
            "metric": metric,
            "value": float(np.mean(known)) if known else math.nan,
            "low": math.nan if result is None else result.low,
            "high": math.nan if result is None else result.high,
            "n": n,
            "chance": _CHANCE.get(metric, chance),
            "p_value": math.nan if result is None else result.p_value,
            "sd": spread(values),
            "better": "higher" if metric == "eer" else "lower",
            "note": "; ".join([*notes, note]),
        }

    pieces = bool(contents[0][1].get("pieces"))
    credit = _credit_of(contents)
    own = [np.nanmean(credit, axis=1)]
    p_value = best_above(own, chance) if pieces else _names(contents).p_value()
    rate = share_result(RATE, credit, chance, p_value=p_value)
    if contents[0][1].get("bound"):
        yield row(BOUND, shares, "interval over people", rate)
        return
    for metric in (RATE, "rank1"):
        yield row(metric, shares, "interval over people; p: names dealt anew", rate)
    for metric in ("matching_rate", "eer", "d_prime", "f1_macro"):
        values = [_float(c[metric]) for _, c in contents]
        failed = sum(not math.isfinite(v) for v in values)
        note = "sd: spread over repetitions"
        yield row(metric, values, f"{note}, {failed} could not be measured" if failed else note)
    for metric, note in _CONTROLS.items() if pieces else ():
        yield row(metric, [_float(c[metric]) for _, c in contents], note)


def _names(contents: Sequence[tuple[int, Content]]) -> DealtNames:
    """The answers of one attacker, with names to be dealt anew."""
    when = [r for r, c in contents for _ in c["people"]]
    answers = ([v for _, c in contents for v in c[n]] for n in ("people", "answers", "credit"))
    return DealtNames([0] * len(when), when, *answers)


def _credit_of(contents: Sequence[tuple[int, Content]]) -> Floats:
    """Credit of each person in each repetition, NaN where a person was not a probe."""
    people = sorted({p for _, c in contents for p in c["people"]})
    place = {p: i for i, p in enumerate(people)}
    credit = np.full((len(people), len(contents)), np.nan)
    for column, (_, c) in enumerate(contents):
        credit[[place[p] for p in c["people"]], column] = c["credit"]
    return credit


def _attack_parts(contents: Sequence[tuple[int, Content]]) -> Iterable[Row]:
    for repetition, c in contents:
        # Pieces of one person have one name, or none, that they are taken for most.
        named = c.get("answers") or [[a] if a else [] for a in c["answer"]]
        for person, credit, names, beaten in zip(
            c["people"], c["credit"], named, c["beaten_by"], strict=True
        ):
            yield {
                "metric": BOUND if c.get("bound") else RATE,
                "repetition": repetition,
                "part": person,
                "value": credit,
                "answer": names[0] if len(names) == 1 else None,
                "tied": BETWEEN.join(names) if len(names) > 1 else None,
                "beaten_by": beaten,
            }


def _utility(study: Study, cell: Cell, contents: Sequence[tuple[int, Content]]) -> Iterable[Row]:
    for metric in dict.fromkeys(r["metric"] for _, c in contents for r in c["results"]):
        results = [r for _, c in contents for r in c["results"] if r["metric"] == metric]
        values = [_float(r["value"]) for r in results]
        finite = [v for v in values if math.isfinite(v)]
        low, high = _over_parts(results, float(np.mean(finite)) if finite else math.nan)
        if math.isnan(low) and len(finite) == 1:  # an inference attack's own interval
            low, high = (_float(results[0].get(end)) for end in ("low", "high"))
        chances = [v for r in results if math.isfinite(v := _float(r["chance"]))]
        yield {
            "metric": metric,
            "value": float(np.mean(finite)) if finite else math.nan,
            "low": low,
            "high": high,
            "n": results[0].get("n", len(results[0]["parts"])),
            "chance": float(np.mean(chances)) if chances else math.nan,
            "sd": spread(values),
            "better": results[0]["better"],
            "note": results[0]["note"],
        }


def _over_parts(results: Sequence[Content], value: float) -> tuple[float, float]:
    """95 % interval of a utility's figure over its parts (people or stimuli), each the mean of its
    repetitions; NaN where there are fewer than two.
    """
    parts: dict[str, list[float]] = {}
    for result in results:
        for name, part in zip(result["names"], result["parts"], strict=False):
            if part is not None:
                parts.setdefault(name, []).append(float(part))
    own = np.array([np.mean(v) for v in parts.values()])
    if len(own) < 2 or not math.isfinite(value):
        return math.nan, math.nan
    low, high = mean_interval(own)
    # Where the figure is not the mean of its parts, their spread is still its own.
    shift = value - float(own.mean())
    return low + shift, high + shift


def _utility_parts(contents: Sequence[tuple[int, Content]]) -> Iterable[Row]:
    for repetition, c in contents:
        for r in c["results"]:
            for name, value in zip(r["names"], r["parts"], strict=False):
                yield {
                    "metric": r["metric"],
                    "repetition": repetition,
                    "part": name,
                    "value": value,
                }


def _examples(done: Mapping[str, Content]) -> Examples:
    first = next((c for c in done.values() if "title" in c), None)
    if first is None:
        return {}
    return {
        "traces": {text: c["trace"] for text, c in done.items() if "trace" in c},
        "maps": {text: c["map"] for text, c in done.items() if "map" in c},
        **{name: first[name] for name in ("title", "viewers", "space", "extent")},
    }


def _float(value: object) -> float:
    return math.nan if value is None else float(value)  # type: ignore[arg-type]


def spread(values: Sequence[float]) -> float:
    """Standard deviation over repetitions; NaN for fewer than two."""
    finite = np.array([v for v in values if math.isfinite(v)], dtype=np.float64)
    return float(finite.std(ddof=1)) if len(finite) > 1 else math.nan
