"""The public parameter file that devices and the curator share: a mechanism and its parameters, as
TOML.

For example::

    mechanism = "dpgazesynth-one-report"
    epsilon = "1"
    G = 60
    zones = 2
    space = "screen"

`space` ("screen" or "sphere") is for the curator: messages about the other kind are refused.
Without it the more common kind is taken.

What a public rule would choose by the number of windows (`zones`) is not known to a device: without
it in the file there is one zone.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.privacy.registry import get, mechanism, mechanisms
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import Synthesis

_REMEDY = (
    'Write it as TOML: mechanism = "dpgazesynth", epsilon = "1", and further parameters of the'
    " mechanism, one on each line."
)


@dataclass(frozen=True)
class PublicParameters:
    """What a file says: the mechanism with everything fixed, and what messages may be about."""

    mechanism: Synthesis
    space: str | None = None


def read_parameters(path: Path) -> PublicParameters:
    """What a file says.

    Raises
    ------
    FormatError
        For a file that is no TOML or names no mechanism whose devices report.
    ParameterError
        For a parameter the mechanism does not take.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(path, f"this is no parameter file ({error})", _REMEDY) from error
    name = content.pop("mechanism", None)
    if not isinstance(name, str):
        raise FormatError(path, "it does not name a mechanism", _REMEDY)
    space = content.pop("space", None)
    if space not in (None, "screen", "sphere"):
        raise FormatError(
            path,
            f"its space is {space!r}",
            'Write space = "screen" or space = "sphere", or leave it out.',
        )
    if name in mechanisms() and not issubclass(get(name), Synthesis):
        raise FormatError(
            path,
            f"devices do not report for '{name}'",
            "Choose dpgazesynth or dpgazesynth-one-report.",
        )
    chosen = mechanism(name, **content)
    assert isinstance(chosen, Synthesis)
    return PublicParameters(chosen.settled(None), space)
