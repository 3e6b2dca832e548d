"""Where the trials of an EyeLink ASC file begin and end, by the lines their messages stand on."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from gazeveil.arrays import Ints
from gazeveil.gaze.recording import Message

#: Stimulus of the samples that no trial claims.
NO_TRIAL = "no-trial"

_TRIALID = re.compile(r"^(?:-?\d+\s+)?TRIALID\b[\s:]*(.*)$")
_TRIAL_RESULT = re.compile(r"^(?:-?\d+\s+)?TRIAL_RESULT\b")


@dataclass(frozen=True)
class Trial:
    """A stretch of samples and messages with one name."""

    name: str
    rows: Ints
    messages: tuple[Message, ...]
    session: int = 1


def cut_trials(
    at: Ints, messages: list[tuple[int, int, str]], starts: Ints, trials: str | None
) -> tuple[tuple[Trial, ...], list[str]]:
    """Trials with samples, and the names of those without.

    Parameters
    ----------
    at : array of int64
        Line of each sample (of each event, in a file without samples).
    messages : list of (line, time in ns, text)
        In file order.
    starts : array of int64
        Lines of the START blocks.
    trials : str, optional
        Regular expression for the messages that begin a trial; default TRIALID.
    """
    marks = _marks(messages, starts, trials)
    lines = np.array([line for line, _ in marks])
    rows_of = _grouped(np.searchsorted(lines, at, side="right") - 1)
    sent = [Message(t, text) for _, t, text in messages]
    message_of = np.searchsorted(lines, [line for line, _, _ in messages], side="right") - 1
    said_of = _by_trial(sent, message_of, marks)
    result, empty, sessions = [], [], dict[str, int]()
    loose: list[Ints] = [rows_of[-1]] if -1 in rows_of else []
    for i, (_, name) in enumerate(marks):
        rows = rows_of.get(i)
        if name is None:
            loose += [rows] if rows is not None else []
        elif rows is None:
            empty.append(name)
        else:
            sessions[name] = sessions.get(name, 0) + 1
            result.append(Trial(name, rows, tuple(said_of.get(i, ())), sessions[name]))
    if loose:
        outside = tuple(said_of.get(-1, ()))
        result.append(Trial(NO_TRIAL, np.sort(np.concatenate(loose)), outside))
    if not result:
        result.append(Trial("", np.empty(0, dtype=np.int64), tuple(sent)))
    return tuple(result), empty


def _marks(
    messages: list[tuple[int, int, str]], starts: Ints, trials: str | None
) -> list[tuple[int, str | None]]:
    """Lines, and the trial that begins on each; None where one ends."""
    marks: list[tuple[int, str | None]] = []
    pattern = re.compile(trials) if trials is not None else _TRIALID
    for line, _, text in messages:
        match = pattern.search(text)
        if match is not None:
            name = (match[1] if match.groups() else None) or match[0]
            marks.append((line, name.strip() or "trial"))
        elif trials is None and _TRIAL_RESULT.match(text):
            marks.append((line, None))
    if any(name is not None for _, name in marks):
        return marks
    return [
        (-1 if i == 0 else int(line), f"{i + 1}" if len(starts) > 1 else "")
        for i, line in enumerate(starts)
    ]


def _grouped(mark_of: Ints) -> dict[int, Ints]:
    """The rows that come after each mark; -1 are those before the first."""
    if not len(mark_of):
        return {}
    order = np.argsort(mark_of, kind="stable")
    values, first = np.unique(mark_of[order], return_index=True)
    return {int(v): rows for v, rows in zip(values, np.split(order, first[1:]), strict=True)}


def _by_trial(
    sent: list[Message], mark_of: Ints, marks: list[tuple[int, str | None]]
) -> dict[int, list[Message]]:
    """The messages of each trial, by its mark; -1 are those before the first trial."""
    begun = [-1, *(i if name is not None else -1 for i, (_, name) in enumerate(marks))]
    # What is sent after a trial's end (its result, its variables) still speaks of that trial.
    last_begun = np.maximum.accumulate(begun)
    found: dict[int, list[Message]] = {}
    for message, k in zip(sent, mark_of, strict=True):
        found.setdefault(int(last_begun[k + 1]), []).append(message)
    return found
