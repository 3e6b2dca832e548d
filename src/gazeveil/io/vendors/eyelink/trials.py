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
    marks: list[
        tuple[int, str | None]
    ] = []  # line, and the trial that begins there (None: one ends)
    pattern = re.compile(trials) if trials is not None else _TRIALID
    for number, _, text in messages:
        match = pattern.search(text)
        if match is not None:
            marks.append(
                (number, ((match[1] if match.groups() else None) or match[0]).strip() or "trial")
            )
        elif trials is None and _TRIAL_RESULT.match(text):
            marks.append((number, None))
    by_message = any(name is not None for _, name in marks)
    if not by_message:
        marks = [
            (-1 if i == 0 else int(line), f"{i + 1}" if len(starts) > 1 else "")
            for i, line in enumerate(starts)
        ]
    lines = np.array([m[0] for m in marks])
    mark_of = np.searchsorted(lines, at, side="right") - 1
    message_of = np.searchsorted(lines, [m[0] for m in messages], side="right") - 1
    sent = [Message(t, text) for _, t, text in messages]
    rows_by_mark: dict[int, Ints] = {}
    if len(at):
        order = np.argsort(mark_of, kind="stable")
        values, first = np.unique(mark_of[order], return_index=True)
        rows_by_mark = {int(v): r for v, r in zip(values, np.split(order, first[1:]), strict=True)}
    result, empty, sessions = [], [], dict[str, int]()
    loose: list[Ints] = [rows_by_mark[-1]] if -1 in rows_by_mark else []
    trial_messages: dict[int, list[Message]] = {}
    owner = (
        np.maximum.accumulate([i if m[1] is not None else -1 for i, m in enumerate(marks)])
        if marks
        else np.empty(0, dtype=np.int64)
    )
    outside: list[Message] = []
    for message, k in zip(sent, message_of, strict=True):
        # What is sent after a trial's end (its result, its variables) still speaks of that trial.
        mine = int(owner[k]) if k >= 0 else -1
        (trial_messages.setdefault(mine, []) if mine >= 0 else outside).append(message)
    for i, (_, name) in enumerate(marks):
        rows = rows_by_mark.get(i)
        if name is None:
            loose += [rows] if rows is not None else []
        elif rows is None:
            empty.append(name)
        else:
            sessions[name] = sessions.get(name, 0) + 1
            result.append(Trial(name, rows, tuple(trial_messages.get(i, ())), sessions[name]))
    if loose:
        result.append(Trial(NO_TRIAL, np.sort(np.concatenate(loose)), tuple(outside)))
    if not result:
        result.append(Trial("", np.empty(0, dtype=np.int64), tuple(sent)))
    return tuple(result), empty
