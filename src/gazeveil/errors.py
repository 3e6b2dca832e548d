"""Every exception that Gazeveil raises on purpose.

::

    GazeveilError
    ├── ParameterError      a parameter is not allowed         (also a ValueError)
    ├── DataError           a recording or table cannot be used (also a ValueError)
    │   └── FormatError     a file cannot be read as its format
    └── MissingExtraError   an optional dependency is absent   (also an ImportError)

A message is one or two sentences: what is wrong, what is allowed, what came, and the next step. The
command line prints it as it is and exits with code 2; nothing below it needs a traceback to be
understood.
"""

from __future__ import annotations

from pathlib import Path


class GazeveilError(Exception):
    """Root of the tree: catch this to catch everything Gazeveil raises on purpose."""


class ParameterError(GazeveilError, ValueError):
    """A parameter is outside what is allowed.

    Parameters
    ----------
    message : str
        The whole sentence.
    name : str
        The parameter's name.
    got : object
        What came instead.
    """

    def __init__(self, message: str, *, name: str = "", got: object = None) -> None:
        super().__init__(message)
        self.name = name
        self.got = got


class DataError(GazeveilError, ValueError):
    """Recordings, events or tables that cannot be used as asked."""


class NothingLeftError(DataError):
    """A release without training data: every attacker is at chance level."""


class FormatError(DataError):
    """A file that cannot be read as its format.

    Parameters
    ----------
    path : Path or str
        The file.
    problem : str
        What is wrong, without a full stop.
    remedy : str
        The next step for the user, a whole sentence.
    line : int or None
        One-based line where it was seen.
    """

    def __init__(
        self, path: Path | str, problem: str, remedy: str = "", line: int | None = None
    ) -> None:
        where = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {problem}." + (f" {remedy}" if remedy else ""))
        self.path = Path(path)
        self.problem = problem
        self.remedy = remedy
        self.line = line

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, str, str, int | None]]:
        # The default reduction would pass the one-sentence message as `path`; worker processes send
        # these errors back.
        return FormatError, (str(self.path), self.problem, self.remedy, self.line)


class MissingExtraError(GazeveilError, ImportError):
    """An optional dependency is not installed.

    Parameters
    ----------
    package : str
        The import that failed.
    extra : str
        The extra of Gazeveil that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"This needs the package '{package}', which is not installed. Install it with: pip"
            f" install 'gazeveil[{extra}]'"
        )
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return MissingExtraError, (self.package, self.extra)
