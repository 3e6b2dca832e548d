"""Messages as the command line has them.

The layers below speak of Python: `screen=Screen(...)`, `unit='px'`, `The 'seed' parameter of
Study`. A reader at a terminal has options instead. What an option of this verb says is put in its
words; all else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection

#: Control characters but the new line and the tab, what turns the direction of writing, and bytes
#: of a file's name that are no text: a name may hold any of them.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_SCREEN_TEXT = "--screen 1280x720px,400x225mm,450mm"

#: What a reader takes by `--set NAME=VALUE`.
_READING = (
    "areas clash columns comment decimal frame frame_interval_s index missing pattern panorama"
    " people person rate_hz separator session space stimulus task time_unit trials unit y_axis"
)

_NAME = "|".join(_READING.split())

#: Parameters in Python that the command line calls otherwise.
_RENAMED = {
    "mechanisms": "--mechanism",
    "mechanism": "--mechanism",
    "utilities": "--utility",
    "scenarios": "--scenario",
    "attacks": "--attack",
    "executor": "--workers",
    "path": "PATH",
    "method": "--method",
}

_PARAMETER = re.compile(r"The '(\w+)' parameter of (\w[\w.]*) must be")
_BOTH = re.compile(r"\bformat= in Python, (--format) on the command line")
_SCREEN = re.compile(r"\bscreen=(?:Screen\([^()]*\))?")
_FORMAT = re.compile(r"\bformat='([\w-]+)'")
_RATE = re.compile(r"(?:Say it: |Give it with )?\brecording\.with_\(rate_hz=\.\.\.\)")
_READ = re.compile(rf"\b({_NAME})=(?:'([^']*)')?(?=[\s.,;:)]|$)")
#: Options with entries (`columns={'x': 'GX'}`), and those with lists (`ignore=['a']`).
_ENTRIES = re.compile(r"\b(columns|rows)=\{([^{}]*)\}")
_ENTRY = re.compile(r"'([^']*)': (?:'([^']*)'|(\.\.\.))")
_LISTED = re.compile(r"\b(ignore|missing)=(\[[^\[\]]*\])")
_WINDOW = re.compile(r"\b(window_s|step_s)(?=[\s.,])")
_QUOTED = re.compile(r"(?<![\w-])([a-z]\w*)='([\w+-]+)'")


def in_options(message: str, options: Collection[str]) -> str:
    """A message in the words of a verb, which has these options (such as `--screen`).

    Examples
    --------
    >>> in_options("Say unit='px' and give screen=Screen(...).", {"--set", "--screen"})
    'Say --set unit=px and give --screen 1280x720px,400x225mm,450mm.'
    >>> in_options("The 'seed' parameter of Study must be a whole number.", {"--seed"})
    "The '--seed' option must be a whole number."
    >>> in_options("The 'k' parameter of marginals must be at least 2.", {"--seed"})
    "The 'k' parameter of marginals must be at least 2."
    """
    text = _PARAMETER.sub(lambda found: _option(found, options), message)
    if "--format" in options:
        text = _BOTH.sub(r"\1", text)
        text = _FORMAT.sub(r"--format \1", text)
    if "--screen" in options:
        text = _SCREEN.sub(_SCREEN_TEXT, text)
    if "--set" in options:
        text = _RATE.sub("A CSV file takes it by --set rate_hz=HZ", text)
        text = _ENTRIES.sub(_entries, text)
        text = _LISTED.sub(_list, text)
        text = _READ.sub(lambda found: f"--set {found[1]}={found[2] or ''}", text)
    if "--parameter" in options and "--parameter" not in text:
        text = _WINDOW.sub(r"--parameter \1=SECONDS", text)
    # What is left are parameters of a mechanism, an attack or a method, written without quotes.
    return _QUOTED.sub(r"\1=\2", text) if options else text


def _entries(found: re.Match[str]) -> str:
    pairs = _ENTRY.findall(found[2])
    return " ".join(f"--set {found[1]}.{k}={v or dots}" for k, v, dots in pairs) or found[0]


def _list(found: re.Match[str]) -> str:
    values = found[2].replace("'", '"')
    return f"--set '{found[1]}={values}'"


def _option(found: re.Match[str], options: Collection[str]) -> str:
    name = found[1]
    option = _RENAMED.get(name, f"--{name.replace('_', '-')}")
    known = option in options or (option == "PATH" and "--format" in options)
    # Names in a mechanism's own text, such as `gaussian:sigma_deg=...`, are no options.
    return f"The '{option}' option must be" if known else found[0]


def without_controls(text: str) -> str:
    r"""Escape the control characters of a text.

    Those in a foreign file name or certificate could wipe the screen and show another verdict.

    Examples
    --------
    >>> without_controls("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return _CONTROLS.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
