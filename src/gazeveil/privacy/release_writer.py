"""The function behind `Release.write`.

What writes a release stands on the mechanisms, which stand on `Release`, so the package sets the
function when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: Writes a release with the given choices, and returns where it is.
write_release: Callable[[Any, Path, Mapping[str, Any]], Path]
