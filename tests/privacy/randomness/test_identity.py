"""No noise protects twice and no recording has two noises: forks, pickles, copies, restarts,
threads and resets of everything that holds noise.
"""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording
from gazeveil.errors import DataError, GazeveilError
from gazeveil.gaze.cohort import Handle
from gazeveil.privacy.randomness.rng import ASSUMPTION, ProcessIdentity, TestStream, Words
from gazeveil.privacy.randomness.supply import KeyedSource, MasterKey, derived_key
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.stream.graded import Graded, GradedSession
from gazeveil.privacy.stream.mechanism import KeyedBits, StreamMechanism
from gazeveil.privacy.stream.session import Session

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

STREAMS = [
    "gaussian:sigma_deg=3",
    "gaussian:sigma_deg=3,reading=published",
    "chain:stages=temporal(K=2)+gaussian(sigma_deg=5)+smoothing(first=2;second=3)",
    "kaleido:epsilon=20,w=50,r_deg=2",
    "kaleido:epsilon=20,w=50,r_deg=2,reading=published",
    "kaleido-uniform:epsilon=20,w=50,r_deg=2",
    "clock-render:epsilon=10,r_deg=2",
]
COHORTS = [
    "k-same-synth:k=2",
    "k-same-synth:k=2,reading=published",
    "event-synth-pd:k=2,gamma=2",
    "clock-render-k-same:k=2",
    "dpgazesynth:epsilon=10,G=12",
    "dpgazesynth-one-report:epsilon=10,G=12",
    "mosaic:epsilon=10,r_deg=2,piece_s=1,gap_s=1/2,crowd=5",
]

N = 1500


def in_child(work: Callable[[], np.ndarray]) -> np.ndarray:
    """What a forked child gets; an error of its own as text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # leaves by _exit whatever happens, so that no test runs twice
        try:
            answer = pickle.dumps(work())
        except GazeveilError as error:
            answer = pickle.dumps(str(error))
        except BaseException as error:
            answer = pickle.dumps(repr(error))
        with os.fdopen(write, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    return found


#: What another process does: it takes a pickle and an expression of `thing`, and answers.
ANSWER = """
import pickle, sys, numpy as np
while True:
    thing, code = pickle.load(sys.stdin.buffer)
    thing = pickle.loads(thing)
    pickle.dump(eval(code), sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""

#: What a process that has none of this one's memory gets out of a pickle.
Restarted = Callable[[Any, str], np.ndarray]


@pytest.fixture(scope="module")
def restarted() -> Iterator[Restarted]:
    """One process for all: to start one takes a second."""
    process = subprocess.Popen(
        [sys.executable, "-c", ANSWER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    def answer(thing: Any, code: str) -> np.ndarray:
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump((pickle.dumps(thing), code), process.stdin)
        process.stdin.flush()
        return pickle.load(process.stdout)

    with process:
        yield answer
        process.kill()


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda s: pickle.loads(pickle.dumps(s)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def gaze(seed: int, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return 180 + np.cumsum(rng.normal(0, 0.2, n)), 90 + np.cumsum(rng.normal(0, 0.1, n))


def push(session: Session, begin: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return session.push(
        np.arange(begin, begin + len(x)) * 10**7, x, y, np.ones(len(x), dtype=bool)
    )[1]


def unrelated(a: np.ndarray, b: np.ndarray) -> bool:
    # Six standard deviations: a test has up to 30 pairs, and a false alarm in ten million runs.
    return abs(np.corrcoef(a, b)[0, 1]) < 6 / np.sqrt(len(a))


# --- sessions
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", STREAMS)
def test_no_copy_of_a_session_repeats_its_noise(text: str, restarted: Restarted) -> None:
    session = mechanism(text).open(100.0)
    x, y = gaze(1, 400)
    push(session, 0, x[:33], y[:33])  # noise is drawn ahead
    rest = partial(push, begin=33, x=x[33:], y=y[33:])
    twins = {name: again(session) for name, again in COPIES.items()}
    found = [rest(twin) for twin in twins.values()]
    found += [in_child(lambda: rest(session)), in_child(lambda: rest(session))]
    code = (
        f"thing.push(np.arange(33, 400) * 10**7, np.array({x[33:].tolist()}),"
        f" np.array({y[33:].tolist()}), np.ones(367, dtype=bool))[1]"
    )
    found.append(restarted(session, code))
    found.append(rest(session))
    for i, one in enumerate(found):
        for other in found[:i]:
            assert len(one) == len(other)
            assert not np.array_equal(one, other)
    if text == "gaussian:sigma_deg=3":
        for i, one in enumerate(found):
            assert all(unrelated(one - x[33:], other - x[33:]) for other in found[:i])


@pytest.mark.parametrize("text", STREAMS)
def test_a_reset_session_does_not_repeat_its_noise(text: str) -> None:
    session = mechanism(text).open(100.0)
    x, y = gaze(2, 400)
    first = push(session, 0, x, y)
    session.reset()
    again = push(session, 0, x, y)
    assert len(first) == len(again)
    assert not np.array_equal(first, again)
    if text == "gaussian:sigma_deg=3":
        assert unrelated(first - x, again - x)


def test_threads_that_push_into_a_session_and_its_shallow_copy_never_get_the_same_noise() -> None:
    session = mechanism("gaussian:sigma_deg=300").open(100.0, gazeveil.Sphere())
    twin = copy.copy(session)
    assert twin._stage is not session._stage

    def work(which: Session) -> list[bytes]:
        return [
            push(which, 10 * i, np.full(10, 180.0), np.full(10, 90.0)).tobytes() for i in range(300)
        ]

    with ThreadPoolExecutor(4) as pool:
        seen = [
            block for blocks in pool.map(work, [session, twin, session, twin]) for block in blocks
        ]
    good = [
        block for block in seen if np.isfinite(np.frombuffer(block)).all()
    ]  # threads that share a session have one clock
    assert len(good) > 300
    assert len(set(good)) == len(good)


def test_a_pickle_of_published_noise_does_not_tell_the_noise_to_come() -> None:
    session = mechanism("gaussian:sigma_deg=3,reading=published").open(100.0)
    push(session, 0, *gaze(1, 5))
    normals = session._stage.supply.noises[0]
    assert "_generator" not in normals.__getstate__()
    state = normals._generator.bit_generator.state["state"]["state"]
    assert state[:1].tobytes() not in pickle.dumps(session)


# --- graded sessions
# --------------------------------------------------------------------------------------------------


def graded_push(session: GradedSession, begin: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return session.push(np.arange(begin, begin + len(x)) * 10**7, x, y)[Fraction(5)][1]


def difference_error(mine: np.ndarray, theirs: np.ndarray, seeds: tuple[int, int]) -> float:
    """How far the difference of two wearers' views is from the difference of their gaze, in degrees
    (RMS).
    """
    off = mine - theirs - (gaze(seeds[0])[0] - gaze(seeds[1])[0])
    return float(np.sqrt(np.mean((off - 360 * np.rint(off / 360)) ** 2)))


@pytest.mark.parametrize("way", [*COPIES, "fork", "restart"])
def test_two_wearers_of_one_graded_session_and_its_copy_cannot_be_subtracted(
    way: str, tmp_path: Path, restarted: Restarted
) -> None:
    session = Graded((5, 9)).open(100.0)
    graded_push(session, 0, *gaze(0, 100))  # within a block of noise
    x, y = gaze(3)
    if way == "fork":
        theirs = in_child(lambda: graded_push(session, 100, x, y))
    elif way == "restart":
        data = tmp_path / "gaze.npy"
        np.save(data, np.stack((x, y)))
        theirs = restarted(
            session,
            f"[v[1] for v in thing.push(np.arange(100, {100 + N}) * 10**7,"
            f" *np.load({str(data)!r})).values()][0]",
        )
    else:
        theirs = graded_push(COPIES[way](session), 100, x, y)
    mine = graded_push(session, 100, *gaze(4))
    expected = 5 * np.sqrt(2)
    assert 0.85 * expected < difference_error(mine, theirs, (4, 3)) < 1.15 * expected


def test_a_reset_graded_session_goes_on_with_its_numbers() -> None:
    session = Graded((5, 9)).open(100.0)
    mine = graded_push(session, 0, *gaze(4))
    session.reset()
    theirs = graded_push(session, 0, *gaze(3))
    assert session.count == 2 * N
    assert 0.85 < difference_error(mine, theirs, (4, 3)) / (5 * np.sqrt(2)) < 1.15


def test_threads_that_push_into_a_graded_session_never_get_the_same_noise() -> None:
    session = Graded((300,)).open(100.0)

    times = itertools.count()

    def work(_: int) -> list[bytes]:
        views = [session.push(10**7 * next(times), 180.0, 90.0)[Fraction(300)] for _ in range(400)]
        return [
            x.tobytes() + y.tobytes() for _, x, y, valid in views if valid.all()
        ]  # times of two threads may cross, and such a sample is lost

    with ThreadPoolExecutor(4) as pool:
        seen = [block for blocks in pool.map(work, range(4)) for block in blocks]
    assert session.count == 1600
    assert len(seen) > 100  # on a busy machine half of the times cross
    assert len(set(seen)) > len(seen) - 5  # of 360 * 180 * 2**10 places two may coincide


def test_a_pickled_graded_session_holds_neither_the_key_nor_the_gaze(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = bytes(range(100, 164))
    monkeypatch.setattr(os, "urandom", lambda n: secret[:n])
    session = Graded((5,)).open(100.0)
    graded_push(session, 0, *gaze(1, 50))
    stored = pickle.dumps(session)
    assert not any(secret[i : i + 8] in stored for i in range(56))
    assert gaze(1, 50)[0][-1:].tobytes() not in stored
    session.declare(2)  # a level of the original is none of a copy made before
    assert pickle.loads(stored).levels == (5,)


# --- releases that are drawn when they are looked at
# ------------------------------------------------------------------------------------------


def one(recording: Recording) -> Recording:
    return recording


def lazy(cohort: Cohort) -> Cohort:
    return Cohort(
        [Handle(r.person, r.stimulus, partial(one, r), r.session, r.task) for r in cohort]
    )


@pytest.fixture(scope="module")
def people() -> Cohort:
    return lazy(gazeveil.simulate(5, 2, 6.0, 100.0, seed=1))


def recording(person: str, seed: int, n: int = N, stimulus: str = "s") -> Recording:
    x, y = gaze(seed, n)
    return Recording(person, stimulus, np.arange(n) * 10**7, x, y, rate_hz=100.0)


def loaded(out: Cohort) -> np.ndarray:
    return np.concatenate([np.stack((r.x_deg, r.y_deg)) for r in out], axis=1)


@pytest.mark.parametrize("text", [*STREAMS, *COHORTS])
def test_a_lazy_release_is_the_same_whoever_loads_it(text: str, people: Cohort) -> None:
    m = mechanism(text)
    out, other = m.release(people).data, m.release(people).data
    assert all(isinstance(item, Handle) for item in out.items)
    children = [in_child(lambda: loaded(out)) for _ in range(2)]  # before this process has looked
    with ThreadPoolExecutor(2) as pool:
        threads = list(pool.map(loaded, [out, out]))
    copies = [loaded(copy.copy(out)), loaded(copy.deepcopy(out))]
    mine = loaded(out)
    assert np.isfinite(mine).any()
    for theirs in (*children, *threads, *copies, loaded(out)):
        np.testing.assert_array_equal(theirs, mine)
    assert not np.array_equal(loaded(other), mine)
    try:
        sent = pickle.dumps(out)
    except DataError as error:
        assert "secret keys" in str(error)  # noqa: PT017 - some may be sent, and then say the same
        pickle.dumps(out.load())
    else:
        assert not isinstance(m, StreamMechanism)
        np.testing.assert_array_equal(loaded(pickle.loads(sent)), mine)


def test_forty_forked_loaders_have_one_noise_and_averaging_gains_nothing() -> None:
    truth = recording("a", 1)
    out = mechanism("gaussian:sigma_deg=3").release(lazy(Cohort([truth]))).data
    found = np.array([in_child(lambda: out[0].x_deg) for _ in range(40)])
    assert (found == found[0]).all()

    def rms(x: np.ndarray) -> float:
        return float(np.sqrt(np.mean((x - truth.x_deg) ** 2)))

    assert rms(found.mean(axis=0)) == pytest.approx(rms(found[0]))
    assert 2.7 < rms(found[0]) < 3.3
    np.testing.assert_array_equal(out[0].x_deg, found[0])


def test_recordings_and_releases_have_unrelated_noise() -> None:
    cohort = Cohort([recording("a", 1), recording("b", 1), recording("a", 1, stimulus="t")])
    for data in (cohort, lazy(cohort)):
        one_release, other = (
            mechanism("gaussian:sigma_deg=3").release(data).data for _ in range(2)
        )
        noises = [r.x_deg - gaze(1)[0] for r in (*one_release, *other)]
        for i, noise in enumerate(noises):
            assert all(unrelated(noise, n) for n in noises[:i])


@pytest.mark.parametrize("change", ["gaze", "rate"])
def test_a_file_that_changed_between_two_loads_gets_other_noise(change: str) -> None:
    versions = [
        recording("a", 1),
        recording("a", 2) if change == "gaze" else recording("a", 1).with_(rate_hz=99.0),
    ]
    now = [0]
    m = mechanism("gaussian:sigma_deg=3,losses=keep")
    out = m.release(Cohort([Handle("a", "s", lambda: versions[now[0]])])).data
    noises = []
    for number in (0, 1, 0):
        now[0] = number
        noises.append(out[0].x_deg - versions[number].x_deg)
    np.testing.assert_array_equal(noises[0], noises[2])
    assert unrelated(noises[0], noises[1])


def test_names_that_run_together_are_still_two_names() -> None:
    secret = bytes(32)
    assert derived_key(secret, "a\x1fstr:b", "c") != derived_key(secret, "a", "b\x1fstr:c")
    assert derived_key(secret, "1") != derived_key(secret, 1)
    assert derived_key(secret, "a", "b") != derived_key(secret, "astr:b")
    assert derived_key(secret, "a", 1) != derived_key(secret, "aint:1")
    assert derived_key(secret, "a", "") != derived_key(secret, "a")
    derived_key(secret, "\udce9")  # a file name that is no text
    cohort = lazy(
        Cohort([recording("a\x1fstr:b", 1, stimulus="c"), recording("a", 1, stimulus="b\x1fstr:c")])
    )
    first, second = mechanism("gaussian:sigma_deg=3").release(cohort).data
    assert unrelated(first.x_deg - gaze(1)[0], second.x_deg - gaze(1)[0])


# --- keys, sources, identities
# --------------------------------------------------------------------------------------------------


def test_a_master_key_is_hidden_and_one_in_all_its_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    key = MasterKey()
    assert key._key.hex() not in repr(key)
    assert repr(key._key) not in repr(key)
    assert copy.copy(key) is copy.deepcopy(key) is key
    with pytest.raises(DataError, match="secret keys"):
        pickle.dumps(key)
    assert (key.source("a", 1).take(9) == key.source("a", 1).take(9)).all()
    words = np.concatenate(
        [
            k.source(*labels).take(50)
            for k in (key, MasterKey())
            for labels in (("a",), ("b",), ("a", 1), ("a", "1"))
        ]
    )
    assert len(np.unique(words)) == len(words)
    seeded = pickle.loads(pickle.dumps(MasterKey(7)))
    assert (seeded.source("a").take(9) == TestStream(7, "a").take(9)).all()
    monkeypatch.setattr(os, "urandom", lambda n: b"few")
    with pytest.raises(OSError, match="fewer"):
        MasterKey()


def test_a_tag_belongs_to_the_values_and_the_key() -> None:
    key, x = MasterKey(), np.arange(6.0)
    given: list[tuple[np.ndarray, ...]] = [
        (x,),
        (x + 1e-12,),
        (x[:5],),
        (x.reshape(2, 3),),
        (x.astype(np.int64),),
        (x[:3], x[3:]),
        (x, np.empty(0)),
        (-x,),
    ]
    tags = [key.tag(*g) for g in given] + [MasterKey().tag(x)]
    assert len(set(tags)) == len(tags)
    assert key.tag(np.arange(12.0)[::2] / 2) == tags[0]


def test_a_keyed_source_stays_where_it_was_made() -> None:
    held = MasterKey().source("a")
    held.take(5)
    for again in COPIES.values():
        with pytest.raises(DataError, match="protect twice"):
            again(held)
    for work in (
        lambda: held.take(5),
        lambda: held.child("b").take(5),
        lambda: Words(held).run(_pass, 5, 1),
    ):
        assert "begun in another process" in str(in_child(work))
    assert len(np.unique(np.concatenate([held.take(5), held.child("b").take(5)]))) == 10


def _pass(out: np.ndarray, done: int, words: np.ndarray, position: int) -> tuple[int, int]:
    n = min(len(out) - done, len(words) - position)
    out[done : done + n] = words[position : position + n].view(np.int64)
    return done + n, position + n


@pytest.mark.parametrize("text", STREAMS)
def test_a_session_of_a_release_cannot_go_on_in_a_child_or_a_copy(text: str) -> None:
    m = mechanism(text)
    session = Session(
        m, 100.0, gazeveil.Sphere(), bits=KeyedBits(MasterKey(), recording("a", 1), "a")
    )
    x, y = gaze(1, 400)
    push(session, 0, x[:33], y[:33])
    assert "begun in another process" in str(in_child(lambda: push(session, 33, x[33:], y[33:])))
    for again in COPIES.values():
        with pytest.raises(DataError, match="protect twice"):
            again(session)
    assert len(push(session, 33, x[33:], y[33:])) > 0


def test_threads_that_share_a_keyed_source_never_get_the_same_words() -> None:
    held = KeyedSource(bytes(32))
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: held.take(997), range(200)))
    assert len(np.unique(np.concatenate(drawn))) == 200 * 997


def test_an_identity_knows_forks_and_copies_and_renews_once() -> None:
    mine = ProcessIdentity()
    assert mine.original
    for again in COPIES.values():
        assert not again(mine).original
    assert not bool(in_child(lambda: np.array(mine.original)))

    def renewed() -> np.ndarray:
        forgotten: list[int] = []
        threads = [
            threading.Thread(target=mine.renew, args=(lambda: forgotten.append(1),))
            for _ in range(8)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return np.array([len(forgotten), mine.original])

    np.testing.assert_array_equal(in_child(renewed), [1, True])
    np.testing.assert_array_equal(renewed(), [0, True])


def test_every_promise_assumes_that_no_snapshot_is_resumed_twice() -> None:
    assert "snapshot" in ASSUMPTION
    for text in STREAMS:
        promise = mechanism(text).promise(100.0, gazeveil.Sphere())
        assert (
            promise.status == "refuted"
            or promise.definition == "none"
            or ASSUMPTION in promise.assumptions
        )
    assert ASSUMPTION in Graded((1,)).open(100.0).guarantee().assumptions
