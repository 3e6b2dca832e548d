"""The key of a day, under which every place has one noise for all apps, streams and sessions of one
wearer.

The key is drawn anew for each day of UTC. With a folder it lies in a file there, for its owner's
eyes alone, so that a restart on the same day goes on with the same noise; the next day's key takes
its place, and the old one is overwritten. Without a folder it is in memory, and a restart draws
another. A key that was lost is another noise, and is charged again: charges name the fingerprint of
the key.

Days never go back: with a clock that was set back the latest day's key stays in use.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from gazeveil.gatekeeper.ledger.accounts import DAY_NS
from gazeveil.gatekeeper.logs import LOG
from gazeveil.gatekeeper.whole_file import write_whole
from gazeveil.privacy.randomness.keys import MasterKey, derived_key
from gazeveil.privacy.stream.place.noise import PlaceNoise

#: Name of the file in the home folder.
FILE = "place-key"

_BYTES = 32


@dataclass(frozen=True, eq=False)
class DayKey:
    """The noise of one wearer's places on one day (days since 1970). The fingerprint tells keys
    apart and tells nothing of them.
    """

    day: int
    fingerprint: str
    noise: PlaceNoise


class DayKeys:
    """Keys of days.

    Parameters
    ----------
    folder : Path, optional
        Where the day's key is kept over a restart.
    clock_ns : callable
        Wall clock.
    seed : int, optional
        Test keys, which protect nobody.
    """

    def __init__(
        self, folder: Path | None, clock_ns: Callable[[], int], seed: int | None = None
    ) -> None:
        self._path = None if folder is None else folder / FILE
        self._clock_ns, self._seed = clock_ns, seed
        self._lock = threading.Lock()
        self._day, self._secret = (
            (-1, b"") if self._path is None or seed is not None else _read(self._path)
        )
        self._known: dict[str | None, DayKey] = {}

    def now(self, wearer: str | None) -> DayKey:
        """The key of a wearer's day; the same object until the day is over."""
        known = self._known.get(wearer)
        day = self._clock_ns() // DAY_NS
        if known is not None and day <= known.day:
            return known
        with self._lock:
            if day > self._day:
                self._draw(day)
            if wearer not in self._known:
                self._known[wearer] = self._of(wearer)
            return self._known[wearer]

    def _draw(self, day: int) -> None:
        self._known.clear()
        self._day, self._secret = day, secrets.token_bytes(_BYTES)
        if self._path is None or self._seed is not None:
            return
        try:
            _overwrite(self._path)
            write_whole(self._path, json.dumps({"day": day, "key": self._secret.hex()}) + "\n")
            self._path.chmod(0o600)
        except OSError as error:
            # In memory it protects as well; after a restart today there is another, which is
            # charged for.
            LOG.warning(
                "the key of the day cannot be kept over a restart", extra={"why": error.strerror}
            )

    def _of(self, wearer: str | None) -> DayKey:
        if self._seed is not None:
            seed = int.from_bytes(
                blake2b(f"{self._seed} {self._day} {wearer}".encode(), digest_size=7).digest()
            )
            return DayKey(self._day, f"test-{seed:x}", PlaceNoise(MasterKey(seed)))
        key = derived_key(self._secret, "place noise", str(wearer))
        return DayKey(
            self._day,
            derived_key(self._secret, "fingerprint", str(wearer)).hex()[:16],
            PlaceNoise(key),
        )


def _read(path: Path) -> tuple[int, bytes]:
    """The day and key of a file; a file that others could read or that cannot be understood is as
    good as none.
    """
    try:
        if os.name != "nt" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            LOG.warning("the key of the day was open to other users and is not used")
            return -1, b""
        kept = json.loads(path.read_text(encoding="utf-8"))
        day, key = int(kept["day"]), bytes.fromhex(kept["key"])
    except FileNotFoundError:
        return -1, b""
    except (OSError, ValueError, KeyError, TypeError):
        LOG.warning("the key of the day cannot be read and is drawn anew")
        return -1, b""
    return (day, key) if len(key) == _BYTES and day >= 0 else (-1, b"")


def _overwrite(path: Path) -> None:
    """Take the old key off the disk before its file goes, as far as the file system allows."""
    with contextlib.suppress(FileNotFoundError), path.open("r+b") as file:
        file.write(b"\0" * path.stat().st_size)
        file.flush()
        os.fsync(file.fileno())
