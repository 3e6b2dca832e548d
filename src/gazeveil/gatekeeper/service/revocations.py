"""Revoking works at once and from memory; writing it down comes later, and a crash in between
gives nothing back.

A revocation (consent withdrawn, a grant revoked, a token or an app dropped) is in force before this
module hears of it. Here it is put into the file `taken-back` of the home folder, and then written
to the policy file, the tokens and the audit log by a thread that tries until it succeeds. What
stands in the file at a start wins over the policy.

The file is preallocated and written in place, so that a full disk does not stop a revocation. An
unreadable file was torn by a crash during a revocation. Consent is then off for all wearers.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy

#: What can be taken.
KINDS = ("consent", "revoke", "token", "drop")

#: Room in the file, in bytes.
ROOM_BYTES = 16 * 1024

#: How long an answer waits for a revocation to be written, in seconds.
WAIT_S = 0.4

#: How long something that is given waits for what was taken before to be written, in seconds.
SETTLE_S = 2.0

#: How long after a failure it is tried again, in seconds.
AGAIN_S = 1.0


@dataclass(frozen=True)
class Revocation:
    """Something that was taken away.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    app : str
        Whose; empty for consent.
    wearer : str, optional
        Wearer of the revoked grant or consent; None for one the policy does not name.
    at_ns : int
        When, since the Unix epoch.
    """

    kind: str
    app: str
    wearer: str | None
    at_ns: int

    @property
    def of_token(self) -> bool:
        """Whether the tokens of the app end with it."""
        return self.kind in ("token", "drop")

    def from_policy(self, policy: Policy) -> Policy:
        """The policy of the present wearer without what was taken."""
        if self.kind == "drop":
            return policy.without(self.app)
        if self.kind == "token":
            # It was one for all wearers, so none of them goes on with what held it.
            others = {
                name: replace(wearer, apps=self._revoked(wearer.apps))
                for name, wearer in policy.others.items()
            }
            return replace(policy, apps=self._revoked(policy.apps), others=others)
        if policy.wearer != self.wearer:
            here = policy.wearer
            return (
                self.from_policy(policy.worn_by(self.wearer)).worn_by(here)
                if self.wearer in policy.wearers
                else policy
            )
        if self.kind == "consent":
            return replace(policy, consent=False)
        return replace(policy, apps=self._revoked(policy.apps))

    def _revoked(self, apps: Mapping[str, Grant]) -> dict[str, Grant]:
        return {
            app: replace(grant, revoked=True) if app == self.app else grant
            for app, grant in apps.items()
        }


class Revocations:
    """Revocations that are in force and not yet written everywhere, kept in the file `taken-back`.
    `write` writes one of them to where it belongs; it raises where that fails, and may be repeated.
    """

    def __init__(self, path: Path, write: Callable[[Revocation], None]) -> None:
        self._path, self._write = path, write
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._torn = False
        self._pending = self._read()
        self._stopping = self._hurry = False
        self._thread: threading.Thread | None = None

    def _read(self) -> list[Revocation]:
        try:
            text = self._path.read_text(encoding="ascii")
            return [Revocation(**saved) for saved in json.loads(text or "[]")]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError):
            self._torn = True
            return []

    def from_policy(self, policy: Policy) -> Policy:
        """A policy as it was read, without what was taken before the last stop and could not be
        written.
        """
        if self._torn:
            LOG.error(
                "the file taken-back cannot be read, so consent is off",
                extra={"path": str(self._path)},
            )
            self._pending = [
                Revocation("consent", "", wearer, time.time_ns()) for wearer in policy.wearers
            ]
        for revocation in self._pending:
            policy = revocation.from_policy(policy)
        return policy

    def tokens_of(self) -> frozenset[str]:
        """Apps whose tokens were taken away, and may stand in the database yet."""
        return frozenset(r.app for r in tuple(self._pending) if r.of_token)

    @property
    def consent_written(self) -> bool:
        """Whether no taking back of consent waits to be written."""
        return all(r.kind != "consent" for r in tuple(self._pending))

    def start(self) -> None:
        """Make the file and begin to write what is left of an earlier run."""
        with contextlib.suppress(OSError):
            self._mark()
        # A daemon: a database that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="revocations", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, revocation: Revocation) -> bool:
        """Have a revocation written that is in force already; whether it was within
        :data:`WAIT_S`.
        """
        with self._changed:
            self._pending.append(revocation)
            try:
                self._mark()
            except OSError as error:
                LOG.error("the file taken-back cannot be written", exc_info=error)
            self._changed.notify_all()
            return self._changed.wait_for(lambda: revocation not in self._pending, WAIT_S)

    def settle(self) -> bool:
        """Have all that waits written, before something is given; whether it was within
        :data:`SETTLE_S`.
        """
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._pending, SETTLE_S)

    def _mark(self) -> None:
        """Write what waits into the file, in place; the room behind it is filled with spaces."""
        text = json.dumps([asdict(r) for r in self._pending], separators=(",", ":")).encode("ascii")
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        with open(handle, "r+b") as file:
            file.write(text.ljust(max(ROOM_BYTES, os.fstat(handle).st_size)))
            file.flush()
            os.fsync(handle)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._pending) or self._stopping)
                if self._stopping:
                    return
            if not self._work_off():
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping or self._hurry, AGAIN_S)
                    self._hurry = False

    def _work_off(self) -> bool:
        """Write what waits, oldest first, until one fails."""
        with self._writing:
            for revocation in tuple(self._pending):
                try:
                    self._write(revocation)
                except Exception as error:
                    LOG.error(
                        "what was taken away cannot be written yet; it is in force",
                        extra={"kind": revocation.kind},
                        exc_info=error,
                    )
                    return False
                with self._changed:
                    self._pending.remove(revocation)
                    with contextlib.suppress(OSError):
                        # what stays in the file is written once more at the next start, which
                        # changes nothing
                        self._mark()
                    self._changed.notify_all()
        return True

    def close(self, wait_s: float = 2.0) -> None:
        """Try once more, for so long at most, and end the thread."""
        if self._pending:
            last = threading.Thread(
                target=self._work_off, name="revocations, once more", daemon=True
            )
            last.start()
            last.join(wait_s)
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(wait_s)
