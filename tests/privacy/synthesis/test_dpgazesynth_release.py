"""Releases of DPGazeSynth: synthetic recordings like real ones, with the promise of a window, and
starts whose noise is undone on the average.
"""

import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Handle
from gazeveil.privacy.promise.loss import Change
from gazeveil.privacy.rational import format_exact
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import (
    DPGazeSynth,
    DPGazeSynthOneReport,
    Synthesis,
    shuffled_epsilon,
)
from gazeveil.privacy.synthesis.dpgazesynth.model import Transitions, walks
from gazeveil.privacy.synthesis.dpgazesynth.prior import blur, even
from gazeveil.privacy.synthesis.dpgazesynth.scheme import Streams, degrees, noisy_starts
from gazeveil.utility.saliency import jensen_shannon
from tests.support.strategies import SCREEN

TEXTS = [
    "dpgazesynth:epsilon=1,G=12",
    "dpgazesynth:epsilon=1,G=12,reading=published",
    "dpgazesynth-one-report:epsilon=1,G=12",
]


# --- D5, D6
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(3, 2, 7.3, 60.0, space=SCREEN, seed=6).load()


@pytest.mark.parametrize("text", TEXTS)
def test_d5_recordings_keep_number_length_and_names_and_nothing_else(
    text: str, cohort: Cohort
) -> None:
    raw = Cohort(
        [r.with_(pupil=np.ones(len(r)), metadata={"secret": 1}) for r in cohort],
        {"p1": {"age": 30}},
    )
    out = gazeveil.mechanism(text).release(raw, seed=1).data
    assert out.keys == raw.keys
    for before, after in zip(raw, out, strict=True):
        kept, raw_kept = ((len(r), r.rate_hz, r.space, r.t_ns[0]) for r in (after, before))
        assert kept == raw_kept
        assert after.valid.all()
        assert np.abs(np.diff(after.t_ns) - 1e9 / 60).max() <= 1
        assert (dict(after.labels), dict(after.metadata), after.pupil) == ({}, {}, None)
    assert not out.people["p1"]


def test_d6_gaze_goes_to_neighbours_alone_within_a_window(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Synthesis, "still", True)
    for text in TEXTS:
        mechanism = gazeveil.mechanism(text)
        assert isinstance(mechanism, Synthesis)
        for after in mechanism.release(cohort, seed=2).data:
            plan = mechanism.scheme().plan(after.space, after.rate_hz)
            at = plan.grid.cells(after.x_deg, after.y_deg)
            inside = np.arange(1, len(at)) % plan.samples != 0
            rows, columns = (np.abs(np.diff(v))[inside] for v in np.divmod(at, plan.grid.G))
            # `published` may pass through a run of no samples, so that two steps are seen as one
            most = 6 if mechanism.reading == "published" else 1
            assert rows.max() <= most
            assert columns.max() <= most


def test_d6_walks_follow_their_chain() -> None:
    plan = DPGazeSynth(1, G=5).scheme().plan(SCREEN, 50.0)
    rows = np.zeros((25, 8))
    rows[:, 0] = 0.75
    rows[:, 4] = 0.25
    rows *= plan.grid.number >= 0
    rows[rows.sum(axis=1) == 0] = (plan.grid.number >= 0)[rows.sum(axis=1) == 0]
    rows /= rows.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(1)
    found = walks(
        plan.grid,
        Transitions(rows, np.zeros(25, dtype=np.bool_)),
        np.full(40_000, 12),
        np.full(40_000, 2),
        3,
        rng,
    )
    assert found.shape == (40_000, 3)
    assert set(found[:, 1].tolist()) == {11, 13}
    assert abs(float(np.mean(found[:, 1] == 13)) - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 40_000)
    assert (found[:, 2] == found[:, 1]).all()


def test_recordings_shorter_than_a_window_empty_ones_and_all_lost_ones_are_released_whole() -> None:
    def one(name: str, n: int, lost: bool = False) -> Recording:
        x = np.full(n, np.nan if lost else 1.0)
        return Recording(name, "s", np.arange(n) * 10**7, x, x.copy(), space=SCREEN, rate_hz=100.0)

    odd = Cohort(
        [
            one("empty", 0),
            one("one sample", 1),
            one("short", 7),
            one("lost", 120, lost=True),
            one("exact", 100),
        ]
    )
    for text in TEXTS:
        out = gazeveil.mechanism(text).release(odd).data
        assert [len(r) for r in out] == [0, 1, 7, 120, 100]
        assert all(r.valid.all() for r in out)
    alone = gazeveil.mechanism(TEXTS[0]).release(odd[:1])
    assert len(alone.data[0]) == 0
    with pytest.raises(DataError, match="no recordings"):
        gazeveil.mechanism(TEXTS[0]).release(Cohort([]))
    with pytest.raises(DataError, match="cannot be kept"):
        DPGazeSynth(1).release(odd, keep=("labels",))


def test_a_release_over_files_reads_them_once_and_says_the_same_each_time(cohort: Cohort) -> None:
    opened: list[str] = []

    def load(index: int) -> Recording:
        opened.append(cohort[index].person)
        return cohort[index]

    # a handle is not pickled with the release, so a lambda will do
    lazy = Cohort(
        [
            Handle(r.person, r.stimulus, lambda i=i: load(i), r.session, r.task)
            for i, r in enumerate(cohort)
        ]
    )  # type: ignore[misc]
    out = gazeveil.mechanism(TEXTS[2]).release(lazy).data
    assert len(opened) == len(cohort)
    assert isinstance(out.items[0], Handle)
    assert (out[0].x_deg == out[0].x_deg).all()
    assert (pickle.loads(pickle.dumps(out))[1].x_deg == out[1].x_deg).all()
    assert len(opened) == len(cohort)


def test_the_order_of_recordings_does_not_matter(cohort: Cohort) -> None:
    turned = Cohort(list(reversed(list(cohort))))
    for text in TEXTS:
        mechanism = gazeveil.mechanism(text)
        one, other = (mechanism.release(c, seed=5).data for c in (cohort, turned))
        assert (one[0].x_deg == other[len(cohort) - 1].x_deg).all()


# --- promise
# --------------------------------------------------------------------------------------------------


def test_the_guarantee_is_of_a_window_and_says_what_a_person_loses(cohort: Cohort) -> None:
    release = gazeveil.mechanism("dpgazesynth", epsilon=1).release(cohort)
    g = release.guarantee
    assert (g.definition, g.unit, g.status, g.epsilon) == (
        "epsilon-w-r-t-dp",
        "window",
        "proved",
        1,
    )
    assert g.numbers["w_samples"] == 30
    assert float(g.numbers["r_deg"]) == pytest.approx(3 * SCREEN.height_deg / 60)
    # Two recordings of 7.3 s are 15 windows each; replacing a person moves their beginnings across
    # the whole screen.
    steps = math.ceil(math.hypot(SCREEN.width_deg, SCREEN.height_deg) / float(g.numbers["r_deg"]))
    assert g.user == {"epsilon": 30 * (Fraction(2, 5) + Fraction(3, 5) * steps)}
    assert g.map(Change.person(move_deg=g.numbers["r_deg"])).epsilon == 30
    # Samples in a row that are no window of the grid touch one more.
    assert g.map(Change.window(30, move_deg=g.numbers["r_deg"])).epsilon == 2
    assert "begins at most" in str(g)
    assert "in the plane of the two angles" in str(g)
    refuted = (
        gazeveil.mechanism("dpgazesynth", epsilon=1, reading="published").release(cohort).guarantee
    )
    assert refuted.status == "refuted"
    assert refuted.epsilon is None
    assert "number of fixations" in str(refuted)
    wide = gazeveil.mechanism("dpgazesynth", epsilon=1, r_deg=60).release(cohort).guarantee
    assert wide.user == {"epsilon": 30}
    assert "along a great circle" in str(
        gazeveil.mechanism("dpgazesynth", epsilon=1)
        .release(gazeveil.simulate(1, 1, 3, 60, seed=1))
        .guarantee
    )


def test_shuffling_is_a_number_of_its_own_and_only_where_the_theorem_holds(cohort: Cohort) -> None:
    assert shuffled_epsilon(Fraction(2, 5), 100) is None
    values = [shuffled_epsilon(Fraction(2, 5), n) for n in (10_000, 100_000, 1_000_000)]
    assert all(v is not None for v in values)
    assert values == sorted(values, key=lambda v: v or 0, reverse=True)
    e, n, d = 0.4, 1_000_000, 1e-6
    formula = np.log(
        1
        + (np.exp(e) - 1)
        / (np.exp(e) + 1)
        * (8 * np.sqrt(np.exp(e) * np.log(4 / d)) / np.sqrt(n) + 8 * np.exp(e) / n)
    )
    assert float(values[2] or 0) == pytest.approx(float(formula), rel=1e-6)
    assert float(values[2] or 0) >= float(formula)
    mechanism = DPGazeSynthOneReport(1)
    plan = mechanism.scheme().plan(SCREEN, 100.0)
    many = mechanism.promise([("p", plan, 100_000 * plan.samples)])
    # Even and odd windows answer different questions, so a window hides among half of them.
    assert "at least 50000 of which answer the same questions" in str(many)
    ((_, mixed),) = many.also
    assert 0.0330 < float(mixed.amount) < 0.0332
    assert (
        f"before anybody sees them: epsilon = {format_exact(mixed.amount)}, delta = 0.000001"
        in str(many)
    )
    assert "shuffler" not in str(mechanism.promise([("p", plan, 100 * plan.samples)]))
    assert "shuffler" not in str(
        mechanism.promise([(f"p{i}", plan, 10) for i in range(100_000)])
    ), "of one window each, none has an odd number"
    assert many.epsilon == 1


# --- use
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "scale_deg", "share"),
    [
        (SCREEN, 2.0, 0.4),
        (SCREEN, 0.05, 1.05),
        (Sphere(), 15.0, 0.5),
        (Screen(10, 10, 100.0, 900.0, 300.0), 30.0, 0.9),
    ],
)
def test_the_noise_of_starts_is_undone_on_the_average(
    space: Screen | Sphere, scale_deg: float, share: float
) -> None:
    plan = DPGazeSynth(1, G=30, r_deg=str(scale_deg), split="1:1:1").scheme().plan(space, 50.0)
    plan = replace(plan, starts=Fraction(1))
    grid, rng = plan.grid, np.random.default_rng(1)
    noise = blur(grid, plan.start_scale_deg)
    row, column = (
        np.clip(rng.normal(m, 2.0, (20_000, 2)), 0, 29.9).astype(int) for m in ((9, 18), (8, 20))
    )
    truth = np.concatenate(((row * 30 + column).ravel(), rng.integers(0, 900, 2000)))
    x, y = grid.points(truth, rng.random(len(truth)), rng.random(len(truth)))
    x, y = degrees(plan, noisy_starts(plan, x, y, Streams(1).source("x")))
    seen_row, seen_column = noise.bins(x, y)
    density = noise.density(noise.counted(seen_row, seen_column), even(grid))
    assert density.sum() == pytest.approx(1.0)
    true, seen = (np.bincount(c, minlength=900).astype(float) for c in (truth, grid.cells(x, y)))
    assert jensen_shannon(true, density.ravel()) < share * jensen_shannon(true, seen) + 0.005
    drawn = np.bincount(noise.drawn(seen_row, seen_column, density, rng), minlength=900).astype(
        float
    )
    # starts that are drawn for all windows follow the density; where there is hardly any noise each
    # is drawn where it seems to be
    assert jensen_shannon(drawn, seen if scale_deg < 1 else density.ravel()) < 0.02
