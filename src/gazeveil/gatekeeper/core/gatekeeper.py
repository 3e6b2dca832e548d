"""The Gatekeeper: one wearer's gaze comes in, quantised events and protected streams go out, each
to whom the policy allows.

Everything any app ever learns is a function of one log of quantised events
(:mod:`gazeveil.gatekeeper.core.events`) and of one set of shared protected streams
(:mod:`gazeveil.gatekeeper.streams.shared`). So a coalition of apps learns exactly what the event
log and the finest granted streams tell. There is no call for raw position, pupil, velocity,
confidence or timing at the tracker's rate (David-John et al. 2021, section 4).

    with Ledger.open("sqlite:///gaze.db") as ledger:
        keeper = Gatekeeper(policy, ledger, rate_hz=120.0)
        shop = keeper.app("shop")
        shelf = shop.register_area("shelf", 90, 60, 30, 30)
        keeper.push(t_ns, x_deg, y_deg)                 # from the tracker
        shop.metrics(shelf.id)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gazeveil import checks
from gazeveil.gatekeeper.core.app import App
from gazeveil.gatekeeper.core.app_state import InUse, OnUse
from gazeveil.gatekeeper.core.areas import PrecisionLevel, level_of
from gazeveil.gatekeeper.core.device_state import DeviceState, Keep
from gazeveil.gatekeeper.core.intake import GazeIntake
from gazeveil.gatekeeper.core.policy_changes import PolicyChanges
from gazeveil.gatekeeper.policy.policy import CHANGED, checked_name
from gazeveil.gaze.geometry import Screen, Space, Sphere

if TYPE_CHECKING:
    from gazeveil.gatekeeper.ledger.audit import AuditLog
    from gazeveil.gatekeeper.ledger.ledger import Ledger
    from gazeveil.gatekeeper.policy.policy import Policy


class Gatekeeper(GazeIntake, PolicyChanges):
    """Keeps the gaze of one wearer.

    Parameters
    ----------
    policy : Policy
        Who may have what; nothing is allowed that it does not name.
    ledger : Ledger
        Where budgets are kept.
    rate_hz : float
        Nominal rate of the tracker.
    space : Sphere or Screen
        What its degrees mean.
    level : PrecisionLevel or str
        How coarse the events are: `coarse`, `fine`, or a level of your own.
    device : str
        Name of the device's account in the ledger; apps have accounts `app:NAME`.
    clock_ns : callable
        Wall clock in nanoseconds since the Unix epoch, for budgets, rates and expiry; by default
        the ledger's. Time does not go back with it.
    seed : int, optional
        Test streams instead of the operating system's randomness: repeatable, and promises are only
        `claimed`.
    audit : AuditLog, optional
        Gets a row for every answer, before it is given.
    keep : callable, optional
        `keep(sql, policy)` writes a policy that is to be in force, in the transaction of its row.
    """

    def __init__(
        self,
        policy: Policy,
        ledger: Ledger,
        *,
        rate_hz: float,
        space: Space | None = None,
        level: PrecisionLevel | str = "coarse",
        device: str = "device",
        clock_ns: Callable[[], int] | None = None,
        seed: int | None = None,
        audit: AuditLog | None = None,
        keep: Keep | None = None,
    ) -> None:
        where = Sphere() if space is None else space
        if not isinstance(where, Sphere | Screen):
            checks.refuse("Gatekeeper", "space", "a Sphere or a Screen", space)
        state = DeviceState(
            # Of several people none is taken for another: the platform says who it is.
            policy.worn_by(None) if policy.others else policy,
            ledger,
            audit,
            ledger.now_ns if clock_ns is None else ledger.now_ns.beside(clock_ns),
            device,
            level_of(level),
            where,
            checks.positive("Gatekeeper", "rate_hz", rate_hz),
            seed,
            keep,
        )
        GazeIntake.__init__(self, state)
        PolicyChanges.__init__(self, state, self.forget_gaze)

    def app(self, app: str, origin: str | None = None) -> App:
        """An app's view. An app that the policy does not name gets one that refuses everything;
        `origin` is the web page it is, as a browser says.
        """
        return App(self._state, app, origin)

    # The device.

    @property
    def level(self) -> PrecisionLevel:
        """How coarse the events are."""
        return self._state.level

    @property
    def space(self) -> Space:
        """Space of the gaze: the meaning of its degrees."""
        return self._state.space

    @property
    def rate_hz(self) -> float:
        """Nominal rate of the tracker."""
        return self._state.rate_hz

    @property
    def state(self) -> DeviceState:
        """State shared by the Gatekeeper's parts, for its own service. Never pass it to an app."""
        return self._state

    # Who uses the gaze.

    def connected(self, app: str) -> None:
        """An app has connected; visits of apps are counted by connections and subscriptions."""
        self._state.uses.opened(app)

    def disconnected(self, app: str) -> None:
        """A connection of an app has ended."""
        state = self._state
        state.uses.closed(app, state.policy.apps.get(app), state.clock_ns())

    def in_use(self) -> InUse:
        """Which apps use the gaze now, as pairs of an app and a scope: open subscriptions, and
        answers of the last five seconds.
        """
        return self._state.in_use()

    def on_use(self, callback: OnUse) -> None:
        """Have `callback(in_use)` called whenever :meth:`in_use` changes, for the indicator of the
        platform.

        It runs on the thread that changed it, and must be quick. The end of an answer's five
        seconds is told with the next sample or question.
        """
        with self._state.lock:
            self._state.indicator.callbacks.append(callback)

    @property
    def wearer(self) -> str | None:
        """Name of the wearer, as set by :meth:`switch_wearer`; None if unknown."""
        return self._state.wearer

    def switch_wearer(self, name: str | None) -> None:
        """Switch to another wearer.

        All subscriptions end with the code `wearer`. Events, areas, sums and streams are reset.
        Apps of the next wearer see nothing of the last wearer's gaze. Consent, grants and budgets
        are the next wearer's own. Budget spent by the last wearer stays spent.

        Parameters
        ----------
        name : str, optional
            Name of the wearer; None where the platform does not know it. A wearer the policy does
            not name has no consent and no grants.

        Raises
        ------
        LedgerError
            Where the audit log cannot be written. The last wearer's gaze is protected nevertheless;
            nothing is allowed to anybody's apps until the switch is made again.
        """
        state = self._state
        if name is not None:
            checked_name("Gatekeeper.switch_wearer", "wearer", name)
        with self._owner:
            if name is not None and name == state.wearer and state.policy.wearer == name:
                return
            with state.policy_lock:  # what the last wearer gave and is not written yet is void
                state.taken += 1
                taken = state.taken
            with state.lock:
                self.end_watches(CHANGED, "wearer")
                state.switch(name)
                self.begin_quantising()
            known = state.policy.worn_by(name)
            detail: dict[str, object] = {
                "known": known.wearer is not None,
                "consent": known.consent,
            }
            state.record("wearer", f"wearer:{name or ''}", detail)
            self._apply(known, taken)

    def close(self) -> None:
        """End all subscriptions; the ledger itself stays open."""
        state = self._state
        with state.lock:
            if state.closed:
                return
            state.closed = True
            for subscription in tuple(state.subscriptions):
                subscription.end("The Gatekeeper is closed.", "closed")
            self.end_watches("The Gatekeeper is closed.", "closed")
            self.forget_gaze()
        state.selections.close()

    def __enter__(self) -> Gatekeeper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
