"""How good recordings are, as a table: the median and the worst of each measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from gazeveil.cli.arguments import counted
from gazeveil.events.quality import Quality

# Field, what it is called, how it is written, and which end of it is the worst.
_MEASURES = (
    ("rate_hz", "rate (Hz)", "{:.0f}", min),
    ("noise_deg", "noise (deg)", "{:.3f}", max),
    ("rms_s2s_deg", "RMS-S2S in fixations (deg)", "{:.3f}", max),
    ("sd_deg", "SD in fixations (deg)", "{:.3f}", max),
    ("lost", "lost samples", "{:.1%}", max),
)


def print_quality(screen: Console, qualities: Sequence[Quality]) -> None:
    """Print the table, and each concern once with the number of recordings it is about."""
    if not qualities:
        return
    table = Table(title="Quality", title_justify="left")
    table.add_column("measure")
    table.add_column("median", justify="right")
    table.add_column("worst", justify="right")
    for name, words, form, worst in _MEASURES:
        values = np.array([getattr(q, name) for q in qualities], dtype=np.float64)
        values = values[np.isfinite(values)]
        if len(values):
            table.add_row(
                words, form.format(float(np.median(values))), form.format(float(worst(values)))
            )
    screen.print(table)
    concerns = Counter(_general(concern) for q in qualities for concern in q.concerns)
    for concern, number in concerns.items():
        screen.print(f"{counted(number, 'recording')}: {concern}")


def _general(concern: str) -> str:
    """A concern without its figure, so that equal ones are counted together."""
    return "many samples are lost." if concern.endswith("samples are lost.") else concern
