"""The algebra of promises: losses, changes and maps, and what must hold for all of them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gazeveil
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.composition import ApartMap, RecordingsMap, TogetherMap
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.promise.loss import MEASURES, Change, Loss, PromiseError, worst
from gazeveil.privacy.promise.privacy_map import StreamMap, UnitMap, WindowBudget
from gazeveil.privacy.stream.chain import Chain
from gazeveil.privacy.stream.gaussian import Gaussian, GaussianLattice, GaussianMap
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid, WindowLayout
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import WindowsMap

SCREEN = Screen(1920, 1080, 520.0, 290.0, 600.0)

amounts = st.fractions(min_value=0, max_value=20, max_denominator=100)
deltas = st.fractions(min_value=0, max_value=Fraction(1, 100), max_denominator=10**6)
moves = st.fractions(min_value=Fraction(1, 100), max_value=300, max_denominator=100)
spaces = st.sampled_from([Sphere(), SCREEN])
rates = st.sampled_from([30.0, 60.0, 120.0, 250.0, 59.94])


@st.composite
def losses(draw: st.DrawFn, measures: tuple[str, ...] = MEASURES) -> Loss:
    measure = draw(st.sampled_from(measures))
    return Loss(
        measure,
        draw(amounts),
        draw(deltas) if measure == "approximate" else Fraction(0),
        draw(deltas),
    )


@st.composite
def streams(draw: st.DrawFn) -> StreamMap:
    rate, space = draw(rates), draw(spaces)
    kind = draw(st.integers(0, 2))
    if kind == 0:
        window = draw(st.integers(1, 100))
        readings = draw(st.none() | st.integers(1, window))
        return WindowBudget(
            rate, space, draw(amounts) + 1, window, draw(moves), Fraction(1, 10**12), readings
        )
    if kind == 1:
        return GaussianMap(rate, space, GaussianLattice.of(draw(moves)))
    return windows_map(rate, space, draw(moves), draw(amounts) + 1, draw(amounts))


def windows_map(
    rate: float, space: Space, r: Fraction, starts: Fraction, rest: Fraction
) -> WindowsMap:
    """Windows of half a second whose beginnings and fixations cost so much."""
    layout = WindowLayout(
        CellGrid(space, 4, isinstance(space, Sphere)),
        max(1, round(rate / 2)),
        rate,
        2,
        r,
        starts,
        rest,
        Fraction(0),
    )
    return WindowsMap(rate, space, layout, Fraction(1, 2), Fraction(0))


def at_most(a: Loss, b: Loss) -> bool:
    """Whether a loss is nowhere above another of the same measure."""
    return (
        a.measure == b.measure
        and a.amount <= b.amount
        and a.delta <= b.delta
        and a.delta_num <= b.delta_num
    )


# --- losses
# --------------------------------------------------------------------------------------------------


@given(losses(("pure", "concentrated")), losses(("pure", "concentrated")))
def test_a_sum_is_never_below_its_parts_and_the_worst_is_one_of_them(a: Loss, b: Loss) -> None:
    both, one = a + b, worst([a, b])
    for part in (a, b):
        mine = part if both.measure == part.measure else part.as_concentrated()
        assert at_most(mine, both)
        assert at_most(mine, one)
    assert at_most(one, both)
    assert a + b == b + a


@given(losses(("pure", "approximate")), losses(("pure", "approximate")))
def test_numerical_error_adds_up_with_the_losses(a: Loss, b: Loss) -> None:
    assert (a + b).delta_num == a.delta_num + b.delta_num
    assert a.repeated(3).delta_num == 3 * a.delta_num
    assert a.grouped(3).delta_num == 3 * a.delta_num
    assert worst([a, b]).delta_num == max(a.delta_num, b.delta_num)


@given(losses(), st.integers(1, 6))
def test_a_group_of_steps_costs_its_square_in_zcdp(loss: Loss, steps: int) -> None:
    assert at_most(loss.repeated(steps), loss.grouped(steps)) or loss.grouped(steps).delta == 1
    if loss.measure == "concentrated":
        assert loss.grouped(steps).rho == steps * steps * loss.amount
    assert loss.grouped(1) == loss
    assert loss.grouped(0).amount == 0


def test_a_loss_with_a_delta_has_no_epsilon_at_a_smaller_one() -> None:
    delta = Fraction(1, 1000)
    with pytest.raises(PromiseError, match="no epsilon at delta"):
        Loss.approximate(1, delta).epsilon_at(delta / 2)


# --- tables
# --------------------------------------------------------------------------------------------------


@given(losses(), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5))
def test_a_lift_multiplies_by_what_the_unit_holds(
    loss: Loss, chunks: int, features: int, recordings: int
) -> None:
    table = (
        UnitMap.of("chunk", loss, 8)
        .lift("recording-feature", chunks)
        .lift("recording", features)
        .lift("user", recordings)
    )
    assert table.loss(Change.recording_feature()).amount == chunks * loss.amount
    assert table.loss(Change.recording()).amount == chunks * features * loss.amount
    assert table.loss(Change.person()).amount == chunks * features * recordings * loss.amount
    delta = min(Fraction(1), chunks * features * recordings * loss.delta)
    assert table.loss(Change.person()).delta == delta
    with pytest.raises(PromiseError, match="without knowing how many"):
        table.lift("user", None)


@given(losses(), st.integers(1, 5), st.integers(2, 5), st.integers(2, 5))
@example(Loss("approximate", Fraction(0), Fraction(1, 100)), 5, 5, 5)  # deltas sum to above 1
def test_a_larger_unit_never_loses_less(
    loss: Loss, chunks: int, features: int, recordings: int
) -> None:
    table = (
        UnitMap.of("chunk", loss, 8)
        .lift("recording-feature", chunks)
        .lift("recording", features)
        .lift("user", recordings)
    )
    several = [
        table.loss(c)
        for c in (
            Change.chunk(8),
            Change.recording_feature(),
            Change.recording(),
            Change.person(),
            Change.person(count=2),
        )
    ]
    for small, large in itertools.pairwise(several):
        assert at_most(small, large) or large.delta == 1
    if loss.amount > 0:
        assert several[0].amount < several[3].amount
    # What is proved for a unit holds for its parts, and nothing is known of larger ones.
    whole = UnitMap.of("recording", loss)
    assert whole.loss(Change.recording_feature()) == loss
    with pytest.raises(PromiseError, match="is not known"):
        whole.loss(Change.person())


@pytest.mark.parametrize(
    ("mine", "theirs", "touched"),
    [(32, 32, 1), (24, 32, 2), (8, 32, 4), (32, 8, 1), (6, 8, 2), (10, 15, 2)],
)
def test_chunks_of_other_sizes_touch_as_many_as_they_can(
    mine: int, theirs: int, touched: int
) -> None:
    chunks = [len({row // mine for row in range(i * theirs, (i + 1) * theirs)}) for i in range(60)]
    assert max(chunks) == touched
    assert UnitMap.of("chunk", Loss.pure(1), mine).loss(Change.chunk(theirs)).epsilon == touched


# --- streams
# --------------------------------------------------------------------------------------------------


@given(
    streams(),
    st.integers(1, 400),
    st.integers(0, 200),
    moves,
    st.fractions(min_value=0, max_value=100),
    st.sampled_from(["space", "coordinates"]),
)
def test_a_stream_loses_more_for_more_samples_and_for_larger_moves(
    stream: StreamMap, samples: int, more: int, move: Fraction, farther: Fraction, metric: str
) -> None:
    one = stream.run(samples, move, metric)
    assert at_most(one, stream.run(samples + more, move, metric))
    assert at_most(one, stream.run(samples, move + farther, metric))
    assert at_most(stream.run(samples, move + farther, metric), stream.run(samples, None, metric))
    assert at_most(one, stream.loss(Change.window(samples, move_deg=move, metric=metric, count=2)))
    if isinstance(stream, WindowBudget):
        # Whole windows cost their budget each, a part of one what its readings can be, a far move
        # one r after the other.
        assert stream.run(stream.window * 3, stream.r_deg, metric).epsilon == 3 * stream.epsilon
        assert one.amount > 0
        if 2 * stream.r_deg <= 180:
            assert (
                stream.run(samples, 2 * stream.r_deg, metric).epsilon
                == 2 * stream.run(samples, stream.r_deg, metric).epsilon
            )  # type: ignore[operator]
            assert stream.run(stream.window + 1, stream.r_deg, metric).amount > stream.epsilon
    with pytest.raises(PromiseError, match="depends on its length"):
        stream.loss(Change.person())


@given(rates, spaces, st.fractions(min_value=Fraction(1, 1000), max_value=5))
def test_seconds_are_rounded_up_at_the_streams_own_rate(
    rate: float, space: Space, seconds: Fraction
) -> None:
    stream = WindowBudget(rate, space, Fraction(1), 7, Fraction(1))
    samples = stream.samples_of(Change.window(seconds=seconds, move_deg=1))
    assert samples is not None
    exactly = seconds * Fraction(repr(rate))
    assert exactly <= samples < exactly + 1 or samples == 1
    assert stream.loss(Change.window(seconds=seconds, move_deg=1)) == stream.loss(
        Change.window(samples, move_deg=1)
    )


@pytest.mark.parametrize("move", [Fraction(1, 10), Fraction(5)])
def test_near_a_pole_a_small_move_turns_the_coordinates_by_half_a_turn(move: Fraction) -> None:
    on_sphere, on_screen = (
        GaussianMap(60.0, space, GaussianLattice.of(Fraction(10))) for space in (Sphere(), SCREEN)
    )
    across = on_sphere.run(1, move, "space")
    assert across.amount >= on_sphere.run(1, Fraction(180), "coordinates").amount
    assert across.amount > 100 * on_sphere.run(1, move, "coordinates").amount
    assert on_screen.run(1, move, "space") == on_screen.run(1, move, "coordinates")
    # By the space's own distance the arc of Kaleido's noise counts, wherever it lies.
    arc = WindowBudget(60.0, Sphere(), Fraction(1), 10, move)
    assert arc.run(10, move, "space").epsilon == 1


def test_a_chain_follows_a_change_through_the_stages_before_its_noise() -> None:
    plain = Chain("gaussian(sigma_deg=5;w=1)").promise(60.0, Sphere())
    held = Chain("temporal(K=3;hold=True)+gaussian(sigma_deg=5;w=1)").promise(60.0, Sphere())
    change = Change.sample(1, "coordinates")
    assert held.map(change).amount == 3 * plain.map(change).amount
    assert at_most(plain.map(change), held.map(change))
    assert Chain("smoothing()+gaussian(sigma_deg=5)").promise(60.0, Sphere()).definition == "none"


# --- recordings and people
# --------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(1, 500)),
        min_size=1,
        max_size=8,
    ),
    st.data(),
)
def test_a_merge_is_the_worst_of_its_recordings(
    given_: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    budget = data.draw(amounts) + 1
    where: list[tuple[float, Space]] = [(60.0, Sphere()), (1000.0, Sphere()), (120.0, SCREEN)]
    kinds: list[StreamMap] = [
        WindowBudget(rate, space, budget * (i + 1), 10 * (i + 1), Fraction(2))
        for i, (rate, space) in enumerate(where)
    ]
    merged = RecordingsMap.of((person, kinds[kind], samples) for person, kind, samples in given_)
    used = {kind for _, kind, _ in given_}
    for change in (
        Change.sample(1),
        Change.window(30, move_deg=3),
        Change.window(seconds="1/10", move_deg=1),
    ):
        assert merged.loss(change) == worst(kinds[k].loss(change) for k in used)
        for k in used:
            assert at_most(kinds[k].loss(change), merged.loss(change))
    for _, kind, samples in given_:
        assert at_most(
            kinds[kind].whole(Change.recording(1), samples), merged.loss(Change.recording(1))
        )
    assert at_most(merged.loss(Change.recording(1)), merged.loss(Change.person(1)))
    assert at_most(merged.loss(Change.person(1)), merged.loss(Change.person()))
    assert at_most(merged.loss(Change.person(1)), merged.loss(Change.person(1, count=2)))


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6))
def test_a_person_is_the_sum_of_their_recordings(lengths: list[int]) -> None:
    stream = WindowBudget(60.0, Sphere(), Fraction(1), 20, Fraction(1))
    merged = RecordingsMap.of([*(("a", stream, n) for n in lengths), ("b", stream, 1)])
    assert merged.loss(Change.person(1)).epsilon == sum(-(-n // 20) for n in lengths)
    assert merged.loss(Change.recording(1)).epsilon == -(-max(lengths) // 20)
    unknown = RecordingsMap.of([("a", stream, None)])
    with pytest.raises(PromiseError, match="not known before they are read"):
        unknown.loss(Change.person(1))


def test_a_window_of_unequal_rates_has_the_least_number_of_samples() -> None:
    slow, fast = (
        WindowBudget(rate, Sphere(), Fraction(1), round(rate / 2), Fraction(1))
        for rate in (60.0, 1000.0)
    )
    merged = RecordingsMap.of([("a", slow, 600), ("b", fast, 600)])
    change = Change.window(seconds="1/2", move_deg=1)
    assert merged.samples_of(change) == 30
    assert Guarantee("epsilon-w-r-dp", merged, change, mechanism="x").numbers["w_samples"] == 30
    # So many samples are half a second at 60 Hz, and more of them at 1000 Hz do not cost less.
    assert merged.loss(Change.window(30, move_deg=1)) == merged.loss(change)


class Assuming(Gaussian):
    """Assumes something of its own in each kind of space."""

    def promise(self, rate_hz: float, space: Space) -> Guarantee:
        made = super().promise(rate_hz, space)
        return replace(made, assumptions=(*made.assumptions, f"a {type(space).__name__} is public"))


def test_a_cohort_assumes_what_any_of_its_recordings_does_whichever_comes_first() -> None:
    t, middle = np.arange(200) * 10**7, np.full(200, 10.0)
    recordings = [
        Recording(person, "s", t, middle, middle, space=space, rate_hz=100.0)
        for person, space in (("a", SCREEN), ("b", Sphere()))
    ]
    made = Assuming(5)
    promises = [
        made.release(Cohort(some)).guarantee
        for some in (recordings, recordings[::-1], recordings[:1], recordings[1:])
    ]
    found, alone = (
        [set(p.assumptions) for p in promises[:2]],
        [set(p.assumptions) for p in promises[2:]],
    )
    assert promises[0].delta_num >= max(p.delta_num for p in promises[2:])
    assert found[0] == found[1] == alone[0] | alone[1]
    assert alone[0] != alone[1]


@given(losses(("pure",)), losses(("pure",)), st.integers(1, 3))
def test_releases_about_the_same_people_add_up_and_about_disjoint_ones_do_not(
    a: Loss, b: Loss, count: int
) -> None:
    parts = (UnitMap.of("user", a), UnitMap.of("user", b))
    change = Change.person(count=count)
    assert TogetherMap(parts).loss(change) == a.grouped(count) + b.grouped(count)
    assert ApartMap(parts).loss(change).amount == max(a.amount, b.amount) * count
    assert at_most(ApartMap(parts).loss(change), TogetherMap(parts).loss(change).repeated(count))


@given(st.integers(1, 5), moves, amounts, amounts)
def test_a_person_whose_windows_begin_anywhere_loses_by_the_diameter(
    windows: int, r: Fraction, start: Fraction, rest: Fraction
) -> None:
    stream = windows_map(60.0, Sphere(), r, start, rest)
    merged = RecordingsMap.of([("a", stream, 30 * windows)])
    steps = -(-Fraction(180) // r)
    assert merged.loss(Change.person()).epsilon == windows * (rest + start * steps)
    own = stream.within(Change.window(seconds="1/2", start_deg=r))
    assert own.epsilon == rest + start
    assert at_most(own.repeated(windows), merged.loss(Change.person()))


# --- what is printed
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "kaleido:epsilon=1,w=50,r_deg=2",
        "clock-render:epsilon=1,r_deg=2",
        "gaussian:sigma_deg=5",
        "dpgazesynth:epsilon=1",
        "lpa:epsilon=1,length=40",
    ],
)
def test_every_printed_number_is_one_of_the_map(text: str) -> None:
    from gazeveil.privacy.conformance import sample_data
    from gazeveil.privacy.promise.sentence import other_changes

    mechanism = gazeveil.mechanism(text)
    promised = mechanism.release(sample_data(mechanism.kind)).guarantee
    assert promised.change is not None
    own = promised.map(promised.change).numbers()
    assert {k: v for k, v in promised.numbers.items() if k in own} == own
    for _, change, loss in other_changes(promised):
        assert promised.map(change) == loss
    assert promised.user == promised.map(Change.person(metric=promised.change.metric)).numbers()
    for refused in (promised.with_status("refuted", "x"), promised.tested()):
        with pytest.raises(PromiseError, match="bounds nothing"):
            refused.map(promised.change)
