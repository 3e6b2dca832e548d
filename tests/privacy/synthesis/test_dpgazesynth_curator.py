"""DPGazeSynth's curator: unbiased sums that merge in any order, and nothing a stranger sends stops
them.
"""

import json
import struct
import zlib
from fractions import Fraction

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording, Sphere
from gazeveil.errors import DataError
from gazeveil.privacy.noise.local import OUE
from gazeveil.privacy.randomness.rng import Words, source
from gazeveil.privacy.synthesis.dpgazesynth.curator import Curator, added_up, synthetic
from gazeveil.privacy.synthesis.dpgazesynth.grid import CellGrid, windows_of
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import (
    DPGazeSynth,
    DPGazeSynthOneReport,
    Synthesis,
)
from gazeveil.privacy.synthesis.dpgazesynth.messages import MAGIC, envelopes, seal
from gazeveil.privacy.synthesis.dpgazesynth.model import from_steps, histogram, kept_share
from gazeveil.privacy.synthesis.dpgazesynth.scheme import Streams, looked_at, message
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
