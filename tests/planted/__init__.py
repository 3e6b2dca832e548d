"""Planted bugs: mutants of the library that the tests, and as far as it can see them the audit,
must catch.

`python -m tests.planted.run` (or `make audit`) applies each of them in a process of its own and
prints who catches what.
"""

from __future__ import annotations

from tests.planted import gatekeeper, mosaic, promises, streams, tables
from tests.planted.plant import Plant

#: All of them, by name.
PLANTS: dict[str, Plant] = {
    plant.name: plant
    for part in (promises, tables, streams, mosaic, gatekeeper)
    for plant in part.PLANTS
}
