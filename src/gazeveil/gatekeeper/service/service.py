"""Everything that runs behind one address: the core, its ledger, tokens, policy, tracker and
connections, put together once.

The event loop never waits for the database: the ledger and the tokens are called on threads. The
tracker's samples are pushed on the loop where that needs no waiting, and else on one thread, behind
what waits there, so their order is kept; the core's callbacks only put messages on queues.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.core.areas import Area
from gazeveil.gatekeeper.core.gatekeeper import Gatekeeper
from gazeveil.gatekeeper.errors import LedgerError, Refused
from gazeveil.gatekeeper.ledger.audit_log import AuditLog
from gazeveil.gatekeeper.ledger.ledger import Ledger
from gazeveil.gatekeeper.ledger.watch import LedgerWatch
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.policy.file import PolicyFile
from gazeveil.gatekeeper.policy.identity import LocalPeer
from gazeveil.gatekeeper.service.access_requests import AccessRequests
from gazeveil.gatekeeper.service.decisions import Decisions
from gazeveil.gatekeeper.service.http.limits import Guesses
from gazeveil.gatekeeper.service.http.rate_limiter import RateLimiter
from gazeveil.gatekeeper.service.metrics_page import EVENTS_STEP, Metrics
from gazeveil.gatekeeper.service.revocations import Revocations
from gazeveil.gatekeeper.service.sessions import Sessions
from gazeveil.gatekeeper.service.settings import Settings, secret_text
from gazeveil.gatekeeper.service.sockets.connections import Broadcaster, Connection
from gazeveil.gatekeeper.service.sockets.peers import Peers
from gazeveil.gatekeeper.service.state_dir import make_home, only_one
from gazeveil.gatekeeper.service.time_left import Prices
from gazeveil.gatekeeper.service.tokens import Tokens
from gazeveil.gatekeeper.trackers import Tracker, open_tracker
from gazeveil.gatekeeper.whole_file import write_whole

__all__ = ["HOUR_NS", "Caller", "Refused", "Service"]

#: Trackers that come to the service's own address.
OWN_CHANNEL = ("websocket", "openxr")

#: Blocks of the tracker that may wait; then no more are read.
BLOCKS_AHEAD = 32

#: How long the ledger may take to answer when it is only asked whether it is there, in seconds.
ASK_PATIENCE_S = 0.5

_Made = TypeVar("_Made")

HOUR_NS = 3600 * 10**9

#: The name under which the token of `owner_token_file` is listed.
TOKEN_FILE = "owner-token-file"


@dataclass(frozen=True)
class Caller:
    """Who sent a request with a token that was right."""

    app: str
    role: str
    expires_ns: int | None
    #: Public part of the token, or the owner's session.
    credential: str = ""
    #: Whether both halves of the owner's session came; always for tokens.
    whole: bool = True


class Service(Decisions):
    """The parts of a running Gatekeeper.

    Parameters
    ----------
    settings : Settings
        What it was told.

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
        self.guesses = Guesses(settings.guesses_per_minute)
        self.stopping = False
        self.tracker_connected = False
        self.tracker_taken = False
        self.end_tracker: Callable[[], object] | None = None
        self.areas: dict[tuple[str, int], Area] = {}
        self._shown = (0, 0, 0)
        self._blocks: list[Block] = []
        self._pump: asyncio.Task[None] | None = None
        self._switching = 0
        self._lock = threading.RLock()
        self._writing = threading.Lock()
        make_home(settings.home)
        self.policy_file = PolicyFile(settings.policy_path, settings.policy is not None)
        self.revocations = Revocations(settings.home / "taken-back", self.write_revocation)
        policy = self.revocations.from_policy(self.policy_file.load())
        self.access_requests = AccessRequests(settings.home / "dismissed.json")
        self.tracker: Tracker | None = None
        rate_hz, space = settings.rate_hz, settings.space
        if settings.tracker not in OWN_CHANNEL:
            options = {"rate_hz": settings.rate_hz} if settings.tracker == "simulated" else {}
            self.tracker = open_tracker(settings.tracker, **options)
            rate_hz, space = self.tracker.rate_hz, self.tracker.space
        # Two services would each hold a policy of their own: what is revoked at one would go on at
        # the other.
        self._alone = only_one(settings.home)
        try:
            self.ledger = Ledger.open(settings.database_url)
        except BaseException:
            self._alone.close()
            raise
        try:
            self.audit = AuditLog(self.ledger)
            self.tokens = Tokens(self.ledger)
            for app in self.revocations.tokens_of():
                self.tokens.forget(app)  # taken away before a crash, and perhaps not written
            self.take_owner_token()
            self.sessions = Sessions(self.ledger, end_all=settings.owner_sessions_end_at_restart)
            self.keeper = Gatekeeper(
                policy,
                self.ledger,
                rate_hz=rate_hz,
                space=space,
                level=settings.level,
                device=settings.device,
                audit=self.audit,
                folder=settings.home,
            )
        except BaseException:
            self.ledger.close()
            self._alone.close()
            raise
        self.peers = Peers(settings)
        self.rate_limiter = RateLimiter(
            settings, self.tokens, self.sessions, self.peers, self.local_app
        )
        self.owner_connections: dict[Connection, str] = {}
        self.prices = Prices(self.keeper.state)
        self.balances = self.ledger.balances(time.time_ns())
        self.keeper.on_use(lambda _: self.changed("in-use"))
        self.ledger_watch = LedgerWatch(
            self._ask_ledger, lambda: self.ledger.database.heard_s, self.keeper.ledger_silent
        )
        self.revocations.start()
        self.ledger_watch.start()
        self.pusher = ThreadPoolExecutor(1, thread_name_prefix="tracker")
        # Threads of their own: those of the other calls may all wait for a database that hangs, and
        # those that show the device for samples that wait for it.
        self._at_once = ThreadPoolExecutor(4, thread_name_prefix="at-once")
        self._from_memory = ThreadPoolExecutor(4, thread_name_prefix="from-memory")

    # --- who is there
    # ----------------------------------------------------------------------------------------------

    def caller(self, token: str, address: str, origin: str | None = None) -> Caller:
        """Who a token belongs to; wrong, stale and forged ones are all the same answer.

        Parameters
        ----------
        token : str
            As it came.
        address : str
            Of the peer.
        origin : str, optional
            The page's origin where it is not the service's own.
        """
        unknown = Refused(
            401, "token", "A valid token is needed. Ask the owner of the device for one."
        )
        if not token:
            raise unknown
        now_ns = time.time_ns()
        known = self.tokens.remembered(token, now_ns)
        if known is not None and known.role == "owner":
            # The owner must be able to take away while the database does not answer.
            return Caller(known.app, known.role, known.expires_ns, known.token_id)
        token_id = self.tokens.id_of(token)
        if known is None and not self.guesses.may_try(address, origin, token_id):
            raise Refused(429, "guesses", "There were too many wrong tokens. Wait a minute.")
        try:
            identity = self.tokens.check(token, now_ns)
        except LedgerError:
            raise self.database_lost() from None
        if identity is None:
            self.guesses.wrong(address, origin, token_id)
            self.metrics.guesses.inc()
            raise unknown
        return Caller(identity.app, identity.role, identity.expires_ns, identity.token_id)

    def local_app(self, peer: LocalPeer) -> str | None:
        """The app that a program of this machine is, as the policy of any wearer says; None where
        none or several fit.
        """
        named = {
            (app, grant.identity)
            for one in self.policy.wearers.values()
            for app, grant in one.apps.items()
        }
        fitting = {app for app, identity in named if identity is not None and identity.fits(peer)}
        return fitting.pop() if len(fitting) == 1 else None

    def app_caller(
        self, token: str, address: str, origin: str | None = None, local: LocalPeer | None = None
    ) -> Caller:
        """The app of a token, used from an origin it may be used from, or without a token the app
        that a program of this machine is.

        Parameters
        ----------
        token : str
            As it came.
        address : str
            Of the peer.
        origin : str, optional
            The page's origin where it is not the service's own.
        local : LocalPeer, optional
            Who it is, where it came over the Unix socket.
        """
        app = self.local_app(local) if local is not None and not token else None
        caller = (
            Caller(app, "app", None) if app is not None else self.caller(token, address, origin)
        )
        if caller.role != "app":
            raise Refused(403, "role", "This needs the token of an app.")
        if origin is not None:
            grant = self.policy.apps.get(caller.app)
            if grant is None or origin not in grant.origins:
                raise Refused(
                    403,
                    "origin",
                    "Pages of this origin may not use the app's token. The owner can add the origin"
                    " to the app.",
                )
        return caller

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
        if self.database_up:
            return None
        return (
            "Nothing is given now."
            f" {self.ledger.database.trouble or 'The ledger does not answer. Look whether its database runs.'}"
        )

    # --- the policy
    # ----------------------------------------------------------------------------------------------

    def origins(self) -> Collection[str]:
        """Origins of all apps."""
        return {origin for grant in self.policy.apps.values() for origin in grant.origins}

    # --- the tracker
    # ----------------------------------------------------------------------------------------------

    async def push(self, block: Block) -> None:
        """Have a block worked off: here, if that needs no waiting, or else on the core's thread;
        waits only while much is waiting there.

        Two changes of threads cost more than most blocks. Those that come while one is worked off
        elsewhere go together as the next, so that a busy machine pays for the change once.
        """
        if (
            not self._switching
            and not self._blocks
            and (self._pump is None or self._pump.done())
            and self._push_now(block)
        ):
            await asyncio.sleep(
                0
            )  # a tracker that sends without pause must not keep the event loop to itself
            return
        self._blocks.append(block)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._work_off())
        if len(self._blocks) >= BLOCKS_AHEAD:
            await self.settled()

    async def settled(self) -> None:
        """Wait until all that was pushed has been worked off."""
        while self._pump is not None and not self._pump.done():
            await asyncio.wait({self._pump})

    async def _work_off(self) -> None:
        loop = asyncio.get_running_loop()
        while self._blocks:
            several, self._blocks = self._blocks, []
            try:
                await loop.run_in_executor(self.pusher, self._push, _joined(several))
            except Exception as error:
                self._lost_block(error)
            finally:
                self.broadcaster.flush()

    def _push_now(self, block: Block) -> bool:
        started = time.perf_counter()
        try:
            with self.broadcaster.pushing():
                taken = self.keeper.push_now(block.t_ns, block.x_deg, block.y_deg, block.valid)
        except Exception as error:
            self._lost_block(error)
            return True
        if taken:
            self.broadcaster.flush()
            self._count_push(started, len(block))
        return taken

    def _lost_block(self, error: Exception) -> None:
        """A block that cannot be worked off is a lost one; the device goes on."""
        self.metrics.tracker_bad.inc()
        LOG.error("a block of the tracker was lost by a mistake of ours", exc_info=error)

    def _count_push(self, started: float, samples: int) -> None:
        self.metrics.pushed(time.perf_counter() - started, samples)

    def _push(self, block: Block) -> None:
        started = time.perf_counter()
        with self.broadcaster.pushing():
            self.keeper.push(block.t_ns, block.x_deg, block.y_deg, block.valid)
        self._count_push(started, len(block))

    async def lost(self) -> None:
        """The tracker vanished."""
        await self.settled()
        self.tracker_connected = False
        self.metrics.tracker_lost.inc()
        self.metrics.tracker_connected.set(0)
        await asyncio.get_running_loop().run_in_executor(self.pusher, self.keeper.lost)

    async def confirm(self) -> None:
        """The tracker says that the wearer made the gesture for a choice; it is judged after the
        samples that came before it.
        """
        await self.settled()
        await asyncio.get_running_loop().run_in_executor(self.pusher, self.keeper.confirm)

    def there(self) -> None:
        """The tracker is there."""
        if not self.tracker_connected:
            self.tracker_connected = True
            self.metrics.tracker_connected.set(1)

    async def switch_wearer(self, name: str | None, stale: bool) -> None:
        """Somebody else wears the device.

        Parameters
        ----------
        name : str, optional
            Who; None where that is not known.
        stale : bool
            Whether samples that wait are the last wearer's and came late; they are thrown away.
            Else they are worked off first.
        """
        # What comes from now on is the next wearer's: it queues behind the switch, however long
        # that waits for a lock.
        self._switching += 1
        try:
            if stale:
                self._blocks.clear()
            else:
                await self.settled()
            # On the tracker's thread: a block that is being worked off is finished under the wearer
            # whose gaze it is.
            await asyncio.get_running_loop().run_in_executor(self.pusher, self._switch, name)
        finally:
            self._switching -= 1

    def _switch(self, name: str | None) -> None:
        with self._lock:
            try:
                self.keeper.switch_wearer(name)
            finally:
                for ask in (
                    self.access_requests.waiting()
                ):  # the next wearer must not grant what the last one was asked
                    self.access_requests.withdraw(ask.app)
                self.areas.clear()
        self.changed("wearer", "consent", "apps", "asks", "audit")

    async def run_tracker(self) -> None:
        """Push what the tracker sends until it ends or the service stops."""
        assert self.tracker is not None
        gestures: set[asyncio.Task[None]] = set()

        def confirm() -> None:
            gestures.add(task := asyncio.create_task(self.confirm()))
            task.add_done_callback(gestures.discard)

        self.tracker.on_confirm = confirm
        try:
            async for block in self.tracker.samples():
                if block is None:
                    await self.lost()
                    continue
                self.there()
                await self.push(block)
            LOG.info("the tracker has ended", extra={"tracker": self.tracker.name})
        finally:
            if not self.stopping:
                await self.lost()

    async def watch(self) -> None:
        """Once a second: close what has expired, and show what is in use."""
        while True:
            await asyncio.sleep(1.0)
            self.broadcaster.sweep()
            self.peers.sweep(time.monotonic())
            self.keeper.in_use()
            self.metrics.database_up.set(1 if self.database_up else 0)

    def _ask_ledger(self) -> None:
        """Read how all accounts stand, and see that the database would take a write."""
        self.balances = self.ledger.balances(time.time_ns(), ASK_PATIENCE_S)
        self.sessions.write_ends()

    @property
    def database_up(self) -> bool:
        """Whether the ledger answers."""
        return self.ledger_watch.up

    async def at_once(self, work: Callable[..., _Made], *arguments: object) -> _Made:
        """Take something away, on threads that nothing else holds up."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._at_once, partial(work, *arguments))

    async def from_memory(self, work: Callable[..., _Made], *arguments: object) -> _Made:
        """Show what is known without the database; at most it waits for samples that do."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._from_memory, partial(work, *arguments))

    def take_owner_token(self) -> None:
        """Let the token of `owner_token_file` work, and no other that such a file held."""
        path = self.settings.owner_token_file
        if path is None:
            if any(one.name == TOKEN_FILE for one in self.tokens.owner_tokens(time.time_ns())):
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
        now = time.time_ns()
        address = next(iter(self.settings.public_origin), address)
        return f"{address}/owner?key={self.tokens.owner_link(now, now + HOUR_NS)}"

    @property
    def tracker_token_path(self) -> Path | None:
        """Where the token of a tracker on the service's own channel lies; None where the tracker is
        another.
        """
        return None if self.tracker is not None else self.settings.home / "tracker-token"

    def keep_tracker_token(self, anew: bool = False) -> None:
        """See that the tracker's token lies in its file; it is made anew only where it is not valid
        any more, or where that is asked for.
        """
        path = self.tracker_token_path
        if path is None:
            return
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found = self.tokens.check(path.read_text(encoding="utf-8").strip(), time.time_ns())
            if not anew and found is not None and found.role == "tracker":
                return
        self.new_tracker_token()

    def new_tracker_token(self) -> str:
        """A new token for the tracker, in its file too; the last one stops working and its
        connection is closed.
        """
        token = self.tokens.rotate(
            "tracker", "tracker", time.time_ns() + round(self.settings.token_days * 24 * HOUR_NS)
        )
        if (path := self.tracker_token_path) is not None:
            try:
                write_whole(path, token + "\n")
            except OSError as error:
                why = (error.strerror or "no reason given").lower()
                raise Refused(
                    503,
                    "disk",
                    f"The tracker's token cannot be written to its file ({why}). Free some space,"
                    " then try again.",
                ) from None
        if (end := self.end_tracker) is not None:
            end()
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
        if self.database_up:
            self.sessions.write_ends()
        return there

    def hang_up_owner(self, credential: str, reason: str) -> None:
        """Close the live views of a session or an owner's token."""
        self.broadcaster.hang_up(
            [
                connection
                for connection, whose in tuple(self.owner_connections.items())
                if whose == credential
            ],
            "signed-out",
            reason,
            4001,
        )

    async def close(self) -> None:
        """End everything, in order: nothing is pushed after the core is closed, nothing is written
        after the ledger is.
        """
        if self.tracker is not None:
            await self.tracker.close()
        await self.settled()
        await asyncio.to_thread(self.pusher.shutdown, True)
        self._at_once.shutdown(wait=False)
        self._from_memory.shutdown(wait=False)
        await asyncio.to_thread(self.ledger_watch.close)
        await asyncio.to_thread(self.revocations.close)
        await asyncio.to_thread(self.keeper.close)
        await asyncio.to_thread(self.ledger.close)
        self._alone.close()


def _joined(several: list[Block]) -> Block:
    """Blocks that follow one another as one."""
    if len(several) == 1:
        return several[0]
    parts = ((b.t_ns, b.x_deg, b.y_deg, b.valid) for b in several)
    t_ns, x_deg, y_deg, valid = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Block(t_ns, x_deg, y_deg, valid)
