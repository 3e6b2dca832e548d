"""Pupil Labs' real-time API as a tracker: their package, and a phone that stands in for theirs."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import numpy as np
import pytest

from gazeveil.errors import MissingExtraError
from gazeveil.gatekeeper.trackers import open_tracker
from gazeveil.relay.picture import pinhole
from tests.support.fake_neon import FakeNeon
from tests.support.taken_blocks import run

CAMERA = pinhole(1600, 1200, 892)
LOADER = "gazeveil.relay.trackers.neon.import_module"
BEGIN_S = 1.7e9


async def played(phone: FakeNeon, payload: str, rate_hz: float, kind: str = "neon") -> Any:
    """A tracker, and the blocks that come of 110 samples of which every fourth is lost."""
    tracker, blocks = open_tracker(f"{kind}://{phone.address}"), []
    connection = tracker.connection()  # type: ignore[attr-defined]
    coming = asyncio.ensure_future(anext(connection, None))
    while not (phone.players or coming.done()):
        await asyncio.sleep(0.01)
    for number in range(110 if phone.players else 0):
        worn = 255 * (number % 4 != 0)
        places = (400.25, 300.5, worn, 400.25, 300.5)[: len(payload) - 1]
        phone.send(BEGIN_S + number / rate_hz, struct.pack(payload, *places))
        blocks.append(await coming)
        coming = asyncio.ensure_future(anext(connection, None))
    coming.cancel()
    return tracker, blocks


@pytest.mark.parametrize("payload", ["!ffB", "!ffBff"])  # one place, or one of each eye
def test_gaze_of_a_neon_becomes_degrees_with_its_times(payload: str) -> None:
    with FakeNeon() as phone:
        tracker, found = run(played(phone, payload, 200.0))  # type: ignore[misc]
    x, y, valid, t_ns = (
        np.concatenate([getattr(part, name) for part in found])
        for name in ("x_deg", "y_deg", "valid", "t_ns")
    )
    expected = CAMERA.from_px([400.25], [300.5])
    np.testing.assert_allclose(x, expected[0][0], atol=1e-4)
    np.testing.assert_allclose(y, expected[1][0], atol=1e-4)
    np.testing.assert_allclose(t_ns / 1e9 - BEGIN_S, np.arange(110) / 200, atol=2e-5)
    assert (valid.sum(), tracker.rate_hz, tracker.space) == (82, 200, CAMERA)


def test_glasses_of_another_kind_are_refused_and_slow_ones_told_of() -> None:
    with FakeNeon() as phone:
        other, found = run(played(phone, "!ffB", 200.0, "invisible"))  # type: ignore[misc]
        assert (found, other.counts["malformed"]) == ([], 1)
        slow, _ = run(played(phone, "!ffB", 50.0))  # type: ignore[misc]
    assert "50 samples come in a second, the nominal rate is 200" in slow.trouble


def test_without_the_package_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(LOADER, missing)
    with pytest.raises(MissingExtraError, match=r"gazeveil\[neon\]"):
        open_tracker("neon://127.0.0.1")
