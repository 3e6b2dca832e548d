"""What the report's text and tables say: promises, all attackers, utilities, people, published
figures, failures, method. All of it is plain values; the template lays them out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from gazeveil.evaluation.report.findings import (
    Findings,
    Measure,
    ReleaseFindings,
    number_of,
    release_key,
)
from gazeveil.evaluation.report.labels import (
    attack_label,
    interval,
    metric_label,
    number_text,
    percent,
    points,
    probability,
)
from gazeveil.evaluation.report.pictures import confused
from gazeveil.evaluation.report.summary import FOOTNOTE, difference_verdict
from gazeveil.evaluation.study import CELL, ONE_RELEASE, RATE

#: At most so many releases side by side in the table of people.
_MOST_COLUMNS = 10

# How messages name a person.
_PERSON = re.compile(r"\bperson '[^']*'")

_KINDS = {"exact": "exact", "order-only": "order only", "impossible": "cannot be compared here"}

# Names of the plan that have a line of their own; the rest of it stands below as it is.
_SAID = (
    *("name", "title", "cohort", "seed", "repetitions", "times", "failures", "published"),
    *("tables", "guarantees", "protocol", "left_out", "repeats", "notes"),
)

Rows = list[tuple[str, ...]]


def cohort_text(findings: Findings) -> str:
    """Whose recordings these are."""
    about = findings.study.get("cohort")
    if not isinstance(about, Mapping):
        return str(about or "")
    counts = [f"{about[k]} {k}" for k in ("people", "stimuli", "recordings") if about.get(k)]
    return ", ".join(filter(None, [str(about.get("name", "")), *counts]))


def ticked(release: ReleaseFindings) -> bool:
    """Whether a promise is proved and no participant is re-identified."""
    about = release.guarantee
    proved = about.get("status") == "proved" and about.get("definition") != "none"
    return proved and not release.recognised


def kept(findings: Findings, release: ReleaseFindings) -> str:
    """The first figure of two utilities, with the raw one in brackets."""
    phrases: list[str] = []
    for utility, metric in findings.drawn_metrics:
        m = release.measure(utility, metric)
        if m is None or not math.isfinite(m.value) or len(phrases) == 2:
            continue
        raw = None if findings.baseline is None else findings.baseline.measure(utility, metric)
        compared = raw is not None and not release.baseline
        beside = f" (raw {number_text(raw.value)})" if raw is not None and compared else ""
        figure = "no fixation found" if m.without_fixations else number_text(m.value)
        phrases.append(f"{metric_label(utility, metric)} {figure}{beside}")
    return "; ".join(phrases)


def guess(findings: Findings) -> str:
    """What guessing gives, over all releases."""
    chances = {percent(r.worst.chance) for r in findings.attacked if r.worst is not None}
    return ", ".join(sorted(chances))


def strongest(findings: Findings) -> Rows:
    """The strongest attacker of each release beside the best of all and the papers' network."""
    rows: Rows = []
    for release in findings.attacked:
        shown, worst, rbfn = release.shown, release.worst, release.rbfn
        if shown is None or worst is None:
            continue
        safe = " (would say safe)" if release.missed_by_rbfn else ""
        rows.append(
            (
                _title(release),
                shown.people,
                f"{percent(shown.value)} ({interval(shown.low, shown.high) or 'no interval'})",
                probability(shown.p_value),
                percent(worst.value),
                f"{attack_label(worst.attack)}, {worst.scenario}",
                "-" if rbfn is None else rbfn.people + safe,
                _less_network(release.headline),
            )
        )
    return rows


def _title(release: ReleaseFindings) -> str:
    return f"{release.number}. {release.label}"


def _less_network(headline: Mapping[str, Any]) -> str:
    if headline.get("difference") is None:
        return "-"
    names = ("difference", "difference_low", "difference_high")
    value, low, high = (points(number_of(headline[name])) for name in names)
    return f"{value} ({low} to {high})"


def attackers(findings: Findings) -> dict[str, Any]:
    """Every attacker in every scenario, with what else was measured of them, and which are the
    strongest of their scenario.
    """
    others = _other_metrics(findings)
    names = sorted({m for metrics in others.values() for m in metrics})
    rows, best = [], []
    for release in findings.attacked:
        for rate in sorted(release.rates, key=lambda r: (r.scenario, -r.value, r.attack)):
            more = others.get((*release.key, rate.scenario, rate.attack), {})
            rows.append(
                (
                    _title(release),
                    rate.scenario,
                    attack_label(rate.attack),
                    rate.people,
                    f"{percent(rate.value)} ({interval(rate.low, rate.high) or '-'})",
                    probability(rate.p_value),
                    *(number_text(more.get(m, math.nan)) for m in names),
                )
            )
            same = (r.value for r in release.rates if r.scenario == rate.scenario)
            best.append(rate.value == max(same))
    return {"metrics": [m.replace("_", " ") for m in names], "rows": rows, "best": best}


def _other_metrics(findings: Findings) -> dict[tuple[str, ...], dict[str, float]]:
    """Equal error rate, d prime and whatever else was measured of an attack."""
    frame = findings.results.frame.filter(
        pl.col("attack").is_not_null() & ~pl.col("metric").is_in([RATE, "rank1"])
    )
    metrics: dict[tuple[str, ...], dict[str, float]] = {}
    for row in frame.iter_rows(named=True):
        key = (*(str(row[c] or "") for c in CELL), str(row["attack"]))
        metrics.setdefault(key, {})[str(row["metric"])] = number_of(row["value"])
    return metrics


def adaptive(findings: Findings) -> Rows:
    """Every retrained or denoising attacker beside its frozen self."""
    return [
        (
            _title(d.release),
            d.scenario,
            attack_label(d.attack),
            percent(d.rate),
            percent(d.frozen_rate),
            points(d.difference)
            + (f" ({points(d.low)} to {points(d.high)})" if math.isfinite(d.low) else ""),
            difference_verdict(d),
        )
        for d in findings.differences
    ]


def guarantees(findings: Findings) -> list[dict[str, Any]]:
    """The guarantee of each mechanism in the order of the releases, with their numbers."""
    numbers: dict[str, list[str]] = {}
    found = {r.text for r in findings.protected if r.recognised}
    for r in findings.protected:
        numbers.setdefault(r.text, []).append(str(r.number))
    order = {text: place for place, text in enumerate(numbers)}
    listed: list[dict[str, Any]] = [
        {
            "mechanism": g.get("mechanism", ""),
            "plain": g.get("plain", ""),
            "sentence": g.get("sentence", ""),
            "status": "none" if g.get("definition") == "none" else g.get("status", ""),
            "numbers": ", ".join(numbers.get(g.get("mechanism", ""), ())),
            "recognised": g.get("mechanism", "") in found,
        }
        for g in findings.results.guarantees
    ]
    return sorted(listed, key=lambda g: order.get(g["mechanism"], len(order)))


def inferences(findings: Findings) -> Rows:
    """Results of inference attacks: attributes, links between records, positions."""
    frame = findings.results.frame.filter(pl.col("attack").is_not_null())
    naming = frame.filter(pl.col("metric") == RATE)["attack"].unique().to_list()
    titles = {r.key: _title(r) for r in findings.releases}
    return [
        (
            titles[release_key(row)],
            row["scenario"],
            row["attack"],
            row["metric"].replace("_", " "),
            _between(row["value"], number_of(row["low"]), number_of(row["high"])),
            number_text(number_of(row["chance"])),
        )
        for row in frame.filter(~pl.col("attack").is_in(naming)).iter_rows(named=True)
        if row["value"] is not None
    ]


def _between(value: float, low: float, high: float) -> str:
    """A figure, with its interval where it has one."""
    known = math.isfinite(low) and math.isfinite(high)
    return number_text(value) + (f" ({number_text(low)} to {number_text(high)})" if known else "")


def utilities(findings: Findings) -> dict[str, Any]:
    """Every utility figure of every release."""
    measures = [m for r in findings.releases for m in r.measures]
    better = {(m.utility, m.metric): m.better for m in measures}
    chance = {(m.utility, m.metric): m.chance for m in measures if math.isfinite(m.chance)}
    titles = [
        f"{metric_label(*name)} ({better[name]} is better"
        + (f", chance {number_text(chance[name])})" if name in chance else ")")
        for name in findings.metrics
    ]
    rows = [
        (_title(r), *(_measure(r.measure(*name)) for name in findings.metrics))
        for r in findings.releases
        if r.measures
    ]
    return {"head": ["release", *titles], "rows": rows}


def _measure(m: Measure | None) -> str:
    if m is None or not math.isfinite(m.value):
        return "-"
    if m.without_fixations:
        return f"no fixation found; an even map has {number_text(m.value)}"
    return _between(m.value, m.low, m.high)


def persons(findings: Findings, with_names: bool = False) -> dict[str, Any]:
    """Who is recognised how often, person by person, and for whom else they are taken; by numbers
    where names are not asked for.
    """
    shown = ((r, confused(findings, r)) for r in findings.attacked[:_MOST_COLUMNS])
    matrices = [(r, table) for r, table in shown if table is not None]
    people = sorted({p for _, (names, _) in matrices for p in names})
    called = {p: p if with_names else f"person {i}" for i, p in enumerate(people, 1)}
    rows = []
    for i, person in enumerate(people, 1):
        figures = (_person(person, names, shares, called) for _, (names, shares) in matrices)
        rows.append((f"{i}. {person}" if with_names else f"{i}", *figures))
    return {"head": ["person", *(_title(r) for r, _ in matrices)], "rows": rows}


def _person(person: str, names: tuple[str, ...], shares: Any, called: Mapping[str, str]) -> str:
    own = names.index(person) if person in names else None
    if own is None or not shares[own].any():
        return "-"
    right = float(shares[own, own])
    other = int(np.argmax(np.where(np.arange(len(names)) == own, -1, shares[own])))
    return percent(right) + (f" ({called[names[other]]})" if shares[own, other] > right else "")


def published(findings: Findings) -> dict[str, Any]:
    """Figures of the papers beside ours, with the kind of comparison in words; empty where a study
    has none.
    """
    listed = findings.study.get("published")
    rows = [r for r in listed if isinstance(r, Mapping)] if isinstance(listed, list | tuple) else []
    if not rows:
        return {}
    here = [
        r
        for r in rows
        if r.get("ours") is not None or "not in this run" not in (r.get("verdict"), r.get("reason"))
    ]
    absent = len(rows) - len(here)
    verdicts = any(r.get("verdict") or r.get("reason") for r in here)
    cells = [
        (
            _about(r),
            _figure(r.get("published")),
            _figure(r.get("ours"), "not measured")
            + (
                f" ({_figure(r.get('low'))} to {_figure(r.get('high'))})"
                if r.get("low") is not None and r.get("high") is not None
                else ""
            ),
            _KINDS.get(str(r.get("kind", "")), str(r.get("kind", ""))),
            *((_verdict(r),) if verdicts else ()),
        )
        for r in here
    ]
    counted = {k: sum(c[3] == w for c in cells) for k, w in _KINDS.items()}
    intro = (
        f"{len(cells)} published figures: {counted['exact']} can be compared number by number,"
        f" {counted['order-only']} are shown beside or ordered (other people or simulated ones),"
        f" {counted['impossible']} cannot be compared here."
    )
    if absent:
        intro += f" {absent} more {'is' if absent == 1 else 'are'} not part of this run."
    head = ("figure", "published", "ours", "comparison", *(("verdict",) if verdicts else ()))
    return {"intro": intro, "head": head, "rows": cells}


def _about(row: Mapping[str, object]) -> str:
    """What a published figure is of, with all that has no column of its own."""
    known = ("id", "what", "published", "ours", "low", "high", "kind", "verdict", "reason")
    more = "; ".join(f"{k}: {v}" for k, v in row.items() if k not in known and v not in (None, ""))
    return " ".join(filter(None, (str(row.get("what", "")), f"[{more}]" if more else "")))


def _verdict(row: Mapping[str, object]) -> str:
    """The verdict on a figure with its reason."""
    word, reason = str(row.get("verdict") or ""), str(row.get("reason") or "")
    return ": ".join(filter(None, (word or ("not graded" if reason else ""), reason)))


def _figure(value: object, missing: str = "-") -> str:
    if value is None:
        return missing
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number_text(float(str(value))) if number else str(value)


def failures(findings: Findings, with_names: bool = False) -> Rows:
    """Cells that could not be computed, with the reason; names of people in it are left out where
    they are not asked for.
    """
    cells: dict[str, list[str]] = {}
    for f in findings.results.failures:
        sentence = _nameless(str(f.get("sentence", "")), with_names)
        cells.setdefault(sentence, []).append(_text_of(f.get("cell", "")))
    # The repetitions of one figure mostly fail for one reason.
    return [
        (names[0] + (f", and {len(names) - 1} more" if len(names) > 1 else ""), sentence)
        for sentence, names in cells.items()
    ]


def _nameless(text: str, with_names: bool) -> str:
    return text if with_names else _PERSON.sub("person", text)


def _text_of(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {v}" for k, v in value.items() if v not in (None, ""))
    return ", ".join(str(v) for v in value if v) if isinstance(value, list | tuple) else str(value)


def method(findings: Findings, with_names: bool = False) -> dict[str, Any]:
    """Protocol, repetitions, seed, chance, scenarios, and what to read with care; people who are
    named only where that is asked for.
    """
    study = findings.study
    left_out, notes = study.get("left_out"), study.get("notes")
    plan = {k: v for k, v in study.items() if k not in _SAID and v not in (None, "", [], {})}
    if not with_names and not isinstance(plan.get("people"), int):
        plan.pop("people", None)
    scenarios = dict.fromkeys(r.scenario for x in findings.attacked for r in x.rates)
    care = [FOOTNOTE]
    if ONE_RELEASE in scenarios:
        care.append(
            f"The scenario {ONE_RELEASE} trains and tests on two parts of one release. Slow noise"
            " is common to both and can itself identify people, so it counts as the worst case"
            " only where no other scenario was run."
        )
    care += [str(n) for n in (notes if isinstance(notes, list | tuple) else ())]
    gone = left_out if isinstance(left_out, list | tuple) else ()
    return {
        "protocol": _protocol(findings),
        "scenarios": list(scenarios),
        "notes": [_nameless(note, with_names) for note in care],
        "left_out": [_nameless(str(reason), with_names) for reason in gone],
        "plan": {
            k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False, default=str)
            for k, v in plan.items()
        },
        "times": _text_of(study.get("times") or ""),
    }


def _protocol(findings: Findings) -> list[tuple[str, object]]:
    """How it was measured, as names and values."""
    study, frame = findings.study, findings.results.frame
    lines: list[tuple[str, object]] = [
        ("study", study.get("title") or study.get("name") or "without a name")
    ]
    cohorts = [c for c in frame["cohort"].unique().to_list() if c]
    if study.get("cohort") or cohorts:
        lines.append(("recordings", cohort_text(findings) or ", ".join(sorted(cohorts))))
    if findings.attacked:
        people = {r.worst.n for r in findings.attacked if r.worst is not None}
        chance = f"{guess(findings)} (one guess among the people the attacker knows)"
        lines += [("people", ", ".join(str(n) for n in sorted(people))), ("chance", chance)]
    repetitions = sorted({n for n in frame["repetitions"].to_list() if n is not None})
    usual = (
        "people are learned from some stimuli and named on others; one decision per person and"
        " repetition"
    )
    return [
        *lines,
        ("repetitions", ", ".join(map(str, repetitions)) or study.get("repetitions", "unknown")),
        ("seed", study.get("seed", "none")),
        ("protocol", _text_of(study["protocol"]) if study.get("protocol") else usual),
    ]
