"""DPGazeSynth's curator: unbiased sums that merge in any order, and nothing a stranger sends stops
them.

Releases of DPGazeSynth: synthetic recordings like real ones, with the promise of a window, and
starts whose noise is undone on the average.
"""

import json
import math
import pickle
import struct
import zlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Screen, Sphere
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Handle
from gazeveil.privacy.noise.local import OUE
from gazeveil.privacy.promise.loss import Change
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.rational import format_exact
from gazeveil.privacy.synthesis.dpgazesynth.curator import Curator, added_up, synthetic
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid, windows_of
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import (
    DPGazeSynth,
    DPGazeSynthOneReport,
    Synthesis,
    shuffled_epsilon,
)
from gazeveil.privacy.synthesis.dpgazesynth.messages import MAGIC, envelopes, seal
from gazeveil.privacy.synthesis.dpgazesynth.model import (
    Transitions,
    blur,
    even,
    from_steps,
    histogram,
    kept_share,
    walks,
)
from gazeveil.privacy.synthesis.dpgazesynth.scheme import (
    Streams,
    degrees,
    looked_at,
    message,
    noisy_starts,
)
from gazeveil.utility.maps import jensen_shannon
from tests.support.strategies import SCREEN

KINDS = [
    DPGazeSynth(5, G=8),
    DPGazeSynth(5, G=8, reading="published"),
    DPGazeSynthOneReport(5, G=8),
]


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return gazeveil.simulate(4, 2, 8.0, 50.0, space=SCREEN, seed=6).load()


def messages(mechanism: Synthesis, cohort: Cohort) -> list[bytes]:
    return [message(mechanism.scheme(), str(mechanism), r, Streams(1, *r.key)) for r in cohort]


def curator(mechanism: Synthesis, *files: bytes) -> Curator:
    made = Curator(mechanism.scheme(), str(mechanism))
    made.add(*files)
    return made


def state(made: Curator) -> object:
    """Everything a curator holds, in an order of its own."""
    sums = {n: (t.supports.tolist(), t.reports) for n, t in sorted(made.sums.items())}
    reports = [
        (r.head, r.x_deg.tolist(), r.y_deg.tolist(), r.lengths.tolist(), r.counts.tolist())
        for r in made.in_order()
    ]
    return sums, reports, made.windows


# --- D1, D2
# --------------------------------------------------------------------------------------------------


def test_d1_d2_estimates_of_steps_are_unbiased_and_have_the_stated_variance(cohort: Cohort) -> None:
    mechanism = DPGazeSynth(5, G=4)
    scheme = mechanism.scheme()
    plan = scheme.plan(SCREEN, 50.0)
    oracle = scheme.questions(plan)["steps"]
    assert isinstance(oracle, OUE)
    counts = np.zeros(oracle.categories, dtype=np.int64)
    for r in cohort:
        cells, directions = windows_of(r, plan.grid, plan.samples).slots(plan.grid, 6)
        counts += np.bincount(
            np.where(
                cells >= 0, plan.grid.number[cells, directions], plan.grid.transitions
            ).ravel(),
            minlength=oracle.categories,
        )
    n, rounds = int(counts.sum()), 200
    variance = np.array([float(oracle.variance(n, Fraction(int(c), n))) for c in counts])
    e = float(oracle.odds)
    assert np.allclose(variance, n * (4 * e / (e - 1) ** 2 + counts / n))
    by_messages = np.array([_estimates(mechanism, cohort, s) for s in range(20)])
    at_once = np.array(
        [oracle.estimate(added_up(oracle, counts, Words(source(s)))) for s in range(rounds)]
    )
    for drawn in (by_messages, at_once):
        assert (np.abs(drawn.mean(axis=0) - counts) < 5 * np.sqrt(variance / len(drawn))).all()
    ratio = ((at_once - counts) ** 2).mean(axis=0) / variance
    assert 0.9 < float(ratio.mean()) < 1.1


def _estimates(mechanism: Synthesis, cohort: Cohort, seed: int) -> np.ndarray:
    scheme = mechanism.scheme()
    made = curator(
        mechanism,
        b"".join(message(scheme, str(mechanism), r, Streams(seed, *r.key)) for r in cohort),
    )
    return scheme.questions(scheme.plan(SCREEN, 50.0))["steps"].estimate(made.sums["steps"])


# --- merging
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda m: m.title)
def test_messages_add_up_to_the_same_in_any_order_and_in_any_number_of_parts(
    mechanism: Synthesis, cohort: Cohort
) -> None:
    made = messages(mechanism, cohort)
    whole = curator(mechanism, *made)
    assert len(whole.reports) == len(cohort)
    assert state(curator(mechanism, *reversed(made))) == state(whole)
    assert state(curator(mechanism, b"".join(made[3:] + made[:3]))) == state(whole)
    rng = np.random.default_rng(1)
    for _ in range(3):
        parts = [curator(mechanism) for _ in range(3)]
        for one in rng.permutation(len(made)):
            parts[int(rng.integers(3))].add(made[one])
        first, second, third = (parts[i] for i in rng.permutation(3))
        second.merge(third)
        first.merge(second)
        assert state(first) == state(whole)
    model = whole.learn()
    again = curator(mechanism, *reversed(made)).learn()
    assert (model.transitions.rows == again.transitions.rows).all()
    drawn = [
        synthetic(mechanism.scheme(), m, whole.in_order()[0], "public", bytes(16))
        for m in (model, again)
    ]
    assert (drawn[0].x_deg == drawn[1].x_deg).all()


def test_curators_that_counted_the_same_message_do_not_merge(cohort: Cohort) -> None:
    made = messages(KINDS[0], cohort)
    first, second = curator(KINDS[0], *made[:2]), curator(KINDS[0], *made[1:3])
    before = state(first)
    with pytest.raises(DataError, match="counted the same message"):
        first.merge(second)
    assert state(first) == before
    with pytest.raises(DataError, match="different public parameters"):
        first.merge(Curator(DPGazeSynth(4, G=8).scheme(), str(DPGazeSynth(4, G=8))))


def test_a_curator_with_nothing_learns_nothing_in_words() -> None:
    with pytest.raises(DataError, match="nothing to learn"):
        curator(KINDS[0]).learn()


# --- hostile messages
# --------------------------------------------------------------------------------------------------


def framed(data: bytes) -> bytes:
    """A message with its checksum made right again."""
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def parts_of(data: bytes) -> tuple[bytes, dict[str, object], bytes]:
    (one,) = [e for e in envelopes(data) if not isinstance(e, str)]
    return data[:40], json.loads(bytes(one.head)), bytes(one.body)


def rebuilt(mechanism: Synthesis, data: bytes, body: bytes | None = None, **head: object) -> bytes:
    """The same message with another head or body, sound in every other way."""
    frame, said, old = parts_of(data)
    text = json.dumps({**said, **head}).encode()
    new = old if body is None else body
    made = frame[:28] + struct.pack("<IQ", len(text), len(new)) + text + new
    return made + struct.pack("<I", zlib.crc32(made))


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda m: m.title)
def test_every_bad_message_is_refused_with_a_reason_counted_and_left_out(
    mechanism: Synthesis, cohort: Cohort
) -> None:
    good, victim = messages(mechanism, cohort)[:2]
    _, _, body = parts_of(victim)
    other = message(mechanism.scheme(), "other parameters", cohort[2], Streams(3))
    bad = {
        "cut short": victim[:-40],
        "is no message": b"x" * 100,
        "version 9": framed(victim[:8] + struct.pack("<H", 9) + victim[10:]),
        "checksum": victim[:200] + bytes([victim[200] ^ 1]) + victim[201:],
        "other public parameters": other,
        "too short": rebuilt(mechanism, victim, body[:-1]),
        "too long": rebuilt(mechanism, victim, body + b"\0"),
        "head cannot be read": rebuilt(mechanism, victim, person=3),
        "rate or its screen": rebuilt(mechanism, victim, rate_hz=-5),
        "length or its beginning": rebuilt(mechanism, victim, samples=-1),
        "another kind of space": rebuilt(mechanism, victim, space={"kind": "sphere"}),
        "reported already": rebuilt(mechanism, good, bytes(body)),
        "a copy": rebuilt(mechanism, good, person="somebody else"),
    }
    wanted = state(curator(mechanism, good))
    for words, data in bad.items():
        made = curator(mechanism, good)
        assert made.add(data) == 0, words
        assert [n for w, n in made.refused.items() if words in w] == [1], (words, made.refused)
        assert state(made) == wanted, words
        assert made.add(victim) == 1


def test_answers_no_honest_device_sends_are_refused(cohort: Cohort) -> None:
    for mechanism in KINDS:
        good, victim = messages(mechanism, cohort)[:2]
        _, _, body = parts_of(victim)
        for last in (b"\xff", b"\0"):
            made = curator(mechanism, good)
            before = state(made)
            assert (
                made.add(
                    rebuilt(
                        mechanism,
                        victim,
                        body[: len(body) // 2] + last * (len(body) - len(body) // 2),
                    )
                )
                == 0
            )
            assert state(made) == before
    published = KINDS[1]
    _, said, body = parts_of(messages(published, cohort)[0])
    assert curator(
        published, rebuilt(published, messages(published, cohort)[0], b"\0\0" + body[2:])
    ).refused
    assert said["samples"] == 400


def test_no_random_bytes_crash_the_sum(cohort: Cohort) -> None:
    mechanism = KINDS[2]
    good, victim = messages(mechanism, cohort)[:2]
    made, rng = curator(mechanism, good), np.random.default_rng(5)
    before = state(made)
    for _ in range(300):
        broken = bytearray(victim)
        for _ in range(int(rng.integers(1, 4))):
            broken[int(rng.integers(len(broken)))] = int(rng.integers(256))
        made.add(
            framed(bytes(broken))
            if rng.random() < 0.7
            else bytes(broken[: int(rng.integers(len(broken)))])
        )
        made.add(MAGIC + rng.bytes(int(rng.integers(200))))
    honest = {k for k in made.reports if k not in curator(mechanism, good).reports}
    # a changed number that is still a possible answer cannot be told from an honest one; everything
    # else is refused
    assert sum(made.refused.values()) > 300
    assert len(honest) <= 5
    assert state(curator(mechanism, good)) == before


def test_a_message_of_two_windows_of_screens_and_spheres_are_kept_apart(cohort: Cohort) -> None:
    sphere = gazeveil.simulate(1, 1, 4.0, 50.0, space=Sphere(), seed=1)[0]
    with pytest.raises(DataError, match="Screens and spheres"):
        KINDS[0].release(Cohort([cohort[0], sphere.with_(person="q")]))


def test_names_too_long_for_a_message_are_refused_by_the_device(cohort: Cohort) -> None:
    long: Recording = cohort[0].with_(person="x" * 600)
    with pytest.raises(DataError, match="500 characters"):
        message(KINDS[0].scheme(), "x", long, Streams(1))
    assert seal("x", looked_at(KINDS[0].scheme(), cohort[0])[1], b"").startswith(MAGIC)


# --- learning
# --------------------------------------------------------------------------------------------------


def test_d6_rows_add_up_to_one_or_are_flagged_and_even() -> None:
    grid = CellGrid(SCREEN, 9, wraps=False)
    counts = np.random.default_rng(1).normal(0, 5, grid.transitions)
    counts[grid.number[40][grid.number[40] >= 0]] = -1.0
    chain, _ = from_steps(grid, counts, 25.0)
    assert np.allclose(chain.rows.sum(axis=1), 1.0)
    assert (chain.rows >= 0).all()
    assert (chain.rows[grid.number < 0] == 0).all()
    assert chain.uniform[40]
    assert np.allclose(chain.rows[40], 1 / 8)
    assert (chain.rows[~chain.uniform] > 0).any(axis=1).all()


def test_noise_alone_teaches_nothing_and_a_strong_signal_nearly_everything() -> None:
    rng = np.random.default_rng(4)
    public = np.full(8, 1 / 8)
    kept = [
        histogram(1000 + rng.normal(0, 300, 8), 16_000, 300.0**2, public)[1] for _ in range(500)
    ]
    assert np.mean(np.array(kept) > 0) < 0.02
    shares, learned = histogram(
        np.array([9000.0, 1000, 1000, 1000, 1000, 1000, 1000, 1000]), 16_000, 300.0**2, public
    )
    assert learned > 0.9
    assert shares[0] == pytest.approx(9 / 16, abs=0.05)
    assert shares.sum() == pytest.approx(1.0)
    assert kept_share(np.zeros(3), 1.0, 2) == 0.0


TEXTS = [
    "dpgazesynth:epsilon=1,G=12",
    "dpgazesynth:epsilon=1,G=12,reading=published",
    "dpgazesynth-one-report:epsilon=1,G=12",
]


# --- D5, D6
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cohort_of_viewers() -> Cohort:
    return gazeveil.simulate(3, 2, 7.3, 60.0, space=SCREEN, seed=6).load()


@pytest.mark.parametrize("text", TEXTS)
def test_d5_recordings_keep_number_length_and_names_and_nothing_else(
    text: str, cohort_of_viewers: Cohort
) -> None:
    raw = Cohort(
        [r.with_(pupil=np.ones(len(r)), metadata={"secret": 1}) for r in cohort_of_viewers],
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
    cohort_of_viewers: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Synthesis, "still", True)
    for text in TEXTS:
        mechanism = gazeveil.mechanism(text)
        assert isinstance(mechanism, Synthesis)
        for after in mechanism.release(cohort_of_viewers, seed=2).data:
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


def test_a_release_over_files_reads_them_once_and_says_the_same_each_time(
    cohort_of_viewers: Cohort,
) -> None:
    opened: list[str] = []

    def load(index: int) -> Recording:
        opened.append(cohort_of_viewers[index].person)
        return cohort_of_viewers[index]

    # a handle is not pickled with the release, so a lambda will do
    lazy = Cohort(
        [
            Handle(r.person, r.stimulus, lambda i=i: load(i), r.session, r.task)
            for i, r in enumerate(cohort_of_viewers)
        ]
    )  # type: ignore[misc]
    out = gazeveil.mechanism(TEXTS[2]).release(lazy).data
    assert len(opened) == len(cohort_of_viewers)
    assert isinstance(out.items[0], Handle)
    assert (out[0].x_deg == out[0].x_deg).all()
    assert (pickle.loads(pickle.dumps(out))[1].x_deg == out[1].x_deg).all()
    assert len(opened) == len(cohort_of_viewers)


def test_the_order_of_recordings_does_not_matter(cohort_of_viewers: Cohort) -> None:
    turned = Cohort(list(reversed(list(cohort_of_viewers))))
    for text in TEXTS:
        mechanism = gazeveil.mechanism(text)
        one, other = (mechanism.release(c, seed=5).data for c in (cohort_of_viewers, turned))
        assert (one[0].x_deg == other[len(cohort_of_viewers) - 1].x_deg).all()


# --- promise
# --------------------------------------------------------------------------------------------------


def test_the_guarantee_is_of_a_window_and_says_what_a_person_loses(
    cohort_of_viewers: Cohort,
) -> None:
    release = gazeveil.mechanism("dpgazesynth", epsilon=1).release(cohort_of_viewers)
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
        gazeveil.mechanism("dpgazesynth", epsilon=1, reading="published")
        .release(cohort_of_viewers)
        .guarantee
    )
    assert refuted.status == "refuted"
    assert refuted.epsilon is None
    assert "number of fixations" in str(refuted)
    wide = (
        gazeveil.mechanism("dpgazesynth", epsilon=1, r_deg=60).release(cohort_of_viewers).guarantee
    )
    assert wide.user == {"epsilon": 30}
    assert "along a great circle" in str(
        gazeveil.mechanism("dpgazesynth", epsilon=1)
        .release(gazeveil.simulate(1, 1, 3, 60, seed=1))
        .guarantee
    )


def test_shuffling_is_a_number_of_its_own_and_only_where_the_theorem_holds(
    cohort_of_viewers: Cohort,
) -> None:
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
