"""The package `pylsl` and the library liblsl, loaded when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gazeveil.errors import GazeveilError, MissingExtraError


class MissingLSLError(MissingExtraError):
    """The package or the system's library of LSL is missing."""

    def __init__(self, what: str) -> None:
        GazeveilError.__init__(
            self,
            "LSL needs the package 'pylsl' (pip install 'gazeveil[lsl]') and the system's library"
            f" liblsl; {what} is missing. Install both, then try again.",
        )
        self.package = "pylsl"
        self.extra = "lsl"
        self.what = what

    def __reduce__(self) -> tuple[type[MissingExtraError], Any]:
        return MissingLSLError, (self.what,)


def load_pylsl() -> Any:
    """The package `pylsl`.

    Raises
    ------
    MissingLSLError
        Where it or the system's library is missing.
    """
    try:
        return import_module("pylsl")
    except ImportError:
        raise MissingLSLError("the package") from None
    except (RuntimeError, OSError, AttributeError):
        # pylsl looks for the library when it is imported, and says so in one of these ways
        raise MissingLSLError("the library") from None
