"""Sessions: batch equals stream, bad input is lost and never raw, copies never share noise, cohorts
and what they keep.
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil import Cohort, Recording
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.cohort import Handle
from gazeveil.privacy.randomness.supply import derived_seed
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.mechanism import KEEPABLE
from gazeveil.privacy.stream.session import Session
from tests.support.strategies import recordings

MECHANISMS = [
    "gaussian:sigma_deg=3",
    "gaussian:sigma_deg=0.01",
    "gaussian:sigma_deg=3,reading=published",
    "temporal:K=3",
    "temporal:K=4,hold=True",
    "temporal:K=3,reading=published",
    "spatial:L=64",
    "spatial:L=7,steps=prose,reading=published",
    "smoothing:first=3,second=8",
    "smoothing:first=3,second=8,reading=published",
    "kalman:noise_deg=0.5",
    "chain:stages=temporal(K=2)+gaussian(sigma_deg=5)+smoothing(first=2;second=3)",
    "kaleido:epsilon=5,w=20,r_deg=2",
    "kaleido:epsilon=5,w=20,r_deg=2,reading=published",
    "kaleido-uniform:epsilon=5,w=20,r_deg=2",
    "clock-render:epsilon=5,r_deg=2",
]


def pushed(session: Session, r: Recording, cuts: list[int]) -> list[np.ndarray]:
    """The recording pushed in pieces, single samples as plain numbers, joined again."""
    parts = []
    for a, b in zip([0, *cuts], [*cuts, len(r)], strict=True):
        if b - a == 1:
            parts.append(
                session.push(int(r.t_ns[a]), float(r.x_deg[a]), float(r.y_deg[a]), bool(r.valid[a]))
            )
        else:
            parts.append(session.push(r.t_ns[a:b], r.x_deg[a:b], r.y_deg[a:b], r.valid[a:b]))
    return [np.concatenate([p[k] for p in parts]) for k in range(4)]


@pytest.mark.parametrize("text", MECHANISMS)
@settings(max_examples=25)
@given(r=recordings(), data=st.data())
def test_any_split_gives_the_same_bits_as_the_whole(
    text: str, r: Recording, data: st.DataObject
) -> None:
    m = replace(mechanism(text), losses="keep")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(r)), max_size=12)))
    parts = pushed(m.open(r.rate_hz, r.space, seed=5), r, cuts)
    out = m.release(r, seed=5).data
    for got, wanted in zip(parts, (out.t_ns, out.x_deg, out.y_deg, out.valid), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert np.isnan(out.x_deg[~out.valid]).all()
    assert np.isfinite(out.x_deg[out.valid]).all()


@pytest.mark.parametrize("text", MECHANISMS)
def test_many_streams_in_step_equal_single_sessions(text: str) -> None:
    m = mechanism(text)
    rng = np.random.default_rng(1)
    t, x, y = (
        np.broadcast_to(np.arange(200) * 10**7, (9, 200)),
        rng.uniform(0, 360, (9, 200)),
        rng.uniform(0, 180, (9, 200)),
    )
    ok = rng.random((9, 200)) > 0.1
    many = m.open_many(9, 100.0, seed=3)
    ticks = [many.push(t[:, i], x[:, i], y[:, i], ok[:, i]) for i in range(100)]
    ticks.append(many.push(t[:, 100:], x[:, 100:], y[:, 100:], ok[:, 100:]))
    out = [np.concatenate([p[k] for p in ticks], axis=1) for k in range(4)]
    for i in range(9):
        single = m.open(100.0, seed=derived_seed(3, "stream", i)).push(t[i], x[i], y[i], ok[i])
        for a, b in zip(out, single, strict=True):
            np.testing.assert_array_equal(a[i], b)
    secure = m.open_many(9, 100.0)
    assert secure.push(t, x, y, ok)[1].shape == out[1].shape


BAD = [
    (1.0, np.nan),
    (np.inf, 1.0),
    (-np.inf, 1.0),
    (360.0, 1.0),
    (-1e-9, 1.0),
    (1.0, 180.0),
    (1.0, -1.0),
    (1e300, 1.0),
]


@pytest.mark.parametrize("text", MECHANISMS)
@pytest.mark.parametrize(("x", "y"), BAD)
def test_what_is_not_gaze_is_lost(text: str, x: float, y: float) -> None:
    m = mechanism(text)
    whole = m.open(100.0, seed=1).push(
        np.arange(60) * 10**7, np.full(60, x), np.full(60, y), np.ones(60, dtype=bool)
    )
    assert not whole[3].any()
    assert np.isnan(whole[1]).all()
    assert np.isnan(whole[2]).all()


@pytest.mark.parametrize(
    "text", [t for t in MECHANISMS if "temporal" not in t and "clock" not in t]
)
def test_backwards_and_repeated_times_are_lost(text: str) -> None:
    m = mechanism(text)
    t = np.array([100, 200, 300, 300, 250, 200, 400]) * 10**6
    ok = m.open(10.0, seed=1).push(t, np.full(7, 10.0), np.full(7, 10.0), np.ones(7, dtype=bool))[3]
    # smoothing and filters release from the second good sample on
    assert ok[2:].tolist() == [True, False, False, False, True]


@pytest.mark.parametrize(
    "text", ["gaussian:sigma_deg=3", "spatial:L=8", "gaussian:sigma_deg=1,reading=published"]
)
@settings(max_examples=30)
@given(r=recordings(min_samples=5))
def test_nothing_raw_comes_out_except_on_the_public_grid(text: str, r: Recording) -> None:
    out = mechanism(text).release(r, seed=1).data
    on_grid = np.mod(r.x_deg * 1024, 1) == 0
    same = (
        out.valid
        & ((out.x_deg == r.x_deg) | (out.y_deg == r.y_deg))
        & ~on_grid
        & ~(np.mod(r.y_deg * 1024, 1) == 0)
    )
    assert not same.any()


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), "100", None, True])
def test_a_rate_that_is_none_is_refused(rate: object) -> None:
    with pytest.raises(ParameterError, match="rate_hz"):
        mechanism("gaussian:sigma_deg=1").open(rate)
    with pytest.raises(ParameterError, match="rate_hz"):
        mechanism("gaussian:sigma_deg=1").open_many(2, rate)


PUSHES = [
    ((1.5, 1.0, 1.0, True), "whole nanoseconds"),
    ((None, 1.0, 1.0, True), "t_ns"),
    ((2**70, 1.0, 1.0, True), "t_ns"),
    ((np.uint64(2**63), 1.0, 1.0, True), "below 2"),
    ((0, "1", 1.0, True), "x_deg"),
    ((0, 1.0, None, True), "y_deg"),
    ((0, 1.0, 1.0, 0.5), "valid"),
    (([0, 1], [1.0, 2.0], [1.0], True), "equal shape"),
    (([0, 1], [1.0, 2.0], [1.0, 2.0], [True]), "equal shape"),
    (([[0, 1]], [[1.0, 2.0]], [[1.0, 2.0]], [[True, True]]), "one dimension"),
    (([0, 1], [[1.0], [2.0, 3.0]], [1.0, 2.0], True), "equal shape"),
]


@pytest.mark.parametrize(("values", "words"), PUSHES)
def test_pushes_that_make_no_sense_are_refused_and_change_nothing(
    values: tuple[object, ...], words: str
) -> None:
    session = mechanism("gaussian:sigma_deg=1").open(100.0, seed=1)
    with pytest.raises(ParameterError, match=words) as wrong:
        session.push(*values)  # type: ignore[arg-type]
    assert "2.0" not in f"{wrong.value} {wrong.value.got}"  # messages go to logs, gaze does not
    other = mechanism("gaussian:sigma_deg=1").open(100.0, seed=1)
    assert session.push(0, 1.0, 1.0)[1] == other.push(0, 1.0, 1.0)[1]


def test_many_streams_refuse_another_number_of_rows() -> None:
    session = mechanism("gaussian:sigma_deg=1").open_many(3, 100.0)
    assert session.push(5, np.zeros(3), np.zeros(3))[0].shape == (3, 1)
    with pytest.raises(ParameterError, match=r"shape \(3,\) or \(3, n\)"):
        session.push(np.arange(2), np.zeros(2), np.zeros(2))


def test_a_tracker_that_is_faster_than_its_rate_does_not_leave_the_released_times_behind() -> None:
    # 72 Hz for half of the time, while it says 36: the grid of 36 Hz alone would end seconds late
    steps_ns = np.where(np.arange(4000) // 500 % 2 == 0, 1e9 / 36, 1e9 / 72).astype(np.int64)
    t = np.concatenate([[0], np.cumsum(steps_ns)])
    out = (
        mechanism("gaussian:sigma_deg=3")
        .open(36.0, seed=1)
        .push(t, np.full(len(t), 100.0), np.full(len(t), 90.0))[0]
    )
    assert (np.diff(out) > 0).all()
    assert np.abs(out - t).max() < 3.5e9 / 36
    half_ns = 0.5e9 / 36
    assert np.abs(out - np.rint(out / half_ns) * half_ns).max() <= 1.0


def test_times_lie_on_the_nominal_grid_and_skip_pauses() -> None:
    m = mechanism("gaussian:sigma_deg=1,losses=keep")
    rng = np.random.default_rng(2)
    t = 10**12 + np.arange(100) * 10**7 + rng.integers(-(10**6), 10**6, 100)
    t[50:] += 3 * 10**9
    out = m.release(
        Recording("p", "s", t, np.full(100, 1.0), np.full(100, 1.0), rate_hz=100.0), seed=1
    ).data
    steps = np.diff(out.t_ns)
    assert out.t_ns[0] == t[0]
    assert (np.delete(steps, 49) == 10**7).all()
    assert abs(steps[49] - 3 * 10**9 - 10**7) <= 3 * 10**7
    published = (
        mechanism("gaussian:sigma_deg=1,reading=published")
        .release(Recording("p", "s", t, np.full(100, 1.0), np.full(100, 1.0)), seed=1)
        .data
    )
    np.testing.assert_array_equal(published.t_ns, t)


def test_extreme_clocks_do_no_harm() -> None:
    session = mechanism("gaussian:sigma_deg=1").open(100.0, seed=1)
    t = np.array([-(2**63), -(2**62), 0, 2**62, 2**63 - 1], dtype=np.int64)
    out = session.push(t, np.ones(5), np.ones(5), np.ones(5, dtype=bool))
    assert out[3].all()
    assert (np.diff(out[0]) > 0).all()


@pytest.mark.parametrize("text", MECHANISMS[:3])
def test_a_copy_never_repeats_protective_noise(text: str) -> None:
    session = mechanism(text).open(100.0)
    n = 7
    session.push(np.arange(n) * 10**7, np.full(n, 90.0), np.full(n, 90.0), np.ones(n, dtype=bool))
    copy = pickle.loads(pickle.dumps(session))
    late = np.arange(n, n + 100) * 10**7
    mine, other = (
        s.push(late, np.full(100, 200.0), np.full(100, 90.0), np.ones(100, dtype=bool))
        for s in (session, copy)
    )
    np.testing.assert_array_equal(mine[0], other[0])
    # Places lie on a lattice: one x is equal by chance once in 300 runs at 0.01 degrees.
    assert not np.array_equal(np.stack(mine[1:3])[:, -10:], np.stack(other[1:3])[:, -10:])
    assert len(pickle.dumps(session)) < 10_000


def full(person: str = "p", n: int = 30) -> Recording:
    from gazeveil.gaze.recording import Message

    return Recording(
        person,
        "s",
        np.arange(n) * 10**7 + 5,
        np.full(n, 10.0),
        np.full(n, 20.0),
        rate_hz=100.0,
        left_deg=np.ones((n, 2)),
        right_deg=np.ones((n, 2)),
        head_deg=np.ones((n, 3)),
        eye_in_head_deg=np.ones((n, 2)),
        pupil=np.ones(n),
        confidence=np.ones(n),
        labels={"hand": np.full(n, "fixation")},
        messages=(Message(5, "start"),),
        metadata={"eye": "left"},
        counts={"rows": n},
        truth="all",
    )


def test_only_protected_channels_are_released_unless_kept() -> None:
    m = mechanism("gaussian:sigma_deg=1")
    out = m.release(full()).data
    assert all(
        getattr(out, n) is None
        for n in (
            "left_deg",
            "right_deg",
            "head_deg",
            "eye_in_head_deg",
            "pupil",
            "confidence",
            "events",
            "truth",
        )
    )
    assert (dict(out.labels), out.messages, dict(out.metadata), dict(out.counts)) == (
        {},
        (),
        {},
        {},
    )
    every = m.release(full(), keep=tuple(KEEPABLE))
    assert every.data.pupil is not None
    assert every.data.metadata["eye"] == "left"
    for words in KEEPABLE.values():
        assert words in str(every.guarantee)
    assert m.release(full(), keep="pupil").data.head_deg is None
    with pytest.raises(ParameterError, match="Did you mean 'pupil'"):
        m.release(full(), keep=("pupils",))


def test_published_passes_times_and_labels_and_nothing_else() -> None:
    for text in (
        "gaussian:sigma_deg=1,reading=published",
        "temporal:K=2,reading=published",
        "spatial:L=8,reading=published",
    ):
        m = mechanism(text)
        out = m.release(full()).data
        np.testing.assert_array_equal(out.t_ns, full().t_ns[:: m.stride])
        assert set(out.labels) == {"hand"}
        assert out.pupil is None
        assert out.rate_hz == 100.0 / m.stride


def test_channels_that_are_kept_lose_the_same_samples() -> None:
    r = full().with_(pupil=np.arange(30.0))
    out = mechanism("temporal:K=4").release(r, keep=("pupil", "labels")).data
    np.testing.assert_array_equal(out.pupil, np.arange(0.0, 30.0, 4))
    assert len(out.labels["hand"]) == len(out) == 8
    with pytest.raises(DataError, match="events"):
        mechanism("temporal:K=4").release(r, keep=("events",))


def lazily(recording: Recording) -> Recording:
    return recording


def test_a_cohort_is_protected_recording_by_recording() -> None:
    from functools import partial

    m = mechanism("gaussian:sigma_deg=1")
    cohort = Cohort([full("a"), full("b")], {"a": {"age": 30}})
    release = m.release(cohort, seed=7)
    assert release.guarantee.status == "claimed"
    for r, out in zip(cohort, release.data, strict=True):
        np.testing.assert_array_equal(
            out.x_deg, m.release(r, seed=derived_seed(7, *r.key)).data.x_deg
        )
    assert release.data[0].x_deg[0] != release.data[1].x_deg[0]
    lazy = Cohort([Handle(r.person, r.stimulus, partial(lazily, r)) for r in cohort])
    np.testing.assert_array_equal(m.release(lazy, seed=7).data[1].x_deg, release.data[1].x_deg)
    with pytest.raises(DataError, match="no recordings"):
        m.release(Cohort([]))


def test_looking_twice_at_a_lazy_release_draws_no_new_noise() -> None:
    from functools import partial

    lazy = Cohort(
        [Handle("a", "s", partial(lazily, full("a"))), Handle("b", "s", partial(lazily, full("b")))]
    )
    for text in ("gaussian:sigma_deg=1", "gaussian:sigma_deg=1,reading=published"):
        m = mechanism(text)
        one, two = m.release(lazy), m.release(lazy)
        np.testing.assert_array_equal(one.data[0].x_deg, one.data[0].x_deg)
        # x and y of all samples: the first x alone is equal by chance once in 3,600 runs.
        told = [np.stack((r.x_deg, r.y_deg)) for r in (*one.data, *two.data)]
        assert not np.array_equal(told[0], told[2])
        assert not np.array_equal(told[0], told[1])
        with pytest.raises(DataError, match="secret keys"):
            pickle.dumps(one.data.items)
        pickle.dumps(one.data.load().items)


def test_a_recording_without_a_rate_is_refused() -> None:
    with pytest.raises(DataError, match="rate"):
        mechanism("gaussian:sigma_deg=1").release(
            Recording("p", "s", np.array([1]), np.array([1.0]), np.array([1.0]))
        )
