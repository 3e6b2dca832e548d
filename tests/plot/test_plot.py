"""Every picture: drawn on the axes given, from what it says; refused in one sentence where there
is nothing to draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

import gazeveil
from gazeveil import plot
from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.evaluation.results import frame_of
from gazeveil.gaze.recording import Recording
from gazeveil.plot.paths import KIND_COLOURS, saccade_sizes
from gazeveil.plot.tradeoff import FrontPoint, FrontSeries

SCREEN = gazeveil.Screen(1280, 720, 400.0, 225.0, 450.0)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def gaze() -> Recording:
    return gazeveil.simulate(1, 1, 6.0, 120.0, task="random-saccade", seed=2)[0]


def path(x_deg: list[float], space: Any = None, **more: Any) -> Recording:
    n = len(x_deg)
    y = np.full(n, 90.0 if space is None else 0.0)
    sphere = gazeveil.Sphere() if space is None else space
    return Recording("a$b$", "clip", np.arange(n) * 10**7, np.array(x_deg), y, space=sphere, **more)


def finite(line: Any) -> list[float]:
    return [v for v in np.asarray(line.get_ydata(), dtype=float).tolist() if math.isfinite(v)]


def drawn_by(name: str, gaze: Recording, ax: Axes | None) -> Axes:
    events = gazeveil.detect(gaze)
    series = FrontSeries("useful", (FrontPoint("raw", 1.0, 0.9, baseline=True),))
    calls = {
        "trace": lambda: plot.trace(gaze, ax, events=events),
        "scanpath": lambda: plot.scanpath(gaze, ax=ax),
        "heat_map": lambda: plot.heat_map(gaze, ax=ax),
        "main_sequence": lambda: plot.main_sequence(gaze, ax),
        "events_ribbon": lambda: plot.events_ribbon(events, gaze, ax),
        "before_after": lambda: plot.before_after(gaze, gaze, ax),
        "front": lambda: plot.front(series, ax=ax),
    }
    return calls[name]()


PICTURES = [name for name in plot.__all__ if name != "FrontPoint"]


@pytest.mark.parametrize("name", PICTURES)
def test_axes_go_in_and_come_out_or_are_made(name: str, gaze: Recording) -> None:
    _, own = plt.subplots()
    assert drawn_by(name, gaze, own) is own
    made = drawn_by(name, gaze, None)
    assert made is not own
    assert made.has_data()
    with pytest.raises(ParameterError, match="must be matplotlib axes"):
        drawn_by(name, gaze, "here")  # type: ignore[arg-type]


def test_a_trace_has_gaps_where_gaze_is_lost_and_counts_from_the_first_sample() -> None:
    recording = path([10.0, 11.0, np.nan, 13.0], SCREEN)
    x, y = plot.trace(recording).get_lines()[:2]
    assert finite(x) == [10.0, 11.0, 13.0]
    assert len(x.get_ydata()) == 4
    assert np.asarray(x.get_xdata()).tolist() == pytest.approx([0, 0.01, 0.02, 0.03])
    assert finite(y) == [0.0, 0.0, 0.0]


def test_no_line_crosses_the_seam_of_a_sphere() -> None:
    line = plot.trace(path([358.0, 359.0, 0.5, 1.0])).get_lines()[0]
    assert max(np.abs(np.diff(finite(line)))) < 3


def test_a_name_with_dollars_is_shown_as_it_is() -> None:
    axes = plot.trace(path([10.0, 11.0], SCREEN))
    axes.figure.canvas.draw()
    assert "a$b$" in axes.get_title()
    assert not axes.title.get_parse_math()


def test_only_the_seconds_asked_for_are_drawn(gaze: Recording) -> None:
    line = plot.trace(gaze, start_s=2.0, seconds=1.0).get_lines()[0]
    times = np.asarray(line.get_xdata(), dtype=float)
    assert times.min() >= 2.0
    assert times.max() <= 3.0
    assert len(times) == pytest.approx(120, abs=2)


def test_a_ribbon_has_one_colour_per_kind(gaze: Recording) -> None:
    events = gazeveil.detect(gaze)
    axes = plot.events_ribbon(events, gaze)
    labels = axes.get_legend_handles_labels()[1]
    assert set(labels) == set(np.unique(events.kind).tolist()) <= set(KIND_COLOURS)
    bars = sum(len(c.get_paths()) for c in axes.collections)
    assert bars == len(events)


def test_a_scanpath_lies_where_the_fixations_are_also_in_pixels() -> None:
    x = [0.0] * 20 + [10.0] * 20
    recording = path(x, SCREEN)
    events = gazeveil.Events(
        np.array(["fixation", "fixation"]),
        np.array([0, 20]),
        np.array([19, 39]),
        recording.t_ns[[0, 20]],
        recording.t_ns[[19, 39]],
    )
    places = plot.scanpath(recording, events=events).collections[-1].get_offsets()
    np.testing.assert_allclose(np.asarray(places), [[0, 0], [10, 0]], atol=1e-9)
    image = np.zeros((72, 128))
    axes = plot.scanpath(recording, image, events=events)
    places = np.asarray(axes.collections[-1].get_offsets())
    wanted = SCREEN.to_px([0.0, 10.0], [0.0, 0.0])
    np.testing.assert_allclose(places, np.stack(wanted, axis=1))
    assert axes.get_xlabel() == "x (px)"


def test_a_heat_map_of_a_cohort_shows_one_stimulus_with_title_and_scale() -> None:
    cohort = gazeveil.simulate(people=3, stimuli=2, seconds=5, rate_hz=60, seed=1)
    axes = plot.heat_map(cohort)
    assert axes.get_title() == f"{cohort.stimuli[0]}, participants: 3"
    assert axes.figure.axes[1].get_ylabel().startswith("density of samples")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (deg)", "y (deg)")
    one, other = (plot.heat_map(cohort, stimulus=s).get_images()[0] for s in cohort.stimuli)
    np.testing.assert_array_equal(axes.get_images()[0].get_array(), one.get_array())
    assert (one.get_array() != other.get_array()).any()
    assert plot.heat_map(cohort, stimulus="*").get_title() == "2 stimuli, participants: 3"
    with pytest.raises(ParameterError, match="stimuli"):
        plot.heat_map(cohort, stimulus="none of them")


def test_a_heat_map_is_brightest_where_gaze_is() -> None:
    recording = path([8.0] * 50 + [-20.0], SCREEN)
    for image in (None, np.zeros((9, 16))):
        axes = plot.heat_map(recording, image, sigma_deg=0.5)
        drawn = axes.get_images()[-1]
        values = np.asarray(drawn.get_array())
        row, column = np.unravel_index(int(values.argmax()), values.shape)
        left, right, bottom, top = drawn.get_extent()
        at = left + (column + 0.5) * (right - left) / values.shape[1]
        wanted = 8.0 if image is None else SCREEN.to_px([8.0], [0.0])[0][0]
        assert at == pytest.approx(wanted, abs=(right - left) / 100)
        assert row == pytest.approx(values.shape[0] / 2, abs=1)
        assert bottom > top  # y grows downwards


def test_maps_with_one_top_share_a_scale() -> None:
    even, peak = np.ones((4, 8)), np.ones((4, 8))
    peak[0, 0] = 9.0
    bright = [
        np.asarray(plot.heat_map(m, space=SCREEN, top=4.0).get_images()[0].get_array())
        for m in (even, peak)
    ]
    assert bright[0].max() == pytest.approx(0.5)
    assert bright[1].max() > 1.0


def test_the_main_sequence_counts_what_it_draws(gaze: Recording) -> None:
    amplitude, peak = saccade_sizes(gaze, gazeveil.detect(gaze))
    shown = (amplitude > 0.05) & (peak > 1)
    axes = plot.main_sequence(gaze)
    assert len(axes.get_lines()[0].get_xdata()) == shown.sum() > 0
    assert f"{shown.sum()} saccades" in axes.get_title()
    cohort = gazeveil.simulate(5, 1, 3.0, 120.0, task="random-saccade", seed=2)
    assert "of 3 recordings" in plot.main_sequence(cohort, most=3).get_title()


def test_before_and_after_are_two_lines(gaze: Recording) -> None:
    released = gazeveil.protect(gaze, "gaussian:sigma_deg=3", seed=1).data
    for view in ("x", "y", "path"):
        axes = plot.before_after(gaze, released, view=view)
        after, before = axes.get_lines()
        assert before.get_label() == "as recorded"
        wanted = gaze.x_deg if view == "x" else gaze.y_deg
        np.testing.assert_array_equal(
            np.asarray(before.get_ydata()), np.where(gaze.valid, wanted, np.nan)
        )
        assert not np.array_equal(np.asarray(after.get_ydata()), np.asarray(before.get_ydata()))
        assert axes.yaxis_inverted() == (view != "x")


def test_a_release_on_another_clock_is_drawn_from_its_own_start(gaze: Recording) -> None:
    moved = gaze.with_(t_ns=gaze.t_ns + 10**15)
    after = plot.before_after(gaze, moved).get_lines()[0]
    assert len(after.get_xdata()) == len(gaze)


def test_the_front_joins_the_releases_no_other_one_beats() -> None:
    points = (
        FrontPoint("raw", 1.0, 0.9, baseline=True),
        FrontPoint("good", 0.8, 0.2),
        FrontPoint("beaten", 0.5, 0.5),
        FrontPoint("hidden", 0.1, 0.1),
    )
    axes = plot.front(FrontSeries("useful", points, chance=0.1))
    joined = next(line for line in axes.get_lines() if len(line.get_xdata()) == 3)
    assert np.asarray(joined.get_xdata()).tolist() == [0.1, 0.8, 1.0]
    assert np.asarray(joined.get_ydata()).tolist() == [10.0, 20.0, 90.0]
    words = [t.get_text() for t in axes.get_legend().get_texts()]  # type: ignore[union-attr]
    assert words == ["0  raw", "1  good", "2  beaten", "3  hidden"]
    lower = plot.front(FrontSeries("error", points, "lower"))
    assert lower.xaxis_inverted()


def results(*utilities: tuple[str, float]) -> gazeveil.Results:
    common = {"cohort": "c", "events": "redetected", "n": 10, "chance": 0.1, "repetitions": 1}
    rows: list[dict[str, object]] = []
    for mechanism, scenario, rate in (("none", "raw/raw", 0.9), ("gaussian", "raw/private", 0.3)):
        own = {**common, "mechanism": mechanism, "reading": "", "parameters": ""}
        attack = {"attack": "lda", "metric": "identification_rate", "value": rate}
        rows.append({**own, **attack, "scenario": scenario})
        for utility, value in utilities:
            figure = {"utility": utility, "metric": "jsd", "value": value, "better": "lower"}
            rows.append({**own, **figure, "scenario": scenario})
    return gazeveil.Results(frame_of(rows))


def test_results_give_their_own_front() -> None:
    series = results(("density", 0.2)).front()
    assert [p.recognised for p in series.points] == [0.9, 0.3]
    assert series.points[0].baseline
    assert (series.better, series.chance) == ("lower", 0.1)
    assert "density" in plot.front(results(("density", 0.2)), "density", "jsd").get_title()
    with pytest.raises(DataError, match="no front to draw"):
        plot.front(results())
    with pytest.raises(ParameterError, match="must be one of density"):
        plot.front(results(("density", 0.2)), "densty")


NOTHING: list[tuple[str, str, Any]] = [
    ("no valid sample", "trace", lambda: plot.trace(path([np.nan, np.nan], SCREEN))),
    ("a Recording", "trace", lambda: plot.trace("a.csv")),  # type: ignore[arg-type]
    ("positive", "trace", lambda: plot.trace(path([1.0], SCREEN), seconds=0)),
    ("no fixation", "scanpath", lambda: plot.scanpath(path([1.0], SCREEN), events=_none())),
    ("no such file", "scanpath", lambda: plot.scanpath(path([1.0] * 30, SCREEN), "x.png")),
    ("no valid sample", "heat_map", lambda: plot.heat_map(path([np.nan], SCREEN))),
    ("rows and columns", "heat_map", lambda: plot.heat_map(np.zeros(3))),
    ("a Sphere or a Screen", "heat_map", lambda: plot.heat_map(np.ones((2, 2)))),
    ("one of log, sqrt", "heat_map", lambda: plot.heat_map(path([1.0], SCREEN), scale="cube")),
    ("one space", "heat_map", lambda: plot.heat_map(_two_spaces())),
    ("must be Events", "ribbon", lambda: plot.events_ribbon("fixation")),  # type: ignore[arg-type]
    ("one of path, x, y", "pair", lambda: _pair(view="z")),
    ("nothing to draw", "front", lambda: plot.front(FrontSeries("useful", ()))),
    ("must be Results", "front", lambda: plot.front("results")),  # type: ignore[arg-type]
]


def _none() -> gazeveil.Events:
    return gazeveil.Events.empty()


def _two_spaces() -> gazeveil.Cohort:
    return gazeveil.Cohort([path([1.0], SCREEN), path([1.0]).with_(person="q")])


def _pair(**more: Any) -> Axes:
    return plot.before_after(path([1.0], SCREEN), path([1.0], SCREEN), **more)


@pytest.mark.parametrize(("words", "_picture", "draw"), NOTHING)
def test_nothing_to_draw_is_said_in_one_sentence(words: str, _picture: str, draw: Any) -> None:
    with pytest.raises(GazeveilError, match=words) as caught:
        draw()
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("text", encoding="utf-8")
    recording = path([1.0] * 30, SCREEN)
    events = gazeveil.Events.from_words(["fixation"] * 30, recording.t_ns)
    with pytest.raises(DataError, match="not a picture"):
        plot.scanpath(recording, tmp_path / "a.png", events=events)


def test_a_picture_from_a_file_lies_behind(tmp_path: Path) -> None:
    plt.imsave(tmp_path / "a.png", np.random.default_rng(0).random((9, 16)))
    recording = path([1.0] * 30, SCREEN)
    axes = plot.heat_map(recording, tmp_path / "a.png")
    assert len(axes.get_images()) == 2
