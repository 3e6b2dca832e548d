"""Planted bugs of tables, maps and groups of people."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tests.planted.plant import Plant, everywhere, method

TABLES, EXACT = "privacy.tables", "privacy.noise.exact"


DP_KSAME = "tests/privacy/tables/test_dp_ksame.py"
FOURIER = "tests/privacy/tables/test_fourier.py"
BLACK_BOX_TABLES = "tests/privacy/audit/test_black_box.py"
KSAME = "tests/privacy/tables/test_ksame.py"
KSAME_SYNTH = "tests/privacy/synthesis/test_ksame_synth.py"
MARGINALS = "tests/privacy/tables/test_exponential.py"


def _scaled(by: Fraction) -> Any:
    return lambda old: lambda scale, count, words: old(scale * by, count, words)


def _padded_by_others(old: Any) -> Any:
    def lattice(owner: str, seqs: Any, length: Any) -> Any:
        grid = old(owner, seqs, length)
        values = grid.values.copy()
        there = np.arange(grid.length) < np.minimum(seqs.lengths, grid.length)[:, None]
        counts = np.maximum(there.sum(axis=0), 1)
        means = (values * there[:, :, None]).sum(axis=0) // counts[:, None]
        return replace(grid, values=np.where(there[:, :, None], values, means[None]))

    return lattice


def _unclipped(old: Any) -> Any:
    def lattice(owner: str, seqs: Any, length: Any) -> Any:
        from gazeveil.privacy.tables.recordings import STEPS

        grid = old(owner, seqs, length)
        values = grid.values.copy()
        for recording in range(len(seqs.keys)):
            raw = seqs.table.values[seqs.rows(recording)[: grid.length]]
            values[recording, : len(raw)] = np.where(
                np.isfinite(raw), np.rint((raw - grid.low) / grid.step), STEPS // 2
            ).astype(np.int64)
        return replace(grid, values=values)

    return lattice


def _data_range(old: Any) -> Any:
    def public_bounds(owner: str, table: Any) -> Any:
        old(owner, table)
        low, high = np.nanmin(table.values, axis=0), np.nanmax(table.values, axis=0)
        return np.stack((low, np.maximum(high, low + 1e-6)), axis=1)

    return public_bounds


def _chosen_by_data(old: Any) -> Any:
    def perturb(self: Any, blocks: Any, epsilon: Fraction, words: Any) -> Any:
        from gazeveil.privacy.noise.exact import discrete_laplace
        from gazeveil.privacy.tables.noisy import Noisy
        from gazeveil.privacy.tables.recordings import STEPS

        n, k = len(blocks), self.bins(len(blocks), float(epsilon))
        found = np.fft.rfft(blocks - STEPS // 2, axis=0)
        dropped = np.argsort(-np.abs(found), axis=0, kind="stable")[k:]
        scale = Fraction(n * STEPS * math.isqrt(k)) / epsilon
        noise = [discrete_laplace(scale, found.size, words).reshape(found.shape) for _ in range(2)]
        found = found + noise[0] + 1j * noise[1]
        np.put_along_axis(found, dropped, 0.0, axis=0)
        return Noisy(np.fft.irfft(found, n, axis=0) + STEPS / 2, Fraction(0))

    return perturb


def _real_alone(old: Any) -> Any:
    def perturb(self: Any, blocks: Any, epsilon: Fraction, words: Any) -> Any:
        from gazeveil.privacy.tables.recordings import STEPS

        noisy = old(self, blocks, epsilon, words)
        bare = np.fft.rfft(blocks - STEPS // 2, axis=0)
        found = np.fft.rfft(noisy.values - STEPS / 2, axis=0)
        kept = np.abs(found) > 0
        return replace(
            noisy,
            values=np.fft.irfft(
                np.where(kept, found.real + 1j * bare.imag, 0.0), len(blocks), axis=0
            )
            + STEPS / 2,
        )

    return perturb


def _own_lengths(old: Any) -> Any:
    def rebuild(seqs: Any, values: Any) -> Any:
        from gazeveil.privacy.tables.recordings import rebuild_rows

        return rebuild_rows(
            seqs, [v[:n] for v, n in zip(values, seqs.lengths.tolist(), strict=True)]
        )

    return rebuild


def _without_rounding(old: Any) -> Any:
    def grid(owner: str, bits: int, fine: int, rounding: int, epsilon: Any, most: int) -> Any:
        made = old(owner, bits, fine, rounding, epsilon, most)
        return replace(made, sensitivity=-(-fine >> made.shift))

    return grid


def _without_length(old: Any) -> Any:
    return lambda n, epsilon, coarse=0: old(1, epsilon, coarse)


def _half_law(old: Any) -> Any:
    def noise(self: Any, *given: Any) -> Any:
        made = old(self, *given)
        return replace(made, law=made.law / 2)

    return noise


def _unweighted(old: Any) -> Any:
    def weights(self: Any, bins: int) -> Any:
        from gazeveil.privacy.tables.marginals import PARTS

        features = self.codes.shape[1]
        total = np.zeros((self.tasks, features, bins), dtype=np.int64)
        place = (self.task[:, None] * features + np.arange(features)) * bins + self.codes
        counts = np.bincount(place[self.codes >= 0], minlength=total.size).reshape(total.shape)
        return counts * PARTS

    return weights


def _one_fewer(old: Any) -> Any:
    def corrected(self: Any, seqs: Any, words: Any, seed: Any) -> Any:
        return replace(
            old(replace(self, k=max(2, self.k - 1)), seqs, words, seed), promised=self._guarantee()
        )

    return corrected


def _one_fewer_alike(old: Any) -> Any:
    return lambda ages, genders, k, mixed=True: old(ages, genders, max(1, k - 1), mixed)


def _anew_per_task(old: Any) -> Any:
    def corrected(self: Any, seqs: Any, words: Any, seed: Any) -> Any:
        return replace(self._published(seqs, words, seed), promised=self._guarantee())

    return corrected


def _heavy(old: Any) -> Any:
    def viewer_weights(recording: Any, rows: int, columns: int) -> Any:
        return old(recording, rows, columns) * max(1, int(recording.valid.sum()))

    return viewer_weights


def _members_own_screen(old: Any) -> Any:
    """Everybody keeps their own rate, as averaging over those who have one must not."""

    def shared(known: Any, groups: Any, k: int, common: Any) -> Any:
        given, suppressed = old(known, groups, k, common)
        return {
            key: replace(law, rate_hz=known[key].rate_hz) if key in known else law
            for key, law in given.items()
        }, suppressed

    return shared


def _doubled(old: Any) -> Any:
    return lambda epsilon: old(2 * epsilon)


PLANTS = (
    Plant(
        "scale 5 % low",
        "The sampler of discrete Laplace noise takes 0.95 of the scale it is asked for.",
        lambda p: everywhere(p, EXACT, "discrete_laplace", _scaled(Fraction(19, 20))),
        ("tests/privacy/noise/test_exact.py::test_discrete_laplace_has_its_probabilities",),
        "fpa:epsilon=1,k=1",
        1_000_000,
        False,
    ),
    Plant(
        "half noise",
        "The sampler of discrete Laplace noise takes half of the scale it is asked for.",
        lambda p: everywhere(p, EXACT, "discrete_laplace", _scaled(Fraction(1, 2))),
        ("tests/privacy/noise/test_exact.py::test_discrete_laplace_has_its_probabilities",),
        "lpa:epsilon=1",
    ),
    Plant(
        "data-dependent padding",
        "A short recording is padded with the mean of all others instead of the public midpoint.",
        lambda p: everywhere(p, f"{TABLES}.recordings", "lattice", _padded_by_others),
        (f"{BLACK_BOX_TABLES}::test_what_others_get_does_not_depend_on_one_person",),
        "lpa:epsilon=1",
    ),
    Plant(
        "no clipping",
        "Values beyond the public bounds go into the noise as they are.",
        lambda p: everywhere(p, f"{TABLES}.recordings", "lattice", _unclipped),
        (
            f"{FOURIER}::test_missing_values_count_as_the_midpoint_and_values_outside_are_clamped"
            "_and_counted",
        ),
        "lpa:epsilon=1",
    ),
    Plant(
        "range of the data",
        "The bounds are the smallest and the largest value of the table.",
        lambda p: everywhere(p, f"{TABLES}.recordings", "public_bounds", _data_range),
        (f"{BLACK_BOX_TABLES}::test_what_others_get_does_not_depend_on_one_person",),
        "exponential-dp:epsilon=1",
    ),
    Plant(
        "data-chosen coefficients",
        "The largest Fourier coefficients of the data are released instead of the first ones.",
        lambda p: method(p, f"{TABLES}.fourier", "FPA", "perturb", _chosen_by_data),
        (f"{FOURIER}::test_fpa_is_real_and_has_nothing_beyond_k",),
        "fpa:epsilon=1,k=1",
    ),
    Plant(
        "noise on real parts alone",
        "The imaginary parts of a spectrum get no noise.",
        lambda p: method(p, f"{TABLES}.fourier", "FPA", "perturb", _real_alone),
        (f"{FOURIER}::test_fpa_is_real_and_has_nothing_beyond_k",),
        "fpa:epsilon=1,k=5",
        20_000,
    ),
    Plant(
        "sensitivity without its rounding",
        "The sensitivity of coarse coefficients leaves out that each is rounded.",
        lambda p: everywhere(p, f"{TABLES}.spectrum", "_grid", _without_rounding),
        (f"{FOURIER}::test_the_sensitivity_holds_where_every_coefficient_is_rounded_apart",),
    ),
    Plant(
        "sensitivity without the length",
        "Laplace noise on a sequence is scaled for one value.",
        lambda p: everywhere(p, f"{TABLES}.spectrum", "laplace_steps", _without_length),
        (f"{FOURIER}::test_lpa_noise_is_laplace_with_scale_length_times_range_over_epsilon",),
        "lpa:epsilon=1",
        4000,
        False,
    ),
    Plant(
        "lengths of recordings",
        "A release has as many rows of each recording as the data have.",
        lambda p: everywhere(p, f"{TABLES}.recordings", "rebuild", _own_lengths),
        (f"{BLACK_BOX_TABLES}::test_the_length_of_a_recording_is_not_told",),
        "lpa:epsilon=1",
    ),
    Plant(
        "forgotten recordings",
        "A person of a table is said to have one recording.",
        lambda p: method(
            p, f"{TABLES}.recordings", "Sequences", "most_recordings", lambda _: lambda self: 1
        ),
        (f"{BLACK_BOX_TABLES}::test_a_person_loses_the_sum_over_all_their_recordings",),
        "fpa:epsilon=1,k=1",
    ),
    Plant(
        "round noise of half the scale",
        "Round noise on cosine coefficients has half its scale.",
        lambda p: method(p, f"{TABLES}.dct_knorm", "DCTKNorm", "noise", _half_law),
        (f"{FOURIER}::test_k_norm_noise_has_a_gamma_radius_and_no_direction",),
        "dct-knorm:epsilon=1/2",
        4000,
        False,
    ),
    Plant(
        "group noise divided twice",
        "The noise of a group is divided by its size once more.",
        lambda p: method(p, f"{TABLES}.dp_ksame", "DPKSame", "drawn_noise", _half_law),
        (f"{DP_KSAME}::test_separate_noise_is_discrete_laplace_divided_by_the_size_of_the_group",),
        "dp-k-same:k=4,epsilon=1/2",
        100_000,
        False,
    ),
    Plant(
        "histograms without weights",
        "Every row counts in a histogram, so who has more rows weighs more.",
        lambda p: method(p, f"{TABLES}.marginals", "BinnedRows", "weights", _unweighted),
        (
            f"{MARGINALS}::test_replacing_a_person_changes_the_histograms_by_at_most_twice_their"
            "_weight",
        ),
        "marginals:k=4",
        4000,
        False,
    ),
    Plant(
        "group of k - 1",
        "Records are shared by one person fewer than k.",
        lambda p: method(p, f"{TABLES}.ksame", "KSameSelect", "_corrected", _one_fewer),
        (
            f"{KSAME}::test_every_size_of_cohort_from_k_to_five_k_gives_groups_of_k_to_two_k_minus"
            "_one",
        ),
        "k-same-select:k=4",
    ),
    Plant(
        "k-same regrouped per task",
        "Groups are drawn anew for each task.",
        lambda p: method(p, f"{TABLES}.ksame", "KSameSelect", "_corrected", _anew_per_task),
        (
            f"{KSAME}::test_every_size_of_cohort_from_k_to_five_k_gives_groups_of_k_to_two_k_minus"
            "_one",
        ),
        "k-same-select:k=4",
    ),
    Plant(
        "attributes of k - 1 people",
        "Ages and genders are shared by one person fewer than k.",
        lambda p: everywhere(p, "privacy.demographics", "best_groups", _one_fewer_alike),
        ("tests/privacy/test_people_maps.py::test_the_optimum_beats_or_equals_the_supplement",),
        "demographics:k=5",
    ),
    Plant(
        "everybody keeps their rate",
        "Members of a group share a law and keep the rate of their own recording.",
        lambda p: everywhere(p, "privacy.synthesis.ksame.mechanism", "shared", _members_own_screen),
        (f"{KSAME_SYNTH}::test_rates_and_screens_that_differ_are_averaged",),
        "k-same-synth:k=3",
    ),
    Plant(
        "viewers weigh what they saw",
        "A viewer of a heat map weighs as much as there are samples.",
        lambda p: everywhere(p, "privacy.heatmaps", "viewer_weights", _heavy),
        ("tests/privacy/test_people_maps.py::test_no_viewer_weighs_more_than_one",),
        "heatmap-laplace:epsilon=1",
    ),
    Plant(
        "budget of maps not divided",
        "Each of a person's heat maps has noise for the whole budget.",
        lambda p: method(
            p,
            "privacy.heatmaps",
            "HeatmapLaplace",
            "scale_steps",
            lambda old: lambda self, stimuli: old(self, 1),
        ),
        (f"{BLACK_BOX_TABLES}::test_all_maps_of_a_person_share_one_budget",),
        "heatmap-laplace:epsilon=1",
    ),
    Plant(
        "factor of the square root of 2",
        "Gaussian noise of heat maps has its scale divided by the square root of 2.",
        lambda p: method(
            p,
            "privacy.heatmaps",
            "HeatmapGaussian",
            "sigma_steps",
            lambda old: lambda self, stimuli: max(1, round(old(self, stimuli) / math.sqrt(2))),
        ),
        ("tests/privacy/test_people_maps.py::test_the_noise_has_the_scale_of_the_proof",),
    ),
    Plant(
        "odds of twice the epsilon",
        "Answers through frequency oracles have the odds of twice their epsilon.",
        lambda p: everywhere(p, "privacy.noise.local", "odds_below", _doubled),
        ("tests/privacy/noise/test_local.py::test_the_odds_are_just_below_exp_epsilon",),
        "dpgazesynth:epsilon=1",
        4000,
        False,
    ),
)
