"""How the risk of single stimuli is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from gazeveil.cli.arguments import console, say

if TYPE_CHECKING:
    from gazeveil.attacks.infer.kinds import InferenceResult

#: Rows that are printed at most; all of them are in the JSON file.
MOST = 40


def stimulus_table(outcome: InferenceResult) -> None:
    """Print one row per stimulus, the most identifying first, and how far to read them."""
    rows: Any = outcome.details["stimuli"]
    table = Table(
        title="People found from one stimulus alone. Expected: with other people; p: apart from the"
        " mean, adjusted for all; share: of features that is the person's, without an attacker",
        box=SIMPLE_HEAD,
        padding=(0, 1),
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("stimulus", overflow="fold")
    for heading in ("s", "found", "95 %", "chance", "expected", "p", "within", "share"):
        table.add_column(heading, no_wrap=True, justify="right")
    for row in rows[:MOST]:
        table.add_row(
            row["stimulus"],
            _text(row["seconds"], "{:.0f}"),
            _text(row["across"], "{:.0%}"),
            f"{_text(row['across_low'], '{:.0%}')} to {_text(row['across_high'], '{:.0%}')}",
            _text(row["chance"], "{:.0%}"),
            _text(row["expected"], "{:.0%}"),
            _text(row["p_value"], "{:.2g}"),
            _text(row["within"], "{:.0%}"),
            _text(row["person_share"], "{:.2f}"),
        )
    console().print(table)
    say(_summary(outcome, rows))


def _summary(outcome: InferenceResult, rows: list[dict[str, Any]]) -> str:
    counted = next(r for r in outcome.results if r.metric == "stimuli_apart")
    least: Any = outcome.details["least_difference"]
    said = [f"{counted.value:.0f} of {counted.n} stimuli differ from the mean"]
    if least is not None:
        said.append(f"a difference below {100 * least:.0f} points cannot be told with these people")
    sentence = "; ".join(said) + "."
    if len(rows) > MOST:
        sentence += f" The {len(rows) - MOST} that identify least are not shown: --json has them."
    left: Any = outcome.details["left_out"]
    if left:
        sentence += f" Left out, because too few people saw them: {len(left)}."
    return sentence


def _text(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
