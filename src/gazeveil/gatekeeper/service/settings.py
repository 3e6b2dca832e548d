"""Every setting of the service, with its default; read from the environment (`GAZEVEIL_...`) and
overruled by the command line.

`docs/howto/gatekeeper/running.md` lists all of them; a test compares the two. Limits are set so
that one hostile app can neither fill the memory nor starve the others, and so that a honest one at
1000 samples a second meets none of them.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from gazeveil.errors import ParameterError
from gazeveil.gaze.geometry import Screen, Space, Sphere

_NUMBER = r"(\d+(?:\.\d+)?)"
SCREEN = rf"^{_NUMBER}x{_NUMBER}px,{_NUMBER}x{_NUMBER}mm,{_NUMBER}mm$"

#: Scheme, host and port of a page, as browsers write them: no path, no user, nothing in capitals.
ORIGIN = r"^https?://(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::[0-9]{1,5})?$"


class CallerLimits(BaseModel):
    """Bounds that keep one caller from starving the others; no honest one meets them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    head_s: float = Field(5.0, gt=0)
    """Seconds in which a head must have come whole, and that a new connection may be silent."""
    strangers: int = Field(512, ge=8)
    """Open connections that have shown no valid token or session, in all; then the oldest of them
    is closed.
    """
    strangers_per_address: int = Field(128, ge=4)
    """The same for one address."""
    json_depth: int = Field(16, ge=4, le=200)
    """Deepest nesting of a JSON text."""
    hello_s: float = Field(5.0, gt=0)
    """Seconds a WebSocket has for its first message."""
    ping_s: float = Field(20.0, gt=0)
    """Seconds between WebSocket pings, and the time for their answer."""
    queue_messages: int = Field(256, ge=4)
    """Messages kept for a slow reader; then the oldest are dropped and counted."""
    subscriptions_per_app: int = Field(256, ge=1)
    """Open subscriptions of one app, on all its WebSockets together."""
    commands_per_minute: int = Field(1200, ge=1)
    """Messages an app may send in a minute, on all its WebSockets together."""


class Settings(BaseSettings):
    """What the service is told before it starts."""

    model_config = SettingsConfigDict(
        env_prefix="GAZEVEIL_",
        frozen=True,
        extra="ignore",
        validate_default=True,
        use_attribute_docstrings=True,
    )

    home: Path = Field(
        default_factory=lambda: Path(os.environ.get("GAZEVEIL_HOME") or Path.home() / ".gazeveil")
    )
    """Folder of the database and the keys; made if it is missing, for its owner alone.
    One that is there and open to other users is refused.
    """
    host: str = Field("127.0.0.1", min_length=1)
    """Address to listen on. Anything but loopback needs a proxy with TLS, and `public_origin`."""
    port: int = Field(8765, ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    unix_socket: Path | None = None
    """Unix socket to listen on besides the port; without one, `gaze.sock` under the home folder.
    Trackers of the service's own user, and apps that the policy names by `uid`, need no token
    there. Its folder says who may come.
    """
    hosts: tuple[str, ...] = ()
    """Further host names under which the service may be addressed; a JSON list. Others are refused,
    against DNS rebinding.
    """
    public_origin: tuple[Annotated[str, Field(pattern=ORIGIN)], ...] = ()
    """Origins under which a proxy with TLS shows the service, such as `https://gaze.example`; a
    JSON list, the first is the one in links. Their host names are allowed too.
    """
    database: str | None = Field(None, repr=False)  # it may hold a password
    """Database URL, `sqlite:///...` or `postgresql://...`; without one, `gatekeeper.sqlite` under
    the home folder. On the command line it must not hold a password, which other users could see.
    """
    database_file: Path | None = None
    """File that holds the database URL, for URLs with a password; only the user of the
    service may read it.
    """
    policy: Path | None = None
    """Policy (TOML) that is imported at the first start, when the database holds none."""
    tracker: str = Field("simulated", min_length=1)
    """Where gaze comes from: `simulated`, `mouse`, `replay:PATH`, `pupil://host:port`,
    `neon://host:port`, `lsl[:name]`, or `websocket` for the service's own channel.
    """
    rate_hz: float = Field(120.0, gt=0, le=10_000)
    """Nominal rate of the tracker. One that says its own rate (`lsl`, a replay) needs none; an LSL
    stream that declares another rate than the one given is refused.
    """
    late_ms: float = Field(200.0, ge=0)
    """Gaze that is older when it comes is not used: after a stall old looks must choose nothing. 0
    takes all; a tracker that sends batches of more than 0.2 s needs more.
    """
    screen: str | None = Field(None, pattern=SCREEN)
    """Screen of a `websocket` tracker or a mouse, as `1280x720px,400x225mm,450mm`; without one,
    degrees of a tracker are directions around the head.
    """
    level: Literal["coarse", "fine"] = "coarse"
    """How fine places and times are that any app ever sees; one for the whole device."""
    device: str = Field("device", min_length=1, max_length=64)
    """Name of the device's own account in the ledger."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least important kind of log line that is written."""
    connections: int = Field(1024, ge=1)
    """Open WebSockets in all."""
    requests_per_minute: int = Field(6000, ge=1)
    """HTTP requests in a minute of one token or session; those without a valid one share this by
    address.
    """
    limits: CallerLimits = Field(default_factory=lambda: CallerLimits.model_validate({}))
    """Bounds on single messages and callers, a JSON object; only a slow machine needs others."""
    owner_token_file: Path | None = None
    """File with a token for programs that act for the owner, such as systemd's credential; only
    the user of the service may read it. The token of an earlier file stops working.
    """
    owner_hours: float = Field(12.0, gt=0, le=24 * 365)
    """Hours that an owner's session in the browser lasts."""
    token_days: float = Field(365.0, gt=0, le=3650)
    """Days that the token of an app or a tracker lasts."""
    audit_days: float | None = Field(None, gt=0, le=36_500)
    """Days after which rows of the audit log are deleted; without it they are kept. The chain of
    the rest can still be verified.
    """
    shutdown_s: float = Field(5.0, gt=0)
    """Seconds that open connections have to end when the service stops."""

    @field_validator("level", "log_level", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @property
    def space(self) -> Space:
        """What the degrees of a tracker on the service's own channel mean."""
        match = re.match(SCREEN, self.screen) if self.screen else None
        return Screen(*(float(part) for part in match.groups())) if match else Sphere()

    @property
    def database_url(self) -> str:
        """The database: named, named in a file, or under the home folder."""
        if self.database_file is None:
            return self.database or f"sqlite:///{self.home / 'gatekeeper.sqlite'}"
        if self.database is not None:
            raise ParameterError(
                "The settings 'database' and 'database_file' are both given. Give one of them."
            )
        return secret_text(self.database_file, "database_file")


def no_password(url: str) -> None:
    """Refuse a database URL of the command line that holds a password: every user of the machine
    can list it.

    Examples
    --------
    >>> no_password("postgresql://gaze@db.example/gaze")
    """
    parts = urlsplit(url)
    if parts.password is not None or any(
        name in {"password", "sslpassword"}
        for name, _ in parse_qsl(parts.query, keep_blank_values=True)
    ):
        raise ParameterError(
            "The option --database holds a password, which every user of this machine can see in"
            " the list of processes. Leave it out there: put the URL into a file of mode 600 and"
            " name it in GAZEVEIL_DATABASE_FILE, or use GAZEVEIL_DATABASE, or PostgreSQL's own"
            " PGPASSFILE. Then change the password.",
            name="database",
        )


def secret_text(path: Path, name: str) -> str:
    """Return the one line of a file that no other user may read.

    `name` is the setting that names the file. In systemd's `$CREDENTIALS_DIRECTORY` the folder
    keeps other users out, whatever the mode of the file.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = (getattr(error, "strerror", None) or "not text").lower()
        raise ParameterError(
            f"The file {path} of the setting '{name}' cannot be read ({why}). Check its path and"
            " its owner.",
            name=name,
        ) from None
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    if (
        sys.platform != "win32"
        and mode & 0o077
        and not (credentials and path.resolve().is_relative_to(Path(credentials).resolve()))
    ):
        raise ParameterError(
            f"The file {path} of the setting '{name}' is open to other users (its mode is"
            f" {mode:o}). Close it with `chmod 600 {path}`.",
            name=name,
        )
    if not text or len(text.splitlines()) != 1:
        raise ParameterError(
            f"The file {path} of the setting '{name}' must hold one line. Write the value into it"
            " and nothing else.",
            name=name,
        )
    return text


def load_settings(**chosen: object) -> Settings:
    """Settings from the environment, overruled by what was chosen; None leaves the environment's
    value or the default. A bad one is one sentence.

    Examples
    --------
    >>> load_settings(port=1).port
    1
    """
    try:
        named: dict[str, Any] = {n: value for n, value in chosen.items() if value is not None}
        limits = {n: named.pop(n) for n in CallerLimits.model_fields if n in named}
        if limits:
            named["limits"] = CallerLimits.model_validate(limits)
        return Settings(**named)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        raise ParameterError(
            f"The setting '{name}' (GAZEVEIL_{name.upper()}) is not usable: {first['msg']}.",
            name=name,
            got=first.get("input"),
        ) from None
    except ValueError as error:
        # pydantic-settings raises its own error for a list that is not JSON.
        raise ParameterError(f"A setting in the environment cannot be read: {error}.") from None
