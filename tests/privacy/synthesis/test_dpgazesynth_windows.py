"""DPGazeSynth's public grid, windows and run lengths: whole numbers that add up, whatever was
recorded.

What DPGazeSynth's devices send: noise of the right law, and messages of one shape.

Cells that people share: groups on the VR-EyeTracking files, and cells with one contributor.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gazeveil
from gazeveil import Recording, Screen, Sphere
from gazeveil.errors import DataError, ParameterError
from gazeveil.features.table import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.randomness.rng import source
from gazeveil.privacy.synthesis.dpgazesynth.grid import (
    STEPS,
    BudgetSplit,
    CellGrid,
    Windows,
    radius_deg,
    window_samples,
    windows_of,
)
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import DPGazeSynth, DPGazeSynthOneReport
from gazeveil.privacy.synthesis.dpgazesynth.messages import ReportHeader
from gazeveil.privacy.synthesis.dpgazesynth.model import rescaled, rounded, stretched
from gazeveil.privacy.synthesis.dpgazesynth.scheme import (
    Streams,
    degrees,
    message,
    noisy_starts,
    report,
)
from tests.support.laws import assert_distribution
from tests.support.recordings import real
from tests.support.strategies import SCREEN, recordings


@pytest.mark.parametrize("size", [2, 3, 30, 60])
def test_a_screen_has_as_many_steps_as_the_paper_needs_and_a_sphere_those_across_its_seam_besides(
    size: int,
) -> None:
    assert CellGrid(SCREEN, size, wraps=False).transitions == 8 * size**2 - 12 * size + 4
    if size > 2:
        assert CellGrid(Sphere(), size, wraps=True).transitions == 8 * size**2 - 6 * size


def test_steps_lead_to_neighbours_and_have_numbers_of_their_own() -> None:
    grid = CellGrid(SCREEN, 7, wraps=False)
    there = grid.target >= 0
    assert sorted(grid.number[there].tolist()) == list(range(grid.transitions))
    row, column = np.divmod(np.arange(49), 7)
    for k in range(8):
        cells = np.flatnonzero(there[:, k])
        target = grid.target[cells, k]
        assert (target // 7 - row[cells] == STEPS[k, 1]).all()
        assert (target % 7 - column[cells] == STEPS[k, 0]).all()


def test_r_follows_the_tables_or_equation_8() -> None:
    assert radius_deg(Sphere(), 60, "table") == 9
    assert radius_deg(Sphere(), 30, "eq8") == 1
    shorter = min(SCREEN.width_deg, SCREEN.height_deg)
    for text, factor in (("r_deg=None", 3.0), ("r_deg=table", 3.0), ("r_deg=eq8", 1 / 6)):
        from gazeveil import mechanism

        dpgazesynth = mechanism(f"dpgazesynth:epsilon=1,{text}")
        plan = dpgazesynth.scheme().plan(SCREEN, 100.0)  # type: ignore[attr-defined]
        assert float(plan.r_deg) == pytest.approx(factor * shorter / 60)


def test_on_a_sphere_gaze_crosses_the_seam_and_in_the_published_reading_it_jumps_back() -> None:
    before, after = np.array([30 * 60 + 59]), np.array([30 * 60])
    assert CellGrid(Sphere(), 60, wraps=True).directions(before, after).tolist() == [0]
    assert CellGrid(Sphere(), 60, wraps=False).directions(before, after).tolist() == [4]


@given(recordings(), st.integers(2, 40), st.sampled_from([2, 5, 60]))
@settings(max_examples=80, deadline=None)
def test_runs_of_every_window_add_up_whatever_was_lost(
    recording: Recording, samples: int, size: int
) -> None:
    grid = CellGrid(recording.space, size, isinstance(recording.space, Sphere))
    windows = windows_of(recording, grid, samples)
    assert len(windows) == -(-len(recording) // samples)
    totals = np.bincount(windows.window, weights=windows.length, minlength=len(windows))
    assert (totals == samples).all()
    assert (windows.length >= 1).all()
    assert np.isfinite(windows.x_deg).all()
    assert np.isfinite(windows.y_deg).all()
    for cap in (2, 3, 6):
        capped = windows.capped(cap)
        assert capped.shape == (len(windows), cap)
        assert (capped.sum(axis=1) == samples).all()
        assert (capped[:, 0] >= 1).all()
        cells, directions = windows.slots(grid, cap)
        assert cells.shape == directions.shape == (len(windows), cap - 1)
        known = cells >= 0
        assert (known.sum(axis=1) == np.minimum(windows.counts, cap) - 1).all()
        assert (grid.target[cells[known], directions[known]] >= 0).all()


def test_runs_are_those_a_reader_counts_by_hand() -> None:
    grid = CellGrid(SCREEN, 4, wraps=False)
    side = SCREEN.width_deg / 4
    x = (
        np.array([np.nan, 0.5, 0.5, 1.5, np.nan, 1.5, 0.5, 3.5, 3.5, 2.5, np.nan, np.nan, np.nan])
        * side
        - SCREEN.width_deg / 2
    )
    recording = Recording(
        "p",
        "s",
        np.arange(13) * 10**7,
        x,
        np.where(np.isnan(x), np.nan, -SCREEN.height_deg * 0.4),
        space=SCREEN,
        rate_hz=100.0,
    )
    windows = windows_of(recording, grid, 5)
    assert windows.counts.tolist() == [2, 4, 1]
    assert windows.cell.tolist() == [0, 1, 1, 0, 3, 2, 2 * 4 + 2]
    assert windows.length.tolist() == [3, 2, 1, 1, 2, 1, 5]
    assert windows.x_deg.tolist() == [x[1], x[5], 0.0]
    window, place, cell, direction = windows.moves(grid)
    assert window.tolist() == [0, 1, 1, 1]
    assert place.tolist() == [0, 0, 1, 2]
    assert cell.tolist() == [0, 1, 0, 3]
    assert direction.tolist() == [0, 4, 0, 4]


def test_a_window_needs_two_samples_and_a_known_rate() -> None:
    assert window_samples(100.0, 0.5) == 50
    with pytest.raises(DataError, match="fewer than two samples"):
        window_samples(1.0, 0.5)
    unknown = Recording(
        "p",
        "s",
        np.array([5]),
        np.array([1.0]),
        np.array([1.0]),
        space=Screen(10, 10, 10.0, 10.0, 10.0),
    )
    from gazeveil import Cohort

    with pytest.raises(DataError, match="rate of"):
        DPGazeSynth(1).release(Cohort([unknown]))


# --- D4: lengths add up, for all noise
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [2, 3, 50, 125])
def test_d4_noisy_times_become_whole_lengths_that_add_up_to_w(samples: int) -> None:
    rng = np.random.default_rng(1)
    noisy = np.concatenate(
        (
            rng.laplace(0, 500.0, (10_000, 6)),
            -np.abs(rng.laplace(0, 500.0, (500, 6))),
            np.zeros((1, 6)),
            np.full((1, 6), 1e9),
        )
    )
    lengths = stretched(noisy, samples)
    assert lengths.dtype == np.int64
    assert (lengths.sum(axis=1) == samples).all()
    active = (lengths > 0).sum(axis=1)
    assert (lengths >= 0).all()
    assert (active >= 1).all()
    # active runs come first, so none of length 0 lies between two others
    assert all((row[:m] > 0).all() for row, m in zip(lengths, active, strict=True))
    assert (active == np.minimum(np.maximum((noisy > 0).sum(axis=1), 1), samples)).all()


def test_d4_published_times_are_stretched_and_may_be_0() -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 20, 10_000)
    noisy = rng.laplace(0, 300.0, (10_000, 20))
    noisy[:100] = -1.0
    lengths = rescaled(noisy, counts, 50)
    assert (lengths.sum(axis=1) == 50).all()
    assert (lengths >= 0).all()
    assert (lengths[np.arange(20) >= counts[:, None]] == 0).all()
    assert (lengths == 0).any()


def test_rounding_is_never_off_by_one() -> None:
    values = np.array([[0.5, 0.25, 0.25], [1.2, 1.2, 0.6], [3.0, 0.0, 0.0]])
    assert rounded(values, np.array([1, 3, 3])).tolist() == [[1, 0, 0], [1, 1, 1], [3, 0, 0]]


# --- parameters
# --------------------------------------------------------------------------------------------------


def test_a_split_is_three_shares_or_a_ratio_in_words() -> None:
    fifths = (Fraction(3, 5), Fraction(1, 5), Fraction(1, 5))
    assert (
        BudgetSplit.of((0.6, 0.2, 0.2))
        == BudgetSplit.of("3:1:1")
        == BudgetSplit.of(fifths)
        == fifths
    )
    assert str(BudgetSplit.of("1:1:2")) == "1:1:2"
    for bad in ((0.6, 0.2), (0.5, 0.2, 0.2), "3:1", "1:0:1", 3):
        with pytest.raises(ParameterError, match="split"):
            BudgetSplit.of(bad)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 101}, "at most 100"),
        ({"epsilon": 1, "G": 1}, "'G'"),
        ({"epsilon": 1, "G": 1000}, "at most 256"),
        ({"epsilon": 1, "cap": 1}, "'cap'"),
        ({"epsilon": 1, "r_deg": -1}, "r_deg"),
        ({"epsilon": 1, "window_s": 0}, "window_s"),
    ],
)
def test_wrong_parameters_are_refused_in_words(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        DPGazeSynth(**parameters)  # type: ignore[arg-type]


MANY = 120_000


# --- D8: starts
# --------------------------------------------------------------------------------------------------


def radii(scale: float):  # type: ignore[no-untyped-def]
    def cdf(x: np.ndarray, factor: float) -> np.ndarray:
        b = scale * factor
        return np.where(x < 0, 0.0, 1.0 - (1.0 + x / b) * np.exp(-x / b))

    return cdf


def test_d8_starts_have_planar_laplace_radii_and_even_bearings() -> None:
    plan = DPGazeSynth(2).scheme().plan(SCREEN, 100.0)
    assert plan.start_scale_deg == pytest.approx(float(plan.r_deg) / 1.2, rel=2e-3)
    x, y = degrees(plan, noisy_starts(plan, np.full(MANY, 3.0), np.full(MANY, -2.0), source(4)))
    assert_distribution(np.hypot(x - 3.0, y + 2.0), radii(plan.start_scale_deg))
    assert_distribution(
        np.arctan2(y + 2.0, x - 3.0), lambda a, f: np.clip(0.5 + a / (2 * np.pi * f), 0.0, 1.0)
    )


def test_gaze_beside_the_screen_starts_at_its_edge() -> None:
    plan = DPGazeSynth(100).scheme().plan(SCREEN, 100.0)
    x, _ = degrees(plan, noisy_starts(plan, np.full(1000, 80.0), np.zeros(1000), source(1)))
    assert abs(float(np.mean(x)) - SCREEN.width_deg / 2) < 0.01


def test_times_have_laplace_noise_of_scale_2w_minus_2_over_epsilon2() -> None:
    from tests.support.laws import discrete_laplace_cdf

    scheme = DPGazeSynth(1).scheme()
    plan = scheme.plan(SCREEN, 100.0)
    n = MANY // 6 + 1
    still = Windows(
        50, np.zeros(n), np.zeros(n), np.arange(n + 1), np.full(n, 1830), np.full(n, 50)
    )
    told, _ = scheme.ask(
        plan, ReportHeader("p", "s", "1", "", 100.0, 50 * n, 0, SCREEN), still, Streams(3)
    )
    assert told.lengths.shape == (n, 6)
    noise = told.lengths - np.array([50.0, 0, 0, 0, 0, 0])
    assert_distribution(noise, discrete_laplace_cdf(98 / 0.2), step=1.0)


# --- D3, D9: answers
# --------------------------------------------------------------------------------------------------


def test_d3_bits_of_a_message_have_the_oracles_probabilities() -> None:
    recording = gazeveil.simulate(1, 1, 400.0, 20.0, space=SCREEN, seed=2)[0]
    mechanism = DPGazeSynth(10, G=5)
    scheme = mechanism.scheme()
    plan, told = report(scheme, recording, Streams(1))
    oracle = scheme.questions(plan)["steps"]
    bits = np.unpackbits(told.answers["steps"], axis=1, bitorder="little")
    assert bits.shape == (800 * 5, 8 * (-(-oracle.categories // 8)))
    assert not bits[:, oracle.categories :].any()
    windows = windows_of(recording, plan.grid, plan.samples)
    cells, directions = windows.slots(plan.grid, 6)
    truth = np.where(cells >= 0, plan.grid.number[cells, directions], plan.grid.transitions).ravel()
    own = bits[np.arange(len(bits)), truth].mean()
    others = (bits[:, : oracle.categories].sum() - own * len(bits)) / (
        len(bits) * (oracle.categories - 1)
    )
    q = float(oracle.q)
    assert q == pytest.approx(1 / (math.exp(2 / 5) + 1), rel=1e-9)
    assert abs(own - 0.5) < 5 * math.sqrt(0.25 / len(bits))
    assert abs(others - q) < 5 * math.sqrt(q * (1 - q) / (len(bits) * (oracle.categories - 1)))


@pytest.mark.parametrize("text", ["dpgazesynth:epsilon=2", "dpgazesynth-one-report:epsilon=2"])
def test_d9_no_audit_finds_more_than_epsilon_and_the_exact_loss_is_nearly_all_of_it(
    text: str,
) -> None:
    # One run in a million refutes honest noise by chance.
    found = gazeveil.audit(text, trials=20_000, confidence=1 - 1e-6)
    assert not found.refuted
    claimed = found.epsilon_claimed or 0.0
    assert 0.99 * claimed <= (found.epsilon_lower or 0.0) <= claimed
    assert (found.statistical or 0.0) > 0.2 * claimed


def test_the_published_reading_is_refuted_and_its_number_is_not_readable() -> None:
    found = gazeveil.audit("dpgazesynth:epsilon=1,reading=published", trials=1000)
    assert found.refuted
    assert found.epsilon_lower == math.inf


# --- D7: shape
# --------------------------------------------------------------------------------------------------


def shape_of(
    mechanism: DPGazeSynth | DPGazeSynthOneReport, recording: Recording
) -> tuple[int, ...]:
    """Everything about a message that can be seen without reading its numbers."""
    _, told = report(mechanism.scheme(), recording, Streams(1))
    answers = tuple(n for name in sorted(told.answers) for n in told.answers[name].shape)
    return (
        len(message(mechanism.scheme(), "x", recording, Streams(1))),
        len(told),
        told.lengths.shape[1],
        *answers,
        *np.unique(told.counts).tolist(),
    )


SHAPES = [
    DPGazeSynth(1, G=6),
    DPGazeSynth(1, G=6, cap=3),
    DPGazeSynthOneReport(1, G=6),
    DPGazeSynthOneReport(9, G=6),
]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_d7_the_shape_of_a_message_does_not_depend_on_what_was_recorded(
    data: st.DataObject,
) -> None:
    drawn = data.draw(recordings(min_samples=1, max_samples=150))
    empty = drawn.with_(
        x_deg=np.full(len(drawn), np.nan),
        y_deg=np.full(len(drawn), np.nan),
        valid=np.zeros(len(drawn), dtype=np.bool_),
    )
    mechanism = data.draw(st.sampled_from(SHAPES))
    assert shape_of(mechanism, drawn) == shape_of(mechanism, empty)


def test_d7_the_published_reading_fails_that() -> None:
    still = Recording(
        "p", "s", np.arange(100) * 10**7, np.zeros(100), np.zeros(100), space=SCREEN, rate_hz=100.0
    )
    moving = still.with_(x_deg=np.linspace(-20, 20, 100))
    published = DPGazeSynth(1, G=6, reading="published")
    assert shape_of(published, still) != shape_of(published, moving)  # type: ignore[arg-type]
    assert shape_of(DPGazeSynth(1, G=6), still) == shape_of(DPGazeSynth(1, G=6), moving)


STIMULI = ("073", "074", "109")


@pytest.fixture(scope="module")
def headset() -> Cohort:
    """Twelve people who saw the same three videos."""
    cohort = gazeveil.read(real("vr_eyetracking"), format="vr-eyetracking")
    seen = Counter(key[0] for key in cohort.keys if key[1] in STIMULI)
    people = sorted(p for p, count in seen.items() if count == len(STIMULI))[:12]
    return cohort.select(people=people, stimuli=STIMULI).load()


def test_published_k_same_select_averages_the_people_of_a_headset(headset: Cohort) -> None:
    table = gazeveil.event_features(headset, kind="fixation", method="is5t")
    release = gazeveil.mechanism("k-same-select:k=4,reading=published").release(table, seed=1)
    assert release.curator_notes["fewest_sharing"] == 4
    assert not np.isin(release.data.values[:, 0], table.values[:, 0]).all()
    first = {
        (k[0], k[1]): release.data.values[i].tobytes()
        for i, k in enumerate(
            zip(release.data.keys.person, release.data.keys.stimulus, strict=True)
        )
        if release.data.keys.index[i] == 0
    }
    groups = {
        stimulus: frozenset(
            frozenset(p for (p, s), row in first.items() if s == stimulus and row == one)
            for (_, s), one in first.items()
            if s == stimulus
        )
        for stimulus in STIMULI
    }
    # S000: the same groupings are used for each stimulus of a task.
    assert len(set(groups.values())) == 1
    assert {len(g) for g in groups["073"]} == {4}


@pytest.mark.parametrize(
    "text",
    [
        "k-same-synth:k=4",
        "k-same-synth:k=4,reading=published",
        "event-synth-pd:k=4,gamma=4",
        "event-synth-pd:k=4,gamma=4,attempts=2,reading=published",
    ],
)
def test_group_mechanisms_release_the_files_of_a_headset(headset: Cohort, text: str) -> None:
    release = gazeveil.mechanism(text).release(headset, seed=1)
    assert {r.stimulus for r in release.data} == set(STIMULI)
    assert isinstance(release.data[0].space, Sphere)
    raw = {r.key: r.x_deg for r in headset}
    for r in release.data:
        assert r.valid.any()
        assert not np.array_equal(r.x_deg, raw[r.key], equal_nan=True)


@pytest.mark.parametrize(
    "text",
    [
        "k-same-select:k=3",
        "k-same-select:k=3,reading=published",
        "k-same-synth:k=3",
        "k-same-synth:k=3,reading=published",
        "event-synth-pd:k=3,gamma=2",
        "event-synth-pd:k=3,gamma=2,attempts=2,generator=ppca,reading=published",
        "clock-render-k-same:k=3",
        "marginals:k=3,reading=published",
        "marginals:k=3",
        "dp-k-same:k=3,epsilon=50",
    ],
)
def test_a_cell_with_one_contributor_is_never_told_as_that_of_k(headset: Cohort, text: str) -> None:
    mechanism = gazeveil.mechanism(text)

    def data(recordings: list[Recording]) -> Cohort | FeatureTable:
        cohort = Cohort(recordings)
        return (
            gazeveil.event_features(cohort, kind="fixation", method="ivt")
            if mechanism.kind == "table"
            else cohort
        )

    alone = headset[0].with_(stimulus="alone", task="alone")
    release = mechanism.release(data([*headset, alone]), seed=1)
    notes = release.curator_notes
    assert notes["fewest_sharing"] <= notes["most_sharing"] <= 12
    if mechanism.claim.definition == "epsilon-dp":
        # Its noise hides who has which recordings, so the cell stays, and the curator is told.
        assert notes["fewest_sharing"] == 1
        return
    assert notes["fewest_sharing"] > 1
    keys = release.data.keys
    stimuli = [key[1] for key in keys] if isinstance(keys, tuple) else keys.stimulus.tolist()
    assert set(stimuli) == set(STIMULI)
    with pytest.raises(DataError, match="Nothing was released"):
        mechanism.release(data([r.with_(session=r.person, task=r.person) for r in headset]), seed=1)


def test_the_published_defaults_are_the_letter_of_the_papers() -> None:
    synth = gazeveil.mechanism("k-same-synth:k=4,reading=published")
    assert synth.parameters()["detector"] == "is5t"
    assert gazeveil.mechanism("k-same-synth:k=4").parameters()["detector"] == "ivt"
    published = gazeveil.mechanism("event-synth-pd:k=4,gamma=2,reading=published").parameters()
    assert [published[n] for n in ("generator", "probability", "detector", "failed")] == [
        "cvae",
        "latent",
        "is5t",
        "release",
    ]
    window = gazeveil.mechanism("dpgazesynth:epsilon=3,G=30,reading=published")
    layout = window.scheme().plan(Sphere(), 100.0)
    assert float(layout.r_deg) == pytest.approx(180 / (6 * 30))
    corrected = gazeveil.mechanism("dpgazesynth:epsilon=3,G=30")
    assert float(corrected.scheme().plan(Sphere(), 100.0).r_deg) == pytest.approx(3 * 180 / 30)
