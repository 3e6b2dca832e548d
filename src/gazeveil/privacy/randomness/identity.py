"""Whether an object that holds noise is still the one that was made here.

Noise protects once. Memory does not know that: a forked child, an unpickled object and a copy hold
the same key and the same place in its stream as the original, and whoever sees one noise on two
people's gaze can subtract it. A :class:`ProcessIdentity` says whether its holder is the original;
a copy takes a key of its own or refuses.

A snapshot of the whole machine that is resumed twice cannot be told from inside; that it is not
done is assumed (:data:`gazeveil.privacy.randomness.rng.ASSUMPTION`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

_forks = 0
_renewing = threading.RLock()  # what a holder forgets may hold more that is forgotten


def _forked() -> None:
    global _forks, _renewing
    _forks += 1
    _renewing = threading.RLock()  # the parent's may have been held by a thread that is not here


os.register_at_fork(after_in_child=_forked)


class ProcessIdentity:
    """Which one of several like objects its holder is.

    A forked child tells by the process: by the count of forks also when process numbers come round,
    by the number also when C code forked. An unpickled or copied identity is never the original. A
    shallow copy of the holder shares the identity, so holders make such copies deep.

    Examples
    --------
    >>> from copy import deepcopy
    >>> mine = ProcessIdentity()
    >>> mine.original, deepcopy(mine).original
    (True, False)
    """

    __slots__ = ("_process",)

    def __init__(self) -> None:
        self._process = (os.getpid(), _forks)

    @property
    def original(self) -> bool:
        """Whether the holder was made in this process and not as a copy."""
        return self._process == (os.getpid(), _forks)

    def renew(self, forget: Callable[[], None]) -> None:
        """Let a holder that is not the original forget what belongs to it; of several threads one
        does so, the others wait.
        """
        with _renewing:
            if not self.original:
                forget()
                self._process = (os.getpid(), _forks)

    def __reduce__(self) -> tuple[Callable[[], ProcessIdentity], tuple[()]]:
        return _stranger, ()


def _stranger() -> ProcessIdentity:
    """The identity of a copy."""
    made = ProcessIdentity()
    made._process = (-1, -1)
    return made
