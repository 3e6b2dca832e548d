"""The public parameter file that devices and the curator share: a mechanism and its parameters, as TOML.

For example::

    mechanism = "dpgazesynth-one-report"
    epsilon = "1"
    G = 60
    zones = 2

What a public rule would choose by the number of windows (`zones`) is not known to a device: without it in the file there is one zone.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.privacy.registry import mechanism
from gazeveil.privacy.synthesis.dpgazesynth.mechanism import Synthesis

_REMEDY = 'Write it as TOML: mechanism = "dpgazesynth", epsilon = "1", and further parameters of the mechanism, one on each line.'


def read_parameters(path: Path) -> Synthesis:
    """The mechanism a file names, with everything fixed.

    Raises
    ------
    FormatError
        For a file that is no TOML or names no mechanism whose devices report.
    ParameterError
        For a parameter the mechanism does not take.
    """
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(path, f"this is no parameter file ({error})", _REMEDY) from error
    name = said.pop("mechanism", None)
    if not isinstance(name, str):
        raise FormatError(path, "it does not name a mechanism", _REMEDY)
    chosen = mechanism(name, **said)
    if not isinstance(chosen, Synthesis):
        raise FormatError(path, f"devices do not report for '{chosen.name}'", "Choose dpgazesynth or dpgazesynth-one-report.")
    return chosen.settled(None)
