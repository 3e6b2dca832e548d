"""Who sent a request: the holder of a token, or a program of this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gazeveil.gatekeeper.errors import LedgerError, Refused
from gazeveil.gatekeeper.policy.identity import LocalPeer
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.service.access_requests import AccessRequests, name_of_origin
from gazeveil.gatekeeper.service.credentials.tokens import Tokens
from gazeveil.gatekeeper.service.http.limits import Guesses
from gazeveil.gatekeeper.service.metrics_page import Metrics


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
    #: Whether it has asked and is not granted anything under this token or user yet.
    newcomer: bool = False


class Callers:
    """Tells callers by what they bring: valid tokens, and so many wrong ones. `policy` gives the
    policy now, `database_lost` what is answered while the database does not.
    """

    def __init__(
        self,
        tokens: Tokens,
        guesses: Guesses,
        metrics: Metrics,
        policy: Callable[[], Policy],
        database_lost: Callable[[], Refused],
        asked: AccessRequests,
    ) -> None:
        self._tokens, self._guesses, self._metrics = tokens, guesses, metrics
        self._policy, self._database_lost, self._asked = policy, database_lost, asked

    def of_token(self, token: str, address: str, origin: str | None = None) -> Caller:
        """Who a token belongs to; wrong, stale and forged ones are all the same answer. `origin` is
        the page's, where it is not the service's own.
        """
        unknown = Refused(
            401, "token", "A valid token is needed. Ask the owner of the device for one."
        )
        if not token:
            raise unknown
        now_ns = self._tokens.now_ns()
        newcomer = self._asked.newcomers.holder(token, now_ns)
        if newcomer is not None:
            return Caller(newcomer.app, "app", None, newcomer.token_id, newcomer=True)
        known = self._tokens.live.holder(token, now_ns)
        if known is not None and known.role == "owner":
            # The owner must be able to take away while the database does not answer.
            return Caller(known.app, known.role, known.expires_ns, known.token_id)
        token_id = self._tokens.live.id_of(token)
        if known is None and not self._guesses.may_try(address, origin, token_id):
            raise Refused(429, "guesses", "There were too many wrong tokens. Wait a minute.")
        try:
            identity = self._tokens.check(token, now_ns)
        except LedgerError:
            raise self._database_lost() from None
        if identity is None:
            self._guesses.wrong(address, origin, token_id)
            self._metrics.guesses.inc()
            raise unknown
        return Caller(identity.app, identity.role, identity.expires_ns, identity.token_id)

    def local_app(self, peer: LocalPeer) -> str | None:
        """The app that a program of this machine is, as the policy of any wearer says; None where
        none or several fit.
        """
        named = {
            (app, grant.identity)
            for wearer in self._policy().wearers.values()
            for app, grant in wearer.apps.items()
        }
        fitting = {app for app, identity in named if identity is not None and identity.fits(peer)}
        return fitting.pop() if len(fitting) == 1 else None

    def of_app(
        self, token: str, address: str, origin: str | None = None, local: LocalPeer | None = None
    ) -> Caller:
        """The app of a token, used from an origin it may be used from, or without a token the app
        that a program of this machine is, where it came over the Unix socket (`local`); parameters
        as for :meth:`of_token`.
        """
        app = self.local_app(local) if local is not None and not token else None
        asked = self._asked.of_program(local) if local is not None and not token else None
        if app is not None:
            caller = Caller(app, "app", None)
        elif asked is not None:
            caller = Caller(asked.app, "app", None, newcomer=True)
        else:
            caller = self.of_token(token, address, origin)
        if caller.role != "app":
            raise Refused(403, "role", "This needs the token of an app.")
        if origin is not None:
            grant = self._policy().apps.get(caller.app)
            own = name_of_origin(origin) == caller.app if caller.newcomer else False
            if not own and (grant is None or origin not in grant.origins):
                raise Refused(
                    403,
                    "origin",
                    "Pages of this origin may not use the app's token. The owner can add the origin"
                    " to the app.",
                )
        return caller
