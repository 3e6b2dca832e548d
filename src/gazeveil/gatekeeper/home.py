"""The home folder of a service: its lock, and the policy file that says what was granted, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import IO

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.policy import Policy
from gazeveil.gatekeeper.settings import Settings


def make_home(home: Path) -> None:
    """Make the folder, for its owner's eyes alone, and see that it can be written to."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        # Tokens, keys and the ledger lie there.
        with contextlib.suppress(PermissionError):
            home.chmod(0o700)
        with tempfile.TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise ParameterError(
            f"The home folder {home} cannot be written ({(error.strerror or 'no reason given').lower()}). Choose another with --home."
        ) from None


def first_policy(settings: Settings) -> Policy:
    """The policy of the file; an empty one where none was named and none was written yet."""
    path = settings.policy_path
    if path.exists():
        return Policy.load(path)
    if settings.policy is not None:
        raise ParameterError(f"The policy file {path} does not exist. Check the path, or leave --policy out to begin with an empty one in the home folder.")
    return Policy()


def written(policy: Policy, path: Path) -> str:
    """The policy in the language of its file."""
    if path.suffix.lower() == ".toml":
        return policy.text()
    import yaml

    return str(yaml.safe_dump(tomllib.loads(policy.text()), sort_keys=False, allow_unicode=True))


def only_one(home: Path) -> IO[bytes]:
    """A lock on the home folder, held until the file is closed or the process ends."""
    file = (home / "lock").open("wb")
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise ParameterError(f"Another service runs with the home folder {home}. Stop that one, or choose another folder with --home.") from None
    return file


def put(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".policy-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
