"""Planted bugs of the algebra of promises and of accounts."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.planted.plant import Plant, everywhere, method

DPGAZESYNTH_RELEASE = "tests/privacy/synthesis/test_dpgazesynth_curator.py"
MECHANISMS = "tests/privacy/stream/test_mechanisms.py"
PROMISE = "privacy.promise"


def _worst_is_least(old: Any) -> Any:
    def worst(losses: Any) -> Any:
        return min(list(losses), key=lambda one: one.amount)

    return worst


def _sum_is_largest(_: Any) -> Any:
    return lambda self, change: max(
        (p.loss(change) for p in self.parts), key=lambda one: one.amount
    )


def _steps_once(old: Any) -> Any:
    def grouped(self: Any, steps: int) -> Any:
        return self.repeated(steps) if self.measure == "concentrated" else old(self, steps)

    return grouped


def _lift_forgets(unit: str) -> Any:
    return lambda old: (
        lambda self, larger, parts: old(
            self, larger, 1 if larger == unit and parts is not None else parts
        )
    )


def _person_is_one_recording(_: Any) -> Any:
    def person(self: Any, change: Any, person: Any) -> Any:
        from gazeveil.privacy.composition import _known

        return max(
            (self.streams[s].whole(change, _known(n)) for s, n in person),
            key=lambda one: one.amount,
        )

    return person


def _largest_window(_: Any) -> Any:
    return lambda self, change: max(
        (s.samples_of(change) for s in self.streams if s.samples_of(change) is not None),
        default=None,
    )


def _merged_by_first(_: Any) -> Any:
    """The first recording's promise for all."""

    def loss(self: Any, change: Any) -> Any:
        return (
            self.streams[0].within(change)
            if change.unit in ("sample", "window")
            else self._person(change, sorted(self.people)[0])
        )

    return loss


def _floor(_: Any) -> Any:
    def samples_of(self: Any, change: Any) -> Any:
        if change.unit == "sample":
            return 1
        return (
            change.samples
            if change.seconds is None
            else max(1, math.floor(change.seconds * Fraction(repr(float(self.rate_hz)))))
        )

    return samples_of


def _rate_of_60(_: Any) -> Any:
    def samples_of(self: Any, change: Any) -> Any:
        if change.unit == "sample":
            return 1
        return change.samples if change.seconds is None else max(1, math.ceil(change.seconds * 60))

    return samples_of


def _no_rest(old: Any) -> Any:
    def run(self: Any, samples: int, move_deg: Any, metric: str) -> Any:
        return old(self, max(self.window, samples // self.window * self.window), move_deg, metric)

    return run


def _one_step(old: Any) -> Any:
    return lambda self, samples, move_deg, metric: old(
        self, samples, self.r_deg if move_deg is None or move_deg > self.r_deg else move_deg, metric
    )


def _plane(old: Any) -> Any:
    return lambda space, move_deg, metric: old(space, move_deg, "coordinates")


def _down(_: Any) -> Any:
    return lambda value: Fraction(math.floor(value * 10**3), 10**3)


def _no_error(old: Any) -> Any:
    return lambda self, other: replace(old(self, other), delta_num=Fraction(0))


def _chunk_for_all(old: Any) -> Any:
    def loss(self: Any, change: Any) -> Any:
        return self.losses[0][1]

    return loss


def _answers(_: Any) -> Any:
    return lambda self, change: self.claimed_loss(change)


def _only_inner(_: Any) -> Any:
    return lambda self, samples, move_deg, metric: self.inner.run(samples, move_deg, metric)


def _apart_for_same(patch: Any) -> None:
    from gazeveil.privacy import composition
    from gazeveil.privacy.composition import ApartMap

    patch.setattr(composition, "TogetherMap", ApartMap)


def _any_partition(old: Any) -> Any:
    return lambda guarantees, people="same", partition="unknown", change=None: old(
        guarantees, people, "data-independent", change
    )


def _without_diameter(_: Any) -> Any:
    from gazeveil.privacy.promise.loss import Loss

    return lambda self, windows, start_deg: Loss.pure(
        self.plan.times + self.plan.moves + self.plan.starts, self.delta_num
    ).repeated(windows)


def _all_hide(old: Any) -> Any:
    return lambda epsilon, windows: old(epsilon, [2 * n for n in windows])


GUARANTEE, ALGEBRA = "tests/privacy/test_guarantee.py", "tests/privacy/test_promises.py"


def _last_recording_alone(_: Any) -> Any:
    from gazeveil.privacy.publication.gaze_prints import prints_of

    def note(self: Any, recording: Any) -> None:
        self.people[recording.person] = prints_of(recording, self._key)

    return note


def _fastest_tracker(old: Any) -> Any:
    def public_alignment(looks: Any, choices: Any) -> Any:
        made = old(looks, choices)
        return replace(made, slowest_hz=max(look.rate_hz for look in looks))

    return public_alignment


def _labels_run_together(_: Any) -> Any:
    def derived_key(secret: bytes, *labels: str | int) -> bytes:
        text = "".join(f"{type(label).__name__}:{label}" for label in labels)
        return hashlib.blake2b(
            text.encode("utf-8", "surrogatepass"), key=secret, digest_size=32
        ).digest()

    return derived_key


PUBLICATION = "privacy.publication"
CHARGING = "tests/privacy/publication/test_publication.py"

PLANTS = (
    Plant(
        "ledger: last recording alone",
        "The ledger remembers the last recording of each person.",
        lambda p: method(
            p, f"{PUBLICATION}.gaze_prints", "PeopleSeen", "note", _last_recording_alone
        ),
        (f"{CHARGING}::test_every_recording_of_a_person_is_remembered",),
    ),
    Plant(
        "clock: fastest tracker",
        "How many steps one sample reaches is reckoned by the fastest tracker.",
        lambda p: everywhere(p, f"{PUBLICATION}.alignment", "public_alignment", _fastest_tracker),
        (f"{CHARGING}::test_one_sample_of_the_slowest_tracker_is_what_a_promise_reckons_with",),
    ),
    Plant(
        "keys: labels run together",
        "Labels of a key are written without their lengths.",
        lambda p: everywhere(p, "privacy.randomness.supply", "derived_key", _labels_run_together),
        (
            "tests/privacy/randomness/test_identity.py"
            "::test_names_that_run_together_are_still_two_names",
        ),
    ),
    Plant(
        "worst is least",
        "Of several recordings the least loss counts instead of the worst.",
        lambda p: everywhere(p, f"{PROMISE}.loss", "worst", _worst_is_least),
        (f"{ALGEBRA}::test_a_merge_is_the_worst_of_its_recordings",),
        "kaleido-uniform:epsilon=2,w=10,r_deg=2,slots=1,t_skip_ms=0",
        1000,
    ),
    Plant(
        "composition takes the largest",
        "Releases about the same people are composed by the largest loss instead of the sum.",
        lambda p: method(p, "privacy.composition", "TogetherMap", "loss", _sum_is_largest),
        (f"{GUARANTEE}::test_the_same_people_add_up_and_disjoint_people_take_the_largest",),
    ),
    Plant(
        "group privacy without squares",
        "n steps of a change cost n rho in zCDP instead of n squared.",
        lambda p: method(p, f"{PROMISE}.loss", "Loss", "grouped", _steps_once),
        (f"{ALGEBRA}::test_a_group_of_steps_costs_its_square_in_zcdp",),
    ),
    Plant(
        "lift forgets features",
        "A recording is said to lose what one of its features loses.",
        lambda p: method(
            p, f"{PROMISE}.privacy_map", "UnitMap", "lift", _lift_forgets("recording")
        ),
        (f"{ALGEBRA}::test_a_lift_multiplies_by_what_the_unit_holds",),
        "lpa:epsilon=1",
    ),
    Plant(
        "lift forgets chunks",
        "A recording-feature is said to lose what one of its chunks loses.",
        lambda p: method(
            p, f"{PROMISE}.privacy_map", "UnitMap", "lift", _lift_forgets("recording-feature")
        ),
        (f"{ALGEBRA}::test_a_lift_multiplies_by_what_the_unit_holds",),
        "cfpa:epsilon=1,chunk=2,k=1,per=chunk",
    ),
    Plant(
        "chunk claim sold as the person's",
        "Every change of a table is said to lose what a chunk loses.",
        lambda p: method(p, f"{PROMISE}.privacy_map", "UnitMap", "loss", _chunk_for_all),
        (f"{ALGEBRA}::test_a_larger_unit_never_loses_less",),
        "cfpa:epsilon=1/2,chunk=2,k=1,per=chunk",
    ),
    Plant(
        "forgotten recordings of a stream",
        "A person is said to lose what the worst of their recordings loses.",
        lambda p: method(
            p, "privacy.composition", "RecordingsMap", "_person", _person_is_one_recording
        ),
        (f"{ALGEBRA}::test_a_person_is_the_sum_of_their_recordings",),
        "kaleido-uniform:epsilon=2,w=60,r_deg=2,slots=1,t_skip_ms=0",
        1000,
    ),
    Plant(
        "max where min belongs",
        "Recordings of unequal rates are merged with the largest number of samples as everybody's"
        " window.",
        lambda p: method(p, "privacy.composition", "RecordingsMap", "samples_of", _largest_window),
        (f"{ALGEBRA}::test_a_window_of_unequal_rates_has_the_least_number_of_samples",),
    ),
    Plant(
        "merged by the first recording",
        "A window is said to lose in every recording what it loses in the first one.",
        lambda p: method(p, "privacy.composition", "RecordingsMap", "loss", _merged_by_first),
        (f"{ALGEBRA}::test_a_merge_is_the_worst_of_its_recordings",),
        "kaleido-uniform:epsilon=2,w=10,r_deg=2,slots=1,t_skip_ms=0",
        1000,
    ),
    Plant(
        "seconds rounded down",
        "A window of some seconds is counted with the samples that are full in it, one too few.",
        lambda p: method(p, f"{PROMISE}.privacy_map", "StreamMap", "samples_of", _floor),
        (f"{ALGEBRA}::test_seconds_are_rounded_up_at_the_streams_own_rate",),
    ),
    Plant(
        "seconds at a wrong rate",
        "A window of some seconds has the samples of 60 Hz whatever the rate is.",
        lambda p: method(p, f"{PROMISE}.privacy_map", "StreamMap", "samples_of", _rate_of_60),
        (f"{ALGEBRA}::test_seconds_are_rounded_up_at_the_streams_own_rate",),
    ),
    Plant(
        "rest of a window is free",
        "Samples that do not fill a window cost nothing.",
        lambda p: method(p, f"{PROMISE}.privacy_map", "WindowBudget", "run", _no_rest),
        (f"{ALGEBRA}::test_a_stream_loses_more_for_more_samples_and_for_larger_moves",),
    ),
    Plant(
        "far moves cost one step",
        "A move by more than r is said to lose what a move by r loses.",
        lambda p: method(p, f"{PROMISE}.privacy_map", "WindowBudget", "run", _one_step),
        (f"{ALGEBRA}::test_a_stream_loses_more_for_more_samples_and_for_larger_moves",),
    ),
    Plant(
        "sphere taken for a plane",
        "Near a pole a small move along a great circle is taken for a small move of the"
        " coordinates.",
        lambda p: everywhere(p, f"{PROMISE}.privacy_map", "farthest_coordinates_deg", _plane),
        (f"{ALGEBRA}::test_near_a_pole_a_small_move_turns_the_coordinates_by_half_a_turn",),
        "gaussian:sigma_deg=20,r_deg=1,w=1",
    ),
    Plant(
        "epsilon rounded down",
        "Conversions round a printed epsilon down.",
        lambda p: everywhere(p, f"{PROMISE}.loss", "raised", _down),
        (f"{GUARANTEE}::test_conversions_are_ordered_and_never_too_good",),
    ),
    Plant(
        "numerical error dropped",
        "The probability that finite arithmetic breaks a promise is lost in a sum.",
        lambda p: method(p, f"{PROMISE}.loss", "Loss", "__add__", _no_error),
        (f"{ALGEBRA}::test_numerical_error_adds_up_with_the_losses",),
    ),
    Plant(
        "proved with a seed",
        "A release made with a known seed stays proved.",
        lambda p: method(
            p, "privacy.guarantee", "Guarantee", "tested", lambda _: lambda self: self
        ),
        (f"{GUARANTEE}::test_a_seed_turns_a_proof_into_a_claim",),
    ),
    Plant(
        "map of a refuted promise",
        "A promise that is refuted still answers with its numbers.",
        lambda p: method(p, "privacy.guarantee", "Guarantee", "map", _answers),
        (f"{GUARANTEE}::test_what_is_not_proved_never_shows_a_number_as_its_own",),
    ),
    Plant(
        "stages before the noise are ignored",
        "A chain promises what its noise promises, whatever spreads a change before it.",
        lambda p: method(p, "privacy.stream.chain", "BehindMap", "run", _only_inner),
        (f"{MECHANISMS}::test_what_follows_noise_is_free_and_what_precedes_it_is_accounted",),
    ),
    Plant(
        "same people taken for disjoint ones",
        "Releases about the same people are composed as if nobody were in two of them.",
        _apart_for_same,
        (f"{GUARANTEE}::test_the_same_people_add_up_and_disjoint_people_take_the_largest",),
    ),
    Plant(
        "data-dependent parts",
        "People who were parted by looking at the data are composed by the largest loss.",
        lambda p: everywhere(p, "privacy.composition", "compose", _any_partition),
        (f"{GUARANTEE}::test_the_same_people_add_up_and_disjoint_people_take_the_largest",),
    ),
    Plant(
        "user sum without the diameter",
        "A person with T windows is said to lose T epsilon, however far the beginnings of windows"
        " lie apart.",
        lambda p: method(
            p,
            "privacy.synthesis.dpgazesynth.mechanism",
            "WindowsMap",
            "replaced",
            _without_diameter,
        ),
        (f"{ALGEBRA}::test_a_person_whose_windows_begin_anywhere_loses_by_the_diameter",),
        "dpgazesynth:epsilon=1",
    ),
    Plant(
        "shuffled among all reports",
        "A report is said to hide among all windows, though even and odd ones answer different"
        " questions.",
        lambda p: everywhere(p, "privacy.synthesis.dpgazesynth.mechanism", "shuffled", _all_hide),
        (
            f"{DPGAZESYNTH_RELEASE}::test_shuffling_is_a_number_of_its_own_and_only_where_the"
            "_theorem_holds",
        ),
    ),
)
