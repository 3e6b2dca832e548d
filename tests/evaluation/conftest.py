"""The report of a made-up study, written once."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from gazeveil.evaluation.results import Results
from tests.evaluation.report_page import Page
from tests.support import made_results


@pytest.fixture(scope="session")
def study() -> Results:
    published = [
        {
            "what": "David-John et al. 2021 Fig. 3",
            "published": 0.3,
            "ours": 0.29,
            "kind": "order-only",
        },
        {"what": "chance", "published": 0.042, "ours": 1 / 24, "kind": "exact"},
        {
            "what": "a mechanism of later",
            "published": 0.08,
            "ours": None,
            "kind": "impossible",
            "verdict": "missing: it is not built yet",
        },
        {
            "what": "another cohort",
            "published": 0.08,
            "ours": None,
            "kind": "order-only",
            "verdict": "not in this run",
        },
    ]
    failures = [
        {
            "cell": f"rbfn, fpa:epsilon=1, raw/private, repetition {i}",
            "sentence": "It holds no saccade table.",
        }
        for i in (1, 2)
    ]
    said = {"published": published, "failures": failures, "battery": "strong battery"}
    return made_results.results(study=said)


@pytest.fixture(scope="session")
def written(study: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return study.report(tmp_path_factory.mktemp("report"), with_raw=True)


@pytest.fixture(scope="session")
def page(written: Path) -> Page:
    return Page(written.read_text(encoding="utf-8"))
