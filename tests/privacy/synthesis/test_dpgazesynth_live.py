"""dpgazesynth-live: what a device shows while samples come, what it spends, and where it stops."""

from __future__ import annotations

import copy
import os
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import ParameterError
from gazeveil.gatekeeper import MechanismRule
from gazeveil.gatekeeper.relay.protector import Protector
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.conformance import conform
from gazeveil.privacy.promise.change import Change
from gazeveil.privacy.synthesis.dpgazesynth.live.mechanism import DPGazeSynthLive
from tests.support.laws import fits
from tests.support.wearers import grant, keeper, looks

SCREEN = Screen(1920, 1080, 600.0, 340.0, 600.0)
W = 50


def _recording(seconds: float = 6.0, seed: int = 1) -> Recording:
    return gazeveil.simulate(1, 1, seconds, 100.0, seed=seed)[0]


def _pushed(mechanism: Any, recording: Recording, sizes: list[int], seed: int = 3) -> list[Any]:
    session = mechanism.open(recording.rate_hz, recording.space, seed=seed)
    parts, done = [], 0
    while done < len(recording):
        for size in sizes:
            now = slice(done, done + size)
            parts.append(
                session.push(
                    recording.t_ns[now],
                    recording.x_deg[now],
                    recording.y_deg[now],
                    recording.valid[now],
                )
            )
            done += size
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


@pytest.mark.parametrize("sizes", [[1], [7, 50, 3], [1000]])
@pytest.mark.parametrize("motion", ["public", "still"])
def test_a_stream_gives_the_bits_of_a_release_whatever_comes_at_a_time(
    sizes: list[int], motion: str
) -> None:
    recording, mechanism = _recording(), DPGazeSynthLive(3, G=20, motion=motion)
    release = mechanism.release(recording, seed=3).data
    wanted = (release.t_ns, release.x_deg, release.y_deg, release.valid)
    for got, column in zip(_pushed(mechanism, recording, sizes), wanted, strict=True):
        np.testing.assert_array_equal(got, column)


def test_many_streams_in_step_are_each_what_they_are_alone() -> None:
    from gazeveil.privacy.randomness.supply import derived_seed

    mechanism, recordings = DPGazeSynthLive(3, G=20), [_recording(4.0, s) for s in (1, 2)]
    many = mechanism.open_many(2, 100.0, Sphere(), seed=5)
    x = np.stack([r.x_deg for r in recordings])
    y = np.stack([r.y_deg for r in recordings])
    ok = np.stack([r.valid for r in recordings])
    got = many.push(np.stack([r.t_ns for r in recordings]), x, y, ok)
    for i, r in enumerate(recordings):
        alone = mechanism.open(100.0, Sphere(), seed=derived_seed(5, "stream", i))
        for whole, part in zip(got, alone.push(r.t_ns, r.x_deg, r.y_deg, r.valid), strict=True):
            np.testing.assert_array_equal(whole[i], part)


def test_gaze_shows_one_window_late_and_never_before_its_window_has_ended() -> None:
    mechanism, recording = DPGazeSynthLive(100, G=12, r_deg=1), _recording()
    release = mechanism.release(recording, seed=3).data
    assert not release.valid[:W].any()
    assert release.valid[W:].all()
    # Changing a window changes what is shown after it, and nothing before or during it.
    x = recording.x_deg.copy()
    x[3 * W : 4 * W] = (x[3 * W : 4 * W] + 180.0) % 360.0
    other = mechanism.release(recording.with_(x_deg=x), seed=3).data
    np.testing.assert_array_equal(release.x_deg[: 4 * W], other.x_deg[: 4 * W])
    assert (release.x_deg[4 * W : 5 * W] != other.x_deg[4 * W : 5 * W]).any()


def test_with_much_budget_the_shown_gaze_follows_the_true_one() -> None:
    # Control: with little budget it does not.
    t = np.arange(1200) * 10**7
    x = np.where(np.arange(1200) // 300 % 2 == 0, 120.0, 240.0)
    gaze = Recording("p", "s", t, x, np.full(1200, 90.0), space=Sphere(), rate_hz=100.0)
    late = np.roll(x, W)[2 * W :]
    errors = [
        np.median(np.abs(DPGazeSynthLive(e, G=60).release(gaze, seed=1).data.x_deg[2 * W :] - late))
        for e in (100, Fraction(1, 100))
    ]
    assert errors[0] < 10 < 40 < errors[1]


def test_lost_samples_change_no_shape_and_a_window_without_gaze_is_asked_like_any_other() -> None:
    mechanism, recording = DPGazeSynthLive(3, G=20), _recording()
    lost = recording.with_(valid=np.zeros(len(recording), dtype=np.bool_))
    for one in (recording, lost):
        out = mechanism.release(one, seed=1).data
        np.testing.assert_array_equal(out.valid, np.arange(len(one)) >= W)


def test_the_noise_of_every_window_is_its_own() -> None:
    gaze = Recording(
        "p",
        "s",
        np.arange(40 * W) * 10**7,
        np.full(40 * W, 180.0),
        np.full(40 * W, 90.0),
        space=Sphere(),
        rate_hz=100.0,
    )
    out = DPGazeSynthLive(10, motion="still").release(gaze, seed=1).data
    assert len(np.unique(out.x_deg[W::W])) > 30


def test_answers_of_windows_have_the_odds_of_their_budget() -> None:
    """The direct answers of a device that always looks the same, against the law of the oracle;
    false-alarm rate 1e-6, and a budget twice or half as large is told apart.
    """
    mechanism = DPGazeSynthLive(Fraction(15, 2), G=20, window_s="1/10", split="1:1:1")
    session = mechanism.open(100.0, SCREEN, seed=7)
    n = 10 * 800
    still = np.zeros(n)
    session.push(np.arange(n) * 10**7, still, still, np.ones(n, dtype=np.bool_))
    device: Any = session._stage.devices[0]  # type: ignore[attr-defined]
    counts = device._sums["counts"]
    assert counts.reports == 400
    assert device._sums["lengths"].reports == 400
    assert device._sums["steps"].reports == 800

    def law(epsilon: float) -> list[float]:
        # one run in a window: the first of six categories
        true = np.exp(epsilon) / (np.exp(epsilon) + 5)
        return [true, *[(1 - true) / 5] * 5]

    assert fits(counts.supports, law(2.5))
    assert not fits(counts.supports, law(5.0))
    assert not fits(counts.supports, law(1.25))


# --- the budget
# --------------------------------------------------------------------------------------------------


def test_when_the_budget_is_spent_nothing_is_shown_and_gaze_is_not_looked_at() -> None:
    mechanism, recording = DPGazeSynthLive(3, G=20, budget=10), _recording()
    assert mechanism.windows == 3
    out = mechanism.release(recording, seed=3).data
    np.testing.assert_array_equal(np.flatnonzero(out.valid), np.arange(W, 4 * W))
    x = recording.x_deg.copy()
    x[3 * W :] = (x[3 * W :] + 90.0) % 360.0
    other = mechanism.release(recording.with_(x_deg=x), seed=3).data
    for name in ("x_deg", "y_deg", "valid"):
        np.testing.assert_array_equal(getattr(out, name), getattr(other, name))


def test_the_budget_bounds_a_stream_of_any_length_and_a_reset_gives_nothing_back() -> None:
    mechanism = DPGazeSynthLive(3, G=20, budget=10)
    session = mechanism.open(100.0, SCREEN)
    promise = session.guarantee
    moved = Change.recording(move_deg=mechanism.layout(100.0, SCREEN).r_deg)
    assert promise.map(moved).epsilon == 9
    assert promise.epsilon == 3
    endless = DPGazeSynthLive(3, G=20).open(100.0, SCREEN).guarantee
    with pytest.raises(gazeveil.errors.GazeveilError, match="length"):
        endless.map(moved)
    shown = 0
    for begin in range(6):
        t = np.arange(2 * W) * 10**7 + begin * 10**10
        zero = np.zeros(2 * W)
        shown += int(session.push(t, zero, zero, np.ones(2 * W, dtype=np.bool_))[3].sum())
        session.reset()
    # two windows of each stream are asked, one is shown, until the third window is paid
    assert shown == 2 * W


def test_the_promise_is_that_of_the_report_and_adds_up_over_windows() -> None:
    recording = _recording()
    mechanism = DPGazeSynthLive(3, G=20)
    promised = mechanism.release(recording).guarantee
    assert promised.status == "proved"
    radius = mechanism.layout(100.0, recording.space).r_deg
    assert promised.map(Change.window(seconds="1/2", start_deg=radius)).epsilon == 3
    assert promised.map(Change.recording(move_deg=radius)).epsilon == 3 * 12
    # anywhere costs the start as many times as r fits into half a turn
    assert promised.map(Change.person()).epsilon == 12 * (
        Fraction(6, 5) + Fraction(9, 5) * -(-180 // radius)
    )


def test_a_gatekeepers_ledger_ends_the_stream_when_an_app_has_spent_its_budget() -> None:
    k = keeper("a")
    rule = MechanismRule("dpgazesynth-live", {"epsilon": ("any", None)})
    k.grant("a", grant(mechanisms=(rule,), budgets={"epsilon": Fraction(12)}))
    blocks: list[Any] = []
    stream = k.app("a").open_private_stream(
        "dpgazesynth-live:epsilon=2", lambda *block: blocks.append(block)
    )
    t, x, y = looks([(102, 82), (142, 82), (102, 82)], each_s=1.0)
    for i in range(len(t)):
        k.push(t[i : i + 1], x[i : i + 1], y[i : i + 1])
    assert stream.code == "budget"
    # a lease of a window's samples may touch two windows, so three leases of 2 * 2 fit
    assert 0 < sum(len(b[0]) for b in blocks) <= len(t)
    k.close()


def test_a_relay_sends_what_the_mechanism_gives() -> None:
    recording = _recording()
    protector = Protector("dpgazesynth-live:epsilon=3,G=20", 100.0, recording.space, seed=3)
    from gazeveil.gatekeeper.blocks import Block

    out = protector.push(
        Block(recording.t_ns, recording.x_deg, recording.y_deg, recording.valid, "gaze")
    )
    wanted = DPGazeSynthLive(3, G=20).release(recording, seed=3).data
    np.testing.assert_array_equal(out.x_deg, wanted.x_deg)
    assert "(epsilon, w, r, t)" in str(protector.guarantee)


# --- form
# --------------------------------------------------------------------------------------------------


def test_the_kit_finds_nothing() -> None:
    assert conform(DPGazeSynthLive(1, G=12)) == []


@pytest.mark.heavy
def test_the_audit_finds_nothing() -> None:
    found = gazeveil.audit("dpgazesynth-live:epsilon=1,G=6", trials=1000, confidence=1 - 1e-6)
    assert not found.refuted, str(found)
    assert found.epsilon_lower is not None
    assert found.epsilon_lower > 0.75


def test_a_copied_session_draws_noise_of_its_own() -> None:
    recording, session = _recording(), DPGazeSynthLive(3, G=20).open(100.0, Sphere())
    samples = recording.t_ns, recording.x_deg, recording.y_deg, recording.valid
    other = pickle.loads(pickle.dumps(session))
    assert not np.array_equal(session.push(*samples)[1], other.push(*samples)[1], equal_nan=True)


def test_a_budget_is_not_spent_twice_by_copies_and_forks() -> None:
    recording, session = _recording(), DPGazeSynthLive(3, G=20, budget=30).open(100.0, Sphere())
    samples = recording.t_ns, recording.x_deg, recording.y_deg, recording.valid
    copies = pickle.loads(pickle.dumps(session)), copy.copy(session), copy.deepcopy(session)
    for other in copies:
        assert not other.push(*samples)[3].any()
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, b"shown" if session.push(*samples)[3].any() else b"lost")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 10) == b"lost"
    assert session.push(*samples)[3].any()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0}, "'epsilon' parameter of dpgazesynth-live"),
        ({"epsilon": 3, "budget": 2}, "'budget' parameter of dpgazesynth-live"),
        ({"epsilon": 3, "budget": -1}, "'budget' parameter"),
        ({"epsilon": 3, "G": 1}, "'G' parameter of dpgazesynth-live"),
        ({"epsilon": 3, "losses": "fill"}, "'losses' parameter"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        DPGazeSynthLive(**parameters)
