"""Who may have what: a policy is a value.

Nothing is allowed that no grant names. Without the wearer's consent nothing is allowed at all.
:func:`gazeveil.gatekeeper.policy.decision.decide` says what a policy allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from gazeveil import checks
from gazeveil.errors import FormatError, ParameterError
from gazeveil.gatekeeper.policy import text as policy_text
from gazeveil.gatekeeper.policy.grant import DeviceLimits, Grant
from gazeveil.gatekeeper.policy.identity import LocalIdentity
from gazeveil.gatekeeper.policy.wearers import OWNER, Wearer, checked_app, checked_name

#: The one version of policies there is.
VERSION = 1


@dataclass(frozen=True)
class Policy:
    """Grants by app, limits of the device, and whether the wearer consents at all.

    Parameters
    ----------
    apps : mapping of str to Grant
        Names are up to 64 letters, digits, dots, dashes and underscores.
    device : DeviceLimits
        Limits for all apps together.
    consent : bool
        Off by default: nothing leaves.
    version : int
        1.
    wearer : str, optional
        Wearer of these `apps` and `consent`; None for a wearer the policy does not name, with
        neither.
    others : mapping of str to Wearer
        What the other wearers of the device have decided.

    Examples
    --------
    >>> from gazeveil.gatekeeper.policy.decision import Request, decide
    >>> policy = Policy({"shop": Grant(frozenset({"areas"}))}, consent=True)
    >>> decide(policy, Request("shop", "areas")).allow
    True
    >>> decide(policy, Request("shop", "fixations")).reason
    "The scope 'fixations' is not granted to the app 'shop'. Ask the owner for it."
    """

    apps: Mapping[str, Grant] = field(default_factory=dict)
    device: DeviceLimits = field(default_factory=DeviceLimits)
    consent: bool = False
    version: int = VERSION
    wearer: str | None = OWNER
    others: Mapping[str, Wearer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.version != VERSION or isinstance(self.version, bool):
            checks.refuse("Policy", "version", f"{VERSION}, the one there is", self.version)
        if not isinstance(self.consent, bool):
            checks.refuse("Policy", "consent", "true or false", self.consent)
        if not isinstance(self.apps, Mapping):
            checks.refuse("Policy", "apps", "a table of grants", self.apps)
        _check_grants("apps", self.apps)
        self._check_wearers()
        if not isinstance(self.device, DeviceLimits):
            checks.refuse("Policy", "device", "DeviceLimits", self.device)
        object.__setattr__(self, "apps", MappingProxyType(dict(self.apps)))

    def _check_wearers(self) -> None:
        if not isinstance(self.others, Mapping):
            checks.refuse("Policy", "others", "a table of wearers", self.others)
        for name, wearer in self.others.items():
            checked_name("Policy", "wearer", name)
            if not isinstance(wearer, Wearer) or name == self.wearer:
                allowed = "a Wearer other than the one the policy is for"
                checks.refuse("Policy", f"others.{name}", allowed, wearer)
            _check_grants(f"wearers.{name}.apps", wearer.apps)
        object.__setattr__(self, "others", MappingProxyType(dict(self.others)))
        self._check_identities()
        if self.wearer is not None:
            checked_name("Policy", "wearer", self.wearer)
        elif self.apps or self.consent:
            checks.refuse(
                "Policy",
                "wearer",
                "somebody the policy names, where there is consent or a grant",
                None,
                "Nobody known wears the device: add [wearers.NAME] to the policy, or switch to a"
                " wearer that it names.",
            )

    def _check_identities(self) -> None:
        """Two apps that are known by the same thing would be one."""
        owners: dict[LocalIdentity, str] = {}
        for apps in (self.apps, *(wearer.apps for wearer in self.others.values())):
            for app, grant in apps.items():
                if grant.identity is not None and owners.setdefault(grant.identity, app) != app:
                    checks.refuse(
                        "Policy",
                        f"apps.{app}.identity",
                        f"another than that of the app '{owners[grant.identity]}'",
                        grant.identity,
                    )

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        before = dict(self.apps), self.device, self.consent, self.version, self.wearer
        return Policy, (*before, dict(self.others))

    @property
    def wearers(self) -> Mapping[str, Wearer]:
        """What every wearer has decided, by name."""
        mine = {} if self.wearer is None else {self.wearer: Wearer(self.consent, self.apps)}
        return {**mine, **self.others}

    def worn_by(self, name: str | None) -> Policy:
        """Return the policy for another wearer, with that wearer's `apps` and `consent`.

        They are empty and off for a wearer the policy does not name.

        Examples
        --------
        >>> policy = Policy(consent=True, others={"anna": Wearer()})
        >>> anna = policy.worn_by("anna")
        >>> anna.consent, policy.worn_by("zoe").wearer, anna.worn_by("owner") == policy
        (False, None, True)
        """
        everyone = dict(self.wearers)
        wearer = None if name is None else everyone.pop(name, None)
        if wearer is None:
            return replace(self, apps={}, consent=False, wearer=None, others=everyone)
        return replace(self, apps=wearer.apps, consent=wearer.consent, wearer=name, others=everyone)

    @classmethod
    def load(cls, path: Path | str) -> Policy:
        """A policy from a TOML file.

        Raises
        ------
        ParameterError
            With the key that is wrong and what is allowed there.
        FormatError
            For a file that is none, or cannot be read.
        """
        return load_text(Path(path))[1]

    @classmethod
    def parse(cls, text: str) -> Policy:
        """A policy from TOML text."""
        return policy_of(policy_text.tree_of(text))

    def text(self) -> str:
        """The policy as TOML, for all wearers; `Policy.parse(policy.text())` is equal to
        `policy.worn_by("owner")`.
        """
        mine = self.worn_by(OWNER)
        return policy_text.write(mine.version, mine.consent, mine.device, mine.apps, mine.others)

    def with_grant(self, app: str, grant: Grant) -> Policy:
        """The policy with an app's grant put in or replaced."""
        return replace(self, apps={**self.apps, app: grant})

    def without(self, app: str) -> Policy:
        """The policy with the grants of an app left out, those of all wearers."""
        return self.with_apps(
            lambda apps: {name: grant for name, grant in apps.items() if name != app}
        )

    def with_apps(self, change: Callable[[Mapping[str, Grant]], dict[str, Grant]]) -> Policy:
        """The policy with the grants of every wearer changed by a function."""
        others = {n: replace(wearer, apps=change(wearer.apps)) for n, wearer in self.others.items()}
        return replace(self, apps=change(self.apps), others=others)


def policy_of(tree: object) -> Policy:
    """A policy from tables as TOML or JSON give them."""
    return Policy(**policy_text.fields_of(tree))


def load_text(path: Path) -> tuple[str, Policy]:
    """The text of a policy file, and what it says."""
    text = policy_text.read(path)
    try:
        return text, Policy.parse(text)
    except ParameterError as error:
        raise FormatError(path, str(error).rstrip(".")) from None


def _check_grants(where: str, apps: Mapping[str, Grant]) -> None:
    for app, grant in apps.items():
        checked_app("Policy", app)
        if not isinstance(grant, Grant):
            checks.refuse("Policy", f"{where}.{app}", "a Grant", grant)
