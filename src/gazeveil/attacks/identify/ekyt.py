"""`ekyt`: the dense network of Eye Know You Too (Lohr and Komogortsev, IEEE T-BIOM 2022).

Trained on the gallery alone (closed set), or taken from `gazeveil train` (trained on other people).
Every window of a recording gets an embedding; a person is the mean over the windows of theirs, and
a score is the cosine of two such means. The rate is public: the lowest of all recordings, at most
`rate_hz`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gazeveil import checks
from gazeveil.attacks.base import Attack, Scores
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import Recording
from gazeveil.models.ekyt.training import BatchPlan, train_ekyt
from gazeveil.models.ekyt.weights import EkytModel, load_ekyt
from gazeveil.models.ekyt.windows import CHANNELS, VelocityInput, WindowSet, common_rate_hz
from gazeveil.models.training import StepPlan, best_device


@dataclass(frozen=True)
class Ekyt(Attack):
    """A dense network on velocities of gaze (Eye Know You Too), trained on the gallery.

    Parameters
    ----------
    channels : {"gaze", "head", "gaze+head"}
        Whose velocities: gaze, head, or both.
    rate_hz : float
        Highest rate of the velocities; recordings of lower rates bring it down to the lowest.
    window_s : float
        Seconds of one window.
    steps : int
        Batches to train for.
    people, windows : int
        People in a batch, and windows of each.
    weights : str
        File of a network that `gazeveil train` wrote, used as it is; `none` trains on the gallery.
        People whose recordings the file marks as trained on are left out of a study.
    device : str
        As torch names it, or `auto` for a GPU where there is one.

    Examples
    --------
    >>> str(Ekyt(channels="gaze+head", steps=100))
    'ekyt:channels=gaze+head,steps=100'
    """

    name: ClassVar[str] = "ekyt"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    channels: str = "gaze"
    rate_hz: float = 125.0
    window_s: float = 5.0
    steps: int = 300
    people: int = 16
    windows: int = 8
    weights: str = "none"
    device: str = "auto"

    def check(self) -> None:
        """Signals, sizes, and a name of a file."""
        checks.one_of(self.name, "channels", self.channels, CHANNELS)
        self.store("rate_hz", checks.positive(self.name, "rate_hz", self.rate_hz))
        self.store("window_s", checks.positive(self.name, "window_s", self.window_s))
        checks.count(self.name, "steps", self.steps)
        checks.count(self.name, "people", self.people, least=2)
        checks.count(self.name, "windows", self.windows, least=2)
        for name in ("weights", "device"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                checks.refuse(self.name, name, "text", getattr(self, name))

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Train on the gallery (or load), then compare mean embeddings.

        Raises
        ------
        DataError
            Without samples, without windows to learn from, or with people whom the weights were
            trained on.
        MissingExtraError
            Without torch.
        """
        device = best_device(self.device)
        if self.weights != "none":
            model = load_ekyt(self.weights, device)
            self._refuse_trained(model, gallery, probe)
            known = model.windows(_samples(gallery))
        else:
            both = (r for side in (gallery, probe) for r in _samples(side))
            rate_hz = common_rate_hz(both, self.rate_hz)
            setting = VelocityInput(rate_hz, self.window_s, self.channels)
            learnt = WindowSet.of(_samples(gallery), setting)
            model, _ = train_ekyt(
                learnt,
                StepPlan(self.steps, seed=seed),
                BatchPlan(self.people, self.windows),
                device,
            )
            known = learnt.every(self.window_s / 2)
        asked = model.windows(_samples(probe))
        return compare(model, known, asked, gallery.persons, probe.persons)

    def trained_on(self, raw: RecordingSet) -> frozenset[str]:
        """Who has a recording that the weights were trained on, as far as the file's marks tell."""
        if self.weights == "none" or raw.cohort is None:
            return frozenset()
        return load_ekyt(self.weights).marks.people(raw.cohort)

    def _refuse_trained(self, model: EkytModel, *sides: RecordingSet) -> None:
        """Weights may recognise people they were trained on better than others."""
        known = {p for s in sides if s.cohort is not None for p in model.marks.people(s.cohort)}
        if known:
            everybody = {p for s in sides for p in s.persons}
            raise DataError(
                f"The weights in {self.weights} were trained on {len(known)} of these"
                f" {len(everybody)} people and may recognise them better than others. Leave them"
                " out, or train weights on others."
            )


def compare(
    model: EkytModel,
    known: WindowSet,
    asked: WindowSet,
    people: tuple[str, ...],
    probes: tuple[str, ...],
) -> Scores:
    """Cosines between the mean embeddings of people.

    A gallery person without a window ranks last for every probe. A probe without a window has a row
    of zeros.

    Raises
    ------
    DataError
        If no person of the gallery has a window.
    """
    templates, known_there = model.means(known, known.persons, people)
    if not known_there.any():
        raise DataError(
            f"No recording of the gallery has a window of {model.setting.window_s:g} s of which"
            " more than half is known. Give longer recordings with fewer lost samples."
        )
    asked_means, asked_there = model.means(asked, asked.persons, probes)
    values = asked_means @ templates.T
    values[:, ~known_there] = -1.0
    values[~asked_there] = 0.0
    return Scores(people, probes, values)


def _samples(side: RecordingSet) -> Iterator[Recording]:
    if side.cohort is None:
        raise DataError(
            "The ekyt attacker looks at samples, and this release holds tables only. Use an"
            " attacker of tables, such as linkage or rbfn."
        )
    return iter(side.cohort)
