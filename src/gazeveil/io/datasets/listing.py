"""What `gazeveil list datasets` tells of each public dataset."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from gazeveil import checks
from gazeveil.io import registry


@dataclass(frozen=True)
class DatasetEntry:
    """One public dataset.

    Parameters
    ----------
    format : str
        Name for `read(path, format=...)`.
    title, publisher, licence, citation : str
        As the publisher says.
    layout : str
        Files and folders expected.
    options : tuple of str
        Options of `read` for this format.
    """

    format: str
    title: str
    publisher: str
    licence: str
    citation: str
    layout: str
    options: tuple[str, ...] = ()

    def text(self) -> str:
        """Some lines for reading."""
        lines = [f"{self.title} (format '{self.format}')"]
        lines += [
            f"  {name:<10} {getattr(self, name)}"
            for name in ("publisher", "licence", "citation", "layout")
        ]
        if self.options:
            lines.append(f"  {'options':<10} {', '.join(self.options)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


#: Listed so that who looks for it learns why it cannot be read.
_OPENNEEDS = DatasetEntry(
    format="openneeds",
    title="OpenNEEDS",
    publisher="Emery, Zannoli, Warren, Xiao, Talathi (Facebook Reality Labs)",
    licence="on request from the publisher",
    citation=(
        "Emery et al. 2021, OpenNEEDS: a dataset of gaze, head, hand, and scene signals during"
        " exploration in open-ended VR environments, ETRA"
    ),
    layout=(
        "not public, so there is no reader: write the recordings as CSV and read them with"
        " format='csv'"
    ),
)


def describe() -> list[DatasetEntry]:
    """All known public datasets, by format name."""
    return [entry(name) for name in _names()]


def _names() -> list[str]:
    """Formats of public datasets: ours by code or by a shipped description, and others' own."""
    ours = [name for name, module in registry.MODULES.items() if module.startswith("datasets.")]
    ours += [name for name in registry.KNOWN if registry.get(name).dataset is not None]
    others = [name for name, form in registry.REGISTRY.added().items() if form.dataset is not None]
    return sorted([*ours, *others, *registry.WITHOUT_READER])


def entry(name: str) -> DatasetEntry:
    """One dataset.

    Raises
    ------
    ParameterError
        For a name that is not a dataset's.
    """
    if checks.one_of("datasets", "name", name, _names()) == _OPENNEEDS.format:
        return _OPENNEEDS
    form = registry.get(name)
    assert form.dataset is not None
    # A shipped description says what its tables need.
    options = () if name in registry.KNOWN else tuple(sorted(form.options))
    return DatasetEntry(form.name, **asdict(form.dataset), options=options)
