"""What a chain does to gaze."""

from __future__ import annotations

from pathlib import Path

from stream_traces import draw_streams


def draw(path: Path) -> None:
    """Draw it."""
    noisy = "gaussian(sigma_deg=3)"
    draw_streams(
        path,
        ((f"{noisy}", f"chain:stages={noisy}", "C1"), (f"{noisy}+smoothing(first=5;second=10)", f"chain:stages={noisy}+smoothing(first=5;second=10)", "C0")),
    )
