"""Columns of the tables of results, and the words that stand in them."""

from __future__ import annotations

import polars as pl

#: What makes a cell of the comparison, apart from who attacks or measures.
CELL = ("mechanism", "reading", "parameters", "events", "scenario")

_FIGURE = dict.fromkeys((*CELL, "attack", "utility", "metric"), pl.String())

#: Columns of :attr:`gazeveil.evaluation.results.Results.frame`, in order.
FRAME: dict[str, pl.DataType] = {
    "cohort": pl.String(),
    **_FIGURE,
    **dict.fromkeys(("value", "low", "high"), pl.Float64()),
    "n": pl.Int64(),
    "chance": pl.Float64(),
    **dict.fromkeys(("repetitions", "seed"), pl.Int64()),
    **dict.fromkeys(("p_value", "sd"), pl.Float64()),
    **dict.fromkeys(("better", "note"), pl.String()),
}

#: Columns of :attr:`gazeveil.evaluation.results.Results.outcomes`, in order.
OUTCOMES: dict[str, pl.DataType] = {
    **_FIGURE,
    "repetition": pl.Int64(),
    "part": pl.String(),
    "value": pl.Float64(),
    "answer": pl.String(),
    "beaten_by": pl.Int64(),
    "tied": pl.String(),
}

#: Between names that score the same, in the column `tied`; no name holds it.
BETWEEN = "\x1f"

#: Columns of :meth:`gazeveil.evaluation.results.Results.strongest_against`, in order.
AGAINST: dict[str, pl.DataType] = {
    "cohort": pl.String(),
    **dict.fromkeys((*CELL[:4], "strongest", "scenario"), pl.String()),
    **dict.fromkeys(("value", "low", "high", "chance"), pl.Float64()),
    **dict.fromkeys(("n", "tried"), pl.Int64()),
    **dict.fromkeys(("chosen", "chosen_low", "chosen_high", "p_value", "guessed"), pl.Float64()),
    **dict.fromkeys(("other", "other_scenario"), pl.String()),
    **dict.fromkeys(("other_value", "other_low", "other_high"), pl.Float64()),
    **dict.fromkeys(("difference", "difference_low", "difference_high"), pl.Float64()),
    "called_safe": pl.Boolean(),
}

#: The scenario of one release split afterwards: it misleads where its parts share noise and there
#: is another.
ONE_RELEASE = "release/release"

#: The attack metric every headline quotes.
RATE = "identification_rate"

#: The same of an attacker who is told which pieces belong together: a bound, never a headline.
BOUND = "bound_rate"

#: A control that attacks on pieces have, and no others (names dealt anew within windows).
DEALT = "dealt_rate"

#: The unprotected baseline.
NONE = "none"


def mechanism_text(mechanism: str, reading: str = "", parameters: str = "") -> str:
    """The full text of a mechanism from its three columns, as guarantees and examples have it.

    Examples
    --------
    >>> mechanism_text("gaussian", "corrected", "sigma_deg=10")
    'gaussian:sigma_deg=10,reading=corrected'
    >>> mechanism_text("none")
    'none'
    """
    rest = ",".join(filter(None, (parameters, f"reading={reading}" if reading else "")))
    return mechanism + (":" + rest if rest else "")
