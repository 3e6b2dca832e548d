"""Batteries: attackers that are run together, because no single one is the strongest on all
releases.
"""

from __future__ import annotations

#: Name of a battery -> its attackers, as texts.
BATTERIES: dict[str, tuple[str, ...]] = {
    "quick": ("rbfn", "linkage"),
    "strong": (
        "rbfn",
        "linkage:features=extended",
        "linkage:features=trajectory",
        "linkage:denoiser=lowpass,features=extended",
    ),
    "all": (
        "rbfn",
        "linkage",
        "linkage:features=extended",
        "linkage:features=trajectory",
        "linkage:denoiser=lowpass,features=extended",
        "lda",
        "forest",
        "svm",
    ),
}
