"""Studies: cohort x mechanisms x attacks x utilities x scenarios x repetitions, run, cached, resumed and reported.

`gazeveil.evaluate` is both this package and the function of the public surface: the package can be called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gazeveil.evaluate.results import Results


class _Callable(ModuleType):
    """A package that is a function too; importing a module of it would otherwise hide the function of that name."""

    def __call__(self, *arguments: Any, **settings: Any) -> Results:
        """See :func:`gazeveil.evaluate.api.evaluate`."""
        from gazeveil.evaluate.api import evaluate

        return evaluate(*arguments, **settings)


sys.modules[__name__].__class__ = _Callable
