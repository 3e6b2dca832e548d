"""What the Gaussian heat maps do."""

from __future__ import annotations

from pathlib import Path

from heatmap_laplace import rows

import gazeveil


def draw(path: Path) -> None:
    """Draw it."""
    rows(path, gazeveil.mechanism("heatmap-gaussian", rho=0.5), "rho = 0.5 per person")
