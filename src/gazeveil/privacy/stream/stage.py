"""The working state of one mechanism: what a session runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

from gazeveil.arrays import Bools, Floats, Ints

#: t_ns, x_deg, y_deg, valid.
Samples: TypeAlias = tuple[Ints, Floats, Floats, Bools]


class Stage(ABC):
    """The working state of one mechanism for all streams of a session."""

    @abstractmethod
    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """What is released now.

        Parameters
        ----------
        t_ns, x_deg, y_deg, valid : arrays of shape (streams, n)
            Validated samples: where `valid` is False, x and y are NaN. They are lent
            for this call: they may be changed in place and returned, but not kept.
        """

    def reset(self) -> None:  # noqa: B027 - a stage without a past has nothing to forget
        """Forget the past; noise goes on and never repeats."""
