"""Columns of the tables of results, and the words that stand in them."""

from __future__ import annotations

import polars as pl

#: Columns of :attr:`gazeveil.evaluation.results.Results.frame`, in order.
FRAME: dict[str, pl.DataType] = {
    **dict.fromkeys(
        (
            "cohort",
            "mechanism",
            "reading",
            "parameters",
            "events",
            "scenario",
            "attack",
            "utility",
            "metric",
        ),
        pl.String(),
    ),
    **dict.fromkeys(("value", "low", "high"), pl.Float64()),
    "n": pl.Int64(),
    "chance": pl.Float64(),
    "repetitions": pl.Int64(),
    "seed": pl.Int64(),
    "p_value": pl.Float64(),
    "sd": pl.Float64(),
    "better": pl.String(),
    "note": pl.String(),
}

#: Columns of :attr:`gazeveil.evaluation.results.Results.outcomes`, in order.
OUTCOMES: dict[str, pl.DataType] = {
    **dict.fromkeys(
        ("mechanism", "reading", "parameters", "events", "scenario", "attack", "utility", "metric"),
        pl.String(),
    ),
    "repetition": pl.Int64(),
    "part": pl.String(),
    "value": pl.Float64(),
    "answer": pl.String(),
    "beaten_by": pl.Int64(),
}

#: What makes a cell of the comparison, apart from who attacks or measures.
CELL = ("mechanism", "reading", "parameters", "events", "scenario")

#: The attack metric every headline quotes.
RATE = "identification_rate"

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
