"""Advice comes from the measured table, the table from committed results, and the page from the
table.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.advice_table import SOURCES, attacked, of_features

from gazeveil.cli.main import main
from gazeveil.errors import ParameterError
from gazeveil.privacy.registry import mechanism
from gazeveil.release.advice import KINDS, PURPOSES, advice_rows, advise
from gazeveil.release.advice.pages import BEGIN, END, attack, kept, markdown
from gazeveil.release.advice.ranking import command_of
from gazeveil.release.presets import PRESETS, preset
from tests.support.places import ROOT


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    return int(ended.value.code or 0)


def test_every_purpose_and_kind_has_rows_that_can_be_run() -> None:
    rows = advice_rows()
    assert {(r.purpose, r.kind) for r in rows} == {(p, k) for p in PURPOSES for k in KINDS}
    for row in rows:
        assert mechanism(row.mechanism).name == row.mechanism.partition(":")[0]
        assert row.reference > 0
        assert row.value >= 0


def test_windows_are_said_in_seconds() -> None:
    kaleido = [r for r in advice_rows() if r.mechanism.startswith("kaleido")]
    assert {r.words for r in kaleido} == {
        "epsilon = 10, w = 0.5 s (125 samples at 250 Hz), r = 2 deg",
        "epsilon = 10, w = 0.5 s (18 samples at 36 Hz), r = 2 deg",
    }


def test_attack_rates_are_those_of_the_results_page() -> None:
    for source in SOURCES:
        printed = attacked(source.section)
        rows = [r for r in advice_rows() if r.kind == source.kind and r.purpose != "ml"]
        rows = [r for r in rows if r.found is not None]
        assert len(rows) == 9 * 5
        for row in rows:
            assert (row.attacker, row.found) == printed[row.mechanism]


def test_errors_of_features_are_those_of_the_results_page() -> None:
    for source in SOURCES:
        rows = [r for r in advice_rows() if r.kind == source.kind and r.purpose == "ml"]
        bare = [replace(r, attacker="", found=None, guessing=None) for r in rows]
        assert bare == list(of_features(source))


def test_the_page_has_the_table() -> None:
    text = (ROOT / "docs" / "howto" / "choose.md").read_text("utf-8")
    assert text.split(BEGIN)[1].split(END)[0].strip() == markdown().strip()


def test_what_is_of_use_comes_first_and_of_it_what_attackers_get_least_from() -> None:
    for purpose in PURPOSES:
        for kind in KINDS:
            advice = advise(purpose, 24, kind)
            assert advice.usable, (purpose, kind)
            assert all(r.share <= 0.75 for r in advice.usable)
            assert all(r.share > 0.75 for r in advice.useless)
            found = [r.found for r in advice.usable if r.found is not None]
            assert found == sorted(found)


def test_too_few_people_are_not_advised_groups() -> None:
    few, enough = advise("events", 7), advise("events", 8)
    assert "event-synth-pd:k=4,gamma=4" in {r.mechanism for r in few.too_few}
    assert enough.usable[0].mechanism == "event-synth-pd:k=4,gamma=4"
    many = advise("maps", 1000)
    assert many.usable[0].mechanism.startswith("heatmap-laplace")
    assert advise("maps", 24).usable[0].mechanism == preset("public-maps").mechanism


def test_presets_are_rows_of_the_table_and_keep_their_purpose() -> None:
    assert sorted(PRESETS) == ["public-events", "public-features", "public-maps", "public-samples"]
    for p in PRESETS.values():
        best = advise(p.purpose, 24).usable[0]
        assert best.mechanism == p.mechanism
        assert p.people >= best.least_people
        assert command_of(best).endswith(f"--preset {p.name}")
    with pytest.raises(ParameterError, match="public-maps"):
        preset("public-map")


def test_words_of_a_row() -> None:
    row = next(
        r for r in advice_rows() if (r.purpose, r.kind) == ("samples", "screen") and r.found == 100
    )
    assert attack(row) == ("100 % of people found (fusion), guessing 4.2 %; hides hardly anybody")
    assert kept(row).startswith("distance from the recorded gaze 0.26 degrees, without the data 12")


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "advice.json"
    assert run("advise", "--purpose", "events", "--people", 24, "--json", figures) == 0
    told = capsys.readouterr().out
    assert "1: gazeveil publish recordings/ published/ --preset public-events" in told
    stored = json.loads(figures.read_text("utf-8"))
    assert stored["usable"][0]["mechanism"] == "event-synth-pd:k=4,gamma=4"
    assert stored["usable"][0]["found"] == advise("events", 24).usable[0].found
    assert run("advise", "--purpose", "nothing", "--people", 24) == 2
    assert "one of aoi, events, maps, ml, samples, teaching" in capsys.readouterr().err
    assert run("advise", "--purpose", "maps", "--people", 24, "--kind", "phone") == 2
    assert run("advise", "--purpose", "maps") == 2


def test_what_is_found_of_pieces_is_told_in_pieces() -> None:
    row = next(r for r in advice_rows() if r.found is not None)
    assert "% of people found" in attack(row)
    told = attack(replace(row, mechanism="mosaic:epsilon=10,r_deg=2", found=7.0))
    assert told.startswith("the person of 7 % of pieces found")
