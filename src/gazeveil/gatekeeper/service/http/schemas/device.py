"""The device: its degrees, who wears it, whether it works, its audit log and its certificate."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from gazeveil.gatekeeper.service.http.schemas.fields import Answer, Body, Name


class LevelAnswer(Answer):
    """How fine any answer of this device can be."""

    name: str
    resolution_deg: float
    tick_ms: int
    least_side_deg: float
    tiles: tuple[int, int]


class SpaceAnswer(Answer):
    """What the degrees mean."""

    kind: Literal["sphere", "screen"]
    width_deg: float
    height_deg: float
    width_mm: float | None = None
    height_mm: float | None = None
    distance_mm: float | None = None


class TrackerHere(Answer):
    """Whether gaze comes, and whether it is a mouse's."""

    connected: bool
    mouse: bool


class TrackerAnswer(Answer):
    """Where gaze comes from."""

    name: str
    connected: bool
    trouble: str = Field("", description="What keeps gaze away or makes it wrong, and what to do.")


class WearerBody(Body):
    """Who wears the device now; null where that is not known."""

    name: Name | None


class NewWearerBody(Body):
    """A person whom the policy is to name."""

    name: Name


class WearerAnswer(Answer):
    """Who wears the device, and whom the policy names. Somebody it does not name has no consent and
    no grants.
    """

    name: str | None
    known: bool
    wearers: list[str]


class ReloadAnswer(Answer):
    """What is in force after the policy file was read again."""

    consent: bool
    apps: int


class HealthAnswer(Answer):
    """Whether the service runs, and what of it does not."""

    live: bool
    ready: bool
    database: bool
    tracker: bool
    version: str
    reason: str | None = Field(description="Why nothing can be given now, and what to do.")


class AuditKeyAnswer(Answer):
    """The key of the audit log, as hexadecimal digits. Keep it apart from exports: it tells the
    apps' names and can write a log.
    """

    key: str


class AuditEntry(Answer):
    """One line of the audit log; the app is a hashed id, and its name stands beside it where it is
    known.
    """

    number: int
    t_ns: int
    kind: str
    app: str | None
    name: str | None
    detail: dict[str, Any]


class AuditAnswer(Answer):
    """Lines of the audit log, and whether its chain of hashes holds."""

    entries: list[AuditEntry]
    verified: bool | None
    last: int


class CertificateAnswer(Answer):
    """What the device promises now."""

    text: str
    certificate: dict[str, Any]
