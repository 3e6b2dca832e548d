"""The card of a trained network: what it learnt from, how well it verifies people it never saw, and
how its file must be handled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from gazeveil.attacks.identify.deep.verification import Verification
from gazeveil.models.weights_file import HANDLING, MARKS

_WORDS = {
    "duration_s": "seconds of gaze",
    "gallery": "people enrolled",
    "sessions": "sessions since enrolment",
}


@dataclass(frozen=True)
class ModelCard:
    """What is to be said of a network.

    Parameters
    ----------
    data : str
        What it was trained on, in words.
    recordings : int
        How many, those of held-out people included.
    people_trained, people_held_out : int
        No person is in both.
    channels, rate_hz, window_s
        Its input.
    steps, seed : int
        Of its training.
    last_loss : float
        Mean over the last tenth of the steps.
    version : str
        Of Gazeveil.
    verified : tuple of Verification
        Figures on held-out people; empty where nobody was held out.
    """

    data: str
    recordings: int
    people_trained: int
    people_held_out: int
    channels: str
    rate_hz: float
    window_s: float
    steps: int
    seed: int
    last_loss: float
    version: str
    verified: tuple[Verification, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            **asdict(self),
            "verified": [v.to_dict() for v in self.verified],
            "handling": f"{HANDLING} {MARKS}",
        }

    def markdown(self) -> str:
        """The card as a page."""
        facts = (
            ("network", "Eye Know You Too (Lohr and Komogortsev 2022), 128 numbers a window"),
            ("trained on", self.data),
            ("recordings", f"{self.recordings:,}"),
            ("people trained on", f"{self.people_trained:,}"),
            ("people held out", f"{self.people_held_out:,}, none of them trained on"),
            ("input", f"velocity of {self.channels} at {self.rate_hz:g} Hz, {self.window_s:g} s"),
            ("training", f"{self.steps:,} steps, seed {self.seed}, last loss {self.last_loss:.3f}"),
            ("made with", f"Gazeveil {self.version}"),
        )
        lines = ["# Card of a network that recognises people by gaze", "", "| | |", "|---|---|"]
        lines += [f"| {name} | {value} |" for name, value in facts]
        lines += ["", "## Handling", "", HANDLING, "", MARKS, "", "## People it never saw", ""]
        if not self.verified:
            lines.append("Nobody was held out, so nothing is known of other people.")
        else:
            lines += _table(self.verified)
        return "\n".join(lines) + "\n"


def _table(verified: Sequence[Verification]) -> list[str]:
    lines = [
        "Equal error rate (EER), d-prime, and share of probes whose own template is the nearest.",
        "",
        "| by | | EER | d-prime | nearest | people | probes |",
        "|---|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {_WORDS[v.condition]} | {v.value:g} | {100 * v.eer:.1f} % | {v.d_prime:.2f} |"
        f" {100 * v.rank1:.0f} % | {v.people} | {v.probes} |"
        for v in verified
    ]
