"""What each method calls lost samples in the middle of a fixation: the table of the manual."""

from __future__ import annotations

import numpy as np
import pytest

from gazeveil import Recording, detect
from tests.support.event_signals import on_screen

THROUGH = ["fixation"]
RATES = (60, 250, 500, 1000)
METHODS = ("ivt", "idt", "auto", "dorr", "is5t", "online")


def still_eye(rate_hz: int, lost: int, missing: bool = False) -> Recording:
    """An eye at rest with `lost` samples after one second, which may be missing rows."""
    x, y = np.random.default_rng(1).normal(0, 0.02, (2, 4 * rate_hz))
    gone = np.zeros(4 * rate_hz, dtype=bool)
    gone[rate_hz : rate_hz + lost] = True
    whole = on_screen(np.where(gone, np.nan, x), rate_hz, np.where(gone, np.nan, y), valid=~gone)
    if not missing:
        return whole
    there = whole.slice(0, rate_hz).t_ns, whole.t_ns[rate_hz + lost :]
    return on_screen(x[~gone], rate_hz, y[~gone]).with_(t_ns=np.concatenate(there))


def between(*words: str) -> list[str]:
    return ["fixation", *words, "fixation"]


# Lost samples that are bridged at most, and that are a blink at most, at each rate.
BRIDGED = {
    **dict.fromkeys(("ivt", "idt", "online"), lambda r: int(0.075 * r + 1e-9) - 1),
    "auto": lambda r: int(0.04 * r + 1e-9),
    **dict.fromkeys(("dorr", "is5t"), lambda r: -(-r // 50) - 1),
}
BLINK = {
    **dict.fromkeys(("ivt", "idt"), lambda r: r // 2 - 1),
    **dict.fromkeys(("auto", "dorr", "is5t", "online"), lambda r: r // 2),
}
LONGER = {
    **dict.fromkeys(("ivt", "idt"), between("undefined")),
    **dict.fromkeys(("auto", "dorr", "is5t"), between("noise")),
    "online": between("blink", "undefined"),
}


@pytest.mark.parametrize("rate_hz", RATES)
@pytest.mark.parametrize("method", METHODS)
def test_each_method_treats_lost_samples_as_the_manual_says(method: str, rate_hz: int) -> None:
    bridged, blink = BRIDGED[method](rate_hz), BLINK[method](rate_hz)
    for lost, expected in (
        (bridged, THROUGH),
        (bridged + 1, between("blink")),
        (blink, between("blink")),
        (blink + 1, LONGER[method]),
    ):
        assert list(detect(still_eye(rate_hz, lost), method).kind) == expected, lost


@pytest.mark.parametrize("rate_hz", RATES)
@pytest.mark.parametrize("method", METHODS)
def test_all_methods_bridge_missing_rows_of_75_ms(method: str, rate_hz: int) -> None:
    rows = int(0.075 * rate_hz + 1e-9) - 1
    assert list(detect(still_eye(rate_hz, rows, missing=True), method).kind) == THROUGH
    assert list(detect(still_eye(rate_hz, rows + 1, missing=True), method).kind) == between()


def test_30_lost_samples_at_60_hz_are_called_in_two_ways() -> None:
    found = {m: detect(still_eye(60, 30), m).kind[1] for m in METHODS}
    assert {m for m, kind in found.items() if kind == "undefined"} == {"ivt", "idt"}
    assert {m for m, kind in found.items() if kind == "blink"} == {"auto", "dorr", "is5t", "online"}
