"""Planted bugs of streams: scales, budgets of windows, clocks, keys and copies."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from tests.planted.plant import Plant, everywhere, method

BLOCKS = "tests/privacy/noise/test_blocks.py"
CLOCK_RENDER = "tests/privacy/synthesis/test_clock_render.py"
KALEIDO = "tests/privacy/stream/test_kaleido.py"
KALEIDO_NOISE = "tests/privacy/stream/test_kaleido_noise.py"
MECHANISMS = "tests/privacy/stream/test_mechanisms.py"
REGIONS = "tests/privacy/stream/test_kaleido_noise.py"
RNG = "tests/privacy/randomness/test_rng.py"
SESSIONS = "tests/privacy/stream/test_sessions.py"
STREAM, NOISE, RANDOM = "privacy.stream", "privacy.noise", "privacy.randomness"
IDENTITY = "tests/privacy/randomness/test_identity.py"


def _plan(change: Any) -> Any:
    """A plan with some of its numbers changed."""

    def make(old: Any) -> Any:
        def plan(*given: Any, **named: Any) -> Any:
            made = old(*given, **named)
            return replace(made, settings=made.settings._replace(**change(made)))

        return plan

    return make


def _narrow(made: Any) -> dict[str, Any]:
    return {"scale_times_units": made.settings.scale_times_units / math.sqrt(2)}


def _test_without_r(made: Any) -> dict[str, Any]:
    return {"test_scale": made.settings.test_scale / float(made.r_steps)}


def _window(by: Any) -> Any:
    return lambda made: {"window": by(made.settings.window)}


def _keeps_everything(old: Any) -> Any:
    def init(self: Any, sigma: int) -> None:
        old(self, sigma)
        self.law = self.law._replace(c=np.uint64(1 << 40))

    return init


def _ring_forgotten(old: Any) -> Any:
    def reset(self: Any) -> None:
        old(self)
        self.states[...] = self.plan.state(len(self.states))

    return reset


def _no_rule(old: Any) -> Any:
    def read_slots(x: Any, y: Any, valid: Any, length: int, window: int, *rest: Any) -> None:
        old(x, y, valid, length, 1, *rest)

    return read_slots


def _half_rho(old: Any) -> Any:
    return lambda self, r_deg: old(self, r_deg) / 2


def _one_key(old: Any) -> Any:
    return lambda self, streams, *keys: [self.master.source(*keys)]


def _unbound(old: Any) -> Any:
    return lambda self, *arrays: ""


def _per_process(old: Any) -> Any:
    return lambda self, *arrays: old(self, *arrays) + str(os.getpid())


def _per_load(old: Any) -> Any:
    return lambda self, *arrays: old(self, *arrays) + os.urandom(8).hex()


def _constant_key(old: Any) -> Any:
    def begin(self: Any, seed: int | None = None) -> None:
        self.seed = seed
        self._key = b"" if seed is not None else bytes(64)

    return begin


def _same_words(old: Any) -> Any:
    def rekey(self: Any) -> None:
        real, os.urandom = os.urandom, lambda n: bytes(n)
        try:
            old(self)
        finally:
            os.urandom = real

    return rekey


def _first_again(old: Any) -> Any:
    def reset(self: Any) -> None:
        old(self)
        self.count = 0

    return reset


def _shared_key(old: Any) -> Any:
    def draw(self: Any) -> Any:
        from gazeveil.privacy.randomness.supply import MasterKey

        return (
            partial(MasterKey(1).source, "graded", "gaussian", self.bits)
            if self._seed is None
            else old(self)
        )

    return draw


def _whole_state(old: Any) -> Any:
    return lambda self: {k: v for k, v in self.__dict__.items() if k not in ("_identity", "_lock")}


def _floats(old: Any) -> Any:
    def discrete_laplace(scale: Fraction, count: int, words: Any) -> Any:
        uniform = words.source.take(count).astype(np.float64) / 2.0**64 - 0.5
        return np.rint(-float(scale) * np.sign(uniform) * np.log1p(-2 * np.abs(uniform))).astype(
            np.int64
        )

    return discrete_laplace


PLANTS = (
    Plant(
        "r of the narrowest region",
        "Regions give the narrowest of them as the r of a stimulus, so moves inside wider ones are"
        " said to be covered and are not.",
        lambda p: method(
            p,
            f"{STREAM}.kaleido.mechanism",
            "StimulusRegions",
            "r_deg",
            lambda _: lambda self, rule: min(self.widths_deg),
        ),
        (f"{REGIONS}::test_r_is_as_wide_as_a_region_of_the_stimulus",),
    ),
    Plant(
        "planar noise narrower by the square root of 2",
        "The noise of Kaleido's publications has its scale divided by the square root of 2.",
        lambda p: everywhere(p, f"{STREAM}.kaleido.stage", "plan", _plan(_narrow)),
        (f"{KALEIDO_NOISE}::test_publications_on_a_screen_are_planar_laplace",),
        "kaleido-uniform:epsilon=1,w=50,r_deg=2",
        4000,
        False,
    ),
    Plant(
        "test noise without r",
        "The noise of Kaleido's tests does not grow with the radius.",
        lambda p: everywhere(p, f"{STREAM}.kaleido.stage", "plan", _plan(_test_without_r)),
        (f"{KALEIDO_NOISE}::test_scales_never_fall_below_the_exact_ones",),
        "kaleido:epsilon=1,w=50,r_deg=2",
        4000,
        False,
    ),
    Plant(
        "spent budget forgotten",
        "Kaleido remembers what it spent for one sample instead of a window.",
        lambda p: everywhere(p, f"{STREAM}.kaleido.stage", "plan", _plan(_window(lambda w: 1))),
        (f"{KALEIDO}::test_no_window_of_ten_thousand_streams_spends_or_tests_too_much",),
    ),
    Plant(
        "window one sample short",
        "Kaleido gives budget back one sample too early.",
        lambda p: everywhere(
            p, f"{STREAM}.kaleido.stage", "plan", _plan(_window(lambda w: max(1, w - 1)))
        ),
        (f"{KALEIDO}::test_no_window_of_ten_thousand_streams_spends_or_tests_too_much",),
    ),
    Plant(
        "reset gives budget back",
        "A reset of Kaleido forgets what was spent in the window across it.",
        lambda p: method(p, f"{STREAM}.kaleido.stage", "LatticeStage", "reset", _ring_forgotten),
        (f"{KALEIDO}::test_after_a_reset_windows_across_it_keep_their_budget",),
    ),
    Plant(
        "spacing rule dropped",
        "The clock reads a good sample in every slot, also where a window then holds one reading"
        " too many.",
        lambda p: everywhere(p, "privacy.synthesis.clock.stage", "read_slots", _no_rule),
        (f"{CLOCK_RENDER}::test_no_window_reads_more_samples_than_its_budget_is_shared_by",),
    ),
    Plant(
        "half the rho",
        "Gaussian noise is accounted for with half of its rho.",
        lambda p: method(p, f"{STREAM}.gaussian", "GaussianLattice", "rho", _half_rho),
        (f"{MECHANISMS}::test_rho_bounds_every_pair_of_neighbours_and_is_nearly_reached",),
    ),
    Plant(
        "key shared by recordings",
        "All recordings of a release get noise under one key.",
        lambda p: method(p, f"{STREAM}.mechanism", "KeyedBits", "sources", _one_key),
        (f"{IDENTITY}::test_recordings_and_releases_have_unrelated_noise",),
        "gaussian:sigma_deg=3",
        100,
    ),
    Plant(
        "key not bound to values",
        "A recording that changed between two loads gets the noise of its old values.",
        lambda p: method(p, f"{RANDOM}.supply", "MasterKey", "tag", _unbound),
        (f"{IDENTITY}::test_a_file_that_changed_between_two_loads_gets_other_noise",),
    ),
    Plant(
        "keys per process",
        "The key of a file's noise is another one in every process that loads it.",
        lambda p: method(p, f"{RANDOM}.supply", "MasterKey", "tag", _per_process),
        (f"{IDENTITY}::test_forty_forked_loaders_have_one_noise_and_averaging_gains_nothing",),
        "gaussian:sigma_deg=3",
        100,
    ),
    Plant(
        "keys per load",
        "A file of a release gets new noise each time that it is loaded.",
        lambda p: method(p, f"{RANDOM}.supply", "MasterKey", "tag", _per_load),
        (f"{SESSIONS}::test_looking_twice_at_a_lazy_release_draws_no_new_noise",),
        "gaussian:sigma_deg=3",
        100,
    ),
    Plant(
        "one key for all releases",
        "Every release has the same master key.",
        lambda p: method(p, f"{RANDOM}.supply", "MasterKey", "__init__", _constant_key),
        (f"{IDENTITY}::test_recordings_and_releases_have_unrelated_noise",),
        "gaussian:sigma_deg=3",
        100,
    ),
    Plant(
        "one seed used twice",
        "The system's source begins with the same words each time.",
        lambda p: method(p, f"{RANDOM}.rng", "SystemSource", "_rekey", _same_words),
        (f"{RNG}::test_system_words_differ_every_time_and_look_uniform",),
        "heatmap-laplace:epsilon=1",
    ),
    Plant(
        "pad reuse after a reset",
        "A graded session numbers its samples from 0 again after a reset, so that their noise comes"
        " again.",
        lambda p: method(p, f"{STREAM}.graded", "GradedSession", "reset", _first_again),
        (f"{IDENTITY}::test_a_reset_graded_session_goes_on_with_its_numbers",),
        "gaussian:sigma_deg=3",
        100,
    ),
    Plant(
        "copies of graded sessions share their pad",
        "A copy of a graded session goes on under the key of the original.",
        lambda p: method(p, f"{STREAM}.graded", "GradedSession", "_draw", _shared_key),
        (f"{IDENTITY}::test_two_wearers_of_one_graded_session_and_its_copy_cannot_be_subtracted",),
        "gaussian:sigma_deg=3",
        100,
    ),
    Plant(
        "forks believe to be the original",
        "A forked child takes noise that was drawn ahead for its parent.",
        lambda p: method(
            p, f"{RANDOM}.rng", "ProcessIdentity", "original", lambda _: property(lambda self: True)
        ),
        (f"{IDENTITY}::test_no_copy_of_a_session_repeats_its_noise",),
        "gaussian:sigma_deg=3",
        100,
    ),
    Plant(
        "pickled noise",
        "A pickled session takes the noise along that was drawn ahead for the original.",
        lambda p: method(p, f"{RANDOM}.supply", "Supply", "__getstate__", _whole_state),
        (f"{SESSIONS}::test_a_copy_never_repeats_protective_noise",),
        "gaussian:sigma_deg=5",
        100,
    ),
    Plant(
        "blocks that keep everything",
        "Gaussian noise by blocks keeps every pair, so that values are uniform within a block.",
        lambda p: method(p, f"{NOISE}.blocks", "BlockSampler", "__init__", _keeps_everything),
        (f"{BLOCKS}::test_values_lean_within_a_block_as_they_should",),
    ),
    Plant(
        "Laplace noise in floating point",
        "Laplace noise is drawn as a float and rounded.",
        lambda p: everywhere(p, f"{NOISE}.exact", "discrete_laplace", _floats),
        ("tests/privacy/noise/test_exact.py::test_discrete_laplace_has_its_probabilities",),
    ),
)
