"""Which formats releases are written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from gazeveil import checks
from gazeveil.gaze.cohort import ReadAs
from gazeveil.privacy.publication.outputs.output import Output

# Module and class of each format; loaded when it is asked for, because some need polars.
_HOME: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "parquet": ("gazeveil.privacy.publication.outputs.parquet", "ParquetOutput"),
        "csv": ("gazeveil.privacy.publication.outputs.csv", "CsvOutput"),
        "bids": ("gazeveil.privacy.publication.outputs.bids", "BidsOutput"),
        "same": ("gazeveil.privacy.publication.outputs.same", "SameOutput"),
    }
)

OUTPUTS = tuple(_HOME)


def output(name: str, source_format: ReadAs | str = "") -> Output:
    """A format by its name, one of :data:`OUTPUTS`; `same` writes what the input was read as, where
    it can.
    """
    checks.one_of("publication", "to", name, OUTPUTS)
    module, kind = _HOME[name]
    make: Callable[..., Output] = getattr(import_module(module), kind)
    return make(source_format) if name == "same" else make()
