"""Everything that runs behind one address: the core, its ledger, tokens, policy, tracker and
connections, put together once.

The event loop never waits for the database: the ledger is called on threads, and the core's
callbacks only put messages on queues.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.errors import LedgerError, Refused
from gazeveil.gatekeeper.ledger.audit import AuditLog
from gazeveil.gatekeeper.ledger.database import Sql
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.policy.decision import ended_by_restart
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.asks import AccessRequests, name_of_origin
from gazeveil.gatekeeper.service.connections import Broadcaster, Connection
from gazeveil.gatekeeper.service.credentials import Caller, Sessions, Tokens
from gazeveil.gatekeeper.service.decisions import Decisions
from gazeveil.gatekeeper.service.guard import Buckets, RateLimiter
from gazeveil.gatekeeper.service.peers import Peers
from gazeveil.gatekeeper.service.settings import Settings, secret_text
from gazeveil.gatekeeper.service.store import (
    WAIT_S,
    Revocation,
    Revocations,
    make_home,
    only_one,
    read_policy,
    write_policy,
)
from gazeveil.gatekeeper.service.tracker_input import TrackerInput
from gazeveil.gatekeeper.trackers import Tracker, open_tracker

#: After so many seconds without a write nothing more leaves; as long as a stream waits for its next
#: lease. And how often that is looked at.
SILENCE_S, LOOK_S = 2.0, 0.25

_Value = TypeVar("_Value")

HOUR_NS = 3600 * 10**9
_DAY_NS = 24 * HOUR_NS

#: The name under which the token of `owner_token_file` is listed.
TOKEN_FILE = "owner-token-file"


class Service(Decisions):
    """The parts of a running Gatekeeper.

    Raises
    ------
    GazeveilError
        With one sentence where the home folder, the database, the policy or the tracker cannot be
        used.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.broadcaster = Broadcaster()
        self.stopping = False
        #: Whether what is compiled on first use is still being compiled.
        self.warming = False
        self.owner_connections: dict[Connection, str] = {}
        self._lock = threading.RLock()
        make_home(settings.home)
        self.tracker: Tracker | None = None
        if settings.tracker != "websocket":  # which comes to the service's own address
            # a default rate is no reason to doubt the rate that the tracker reports
            named = settings.tracker == "simulated" or "rate_hz" in settings.model_fields_set
            options: dict[str, object] = {"rate_hz": settings.rate_hz} if named else {}
            if settings.tracker == "mouse" and settings.screen:
                options["space"] = settings.space
            self.tracker = open_tracker(settings.tracker, **options)
        with contextlib.ExitStack() as undo:
            # Two services would each hold a policy of their own: what is revoked at one would go on
            # at the other.
            self._alone = undo.enter_context(only_one(settings.home))
            self.ledger = undo.enter_context(Ledger.open(settings.database_url))
            if self.ledger.database.file is not None:
                self.ledger.database.file.alone = True
            self.ledger.database.hold()
            self._open()
            undo.pop_all()
        self.keeper.on_use(lambda _: self.changed("in-use"))
        self.revocations.start()
        self.ledger.database.beat = self._beat
        # Threads of their own: those of the other calls may all wait for a database that hangs.
        self._at_once = ThreadPoolExecutor(8, thread_name_prefix="at-once")

    def _open(self) -> None:
        """Make what stands on the ledger: tokens and sessions, the core, and who watches it."""
        settings, database, now_ns = self.settings, self.ledger.database, self.ledger.now_ns
        self.audit = AuditLog(self.ledger)
        self.tokens = Tokens(database, now_ns)
        self.sessions = Sessions()
        self.access_requests = AccessRequests(database, self.tokens)
        self.revocations = Revocations(settings.home / "taken-back", self._owe)
        policy = read_policy(database)
        #: Host of the owner's link. After an earlier start another program may have had the port
        #: and left a service worker, which would read the link: so the origin is a new one.
        self.page_host = "127.0.0.1" if policy is None else f"{token_hex(8)}.localhost"
        if policy is None:
            policy = Policy.load(settings.policy) if settings.policy else Policy()
        policy = ended_by_restart(self.revocations.from_policy(policy, now_ns()), now_ns())
        database.write(lambda sql: write_policy(sql, policy))
        for revocation in self.revocations.pending:
            if revocation.kind == "drop":
                self.tokens.end(app=revocation.app, role="app")
        self.take_owner_token()
        source = settings if self.tracker is None else self.tracker
        self.keeper = Gatekeeper(
            policy,
            self.ledger,
            rate_hz=source.rate_hz,
            space=source.space,
            level=settings.level,
            device=settings.device,
            audit=self.audit,
            keep=write_policy,
        )
        # A replay that is quicker than time has no age.
        late_ms = settings.late_ms if getattr(self.tracker, "speed", 1.0) == 1.0 else 0.0
        self.tracker_input = TrackerInput(
            self.keeper, self.broadcaster, round(late_ms * 1e6), self.tell_pauses
        )
        self.peers = Peers(settings)
        self.rate_limiter = RateLimiter(
            settings, self.tokens, self.sessions, self.peers, self.local_app
        )
        #: Messages of each app on all its WebSockets.
        self.commands = Buckets(settings.limits.commands_per_minute)
        self.spent = self.ledger.all_spent(now_ns())

    def _owe(self, revocation: Revocation) -> Future[None]:
        """Have something written that was taken away: policy and audit row together."""

        def work(sql: Sql) -> None:
            write_policy(sql, self.policy)
            detail = {"apps": len(self.policy.apps), "consent": self.policy.consent}
            self.audit.writes(
                revocation.kind, revocation.app or "device", detail, revocation.at_ns
            )(sql)

        return self.ledger.database.owe(work)

    # --- health
    # ----------------------------------------------------------------------------------------------

    @property
    def database_up(self) -> bool:
        """Whether the ledger answers."""
        database = self.ledger.database
        return database.trouble is None and time.monotonic() - database.heard_s <= SILENCE_S

    def why_not_ready(self) -> str | None:
        """One sentence for the health page where nothing can be given; it names no path, because
        strangers read it.
        """
        if self.stopping:
            return "The service is stopping."
        if self.warming:
            return "The service is starting: it compiles what it needs, a minute the first time."
        if self.database_up:
            refused = self.tracker_input.trouble
            return refused if refused and not self.tracker_input.connected else None
        trouble = self.ledger.database.trouble
        why = trouble or "The ledger does not answer. Look whether its database runs."
        return f"Nothing is given now. {why}"

    def _beat(self) -> None:
        """Twice a second, on the database's thread: read how all accounts stand, see that the
        database would take a write, and record what has ended.
        """
        self.spent = self.ledger.all_spent(self.ledger.now_ns())
        self.keeper.record_ends()
        self.tokens.record_ends()

    async def watch_ledger(self) -> None:
        """End what is given where the ledger is silent."""
        waited = False
        while True:
            before = time.monotonic()
            await asyncio.sleep(LOOK_S)
            now = time.monotonic()
            if now - self.ledger.database.heard_s <= SILENCE_S:
                waited = False
            elif not waited and now - before > 2 * LOOK_S:
                # Where this process itself was held up (a compiler, SIGSTOP), the ledger gets one
                # more look to answer in.
                waited = True
            else:
                await self.at_once(self.keeper.ledger_silent)

    async def watch(self) -> None:
        """Once a second: close what has expired, and show what is in use."""
        while True:
            await asyncio.sleep(1.0)
            self.tracker_input.look()
            self.broadcaster.sweep(self.ledger.now_ns())
            self.hang_up_other_programs()
            self.peers.sweep(time.monotonic())
            self.keeper.end_expired()
            self.discard_denied()
            self.keeper.in_use()
            if self.access_requests.sweep(time.time_ns()):
                self.changed("asks")

    async def at_once(self, work: Callable[..., _Value], *arguments: object) -> _Value:
        """Take something away, or show what is known from memory, on threads that nothing else
        holds up.
        """
        return await asyncio.get_running_loop().run_in_executor(
            self._at_once, partial(work, *arguments)
        )

    # --- callers
    # ----------------------------------------------------------------------------------------------

    def origins(self) -> Collection[str]:
        """Origins of all apps."""
        known = {origin for grant in self.policy.apps.values() for origin in grant.origins}
        return known | self.access_requests.origins()

    def caller(self, token: str) -> Caller:
        """Who a token belongs to; wrong, stale and forged ones are all the same answer."""
        holder = self.tokens.holder(token)
        if holder is None or holder.role == "link":
            raise Refused(
                401,
                "token",
                "This app was not allowed yet. A page calls ask(), a program brings a token.",
            )
        return Caller(
            holder.app, holder.role, holder.expires_ns, holder.id, newcomer=holder.newcomer
        )

    def app_caller(self, token: str, origin: str | None = None, local: int | None = None) -> Caller:
        """The app of a token, used from an origin it may be used from; or without a token the app
        that a program of this machine is, where it came over the Unix socket (`local`).
        """
        app = self.local_app(local) if local is not None and not token else None
        asked = self.access_requests.of_user(local) if local is not None and not token else None
        if app is not None:
            caller = Caller(app, "app")
        elif asked is not None:
            caller = Caller(asked.app, "app", newcomer=True)
        else:
            caller = self.caller(token)
        if caller.role != "app":
            raise Refused(403, "role", "This needs the token of an app.")
        if origin is not None:
            grant = self.policy.apps.get(caller.app)
            own = caller.newcomer and name_of_origin(origin) == caller.app
            if not own and (grant is None or origin not in grant.origins):
                raise Refused(
                    403,
                    "origin",
                    "Pages of this origin may not use the app's token. The owner can add the origin"
                    " to the app.",
                )
        return caller

    def end_session(self, reason: str) -> None:
        """End the session of the owner and what it looks at; in force at once, also while the
        database does not answer.
        """
        self.hang_up_owner(self.sessions.end(), reason)

    def end_owner_token(self, number: str) -> bool:
        """End a program's token; as :meth:`end_session`."""
        ended = self.tokens.end(role="owner", id=number)
        self.hang_up_owner(number, "The owner has ended this token.")
        with contextlib.suppress(TimeoutError):
            if ended is not None:
                ended.result(WAIT_S)
        return ended is not None

    def hang_up_owner(self, credential: str, reason: str) -> None:
        """Close the live views of a session or an owner's token."""
        mine = [c for c, whose in tuple(self.owner_connections.items()) if whose == credential]
        self.broadcaster.hang_up(mine, "signed-out", reason, 4001)

    def take_owner_token(self) -> None:
        """Let the token of `owner_token_file` work, and no other that such a file held."""
        path = self.settings.owner_token_file
        if path is None:
            self.tokens.end(app=TOKEN_FILE, role="owner")
        elif not self.tokens.adopt(TOKEN_FILE, "owner", secret_text(path, "owner_token_file")):
            raise ParameterError(
                f"The file {path} of the setting 'owner_token_file' holds no owner's token, or one"
                " that was ended. The manual says how to make one.",
                name="owner_token_file",
            )

    def owner_link(self, address: str) -> str:
        """A link for the owner that works once, for an hour; under the public origin where there is
        one.
        """
        own = address.replace("//127.0.0.1:", f"//{self.page_host}:")
        key = self.tokens.issue(
            "owner", "link", self.ledger.now_ns() + HOUR_NS, in_place_of_others=True
        )
        return f"{next(iter(self.settings.public_origin), own)}/owner?key={key}"

    @property
    def tracker_token_path(self) -> Path | None:
        """Where the token of a tracker on the service's own channel lies; None where the tracker is
        another.
        """
        return None if self.tracker is not None else self.settings.home / "tracker-token"

    def end_passes(self) -> None:
        """End the passes of pages, which ask again: while the port was free another program may
        have been sent them.
        """
        for app in self.tokens.apps():
            if app in map(name_of_origin, self.policy.apps.get(app, Grant()).origins):
                self.tokens.end(app=app, role="app")

    def new_tracker_token(self) -> str:
        """A new token for the tracker, in its file too; the last one stops working.

        Raises
        ------
        ParameterError
            Where the file cannot be written.
        """
        token = self.tokens.issue("tracker", "tracker", None, in_place_of_others=True)
        if (path := self.tracker_token_path) is not None:
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with open(handle, "w", encoding="ascii") as file:
                    file.write(token + "\n")
            except OSError as error:
                why = (error.strerror or "no reason given").lower()
                raise ParameterError(
                    f"The tracker's token cannot be written to {path} ({why}). Free some space."
                ) from None
        return token

    # --- the wearer and the tracker
    # ----------------------------------------------------------------------------------------------

    async def switch_wearer(self, name: str | None, stale: bool) -> None:
        """Switch to another wearer; None for an unknown one.

        If `stale`, waiting samples are dropped, because they are the last wearer's.
        """
        await self.tracker_input.switch(partial(self._switch, name), stale)

    def _switch(self, name: str | None) -> None:
        with self._lock:
            try:
                self.keeper.switch_wearer(name)
            finally:
                for connection in tuple(self.broadcaster.connections):
                    connection.discard_ended(lambda _: False)
                # The next wearer must not grant what the last one was asked.
                for ask in self.access_requests.waiting():
                    self.access_requests.withdraw(ask.app)
        self.changed("wearer", "consent", "apps", "asks", "audit")

    def paused(self) -> dict[str, object]:
        """What apps are told while no gaze comes."""
        reason = self.tracker_input.paused
        return {"type": "paused", "reason": reason, "t_ms": self.keeper.state.t_ms}

    def tell_pauses(self) -> None:
        """Tell apps with a grant whether gaze has stopped, or goes on; a tracker's clock that was
        set is both.
        """
        tracker, resumed = self.tracker_input, {"type": "resumed", "t_ms": self.keeper.state.t_ms}
        told = [self.paused()] if tracker.paused else [resumed]
        told = [{**resumed, "type": "paused", "reason": "clock"}, *told] if tracker.jumped else told
        tracker.jumped = False
        for connection in tuple(self.broadcaster.connections):
            if connection.app and self.state(connection.app) == "granted":
                for message in told:
                    connection.answer(message)
        self.changed("tracker")

    # --- the end
    # ----------------------------------------------------------------------------------------------

    async def keep_audit(self, days: float) -> None:
        """Delete rows of the audit log that are older than so many days, at once and hourly."""
        while True:
            now_ns = self.ledger.now_ns()
            with contextlib.suppress(LedgerError):  # the health page says so; it is tried again
                await asyncio.to_thread(self.audit.prune, now_ns - round(days * _DAY_NS), now_ns)
            await asyncio.sleep(3600.0)

    async def close(self) -> None:
        """End everything, in order: nothing is pushed after the core is closed, nothing is written
        after the ledger is.
        """
        if self.tracker is not None:
            await self.tracker.close()
        await self.tracker_input.close()
        self._at_once.shutdown(wait=False)
        await asyncio.to_thread(self.keeper.close)
        self.ledger.database.beat = None
        await asyncio.to_thread(self.ledger.close)
        self._alone.close()
