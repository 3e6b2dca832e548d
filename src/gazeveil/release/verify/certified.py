"""The mechanism that a certificate names, made again without trusting what it says.

A certificate comes from whoever published. Its texts are taken apart before anything is made of
them, because a mechanism may open a file: one that is named there must lie in the release itself,
under a bare name, or be given by whoever verifies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from gazeveil.errors import ParameterError
from gazeveil.privacy import registry
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.stream.chain import Chain, stage_texts
from gazeveil.registry import parse

_UNSET = "None"


@dataclass(frozen=True)
class FilesOfRelease:
    """Where files lie that a certificate names.

    Parameters
    ----------
    place : Path
        The release.
    regions : Path, optional
        The file of regions, given by whoever verifies; it stands for any that is named.
    """

    place: Path
    regions: Path | None = None

    def find(self, parameter: str, named: object) -> str:
        """The path of a file that a parameter names; nothing is opened.

        Raises
        ------
        ParameterError
            For anything but a bare name, and for a link.
        """
        if self.regions is not None:
            return str(self.regions)
        name = str(named)
        folder = self.place.parent if self.place.is_file() else self.place
        path = folder / PurePosixPath(name).name
        bare = name == PurePosixPath(name).name == PureWindowsPath(name).name
        if not bare or not name.isprintable() or path.is_symlink():
            raise ParameterError(
                f"The certificate's '{parameter}' must be the bare name of a file in the release."
                f" Got {name[:100]!r} instead, which is not opened.",
                name=parameter,
                got=name,
            )
        return str(path)


def certified_mechanism(certificate: Mapping[str, Any], files: FilesOfRelease) -> Mechanism[Any]:
    """The mechanism that a certificate names, with its parameters.

    Raises
    ------
    GazeveilError
        If there is none of that name, a parameter is not allowed, or a file is not there that it
        cannot be made without.
    """
    made = certificate["mechanism"]
    given = {k: v for k, v in made["parameters"].items() if v != _UNSET}
    text = ",".join(f"{k}={v}" for k, v in {**given, "reading": made["reading"]}.items())
    return _made(f"{made['name']}:{text}", files)


def _made(text: str, files: FilesOfRelease) -> Mechanism[Any]:
    name, written = parse(text)
    for parameter in registry.get(name).files:
        if written.get(parameter) is not None:
            written[parameter] = files.find(parameter, written[parameter])
    if name == Chain.name:
        # A chain asks its stages for their promises when it is made, and they open their files.
        stages = stage_texts(str(written.get("stages", "")))
        written["stages"] = [_made(stage, files) for stage in stages]
    return registry.mechanism(name, **written)
