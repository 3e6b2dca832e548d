"""Made-up messages on an app's socket and made-up areas: each is answered with a sentence, and
another app misses no sample meanwhile.
"""

from __future__ import annotations

import json
import logging
import random
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from gazeveil.gatekeeper.service.sockets.first_message import PATIENCE
from tests.support.attacked_service import here  # noqa: F401
from tests.support.gatekeeper_running import GAUSSIAN, KALEIDO, Running, Talk, until

ROUNDS, MESSAGES = 80, 12

#: Where the wearer looks; no answer may hold these numbers.
X_DEG, Y_DEG = 123.4567, 67.8912

#: Values that a careless reader trips over.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 65_535, 65_536, 2**53, 2**64, 10**400, -(10**400)),
    *(1e308, 5e-324, 0.1, float("nan"), float("inf"), -0.0, "", "a", "\x00", "\ud800", "\u202e"),
    *("x" * 600, "../../etc/passwd", "1e999999999", "{{7*7}}", [], {}, [[]], {"a": {"b": []}}),
    *("fixation", "tile", "samples", "select", "dwell", "binary", "raw", "pupil", "hello"),
    *(GAUSSIAN, KALEIDO, "gaussian:sigma_deg=nan", "gaussian:sigma_deg=1e999999999", "none"),
    *("temporal:K=2", "gaussian(sigma_deg=10)+temporal(K=3)", "gaussian:sigma_deg=5," * 20),
)

TARGET = {"name": "a", "x_deg": 100, "y_deg": 40, "width_deg": 60, "height_deg": 60}
AREA = {**TARGET, "name": "door"}

COMMANDS: tuple[dict[str, Any], ...] = (
    {"type": "subscribe", "id": 1, "what": "fixation", "mode": "end"},
    {"type": "subscribe", "id": 2, "what": "saccade", "mode": "start-stop"},
    {"type": "subscribe", "id": 3, "what": "samples", "mechanism": GAUSSIAN, "batch": 3},
    {"type": "subscribe", "id": 4, "what": "samples", "mechanism": KALEIDO, "encoding": "binary"},
    {"type": "subscribe", "id": 5, "what": "select", "targets": [TARGET], "by": "dwell"},
    {"type": "unsubscribe", "id": 1},
    {"type": "ping"},
    {"type": "hello", "token": "gv_app_x"},
)

#: What the service may say, and with what it may close: not UTF-8, unreadable, too large.
SAID = {"error", "refused", "subscribed", "ended", "event", "saccade-start", "samples", "pong"}
CLOSED = {1007, 1008, 1009}


class Fuzz:
    """Makes messages up from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        kind = self.random.random()
        if depth < 4 and kind < 0.1:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        if depth < 4 and kind < 0.2:
            return {f"{self.value(9)!r:.30}": self.value(depth + 1) for _ in range(2)}
        return self.random.choice(ODD)

    def changed(self, fields: dict[str, Any]) -> dict[str, Any]:
        """A message with one or two fields changed, taken out or put in."""
        made = dict(fields)
        for _ in range(self.random.randrange(1, 3)):
            key = self.random.choice([*made, "extra"])
            if self.random.random() < 0.2:
                made.pop(key, None)
            else:
                made[key] = self.value()
        return made

    def message(self) -> str | bytes:
        """Something to send: mostly a command with a mistake, often a right one, seldom noise."""
        kind = self.random.random()
        if kind < 0.05:
            return self.random.randbytes(self.random.randrange(300))
        if kind < 0.1:
            return json.dumps(self.value())
        command = self.random.choice(COMMANDS)
        return json.dumps(command if kind < 0.5 else self.changed(command))


def talk_nonsense(talk: Talk, fuzz: Fuzz) -> list[dict[str, Any]]:
    """Send made-up messages, each after the answer to the one before; all that was said, until the
    service hung up or that was enough.
    """
    said: list[dict[str, Any]] = []
    unreadable = 0
    try:
        for _ in range(MESSAGES):
            talk.socket.send(fuzz.message(), text=fuzz.random.random() < 0.9)
            said.append(talk.hear())
            unreadable += said[-1]["type"] == "error" and "protocol" in said[-1]["reason"]
            if unreadable == PATIENCE:
                said.append(talk.hear())
    except ConnectionClosed:
        assert talk.socket.close_code in CLOSED, talk.socket.close_code
    return said


def check(said: list[dict[str, Any]], others: str) -> None:
    """What was said is of the protocol, in sentences, and holds no gaze and no other app's name."""
    for message in said:
        if message["type"] == "binary":
            continue
        assert message["type"] in SAID, message
        text = json.dumps(message)
        assert others not in text
        if message["type"] != "samples":
            assert str(X_DEG) not in text
            assert str(Y_DEG) not in text
        if message["type"] in ("error", "refused", "ended"):
            assert message["code"], message
            assert message["reason"].endswith("."), message


def test_whatever_an_app_sends_it_is_answered_and_another_app_misses_nothing(
    here: Running, caplog: pytest.LogCaptureFixture
) -> None:
    service, fuzz = here.service, Fuzz(20_261_117)
    assert service is not None
    hostile, hostile_name = here.app(), here.last
    honest, honest_name = here.app(), here.last
    kinds: set[str] = set()
    got = 0
    with here.tracker() as tracker, here.talk(honest) as other, here.client(hostile) as http:
        assert other.subscribe(1, what="samples", mechanism=GAUSSIAN)["type"] == "subscribed"
        for number in range(ROUNDS):
            with here.talk(hostile) as talk:
                said = talk_nonsense(talk, fuzz)
            check(said, honest_name)
            kinds |= {message["type"] for message in said}
            body = json.dumps(fuzz.changed(AREA)).encode("utf-8", "surrogatepass")
            answer = http.post(
                "/v1/areas", content=body, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code in (201, 400, 403, 422), answer.text
            if answer.status_code != 201:
                assert set(answer.json()["error"]) == {"code", "reason"}
            tracker.send([X_DEG + 40.0 * (number % 3)] * 10, Y_DEG)
            while got < 10 * (number + 1):
                samples = other.hear()
                assert (samples["type"], samples["sequence"], samples["dropped"]) == (
                    "samples",
                    got,
                    0,
                )
                got += len(samples["t_ms"])
    assert {"error", "refused", "subscribed", "ended"} <= kinds, "the fuzz reaches all of them"
    until(lambda: all(s.app != hostile_name for s in tuple(service.keeper.state.subscriptions)))
    warnings = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert {text.partition(" sequence")[0] for text in warnings} <= {"Invalid UTF-8"}
