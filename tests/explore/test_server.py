"""The server answers this machine's own page, and nobody else.

The page as one file: whole, and without anybody's gaze.

What the page is told: pictures of real releases, figures of real attacks.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError, ParameterError
from gazeveil.explore.board import (
    BATTERY,
    POINTS,
    REPETITIONS,
    SCENARIOS,
    Board,
    Limits,
    map_shades,
    sliders,
    take,
    trace_line,
)
from gazeveil.explore.server import SECRET, ExploreServer, save, stand_ins
from gazeveil.features.recording_set import FeaturePipeline
from gazeveil.gaze.cohort import Cohort
from tests.support.exploring import HOSTILE, board, people  # noqa: F401  # noqa: F401


@pytest.fixture(scope="module")
def server(board: Board) -> Iterator[ExploreServer]:
    with ExploreServer(board) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def asked(
    server: ExploreServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], str]:
    line = HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    line.request(method, path, headers=headers)
    answer = line.getresponse()
    body = answer.read().decode()
    line.close()
    return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body


def test_the_page_is_open_and_holds_no_data(server: ExploreServer) -> None:
    status, headers, body = asked(server, "/")
    assert status == 200
    assert HOSTILE not in body
    assert "p2" not in body.partition("<script>")[0].partition("<body>")[2]
    assert 'id="figures"' not in body.partition("<script>")[0]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "python" not in headers["server"].lower()


@pytest.mark.parametrize("path", ["board", "picture?people=0&person=0&stimulus=0", "attack"])
def test_figures_need_the_secret_of_the_link(server: ExploreServer, path: str) -> None:
    for headers in ({}, {SECRET: "x"}, {SECRET: server.secret[:-1]}, {SECRET: "\u00e9"}):
        status, _, body = asked(server, f"/api/{path}", **headers)
        assert status == 401
        assert HOSTILE not in body
    assert server.link.endswith(f"/#{server.secret}")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example"])
def test_another_host_name_is_refused(server: ExploreServer, host: str) -> None:
    status, _, _ = asked(server, "/api/board", Host=host, **{SECRET: server.secret})
    assert status == 403


def test_who_has_the_link_gets_figures(server: ExploreServer) -> None:
    own = {SECRET: server.secret}
    status, _, body = asked(server, "/api/board", **own)
    assert status == 200
    assert len(json.loads(body)["people"]) == 4
    status, _, body = asked(
        server, "/api/picture?people=0,1&person=1&stimulus=2&mechanism=0&value=1", **own
    )
    assert status == 200
    assert set(json.loads(body)) == {"trace", "map", "extent", "promise", "exact", "status"}


@pytest.mark.parametrize(
    "path",
    [
        "picture?people=0&person=9&stimulus=0",
        "picture?people=&person=0&stimulus=0",
        "picture?people=0&person=-1&stimulus=0",
        "picture?people=0&person=0",
        "picture?people=0,x&person=0&stimulus=0",
        "picture?people=0&person=0&stimulus=0&mechanism=0",
        "attack?people=0,1&mechanism=99&value=0",
        "attack?people=0,1&mechanism=0&value=%D9%A3",
        "picture?people=0&person=99999999999999999999&stimulus=0",
    ],
)
def test_numbers_that_mean_nothing_are_refused_in_a_sentence(
    server: ExploreServer, path: str
) -> None:
    status, _, body = asked(server, f"/api/{path}", **{SECRET: server.secret})
    assert status == 422
    assert "must be a number" in json.loads(body)["error"]["reason"]


@pytest.mark.parametrize("path", ["/api/nosuch", "/etc/passwd", "/../x", "/api", "/explore.js"])
def test_there_is_nothing_else(server: ExploreServer, path: str) -> None:
    assert asked(server, path, **{SECRET: server.secret})[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "<b>"])
def test_nothing_can_be_changed(server: ExploreServer, method: str) -> None:
    status, headers, body = asked(server, "/api/board", method, **{SECRET: server.secret})
    assert status == 501
    assert "access-control-allow-origin" not in headers
    assert "<b>" not in body


def test_a_taken_port_is_said_in_a_sentence(server: ExploreServer, board: Board) -> None:
    with pytest.raises(DataError, match="--port"):
        ExploreServer(board, server.server_address[1])
    assert server.server_address[0] == "127.0.0.1"


def figures_in(path: Path) -> dict[str, object]:
    text = path.read_text(encoding="utf-8")
    held = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text)
    assert held is not None
    figures: dict[str, object] = json.loads(held[1])
    return figures


@pytest.fixture(scope="module")
def sent(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(board, tmp_path_factory.mktemp("sent") / "page.html")


def test_no_gaze_and_no_name_of_anybody_is_in_a_page_for_sending_on(
    board: Board, sent: Path
) -> None:
    figures = figures_in(sent)
    own = {
        json.dumps(board.picture([0, 1, 2, 3], p, s, text)[key])
        for p in range(4)
        for s in range(3)
        for text in (None, *board.sliders[0].texts)
        for key in ("trace", "map")
    }
    text = json.dumps(figures)
    assert not [gaze for gaze in own if gaze in text]
    assert HOSTILE not in sent.read_text(encoding="utf-8")
    assert not [name for name in (*board.people, *board.stimuli) if f'"{name}"' in text]


def test_the_pictures_do_not_depend_on_the_recordings(board: Board) -> None:
    screen = gazeveil.Screen(1920, 1080, 530, 300, 613.7)
    other = gazeveil.simulate(4, 3, 8, 61.3, task="reading", space=screen, seed=99)
    first, second = stand_ins(board.cohort), stand_ins(other)
    assert first[0].space == second[0].space
    assert second[0].rate_hz == 60
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.x_deg, two.x_deg)


def test_the_figures_of_attackers_are_those_of_the_people(board: Board, sent: Path) -> None:
    figures = figures_in(sent)
    values = figures["attacks"][0]["values"]  # type: ignore[index]
    assert values == [board.attack([0, 1, 2, 3], t) for t in board.sliders[0].texts]
    assert values[0]["n"] == 4


def test_a_refusal_in_a_page_for_sending_on_names_nobody(tmp_path: Path) -> None:
    made = gazeveil.simulate(3, 2, 5, 60, task="reading", seed=1)
    small = Board(take(made, Limits()), sliders(60.0, ["mosaic:epsilon=10,r_deg=2"]))
    try:
        own = str(small.attack([0, 1, 2], small.sliders[0].texts[0])["refusal"])
        assert made.stimuli[0] in own
        path = save(small, tmp_path / "page.html")
    finally:
        small.close()
    refused = figures_in(path)["attacks"][0]["values"][0]["refusal"]  # type: ignore[index]
    assert made.stimuli[0] not in refused


@pytest.mark.parametrize("name", ["page.txt", "page", "."])
def test_another_kind_of_file_is_refused(board: Board, tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match="HTML"):
        save(board, tmp_path / name)


ALL = [0, 1, 2, 3]


def test_a_trace_is_the_recording_thinned_with_gaps_where_samples_are_lost() -> None:
    recording = gazeveil.simulate(1, 1, 20, 250, seed=3)[0]
    line = trace_line([recording])
    assert len(line["t"]) <= POINTS
    assert max(line["t"]) <= 10
    rows = np.searchsorted(recording.t_ns - recording.t_ns[0], np.array(line["t"]) * 1e9 - 1e6)
    for row, x in zip(rows, line["x"], strict=True):
        assert (x is None) == (not recording.valid[row])
        assert x is None or x == pytest.approx(recording.x_deg[row], abs=0.006)


def test_a_map_is_darkest_where_people_look() -> None:
    recordings = list(gazeveil.simulate(3, 1, 5, 60, task="reading", seed=3))
    shades = np.array(map_shades(recordings, recordings[0]))
    assert shades.max() == 99
    assert shades.min() == 0
    assert map_shades([], recordings[0])[0][0] == 0


def test_the_part_that_is_taken_is_small_and_seen_by_most() -> None:
    made = gazeveil.simulate(5, 4, 5, 60, seed=1)
    few = [r for r in made if not (r.stimulus == made.stimuli[0] and r.person != "p1")]
    taken = take(Cohort(few), Limits(people=3, stimuli=2, seconds=2.0))
    assert len({p for p, *_ in taken.keys}) == 3
    assert made.stimuli[0] not in taken.stimuli
    assert all(r.duration_s <= 2 for r in taken)
    with pytest.raises(DataError, match="no samples"):
        take(Cohort([]), Limits())


def test_a_picture_is_of_a_real_release_and_stays_the_same(board: Board) -> None:
    raw = board.picture(ALL, 1, 0, None)
    noisy = board.picture(ALL, 1, 0, "gaussian:sigma_deg=10")
    assert raw["trace"] != noisy["trace"]
    assert raw["map"] != noisy["map"]
    assert noisy == board.picture(ALL, 1, 0, "gaussian:sigma_deg=10")
    assert noisy["status"] == "proved"
    assert "any outcome" in str(noisy["promise"]) or "an outcome" in str(noisy["promise"])
    assert "gaussian" in str(noisy["exact"])
    pieces = board.picture(ALL, 1, 0, board.sliders[1].texts[0])
    assert pieces["trace"]["t"][-1] > 2  # type: ignore[index] # more than one piece


def test_a_refusal_is_a_sentence(board: Board) -> None:
    text = "k-same-synth:k=9"
    assert "9" in str(board.picture(ALL, 0, 0, text)["refusal"])
    assert "9" in str(board.attack(ALL, text)["refusal"])
    assert "people" in str(board.attack([0], None)["refusal"])


def test_a_figure_is_what_evaluate_finds(board: Board) -> None:
    figure = board.attack(ALL, "gaussian:sigma_deg=1")
    results = gazeveil.evaluate(
        board.cohort,
        ["gaussian:sigma_deg=1"],
        BATTERY,
        scenarios=SCENARIOS,
        repetitions=REPETITIONS,
        seed=2026,
        executor=1,
        preparation=FeaturePipeline(window_s=3.0, step_s=1.0),
    )
    best = results.worst_case().filter(mechanism="gaussian").row(0, named=True)
    assert figure["value"] == pytest.approx(best["value"], abs=1e-4)
    assert figure["low"] == pytest.approx(best["low"], abs=1e-4)
    assert figure["n"] == 4
    assert figure["chance"] == 0.25
    assert figure["tried"] == 4
    assert board.attack(ALL, board.sliders[1].texts[0])["unit"] == "pieces"


def test_attacks_run_beside_the_page_and_what_is_known_is_not_computed_again() -> None:
    made = Board(take(people(), Limits(3, 3, 5)), sliders(60.0, ["temporal:K=2|3"]))
    try:
        assert made.attacked([0, 1, 2], 0, 1)["left"] == 3
        end = time.monotonic() + 60
        while (found := made.attacked([0, 1, 2], 0, 1))["left"] and time.monotonic() < end:
            time.sleep(0.05)
        assert found["left"] == 0
        assert found["baseline"]["n"] == 3  # type: ignore[index]
        assert made.attack([2, 1, 0], "temporal:K=3") == found["values"][1]  # type: ignore[index]
    finally:
        made.close()
