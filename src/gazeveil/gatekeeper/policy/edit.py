"""Change a policy's TOML text so that it says something new and keeps the owner's comments, order
and spelling.

Only lines that must change do: single keys where that is enough, the tables of one app where its
mechanisms are others, the whole file where its way of writing is one that this editor does not know
(inline tables, dotted keys). Whatever was done, the text is read back and must mean exactly what
was wanted; so a mistake here costs comments, never a decision.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gazeveil.errors import ParameterError
from gazeveil.gatekeeper.policy.grant import Grant
from gazeveil.gatekeeper.policy.policy import Policy
from gazeveil.gatekeeper.policy.text import grant_lines
from gazeveil.gatekeeper.policy.wearers import OWNER, Wearer

_PAIR = re.compile(r"""\s*(?:"([^"\\]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*=""")

#: A key under another name: whoever sets the first must not leave the second.
_ALIASES = {"expires_ns": "expires"}


@dataclass
class _Line:
    """One statement of a TOML text: a header, a pair (which may go over several lines), or a
    comment or blank line.
    """

    text: str
    table: tuple[str, ...] = ()
    key: str | None = None
    header: bool = False

    @property
    def comment(self) -> bool:
        return self.text.lstrip().startswith("#")


def edited(text: str, before: Policy, after: Policy) -> str:
    """The text of a policy, which says `before`, changed so that it says `after`.

    Examples
    --------
    >>> print(edited("consent = true  # since May", Policy(consent=True), Policy()), end="")
    consent = false  # since May
    """
    ways: tuple[Callable[[list[_Line], str, str, Grant, Grant], None], ...] = (
        _change_keys,
        _replace_app,
    )
    for change_app in ways:
        try:
            lines = _lines(text)
            _edit(lines, before, after, change_app)
            changed = "".join(line.text for line in lines)
            if Policy.parse(changed) == after.worn_by(OWNER):
                return changed
        except (tomllib.TOMLDecodeError, ParameterError, LookupError):
            continue
    return after.text()


def _edit(
    lines: list[_Line],
    before: Policy,
    after: Policy,
    change_app: Callable[[list[_Line], str, str, Grant, Grant], None],
) -> None:
    old, new = before.wearers, after.wearers
    for name in [*old, *(n for n in new if n not in old)]:
        table: tuple[str, ...] = () if name == OWNER else ("wearers", name)
        if name not in new:
            _remove(lines, table)
            continue
        was, now = old.get(name, Wearer()), new[name]
        if name not in old:
            _append(lines, [f'[wearers."{name}"]', f"consent = {str(now.consent).lower()}"])
        elif was.consent != now.consent:
            _set(lines, table, "consent", str(now.consent).lower())
        where = ".".join(("apps",) if name == OWNER else ("wearers", f'"{name}"', "apps"))
        _edit_apps(lines, where, was.apps, now.apps, change_app)


def _edit_apps(
    lines: list[_Line],
    where: str,
    old: Mapping[str, Grant],
    new: Mapping[str, Grant],
    change_app: Callable[[list[_Line], str, str, Grant, Grant], None],
) -> None:
    for app in sorted({*old, *new}):
        if app not in new:
            _remove(lines, _path(f'[{where}."{app}"]'))
        elif app not in old:
            _append(lines, grant_lines(where, app, new[app]))
        elif old[app] != new[app]:
            change_app(lines, where, app, old[app], new[app])


def _change_keys(lines: list[_Line], where: str, app: str, old: Grant, new: Grant) -> None:
    """Change the keys in which two grants differ."""
    if old.mechanisms != new.mechanisms:
        _replace_app(lines, where, app, old, new)
        return
    was, now = _pairs(grant_lines(where, app, old)), _pairs(grant_lines(where, app, new))
    table = _path(f'[{where}."{app}"]')
    for key in [*was, *(k for k in now if k not in was)]:
        if was.get(key) == now.get(key):
            continue
        for name in (_ALIASES.get(key), key if key not in now else None):
            line = _find(lines, table, name) if name is not None else None
            if line is not None:
                lines.remove(line)
        if key in now:
            _set(lines, table, key, now[key])


def _replace_app(lines: list[_Line], where: str, app: str, old: Grant, new: Grant) -> None:
    """Put an app's tables anew where its old ones stood."""
    table = _path(f'[{where}."{app}"]')
    at = next((i for i, line in enumerate(lines) if line.table[: len(table)] == table), None)
    if at is None:
        raise LookupError(f"there is no table {table}")
    _remove(lines, table)
    made = _of_table(table, grant_lines(where, app, new))
    after = lines[at:]
    lines[at:] = [*made, *([_Line("\n")] if after and after[0].text.strip() else []), *after]


def _pairs(lines: list[str]) -> dict[str, str]:
    """Keys and values of an app's first table."""
    pairs: dict[str, str] = {}
    for line in lines[1:]:
        if not line or line.startswith("["):
            break
        key, _, value = line.partition(" = ")
        pairs[key] = value
    return pairs


def _find(lines: list[_Line], table: tuple[str, ...], key: str) -> _Line | None:
    return next((line for line in lines if line.table == table and line.key == key), None)


def _set(lines: list[_Line], table: tuple[str, ...], key: str, value: str) -> None:
    line = _find(lines, table, key)
    if line is not None:
        lead = line.text[: len(line.text) - len(line.text.lstrip())]
        line.text = f"{lead}{key} = {value}{_after_value(line.text)}\n"
        return
    pairs = [
        i
        for i, line in enumerate(lines)
        if line.table == table and (line.key is not None or line.header)
    ]
    if not pairs and table:
        raise LookupError(f"there is no table {table}")
    lines.insert(pairs[-1] + 1 if pairs else 0, _Line(f"{key} = {value}\n", table, key))


def _after_value(text: str) -> str:
    """The comment behind a pair, with the space before it."""
    at = _comment_at(text)
    if at is None:
        return ""
    return text[len(text[:at].rstrip()) :].rstrip("\n")


def _remove(lines: list[_Line], table: tuple[str, ...]) -> None:
    """Take a table and those under it away; lines that are comments alone stay, they are the
    owner's.
    """
    lines[:] = [line for line in lines if line.table[: len(table)] != table or line.comment]


def _append(lines: list[_Line], added: list[str]) -> None:
    if lines and not lines[-1].text.endswith("\n"):
        lines[-1].text += "\n"
    table = _path(added[0])
    lines += [_Line("\n")] if lines else []
    lines += _of_table(table, added)


def _of_table(table: tuple[str, ...], texts: list[str]) -> list[_Line]:
    return [_Line(text + "\n", table, header=text.startswith("[")) for text in texts]


def _lines(text: str) -> list[_Line]:
    """The statements of a text, in order; joined they are the text."""
    lines: list[_Line] = []
    table: tuple[str, ...] = ()
    rest = text
    while rest:
        size = _statement(rest)
        statement, rest = rest[:size], rest[size:]
        start = statement.lstrip()
        if start.startswith("["):
            table = _path(statement)
            lines.append(_Line(statement, table, header=True))
            continue
        pair = _PAIR.match(statement)
        key = next((part for part in pair.groups() if part is not None), None) if pair else None
        lines.append(_Line(statement, table, None if start.startswith("#") else key))
    return lines


def _path(header: str) -> tuple[str, ...]:
    """The keys of a table's header."""
    tree: object = tomllib.loads(header)
    path: list[str] = []
    while isinstance(tree, dict) and tree:
        key, tree = next(iter(tree.items()))
        path.append(key)
        if isinstance(tree, list):
            tree = tree[0]
    return tuple(path)


def _statement(text: str) -> int:
    """How many characters the first statement has: up to the end of the line in which its brackets
    and quotes are closed.
    """
    if text.lstrip(" \t").startswith(("#", "[", "\n", "\r")):
        end = text.find("\n")
        return len(text) if end < 0 else end + 1
    return _walk(text)[0]


def _comment_at(text: str) -> int | None:
    return _walk(text)[1]


def _walk(text: str) -> tuple[int, int | None]:
    """Where a pair ends, and where its last comment begins."""
    depth, at, comment = 0, 0, None
    while at < len(text):
        quote = next((q for q in ('"""', "'''", '"', "'") if text.startswith(q, at)), None)
        if quote is not None:
            at = _after_string(text, at + len(quote), quote)
            continue
        char = text[at]
        if char == "#":
            comment = at
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        depth += (char in "[{") - (char in "]}")
        at += 1
        if char == "\n":
            if depth <= 0:
                return at, comment
            comment = None
    return at, comment


def _after_string(text: str, at: int, quote: str) -> int:
    while at < len(text) and not text.startswith(quote, at):
        at += 2 if text[at] == "\\" and quote[0] == '"' else 1
    return min(len(text), at + len(quote))
