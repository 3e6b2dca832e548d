"""Several people, one device: what each of them has decided, and whose account in the ledger is
whose.

The platform says who wears the device
(:meth:`gazeveil.gatekeeper.core.gatekeeper.Gatekeeper.switch_wearer`). Consent, grants and budgets
follow the wearer. The first one, :data:`OWNER`, has the top of the policy file; the others have a
table `[wearers.NAME]` each. A wearer the policy does not name has no consent and no grants.

What a wearer spent stays spent in the ledger, under an account that holds the wearer's name, so
switching away and back gives nothing back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from gazeveil import checks

if TYPE_CHECKING:
    from gazeveil.gatekeeper.policy.grant import Grant

#: The wearer that the top of a policy belongs to.
OWNER = "owner"

#: Message to subscribers at a change of wearer.
CHANGED = "Another person wears the device now. Ask again."

#: How names look, in words.
NAMES = "1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit"

_MEANING = frozenset({"device", "gazeveil", OWNER, "tracker", "wearer"})

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


@dataclass(frozen=True)
class Wearer:
    """What one wearer has decided: consent, off by default so that nothing leaves, and grants by
    app.
    """

    consent: bool = False
    apps: Mapping[str, Grant] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.consent, bool):
            checks.refuse("Wearer", "consent", "true or false", self.consent)
        if not isinstance(self.apps, Mapping):
            checks.refuse("Wearer", "apps", "a table of grants", self.apps)
        object.__setattr__(self, "apps", MappingProxyType(dict(self.apps)))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # Mapping proxies cannot be pickled.
        return Wearer, (self.consent, dict(self.apps))


def checked_name(owner: str, parameter: str, name: object) -> str:
    """The name of a wearer or an app, or a ParameterError that says how names look."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        checks.refuse(owner, parameter, NAMES, name)
    return name


def checked_app(owner: str, name: object) -> str:
    """The name of an app, which must not read like a part of the device where a wearer or an audit
    log sees it.
    """
    if checked_name(owner, "app", name).lower() in _MEANING:
        allowed = f"none of {', '.join(sorted(_MEANING))}, which mean something here"
        checks.refuse(owner, "app", allowed, name)
    return str(name)


def account_of(app: str, wearer: str | None = OWNER) -> str:
    """The ledger's account of an app.

    Examples
    --------
    >>> account_of("shop"), account_of("shop", "anna")
    ('app:shop', 'wearer:anna:app:shop')
    """
    return f"{_wearer_prefix(wearer)}app:{app}"


def device_account(device: str, wearer: str | None = OWNER) -> str:
    """The ledger's account of a device: what left it about one wearer.

    Examples
    --------
    >>> device_account("device"), device_account("device", "anna")
    ('device', 'wearer:anna:device')
    """
    return f"{_wearer_prefix(wearer)}{device}"


def _wearer_prefix(wearer: str | None) -> str:
    # The first wearer's accounts have the names that ledgers had before there were others. An
    # unknown wearer's account is never paid from.
    return "" if wearer == OWNER else f"wearer:{wearer or ''}:"
