"""The relay over LSL: all that comes out is protected; and outputs that are none."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import Block, block
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.gaze.geometry import Sphere
from gazeveil.relay import Protector, open_sink
from gazeveil.relay.lsl import LSLSink
from gazeveil.relay.picture import ScreenPicture
from gazeveil.relay.trackers.lsl.tracker import LSLTracker
from gazeveil.relay.trackers.pupil import PupilTracker
from gazeveil.relay.zmq import PupilSink
from tests.support.fake_pupil import FakePupil, gaze
from tests.support.fake_pylsl import FakePylsl
from tests.support.relaying import CAMERA, KALEIDO, PERIOD_NS, Running, stream_mechanism
from tests.support.taken_blocks import run


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pupil",
        "file:x",
        "pupil://a b",
        "pupil://127.0.0.1:1?nonsense=1",
        "pupil://127.0.0.1:1?topic=pupil.0",
        "websocket://127.0.0.1:1",
    ],
)
def test_what_is_no_output_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ParameterError) as error:
        open_sink(text)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="handles are counted where /proc has them"
)
def test_relays_that_end_leave_no_handles_and_no_threads() -> None:
    def handles() -> tuple[int, int]:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    async def once(pupil: FakePupil, out: str) -> None:
        sink = open_sink(out)
        assert isinstance(sink, PupilSink)
        tracker = PupilTracker(f"127.0.0.1:{pupil.port}", silence_s=60)
        async with Running(tracker, sink, Protector("gaussian:sigma_deg=1", 120.0, CAMERA)):
            await asyncio.to_thread(pupil.wait_for_subscriber)
            pupil.send(gaze(1.0, 0.5, 0.5))
            while not sink.counts["sent"]:
                await asyncio.sleep(0.01)

    with FakePupil() as pupil:
        counted = []
        for _ in range(6):
            run(once(pupil, "pupil://127.0.0.1:0"))
            counted.append(handles())
        # the other side of a connection that closed, and a thread that ends, may take a moment;
        # what leaks grows with every turn and stays
        for _ in range(600):
            if counted[-1][0] <= counted[0][0] + 2 and counted[-1][1] <= counted[0][1]:
                break
            time.sleep(0.05)
            counted.append(handles())
    assert counted[-1][0] <= counted[0][0] + 2, counted
    assert counted[-1][1] <= counted[0][1], counted


def test_an_lsl_stream_keeps_its_channels_and_nan_stands_for_what_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
    labels = ["confidence", "norm_pos_x", "norm_pos_y", "gaze_point_3d_x", "diameter0_2d"]
    rows = [([0.9 if k % 4 else 0.1, 0.51, 0.52, 77.7, 44.4], 10.0031 + k / 100) for k in range(40)]
    lsl.offer("pupil_capture", labels, rows)

    async def work() -> None:
        tracker, sink = open_tracker("lsl", rate_hz=100), open_sink("lsl:protected")
        assert isinstance(sink, LSLSink)
        async with Running(tracker, sink, Protector("gaussian:sigma_deg=2", 100.0, CAMERA, seed=2)):
            while len(lsl.network.sent) < 40:
                await asyncio.sleep(0.01)

    run(work())
    (info,) = lsl.network.outlets
    assert (info.name(), info.type(), info.channel_count()) == ("protected", "Gaze", 5)
    sent = np.array([row for _, row, _ in lsl.network.sent])
    times = np.array([t for *_, t in lsl.network.sent])
    assert np.isnan(sent[:, 3:]).all()
    lost = np.arange(40) % 4 == 0
    np.testing.assert_array_equal(sent[:, 0], np.where(lost, 0.0, 1.0))
    assert np.isnan(sent[lost, 1:3]).all()
    assert not np.isin(sent[~lost, 1], 0.51).any()
    np.testing.assert_allclose(times, 10.0 + np.arange(40) / 100, atol=1e-9)
    session = stream_mechanism("gaussian:sigma_deg=2").open(100.0, CAMERA, seed=2)
    x, y = ScreenPicture(CAMERA).degrees(np.full(40, 0.51), np.full(40, 0.52))
    expected = ScreenPicture(CAMERA).norm(
        *session.push(np.arange(40) * PERIOD_NS, x, y, ~lost)[1:3]
    )
    np.testing.assert_allclose(sent[~lost, 1], expected[0][~lost])


def test_a_relay_never_reads_its_own_lsl_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
    info = lsl.StreamInfo("protected", "Gaze", 3, 0.0, 2, "gazeveil-relay-protected")
    lsl.network.streams["protected"] = (info, [], True)  # type: ignore[assignment]
    assert LSLTracker(rate_hz=100, wait_s=0.1)._connect() is None
    with pytest.raises(ParameterError, match="another name"):
        run(
            LSLSink("raw").start(
                LSLTracker("raw", rate_hz=120),
                Protector("gaussian:sigma_deg=1", 120.0, CAMERA).guarantee,
            )
        )


# --- The relay's protector: the mechanism's own samples, on the tracker's clock.
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["gaussian:sigma_deg=2", KALEIDO, "spatial:L=64", "temporal:K=3", "smoothing", "kalman"]
)
def test_the_relay_gives_what_the_mechanism_gives_for_the_same_seed(text: str) -> None:
    recording = gazeveil.simulate(1, 1, 5, 100, seed=2)[0]
    # a recording whose times are multiples of the period: the relay then moves nothing
    whole = Protector(text, 100.0, recording.space, seed=9).push(
        block(recording.t_ns, recording.x_deg, recording.y_deg, recording.valid)
    )
    # A live stream passes losses on, so it is compared with a release that does.
    direct = replace(stream_mechanism(text), losses="keep").release(recording, seed=9).data
    for name in ("t_ns", "x_deg", "y_deg", "valid"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(direct, name))
    one_by_one = Protector(text, 100.0, recording.space, seed=9)
    parts = [
        one_by_one.push(
            block(*(getattr(recording, n)[i : i + 7] for n in ("t_ns", "x_deg", "y_deg", "valid")))
        )
        for i in range(0, len(recording), 7)
    ]
    np.testing.assert_array_equal(np.concatenate([p.x_deg for p in parts]), whole.x_deg)
    assert not np.array_equal(
        whole.x_deg,
        Protector(text, 100.0, recording.space)
        .push(block(recording.t_ns, recording.x_deg, recording.y_deg))
        .x_deg,
    ) or (text in ("spatial:L=64", "temporal:K=3", "smoothing", "kalman")), (
        "without a seed the noise must be fresh"
    )


def test_no_time_of_a_sample_passes_and_times_stay_on_the_trackers_clock() -> None:
    rng = np.random.default_rng(1)
    t = 1_000_003_141_592 + np.arange(500) * PERIOD_NS + rng.integers(-3_000_000, 3_000_000, 500)
    out = Protector("gaussian:sigma_deg=1", 100.0, Sphere()).push(
        block(t, np.full(500, 180.0), np.full(500, 90.0))
    )
    assert not set(out.t_ns.tolist()) & set(t.tolist())
    assert (out.t_ns % PERIOD_NS == 0).all(), (
        "the grid says nothing about when the first sample was"
    )
    assert np.abs(out.t_ns - t).max() < 3 * PERIOD_NS


def test_a_clock_that_is_set_back_does_not_make_the_mechanism_forget() -> None:
    n, w = 40, 60
    x, y = np.full(n, 180.0), np.full(n, 90.0)
    early, late = (
        block(10**9 * np.int64(5) + np.arange(n) * PERIOD_NS, x, y),
        block(10**9 * np.int64(5000) + 123 + np.arange(n) * PERIOD_NS, x, y),
    )
    text = f"kaleido-uniform:epsilon=1,w={w},r_deg=2"  # silent after a reset
    protector = Protector(text, 100.0, Sphere(), seed=4)
    first = protector.push(late)
    protector.lost()
    second = protector.push(early)
    assert protector.counts["clocks set back"] == 1
    assert second.valid.all(), "after a restart samples must not be lost for ever"
    assert np.abs(second.t_ns - early.t_ns).max() < 3 * PERIOD_NS, (
        "released times follow the new clock"
    )
    # the session saw one stream: what it gave is what it gives without the break, with a pause of
    # one sample in between
    session = stream_mechanism(text).open(100.0, Sphere(), seed=4)
    steps = np.concatenate((np.arange(n), n + 1 + np.arange(n)))
    expected = session.push(
        steps * PERIOD_NS,
        np.full(2 * n, 180.0),
        np.full(2 * n, 90.0),
        np.ones(2 * n, dtype=np.bool_),
    )
    np.testing.assert_array_equal(np.concatenate((first.x_deg, second.x_deg)), expected[1])
    # a clock set back within one block
    third = protector.push(
        Block(
            *(
                np.concatenate((getattr(late, k), getattr(early, k)))
                for k in ("t_ns", "x_deg", "y_deg", "valid")
            )
        )
    )
    assert protector.counts["clocks set back"] >= 2
    assert third.valid.mean() > 0.9


@pytest.mark.parametrize("reading", ["corrected", "published"])
def test_clocks_that_take_turns_do_not_bring_the_session_to_the_end_of_its_time(
    reading: str,
) -> None:
    """One counts from its start and one from 1970, by turns; the session once ended in a fault."""
    protector = Protector(f"gaussian:sigma_deg=1,reading={reading}", 100.0, Sphere(), seed=4)
    n = 40
    for turn in range(40):
        t = (1_800_000_000 if turn % 2 else 3600) * 10**9 + turn * 10**9 + np.arange(n) * PERIOD_NS
        if turn % 3:
            protector.lost()
        out = protector.push(block(t, np.full(n, 180.0), np.full(n, 90.0)))
        assert out.valid.all()
        assert np.abs(out.t_ns - t).max() < 3 * PERIOD_NS, "released times follow the clock"
    far = np.arange(-45_000, 45_000) * 80_000 * 10**9  # steps of just below a day
    assert len(protector._parts(far)) == len(far), "each goes on by one period"
    assert len(protector._parts(far[:9000])) == 1


def test_times_that_no_clock_has_are_left_out() -> None:
    protector = Protector("gaussian:sigma_deg=1", 100.0, Sphere())
    out = protector.push(block([2**63 - 1, -(2**63), 0, PERIOD_NS], [180.0] * 4, [90.0] * 4))
    assert (len(out), protector.counts["impossible times"]) == (2, 2)
    assert len(protector.push(block(np.empty(0, dtype=np.int64), [], []))) == 0


def test_published_readings_pass_times_on_and_say_so() -> None:
    t = 1_000_003_141_592 + np.cumsum(np.random.default_rng(2).integers(9_000_000, 11_000_000, 50))
    protector = Protector("gaussian:sigma_deg=1,reading=published", 100.0, Sphere())
    assert np.array_equal(protector.push(block(t, np.full(50, 180.0), np.full(50, 90.0))).t_ns, t)
    assert "the tracker's own times" in protector.guarantee.not_covered
    protector.lost()
    assert np.array_equal(
        protector.push(block(t - 10**12, np.full(50, 180.0), np.full(50, 90.0))).t_ns, t - 10**12
    )
    assert (
        "the tracker's own times"
        not in Protector("gaussian:sigma_deg=1", 100.0, Sphere()).guarantee.not_covered
    )


def test_the_guarantee_is_the_sessions_with_what_a_relay_shows_besides() -> None:
    promise = Protector(KALEIDO, 100.0, Sphere()).guarantee
    assert promise.epsilon == 1
    assert any("comes back" in c for c in promise.not_covered)
    assert Protector(KALEIDO, 100.0, Sphere(), seed=1).guarantee.epsilon is None
