"""What apps would like to be granted: one request of an app at a time, in words the system chose.

An app names a preset or scopes, and a purpose out of :data:`PURPOSES`; nothing it writes itself
is shown in a request. While a request waits the app cannot make another, so what the owner
reads is what is granted. Who is dismissed three times may not ask again until the owner says
so; a grant begins the count anew. The counts lie in a file of the home folder, so a restart does
not begin it.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.whole_file import write_whole

#: What an app may say it wants gaze for. It is the app's own word: the owner reads it as that.
PURPOSES: Mapping[str, str] = MappingProxyType(
    {
        "choose": "To let you choose things by looking at them.",
        "hands-free": "To let you use it without your hands.",
        "sharp-view": "To draw the picture sharp where you look.",
        "avatar": "To turn the eyes of your avatar where yours turn.",
        "game": "To let a game answer to where you look.",
        "reading": "To follow where you are in a text.",
        "count-looks": "To count how often things it shows are looked at.",
        "study": "To take part in a study that you joined.",
    }
)

#: After so many dismissals an app may not ask again.
MOST_DISMISSALS = 3


@dataclass(frozen=True)
class AccessRequest:
    """What an app would like to be granted.

    Parameters
    ----------
    id : int
        A random number, so that a request before a restart is never taken for one after it.
    app : str
        Who asks.
    preset : str, optional
        A name of :data:`gazeveil.gatekeeper.policy.presets.PRESETS`.
    purpose : str
        A key of :data:`PURPOSES`.
    scopes : tuple of str
        Names of scopes.
    t_ns : int
        When, since the Unix epoch.
    """

    id: int
    app: str
    preset: str | None
    purpose: str
    scopes: tuple[str, ...]
    t_ns: int


class AccessRequests:
    """The access requests that wait, and how often each app was dismissed; the counts lie at
    `path`.

    Raises
    ------
    ParameterError
        For a file that cannot be read: believing there were no dismissals would lift every block.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._waiting: dict[str, AccessRequest] = {}
        self._dismissed = _read(path)

    def waiting(self) -> tuple[AccessRequest, ...]:
        """All that wait, oldest first."""
        with self._lock:
            return tuple(
                sorted(self._waiting.values(), key=lambda request: (request.t_ns, request.id))
            )

    def of(self, app: str) -> AccessRequest | None:
        """The request of an app that waits."""
        return self._waiting.get(app)

    def blocked(self, app: str) -> bool:
        """Whether an app was dismissed too often."""
        return self._dismissed.get(app, 0) >= MOST_DISMISSALS

    def add(
        self, app: str, preset: str | None, purpose: str, scopes: Collection[str]
    ) -> AccessRequest | None:
        """Keep a request; None where one of the app waits already."""
        with self._lock:
            if app in self._waiting:
                return None
            request = AccessRequest(
                secrets.randbelow(2**53),
                app,
                preset,
                purpose,
                tuple(sorted(set(scopes))),
                time.time_ns(),
            )
            self._waiting[app] = request
            return request

    def dismiss(self, number: int) -> AccessRequest | None:
        """Dismiss a request and count it; None where none of that number waits.

        Raises
        ------
        OSError
            Where the count cannot be written; it holds until the service stops.
        """
        with self._lock:
            request = next((r for r in self._waiting.values() if r.id == number), None)
            if request is None:
                return None
            del self._waiting[request.app]
            self._dismissed[request.app] = self._dismissed.get(request.app, 0) + 1
        self.write()
        return request

    def settle(self, app: str) -> None:
        """Something was granted: the request is answered, and dismissals are counted anew."""
        self.forget(app)

    def withdraw(self, app: str) -> None:
        """Take the request of an app off the list without counting it."""
        with self._lock:
            self._waiting.pop(app, None)

    def forget(self, app: str) -> None:
        """Forget the request and the dismissals of an app.

        Raises
        ------
        OSError
            Where that cannot be written.
        """
        with self._lock:
            self._waiting.pop(app, None)
            known = self._dismissed.pop(app, None) is not None
        if known:
            self.write()

    def write(self) -> None:
        """Write the counts."""
        with self._lock:
            text = json.dumps(self._dismissed, sort_keys=True)
            write_whole(self._path, text + "\n")


def _read(path: Path) -> dict[str, int]:
    try:
        counts = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(counts, dict) or not all(
            isinstance(k, str) and type(v) is int and v >= 0 for k, v in counts.items()
        ):
            raise ValueError
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise ParameterError(
            f"The file {path}, which counts dismissed asks, cannot be read. Remove it to begin the"
            " counts anew."
        ) from None
    return counts
