"""The online detector: causal, bounded in its latency, and the same however the stream is cut."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil import Events, Recording, Sphere, detect
from gazeveil.errors import DataError
from gazeveil.events import OnlineDetector
from gazeveil.events.online.detector import Edge, gather
from gazeveil.events.quality import QualityWarning
from tests.support.event_signals import SCREEN, jitter, on_screen, step_path, times


def wild_recording(seed: int, n: int, rate_hz: float, sphere: bool) -> Recording:
    """Saccades, dropouts, long losses, missing rows."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.normal(0, 1.5, n) * (rng.random(n) < 0.05)) + rng.normal(0, 0.02, n)
    x = np.clip(np.convolve(x, np.ones(4) / 4)[:n], -60, 60)
    y = rng.normal(0, 0.02, n)
    valid = np.ones(n, dtype=bool)
    for _ in range(rng.integers(0, 6)):
        start = rng.integers(0, n)
        valid[start : start + rng.integers(1, n // 3 + 2)] = False
    t = times(n, rate_hz) + (rng.random(n) < 0.005).cumsum() * 200_000_000
    x = np.where(valid, x + 180 if sphere else x, np.nan)
    return Recording(
        "p",
        "s",
        t,
        x,
        y + 90 if sphere else y,
        valid,
        space=Sphere() if sphere else SCREEN,
        rate_hz=rate_hz,
    )


def in_blocks(r: Recording, cuts: list[int]) -> tuple[Edge, ...]:
    detector = OnlineDetector(r.rate_hz, r.space)
    edges: tuple[Edge, ...] = ()
    for a, b in zip([0, *cuts], [*cuts, len(r)], strict=True):
        edges += detector.push(r.t_ns[a:b], r.x_deg[a:b], r.y_deg[a:b], r.valid[a:b])
    return edges + detector.close()


def assert_same(a: Events, b: Events) -> None:
    assert a.kind.tolist() == b.kind.tolist()
    for name in ("onset", "offset", "onset_ns", "offset_ns"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_cut_into_blocks_gives_the_offline_events(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 600))
    r = wild_recording(
        data.draw(st.integers(0, 10**6)),
        n,
        data.draw(st.sampled_from([30.0, 120.0, 250.0, 1000.0])),
        data.draw(st.booleans()),
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=12)))
    edges = in_blocks(r, cuts)
    assert_same(gather(edges), detect(r, "online"))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), rate_hz=st.sampled_from([30.0, 120.0, 250.0, 1000.0]))
def test_edges_take_turns_cover_all_samples_and_keep_the_latency(seed: int, rate_hz: float) -> None:
    r = wild_recording(seed, 500, rate_hz, False)
    edges = in_blocks(r, list(range(1, 500)))
    assert [e.edge for e in edges] == ["onset", "offset"] * (len(edges) // 2)
    events = gather(edges)
    assert (events.onset[0], events.offset[-1]) == (0, 499)
    assert (events.onset[1:] == events.offset[:-1] + 1).all()
    latency = OnlineDetector(rate_hz, SCREEN).latency_s
    assert all(0 <= e.decided - e.index <= latency * rate_hz + 1e-9 for e in edges)


def test_what_is_told_never_depends_on_what_comes_later() -> None:
    r = wild_recording(7, 600, 250.0, False)
    whole = in_blocks(r, [])
    for n in range(0, 600, 37):
        detector = OnlineDetector(250.0, SCREEN)
        early = detector.push(r.t_ns[:n], r.x_deg[:n], r.y_deg[:n], r.valid[:n])
        assert early == whole[: len(early)]


def test_scalars_are_samples_too() -> None:
    r = on_screen(step_path(250.0))
    detector = OnlineDetector(250.0, SCREEN)
    edges = (
        sum(
            (
                detector.push(int(t), float(x), float(y))
                for t, x, y in zip(r.t_ns, r.x_deg, r.y_deg, strict=True)
            ),
            (),
        )
        + detector.close()
    )
    assert_same(gather(edges), detect(r, "online"))


def test_a_detector_can_be_pickled_in_midstream() -> None:
    r = on_screen(step_path(1000.0), 1000.0)
    detector = OnlineDetector(1000.0, SCREEN)
    first = detector.push(r.t_ns[:415], r.x_deg[:415], r.y_deg[:415])
    stored = pickle.dumps(detector)
    assert len(stored) < 60_000
    again = pickle.loads(stored)
    edges = first + again.push(r.t_ns[415:], r.x_deg[415:], r.y_deg[415:]) + again.close()
    assert_same(gather(edges), detect(r, "online"))


def test_a_saccade_is_told_while_it_lasts() -> None:
    path = step_path(250.0, (0.0, 10.0))
    edges = in_blocks(on_screen(path), [])
    onset = next(e for e in edges if e.kind == "saccade")
    assert abs(onset.index - 100) <= 2
    assert onset.decided <= 104


def test_a_lost_eye_is_told_as_a_blink_and_then_as_unknown() -> None:
    x = jitter(600)
    x[200:] = np.nan
    edges = in_blocks(on_screen(x), [])
    assert [(e.kind, e.edge, e.index) for e in edges[2:]] == [
        ("blink", "onset", 200),
        ("blink", "offset", 324),
        ("undefined", "onset", 325),
        ("undefined", "offset", 599),
    ]
    assert edges[2].decided - 200 <= 0.075 * 250


def test_a_time_that_goes_back_counts_as_lost_until_it_is_believed() -> None:
    t = times(400, 250.0)
    t[100:103] -= 500_000_000
    detector = OnlineDetector(250.0, SCREEN)
    edges = detector.push(t, jitter(400), jitter(400, seed=1)) + detector.close()
    assert [e.kind for e in edges] == ["fixation", "fixation"]
    t = times(800, 250.0)
    t[200:] -= 10_000_000_000
    detector = OnlineDetector(250.0, SCREEN)
    edges = detector.push(t, jitter(800), jitter(800, seed=1)) + detector.close()
    assert [e.kind for e in edges[::2]] == ["fixation", "blink", "fixation"]


def test_a_closed_detector_takes_no_more() -> None:
    detector = OnlineDetector(250.0)
    detector.close()
    assert detector.close() == ()
    with pytest.raises(DataError, match="is closed"):
        detector.push(0, 180.0, 90.0)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="of one length"):
        OnlineDetector(250.0).push([0, 1], [180.0], [90.0])


@pytest.mark.parametrize("rate_hz", [25.0, 31.0])
def test_pursuit_below_32_hz_is_not_told_and_that_is_said(rate_hz: float) -> None:
    t = np.arange(0, 4, 1 / rate_hz)
    slow = on_screen(4 * t - 8, rate_hz=rate_hz)
    with pytest.warns(QualityWarning, match=f"no pursuit below 32 Hz, and rate_hz is {rate_hz:g}"):
        events = detect(slow, "online", pursuit=True)
    assert not len(events.of("pursuit"))
    with pytest.warns(QualityWarning):
        OnlineDetector(rate_hz, SCREEN, pursuit=True)


def test_pursuit_from_32_hz_on_and_an_unknown_rate_need_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", QualityWarning)
        OnlineDetector(32.0, SCREEN, pursuit=True)
        OnlineDetector(25.0, SCREEN)
        unknown = on_screen(np.zeros(9)).with_(rate_hz=float("nan"))
        assert set(detect(unknown, "online", pursuit=True).kind) == {"undefined"}
