"""Short names of array types, so that signatures fit on a line."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Texts: TypeAlias = NDArray[np.str_]
Codes: TypeAlias = NDArray[np.int8]
