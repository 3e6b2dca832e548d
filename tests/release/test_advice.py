"""Advice comes from the measured table, the table from committed results, and the page from the
table.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.advice_headsets import rates as rates_in_headsets
from benchmarks.advice_newest import EXCHANGE, OWN_2_S, newest
from benchmarks.advice_page import BEGIN, END, markdown
from benchmarks.advice_table import SOURCES, attacked, of_features

from gazeveil.errors import ParameterError
from gazeveil.privacy.registry import mechanism
from gazeveil.release.advice import KINDS, PURPOSES, advice_rows, advise, attack, command_of, kept
from gazeveil.release.recipe import PRESETS, preset
from tests.support.command_line import run
from tests.support.places import ROOT

#: Releases for headsets, measured on VR-EyeTracking.
NEAR = preset("public-vr").mechanism
OWN_1_S = "mosaic:epsilon=20,r_deg=2,piece_s=1,gap_s=0,paths=own"
OWN_5_S = "mosaic:epsilon=10,r_deg=2,paths=own"
EXCHANGE_5_S = "mosaic:epsilon=10,r_deg=2,paths=exchange"


def test_every_purpose_and_kind_has_rows_that_can_be_run() -> None:
    rows = advice_rows()
    assert {(r.purpose, r.kind) for r in rows} == {(p, k) for p in PURPOSES for k in KINDS}
    for row in rows:
        assert mechanism(row.mechanism).name == row.mechanism.partition(":")[0]
        assert row.reference > 0
        assert row.value >= 0


def test_attack_rates_are_those_of_the_results_pages() -> None:
    section = SOURCES[0].section
    printed, younger, seen = attacked(section), newest(section), rates_in_headsets()
    rows = [r for r in advice_rows() if r.found is not None and r.purpose != "ml"]
    assert Counter(r.kind for r in rows) == {"screen": 11 * 5, "vr": 13 * 5}
    for row in rows:
        given = (row.attacker, row.found, row.low, row.high)
        if row.kind == "vr":
            assert (*given, row.tried) == seen[str(mechanism(row.mechanism))]
        elif (said := younger.get(row.mechanism)) is not None:
            assert given[:2] == (said.attacker, said.found)
            assert (row.tried, row.note, row.source) == (said.tried, said.note, said.source)
        else:
            assert given == printed[row.mechanism]
            assert row.fully_attacked


def test_pieces_are_said_with_their_limits() -> None:
    rates = newest("gazecom")
    assert (rates[EXCHANGE].found, rates[OWN_2_S].found) == (7.9, 10.5)
    for row in advice_rows():
        name = row.mechanism.partition(":")[0]
        assert bool(row.note) == (name == "mosaic"), row.mechanism
        assert row.names_last == (name != "mosaic")
        if name == "mosaic":
            assert row.least_people == mechanism(row.mechanism).crowd
            assert "refused" in row.note
            assert ("no crowd" in row.note) == ((row.kind, row.mechanism) == ("vr", EXCHANGE_5_S))
    assert advise("samples", 11).pieces == ()
    assert EXCHANGE in {r.mechanism for r in advise("samples", 12).pieces}
    advice = advise("maps", 12, "vr")
    told = {r.mechanism: attack(r) for r in (*advice.usable, *advice.pieces)}
    assert told[OWN_5_S].endswith("strong battery and holders of raw recordings, 2 splits")
    assert told[NEAR].endswith("14.3 % (8 to 22) on 12 videos it was not chosen on")


def test_gaze_farther_off_than_the_head_is_of_no_use_for_samples_in_headsets() -> None:
    advice = advise("samples", 12, "vr")
    assert [r.mechanism for r in advice.pieces[:2]] == [NEAR, OWN_1_S]
    assert {EXCHANGE_5_S, "dpgazesynth:epsilon=1"} <= {r.mechanism for r in advice.useless}
    assert all(r.value < r.reference for r in advice.usable)
    assert "(with the head's direction alone 16)" in kept(advice.usable[0])
    note = next(r.note for r in advice.useless if r.mechanism == EXCHANGE_5_S)
    assert "it does not say where somebody looked at a given time" in note


def test_errors_of_features_are_those_of_the_results_page() -> None:
    for source in SOURCES:
        rows = [r for r in advice_rows() if r.kind == source.kind and r.purpose == "ml"]
        bare = [replace(r, attacker="", found=None, guessing=None, tried="") for r in rows]
        assert bare == list(of_features(source))


def test_the_page_has_the_table() -> None:
    text = (ROOT / "docs" / "howto" / "choose.md").read_text("utf-8")
    assert text.split(BEGIN)[1].split(END)[0].strip() == markdown().strip()


def test_what_is_of_use_comes_first_and_of_it_what_attackers_get_least_from() -> None:
    for purpose in PURPOSES:
        for kind in KINDS:
            advice = advise(purpose, 24, kind)
            assert advice.usable
            assert all(r.share > 0.75 for r in advice.useless)
            for rows in (advice.usable, advice.pieces):
                assert all(r.share <= 0.75 for r in rows)
                found = [r.found for r in rows if r.found is not None]
                assert found == sorted(found)


def test_too_few_people_are_not_advised_groups() -> None:
    few, enough = advise("teaching", 7), advise("teaching", 8)
    assert "event-synth-pd:k=4,gamma=4" in {r.mechanism for r in few.too_few}
    assert enough.usable[0].mechanism == "event-synth-pd:k=4,gamma=4"
    many = advise("maps", 1000)
    assert many.usable[0].mechanism.startswith("heatmap-laplace")
    assert advise("maps", 24).usable[0].mechanism == preset("public-maps").mechanism


def test_presets_are_rows_of_the_table_and_keep_their_purpose() -> None:
    assert sorted(PRESETS) == [
        "public-events",
        "public-features",
        "public-maps",
        "public-pieces",
        "public-samples",
        "public-vr",
    ]
    for p in PRESETS.values():
        in_headset = p.name == "public-vr"
        advice = advise(p.purpose, 24, "vr" if in_headset else "screen")
        rows = advice.pieces if p.name in ("public-pieces", "public-vr") else advice.usable
        best = next(r for r in rows if r.fully_attacked or p.purpose == "ml" or in_headset)
        assert best.mechanism == p.mechanism
        assert p.people >= best.least_people
        assert command_of(best).endswith(f"--preset {p.name}")
    with pytest.raises(ParameterError, match="public-maps"):
        preset("public-map")


def test_words_of_a_row() -> None:
    row = next(
        r for r in advice_rows() if (r.purpose, r.kind) == ("samples", "screen") and r.found == 100
    )
    assert attack(row) == (
        "100 % of participants (95 % CI 98 to 100; chance 4.2 %); hides hardly anyone"
    )
    assert kept(row) == "distance from the recorded gaze 0.26 degrees (without the data 12)"


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "advice.json"
    assert run("advise", "--purpose", "teaching", "--people", 24, "--json", figures) == 0
    told = capsys.readouterr().out
    assert "gazeveil publish recordings/ published/ --preset public-events" in told
    assert all(len(line) <= 80 for line in told.splitlines() if "gazeveil publish" not in line)
    stored = json.loads(figures.read_text("utf-8"))
    assert stored["usable"][0]["mechanism"] == "event-synth-pd:k=4,gamma=4"
    assert stored["usable"][0]["found"] == advise("teaching", 24).usable[0].found
    assert run("advise", "--purpose", "samples", "--people", 24) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "gazeveil publish recordings/ published/ --preset public-pieces" in told
    assert "Note: Needs 12 people who saw the same stimulus." in told
    assert run("advise", "--purpose", "maps", "--people", 16) == 0
    assert "For 16 the chance level is 6.2 %." in capsys.readouterr().out
    assert run("advise", "--purpose", "nothing", "--people", 24) == 2
    assert "one of aoi, events, maps, ml, samples, teaching" in capsys.readouterr().err
    assert run("advise", "--purpose", "maps", "--people", 24, "--kind", "phone") == 2
    assert run("advise", "--purpose", "maps") == 2
