"""The public datasets that are at hand, read as they were published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gazeveil.gaze.geometry import Screen, Sphere, eye_in_head, head_axes
from gazeveil.io import registry
from gazeveil.io.reading import read
from gazeveil.io.source import Head
from tests.support.recordings import real

COUNTS = [
    # folder, format, recordings, people, stimuli
    (("gazecom",), "gazecom", 235, 24, 10),
    (("eyenavgs_nthu",), "eyenavgs", 144, 12, 12),
    (("irf_lookatpoint",), "irf", 2, 2, 1),
    (("hmr",), "hmr", 3, 3, 1),
    (("lund2013",), "lund2013", 19, 9, 9),
    (("vr_eyetracking",), "vr-eyetracking", 715, 20, 40),
    (("osie",), "osie", 10500, 15, 700),
    (("neuroliaa_interiors",), "neuroliaa", 1283, 10, 134),
    (("webqamgaze",), "webqamgaze", 375, 15, 264),
    (("vendor_samples", "cateyes"), "cateyes", 2, 2, 1),
]


@pytest.mark.parametrize(("folder", "name", "recordings", "people", "stimuli"), COUNTS)
def test_a_folder_of_a_dataset_is_known_without_naming_its_format(
    folder: tuple[str, ...], name: str, recordings: int, people: int, stimuli: int
) -> None:
    cohort = read(real(*folder))
    assert (len(cohort), len(cohort.people), len(cohort.stimuli)) == (recordings, people, stimuli)
    found = registry.sniff(Path(cohort.items[0].source))
    assert found.name == name


def test_eyenavgs_turns_eyes_against_the_head_and_keeps_them_near_its_axis() -> None:
    cohort = read(real("eyenavgs_nthu"), format="eyenavgs")
    near = []
    for recording in cohort[::6]:
        assert isinstance(recording.space, Sphere)
        assert recording.left_deg is not None
        assert recording.right_deg is not None
        assert 30 < recording.rate_hz < 75
        assert 55 < recording.duration_s < 65
        assert recording.counts["rows"] - recording.counts["second eye"] == len(recording)
        near.append(np.hypot(*recording.eye_in_head_deg.T) < 40)
        # The two ways to see the eye in its head agree: by quaternions, and by angles with roll.
        again = np.stack(eye_in_head(recording.vectors, recording.head_deg), axis=1)
        np.testing.assert_allclose(again, recording.eye_in_head_deg, atol=1e-6)
        # The vestibulo-ocular reflex: while the head turns right, the eye turns left.
        axes, seconds = head_axes(recording.head_deg), np.diff(recording.t_ns) / 1e9
        head_speed = np.sum(np.diff(axes[:, 2], axis=0) * axes[:-1, 0], axis=1) / seconds
        eye_speed = np.diff(recording.eye_in_head_deg[:, 0]) / seconds
        slow = np.abs(eye_speed) < 100
        assert np.corrcoef(head_speed[slow], eye_speed[slow])[0, 1] < -0.1
    assert np.mean(np.concatenate(near)) > 0.97


def test_eyenavgs_keeps_no_place_of_the_head() -> None:
    recording = read(real("eyenavgs_nthu", "truck"), format="eyenavgs")[0]
    assert set(recording.metadata) == {"source", "facts"}
    assert (recording.person, recording.stimulus, recording.task) == (
        "user1",
        "truck",
        "free-viewing",
    )


def test_irf_has_expert_labels_and_the_screen_of_its_configuration() -> None:
    first, second = read(real("irf_lookatpoint"), format="irf")
    assert (first.person, second.person, first.stimulus) == ("S1", "S2", "lookAtPoint")
    assert first.space == Screen(1920, 1080, 533, 301, 565)
    assert (len(first), len(second), first.rate_hz) == (81003, 81002, 1000)
    words, counts = np.unique(first.labels["expert"], return_counts=True)
    assert dict(zip(words.tolist(), counts.tolist(), strict=True)) == {
        "undefined": 1204,
        "fixation": 68451,
        "saccade": 4753,
        "pso": 2480,
        "blink": 4115,
    }
    assert np.count_nonzero(~first.valid) >= 1862
    assert np.percentile(np.abs(first.x_deg[first.valid]), 99) < first.space.width_deg / 2


def test_no_dataset_takes_the_files_of_a_tracker_or_of_another_dataset() -> None:
    wanted = {"/".join(folder): name for folder, name, *_ in COUNTS}
    names = [e.format for e in registry.describe() if e.format not in registry.WITHOUT_READER]
    root = real("vendor_samples").parent
    for place in sorted(p for p in root.rglob("*") if p.is_file()):
        folder = next(
            (f for f in wanted if place.relative_to(root).as_posix().startswith(f + "/")), None
        )
        # A handful of each folder is enough.
        if (
            folder is not None
            and len(list(place.parent.iterdir())) > 12
            and not place.stem.endswith(("1", "1.csv", "1.json"))
        ):
            continue
        head = Head.of(place)
        claimed = [n for n in names if registry.get(n).sniff(head)]
        assert claimed in ([], [wanted[folder]] if folder else []), place
