"""`clock-render`: the clock never reads too much, the noise follows its law, and nothing but the
readings comes out.

`clock-render` at its edges: what is not gaze, recordings of any length and rate, copies, bad
parameters, and the conformance kit.

`clock-render-k-same`: groups share places on one clock, and
nobody's own gaze comes out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.gaze.geometry import distance_deg
from gazeveil.privacy.randomness.rng import TestStream
from gazeveil.privacy.synthesis.clock.render import ClockRender, ClockRenderKSame, Law, crowd, seen
from gazeveil.privacy.synthesis.clock.stage import Clock, NoisySlots, read_slots
from tests.support.clock_gaze import gaze, recorded
from tests.support.laws import assert_distribution, follows
from tests.support.strategies import SCREEN

WIDE = Screen(1000, 1000, 1e6, 1e6, 1000.0)  # nothing is clamped


# Chance of an audit to refute honest noise.
FALSE_ALARM = 1e-6


# --- the clock
# --------------------------------------------------------------------------------------------------


def read_at(clock: Clock, valid: np.ndarray, flush: bool = False) -> list[list[int]]:
    """Numbers of the samples that are read, for each row of `valid`."""
    rows, n = valid.shape
    x = np.tile(np.arange(n, dtype=np.float64), (rows, 1))
    slots = -(-n // clock.length) if flush else n // clock.length
    found, other, ok = (
        np.empty((rows, slots)),
        np.empty((rows, slots)),
        np.empty((rows, slots), dtype=np.bool_),
    )
    read_slots(
        x,
        x.copy(),
        valid,
        clock.length,
        clock.window,
        clock.aim,
        flush,
        clock.state(rows),
        np.zeros((rows, 2)),
        found,
        other,
        ok,
    )
    return [f[o].astype(int).tolist() for f, o in zip(found, ok, strict=True)]


def lossy(rows: int, n: int, seed: int) -> np.ndarray:
    """Nothing lost, random samples, long stretches, the same place of every slot, nearly
    everything.
    """
    rng = np.random.default_rng(seed)
    valid = np.ones((rows, n), dtype=np.bool_)
    kind = np.arange(rows) % 5
    valid[kind == 1] = rng.random(((kind == 1).sum(), n)) < 0.5
    valid[kind == 2] = np.repeat(rng.random(((kind == 2).sum(), -(-n // 7))) < 0.6, 7, axis=1)[
        :, :n
    ]
    valid[kind == 3] = (
        np.arange(n) + rng.integers(0, 13, ((kind == 3).sum(), 1))
    ) % 13 < rng.integers(1, 13, ((kind == 3).sum(), 1))
    valid[kind == 4] = rng.random(((kind == 4).sum(), n)) < 0.08
    return valid


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(
    ("length", "window"),
    [(63, 125), (25, 50), (9, 18), (7, 20), (13, 13), (13, 5), (1, 4), (5, 41)],
)
def test_no_window_reads_more_samples_than_its_budget_is_shared_by(
    late: bool, length: int, window: int
) -> None:
    clock = Clock(length, window, length - 1 if late else length // 2)
    total = 0
    for flush in (False, True):
        for numbers in read_at(clock, lossy(500, 400, length), flush):
            at = np.array(numbers)
            assert (np.diff(at) > 0).all()
            # the (count + 1)-th reading is w samples or more after the first, so no window of w
            # holds both
            assert (at[clock.count :] - at[: -clock.count] >= window).all()
            total += len(at)
    assert total > 1000


def test_a_clock_without_the_rule_would_read_too_much() -> None:
    """Losses alone bring three readings into a window of two slots, unless the rule forbids the
    third.
    """
    clock = Clock(10, 20, 9)
    valid = np.ones((1, 40), dtype=np.bool_)
    valid[0, 10:20] = False
    valid[0, 11] = True
    valid[0, 29] = False
    assert read_at(clock, valid)[0] == [9, 11, 39]
    mutant = replace(clock, window=1)
    assert read_at(mutant, valid)[0] == [9, 11, 28, 39]
    assert 28 - 9 < 20


def test_without_losses_every_slot_is_read_at_its_aim() -> None:
    valid = np.ones((1, 1000), dtype=np.bool_)
    assert read_at(Clock.of(Fraction(1, 4), Fraction(1, 2), 250.0, late=True), valid)[0] == list(
        range(62, 1000, 63)
    )
    assert read_at(Clock.of(Fraction(1, 4), Fraction(1, 2), 250.0, late=False), valid)[0] == list(
        range(31, 976, 63)
    )


@pytest.mark.parametrize(
    ("rate", "length", "window", "count"),
    [(250.0, 63, 125, 2), (100.0, 25, 50, 2), (36.0066, 10, 19, 2), (3.0, 1, 2, 2), (0.5, 1, 1, 1)],
)
def test_slots_and_windows_are_whole_samples_rounded_up(
    rate: float, length: int, window: int, count: int
) -> None:
    clock = Clock.of(Fraction(1, 4), Fraction(1, 2), rate, late=True)
    assert (clock.length, clock.window, clock.count) == (length, window, count)
    assert clock.length / rate >= 0.25


# --- nothing but the readings
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["stream", "offline"])
@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_samples_that_are_not_read_change_nothing_at_all(form: str, space: Any) -> None:
    mechanism = ClockRender(10, 2, form=form)
    one, two = recorded(600, space, 1, lost=0.1), recorded(600, space, 2)
    clock = mechanism.clock(100.0)
    read = read_at(clock, one.valid[None], flush=form == "offline")[0]
    keep = np.zeros(600, dtype=np.bool_)
    keep[read] = True
    x, y = (
        np.where(keep | ~one.valid, a, b)
        for a, b in ((one.x_deg, two.x_deg), (one.y_deg, two.y_deg))
    )
    other = one.with_(x_deg=x, y_deg=y)
    assert (other.x_deg[one.valid] != one.x_deg[one.valid]).mean() > 0.9
    a, b = (mechanism.release(r, seed=3).data for r in (one, other))
    np.testing.assert_array_equal(a.x_deg, b.x_deg)
    np.testing.assert_array_equal(a.y_deg, b.y_deg)
    # and what is read does change it
    moved = one.with_(x_deg=np.where(keep, one.x_deg + 5, one.x_deg))
    assert (mechanism.release(moved, seed=3).data.x_deg != a.x_deg).mean() > 0.5


# --- the noise
# --------------------------------------------------------------------------------------------------


def readings(
    mechanism: ClockRender, space: Any, rows: int, slots: int
) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Noisy readings of gaze that stays at one lattice point."""
    place = (100.25, 60.5) if isinstance(space, Sphere) else (3.25, -2.5)
    clock = mechanism.clock(100.0)
    private = NoisySlots(clock, mechanism.noise(100.0, space), rows, [TestStream(11, "law")])
    n = slots * clock.length
    x, y, ok = private.take(
        np.full((rows, n), place[0]),
        np.full((rows, n), place[1]),
        np.ones((rows, n), dtype=np.bool_),
    )
    assert ok.all()
    return x.ravel(), y.ravel(), place


def radius_cdf(b: float) -> Any:
    """Radius of planar Laplace noise."""

    def cdf(x: np.ndarray, scale: float) -> np.ndarray:
        u = x / (b * scale)
        return np.where(u > 0, 1 - (1 + u) * np.exp(-u), 0.0)

    return cdf


@pytest.mark.parametrize(("epsilon", "r", "slot_s"), [(10, 2, 0.25), (3, 2, 0.1)])
def test_a_reading_has_planar_laplace_noise_of_n_r_over_epsilon(
    epsilon: int, r: int, slot_s: float
) -> None:
    """False alarms: 1e-6. A law of one reading fewer in the window must be rejected, and noise of 5
    % more or less.
    """
    mechanism = ClockRender(epsilon, r, slot_s=slot_s)
    x, y, place = readings(mechanism, WIDE, 40, 3000)
    count = mechanism.clock(100.0).count
    radius = np.hypot(x - place[0], y - place[1])
    b = count * r / epsilon
    assert_distribution(radius, radius_cdf(b))
    assert not follows(radius, radius_cdf((count - 1) * r / epsilon))
    assert b <= mechanism.scale_deg(100.0, WIDE) <= 1.002 * b


@pytest.mark.parametrize(
    "text",
    [
        "clock-render:epsilon=10,r_deg=2",
        "clock-render:epsilon=1,r_deg=2,form=offline",
        "clock-render:epsilon=3,r_deg=5,slot_s=0.1,window_s=0.3",
    ],
)
def test_the_audit_sees_nearly_all_of_the_budget_and_no_more(text: str) -> None:
    result = gazeveil.audit(text, trials=5000, confidence=1 - FALSE_ALARM)
    assert not result.refuted
    assert result.epsilon_claimed is not None
    assert result.epsilon_lower is not None
    assert 0.99 * result.epsilon_claimed < result.epsilon_lower <= result.epsilon_claimed


# --- what comes out
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_a_step_of_gaze_is_shown_in_time_offline_and_within_a_slot_as_a_stream(space: Any) -> None:
    n, at = 1000, 612
    t = np.arange(n) * 4 * 10**6
    x = np.where(np.arange(n) < at, 0.0, 10.0) + (180.0 if isinstance(space, Sphere) else 0.0)
    y = np.full(n, 90.0 if isinstance(space, Sphere) else 0.0)
    r = Recording("p", "s", t, x, y, space=space, rate_hz=250.0)
    length = ClockRender(1000, 1).clock(250.0).length
    crossed = {}
    for form in ("stream", "offline"):
        out = ClockRender(1000, 1, form=form).release(r, seed=1).data
        crossed[form] = int(np.flatnonzero(out.x_deg > x[0] + 5)[0]) - at
        late = out.x_deg[at + 2 * length + 20 :] - x[-1]
        assert np.abs(late).max() < 1.0
    # read at the end of the slot in which it happens, shown after half a saccade
    assert 0 <= crossed["stream"] <= length + 12
    assert abs(crossed["offline"]) <= 0.75 * length
    first = ClockRender(1000, 1).release(r, seed=1).data.valid
    assert np.flatnonzero(first)[0] == length
    assert first[length:].all()
    assert ClockRender(1000, 1, form="offline").release(r, seed=1).data.valid.all()


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
@pytest.mark.parametrize("rate", [60.0, 250.0, 1000.0])
def test_detectors_find_fixations_and_saccades_on_the_main_sequence(
    space: Any, rate: float
) -> None:
    r = recorded(int(60 * rate), space, 5, rate)
    out = ClockRender(50, 1, form="offline").release(r, seed=1).data
    for method in ("ivt", "auto"):
        found = gazeveil.detect(out, method)
        fixations = found.kind == "fixation"
        rate_s = fixations.sum() / 60
        assert 1.0 < rate_s < 4.5
        assert (found.kind == "saccade").sum() > 60
    # a saccade of A degrees takes about 21 + 2.2 A ms: its largest speed is 1.875 A over that
    # (minimum jerk)
    if rate == 1000.0:
        speed = (
            distance_deg(space, out.x_deg[1:], out.y_deg[1:], out.x_deg[:-1], out.y_deg[:-1]) * rate
        )
        found = gazeveil.detect(out, "ivt")
        ratio = []
        for onset, offset in zip(
            found.onset[found.kind == "saccade"], found.offset[found.kind == "saccade"], strict=True
        ):
            a, b = max(onset - 10, 0), min(offset + 10, len(out) - 1)
            away = float(
                distance_deg(space, out.x_deg[a], out.y_deg[a], out.x_deg[b], out.y_deg[b])
            )
            if away > 4:
                ratio.append(speed[a:b].max() / (1.875 * away / (0.021 + 0.0022 * away)))
        assert len(ratio) > 40
        assert 0.9 < np.median(ratio) < 1.3


@pytest.mark.parametrize("form", ["stream", "offline"])
def test_places_stay_on_the_screen_and_wrap_on_the_sphere(form: str) -> None:
    out = ClockRender(1, 10, form=form).release(recorded(3000, SCREEN), seed=1).data
    assert (np.abs(out.x_deg[out.valid]) <= SCREEN.width_deg / 2).all()
    assert (np.abs(out.y_deg[out.valid]) <= SCREEN.height_deg / 2).all()
    t, x, y, ok = gaze(3000, Sphere(), 1)
    around = Recording(
        "p",
        "s",
        t,
        np.mod(x + 180, 360),
        np.clip((y - 90) * 15 + 90, 0, 179.9),
        ok,
        space=Sphere(),
        rate_hz=100.0,
    )
    for epsilon, r in ((1, 10), (10, 2), ("1/1000", 300)):
        got = ClockRender(epsilon, r, form=form).release(around, seed=1).data
        assert (got.x_deg[got.valid] >= 0).all()
        assert (got.x_deg[got.valid] < 360).all()
        assert (got.y_deg[got.valid] < 180).all()


def test_a_fixation_that_is_seen_longer_is_placed_better_and_pursuit_is_followed() -> None:
    t, x = np.arange(100_000) * 10**7, np.zeros(100_000)
    still = Recording("p", "s", t, x + 2, x - 1, space=SCREEN, rate_hz=100.0)
    rms = {}
    for pursuit in (True, False):
        for form in ("stream", "offline"):
            out = ClockRender(5, 2, form=form, pursuit=pursuit).release(still, seed=1).data
            ok = out.valid
            rms[pursuit, form] = float(
                np.sqrt(np.mean((out.x_deg[ok] - 2) ** 2 + (out.y_deg[ok] + 1) ** 2))
            )
    noise = np.sqrt(6) * 2 * 2 / 5
    assert rms[True, "offline"] < rms[True, "stream"] < 0.8 * noise
    assert rms[False, "offline"] < rms[True, "offline"] < 0.6 * noise
    moving = 8 * np.sin(np.arange(6000) / 100 * 0.8)
    follow = Recording("p", "s", t[:6000], moving, np.zeros(6000), space=SCREEN, rate_hz=100.0)
    out = ClockRender(20, 1, form="offline").release(follow, seed=1).data
    assert np.median(np.abs(out.x_deg - moving)) < 0.5
    assert np.corrcoef(out.x_deg, moving)[0, 1] > 0.98


def test_short_losses_are_filled_and_long_ones_are_lost() -> None:
    r = recorded(2000, SCREEN)
    for form in ("stream", "offline"):
        for lost_s, shown in ((0.05, True), (0.8, True), (5.0, False)):
            valid = r.valid.copy()
            valid[700 : 700 + int(lost_s * 100)] = False
            out = (
                ClockRender(10, 2, form=form).release(r.with_(valid=valid), seed=1).data.valid[25:]
            )
            assert out.all() == shown
            if not shown:
                # a second is filled, in whole slots, and the rest is lost
                assert abs((~out).sum() - (lost_s - 1.0) * 100) <= 50
    assert (
        not ClockRender(10, 2, fill_s=0)
        .release(r.with_(valid=np.arange(2000) // 25 % 2 == 0), seed=1)
        .data.valid.all()
    )


# --- bad input and sessions
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["stream", "offline"])
@pytest.mark.parametrize("n", [0, 1, 10, 24, 25, 26])
def test_recordings_of_no_sample_one_sample_and_less_than_a_slot(form: str, n: int) -> None:
    for space in (SCREEN, Sphere()):
        r = recorded(n, space).with_(rate_hz=100.0)
        out = ClockRender(10, 2, form=form).release(r, seed=1).data
        assert len(out) == n
        # as a stream the first slot shows nothing; offline a slot that is not whole is read too
        assert out.valid.sum() == (n if form == "offline" else max(n - 25, 0))
        lost = (
            ClockRender(10, 2, form=form)
            .release(r.with_(valid=np.zeros(n, dtype=np.bool_)), seed=1)
            .data
        )
        assert not lost.valid.any()
        assert np.isnan(lost.x_deg).all()


def test_times_that_go_back_are_lost_and_the_released_ones_never_do() -> None:
    t, x, y, ok = gaze(500, SCREEN, 1)
    back = t.copy()
    back[200:400] = back[0:200]
    session = ClockRender(10, 2).open(100.0, SCREEN, seed=1)
    out = session.push(back, x, y, ok)
    assert (np.diff(out[0]) > 0).all()
    # a second of the last place, then nothing until time goes on
    assert out[3][250:300].all()
    assert not out[3][350:400].any()
    assert out[3][460:].all()


def test_a_recording_of_unknown_rate_is_refused_in_words() -> None:
    with pytest.raises(GazeveilError, match="rate"):
        ClockRender(10, 2).release(
            Recording("p", "s", np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros(1))
        )


def test_a_reset_begins_a_new_slot_and_keeps_the_account_of_the_window() -> None:
    mechanism = ClockRender(10, 2, slot_s=0.1, window_s=0.2)
    session = mechanism.open(100.0, SCREEN, seed=1)
    t, x, y, ok = gaze(400, SCREEN, 1)
    shown = []
    for i in range(0, 400, 14):
        shown.append(session.push(t[i : i + 14], x[i : i + 14], y[i : i + 14], ok[i : i + 14])[3])
        session.reset()
    found = np.concatenate(shown)
    assert found.any()
    assert all(not s[:10].any() for s in shown)
    state = session._stage.slots.states  # type: ignore[attr-defined]
    assert (state[0, 4:] >= 400 - 60).all()


def test_the_offline_form_has_no_session() -> None:
    for verb in ("open", "open_many"):
        with pytest.raises(ParameterError, match="looks at whole recordings"):
            getattr(ClockRender(10, 2, form="offline"), verb)(
                *([100.0] if verb == "open" else [2, 100.0])
            )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": 5000}, "at most 1024"),
        ({"r_deg": 0}, "r_deg"),
        ({"r_deg": 400}, "at most 360"),
        ({"slot_s": 0}, "slot_s"),
        ({"window_s": -1}, "window_s"),
        ({"fill_s": -1}, "fill_s"),
        ({"form": "offlin"}, "Did you mean 'offline'"),
        ({"pursuit": "yes"}, "True or False"),
        ({"reading": "published"}, "reading"),
    ],
)
def test_bad_parameters_are_refused_in_words(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(GazeveilError, match=words):
        ClockRender(**{"epsilon": 1, "r_deg": 2, **parameters})


def test_a_window_of_too_many_samples_is_refused_in_words() -> None:
    with pytest.raises(GazeveilError, match="samples long"):
        ClockRender(1, 2, window_s=3600).open(1000.0)
    with pytest.raises(GazeveilError, match="rate_hz"):
        ClockRender(1, 2).open(float("nan"))


@pytest.mark.parametrize(
    ("epsilon", "r", "window_s"),
    [("1/1000000", 1, 0.5), (1024, 360, 0.01), (1, "1/1024", 0.5), (1, 2, 1000)],
)
def test_the_limits_of_parameters_work(epsilon: Any, r: Any, window_s: Any) -> None:
    for space in (SCREEN, Sphere()):
        for form in ("stream", "offline"):
            out = (
                ClockRender(epsilon, r, window_s=window_s, form=form)
                .release(recorded(300, space), seed=1)
                .data
            )
            assert np.isfinite(out.x_deg[out.valid]).all()
            assert out.valid[-1]


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 1.0, 7.3, 2e6])
def test_any_rate_works(rate: float) -> None:
    t = np.arange(400, dtype=np.int64) * 1000
    for space, middle in ((SCREEN, 0.0), (Sphere(), 90.0)):
        for form in ("stream", "offline"):
            out = (
                ClockRender(10, 2, form=form)
                .release(
                    Recording(
                        "p",
                        "s",
                        t,
                        np.full(400, middle),
                        np.full(400, middle),
                        space=space,
                        rate_hz=rate,
                    ),
                    seed=1,
                )
                .data
            )
            assert np.isfinite(out.x_deg[out.valid]).all()
            assert out.valid[-1] == (form == "offline" or rate < 100)


def test_the_guarantee_says_what_it_promises() -> None:
    g = ClockRender(10, 2).open(250.0).guarantee
    assert g.status == "proved"
    assert dict(g.numbers) == {
        "epsilon": Fraction(10),
        "w_samples": Fraction(125),
        "r_deg": Fraction(2),
    }
    assert "great circle" in str(g)
    assert "in which slots nothing was seen" in str(g)
    assert ClockRender(10, 2).open(250.0, seed=1).guarantee.status == "claimed"


def test_the_offline_form_is_no_stage_of_a_chain() -> None:
    gazeveil.mechanism("chain:stages=clock-render(epsilon=10;r_deg=2)+temporal(K=3)")
    with pytest.raises(ParameterError, match="whole recordings"):
        gazeveil.mechanism(
            "chain:stages=clock-render(epsilon=10;r_deg=2;form=offline)+temporal(K=3)"
        )


def scanpath(
    person: str,
    stimulus: str,
    rng: np.random.Generator,
    space: Any = SCREEN,
    rate: float = 100.0,
    seconds: float = 6.0,
) -> Recording:
    n = int(seconds * rate)
    jumps = np.cumsum(rng.random(n) < 3 / rate)
    gaze = rng.normal(0, 5, (jumps[-1] + 1, 2))[jumps] + rng.normal(0, 0.05, (n, 2))
    middle = (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    t = (np.arange(n) * 1e9 / rate).astype(np.int64)
    return Recording(
        person,
        stimulus,
        t,
        gaze[:, 0] + middle[0],
        np.clip(gaze[:, 1], -13, 13) + middle[1],
        space=space,
        rate_hz=rate,
    )


def cohort(people: int, stimuli: int = 2, space: Any = SCREEN, seed: int = 1) -> Cohort:
    rng = np.random.default_rng(seed)
    return Cohort(
        [
            scanpath(f"p{p}", f"s{s}", rng, space, seconds=float(rng.uniform(4, 8)))
            for p in range(people)
            for s in range(stimuli)
        ]
    )


# --- places
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_a_slot_is_seen_at_its_middle_fifth_or_at_the_nearest_good_sample(space: Any) -> None:
    n, base = 100, (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    x = base[0] + np.arange(n) * 0.1
    valid = np.ones(n, dtype=np.bool_)
    valid[30:45] = False  # the second slot of 25 samples has its end left
    valid[50:75] = False  # the third has nothing
    r = Recording(
        "p", "s", np.arange(n) * 10**7, x, np.full(n, base[1]), valid, space=space, rate_hz=100.0
    )
    found = seen(r, Fraction(1, 4))
    assert (found.length, len(found.places)) == (25, 4)
    at = space.degrees(found.places)[0] if isinstance(space, Sphere) else found.places[:, 0]
    assert at[0] == pytest.approx(x[10:15].mean(), abs=1e-6)
    assert at[1] == pytest.approx(x[29], abs=1e-6)
    assert np.isnan(at[2])
    assert at[3] == pytest.approx(x[85:90].mean(), abs=1e-6)


def test_a_group_looks_where_most_of_it_looks_and_only_with_k_of_it() -> None:
    places = np.zeros((5, 3, 3))
    places[:3, :, 0], places[3:, :, 0] = 10.0, -10.0
    places[:2, 1] = np.nan
    places[0, 2], places[1, 2] = np.nan, np.nan
    out = crowd(places, 3, on_sphere=False)
    assert 10.0 > out[0, 0] > 3.0  # nine to four in squares, not three to two
    assert out[1, 0] < -3.0
    assert np.isnan(crowd(places, 4, on_sphere=False)[1:]).all()
    np.testing.assert_allclose(crowd(np.full((4, 6, 3), 2.5), 4, False), 2.5)


def test_rates_and_lengths_that_differ_share_one_clock() -> None:
    rng = np.random.default_rng(1)
    slow, fast = (
        scanpath("a", "s", rng, rate=100.0, seconds=8.0),
        scanpath("b", "s", rng, rate=200.0, seconds=5.0),
    )
    out = ClockRenderKSame(2).release(Cohort([slow, fast]), seed=1).data
    assert {r.rate_hz for r in out} == {150.0}
    assert {len(r) for r in out} == {750}  # the second longest
    # what both do at the same second is what comes out at that second
    still = [
        Recording(
            p,
            "s",
            (np.arange(int(6 * f)) * 1e9 / f).astype(np.int64),
            np.where(np.arange(int(6 * f)) < 3 * f, -5.0, 5.0),
            np.zeros(int(6 * f)),
            space=SCREEN,
            rate_hz=f,
        )
        for p, f in (("a", 100.0), ("b", 170.0))
    ]
    got = ClockRenderKSame(2).release(Cohort(still), seed=1).data[0]
    crossed = np.flatnonzero(got.x_deg > 0)[0] / got.rate_hz
    assert abs(crossed - 3.0) < 0.25


# --- promises
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [SCREEN, Sphere()], ids=["screen", "sphere"])
def test_everything_under_one_name_has_the_law_of_at_least_k_names(space: Any) -> None:
    data = cohort(11, 3, space)
    laws = ClockRenderKSame(3).laws(data, seed=1)
    records: dict[str, bytes] = {}
    for key in sorted(laws):
        law = laws[key]
        records[key[0]] = records.get(key[0], b"") + b"|".join(
            (key[1].encode(), law.places.tobytes(), str((law.samples, law.rate_hz)).encode())
        )
    assert min(Counter(records.values()).values()) >= 3
    released = ClockRenderKSame(3).release(data, seed=1).data
    assert {r.key: len(r) for r in released} == {k: v.samples for k, v in laws.items()}


def test_the_guarantee_of_k_same_says_what_is_true() -> None:
    g = ClockRenderKSame(2).release(cohort(4)).guarantee
    assert (g.definition, g.unit, g.status, g.k) == ("k-anonymity", "user", "proved", 2)
    assert ClockRenderKSame(2).release(cohort(4), seed=1).guarantee.status == "claimed"


def test_the_audit_catches_places_that_one_member_does_not_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laws = ClockRenderKSame._laws

    def planted(self: Any, data: Any, words: Any) -> Any:
        found, notes = laws(self, data, words)
        first = next(iter(found))
        law = found[first]
        return {
            **found,
            first: Law(law.space, law.rate_hz, law.samples, law.length, law.places * 1.0000001),
        }, notes

    monkeypatch.setattr(ClockRenderKSame, "_laws", planted)
    assert gazeveil.audit("clock-render-k-same:k=4", trials=100).refuted


# --- what comes out, and bad input
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["clock-render-k-same:k=2"])
def test_odd_recordings_are_taken_along(text: str) -> None:
    rng = np.random.default_rng(2)
    t = np.arange(300) * 10**7
    lost = Recording(
        "lost", "s", t, np.full(300, np.nan), np.full(300, np.nan), space=SCREEN, rate_hz=100.0
    )
    one = Recording("one", "s", t[:1], np.zeros(1), np.zeros(1), space=SCREEN, rate_hz=100.0)
    unknown = Recording("unknown", "s", t[:1], np.zeros(1), np.zeros(1), space=SCREEN)
    whole = scanpath("whole", "s", rng)
    mechanism = gazeveil.mechanism(text)
    for group in (
        (whole, lost),
        (lost, lost.with_(person="b")),
        (whole, one),
        (one, one.with_(person="b")),
        (whole, unknown, whole.with_(person="c")),
    ):
        out = mechanism.release(Cohort(list(group)), seed=1).data
        assert len(out) == len(group)
        assert all(np.isfinite(r.x_deg[r.valid]).all() for r in out)
    both = mechanism.release(Cohort([lost, lost.with_(person="b")]), seed=1).data
    assert not any(r.valid.any() for r in both)


def apart(count: int, stimuli: int = 1, spaces: tuple[Any, ...] = (SCREEN,)) -> Cohort:
    """Everybody has one recording; stimuli and spaces take turns."""
    rng = np.random.default_rng(1)
    return Cohort(
        [scanpath(f"p{i}", f"s{i % stimuli}", rng, spaces[i % len(spaces)]) for i in range(count)]
    )


@pytest.mark.parametrize(
    ("parameters", "data", "error", "words"),
    [
        ({"k": 1}, [], ParameterError, "'k' parameter"),
        ({"k": 2, "slot_s": 0}, [], ParameterError, "slot_s"),
        ({"k": 2}, [], ParameterError, "a Cohort"),
        ({"k": 4}, apart(3), DataError, "needs at least 4 people, and this cohort has recording"),
        ({"k": 2}, apart(3, 1, (SCREEN, Sphere())), DataError, "a sphere and some on a screen"),
        ({"k": 2}, apart(5, 5), DataError, "No stimulus, session and task has recordings of 2 m"),
    ],
)
def test_bad_input_is_refused_in_words(
    parameters: dict[str, Any], data: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ClockRenderKSame(**parameters).release(data)


def test_two_screens_become_the_one_between_them() -> None:
    two = apart(2, 1, (SCREEN, Screen(1280, 720, 600, 225, 450)))
    screen = ClockRenderKSame(2).release(two, seed=1).data[0].space
    assert screen == Screen(1280, 720, 500, 225, 450)
