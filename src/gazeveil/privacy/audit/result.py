"""The verdict of an audit."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Parameters
    ----------
    mechanism : str
        As on the command line.
    unit : str
        The unit of privacy the neighbouring inputs differ in.
    epsilon_claimed : float or None
        What the paper or the guarantee claims at that unit, also when it is refuted; None without
        an epsilon.
    epsilon_lower : float or None
        What is certainly lost: the larger of the statistical and the exact bound. Infinity where an
        output is possible for one input alone.
    refuted : bool
        Whether the lower bound exceeds the claim, or another claim (k, for one) was seen broken.
    method : str
        `statistical`, `exact` or `count`: where the bound comes from.
    trials : int
        Releases per input.
    confidence : float
        Of the statistical bound.
    statistical : float or None
        The statistical bound alone.
    detail : str
        The neighbouring inputs and the event, in words.
    black_box : tuple of Audit
        What the games against `release(...)` and the printed sentence found, one each.
    """

    mechanism: str
    unit: str
    epsilon_claimed: float | None
    epsilon_lower: float | None
    refuted: bool
    method: str
    trials: int
    confidence: float
    statistical: float | None = None
    detail: str = ""
    black_box: tuple[Audit, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """The verdict as JSON has it; infinity as text."""

        def plain(value: float | None) -> float | str | None:
            return "infinity" if value is not None and math.isinf(value) else value

        return {
            "mechanism": self.mechanism,
            "unit": self.unit,
            "epsilon_claimed": plain(self.epsilon_claimed),
            "epsilon_lower": plain(self.epsilon_lower),
            "statistical": plain(self.statistical),
            "refuted": self.refuted,
            "method": self.method,
            "trials": self.trials,
            "confidence": self.confidence,
            "detail": self.detail,
            "black_box": [attack.to_dict() for attack in self.black_box],
        }

    def __str__(self) -> str:
        lost = [attack for attack in self.black_box if attack.refuted]
        tried = len(self.black_box)
        text = self._own() + (
            f" Of {tried} attacks on releases and their printed promise {len(lost)} succeeded."
            if tried
            else ""
        )
        return " ".join([text, *(attack._own() for attack in lost)])

    def _own(self) -> str:
        verdict = "REFUTED" if self.refuted else "not refuted"
        if self.epsilon_claimed is None or self.epsilon_lower is None:
            return f"{self.mechanism}: {verdict} ({self.unit}). {self.detail}"
        lower = "infinity" if math.isinf(self.epsilon_lower) else f"{self.epsilon_lower:.4g}"
        return (
            f"{self.mechanism}: {verdict}. It claims epsilon = {self.epsilon_claimed:.4g} for a"
            f" {self.unit} and certainly loses {lower} ({self.method}, {self.trials:,} releases per"
            f" input, confidence {self.confidence:g}). {self.detail}"
        )
