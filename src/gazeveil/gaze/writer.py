"""The function behind `Cohort.write`.

Files belong to a layer above, so the package sets the function when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gazeveil.gaze.cohort import Cohort

#: Writes a cohort to a folder and returns the folder.
write_cohort: Callable[[Cohort, str | Path], Path]
