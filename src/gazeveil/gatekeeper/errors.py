"""What the Gatekeeper says no with.

::

    GazeveilError
    ├── Denied          an app may not have what it asked for: `code` for programs, `reason` for
    │   │               people
    │   └── OverBudget  an account of the ledger has too little left; its reason says how much
    └── LedgerError     the ledger or the audit log cannot be written: nothing leaves

A refusal never contains gaze, and never tells what is missing from what belongs to another app:
both are "unknown".
"""

from __future__ import annotations

from gazeveil.errors import GazeveilError


class Denied(GazeveilError):  # noqa: N818  (a denial is an answer, not a failure)
    """An app may not have what it asked for: a word, and one sentence that says why, and the
    next step where there is one.

    Examples
    --------
    >>> Denied("unknown", "There is no area 7.").code
    'unknown'
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason

    def __reduce__(self) -> tuple[type[Denied], tuple[str, str]]:
        # The default reduction would pass the sentence as the code.
        return Denied, (self.code, self.reason)


class OverBudget(Denied):
    """An account of the ledger has too little left; the reason is one sentence, with
    what is left.
    """

    def __init__(self, account: str, reason: str) -> None:
        super().__init__("budget", reason)
        self.account = account

    def __reduce__(self) -> tuple[type[OverBudget], tuple[str, str]]:
        return OverBudget, (self.account, self.reason)


class PortTakenError(GazeveilError):
    """Another program has the port of the service; later it may be free."""


class LedgerError(GazeveilError):
    """The ledger or the audit log could not be read or written; whatever was
    asked for is refused.
    """


class Refused(GazeveilError):  # noqa: N818 - as Denied, it is an answer
    """A request that is answered with an error: an HTTP status, a word and a sentence."""

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason = status, code, reason
