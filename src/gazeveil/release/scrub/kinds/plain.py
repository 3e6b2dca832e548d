"""Plain tables (CSV, TSV, semicolons): the columns that the reader takes, under names it knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gazeveil.errors import FormatError
from gazeveil.io.parsing.channels import WORDS
from gazeveil.io.parsing.table import find_separator, key
from gazeveil.io.plain.layout import is_validation
from gazeveil.io.plain.roles import KEY_ROLES, ask_which, flag_role, recognise, split_unit
from gazeveil.io.vendors.arff import CODES
from gazeveil.release.scrub.job import ScrubJob
from gazeveil.release.scrub.tables import (
    NEVER,
    Lines,
    TableRules,
    column_names,
    joined,
    scrubbed_table,
)

_BRACKET = re.compile(r"[\[(]")
_PLAIN = re.compile(r"[A-Za-z0-9 _.\-\[\]()°µμ]*")
_LABEL_WORDS = frozenset([*WORDS, *WORDS.values(), *CODES, "saccade", "blink", "pso"])
# Validation data has targets beside gaze, and is known by their names.
_TARGETS = {"targetid": "target_id", "tarx": "tar_x", "tary": "tar_y"}


def scrubbed_csv(
    lines: Lines, job: ScrubJob, said: Mapping[str, str] | None = None, comment: str = "#"
) -> Iterator[str]:
    """The table with the columns that have a role; comments and every other column go.

    Parameters
    ----------
    lines : callable
        Gives the lines from the beginning, each time it is called.
    job : ScrubJob
        Labels and counts.
    said : mapping of role to column, optional
        Where somebody says it; columns are called by their roles then. Else names say it.
    comment : str
        What a line of comment begins with.
    """

    def body() -> Iterator[str]:
        yield from (line for line in lines() if not (comment and line.startswith(comment)))

    names = column_names(body, quoted=True)
    separator = find_separator(next((line for line in body() if line.strip()), ""))
    if not separator:
        raise FormatError("table", "its columns are not separated", "Export with commas.")
    by_name: dict[str, list[str]] = {}
    if said is None:
        ask_which("table", names, recognise(names), {})
    flags = {role: n for n in names if (role := flag_role(n)) is not None}
    for role, name in ({**flags, **recognise(names)} if said is None else said).items():
        by_name.setdefault(name.strip(), []).append(role)
    targets = _TARGETS if said is None and is_validation(names) else {}
    shown, actions = [], {}
    for i, name in enumerate(names):
        roles = by_name.pop(name.strip(), [])
        own = roles[0] if said is not None and roles else ""
        public = targets.get(key(name), "") or own
        public = public or (_public(name, roles[0]) if roles else f"_{i}")
        shown.append(public)
        actions[public] = roles[0] if roles else ("x" if key(name) in targets else "")

    def rows() -> Iterator[str]:
        source = (line for line in body() if line.strip())
        next(source, None)
        yield joined(shown, separator)
        yield from source

    return scrubbed_table(rows, _rules(actions), job)


def _public(name: str, role: str) -> str:
    """A name that holds a role and a unit and nothing else."""
    unit = split_unit(name)[1]
    if _PLAIN.fullmatch(name) and (unit or not _BRACKET.search(name)):
        return name
    return f"{role} [{unit}]" if unit else role


def _rules(actions: dict[str, str]) -> TableRules:
    """What happens to each column of these names, by role."""

    def of(*roles: str) -> str:
        return "|".join(key(n) + "$" for n, r in actions.items() if r in roles) or NEVER

    measured = set(actions.values()) - {"t", "label", "", *KEY_ROLES}
    return TableRules(
        keep=of(*measured),
        shift=of("t"),
        label=of(*KEY_ROLES),
        event=of("label"),
        group=of(*KEY_ROLES),
        words=_LABEL_WORDS,
        quoted=True,
    )
