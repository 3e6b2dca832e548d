"""Planted bugs of `style`: each would break its promise, or leave a person's own way of moving."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gazeveil.privacy.synthesis.ksame.pairs import places
from tests.planted.plant import Plant, everywhere

TESTS = "tests/privacy/synthesis/test_style.py"
STYLE = "privacy.synthesis.style"


def _own_donor(_: Any) -> Any:
    return lambda people, words: {person: person for person in people}


def _all_read(old: Any) -> Any:
    def noisy_readings(recording: Any, clock: Any, bits: Any) -> Any:
        made = old(recording, clock, bits)
        # the mean of a slot instead of one sample of it
        x, y = (
            getattr(recording, n)[: len(made.places) * made.length]
            .reshape(len(made.places), -1)
            .mean(axis=1)
            for n in ("x_deg", "y_deg")
        )
        return replace(made, places=made.places + 1e-6 * places(made.space, x, y))

    return noisy_readings


def _losses_kept(_: Any) -> Any:
    return lambda gaze, viewer, order: gaze[viewer].copy()


PLANTS = (
    Plant(
        "style: everybody is their own donor",
        "Paths move as the person moves.",
        lambda p: everywhere(p, f"{STYLE}.mechanism", "derangement", _own_donor),
        (f"{TESTS}::test_donors_are_others_and_every_choice_is_as_likely",),
    ),
    Plant(
        "style: raw gaze after the readings",
        "A path looks at samples that were never read.",
        lambda p: everywhere(p, f"{STYLE}.readings", "noisy_readings", _all_read),
        (f"{TESTS}::test_samples_that_are_not_read_may_be_anything",),
    ),
    Plant(
        "style: loss pattern kept",
        "A slot in which somebody was lost is lost in their path.",
        lambda p: everywhere(p, f"{STYLE}.readings", "_borrowed", _losses_kept),
        (f"{TESTS}::test_losses_leave_no_lost_sample_where_others_look",),
    ),
)
