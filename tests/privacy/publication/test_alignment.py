"""What a tracker's clock and a head's place would tell is gone before gaze is protected.

A recording that is on the public clock passes as it is; any other goes the long way.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from gazeveil import Cohort, Recording, Screen, mechanism
from gazeveil.errors import DataError, ParameterError
from gazeveil.privacy.publication import alignment as module
from gazeveil.privacy.publication.alignment import (
    Alignment,
    aligned,
    look_at,
    public_alignment,
    sources_of_steps,
    usual_rate_hz,
)
from gazeveil.privacy.publication.names import PublicationChoices

UNIX_NS = 1_629_390_345_000_000_000


def recording(t_s: list[float], rate_hz: float, **changes: object) -> Recording:
    t_ns = UNIX_NS + np.rint(np.array(t_s) * 1e9).astype(np.int64)
    numbers = np.arange(len(t_s), dtype=np.float64) % 1000
    return Recording("p", "s", t_ns, 100 + numbers / 10, 90 + numbers / 20, rate_hz=rate_hz).with_(
        **changes
    )


def test_a_regular_recording_of_the_public_rate_passes_bit_for_bit_with_times_from_zero() -> None:
    own = recording([i / 250 for i in range(500)], 250.0, pupil=np.linspace(2, 4, 500))
    made = Alignment(Fraction(250)).applied(own)
    np.testing.assert_array_equal(made.x_deg, own.x_deg)
    np.testing.assert_array_equal(made.y_deg, own.y_deg)
    assert made.pupil is not None
    np.testing.assert_array_equal(made.pupil, own.pupil)
    np.testing.assert_array_equal(made.t_ns, np.arange(500) * 4_000_000)
    again = Alignment(Fraction(250)).applied(made)
    np.testing.assert_array_equal(again.x_deg, made.x_deg)


def test_jitter_moves_no_sample_and_leaves_no_trace_in_times() -> None:
    rng = np.random.default_rng(1)
    jittered = [i / 100 + rng.uniform(-0.003, 0.003) for i in range(1, 400)]
    made = Alignment(Fraction(100)).applied(recording(jittered, 100.0))
    assert made.valid.all()
    np.testing.assert_array_equal(made.x_deg, 100 + np.arange(399) / 10)
    assert set(np.diff(made.t_ns).tolist()) == {10_000_000}


@pytest.mark.parametrize("rate_hz", [60, 90, 100, 101, 250])
def test_losses_and_pauses_stay_where_they_were_at_any_rate(rate_hz: int) -> None:
    times = [i / 100 for i in range(50)] + [1 + i / 100 for i in range(50)]
    valid = np.ones(100, dtype=bool)
    valid[:5] = valid[20:30] = valid[-10:] = False
    own = recording(times, 100.0).with_(valid=valid)
    made = Alignment(Fraction(rate_hz), slowest_hz=100.0).applied(own)
    at_s = made.t_ns / 1e9
    assert made.duration_s == pytest.approx(own.duration_s, abs=2.1 / min(rate_hz, 100))
    slack = 1.6 / min(rate_hz, 100)
    for begin, end in ((0.0, 0.05), (0.2, 0.3), (0.5, 1.0), (1.4, 1.5)):
        inner = (at_s > begin + slack) & (at_s < end - slack)
        assert not made.valid[inner].any()
    for begin, end in ((0.05, 0.2), (0.3, 0.5), (1.0, 1.4)):
        inner = (at_s > begin + slack) & (at_s < end - slack)
        assert made.valid[inner].all()
        # No value comes from a sample that is far from its step.
        sample_s = np.interp(made.x_deg[inner], own.x_deg, np.array(times))
        assert np.abs(sample_s - at_s[inner]).max() < slack
    runs = np.diff(np.flatnonzero(np.diff(made.x_deg[made.valid]) != 0))
    most = Alignment(Fraction(rate_hz), slowest_hz=100.0).most_steps
    assert runs.max(initial=1) <= most


def test_lengths_are_cut_and_filled_up_with_lost_samples() -> None:
    own = recording([i / 100 for i in range(100)], 100.0)
    short = Alignment(Fraction(100), lengths_s={"s": Fraction(1, 2)}).applied(own)
    assert (len(short), int(short.valid.sum())) == (50, 50)
    long = Alignment(Fraction(100), lengths_s={"s": Fraction(3, 2)}).applied(own)
    assert (len(long), int(long.valid.sum())) == (150, 100)
    assert not long.valid[100:].any()


def test_the_public_rate_is_the_usual_one_next_to_the_median() -> None:
    cohort = Cohort(
        [
            recording([i / r for i in range(200)], r).with_(person=str(r))
            for r in (71.912345678912, 72.0345, 71.5)
        ]
    )
    alignment = public_alignment(look_at(cohort, True), PublicationChoices())
    assert alignment.rate_hz == 72
    assert {r.rate_hz for r in aligned(cohort, alignment)} == {72.0}
    assert usual_rate_hz(89.0) == 90


def watched(person: str, screen: Screen, offset_deg: float = 0.0) -> Recording:
    rng = np.random.default_rng(len(person))
    x, y = rng.normal(offset_deg, 3, (2, 100))
    return Recording(person, "s", np.arange(100) * 10_000_000, x, y, space=screen)


def test_a_size_that_was_worked_out_from_a_recording_passes_for_nobody() -> None:
    """As a TX300's is, from the gaze points: thirteen digits of one recording."""
    own = [Screen(1920, 1080, 513.8106178756442 + i, 289.93746 - i, 630.0 + 20 * i) for i in (0, 1)]
    cohort = Cohort([watched("ann", own[0]), watched("bob", own[1])])
    alignment = public_alignment(look_at(cohort, True), PublicationChoices())
    made = aligned(cohort, alignment)
    assert {r.space for r in made} == {Screen(1920, 1080, 510.0, 290.0, 640.0)}
    np.testing.assert_array_equal(made[0].x_deg, cohort[0].x_deg)
    # A person whose files were not among those that were looked at gets the same screen.
    later = watched("eve", Screen(1920, 1080, 517.123456, 291.0, 700.0))
    assert alignment.applied(later).space == made[0].space
    # Of a resolution that nobody else has, no more than centimetres pass.
    alone = alignment.applied(watched("joe", Screen(1280, 800, 301.23456, 188.7, 587.6)))
    assert alone.space == Screen(1280, 800, 300.0, 190.0, 600.0)


def test_sizes_that_people_share_pass_as_they_are_and_the_others_become_one() -> None:
    shared = Screen(1920, 1080, 531.0, 299.0, 600.0)
    odd = [Screen(1920, 1080, 512.34567, 288.2, 633.0), Screen(1920, 1080, 518.7, 290.1, 615.0)]
    people = [("ann", shared), ("bob", shared), ("eve", odd[0]), ("joe", odd[1])]
    cohort = Cohort([watched(*each) for each in people])
    alignment = public_alignment(look_at(cohort, True), PublicationChoices())
    spaces = [r.space for r in aligned(cohort, alignment)]
    assert spaces[:2] == [shared, shared]
    assert spaces[2] == spaces[3] == Screen(1920, 1080, 520.0, 290.0, 620.0)
    assert len(alignment.screens) == 2
    assert alignment.screens.alone == 0


def test_people_who_are_alone_at_a_screen_are_counted_and_said(tmp_path: Path) -> None:
    shared = Screen(1920, 1080, 531.0, 299.0, 600.0)
    people = [("ann", shared), ("bob", shared), ("eve", Screen(1536, 864, 406.4, 228.6, 600.0))]
    cohort = Cohort([watched(*each) for each in people])
    assert public_alignment(look_at(cohort, True), PublicationChoices()).screens.alone == 1
    mechanism("gaussian:sigma_deg=2").release(cohort).write(tmp_path / "out")
    said = (tmp_path / "out" / "PRIVACY.md").read_text("utf-8")
    assert "one person is the only one at a screen, which tells who that is" in said


def test_one_persons_two_sizes_are_shared_by_nobody() -> None:
    own = Screen(1920, 1080, 513.8106178756442, 289.9, 630.0)
    cohort = Cohort([watched("ann", own), watched("ann", own).with_(stimulus="t")])
    alignment = public_alignment(look_at(cohort, True), PublicationChoices())
    assert {r.space for r in aligned(cohort, alignment)} == {
        Screen(1920, 1080, 510.0, 290.0, 630.0)
    }


def test_kept_times_and_kept_rates_are_kept() -> None:
    own = recording([i / 71.9 for i in range(100)], 71.9)
    times = public_alignment(look_at(Cohort([own]), True), PublicationChoices(("times",)))
    np.testing.assert_array_equal(times.applied(own).t_ns, own.t_ns)
    rates = public_alignment(look_at(Cohort([own]), True), PublicationChoices(("rate",)))
    made = rates.applied(own)
    assert made.rate_hz == 71.9
    assert made.t_ns[0] == 0


def test_a_recording_without_a_rate_or_with_a_pause_of_years_is_refused_in_one_sentence() -> None:
    own = recording([0.0], 100.0).with_(rate_hz=math.nan)
    with pytest.raises(DataError, match=r"rate of recording .* is not known"):
        Alignment(Fraction(100)).applied(own)
    with pytest.raises(DataError, match="keep its times"):
        Alignment(Fraction(100)).applied(recording([0.0, 1e7], 100.0))
    with pytest.raises(DataError, match="None of these recordings says its rate"):
        public_alignment(look_at(Cohort([own]), True), PublicationChoices())


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"to": "xml"}, "to"),
        ({"rate_hz": 0}, "rate_hz"),
        ({"rate_hz": 90, "keep": ("rate",)}, "left out where 'rate' is kept"),
        ({"durations": "some"}, "durations"),
        ({"durations": {"s": -1}}, "durations"),
        ({"durations": "common", "keep": ("times",)}, "keep where times are kept"),
        ({"k": 1}, "k"),
    ],
)
def test_choices_that_make_no_sense_are_refused(choices: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        PublicationChoices(**choices)  # type: ignore[arg-type]


@pytest.mark.parametrize("ratio", [0.9, 0.985, 1.0, 1.004, 1.015, 1.2, 1.9])
def test_no_sample_reaches_more_steps_than_the_certificate_says(ratio: float) -> None:
    rng = np.random.default_rng(7)
    own_hz = 100.0
    alignment = Alignment(Fraction(ratio * own_hz), slowest_hz=own_hz)
    for jitter in (0.0, 0.3, 0.7):
        times = np.sort((np.arange(3000) + rng.uniform(-jitter, jitter, 3000)) / own_hz)
        own = recording((times + 1).tolist(), own_hz)
        own = own.with_(valid=np.concatenate(([True], np.diff(own.t_ns) > 0)))
        sources = sources_of_steps(own, float(Fraction(ratio * own_hz)))
        taken = sources[sources >= 0]
        assert (np.diff(taken) >= 0).all()
        assert np.bincount(taken).max() <= alignment.most_steps


N = 1000


def aligned_recording(**changes: object) -> Recording:
    rng = np.random.default_rng(1)
    parts: dict[str, object] = {
        "t_ns": np.rint(np.arange(N) * (1e9 / 120)).astype(np.int64),
        "x_deg": 180 + rng.normal(0, 5, N),
        "y_deg": 90 + rng.normal(0, 5, N),
        "rate_hz": 120.0,
    }
    return Recording("p", "s", **{**parts, **changes})  # type: ignore[arg-type]


def same(a: Recording, b: Recording) -> bool:
    arrays = all(
        np.array_equal(getattr(a, n), getattr(b, n), equal_nan=n != "valid")
        for n in ("t_ns", "x_deg", "y_deg", "valid")
    )
    return arrays and a.rate_hz == b.rate_hz and a.space == b.space and a.labels == b.labels


@pytest.mark.parametrize("length", [None, Fraction(N, 120)])
def test_what_is_aligned_passes_as_the_long_way_would_have_it(
    monkeypatch: pytest.MonkeyPatch, length: Fraction | None
) -> None:
    made = Alignment(Fraction(120), lengths_s={} if length is None else {"s": length})
    one = aligned_recording()
    short = made.applied(one)
    assert np.shares_memory(short.x_deg, one.x_deg), "it took the long way"
    monkeypatch.setattr(module, "_is_aligned", lambda *_: False)
    assert same(short, made.applied(one))


@pytest.mark.parametrize(
    "changes",
    [
        {"t_ns": np.arange(N) * 8_333_333},
        {"t_ns": np.rint(np.arange(N) * (1e9 / 120)).astype(np.int64) + 7},
        {"valid": np.arange(N) != 5},
        {"rate_hz": 119.0},
        {"pupil": np.ones(N)},
        {"labels": {"a": np.full(N, "x")}},
        {"metadata": {"a": 1}},
    ],
    ids=["drifting", "late", "lost", "rate", "pupil", "labels", "metadata"],
)
def test_anything_else_goes_the_long_way(changes: dict[str, object]) -> None:
    one = aligned_recording(**changes)
    assert not np.shares_memory(Alignment(Fraction(120)).applied(one).x_deg, one.x_deg)


def test_another_length_goes_the_long_way() -> None:
    assert (
        len(Alignment(Fraction(120), lengths_s={"s": Fraction(3)}).applied(aligned_recording()))
        == 360
    )


def test_the_public_distance_is_put_in_all_the_same() -> None:
    screen = Screen(1920, 1080, 531.0, 299.0, 612.0)
    rng = np.random.default_rng(2)
    one = aligned_recording(x_deg=rng.normal(0, 3, N), y_deg=rng.normal(0, 3, N), space=screen)
    assert Alignment(Fraction(120)).applied(one).space.distance_mm == 600.0
