"""Everything that runs behind one address: the core, its ledger, tokens, policy, tracker and connections, put together once.

The event loop never waits for the database: the core, the ledger and the tokens are called on threads. One thread pushes the tracker's
samples, so their order is kept; the core's callbacks run on it and only put packets on queues.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gazeveil.errors import GazeveilError
from gazeveil.gatekeeper.areas import Area
from gazeveil.gatekeeper.audit_log import AuditLog
from gazeveil.gatekeeper.blocks import Block
from gazeveil.gatekeeper.core import Gatekeeper
from gazeveil.gatekeeper.errors import LedgerError
from gazeveil.gatekeeper.home import first_policy, make_home, only_one, put, written
from gazeveil.gatekeeper.hub import Hub
from gazeveil.gatekeeper.ledger import Ledger
from gazeveil.gatekeeper.limits import Guesses
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.metrics_page import Metrics
from gazeveil.gatekeeper.policy import Grant, Policy
from gazeveil.gatekeeper.presets import PRESETS
from gazeveil.gatekeeper.settings import Settings
from gazeveil.gatekeeper.till import account_of
from gazeveil.gatekeeper.tokens import Tokens
from gazeveil.gatekeeper.trackers import Tracker, open_tracker
from gazeveil.gaze.geometry import Sphere
from gazeveil.privacy.guarantee import Guarantee

#: Trackers that come to the service's own address.
OWN_CHANNEL = ("websocket", "openxr")

#: Blocks of the tracker that may wait; then no more are read.
BLOCKS_AHEAD = 32

HOUR_NS = 3600 * 10**9


class Refused(GazeveilError):  # noqa: N818 - as Denied, it is an answer
    """A request that is answered with an error.

    Parameters
    ----------
    status : int
        HTTP status.
    code : str
        A word.
    reason : str
        A sentence.
    """

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason = status, code, reason


@dataclass(frozen=True)
class Caller:
    """Who sent a request with a token that was right."""

    app: str
    role: str
    expires_ns: int | None


@dataclass(frozen=True)
class Ask:
    """What an app would like to be granted."""

    id: int
    app: str
    preset: str | None
    scopes: tuple[str, ...]
    mechanisms: tuple[str, ...]
    why: str
    t_ns: int


class Service:
    """The parts of a running Gatekeeper.

    Parameters
    ----------
    settings : Settings
        What it was told.

    Raises
    ------
    GazeveilError
        With one sentence where the home folder, the database, the policy or the tracker cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.hub = Hub()
        self.guesses = Guesses(settings.guesses_per_minute)
        self.stopping = False
        self.database_up = True
        self.tracker_connected = False
        self.tracker_taken = False
        self.end_tracker: Callable[[], object] | None = None
        self.asks: dict[str, Ask] = {}
        self.areas: dict[tuple[str, int], Area] = {}
        self._asked = 0
        self._shown = (0, 0, 0)
        self._blocks: list[Block] = []
        self._pump: asyncio.Task[None] | None = None
        self._lock = threading.RLock()
        make_home(settings.home)
        policy = first_policy(settings)
        self.tracker: Tracker | None = None
        rate_hz, space = settings.rate_hz, settings.space
        if settings.tracker not in OWN_CHANNEL:
            options = {"rate_hz": settings.rate_hz} if settings.tracker == "simulated" else {}
            self.tracker = open_tracker(settings.tracker, **options)
            rate_hz, space = self.tracker.rate_hz, self.tracker.space
        # Two services would each hold a policy of their own: what is revoked at one would go on at the other.
        self._alone = only_one(settings.home)
        try:
            self.ledger = Ledger.open(settings.database_url)
        except BaseException:
            self._alone.close()
            raise
        try:
            self.audit = AuditLog(self.ledger)
            self.tokens = Tokens(self.ledger)
            self.keeper = Gatekeeper(policy, self.ledger, rate_hz=rate_hz, space=space, level=settings.level, device=settings.device, audit=self.audit)
        except BaseException:
            self.ledger.close()
            self._alone.close()
            raise
        self.pusher = ThreadPoolExecutor(1, thread_name_prefix="tracker")

    # --- who is there -------------------------------------------------------------------------------------------------------------------

    def caller(self, token: str, address: str) -> Caller:
        """Who a token belongs to; wrong, stale and forged ones are all the same answer."""
        unknown = Refused(401, "token", "A valid token is needed. Ask the owner of the device for one.")
        if not token:
            raise unknown
        if not self.guesses.may_try(address, token):
            raise Refused(429, "guesses", "There were too many wrong tokens from this address. Wait a minute.")
        try:
            identity = self.tokens.check(token, time.time_ns())
        except LedgerError:
            raise self.database_lost() from None
        if identity is None:
            self.guesses.wrong(address, token)
            self.metrics.guesses.inc()
            raise unknown
        self.guesses.right(token)
        return Caller(identity.app, identity.role, identity.expires_ns)

    def app_caller(self, token: str, address: str, origin: str | None = None) -> Caller:
        """The app of a token, used from an origin it may be used from.

        Parameters
        ----------
        token : str
            As it came.
        address : str
            Of the peer.
        origin : str, optional
            The page's origin where it is not the service's own.
        """
        caller = self.caller(token, address)
        if caller.role != "app":
            raise Refused(403, "role", "This needs the token of an app.")
        if origin is not None:
            grant = self.policy.apps.get(caller.app)
            if grant is None or origin not in grant.origins:
                raise Refused(403, "origin", "Pages of this origin may not use the app's token. The owner can add the origin to the app.")
        return caller

    def database_lost(self) -> Refused:
        """What is answered while the database does not."""
        self.database_up = False
        return Refused(503, "ledger", "The ledger cannot be reached now, so nothing is given. Try again later.")

    # --- the policy ---------------------------------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy now."""
        return self.keeper.policy

    def origins(self) -> Collection[str]:
        """Origins of all apps."""
        return {origin for grant in self.policy.apps.values() for origin in grant.origins}

    def set_grant(self, app: str, grant: Grant, keep_ask: bool = False) -> None:
        """Grant: written to the policy file first, so that what is allowed can be read there."""
        with self._lock:
            self._write(self.policy.with_grant(app, grant))
            self.keeper.grant(app, grant)
            if not keep_ask:
                self.asks.pop(app, None)
        self.changed("apps", "asks", "audit")

    def revoke(self, app: str) -> None:
        """Revoke: in force at once, whatever the disk says afterwards."""
        with self._lock:
            self.asks.pop(app, None)
            try:
                if app in self.policy.apps:
                    self.keeper.revoke(app)
            except GazeveilError:
                # Whatever failed, the app gets nothing more.
                self.hub.hang_up(self.hub.of(app), "revoked", "The grant was revoked.")
                raise
            self._write(self.policy)
        self.changed("apps", "asks", "audit")

    def consent(self, on: bool) -> None:
        """Consent: taking it back is in force at once, giving it is written first."""
        with self._lock:
            if on:
                self._write(replace(self.policy, consent=True))
            self.keeper.consent(on)
            if not on:
                self._write(self.policy)
        self.changed("consent", "apps", "audit")

    def _write(self, policy: Policy) -> None:
        path = self.settings.policy_path
        try:
            put(path, written(policy, path))
        except OSError as error:
            raise Refused(
                503, "disk", f"The policy file cannot be written ({(error.strerror or 'no reason given').lower()}). Free some space, then try again."
            ) from None

    def ask(self, app: str, preset: str | None, scopes: Collection[str], mechanisms: Collection[str], why: str) -> None:
        """Keep an app's wish for the owner; a newer one replaces it."""
        with self._lock:
            self._asked += 1
            self.asks[app] = Ask(self._asked, app, preset, tuple(scopes), tuple(mechanisms), why, time.time_ns())
        self.changed("asks")

    def dismiss(self, number: int) -> bool:
        """Forget a wish; False where there is none of that number."""
        with self._lock:
            app = next((a.app for a in self.asks.values() if a.id == number), None)
            if app is None:
                return False
            del self.asks[app]
        self.changed("asks")
        return True

    def changed(self, *what: str) -> None:
        """Tell the owner's page to look again."""
        for one in what:
            self.hub.tell({"type": "changed", "what": one})

    # --- the tracker --------------------------------------------------------------------------------------------------------------------

    async def push(self, block: Block) -> None:
        """Hand a block to the core's thread; waits only while much is waiting there.

        Blocks that come while one is worked off go together as the next, so that a busy machine pays for the change of threads once.
        """
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
                # A block that cannot be worked off is a lost one; the device goes on.
                self.metrics.tracker_bad.inc()
                LOG.error("a block of the tracker was lost by a mistake of ours", exc_info=error)
            finally:
                self.hub.flush()

    def _push(self, block: Block) -> None:
        started = time.perf_counter()
        with self.hub.pushing():
            self.keeper.push(block.t_ns, block.x_deg, block.y_deg, block.valid)
        self.metrics.push_seconds.observe(time.perf_counter() - started)
        self.metrics.tracker_samples.inc(len(block))

    async def lost(self) -> None:
        """The tracker vanished."""
        await self.settled()
        self.tracker_connected = False
        self.metrics.tracker_lost.inc()
        self.metrics.tracker_connected.set(0)
        await asyncio.get_running_loop().run_in_executor(self.pusher, self.keeper.lost)

    def there(self) -> None:
        """The tracker is there."""
        if not self.tracker_connected:
            self.tracker_connected = True
            self.metrics.tracker_connected.set(1)

    async def run_tracker(self) -> None:
        """Push what the tracker sends until it ends or the service stops."""
        assert self.tracker is not None
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
        """Once a second: close what has expired, see whether the database answers."""
        while True:
            await asyncio.sleep(1.0)
            self.hub.sweep()
            self.database_up = await asyncio.to_thread(self._ask_database)
            self.metrics.database_up.set(1 if self.database_up else 0)

    def _ask_database(self) -> bool:
        try:
            self.ledger.entries(limit=1)
        except GazeveilError:
            return False
        return True

    # --- starting ---------------------------------------------------------------------------------------------------------------------

    def owner_link(self, address: str) -> str:
        """A link for the owner that works once, for an hour."""
        now = time.time_ns()
        return f"{address}/owner?key={self.tokens.owner_link(now, now + HOUR_NS)}"

    def tracker_token(self) -> str | None:
        """A token for a tracker on the service's own channel; None where the tracker is another."""
        if self.tracker is not None:
            return None
        token = self.tokens.rotate("tracker", "tracker", time.time_ns() + round(self.settings.token_days * 24 * HOUR_NS))
        self.guesses.right(token)
        return token

    @property
    def database_name(self) -> str:
        """Which database, without its password."""
        return "PostgreSQL" if self.settings.database_url.startswith("postgres") else "SQLite"

    # --- figures ------------------------------------------------------------------------------------------------------------------------

    def guarantee(self, promise: Guarantee) -> dict[str, object]:
        """A guarantee as apps read it."""
        figures = promise.figures()
        return {"text": str(promise), **{name: figures[name] for name in ("definition", "unit", "status", "numbers")}}

    def public(self) -> dict[str, object]:
        """What everybody with a token may know about the device."""
        level, space = self.keeper.level, self.keeper.space
        return {
            "level": {
                "name": level.name,
                "resolution_deg": level.resolution_deg,
                "tick_ms": level.tick_ms,
                "least_side_deg": level.least_side_deg,
                "tiles": list(level.tiles),
            },
            "space": {"kind": "sphere" if isinstance(space, Sphere) else "screen", "width_deg": space.width_deg, "height_deg": space.height_deg},
            "rate_hz": self.keeper.rate_hz,
            "charged_r_deg": str(self.policy.device.r_deg),
        }

    def state(self, app: str) -> str:
        """none, granted, revoked or expired."""
        grant = self.policy.apps.get(app)
        if grant is None:
            return "none"
        if grant.revoked:
            return "revoked"
        if grant.expires_ns is not None and time.time_ns() >= grant.expires_ns:
            return "expired"
        return "granted" if grant.scopes else "none"

    def grant_figures(self, app: str) -> dict[str, Any] | None:
        """An app's grant as JSON has it."""
        grant = self.policy.apps.get(app)
        if grant is None or not grant.scopes:
            return None
        known = next((p for p in PRESETS.values() if p.scopes == grant.scopes and p.mechanisms == grant.mechanisms), None)
        return {
            "preset": known.name if known else None,
            "means": known.means if known else "",
            "scopes": sorted(grant.scopes),
            "mechanisms": [rule_text(rule) for rule in grant.mechanisms],
            "areas": grant.areas,
            "calls_per_minute": grant.calls_per_minute,
            "streams": grant.streams,
            "most_hz": grant.most_hz,
            "budgets": {currency: str(limit) for currency, limit in grant.budgets.items()},
            "per": grant.per,
            "expires_ns": grant.expires_ns,
        }

    def budgets(self, app: str | None) -> list[dict[str, Any]]:
        """Budgets of an app, or of the device where none is named; currencies without limit and without spending are left out.

        An app is shown its own alone: what is left of the device's tells it what other apps did.
        """
        now = time.time_ns()
        if app is None:
            account, limits, per = self.settings.device, {"epsilon": self.policy.device.epsilon, "rho": self.policy.device.rho}, self.policy.device.per
        else:
            grant = self.policy.apps.get(app) or Grant()
            account, limits, per = account_of(app), dict(grant.budgets), grant.per
        rows: list[dict[str, Any]] = []
        for currency in ("epsilon", "rho", "samples"):
            limit: Fraction | None = limits.get(currency)
            spent, reserved = self.ledger.spent(account, currency, now), self.ledger.reserved(account, currency, now)
            if limit is None and not spent and not reserved:
                continue
            left = None if limit is None else str(max(Fraction(0), limit - spent - reserved))
            shown = {"limit": None if limit is None else str(limit), "spent": str(spent), "reserved": str(reserved), "remaining": left}
            rows.append({"account": account, "app": app, "currency": currency, "per": per, **shown})
        return rows

    def audit_page(self, after: int, limit: int, last: int | None, verify: bool) -> dict[str, Any]:
        """Lines of the audit log as JSON has them."""
        rows = self.audit.last(last) if last is not None else self.audit.entries(max(0, after), limit)
        return {
            "entries": [{"number": r.id, "t_ns": r.at_ns, "kind": r.kind, "app": r.app, "detail": dict(r.detail)} for r in rows],
            "verified": self.audit.verify() if verify else None,
            "last": rows[-1].id if rows else max(0, after),
        }

    def refresh_metrics(self) -> None:
        """Bring the counters that are kept elsewhere up to date."""
        self.metrics.subscriptions.set(sum(len(line.feeds) for line in tuple(self.hub.lines)))
        with self._lock:
            now = (self.hub.samples_sent, self.hub.samples_dropped, self.hub.events_dropped)
            for counter, value, before in zip((self.metrics.sent, self.metrics.dropped, self.metrics.events_dropped), now, self._shown, strict=True):
                counter.inc(max(0, value - before))
            self._shown = now

    async def close(self) -> None:
        """End everything, in order: nothing is pushed after the core is closed, nothing is written after the ledger is."""
        if self.tracker is not None:
            await self.tracker.close()
        await self.settled()
        await asyncio.to_thread(self.pusher.shutdown, True)
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


def rule_text(rule: Any) -> str:
    """A rule of a grant as one line: `kaleido:epsilon<=1,w>=60`."""
    bounds = []
    for name, (sign, value) in rule.parameters.items():
        if sign == "any":
            bounds.append(f"{name} any")
        elif sign == "..":
            bounds.append(f"{name} {value[0]}..{value[1]}")
        elif sign == "in":
            bounds.append(f"{name} in {'|'.join(str(v) for v in value)}")
        else:
            bounds.append(f"{name}{sign}{value}")
    return rule.name + (":" + ",".join(bounds) if bounds else "")
