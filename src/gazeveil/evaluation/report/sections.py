"""Sections of the report that are text and tables: promises, all attackers, utilities, people,
published figures, failures, method.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from gazeveil.evaluation.columns import CELL, ONE_RELEASE, RATE
from gazeveil.evaluation.report.canvas import Markup, badge, join, table, tag
from gazeveil.evaluation.report.findings import Findings, Measure, Rate, release_key
from gazeveil.evaluation.report.labels import (
    SCENARIOS,
    attack_label,
    interval,
    metric_label,
    number_text,
    percent,
    probability,
)
from gazeveil.evaluation.report.pictures import confused
from gazeveil.evaluation.report.summary import FOOTNOTE

#: A longer table starts folded.
_LONG = 40

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


def cohort_text(findings: Findings) -> str:
    """Whose recordings these are."""
    about = findings.study.get("cohort")
    if not isinstance(about, Mapping):
        return str(about or "")
    counts = [f"{about[k]} {k}" for k in ("people", "stimuli", "recordings") if about.get(k)]
    return ", ".join(filter(None, [str(about.get("name", "")), *counts]))


def guarantees(findings: Findings) -> Markup:
    """The guarantee of each mechanism, with its status in words."""
    blocks = []
    numbers: dict[str, list[str]] = {}
    found = {r.text for r in findings.protected if r.recognised}
    for r in findings.protected:
        numbers.setdefault(r.text, []).append(str(r.number))
    order = list(numbers)
    for g in sorted(
        findings.results.guarantees,
        key=lambda g: (
            order.index(g.get("mechanism", "")) if g.get("mechanism", "") in numbers else len(order)
        ),
    ):
        text = g.get("mechanism", "")
        status = "none" if g.get("definition") == "none" else g.get("status", "")
        of = f" (release {', '.join(numbers[text])})" if text in numbers else ""
        blocks.append(
            join(
                [
                    tag("h3", tag("code", text), of, " ", badge(status, text in found)),
                    tag("p", g.get("plain", "")),
                    tag(
                        "details",
                        tag("summary", "Exact statement"),
                        tag("blockquote", tag("p", g.get("sentence", ""))),
                    ),
                ]
            )
        )
    if not blocks:
        return Markup("")
    intro = (
        "A promise is one of four things: proved (there is a proof), claimed (somebody says so),"
        " empirical (it rests on experiments) or refuted (shown to be false). A proof bounds every"
        " attacker, also those nobody has thought of, in what it speaks of (often a sample or a"
        " window, not a person); an attack that fails proves nothing. What was measured stands"
        " apart: a proof has no tick here where people are recognised."
    )
    note = (
        "These are the promises of a release whose noise comes from the operating system. The study"
        " itself made its releases with a seed, so that it can be repeated: such releases are never"
        " to be published."
    )
    return join(
        [tag("p", intro), tag("p", note) if findings.study.get("seed") is not None else "", *blocks]
    )


def attackers(findings: Findings) -> Markup:
    """Every attacker in every scenario, the strongest of each cell in bold."""
    others = _other_metrics(findings)
    names = sorted({m for metrics in others.values() for m in metrics})
    rows, marks = [], []
    for release in findings.attacked:
        best = {
            s: max(r.value for r in release.rates if r.scenario == s)
            for s in {r.scenario for r in release.rates}
        }
        for rate in sorted(release.rates, key=lambda r: (r.scenario, -r.value, r.attack)):
            more = others.get((*release.key, rate.scenario, rate.attack), {})
            rows.append(
                (
                    f"{release.number}. {release.label}",
                    rate.scenario,
                    attack_label(rate.attack),
                    *_rate(rate),
                    *(number_text(more.get(m, math.nan)) for m in names),
                )
            )
            marks.append(rate.value == best[rate.scenario])
    head = (
        "release",
        "scenario",
        "attacker",
        "recognised",
        "rate (95 %)",
        "p against chance",
        *(m.replace("_", " ") for m in names),
    )
    caption = "Every attacker in every scenario; bold: the strongest of its scenario."
    return folded(
        "Every attacker in every scenario", table(caption, head, rows, marks), len(rows), long=True
    )


def _rate(rate: Rate) -> tuple[str, str, str]:
    return (
        rate.people,
        f"{percent(rate.value)} ({interval(rate.low, rate.high) or '-'})",
        probability(rate.p_value),
    )


def _other_metrics(findings: Findings) -> dict[tuple[str, ...], dict[str, float]]:
    """Equal error rate, d prime and whatever else was measured of an attack."""
    frame = findings.results.frame.filter(
        pl.col("attack").is_not_null() & ~pl.col("metric").is_in(["identification_rate", "rank1"])
    )
    metrics: dict[tuple[str, ...], dict[str, float]] = {}
    for row in frame.iter_rows(named=True):
        key = (*(str(row[c] or "") for c in CELL), str(row["attack"]))
        metrics.setdefault(key, {})[str(row["metric"])] = (
            math.nan if row["value"] is None else float(row["value"])
        )
    return metrics


def inferences(findings: Findings) -> Markup:
    """Results of inference attacks: attributes, links between records, positions."""
    frame = findings.results.frame.filter(pl.col("attack").is_not_null())
    naming = frame.filter(pl.col("metric") == RATE)["attack"].unique().to_list()
    labels = {r.key: f"{r.number}. {r.label}" for r in findings.releases}
    rows = [
        (
            labels[release_key(row)],
            row["scenario"],
            row["attack"],
            row["metric"].replace("_", " "),
            number_text(row["value"])
            + (
                f" ({number_text(row['low'])} to {number_text(row['high'])})"
                if row["low"] is not None
                else ""
            ),
            "-" if row["chance"] is None else number_text(row["chance"]),
        )
        for row in frame.filter(~pl.col("attack").is_in(naming)).iter_rows(named=True)
        if row["value"] is not None
    ]
    if not rows:
        return Markup("")
    head = ("release", "scenario", "attack", "metric", "value (95 %)", "chance")
    return table("Attackers who know the raw recordings and want something else.", head, rows)


def utilities(findings: Findings) -> Markup:
    """Every utility figure of every release."""
    measured = [r for r in findings.releases if r.measures]
    better = {(m.utility, m.metric): m.better for r in findings.releases for m in r.measures}
    chance = {
        (m.utility, m.metric): m.chance
        for r in findings.releases
        for m in r.measures
        if math.isfinite(m.chance)
    }

    def title(name: tuple[str, str]) -> str:
        guess = f", chance {number_text(chance[name])}" if name in chance else ""
        return f"{metric_label(*name)} ({better[name]} is better{guess})"

    rows = [
        (f"{r.number}. {r.label}", *(_measure(r.measure(*name)) for name in findings.metrics))
        for r in measured
    ]
    caption = (
        "What an analyst keeps: each figure with its 95 % interval. The first line is the"
        " unprotected data."
    )
    return table(caption, ("release", *(title(n) for n in findings.metrics)), rows)


def _measure(m: Measure | None) -> str:
    if m is None or not math.isfinite(m.value):
        return "-"
    if m.without_fixations:
        return f"no fixation found; an even map has {number_text(m.value)}"
    between = (
        f" ({number_text(m.low)} to {number_text(m.high)})"
        if math.isfinite(m.low) and math.isfinite(m.high)
        else ""
    )
    return number_text(m.value) + between


def persons(findings: Findings, with_names: bool = False) -> Markup:
    """Who is recognised how often, person by person, and for whom else they are taken; by numbers
    where names are not asked for.
    """
    shown = findings.attacked[:_MOST_COLUMNS]
    tables = {r.number: confused(findings, r) for r in shown}
    matrices = [(r, t) for r in shown if (t := tables[r.number]) is not None]
    people = sorted({p for _, (names, _) in matrices for p in names})
    called = {p: p if with_names else f"person {i}" for i, p in enumerate(people, 1)}
    rows = []
    for i, person in enumerate(people, 1):
        figures = (_person(person, names, table_, called) for _, (names, table_) in matrices)
        rows.append((f"{i}. {person}" if with_names else f"{i}", *figures))
    if not rows:
        return Markup("")
    caption = (
        f"Share of repetitions in which the {findings.strongest} names the person rightly; in"
        " brackets whom they are most often taken for."
    )
    return folded(
        "Person by person",
        table(caption, ("person", *(f"{r.number}. {r.label}" for r, _ in matrices)), rows),
        len(rows),
        long=True,
    )


def _person(person: str, names: tuple[str, ...], shares: object, called: Mapping[str, str]) -> str:
    import numpy as np

    if person not in names:
        return "-"
    row = np.asarray(shares)[names.index(person)]
    if not row.any():
        return "-"
    right = float(row[names.index(person)])
    other = int(np.argmax(np.where(np.arange(len(row)) == names.index(person), -1, row)))
    return percent(right) + (f" ({called[names[other]]})" if row[other] > right else "")


def _verdict(row: Mapping[str, object]) -> str:
    """The verdict on a figure with its reason."""
    word, reason = str(row.get("verdict") or ""), str(row.get("reason") or "")
    return ": ".join(filter(None, (word or ("not graded" if reason else ""), reason)))


def published(findings: Findings) -> Markup:
    """Figures of the papers beside ours, with the kind of comparison in words."""
    listed = findings.study.get("published")
    rows = [r for r in listed if isinstance(r, Mapping)] if isinstance(listed, list | tuple) else []
    if not rows:
        return Markup("")
    absent = [
        r
        for r in rows
        if r.get("ours") is None and "not in this run" in (r.get("verdict"), r.get("reason"))
    ]
    rows = [r for r in rows if r not in absent]
    known = ("id", "what", "published", "ours", "low", "high", "kind", "verdict", "reason")
    verdicts = any(r.get("verdict") or r.get("reason") for r in rows)
    cells = []
    for r in rows:
        low, high = r.get("low"), r.get("high")
        between = (
            f" ({_figure(low)} to {_figure(high)})" if low is not None and high is not None else ""
        )
        further = "; ".join(
            f"{k}: {v}" for k, v in r.items() if k not in known and v not in (None, "")
        )
        about = " ".join(filter(None, (str(r.get("what", "")), f"[{further}]" if further else "")))
        kind = _KINDS.get(str(r.get("kind", "")), str(r.get("kind", "")))
        cells.append(
            (
                about,
                _figure(r.get("published")),
                _figure(r.get("ours"), "not measured") + between,
                kind,
                *((_verdict(r),) if verdicts else ()),
            )
        )
    head = ("figure", "published", "ours", "comparison", *(("verdict",) if verdicts else ()))
    counted = {k: sum(c[3] == w for c in cells) for k, w in _KINDS.items()}
    intro = (
        f"{len(cells)} published figures: {counted['exact']} can be compared number by number,"
        f" {counted['order-only']} are shown beside or ordered (other people or simulated ones),"
        f" {counted['impossible']} cannot be compared here."
        + (
            f" {len(absent)} more {'is' if len(absent) == 1 else 'are'} not part of this run."
            if absent
            else ""
        )
    )
    return join(
        [
            tag("p", intro),
            folded(
                "All comparisons", table("Published figures beside ours.", head, cells), len(cells)
            ),
        ]
    )


def _figure(value: object, missing: str = "-") -> str:
    if value is None:
        return missing
    return (
        number_text(float(value))
        if isinstance(value, int | float) and not isinstance(value, bool)
        else str(value)
    )


def failures(findings: Findings, with_names: bool = False) -> Markup:
    """Cells that could not be computed, with the reason; names of people in it are left out where
    they are not asked for.
    """
    failed = findings.results.failures
    if not failed:
        return Markup("")
    cells: dict[str, list[str]] = {}
    for f in failed:
        sentence = str(f.get("sentence", ""))
        sentence = sentence if with_names else _PERSON.sub("person", sentence)
        cells.setdefault(sentence, []).append(_text_of(f.get("cell", "")))
    # The repetitions of one figure mostly fail for one reason.
    rows = [
        (names[0] + (f", and {len(names) - 1} more" if len(names) > 1 else ""), sentence)
        for sentence, names in cells.items()
    ]
    return folded(
        "All failures",
        table(
            "These could not be computed; nothing was put in their place.",
            ("figure", "reason"),
            rows,
        ),
        len(rows),
    )


def _text_of(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {v}" for k, v in value.items() if v not in (None, ""))
    return ", ".join(str(v) for v in value if v) if isinstance(value, list | tuple) else str(value)


def method(findings: Findings, with_names: bool = False) -> Markup:
    """Protocol, repetitions, seed, chance, scenarios, and what to read with care; people who are
    named only where that is asked for.
    """
    study = findings.study
    scenarios = dict.fromkeys(r.scenario for x in findings.attacked for r in x.rates)
    explained = [
        join([tag("code", s), f": the attacker {SCENARIOS.get(s, 'as the study says')}."])
        for s in scenarios
    ]
    left_out = study.get("left_out")
    plan = {k: v for k, v in study.items() if k not in _SAID and v not in (None, "", [], {})}
    notes = _notes(findings)
    if not with_names:
        if not isinstance(plan.get("people"), int):
            plan.pop("people", None)
        notes = [_PERSON.sub("person", note) for note in notes]
        if isinstance(left_out, list | tuple):
            left_out = [_PERSON.sub("person", str(reason)) for reason in left_out]
    times = study.get("times")
    return join(
        [
            _definitions(_protocol(findings)),
            _list("Scenarios", explained),
            _list("Read with care", notes),
            _list("Left out", left_out) if isinstance(left_out, list | tuple) else "",
            _plan(plan) if plan else "",
            tag("p", _text_of(times), class_="small") if times else "",
        ]
    )


def _protocol(findings: Findings) -> list[tuple[str, object]]:
    """How it was measured, as names and values."""
    study, frame = findings.study, findings.results.frame
    lines: list[tuple[str, object]] = [
        ("study", study.get("title") or study.get("name") or "without a name")
    ]
    cohorts = [c for c in frame["cohort"].unique().to_list() if c]
    if study.get("cohort") or cohorts:
        lines.append(("recordings", cohort_text(findings) or ", ".join(sorted(cohorts))))
    attacked = [r.worst for r in findings.attacked if r.worst is not None]
    if attacked:
        chances = ", ".join(sorted({percent(r.chance) for r in attacked}))
        lines.append(("people", ", ".join(str(n) for n in sorted({r.n for r in attacked}))))
        lines.append(("chance", f"{chances} (one guess among the people the attacker knows)"))
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


def _definitions(pairs: Iterable[tuple[str, object]]) -> Markup:
    return tag("dl", *(join([tag("dt", k), tag("dd", v)]) for k, v in pairs))


def _list(heading: str, items: Sequence[object]) -> Markup:
    """A heading and its list; nothing without items."""
    if not items:
        return Markup("")
    return join([tag("h3", heading), tag("ul", *(tag("li", i) for i in items))])


def _notes(findings: Findings) -> list[str]:
    notes = [FOOTNOTE]
    if any(r.scenario == ONE_RELEASE for x in findings.attacked for r in x.rates):
        notes.append(
            f"The scenario {ONE_RELEASE} trains and tests on two parts of one release. Slow noise"
            " is common to both and can itself identify people, so it counts as the worst case"
            " only where no other scenario was run."
        )
    said = findings.study.get("notes")
    return [*notes, *(str(n) for n in (said if isinstance(said, list | tuple) else ()))]


def _plan(plan: Mapping[str, object]) -> Markup:
    """Every other key of the study, folded."""
    values = (
        v if isinstance(v, str) else json.dumps(v, ensure_ascii=False, default=str)
        for v in plan.values()
    )
    listed = _definitions((k, tag("code", v)) for k, v in zip(plan, values, strict=True))
    heading = tag("summary", "The plan, as it was run")
    return tag("details", heading, tag("div", listed, class_="box"))


def folded(summary: str, content: Markup, rows: int, *, long: bool = False) -> Markup:
    """A long table starts folded."""
    return (
        tag("details", tag("summary", f"{summary} ({rows} lines)"), content)
        if long or rows > _LONG
        else content
    )
