"""The studies that come with the package: one file per figure or group of tables of a paper, and
studies of small public datasets.
"""

from __future__ import annotations

from pathlib import Path

from gazeveil import checks
from gazeveil.papers.citations import FORMER

FOLDER = Path(__file__).parent / "studies"


def study_names() -> tuple[str, ...]:
    """Names as :func:`study_path` takes them, such as `davidjohn2021/fig4`."""
    files = (path.relative_to(FOLDER).with_suffix("") for path in FOLDER.rglob("*.toml"))
    return tuple(sorted(name.as_posix() for name in files))


def study_path(name: str) -> Path:
    """The file of a study of :func:`study_names`.

    Raises
    ------
    ParameterError
        For another name.
    """
    return FOLDER / f"{checks.one_of('reproduce', 'study', name, study_names())}.toml"


def name_of(path: Path) -> str:
    """The study that a path outside the package means, by folder and file or by the file alone;
    empty where it means none. Folders had other codes for the papers once.
    """
    folder = FORMER.get(path.parent.name.upper(), path.parent.name)
    wanted = (f"{folder}/{path.stem}", path.stem)
    return next((name for name in wanted if name in study_names()), "")
