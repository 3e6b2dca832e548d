"""The functions behind `to_polars` and `from_frame`.

Data frames belong to a layer above, so the package sets these functions when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: A polars frame of a recording, a cohort or events.
frame_of: Callable[[Any], Any]

#: A value of the class that is named (`Recording`, `Cohort`, `Events`) from a data frame.
value_of: Callable[[str, Any, Mapping[str, Any]], Any]
