"""Planted bugs of `mosaic`: each would make a piece tell whose it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.planted.plant import Plant, everywhere, method

TESTS = "tests/privacy/synthesis/test_mosaic.py"
MOSAIC = "privacy.synthesis.mosaic"


def _names_kept(_: Any) -> Any:
    return lambda viewers, words: np.arange(viewers)


def _gap_forgotten(_: Any) -> Any:
    return lambda self: np.ones(self.slots * self.slot, dtype=np.bool_)


def _losses_kept(old: Any) -> Any:
    def paths_in(readings: Any, window: int, law: Any, source: Any) -> Any:
        made = old(readings, window, law, source)
        return replace(made, there=made.there & readings.seen[:, readings.windows.slice(window)])

    return paths_in


def _oneself_among_candidates(_: Any) -> Any:
    return lambda keys, viewer: np.arange(len(keys))


def _eye_shared(old: Any) -> Any:
    def call(self: Any) -> Any:
        return old(replace(self, eye=1))

    return call


def _recordings_counted(old: Any) -> Any:
    def refuse_small(mechanism: Any, by_stimulus: Any) -> None:
        if any(len(items) < mechanism.crowd for items in by_stimulus.values()) or not by_stimulus:
            old(mechanism, by_stimulus)

    return refuse_small


PLANTS = (
    Plant(
        "mosaic: crowd of recordings",
        "A crowd is counted by recordings, so that two people who came six times are twelve.",
        lambda p: everywhere(p, f"{MOSAIC}.readings", "_refuse_small", _recordings_counted),
        (f"{TESTS}::test_what_cannot_be_hidden_is_refused",),
    ),
    Plant(
        "mosaic: names kept",
        "In every window a person has the same name.",
        lambda p: everywhere(p, f"{MOSAIC}.paths", "dealt_names", _names_kept),
        (f"{TESTS}::test_names_of_a_release_say_nothing_of_the_order_of_people",),
    ),
    Plant(
        "mosaic: gap forgotten",
        "Gaze in gaps is read.",
        lambda p: method(p, f"{MOSAIC}.readings", "PublicWindows", "inside", _gap_forgotten),
        (f"{TESTS}::test_what_happens_in_gaps_is_not_read",),
    ),
    Plant(
        "mosaic: loss pattern kept",
        "A slot in which somebody was lost is lost in their piece.",
        lambda p: everywhere(p, f"{MOSAIC}.paths", "paths_in", _losses_kept),
        (f"{TESTS}::test_losses_leave_no_trace",),
    ),
    Plant(
        "mosaic: oneself among the candidates",
        "A path may follow the person whom it is to stand for.",
        lambda p: everywhere(p, f"{MOSAIC}.readings", "others_of", _oneself_among_candidates),
        (f"{TESTS}::test_nobody_is_stitched_from_themselves",),
    ),
    Plant(
        "mosaic: randomness shared",
        "All pieces are rendered with the same random numbers.",
        lambda p: method(p, f"{MOSAIC}.readings", "PieceRendering", "__call__", _eye_shared),
        (f"{TESTS}::test_randomness_is_fresh_for_every_piece",),
    ),
)
