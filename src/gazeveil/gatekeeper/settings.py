"""Every setting of the service, with its default; read from the environment (`GAZEVEIL_...`) and overruled by the command line.

`docs/gatekeeper/settings.md` lists all of them; a test compares the two. Limits are set so that one hostile app can neither fill the memory
nor starve the others, and so that a honest one at 1000 samples a second meets none of them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from gazeveil.errors import ParameterError
from gazeveil.gaze.geometry import Screen, Space, Sphere

_NUMBER = r"(\d+(?:\.\d+)?)"
SCREEN = rf"^{_NUMBER}x{_NUMBER}px,{_NUMBER}x{_NUMBER}mm,{_NUMBER}mm$"


def default_home() -> Path:
    """`$GAZEVEIL_HOME`, or `~/.gazeveil`."""
    return Path(os.environ.get("GAZEVEIL_HOME") or Path.home() / ".gazeveil")


class Settings(BaseSettings):
    """What the service is told before it starts."""

    model_config = SettingsConfigDict(env_prefix="GAZEVEIL_", frozen=True, extra="ignore", validate_default=True)

    home: Path = Field(
        default_factory=default_home, description="Folder of the database, the policy and the keys; made if it is missing, readable by its owner alone."
    )
    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on. Anything but loopback needs a proxy with TLS before it.")
    port: int = Field(8765, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    hosts: tuple[str, ...] = Field(
        (), description="Further host names under which the service may be addressed; a JSON list. Others are refused, against DNS rebinding."
    )
    database: str | None = Field(
        None, description="Database URL, `sqlite:///...` or `postgresql://...`; without one, `gatekeeper.sqlite` under the home folder."
    )
    policy: Path | None = Field(
        None, description="Policy file, TOML or YAML, that the owner's choices are written to; without one, `policy.toml` under the home folder."
    )
    tracker: str = Field(
        "simulated", min_length=1, description="Where gaze comes from: `simulated`, `replay:PATH`, `pupil://host:port`, `lsl[:name]`, `websocket` or `openxr`."
    )
    rate_hz: float = Field(120.0, gt=0, le=10_000, description="Nominal rate of a `simulated`, `websocket` or `openxr` tracker.")
    screen: str | None = Field(
        None,
        pattern=SCREEN,
        description="Screen of a `websocket` tracker, as `1280x720px,400x225mm,450mm`; without one, its degrees are directions around the head.",
    )
    level: Literal["coarse", "fine"] = Field("coarse", description="How fine places and times are that any app ever sees; one for the whole device.")
    device: str = Field("device", min_length=1, max_length=64, description="Name of the device's own account in the ledger.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least important kind of log line that is written.")
    open_metrics: bool = Field(True, description="Whether `/metrics` answers those without an owner's token.")
    body_bytes: int = Field(65_536, ge=1024, description="Largest HTTP body.")
    frame_bytes: int = Field(1_048_576, ge=1024, description="Largest WebSocket message; a larger one closes the connection with code 1009.")
    message_bytes: int = Field(16_384, ge=512, description="Largest command of an app on its WebSocket; trackers may use whole frames.")
    json_depth: int = Field(16, ge=4, le=200, description="Deepest nesting of a JSON text.")
    hello_s: float = Field(5.0, gt=0, description="Seconds a WebSocket has for its first message.")
    idle_s: float = Field(120.0, gt=0, description="Seconds after which a WebSocket without subscriptions and without a message is closed.")
    ping_s: float = Field(20.0, gt=0, description="Seconds between WebSocket pings, and the time for their answer.")
    body_s: float = Field(10.0, gt=0, description="Seconds in which an HTTP body must have come.")
    queue_messages: int = Field(256, ge=4, description="Messages kept for a slow reader; then the oldest are dropped and counted.")
    subscriptions: int = Field(32, ge=1, le=1024, description="Open subscriptions of one WebSocket.")
    connections: int = Field(1024, ge=1, description="Open WebSockets in all.")
    connections_per_app: int = Field(128, ge=1, description="Open WebSockets of one app.")
    requests_per_minute: int = Field(6000, ge=1, description="HTTP requests and WebSocket openings of one address in a minute.")
    guesses_per_minute: int = Field(30, ge=1, description="Wrong tokens of one address in a minute; then only tokens that were right before are looked at.")
    commands_per_minute: int = Field(1200, ge=1, description="Messages an app may send on one WebSocket in a minute.")
    owner_hours: float = Field(12.0, gt=0, le=24 * 365, description="Hours that an owner's session in the browser lasts.")
    token_days: float = Field(365.0, gt=0, le=3650, description="Days that the token of an app or a tracker lasts.")
    shutdown_s: float = Field(5.0, gt=0, description="Seconds that open connections have to end when the service stops.")

    @field_validator("level", "log_level", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @property
    def space(self) -> Space:
        """What the degrees of a tracker on the service's own channel mean."""
        found = re.match(SCREEN, self.screen) if self.screen else None
        return Screen(*(float(part) for part in found.groups())) if found else Sphere()

    @property
    def database_url(self) -> str:
        """The database, named or under the home folder."""
        return self.database or f"sqlite:///{self.home / 'gatekeeper.sqlite'}"

    @property
    def policy_path(self) -> Path:
        """The policy file, named or under the home folder."""
        return self.policy or self.home / "policy.toml"


def load_settings(**chosen: object) -> Settings:
    """Settings from the environment, overruled by what was chosen; a bad one is one sentence.

    Parameters
    ----------
    **chosen
        Settings by name; None leaves the environment's value or the default.

    Examples
    --------
    >>> load_settings(port=1).port
    1
    """
    try:
        return Settings(**{name: value for name, value in chosen.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        raise ParameterError(f"The setting '{name}' (GAZEVEIL_{name.upper()}) is not usable: {first['msg']}.", name=name, got=first.get("input")) from None
    except ValueError as error:
        # pydantic-settings raises its own error for a list that is not JSON.
        raise ParameterError(f"A setting in the environment cannot be read: {error}.") from None


def table() -> str:
    """All settings as the manual's table, in Markdown."""
    lines = ["| setting | variable | default | what it does |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "`$GAZEVEIL_HOME` or `~/.gazeveil`" if name == "home" else "none" if field.default in (None, ()) else f"`{str(field.default).lower()}`"
        lines.append(f"| `{name}` | `GAZEVEIL_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(lines) + "\n"
