"""Sources of gaze: how they are named, simulated gaze, and replayed recordings."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers import forms, open_tracker
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.relay.picture import pinhole
from tests.support.taken_blocks import joined, run, take

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


# --- opening
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eyes",
        "simulated?rate=1",
        "simulated?rate_hz=0",
        "simulated?speed=0",
        "simulated:there",
        "replay:",
        "pupil://a:b",
        "pupil://x:1/path",
        "pupil://127.0.0.1?topic=pupil.",
        "websocket://127.0.0.1:9",
    ],
)
def test_what_is_no_tracker_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ParameterError) as error:
        open_tracker(text)
    assert "\n" not in str(error.value)


def test_every_source_says_how_it_is_written() -> None:
    assert (len(forms()), open_tracker("pupil://127.0.0.1").rate_hz) == (7, 120.0)
    assert open_tracker("pupil://127.0.0.1").space == pinhole()
    assert open_tracker("pupil://127.0.0.1?sphere=true").space == Sphere()
    assert open_tracker("pupil://127.0.0.1?screen=[1280,720,400,225,450]").space == SCREEN


# --- simulated and replayed
# --------------------------------------------------------------------------------------------------


def test_simulated_gaze_goes_on_without_a_jump_of_time_from_stimulus_to_stimulus() -> None:
    tracker = open_tracker(
        "simulated", rate_hz=250.0, seed=3, speed=math.inf, minute_s=1.0, start_ns=10**18
    )
    found, lost = run(take(tracker, 1000))
    assert lost == 0
    assert np.array_equal(found.t_ns, 10**18 + np.arange(len(found)) * 4_000_000)
    assert found.valid.mean() > 0.5
    assert np.array_equal(
        found.x_deg,
        run(
            take(
                open_tracker("simulated", rate_hz=250.0, seed=3, speed=math.inf, minute_s=1.0), 1000
            )
        )[0].x_deg,
        equal_nan=True,
    )
    assert not np.array_equal(found.x_deg[:250], found.x_deg[250:500], equal_nan=True), (
        "the same second again and again"
    )


def test_simulated_gaze_of_a_screen_task_says_its_space() -> None:
    assert isinstance(open_tracker("simulated?task=reading").space, Screen)
    assert open_tracker("simulated").space == Sphere()


def test_a_replayed_file_has_the_samples_and_the_pauses_of_the_recording(tmp_path: Path) -> None:
    cohort = gazeveil.simulate(1, 1, 2, 100, seed=5)
    cohort.write(tmp_path / "one")
    tracker = open_tracker(f"replay:{tmp_path / 'one'}", speed=math.inf, start_ns=7)

    async def everything() -> list[Block | None]:
        return [part async for part in tracker.samples()]

    parts = run(everything())
    assert parts[-1] is None, "a replay that ended is a tracker that vanished"
    found = joined([p for p in parts if p is not None])
    recording = cohort[0]
    assert np.array_equal(found.t_ns, 7 + recording.t_ns - recording.t_ns[0])
    np.testing.assert_allclose(found.x_deg, recording.x_deg, atol=1e-4)
    assert np.array_equal(found.valid, recording.valid)
    assert tracker.rate_hz == pytest.approx(100)


def test_a_folder_is_replayed_with_the_tracker_vanishing_between_recordings_and_loops(
    tmp_path: Path,
) -> None:
    gazeveil.simulate(2, 1, 1, 100, seed=5).write(tmp_path / "two")
    tracker = open_tracker(f"replay:{tmp_path / 'two'}?loop=true", speed=math.inf)
    found, lost = run(take(tracker, 500))
    assert lost == 4
    assert (np.diff(found.t_ns) > 0).all()


def test_recordings_of_another_rate_or_space_are_left_out_and_counted(tmp_path: Path) -> None:
    one = gazeveil.simulate(1, 1, 1, 100, seed=5)[0]
    gazeveil.Cohort(
        [one, one.with_(person="p2", t_ns=one.t_ns * 2, rate_hz=50.0), one.with_(person="p3")]
    ).write(tmp_path / "mixed")
    tracker = open_tracker(f"replay:{tmp_path / 'mixed'}", speed=math.inf)

    async def everything() -> int:
        return sum([len(part) async for part in tracker.samples() if part is not None])

    assert (run(everything()), tracker.counts["left out"]) == (200, 1)
