"""Reports of names that mean harm, and of results that are hardly there."""

from __future__ import annotations

import re
import warnings

import numpy as np
import polars as pl
import pytest

from gazeveil.evaluation.report import headline
from gazeveil.evaluation.results import Results, frame_of, outcomes_of
from tests.evaluation.report_page import Page, write_report_text
from tests.support import made_results

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "$\\frac{1}{",
    "</svg></style><script>alert(2)</script>",
    "--><b onclick=x>",
    "李雷",
    "a&b;&lt;",
    "' onmouseover='x",
    "{{7*7}}",
    "x" * 300,
]


def test_names_from_data_cannot_break_into_the_page() -> None:
    people = [*HOSTILE, *(f"p{i}" for i in range(14))]
    # Between two dollar signs matplotlib would read a formula, and stop at this one.
    evil = '"><script>alert(9)</script>$\\frac{$<img src=x onerror=alert(9)>'
    cells = {
        **made_results.FOUND,
        (evil, evil, f"{evil}=1", "private/private"): {evil: 3, "linkage:features=" + evil: 2},
    }
    made_results.USED[evil] = (0.1, 0.5)
    try:
        results = made_results.results(cells, people)
    finally:
        del made_results.USED[evil]
    results = Results(
        results.frame.with_columns(
            pl.when(pl.col("metric") == "kl")
            .then(pl.lit(evil))
            .otherwise(pl.col("metric"))
            .alias("metric")
        ),
        results.outcomes,
        (
            *results.guarantees,
            {"mechanism": evil, "sentence": evil, "status": evil, "definition": evil, "unit": evil},
        ),
        {
            **results.examples,
            "title": evil,
            "maps": {**results.examples["maps"], evil: np.ones((4, 8))},
        },  # type: ignore[dict-item]
        {
            **results.study,
            "title": evil,
            "cohort": {"name": evil, "people": evil},
            "times": {evil: evil},
            "left_out": [evil],
            "further": {evil: [evil]},
            "failures": [{"cell": evil, "sentence": evil}],
            "published": [
                {"what": evil, "published": evil, "ours": evil, "kind": evil, evil: evil}
            ],
            "tables": [{"caption": evil, "columns": [evil, evil], "rows": [[evil, 3]]}],
        },
    )
    page = Page(write_report_text(results))
    assert not page.of("script", "img", "b:onclick", "iframe")
    assert not [
        name for _, attributes in page.elements for name in attributes if name.startswith("on")
    ]
    assert {t for t, _ in page.elements} <= {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "main",
        "footer",
        "nav",
        "section",
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "a",
        "small",
        "span",
        "b",
        "code",
        "blockquote",
        "figure",
        "figcaption",
        "div",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "dl",
        "dt",
        "dd",
        "svg",
        "g",
        "path",
        "defs",
        "use",
        "clippath",
        "rect",
        "circle",
        "text",
        "image",
        "tspan",
    }
    for name in HOSTILE:
        assert name in page.words, name


@pytest.mark.usefixtures("undrawn")
def test_results_of_all_kinds_of_poverty_still_make_a_page() -> None:
    few = [k for k in made_results.FOUND if k[0] in ("none", "gaussian")]
    whole = made_results.results({k: made_results.FOUND[k] for k in few})
    rates, uses = pl.col("attack").is_not_null(), pl.col("utility").is_not_null()
    none = pl.lit(None, dtype=pl.Float64)
    poor = {
        "utilities alone": Results(whole.frame.filter(uses), guarantees=whole.guarantees),
        "attacks alone": Results(whole.frame.filter(rates), whole.outcomes),
        "no outcomes": Results(whole.frame),
        "no baseline": Results(whole.frame.filter(pl.col("mechanism") != "none"), whole.outcomes),
        "baseline alone": Results(
            whole.frame.filter(pl.col("mechanism") == "none"), whole.outcomes
        ),
        "no intervals": Results(
            whole.frame.with_columns(none.alias("low"), none.alias("high"), none.alias("p_value")),
            whole.outcomes,
        ),
        "no chance": Results(whole.frame.with_columns(none.alias("chance")), whole.outcomes),
        "no values": Results(whole.frame.with_columns(none.alias("value")), whole.outcomes),
        "nothing": Results(frame_of([]), outcomes_of([])),
        "all answers missing": Results(
            whole.frame,
            whole.outcomes.with_columns(
                pl.lit(None, dtype=pl.String).alias("answer"),
                pl.lit(None, dtype=pl.Int64).alias("beaten_by"),
            ),
        ),
        "empty examples": Results(
            whole.frame,
            examples={
                "traces": {"none": {}, "temporal": {}},
                "maps": {"none": np.zeros((3, 3)), "x": np.full((3, 3), np.nan)},
            },
        ),
        "two people": made_results.results(
            {("none", "", "", "raw/raw"): {"linkage": 1}}, ["a", "b"]
        ),
    }
    for kind, results in poor.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            page = Page(write_report_text(results))
        assert "How it was measured" in page.words, kind
        assert not re.search(r"\bnan\b", page.words, re.IGNORECASE), kind
        assert headline(results), kind
