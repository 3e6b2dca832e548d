"""`gazeveil audit`: try to prove a mechanism's promise false."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from gazeveil.cli.arguments import JsonOption, console, track, write_json

if TYPE_CHECKING:
    from gazeveil.privacy.audit.run import Audit

HELP = """\
`planted` runs the broken mechanisms that must be caught.

Example: `gazeveil audit lpa:epsilon=1 exponential-dp:epsilon=1,reading=published`"""


def command(
    mechanisms: Annotated[
        list[str],
        typer.Argument(help="Mechanisms as name:parameter=value,..., or the word planted."),
    ],
    trials: Annotated[int, typer.Option(help="Releases per input.")] = 100_000,
    confidence: Annotated[float, typer.Option(help="Confidence of the statistical bound.")] = 0.999,
    unit: Annotated[
        str | None, typer.Option(help="Audit at another unit than the claim's, e.g. user.")
    ] = None,
    black_box: Annotated[
        bool,
        typer.Option(
            "--black-box/--no-black-box",
            help="Attack whole releases and their printed promises too.",
        ),
    ] = True,
    json_file: JsonOption = None,
) -> None:
    """Audit mechanisms."""
    from gazeveil.privacy.audit.run import PLANTED, audit, judge

    verdicts = []
    for name in track(mechanisms, len(mechanisms), "Auditing"):
        if name == "planted":
            for planted in track(PLANTED, len(PLANTED), "Planted mechanisms"):
                verdict = judge(planted.name, planted.game(), trials, confidence)
                console().print(f"{'caught' if verdict.refuted else 'MISSED'}: {verdict}")
                verdicts.append(verdict.to_dict())
        else:
            result = audit(name, trials, confidence, unit, black_box=black_box)
            lost = sum(attack.refuted for attack in result.black_box)
            note = (
                f" Of {len(result.black_box)} attacks on releases and their printed promise {lost}"
                " succeeded:"
                if result.black_box
                else ""
            )
            console().print(f"{replace(result, black_box=())}{note}")
            for attack in result.black_box:
                console().print(f"  {_line(attack)}")
            verdicts.append(result.to_dict())
    write_json(json_file, verdicts)


def _line(attack: Audit) -> str:
    """One attack on releases, in one line."""
    verdict = "REFUTED" if attack.refuted else "held"
    if attack.epsilon_claimed is None or attack.epsilon_lower is None:
        return f"{verdict}: {attack.detail}"
    return (
        f"{verdict}: a {attack.unit} may lose {attack.epsilon_claimed:.4g} and loses at least"
        f" {attack.epsilon_lower:.4g}. {attack.detail}"
    )
