"""The words of the option `losses`, and what a release then covers."""

from __future__ import annotations

from dataclasses import replace

from gazeveil.privacy.guarantee import Guarantee

#: `keep`: a lost sample is released as lost, a pause as a pause. `fill`: every step of a public
#: clock has a sample, and gaze is put where there was none.
LOSSES = ("keep", "fill")

#: From what a mechanism fills: from what it has `released` before, which costs nothing; from what
#: was `recorded` before; or it counts lost samples to the place `held` before them.
FILLS = ("released", "recorded", "held")

LOST = "which samples are lost"

#: What no stream hides that keeps its losses.
NEVER_COVERED = (
    "how long the stream is and when it begins",
    LOST,
    "pauses of the tracker of more than two samples, and when it is faster than its rate",
)

_TOLD_BY_FILL = {
    "recorded": "which samples are lost, where filled ones can be told from recorded ones",
    "held": "which samples are lost, where a place that is held for long shows it",
}

PROOF = "proofs/losses.md"

#: How samples are counted on the clock.
CLOCK_ASSUMPTION = (
    "samples are those of the public clock, lost ones and the time of pauses included"
)


def told_by_fill(fills: str) -> tuple[str, ...]:
    """What filling leaves uncovered of losses."""
    return (_TOLD_BY_FILL[fills],) if fills in _TOLD_BY_FILL else ()


def on_the_clock(
    promise: Guarantee, fills: str, rate_is_public: bool, length_is_public: bool
) -> Guarantee:
    """The promise of recordings whose losses are filled.

    Parameters
    ----------
    promise : Guarantee
        Of the mechanism about gaze.
    fills : str
        One of :data:`FILLS`.
    rate_is_public, length_is_public : bool
        Whether the rate of the clock and the duration were stated, and not taken from recordings.
    """
    promise = promise.with_not_covered(
        *(() if rate_is_public else ("the rate of each recording",)),
        *(() if length_is_public else ("how long each recording is",)),
        "which recordings have no gaze at all",
        *told_by_fill(fills),
    )
    change = promise.change
    if promise.losses is None or change is None:
        return promise
    losses = promise.losses
    promise = replace(
        promise,
        assumptions=(*promise.assumptions, CLOCK_ASSUMPTION),
        reason=f"{promise.reason}, {PROOF}" if promise.status == "proved" else promise.reason,
    )
    if fills != "released" or change.unit not in ("sample", "window"):
        return promise
    # To be lost, or lost no more, is to be somewhere else (proofs/losses.md).
    loss = losses.loss(replace(change, move_deg=None))
    which = "that sample" if change.unit == "sample" else "any samples of that window"
    lost = (f"{which} lost, or no longer lost, or anywhere", loss)
    return replace(promise, also=(*promise.also, lost))
