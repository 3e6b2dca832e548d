"""Messages of trackers: batches, poses, spaces and JSON, whole, broken and hostile."""

from __future__ import annotations

import json
import math

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import DataError
from gazeveil.gatekeeper import blocks
from gazeveil.gatekeeper.blocks import block
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.relay.trackers.pupil_format import decode

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)


# --- blocks
# --------------------------------------------------------------------------------------------------


def test_a_batch_comes_back_as_it_was_packed() -> None:
    sent = block([5, -7, 2**62], [1.5, np.nan, 359.25], [2.5, 3.0, 90.0], [True, True, False])
    found = blocks.unpack(blocks.pack(sent, id=7, sequence=40, dropped=2))
    assert (found.id, found.sequence, found.dropped) == (7, 40, 2)
    assert found.block.t_ns.tolist() == [5, -7, 2**62]
    assert found.block.valid.tolist() == [True, False, False]
    assert (found.block.x_deg[0], found.block.y_deg[0]) == (1.5, 2.5)
    assert np.isnan(found.block.x_deg[1:]).all(), "what is not valid leaves no number behind"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01\x01",
        blocks.pack(block([1], [1.0], [1.0]))[:-1],
        blocks.pack(block([1], [1.0], [1.0])) + b"\x00",
        b"\x02" + blocks.pack(block([1], [1.0], [1.0]))[1:],
        blocks.HEADER.pack(1, 1, 0, 2**32 - 1, 0, 0),
        b"\x01\x01" + b"\x00" * (blocks.MOST_BYTES + 1),
    ],
    ids=["empty", "short", "cut", "longer", "version", "count", "huge"],
)
def test_bytes_that_are_no_batch_are_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        blocks.unpack(data)


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"type": "samples"},
        {"type": "samples", "t_ns": [1], "x_deg": [1.0], "y_deg": []},
        {"type": "samples", "t_ns": [1.5], "x_deg": [1.0], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [True], "x_deg": [1.0], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [2**63], "x_deg": [1.0], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [1], "x_deg": ["1"], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [1], "x_deg": [10**400], "y_deg": [1.0]},
        {"type": "samples", "t_ns": [1], "x_deg": [1.0], "y_deg": [1.0], "valid": [2]},
        {"type": "samples", "t_ns": [1], "x_deg": [1.0], "y_deg": [1.0], "valid": "yes"},
        {"type": "poses", "t_ns": [1], "orientation": [[0, 0, 1]]},
        {"type": "poses", "t_ns": [1], "orientation": [[0, 0, 1, "w"]]},
        {"type": "poses", "t_ns": [1, 2], "orientation": [[0, 0, 0, 1]]},
        {"type": "poses", "t_ns": [1], "orientation": None},
        {"type": "fixations", "t_ns": [1]},
    ],
)
def test_messages_without_their_parts_are_refused_without_quoting_them(
    message: dict[str, object],
) -> None:
    with pytest.raises(DataError) as error:
        blocks.from_message(message)
    assert "1.0" not in str(error.value)


def test_a_message_keeps_its_form_and_null_is_lost() -> None:
    for message in (
        {
            "type": "samples",
            "t_ns": [1, 2],
            "x_deg": [10.0, None],
            "y_deg": [20.0, None],
            "valid": [True, False],
        },
        {"type": "poses", "t_ns": [1], "orientation": [[0.1, -0.2, 0.0, 0.9]], "valid": [True]},
    ):
        found = blocks.from_message(message)
        again = blocks.message_of(found)
        assert again["type"] == message["type"]
        assert json.loads(json.dumps(again, allow_nan=False)) == again
        twice = blocks.from_message(again)
        np.testing.assert_allclose(twice.x_deg, found.x_deg, atol=1e-9)
        np.testing.assert_allclose(twice.y_deg, found.y_deg, atol=1e-9)


@pytest.mark.parametrize(
    ("quaternion", "x_deg", "y_deg"),
    [
        # to the right: about the axis that points up, by a negative angle
        ([0.0, -math.sin(math.radians(15)), 0.0, math.cos(math.radians(15))], 210.0, 90.0),
        ([math.sin(math.radians(10)), 0.0, 0.0, math.cos(math.radians(10))], 180.0, 70.0),
        ([0.0, 3.0, 0.0, 3.0], 90.0, 90.0),
    ],
    ids=["right", "up", "left, not of length 1"],
)
def test_poses_become_degrees_on_the_sphere(
    quaternion: list[float], x_deg: float, y_deg: float
) -> None:
    x, y, ok = blocks.from_poses([quaternion])
    assert ok.all()
    assert float(x[0]) == pytest.approx(x_deg)
    assert float(y[0]) == pytest.approx(y_deg)


def test_the_rotation_that_turns_nothing_is_no_gaze_unless_one_says_so() -> None:
    nothing = [
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, -1.0],
        [0.0, 0.0, 0.0, 0.0],
        [np.nan, 0.0, 0.0, 1.0],
        [1e308, 1e308, 1e308, 1e308],
    ]
    assert not blocks.from_poses(nothing)[2].any()
    x, y, ok = blocks.from_poses(nothing, identity_is_lost=False)
    assert ok.tolist() == [True, True, False, False, False]
    assert (float(x[0]), float(y[0])) == (180.0, 90.0)


def test_poses_and_degrees_are_one_another() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0, 360, 500), rng.uniform(1, 179, 500)
    found = blocks.from_poses(blocks.to_poses(block(np.arange(500), x, y)))
    np.testing.assert_allclose(found[0], x, atol=1e-6)
    np.testing.assert_allclose(found[1], y, atol=1e-6)


def test_spaces_survive_json_and_others_are_refused() -> None:
    for space in (Sphere(), SCREEN):
        assert blocks.parse_space(json.loads(json.dumps(blocks.space_figures(space)))) == space
    for wrong in (
        None,
        "sphere",
        {"kind": "cube"},
        {"kind": "screen", "width_px": 1},
        {**blocks.space_figures(SCREEN), "width_mm": -1},
    ):
        with pytest.raises(DataError):
            blocks.parse_space(wrong)


def test_json_without_end_is_refused() -> None:
    for text in (
        "[" * 100_000,
        '{"a":' * 100_000,
        "[]",
        "1",
        "{",
        '{"t": ' + "9" * 10_000 + "}",
        "x" * (blocks.MOST_BYTES + 1),
    ):
        with pytest.raises(DataError):
            blocks.parse_json(text)


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
)


_TREES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(
    t=_TREES, x=_TREES, y=_TREES, valid=_TREES, kind=st.sampled_from(["samples", "poses", "other"])
)
def test_whatever_a_message_holds_it_is_a_block_or_refused(
    t: object, x: object, y: object, valid: object, kind: str
) -> None:
    for message in (
        {"type": kind, "t_ns": t, "x_deg": x, "y_deg": y, "valid": valid},
        {"type": kind, "t_ns": [1], "x_deg": [x], "orientation": x, "y_deg": y},
    ):
        try:
            found = blocks.from_message(message)
        except DataError:
            continue
        assert len(found.t_ns) == len(found.x_deg) == len(found.y_deg) == len(found.valid)
        assert np.isfinite(found.x_deg[found.valid]).all()


@settings(max_examples=300, deadline=None)
@given(
    tree=_TREES,
    where=st.sampled_from(["timestamp", "norm_pos", "confidence"]),
    cut=st.integers(0, 200),
    noise=st.binary(max_size=8),
)
def test_whatever_pupil_sends_it_is_gaze_or_refused(
    tree: object, where: str, cut: int, noise: bytes
) -> None:
    datum = {"timestamp": 1.0, "norm_pos": [0.5, 0.5], "confidence": 1.0, where: tree}
    try:
        packed = msgpack.packb(datum)
    except OverflowError:
        return
    for data in (packed, packed[:cut], packed[:cut] + noise + packed[cut:]):
        try:
            t_ns, *rest = decode(data)
        except DataError:
            continue
        assert isinstance(t_ns, int)
        assert all(isinstance(v, float) for v in rest)


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=80), count=st.integers(0, 2**32 - 1))
def test_whatever_bytes_come_they_are_a_batch_or_refused(data: bytes, count: int) -> None:
    for whole in (
        data,
        blocks.HEADER.pack(1, 1, 0, count, 0, 0) + data,
        blocks.HEADER.pack(1, 1, 0, len(data) // 17, 0, 0) + data[: len(data) // 17 * 17],
    ):
        try:
            found = blocks.unpack(whole).block
        except DataError:
            continue
        assert len(found.t_ns) == (len(whole) - blocks.HEADER.size) // 17
        assert np.isfinite(found.x_deg[found.valid]).all()
