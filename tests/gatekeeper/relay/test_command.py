"""The command `gazeveil relay`."""

from __future__ import annotations

import json
import signal
import socket as sockets
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gazeveil.cli.main import main
from tests.support.fake_pupil import FakePupil, PupilClient, gaze
from tests.support.ports import free_port
from tests.support.relaying import KALEIDO


def command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(["relay", *(str(a) for a in arguments)])
    return int(stopped.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--in", "eyes", "--out", "pupil://127.0.0.1:1", "-m", "kalman"),
            "must be one of simulated",
        ),
        (("--in", "simulated", "--out", "eyes", "-m", "kalman"), "must be one of pupil"),
        (("--in", "simulated", "--out", "pupil://127.0.0.1:1", "-m", "nonsense"), "must be one of"),
        (
            (
                "--in",
                "simulated",
                "--out",
                "pupil://127.0.0.1:1",
                "-m",
                "kaleido:epsilon=-1,w=1,r_deg=1",
            ),
            "epsilon",
        ),
        (
            ("--in", "simulated", "--out", "pupil://127.0.0.1:1", "-m", "k-same-select:k=2"),
            "takes a stream",
        ),
        (
            ("--in", "simulated", "--out", "pupil://127.0.0.1:1", "-m", "kalman", "--rate", "0"),
            "rate_hz",
        ),
        (
            (
                "--in",
                "simulated",
                "--out",
                "pupil://127.0.0.1:1",
                "-m",
                "kalman",
                "--screen",
                "big",
            ),
            "--screen",
        ),
        (
            (
                "--in",
                "simulated",
                "--out",
                "pupil://127.0.0.1:1",
                "-m",
                "kalman",
                "--seconds",
                "-1",
            ),
            "--seconds",
        ),
        (("--in", "simulated", "--out", "pupil://127.0.0.1:1"), "--mechanism"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*arguments) == 2
    said = capsys.readouterr().err.strip()
    assert words in said
    assert "Traceback" not in said
    assert "\n" not in said


def test_the_command_prints_its_promise_counts_and_stops_when_told(tmp_path: Path) -> None:
    port, figures = free_port(), tmp_path / "counts.json"
    with FakePupil() as pupil:
        line = [
            "relay",
            "--in",
            f"pupil://127.0.0.1:{pupil.port}",
            "--out",
            f"pupil://127.0.0.1:{port}",
            "--mechanism",
            KALEIDO,
            "--rate",
            "100",
        ]
        code = "import sys; from gazeveil.cli.main import main; main(sys.argv[1:])"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *line, "--json", str(figures)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            pupil.wait_for_subscriber()
            client = PupilClient(port)
            for k in range(50):
                pupil.send(gaze(1.0 + k / 100, 0.5, 0.5, mark=0.01))
            received = [client.receive() for _ in range(50)]
            client.close()
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert "changes the probability of any outcome" in out
    assert "50 samples came, 50 went out protected" in out
    assert "Traceback" not in err
    assert all(m["confidence"] == 1.0 for _, m, _ in received)
    found = json.loads(figures.read_text())
    assert (found["counts"]["relay"]["out"], found["counts"]["out"]["sent"]) == (50, 50)
    assert found["guarantee"]["numbers"]["epsilon"] == "1"
    assert found["seed"] is None


def test_several_interrupts_and_a_taken_port_leave_no_traceback(tmp_path: Path) -> None:
    code = "import sys; from gazeveil.cli.main import main; main(sys.argv[1:])"
    with sockets.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        used, free = (f"pupil://127.0.0.1:{port}" for port in (taken.getsockname()[1], free_port()))
        for source, out, words in (
            ("simulated", used, "Choose another port"),
            (free, free, "are both"),
        ):
            line = ["relay", "--in", source, "--out", out, "--mechanism", "gaussian:sigma_deg=1"]
            done = subprocess.run(
                [sys.executable, "-c", code, *line],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 2
            assert words in " ".join(done.stderr.split())
            assert "Traceback" not in done.stderr
    line = ["relay", "--in", "simulated", "--out", free, "--mechanism", "gaussian:sigma_deg=1"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while "Relaying" not in process.stdout.readline():
            pass
        time.sleep(0.3)
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.005)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "Traceback" not in err
