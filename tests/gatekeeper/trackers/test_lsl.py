"""Streams of LSL: channels by their labels, streams that go, and what is refused."""

from __future__ import annotations

import asyncio
import sys

import pytest

from gazeveil.errors import DataError, MissingExtraError
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.relay.trackers.lsl.tracker import LSLTracker
from tests.support.fake_pylsl import FakePylsl
from tests.support.taken_blocks import run, take

# --- LSL
# --------------------------------------------------------------------------------------------------

PUPIL_LABELS = ["confidence", "norm_pos_x", "norm_pos_y", "gaze_point_3d_x", "diameter0_2d"]


def test_without_lsl_one_sentence_names_the_extra_and_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pylsl", None)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[lsl\].*liblsl.*the package is missing"):
        open_tracker("lsl")

    def broken(name: str) -> object:
        raise RuntimeError("LSL binary library file was not found.")

    monkeypatch.setattr("gazeveil.relay.trackers.lsl.library.import_module", broken)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[lsl\].*liblsl.*the library is missing"):
        open_tracker("lsl:pupil_capture")


def test_channels_of_an_lsl_stream_go_by_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
    lsl.offer(
        "pupil_capture",
        PUPIL_LABELS,
        [([1.0, 0.5, 0.5, 7.0, 45.0], 10.0), ([0.2, 0.5, 0.5, 7.0, 45.0], 10.5)],
    )
    found, _ = run(take(open_tracker("lsl?sphere=true"), 2))
    assert found.t_ns.tolist() == [10_000_000_000, 10_500_000_000]
    assert (found.x_deg[0], found.y_deg[0]) == (180.0, 90.0)
    assert found.valid.tolist() == [True, False]
    lsl.offer("degrees", ["y_deg", "x_deg"], [([80.0, 200.0], 1.0)])
    found, _ = run(take(open_tracker("lsl:degrees"), 1))
    assert (found.x_deg[0], found.y_deg[0]) == (200.0, 80.0)


def test_an_lsl_stream_that_goes_is_lost_and_chunks_of_another_shape_are_malformed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
    lsl.offer("g", ["x_deg", "y_deg"], [([1.0, 2.0], 1.0)])
    tracker = LSLTracker("g")

    async def work() -> list[str]:
        story: list[str] = []
        async for part in tracker.samples():
            story.append("lost" if part is None else "gaze")
            if story == ["gaze"]:
                del lsl.network.streams["g"]
            if story == ["gaze", "lost"]:
                lsl.offer("g", ["x_deg", "y_deg"], [([1.0], 1.0)])
                asyncio.get_running_loop().call_later(
                    0.5, lambda: lsl.network.streams["g"][1].append(([1.0, 2.0], 3.0))
                )
            if len(story) == 3:
                break
        return story

    assert run(work()) == ["gaze", "lost", "gaze"]
    assert tracker.counts["malformed"] == 1


def test_lsl_streams_without_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lsl = FakePylsl()
    monkeypatch.setitem(sys.modules, "pylsl", lsl)  # type: ignore[arg-type]
    lsl.offer("eeg", ["Fp1", "Fp2"], [([1.0, 2.0], 1.0)])
    with pytest.raises(DataError, match=r"it has Fp1, Fp2.*\?x=LABEL"):
        LSLTracker("eeg")
    del lsl.network.streams["eeg"]
    tracker = LSLTracker("eeg", rate_hz=100)
    lsl.offer("eeg", ["Fp1", "Fp2"], [([1.0, 2.0], 1.0)])

    async def work() -> None:
        task = asyncio.ensure_future(take(tracker, 1))
        while not tracker.counts["malformed"]:
            await asyncio.sleep(0.01)
        await tracker.close()
        await task

    run(work())
