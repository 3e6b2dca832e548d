"""To and from pymovements' `Gaze` and `Dataset` (extra `pymovements`).

What goes to pymovements and comes back: times (also as whole nanoseconds in the column `t_ns`),
gaze of valid samples, the eyes where both are there, pupil, labels, events, messages, screen, rate
and the recording's names (in `metadata`). The values trackers give for lost samples, head, eye in
head and confidence stay behind.
"""

from __future__ import annotations

from gazeveil.io.adapters.pymovements.incoming import from_pymovements
from gazeveil.io.adapters.pymovements.outgoing import to_dataset, to_pymovements

__all__ = ["from_pymovements", "to_dataset", "to_pymovements"]
