"""Arguments several verbs share: a path to read, its format, and the format's options.

Messages as the command line has them.

The layers below speak of Python: `screen=Screen(...)`, `unit='px'`, `The 'seed' parameter of
Study`. A reader at a terminal has options instead. What an option of this verb says is put in its
words; all else stays as it is.

The progress bar of every verb: on standard error, once a second has passed, gone at the end.
"""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.errors import LiveError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column, Table
from rich.text import Text

from gazeveil.errors import ParameterError

if TYPE_CHECKING:
    from gazeveil.gaze.cohort import Cohort
    from gazeveil.gaze.geometry import Screen

PathArgument = Annotated[Path, typer.Argument(help="A file or a folder of recordings.")]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", "-f", help="Format name; found by looking at the files if not given."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="NAME=VALUE",
        help="An option of the format or method, e.g. unit=px or columns.x=GX. May be repeated.",
    ),
]
ScreenOption = Annotated[
    str | None,
    typer.Option(
        "--screen",
        metavar="WxHpx,WxHmm,Dmm",
        help="Screen geometry, e.g. 1280x720px,400x225mm,450mm.",
    ),
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the figures as JSON.")
]
MechanismOption = Annotated[
    str,
    typer.Option(
        "--mechanism",
        "-m",
        metavar="NAME:PARAMETER=VALUE,...",
        help="See `gazeveil list mechanisms`.",
    ),
]
TestSeedOption = Annotated[
    int | None,
    typer.Option("--seed", help="For tests only: repeatable noise, which protects nobody."),
]
AttackOption = Annotated[
    list[str] | None,
    typer.Option(
        "--attack",
        "-a",
        metavar="NAME:...",
        help="An attacker; see `gazeveil list attacks`. May be repeated.",
    ),
]
BatteryOption = Annotated[
    str | None,
    typer.Option(
        "--attacks",
        metavar="quick|strong|all|none",
        help="A battery of attackers, beside those of --attack; strong if nobody is named.",
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, help="Processes; one per core if not given.")
]

#: What is printed about noise from `--seed`.
SEEDED = "This is a test: the noise came from a seed, so whoever knows it can undo the noise."

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_SCREEN = re.compile(rf"^{_NUMBER}x{_NUMBER}px,{_NUMBER}x{_NUMBER}mm,{_NUMBER}mm$")


def counted(count: int, word: str) -> str:
    """A number and what is counted.

    Examples
    --------
    >>> counted(1, "message"), counted(1200, "message"), counted(2, "person")
    ('1 message', '1,200 messages', '2 people')
    """
    return f"{count:,} {word if count == 1 else {'person': 'people'}.get(word, word + 's')}"


def console() -> Console:
    """Where tables are printed: names and paths of any text as they are, square brackets too."""
    return TableConsole(markup=False, highlight=False)


def print_table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    figures_from: int = 1_000,
    caption: str = "",
) -> None:
    """Print a table; columns from `figures_from` on are figures, which are never folded."""
    table = Table(
        title=title,
        title_justify="left",
        caption=caption or None,
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for number, head in enumerate(heads):
        figure = number >= figures_from
        justify: Literal["left", "right"] = "right" if figure else "left"
        table.add_column(head, justify=justify, no_wrap=figure, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)


def say(sentence: object) -> None:
    """Print a sentence as it is, on one line however long; control characters are written out."""
    console().print(without_controls(str(sentence)), soft_wrap=True)


def options(
    pairs: list[str] | None,
    screen: str | None = None,
    taken: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, object]:
    """`NAME=VALUE` pairs as keyword arguments; a value is JSON where it can be, else text, and a
    name with a dot is an entry of an option (`columns.x=GX`).

    `taken` maps names that have an argument of their own to that argument.
    """
    result: dict[str, object] = {}
    for pair in pairs or []:
        name, sign, text = pair.partition("=")
        if not sign or not name.strip():
            raise ParameterError(
                f"The '--set' option must be NAME=VALUE. Got '{pair}' instead.",
                name="--set",
                got=pair,
            )
        if name.strip() in taken:
            raise ParameterError(
                f"'{name.strip()}' is not given as NAME=VALUE but by {taken[name.strip()]}. Got"
                f" '{pair}'.",
                name=name.strip(),
                got=pair,
            )
        try:
            value = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            value = text
        # `columns.x=GX` is the entry x of the option columns.
        outer, dot, inner = name.strip().partition(".")
        entries = result.setdefault(outer, {}) if dot else None
        if isinstance(entries, dict):
            entries[inner] = value
        else:
            result[name.strip()] = value
    if screen is not None:
        result["screen"] = parse_screen(screen)
    return result


def attackers(named: list[str] | None, battery: str | None) -> tuple[str, ...]:
    """Return the named attackers and a battery; the default battery if none are named."""
    from gazeveil.attacks.registry import BATTERIES, DEFAULT

    chosen = [battery] if battery is not None else []
    if battery is not None and battery not in BATTERIES:
        raise ParameterError(
            f"The '--attacks' option must be one of {', '.join(BATTERIES)}. Got '{battery}'"
            " instead. One attacker is named with --attack.",
            name="--attacks",
            got=battery,
        )
    return (*chosen, *(named or ())) or (DEFAULT,)


def parse_screen(text: str) -> Screen:
    """A screen from text such as `1280x720px,400x225mm,450mm`."""
    from gazeveil.gaze.geometry import Screen

    match = _SCREEN.match(text.replace(" ", ""))
    if match is None:
        raise ParameterError(
            f"The '--screen' option must look like 1280x720px,400x225mm,450mm. Got '{text}'"
            " instead.",
            name="--screen",
            got=text,
        )
    return Screen(*(float(part) for part in match.groups()))


def read_cohort(
    path: Path, format_name: str | None, pairs: list[str] | None, screen: str | None
) -> Cohort:
    """Read what the shared arguments name."""
    from gazeveil.io.reading import read

    return read(path, format_name, **reading_options(pairs, screen))


def reading_options(pairs: list[str] | None, screen: str | None) -> dict[str, object]:
    """Options of :func:`gazeveil.read` from the shared arguments."""
    taken = {"path": "the argument PATH", "format": "--format", "screen": "--screen"}
    return options(pairs, screen, taken)


def write_json(path: Path | None, figures: object) -> None:
    """Write figures where `--json` was given."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
    # Bytes of a path that are no text become escapes, which JSON has too.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


class TableConsole(Console):
    """A console that breaks no word of a table; where the terminal is too narrow, lines are longer
    than it is.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, tables wide enough for their longest words."""
        for table in (o for o in objects if isinstance(o, Table)):
            for column in table.columns:
                if not (column.no_wrap and column.overflow == "ellipsis" and column.max_width):
                    column.min_width = _longest(column)
                    column.max_width = column.max_width and max(column.max_width, column.min_width)
            # Where this is more than there is, rich would leave whole columns out.
            needed = 1 + sum(3 + (column.min_width or 0) for column in table.columns)
            table.width = needed if needed > self.width else table.width
        super().print(*objects, **{"crop": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        """Text as rich shows it, with control characters written out."""
        return super().render_str(without_controls(text), **options)


def _longest(column: Column) -> int:
    """Characters of the longest word of a column, or of its longest line where lines stay whole."""
    parts = str.splitlines if column.no_wrap else str.split
    cells = map(str, (column.header, *column.cells))
    return max((cell_len(without_controls(part)) for c in cells for part in parts(c)), default=1)


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
_SCREEN_CALL = re.compile(r"\bscreen=(?:Screen\([^()]*\))?")
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
        text = _SCREEN_CALL.sub(_SCREEN_TEXT, text)
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


Item = TypeVar("Item")

#: When a bar appears, in seconds.
AFTER_S = 1.0


class TimeLeftColumn(ProgressColumn):
    """The time left by the mean pace since the clock started, from the first item on.

    Rich's own column looks at the last 30 s and needs two items in them; cells of a large study
    take longer. What was finished before the clock started (`before` of the task) has no pace.
    """

    def render(self, task: Task) -> Text:
        """`about 4:05 left`; before the first item is done, the time so far."""
        done = task.completed - task.fields.get("before", 0)
        left = seconds_left(task.elapsed, done, task.remaining)
        waiting = task.elapsed is not None and task.remaining
        so_far = f"{clock(task.elapsed or 0.0)} so far" if waiting else ""
        words = so_far if left is None else f"about {clock(left)} left"
        return Text(words, style="progress.remaining")


def seconds_left(elapsed_s: float | None, done: float, left: float | None) -> float | None:
    """Seconds that the remaining items take at the mean pace so far; None where that is not known.

    Examples
    --------
    >>> seconds_left(30.0, 3, 9)
    90.0
    """
    if elapsed_s is None or left is None or done <= 0:
        return None
    return elapsed_s / done * left


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any.

    Examples
    --------
    >>> clock(245), clock(3725)
    ('4:05', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told (done, total); nothing where standard error is not a terminal."""
    screen = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeLeftColumn())
    progress = Progress(*columns, console=screen, transient=True)
    task = progress.add_task(what, total=None)
    before = [-1, -1]

    def update(done: int, total: int) -> None:
        raise_lost_interrupt()
        if total != before[1] or done < before[0]:
            # A study begins: cells that were there already took no time, so the clock starts at
            # them.
            progress.reset(task, total=total, completed=done, before=done)
        before[:] = done, total
        progress.update(task, completed=done, total=total)

    def start() -> None:
        with suppress(LiveError):  # a bar around this one is shown already
            progress.start()

    later = Timer(AFTER_S, start)
    later.daemon = True
    if screen.is_terminal:
        later.start()
    try:
        with interrupts_kept():
            yield update
    finally:
        later.cancel()
        if screen.is_terminal:
            later.join()
            progress.live.stop()


def track(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """Iterate with a bar."""
    with bar(what) as update:
        update(0, total)
        for done, item in enumerate(items, 1):
            yield item
            update(done, total)


#: Set by Ctrl-C until it has ended what was running.
_pressed = threading.Event()


def _press(number: int, frame: FrameType | None) -> None:
    _pressed.set()
    signal.default_int_handler(number, frame)


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Remember Ctrl-C in the main thread, unless it is ignored or has another handler."""
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield
        return
    _pressed.clear()
    signal.signal(signal.SIGINT, _press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _pressed.clear()


def raise_lost_interrupt() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed and the main thread is still at work."""
    if _pressed.is_set() and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
