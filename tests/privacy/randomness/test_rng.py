"""Random bits: never twice the same, never without the operating system, and the same values
however they are portioned.
"""

from __future__ import annotations

import os
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazeveil.errors import ParameterError
from gazeveil.privacy.noise.blocks import gaussian_by_blocks
from gazeveil.privacy.noise.exact import discrete_gaussian, discrete_laplace
from gazeveil.privacy.noise.knorm import knorm
from gazeveil.privacy.noise.local import ORACLES
from gazeveil.privacy.noise.planar import planar_laplace
from gazeveil.privacy.randomness import rng
from gazeveil.privacy.randomness.rng import SystemSource, TestStream, Words, source, uniform_below


def pass_through(out: np.ndarray, done: int, words: np.ndarray, position: int) -> tuple[int, int]:
    """A kernel whose values are the words themselves."""
    n = min(len(out) - done, len(words) - position)
    out[done : done + n] = words[position : position + n].view(np.int64)
    return done + n, position + n


SAMPLERS = {
    "laplace": lambda n, w: discrete_laplace(Fraction(7, 3), n, w),
    "wide laplace": lambda n, w: discrete_laplace(Fraction(2**39, 3), n, w),
    "gaussian": lambda n, w: discrete_gaussian(5, n, w),
    "gaussian by blocks": lambda n, w: gaussian_by_blocks(5, n, w),
    "gaussian by blocks of many steps": lambda n, w: gaussian_by_blocks(2**20, n, w),
    "planar": lambda n, w: planar_laplace(4, n, w),
    "knorm": lambda n, w: knorm(5, 100, n, w),
    "knorm with slow draws": lambda n, w: knorm(2, 2**39, n, w),
    "uniform": lambda n, w: uniform_below(np.full(n, 3 * 2**60), w),
    **{
        name: lambda n, w, oracle=oracle: oracle(1, 20).report(np.arange(n) % 1, w)
        for name, oracle in ORACLES.items()
    },
}


@pytest.mark.parametrize("name", SAMPLERS)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 30), max_size=4))
@settings(max_examples=8)
def test_drawing_in_blocks_gives_the_same_values(name: str, seed: int, cuts: list[int]) -> None:
    sampler = SAMPLERS[name]
    whole = sampler(sum(cuts), Words(TestStream(seed)))
    words = Words(TestStream(seed))
    parts = [sampler(c, words) for c in cuts]
    np.testing.assert_array_equal(whole, np.concatenate(parts) if parts else whole[:0])


def test_streams_of_other_seeds_and_keys_are_unrelated_and_the_same_one_repeats() -> None:
    streams = [
        TestStream(1),
        TestStream(2),
        TestStream(1, "a"),
        TestStream(1, "a", "b"),
        TestStream(1, "ab"),
        TestStream(1, 1),
        TestStream(1, "1"),
    ]
    taken = {s.take(4).tobytes() for s in streams}
    assert len(taken) == len(streams)
    assert TestStream(1, "a").take(4).tobytes() in taken
    np.testing.assert_array_equal(TestStream(1).child("a").take(4), TestStream(1, "a").take(4))


@pytest.mark.parametrize("seed", [True, 1.5, "1", None])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(
        ParameterError, match="The 'seed' parameter of TestStream must be a whole number"
    ):
        TestStream(seed)


def test_system_words_differ_every_time_and_look_uniform() -> None:
    a, b = SystemSource().take(100_000), SystemSource().take(100_000)
    assert len(np.unique(np.concatenate((a, b)))) == 200_000
    ones = np.unpackbits(a.view(np.uint8)).mean(dtype=np.float64)
    assert abs(ones - 0.5) < 5 * 0.5 / np.sqrt(64 * 100_000)


def test_the_cipher_is_aes_256_in_counter_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    # NIST SP 800-38A, F.5.5: key, counter, plaintext and ciphertext; the keystream is their
    # difference.
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    secret = bytes.fromhex("601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5")
    monkeypatch.setattr(os, "urandom", lambda n: (key + counter)[:n])
    assert SystemSource().take(4).tobytes() == bytes(
        p ^ s for p, s in zip(plain, secret, strict=True)
    )


def test_a_new_key_is_taken_after_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or real(n))
    monkeypatch.setattr(rng, "REKEY_BYTES", 1024)
    words = SystemSource().take(1024)
    assert asked == [48] * 8
    assert len(np.unique(words)) == 1024


@pytest.mark.parametrize("name", ["laplace", "planar", "knorm", "grr"])
def test_without_the_system_nothing_is_drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(n: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(OSError, match="no entropy"):
        SAMPLERS[name](10, Words(source(None)))


def test_too_few_bytes_from_the_system_stop_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda n: b"short")
    with pytest.raises(OSError, match="fewer random bytes"):
        SystemSource().take(1)


def test_a_failed_new_key_leaves_no_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rng, "REKEY_BYTES", 64)
    system = SystemSource()
    system.take(8)

    def fail(n: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr(os, "urandom", fail)
    for _ in range(2):
        with pytest.raises(OSError, match="no entropy"):
            system.take(1)


def test_after_a_failure_half_used_words_are_not_used_again() -> None:
    class Failing:
        secure = False

        def __init__(self) -> None:
            self.left, self.stream = 2, TestStream(1)

        def take(self, count: int) -> np.ndarray:
            self.left -= 1
            if self.left < 0:
                self.left = 100
                raise OSError("no entropy")
            return self.stream.take(count)

    words = Words(Failing())
    words.run(pass_through, 10, 1)
    assert len(words._left) > 100
    with pytest.raises(OSError, match="no entropy"):
        words.run(pass_through, 1_000_000, 1)
    later = words.run(pass_through, 5000, 1)
    assert np.count_nonzero(later) == 5000
    assert not np.isin(later, TestStream(1).take(256 + (1 << 16)).view(np.int64)).any()


def test_used_words_are_overwritten() -> None:
    given_out: list[np.ndarray] = []

    class Watched:
        secure = True

        def take(self, count: int) -> np.ndarray:
            given_out.append(TestStream(len(given_out)).take(count))
            return given_out[-1]

    words = Words(Watched())
    discrete_laplace(Fraction(3), 100_000, words)
    assert len(given_out) > 2
    assert not any(portion.any() for portion in given_out)


def test_a_pickle_holds_neither_key_nor_unused_words(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = bytes(range(100, 148))
    monkeypatch.setattr(os, "urandom", lambda n: secret[:n])
    words = Words(source(None))
    words.run(pass_through, 10, 1)
    text = pickle.dumps(words)
    assert secret[:32] not in text
    assert secret[32:] not in text
    assert words._left[:1].tobytes() not in text
