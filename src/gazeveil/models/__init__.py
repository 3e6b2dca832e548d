"""Models that learn: classifiers of rows (scikit-learn), and networks (torch, an optional extra,
`pip install 'gazeveil[deep]'`); both are imported only when a model is built.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any


class _WhenUsed:
    """Torch, imported when something of it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("torch"), name)


if TYPE_CHECKING:
    import torch as torch
else:
    torch = _WhenUsed()
