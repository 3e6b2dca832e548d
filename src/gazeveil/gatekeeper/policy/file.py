"""The policy file of a service: read, watched for edits of others, and written without losing them.

The owner's choices in the dashboard are written into the same file that the owner may edit by hand.
Before every write the file is read again, and edits made since are merged. Where both changed the
same app, the choice being written wins. A file that cannot be read is never overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy, load_text
from gazeveil.gatekeeper.policy.wearers import OWNER, Wearer
from gazeveil.gatekeeper.whole_file import write_whole

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class PolicyEdit:
    """Edit of the file by hand: the policy last read or written, and the policy read now."""

    before: Policy
    after: Policy

    def onto(self, policy: Policy) -> Policy:
        """A policy with the edit; what has changed in the policy since `before` stays as it is."""
        return merged(self.before, policy, self.after)


class PolicyFile:
    """A policy file.

    A file named by the user must exist. The one in the home folder is created at the first write.
    """

    def __init__(self, path: Path, named: bool) -> None:
        self.path, self._named = path, named
        self._text: str | None = None
        self._policy = Policy()
        self._read: tuple[Policy, str | None] = (self._policy, None)

    @property
    def known(self) -> Policy:
        """What the file said when it was last read or written."""
        return self._policy

    def load(self) -> Policy:
        """What the file says; an empty policy where none was named and none was written yet.

        Raises
        ------
        GazeveilError
            With one sentence that names the file and what is wrong in it; what was read before
            stays known.
        """
        if not self.path.exists():
            if self._named or self._text is not None:
                raise ParameterError(
                    f"The policy file {self.path} does not exist. Check the path, or leave --policy"
                    " out to begin with an empty one in the home folder."
                )
            return self._policy
        text, policy = load_text(self.path)
        self._text, self._policy = text, policy
        return policy

    def edit(self) -> PolicyEdit:
        """What was edited since the file was last read or written; it counts as read when
        :meth:`accept` says that it is in force.

        Raises
        ------
        GazeveilError
            As :meth:`load`.
        """
        text, known = self._text, self._policy
        try:
            self._read = self.load(), self._text
        finally:
            self._text, self._policy = text, known
        return PolicyEdit(known, self._read[0])

    def accept(self) -> None:
        """What :meth:`edit` told is in force."""
        self._policy, self._text = self._read

    def refuse(self, in_force: Policy) -> None:
        """What was edited is not in force, or not all of it: the file as it is counts as edited,
        compared with what is in force.
        """
        self._policy, self._text = in_force.worn_by(OWNER), ""

    def write(self, policy: Policy) -> PolicyEdit | None:
        """Write a policy that is to be in force, whole or not at all, with what others have edited
        since.

        Returns
        -------
        PolicyEdit or None
            What others had edited, which is in the file and must come in force too.

        Raises
        ------
        GazeveilError
            Where an edit has made the file unreadable. It is left as it is.
        OSError
            Where it cannot be written.
        """
        wanted, edit, text = policy.worn_by(OWNER), None, None
        if self.path.exists():
            text, there = load_text(self.path)
            if text != self._text:
                edit = PolicyEdit(self._policy, there)
                wanted = edit.onto(wanted)
            if there == wanted:
                self._text, self._policy = text, there
                return edit
            if "#" in text:
                # The file is written anew; the owner's own text, with its comments, stays beside.
                write_whole(self.path.with_name(self.path.name + ".before"), text)
        made = wanted.text()
        write_whole(self.path, made)
        self._text, self._policy = made, wanted
        return edit


def merged(before: Policy, ours: Policy, theirs: Policy) -> Policy:
    """Two changes of one policy together; where both changed the same thing, ours.

    Examples
    --------
    >>> shop, game = Policy({"shop": Grant()}), Policy({"game": Grant()})
    >>> sorted(merged(Policy(), shop, game).apps), sorted(merged(shop, shop, Policy()).apps)
    (['game', 'shop'], [])
    """
    old, mine, their = before.wearers, ours.wearers, theirs.wearers
    everyone: dict[str, Wearer] = {}
    for name in {**their, **mine}:
        was, now, other = old.get(name), mine.get(name), their.get(name)
        if (now is None and was is not None) or (other is None and was is not None and now == was):
            continue  # taken out by one of the two
        was, now, other = was or Wearer(), now or Wearer(), other or Wearer()
        everyone[name] = Wearer(
            _pick(was.consent, now.consent, other.consent),
            _merged_apps(was.apps, now.apps, other.apps),
        )
    device = _pick(before.device, ours.device, theirs.device)
    mine_first = everyone.pop(OWNER, Wearer())
    policy = Policy(mine_first.apps, device, mine_first.consent, ours.version, OWNER, everyone)
    return policy.worn_by(ours.wearer)


def _merged_apps(
    old: Mapping[str, Grant], ours: Mapping[str, Grant], theirs: Mapping[str, Grant]
) -> dict[str, Grant]:
    picked = {
        app: _pick(old.get(app), ours.get(app), theirs.get(app)) for app in {**theirs, **ours}
    }
    return {app: grant for app, grant in picked.items() if grant is not None}


def _pick(before: _Value, ours: _Value, theirs: _Value) -> _Value:
    # What is equal stays the very value it was: how long a grant is used is counted for that.
    return theirs if ours == before and ours != theirs else ours
