"""Pupil Labs' real-time API as a tracker, with a stand-in for their package."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.relay.picture import pinhole
from gazeveil.relay.trackers.neon import NeonTracker
from tests.support.taken_blocks import run

CAMERA = pinhole(1600, 1200, 892)
LOADER = "gazeveil.relay.trackers.neon.import_module"


def phone(packets: Iterable[SimpleNamespace], version: str = "2.0") -> SimpleNamespace:
    """Their package, connected to a phone that sends these packets and then no more."""
    sensor = SimpleNamespace(connected=True, url="rtsp://phone")
    status = SimpleNamespace(
        hardware=SimpleNamespace(version=version), direct_gaze_sensor=lambda: sensor
    )

    class Connection:
        reader = None

        def __init__(self, *_: object) -> None: ...

        async def __aenter__(self) -> Connection:
            return self

        async def __aexit__(self, *_: object) -> None: ...

        async def get_status(self) -> SimpleNamespace:
            return status

        async def receive(self) -> AsyncIterator[SimpleNamespace]:
            for packet in packets:
                yield packet

    return SimpleNamespace(Device=Connection, RTSPGazeStreamer=Connection)


def packet(number: int, rate_hz: float = 200.0, **places: Any) -> SimpleNamespace:
    """One place in pixels; every fourth is lost."""
    t_ns = 10**18 + round(number * 1e9 / rate_hz)
    return SimpleNamespace(timestamp_unix_ns=t_ns, worn=number % 4 != 0, **places)


async def blocks_of(tracker: NeonTracker) -> list[Block]:
    return [part async for part in tracker.connection() if part is not None]


@pytest.mark.parametrize(
    "places",
    [
        {"x": 400.25, "y": 300.5},
        {"left": SimpleNamespace(x=400, y=300), "right": SimpleNamespace(x=400.5, y=301)},
    ],
)
def test_gaze_of_a_neon_becomes_degrees_with_its_times(
    places: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = phone([packet(i, **places) for i in range(40)])
    monkeypatch.setattr(LOADER, lambda name: package)
    tracker = open_tracker("neon://127.0.0.1")
    found: Any = run(blocks_of(tracker))  # type: ignore[arg-type]
    x, y, valid = (
        np.concatenate([getattr(part, name) for part in found])
        for name in ("x_deg", "y_deg", "valid")
    )
    expected = CAMERA.from_px([400.25], [300.5])
    np.testing.assert_allclose(x, expected[0][0], atol=1e-4)
    np.testing.assert_allclose(y, expected[1][0], atol=1e-4)
    assert (valid.sum(), found[1].t_ns.tolist()) == (30, [10**18 + 5_000_000])
    assert (tracker.rate_hz, tracker.space) == (200, CAMERA)


def test_glasses_of_another_kind_are_refused_and_slow_ones_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = phone([packet(i, 50.0, x=400.0, y=300.0) for i in range(110)])
    monkeypatch.setattr(LOADER, lambda name: package)
    other = open_tracker("invisible://127.0.0.1")
    assert (run(blocks_of(other)), other.counts["malformed"]) == ([], 1)  # type: ignore[arg-type]
    slow = open_tracker("neon://127.0.0.1")
    run(blocks_of(slow))  # type: ignore[arg-type]
    assert "50 samples come in a second, the nominal rate is 200" in slow.trouble


def test_without_the_package_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(LOADER, missing)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[neon\]"):
        open_tracker("neon://127.0.0.1")
