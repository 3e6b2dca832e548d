"""Losses, pauses and lengths: kept they are as before, filled they are on a public clock, follow
from what was released, and cannot be told from gaze of the public model.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

from gazeveil import Recording, Screen, Sphere
from gazeveil.conformance import run_kit
from gazeveil.errors import DataError, ParameterError
from gazeveil.gaze.geometry import Space
from gazeveil.privacy.conformance import CHECKS
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.randomness.supply import Bits
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.gaussian import Gaussian, noisy_place
from gazeveil.privacy.stream.kaleido.mechanism import KaleidoUniform
from gazeveil.privacy.stream.kaleido.stage import LatticeStage
from gazeveil.privacy.stream.losses.expected_gaze import (
    DRIFT_DEG2_S,
    JUMP_X,
    JUMP_Y,
    JUMPS_HZ,
    KEPT_X,
    KEPT_Y,
    SPREAD_X,
    SPREAD_Y,
    Memory,
    expected_gaze,
    gaze_model,
    note,
    stream_keys,
)
from gazeveil.privacy.stream.losses.public_clock import on_clock, steps_of
from gazeveil.privacy.stream.session import Stage

SCREEN = Screen(1280, 720, 400, 225, 450)

# Releases under seed 7 as they were before losses could be filled.
BEFORE = {
    "gaussian:sigma_deg=3": "1148ece0d67aac9a",
    "temporal:K=3": "f9657c3d2fa83b7c",
    "temporal:K=4,hold=True": "36001691005d9af7",
    "spatial:L=64": "fa896b590a892746",
    "smoothing:first=3,second=8": "9f9a49a9b66d7b98",
    "kalman:noise_deg=0.5": "034660d2bfbfa5a8",
    "kaleido:epsilon=2,w=30,r_deg=1": "636ee0f0c27faa3e",
    "kaleido-uniform:epsilon=2,w=30,r_deg=1": "1f5cdec782f6971d",
    "chain:stages=temporal(K=2)+gaussian(sigma_deg=5)": "5e55cec79061719d",
    "gaussian:sigma_deg=3,reading=published": "4fe09e757e01b411",
    "kaleido:epsilon=2,w=30,r_deg=1,reading=published": "77f7be7863af536f",
}


FILLED = [text for text in BEFORE if "published" not in text]
BY_RELEASED = [t for t in FILLED if t.startswith(("gaussian:", "kaleido", "chain"))]


def lossy(space: object = None, seed: int = 0) -> Recording:
    """Whole numbers of 2**-10 degrees, so that every machine has the same ones; every 37th sample
    begins five lost ones, and the tracker pauses once for 0.4 s.
    """
    i = np.arange(600)
    x, y = (180 * 1024 + (i * 7919) % 5000) / 1024, (90 * 1024 + (i * 104729) % 3000) / 1024
    t = i * 10**7
    t[300:] += 4 * 10**8
    if seed:
        rng = np.random.default_rng(seed)
        x, y = 180 + rng.normal(0, 5, 600), 90 + rng.normal(0, 5, 600)
    if space is not None:
        x, y = x - 180, y - 90
    return Recording("p", "s", t, x, y, (i % 37) > 4, rate_hz=100.0, space=space or Sphere())


@pytest.mark.parametrize("text", BEFORE)
def test_kept_losses_and_published_readings_are_as_they_were(text: str) -> None:
    kept = text if "published" in text else f"{text},losses=keep"
    out = mechanism(kept).release(lossy(), seed=7).data
    digest = hashlib.sha256()
    for a in (out.t_ns, np.nan_to_num(out.x_deg, nan=-1), np.nan_to_num(out.y_deg, nan=-1)):
        digest.update(a.tobytes())
    digest.update(out.valid.tobytes())
    assert digest.hexdigest()[:16] == BEFORE[text]
    if "published" in text:
        assert mechanism(text).for_recordings().losses == "keep"


# --- the clock
# --------------------------------------------------------------------------------------------------


def test_a_pause_becomes_lost_samples_and_what_runs_ahead_is_left_out() -> None:
    r = lossy()
    steps, count = steps_of(r, 100.0, None)
    assert count == 640
    good = r.valid.copy()
    np.testing.assert_array_equal(steps[:300][good[:300]], np.flatnonzero(good[:300]))
    np.testing.assert_array_equal(steps[300:][good[300:]], 340 + np.flatnonzero(good[300:]))
    assert (steps[~good] == -1).all()
    fast = Recording("p", "s", np.arange(600) * 5 * 10**6, r.x_deg, r.y_deg, rate_hz=100.0)
    taken, count = steps_of(fast, 100.0, None)
    assert abs(count - 300) <= 2
    used = taken[taken >= 0]
    assert (np.diff(used) > 0).all()
    assert np.abs(used - np.flatnonzero(taken >= 0) / 2).max() <= 1.5


def test_a_public_duration_cuts_and_fills() -> None:
    r = lossy()
    for seconds in (2, 10):
        m = mechanism(f"gaussian:sigma_deg=1,duration_s={seconds},clock_hz=50")
        out = m.release(r, seed=1).data
        assert len(out) == 50 * seconds
        assert out.valid.all()
        np.testing.assert_array_equal(out.t_ns, np.arange(50 * seconds) * 2 * 10**7)
    nobody = m.release(r.with_(valid=np.zeros(600, dtype=bool)), seed=1)
    assert len(nobody.data) == 500
    assert not nobody.data.valid.any()
    assert "which recordings have no gaze at all" in nobody.guarantee.not_covered


def test_a_wrong_time_is_refused_in_one_sentence() -> None:
    r = lossy()
    t = r.t_ns.copy()
    t[599] = 10**18
    with pytest.raises(DataError, match=r"take more than 16777216 samples at 100 Hz.*duration_s"):
        mechanism("gaussian:sigma_deg=1").release(r.with_(t_ns=t))
    out = mechanism("gaussian:sigma_deg=1,duration_s=6").release(r.with_(t_ns=t)).data
    assert len(out) == 600


# --- the option
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", FILLED)
def test_a_release_fills_and_a_live_stream_keeps_unless_told_otherwise(text: str) -> None:
    m, r = mechanism(text), lossy()
    release = m.release(r, seed=1)
    out = release.data
    # filters release from the second sample on, whatever it is
    assert out.valid[1:].all()
    np.testing.assert_array_equal(out.t_ns, np.arange(len(out)) * 10**7 * m.stride)
    assert len(out) == -(-640 // m.stride)
    assert release.provenance.parameters["losses"] == "fill"
    covered = " ".join(release.guarantee.not_covered)
    assert "how long each recording is" in covered
    assert ("which samples are lost" in covered) == (text not in BY_RELEASED)
    live = m.open(100.0, seed=1)
    assert not live.push(r.t_ns, r.x_deg, r.y_deg, r.valid)[3].all()
    assert "which samples are lost" in live.guarantee.not_covered
    kept = replace(m, losses="keep").release(r, seed=1)
    assert "which samples are lost" in kept.guarantee.not_covered
    public = replace(m, duration_s=6, clock_hz=100).release(r, seed=1).guarantee
    assert not {"how long each recording is", "the rate of each recording"} & {*public.not_covered}


@pytest.mark.parametrize(
    "text",
    [
        "gaussian:sigma_deg=3,losses=fill",
        "kaleido:epsilon=1,w=50,r_deg=2,losses=fill",
        "smoothing:losses=fill",
        "chain:stages=gaussian(sigma_deg=3)+smoothing,losses=fill",
        "chain:stages=spatial(L=64)+gaussian(sigma_deg=3),losses=fill",
    ],
)
def test_times_of_a_live_stream_that_hides_losses_do_not_tell_them(text: str) -> None:
    n, rng = 400, np.random.default_rng(5)
    # late and early by more than two steps, a pause, and a stretch at twice the rate
    t_ns = np.sort(10**7 * np.arange(n) + rng.integers(-(10**7) * 4, 10**7 * 4, n))
    t_ns = np.unique(t_ns)
    t_ns[len(t_ns) // 2 :] += 5 * 10**8
    t_ns = np.concatenate((t_ns, t_ns[-1] + 5 * 10**6 * np.arange(1, 200)))
    valid = rng.random(len(t_ns)) < 0.7
    x, y = np.full(len(t_ns), 100.0), np.full(len(t_ns), 90.0)
    made: Any = mechanism(text)
    times, lost = made.open(100.0).push(t_ns, x, y, np.ones(len(t_ns), bool))[0], []
    for flags, place in ((valid, x), (np.ones(len(t_ns), bool), np.where(valid, x, 400.0))):
        out = made.open(100.0).push(t_ns, place, y, flags)
        np.testing.assert_array_equal(out[0], times)
        lost.append(np.isnan(out[1][-300:]).any())
    assert not any(lost)
    kept: Any = mechanism("gaussian:sigma_deg=3")
    assert (kept.open(100.0).push(t_ns, x, y, valid)[0] != times).any()  # the same times can tell


@pytest.mark.parametrize(
    "text",
    [
        "gaussian:sigma_deg=1/8,losses=fill",
        "chain:stages=gaussian(sigma_deg=1/8)+spatial(L=64),losses=fill",
    ],
)
@pytest.mark.parametrize("ahead_ns", [10**15, 2**62])
def test_a_lost_sample_with_a_time_far_ahead_does_not_decide_over_all_later_ones(
    text: str, ahead_ns: int
) -> None:
    n, at = 3000, 60
    t_ns, x, y = 10**7 * np.arange(n), np.full(n, 300.0), np.full(n, 40.0)
    t_ns[at] = ahead_ns
    made: Any = mechanism(text)
    for seen in (True, False):
        valid = np.arange(n) != at if not seen else np.ones(n, bool)
        _, x_out, y_out, ok = made.open(100.0).push(t_ns, x, y, valid)
        # All later gaze is looked at, whether the one sample was lost or not.
        late = np.s_[-1000:]
        assert ok[late].all()
        assert abs(np.median(x_out[late]) - 300.0) < 12
        assert abs(np.median(y_out[late]) - 40.0) < 12


def test_what_shows_losses_is_not_kept_beside_a_fill() -> None:
    r = lossy().with_(pupil=np.ones(600))
    m = mechanism("gaussian:sigma_deg=1")
    out = m.release(r, keep=("pupil",))
    assert "which samples are lost" in out.guarantee.not_covered
    assert len(out.data) == 600
    with pytest.raises(ParameterError, match=r"without pupil where losses are filled"):
        replace(m, losses="fill").release(r, keep=("pupil",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gaussian:sigma_deg=1,losses=drop", "fill, keep"),
        ("gaussian:sigma_deg=1,losses=fill,reading=published", "keep: this reading"),
        ("clock-render:epsilon=1,r_deg=1,losses=fill", "keep: this reading"),
        ("gaussian:sigma_deg=1,losses=keep,duration_s=3", "left out where losses are kept"),
        ("gaussian:sigma_deg=1,duration_s=0", "above 0"),
        ("gaussian:sigma_deg=1,clock_hz=1e9", "at most 100000"),
        ("chain:stages=temporal(K=2;losses=fill)+gaussian(sigma_deg=1)", "Say them of the chain"),
    ],
)
def test_wrong_options_are_refused(text: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        mechanism(text)


def test_a_live_stream_has_no_public_duration() -> None:
    m = mechanism("gaussian:sigma_deg=1,duration_s=3")
    for opened in (lambda: m.open(100.0), lambda: m.open_many(2, 100.0)):
        with pytest.raises(ParameterError, match=r"duration_s.*left out: a live stream"):
            opened()


# --- batch and stream
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [None, SCREEN], ids=["sphere", "screen"])
@pytest.mark.parametrize("text", FILLED)
def test_filled_batches_equal_filled_streams(text: str, space: object) -> None:
    m, r = replace(mechanism(text), losses="fill"), lossy(space)
    out = m.release(r, seed=5).data
    clocked = on_clock(r, 100.0, None)
    for cuts in ([0, 640], [0, 1, 2, 90, 91, 330, 640]):
        session = m.open(100.0, r.space, seed=5)
        parts = [session.push(*(a[i:j] for a in clocked)) for i, j in pairwise(cuts)]
        got = [np.concatenate([p[k] for p in parts]) for k in range(4)]
        for a, b in zip(got, (out.t_ns, out.x_deg, out.y_deg, out.valid), strict=True):
            np.testing.assert_array_equal(a, b)
    many = m.open_many(2, 100.0, r.space, seed=5)
    assert many.push(*(np.stack((a, a)) for a in clocked))[3][:, 1:].all()


# --- what a fill is made of
# --------------------------------------------------------------------------------------------------


def test_what_fills_gaussian_noise_follows_from_what_was_released() -> None:
    m, r = mechanism("gaussian:sigma_deg=2"), lossy(seed=4)
    out = m.release(r, seed=3).data
    _, x, y, ok = on_clock(r, 100.0, None)
    # The noise of a sample depends on its number alone: gaze at one place shows it.
    still = Recording("p", "s", np.arange(640) * 10**7, *np.full((2, 640), 90.0), rate_hz=100.0)
    shown = m.release(still, seed=3).data
    noise = (np.stack((shown.x_deg, shown.y_deg)) - 90.0) * 1024
    keys = stream_keys(1, Bits((3,)).sources(1, "gaussian", "corrected", "losses"))
    memory = Memory.of(Sphere(), 0.01, keys)
    for i in range(640):
        a, b = (x[i], y[i]) if ok[i] else expected_gaze(memory, 0)
        wanted = noisy_place(a, b, round(noise[0, i]), round(noise[1, i]), 10, True)
        assert (out.x_deg[i], out.y_deg[i]) == wanted
        note(memory, 0, out.x_deg[i], out.y_deg[i], 4.0)


@pytest.mark.parametrize("lost_slot", [7, 20, 21])  # 20 begins a block of the filter
def test_what_fills_kaleido_follows_from_what_was_released_whatever_was_lost(
    lost_slot: int,
) -> None:
    made = mechanism("kaleido-uniform:epsilon=1000,w=30,r_deg=1")
    assert isinstance(made, KaleidoUniform)
    plan, at = made.plan(100.0, SCREEN), 5 * lost_slot
    stages = [
        LatticeStage(plan, 1, [TestStream(3)], Memory.of(SCREEN, 0.05, np.array([9], np.uint64)))
        for _ in range(2)
    ]
    x = np.concatenate((np.repeat([3.0, -4.0, 6.0], 50), np.full(100, -2.0)))[None]
    y, good = 0.5 * x, np.ones(x.shape, dtype=np.bool_)
    good[0, 180:] = False  # what both of them fill later
    outs = []
    for which, stage in enumerate(stages):
        own = [a.copy() for a in (x, y, good)]
        begun = stage.run(np.zeros((1, at), dtype=np.int64), *(a[:, :at].copy() for a in own))
        if which == 0:
            own[2][0, at] = False
            memory = copy.deepcopy(stage.memory)
            there = expected_gaze(memory, 0)
        else:
            own[0][0, at], own[1][0, at] = there
        for a in own[:2]:
            a[~own[2]] = np.nan
        rest = stage.run(np.zeros((1, 250 - at), dtype=np.int64), *(a[:, at:].copy() for a in own))
        outs.append(np.concatenate((begun[1], rest[1]), axis=1))
    np.testing.assert_array_equal(*outs)


@pytest.mark.parametrize("text", [t for t in FILLED if t.startswith("kaleido")])
def test_kaleido_reads_gaze_at_public_slots_and_nowhere_else(text: str) -> None:
    m, r = mechanism(text), lossy(SCREEN)
    x, y = r.x_deg.copy(), r.y_deg.copy()
    slots = replace(m, losses="fill").stage(100.0, SCREEN, 1, Bits((1,))).plan.skip
    steps = steps_of(r, 100.0, None)[0]
    x[steps % slots != 0] = -5.0  # between slots, and what lost samples hold
    one, other = (m.release(a, seed=2).data for a in (r, r.with_(x_deg=x, y_deg=y)))
    np.testing.assert_array_equal(one.x_deg, other.x_deg)
    changes = np.flatnonzero(np.diff(one.x_deg)) + 1
    assert len(changes)
    assert (changes % slots == 0).all()


# --- telling filled samples
# --------------------------------------------------------------------------------------------------


def model_gaze(n: int, rate: float, rng: np.random.Generator) -> np.ndarray:
    """Gaze as the public model has it on the screen, shape (2, n)."""
    m = gaze_model(SCREEN, 1 / rate)
    place = rng.normal(0, np.sqrt([m[SPREAD_X], m[SPREAD_Y]]))
    path = np.empty((2, n))
    for i in range(n):
        place = place + rng.normal(0, np.sqrt(DRIFT_DEG2_S / rate), 2)
        if rng.random() < -np.expm1(-JUMPS_HZ / rate):
            place = place * [m[KEPT_X], m[KEPT_Y]] + rng.normal(0, np.sqrt([m[JUMP_X], m[JUMP_Y]]))
        path[:, i] = place
    return path


def looks_back(x: np.ndarray, y: np.ndarray, spans: tuple[int, ...]) -> np.ndarray:
    """What released gaze up to each sample looks like: spread of the last stretch, how far it is
    from the one before, and where it is, at several lengths.
    """
    n, out = len(x), []
    sums = [np.concatenate(([0.0], np.cumsum(a))) for a in (x, y, x * x + y * y)]
    i = np.arange(1, n + 1)
    for k in spans:
        (mx, my, square), (px, py, _) = (
            [(s[np.maximum(i - a, 1)] - s[np.maximum(i - b, 0)]) / (b - a) for s in sums]
            for a, b in ((0, k), (k, 2 * k))
        )
        out += [square - mx**2 - my**2, np.hypot(mx - px, my - py), np.hypot(mx, my)]
    return np.stack([*out, *(np.sqrt(np.abs(o)) for o in out)], axis=1)


def told_apart(text: str, fill: str, people: int = 24) -> tuple[float, float]:
    """Area under the curve of a ridge classifier, trained on half the people, that looks back from
    a sample of the release of the others and says whether it was lost; and its standard error over
    people. Samples up to 0.6 s after a loss are left out: that gaze comes back may show.
    """
    rng = np.random.default_rng(11)
    rows, truth = [], []
    for person in range(people):
        n, rate = 4000, 100.0
        x, y = np.clip(model_gaze(n, rate, rng), -40, 40)
        ok = np.arange(n) % 160 < 130
        asked = (np.arange(n) % 160 >= 60) & (np.arange(n) > 160)
        valid = ok if fill == "fill" else np.ones(n, dtype=bool)
        if fill == "middle":
            x, y = np.where(ok, x, 0.0), np.where(ok, y, 0.0)
        elif fill == "hold":
            last = np.maximum.accumulate(np.where(ok, np.arange(n), 0))
            x, y = x[last], y[last]
        r = Recording("p", "s", np.arange(n) * 10**7, x, y, valid, space=SCREEN, rate_hz=rate)
        out = mechanism(text).release(r, seed=person).data
        assert out.valid.all()
        rows.append(looks_back(out.x_deg, out.y_deg, (5, 12, 25))[asked])
        truth.append(~ok[asked])
    areas = []
    for half in range(2):
        learn = [p for p in range(people) if p % 2 == half]
        table = np.concatenate([rows[p] for p in learn])
        mean, spread = table.mean(axis=0), table.std(axis=0) + 1e-9
        ridge = RidgeClassifier(10.0, class_weight="balanced")
        ridge.fit((table - mean) / spread, np.concatenate([truth[p] for p in learn]))
        areas += [
            roc_auc_score(truth[p], ridge.decision_function((rows[p] - mean) / spread))
            for p in range(people)
            if p % 2 != half
        ]
    return float(np.mean(areas)), float(np.std(areas) / np.sqrt(len(areas)))


@pytest.mark.parametrize("text", ["gaussian:sigma_deg=1", "kaleido:epsilon=20,w=50,r_deg=1"])
def test_until_gaze_comes_back_filled_samples_cannot_be_told_from_gaze_of_the_model(
    text: str,
) -> None:
    area, error = told_apart(text, "fill")
    assert abs(area - 0.5) < 4 * error + 0.005  # false alarms below 1e-4
    for wrong in ("middle", "hold"):
        planted, error = told_apart(text, wrong)
        assert planted > 0.5 + 4 * error + 0.005, wrong


class Forgetful(Gaussian):
    """A planted fault: says that losses are filled, and leaves the fill out."""

    def stage(self, rate_hz: float, space: Space, streams: int, bits: Bits) -> Stage:
        return Gaussian(self.sigma_deg).stage(rate_hz, space, streams, bits)


def test_the_kit_catches_a_fill_that_is_left_out() -> None:
    assert all(result.passed for result in run_kit(CHECKS, Gaussian(3)))
    assert "show which samples are lost" in str(run_kit(CHECKS, Forgetful(3)))


# A window of one or ten samples moves by r, and a long loss follows. The largest area under the
# curve that the promise allows: Phi(r / (sigma sqrt 2)) for rho = r**2 / (2 sigma**2), and e**eps /
# (1 + e**eps) for epsilon.
AFTER_A_WINDOW = [
    ("gaussian:sigma_deg=2,r_deg=2,w=1", 1, 0.7603),
    ("kaleido-uniform:epsilon=1,w=10,r_deg=2", 10, 0.7311),
]


@pytest.mark.stats
@pytest.mark.parametrize(("text", "window", "most"), AFTER_A_WINDOW)
def test_a_loss_tells_nothing_more_of_the_window_before_it(
    text: str, window: int, most: float
) -> None:
    streams, lost = 600, 400
    n = window + lost
    areas = {}
    for fill in ("fill", "hold"):
        told = []
        for side in range(2):
            x = np.full((streams, n), float(side) * 2.0)
            ok = np.zeros((streams, n), dtype=bool)
            ok[:, :window] = True
            session = mechanism(f"{text},losses={'fill' if fill == 'fill' else 'keep'}").open_many(
                streams, 100.0, SCREEN, seed=side
            )
            t = np.broadcast_to(np.arange(n) * 10**7, x.shape)
            # A planted fault: recorded gaze is repeated before the noise.
            out = session.push(t, x, np.zeros((streams, n)), ok if fill == "fill" else True | ok)
            told.append(
                out[1].mean(axis=1) + (out[1][:, :window].mean(axis=1) if fill == "fill" else 0)
            )
        areas[fill] = roc_auc_score(np.repeat([0, 1], streams), np.concatenate(told))
    error = 0.5 / np.sqrt(
        streams
    )  # more than the standard error of an area; false alarms below 1e-4
    assert areas["fill"] < most + 4 * error
    assert areas["hold"] > most + 4 * error


# --- the promise
# --------------------------------------------------------------------------------------------------


def test_to_be_lost_is_to_be_anywhere() -> None:
    r = lossy()
    promise = mechanism("kaleido:epsilon=2,w=30,r_deg=1").release(r).guarantee
    assert promise.epsilon == 2
    ((phrase, loss),) = promise.also
    assert "lost" in phrase
    assert loss.numbers()["epsilon"] == 2 * 180
    assert "proofs/losses.md" in promise.reason
    assert "samples are those of the public clock" in " ".join(promise.assumptions)
    # A person adds up over the samples of the clock, not over those that were recorded.
    assert mechanism("gaussian:sigma_deg=1").release(r).guarantee.losses.people == {((0, 640),)}
