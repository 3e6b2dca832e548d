"""Everything that runs behind one address: the core, its ledger, tokens, policy, tracker and
connections, put together once.

The event loop never waits for the database: the ledger and the tokens are called on threads, and
the core's callbacks only put messages on queues.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.core.areas import RegisteredArea
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.errors import Refused
from gazeveil.gatekeeper.ledger.audit.log import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.ledger.watch import LedgerWatch
from gazeveil.gatekeeper.policy.file import PolicyFile
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.access_requests import AccessRequests
from gazeveil.gatekeeper.service.credentials.callers import Callers
from gazeveil.gatekeeper.service.credentials.sessions import Sessions
from gazeveil.gatekeeper.service.credentials.tokens import Tokens
from gazeveil.gatekeeper.service.decisions import Decisions, disk_refused
from gazeveil.gatekeeper.service.http.limits import Buckets, Guesses
from gazeveil.gatekeeper.service.http.rate_limiter import RateLimiter
from gazeveil.gatekeeper.service.metrics_page import EVENTS_STEP, Metrics
from gazeveil.gatekeeper.service.revocations import Revocations
from gazeveil.gatekeeper.service.settings import Settings, secret_text
from gazeveil.gatekeeper.service.sockets.connections import Broadcaster, Connection
from gazeveil.gatekeeper.service.sockets.peers import Peers
from gazeveil.gatekeeper.service.state_dir import make_home, only_one
from gazeveil.gatekeeper.service.time_left import Prices
from gazeveil.gatekeeper.service.tracker_input import TrackerInput
from gazeveil.gatekeeper.trackers import Tracker, open_tracker
from gazeveil.gatekeeper.whole_file import write_whole

#: Trackers that come to the service's own address.
OWN_CHANNEL = ("websocket", "openxr")

#: How long the ledger may take to answer when it is only asked whether it is there, in seconds.
ASK_PATIENCE_S = 0.5

_Value = TypeVar("_Value")

HOUR_NS = 3600 * 10**9

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
        self.metrics = Metrics()
        self.broadcaster = Broadcaster()
        self.stopping = False
        #: Whether what is compiled on first use is still being compiled.
        self.warming = False
        self.areas: dict[tuple[str, int], RegisteredArea] = {}
        self.owner_connections: dict[Connection, str] = {}
        self._shown = (0, 0, 0)
        self._lock = threading.RLock()
        self._writing = threading.Lock()
        make_home(settings.home)
        self.policy_file = PolicyFile(settings.policy_path, settings.policy is not None)
        self.revocations = Revocations(settings.home / "taken-back", self.write_revocation)
        policy = self.revocations.from_policy(self.policy_file.load())
        self.access_requests = AccessRequests(settings.home / "dismissed.json")
        self.tracker: Tracker | None = None
        if settings.tracker not in OWN_CHANNEL:
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
            self._open(policy)
            undo.pop_all()
        self.keeper.on_use(lambda _: self.changed("in-use"))
        self.revocations.start()
        self.ledger_watch.start()
        # Threads of their own: those of the other calls may all wait for a database that hangs, and
        # those that show the device for samples that wait for it.
        self._at_once = ThreadPoolExecutor(4, thread_name_prefix="at-once")
        self._from_memory = ThreadPoolExecutor(4, thread_name_prefix="from-memory")

    def _open(self, policy: Policy) -> None:
        """Make what stands on the ledger: tokens and sessions, the core, and who watches it."""
        settings = self.settings
        self.audit = AuditLog(self.ledger)
        self.tokens = Tokens(self.ledger)
        for app in self.revocations.tokens_of():
            self.tokens.forget(app)  # taken away before a crash, and perhaps not written
        self.take_owner_token()
        self.sessions = Sessions()
        source = settings if self.tracker is None else self.tracker
        self.keeper = Gatekeeper(
            policy,
            self.ledger,
            rate_hz=source.rate_hz,
            space=source.space,
            level=settings.level,
            device=settings.device,
            audit=self.audit,
        )
        # A replay that is quicker than time has no age.
        late_ms = settings.late_ms if getattr(self.tracker, "speed", 1.0) == 1.0 else 0.0
        self.tracker_input = TrackerInput(
            self.keeper, self.broadcaster, self.metrics, round(late_ms * 1e6), self.tell_pauses
        )
        guesses = Guesses(settings.limits.guesses_per_minute)
        self.callers = Callers(
            self.tokens,
            guesses,
            self.metrics,
            lambda: self.policy,
            self.database_lost,
            self.access_requests,
        )
        self.peers = Peers(settings)
        self.rate_limiter = RateLimiter(
            settings, self.tokens, self.sessions, self.peers, self.callers.local_app
        )
        #: Messages of each app on all its WebSockets.
        self.commands = Buckets(settings.limits.commands_per_minute)
        self.prices = Prices(self.keeper.state)
        self.balances = self.ledger.balances(self.ledger.now_ns())
        self.ledger_watch = LedgerWatch(
            self._ask_ledger, lambda: self.ledger.database.heard_s, self.keeper.ledger_silent
        )

    # --- health
    # ----------------------------------------------------------------------------------------------

    def database_lost(self) -> Refused:
        """What is answered while the database does not."""
        self.ledger_watch.up = False
        return Refused(
            503, "ledger", "The ledger cannot be reached now, so nothing is given. Try again later."
        )

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

    # --- the policy
    # ----------------------------------------------------------------------------------------------

    def origins(self) -> Collection[str]:
        """Origins of all apps."""
        known = {origin for grant in self.policy.apps.values() for origin in grant.origins}
        return known | self.access_requests.origins()

    # --- the wearer
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
                self.areas.clear()
        self.changed("wearer", "consent", "apps", "asks", "audit")

    # --- the clock and the threads
    # ----------------------------------------------------------------------------------------------

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
            self.metrics.database_up.set(1 if self.database_up else 0)

    def _ask_ledger(self) -> None:
        """Read how all accounts stand, and see that the database would take a write."""
        self.balances = self.ledger.balances(self.ledger.now_ns(), ASK_PATIENCE_S)
        self.keeper.record_ends()
        self.tokens.ends.write()

    @property
    def database_up(self) -> bool:
        """Whether the ledger answers."""
        return self.ledger_watch.up

    async def at_once(self, work: Callable[..., _Value], *arguments: object) -> _Value:
        """Take something away, on threads that nothing else holds up."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._at_once, partial(work, *arguments))

    async def from_memory(self, work: Callable[..., _Value], *arguments: object) -> _Value:
        """Show what is known without the database and without waiting for samples that do."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._from_memory, partial(work, *arguments))

    def take_owner_token(self) -> None:
        """Let the token of `owner_token_file` work, and no other that such a file held."""
        path = self.settings.owner_token_file
        if path is None:
            live = self.tokens.live.owner_tokens(self.ledger.now_ns())
            if any(token.name == TOKEN_FILE for token in live):
                self.tokens.revoke(TOKEN_FILE, "owner")
        elif not self.tokens.adopt(TOKEN_FILE, "owner", secret_text(path, "owner_token_file")):
            raise ParameterError(
                f"The file {path} of the setting 'owner_token_file' holds no owner's token, or one"
                " that was ended. The manual says how to make one.",
                name="owner_token_file",
            )

    # --- starting
    # ----------------------------------------------------------------------------------------------

    def owner_link(self, address: str) -> str:
        """A link for the owner that works once, for an hour; under the public origin where there is
        one.
        """
        address = next(iter(self.settings.public_origin), address)
        return f"{address}/owner?key={self.tokens.owner_link(self.ledger.now_ns() + HOUR_NS)}"

    @property
    def tracker_token_path(self) -> Path | None:
        """Where the token of a tracker on the service's own channel lies; None where the tracker is
        another.
        """
        return None if self.tracker is not None else self.settings.home / "tracker-token"

    def new_tracker_token(self) -> str:
        """A new token for the tracker, in its file too; the last one stops working and its
        connection is closed.
        """
        token = self.tokens.rotate("tracker", "tracker", self.token_end_ns())
        if (path := self.tracker_token_path) is not None:
            try:
                write_whole(path, token + "\n")
            except OSError as error:
                sentence = "The tracker's token cannot be written to its file"
                raise disk_refused(sentence, error) from None
        if (hang_up := self.tracker_input.hang_up) is not None:
            hang_up()
        return token

    @property
    def database_name(self) -> str:
        """Which database, without its password."""
        return "PostgreSQL" if self.settings.database_url.startswith("postgres") else "SQLite"

    # --- the end
    # ----------------------------------------------------------------------------------------------

    def refresh_metrics(self) -> None:
        """Bring the counters that are kept elsewhere up to date."""
        self.metrics.strangers.set(self.peers.strangers)
        self.metrics.subscriptions.set(
            sum(len(connection.channels) for connection in tuple(self.broadcaster.connections))
        )
        with self._lock:
            now = (
                self.broadcaster.samples_sent,
                self.broadcaster.samples_dropped,
                self.broadcaster.events_dropped // EVENTS_STEP * EVENTS_STEP,
            )
            for counter, value, before in zip(
                (self.metrics.sent, self.metrics.dropped, self.metrics.events_dropped),
                now,
                self._shown,
                strict=True,
            ):
                counter.inc(max(0, value - before))
            self._shown = now

    def end_session(self, number: str, reason: str) -> bool:
        """End a session of the owner and what it looks at; in force at once, also while the
        database does not answer.
        """
        there = self.sessions.end(number)
        self.hang_up_owner(number, reason)
        return there

    def hang_up_owner(self, credential: str, reason: str) -> None:
        """Close the live views of a session or an owner's token."""
        mine = [c for c, whose in tuple(self.owner_connections.items()) if whose == credential]
        self.broadcaster.hang_up(mine, "signed-out", reason, 4001)

    async def close(self) -> None:
        """End everything, in order: nothing is pushed after the core is closed, nothing is written
        after the ledger is.
        """
        if self.tracker is not None:
            await self.tracker.close()
        await self.tracker_input.close()
        self._at_once.shutdown(wait=False)
        self._from_memory.shutdown(wait=False)
        await asyncio.to_thread(self.ledger_watch.close)
        await asyncio.to_thread(self.revocations.close)
        await asyncio.to_thread(self.keeper.close)
        await asyncio.to_thread(self.ledger.close)
        self._alone.close()
