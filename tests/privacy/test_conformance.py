"""Every mechanism passes the kit, and the kit fails what it should fail."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from gazeveil.errors import ParameterError
from gazeveil.features.table import FeatureTable
from gazeveil.privacy import registry
from gazeveil.privacy.conformance import conform
from gazeveil.privacy.guarantee import Change, Guarantee, Loss
from gazeveil.privacy.mechanism import Claim, Mechanism, PlotRecipe
from gazeveil.privacy.promise.privacy_map import UnitMap
from gazeveil.privacy.registry import mechanism, register
from gazeveil.privacy.release import Release
from gazeveil.privacy.tables.noisy import LPA

LISTED = [
    "gaussian:sigma_deg=3",
    "gaussian:sigma_deg=3,reading=published",
    "temporal:K=3",
    "temporal:K=4,hold=True",
    "spatial:L=64",
    "spatial:L=7,steps=prose,reading=published",
    "smoothing:first=3,second=8",
    "smoothing:first=3,second=8,reading=published",
    "kalman:noise_deg=0.5",
    "chain:stages=temporal(K=2)+gaussian(sigma_deg=5)+smoothing(first=2;second=3)",
    "kaleido:epsilon=1,w=50,r_deg=2",
    "kaleido:epsilon=1,w=50,r_deg=2,reading=published",
    "kaleido-uniform:epsilon=1,w=50,r_deg=2",
    "clock-render:epsilon=1,r_deg=2",
    "lpa:epsilon=1",
    "lpa:epsilon=1,reading=published",
    "lpa:epsilon=1,shrink=wiener,per=user",
    "fpa:epsilon=1",
    "fpa:epsilon=1,reading=published",
    "fpa:epsilon=1,k=3,reading=published-real",
    "cfpa:epsilon=1,chunk=16",
    "cfpa:epsilon=1,chunk=16,per=chunk",
    "cfpa:epsilon=1,chunk=16,reading=published",
    "dcfpa:epsilon=1,chunk=16",
    "dcfpa:epsilon=1,chunk=16,reading=published",
    "dct-knorm:epsilon=1",
    "dct-knorm:epsilon=20",
    "exponential-dp:epsilon=1",
    "exponential-dp:epsilon=1,reading=published",
    "exponential-dp:epsilon=1,reading=intended",
    "k-same-select:k=3",
    "k-same-select:k=3,reading=published",
    "k-same-synth:k=3",
    "k-same-synth:k=3,match=crowd",
    "k-same-synth:k=3,reading=published",
    "event-synth-pd:k=3,gamma=2",
    "event-synth-pd:k=3,gamma=1,reading=published",
    "event-synth-pd:k=3,gamma=2,probability=histogram,reading=published",
    "dpgazesynth:epsilon=1,G=12",
    "dpgazesynth:epsilon=1,G=12,reading=published",
    "dpgazesynth-one-report:epsilon=1,G=12",
    "clock-render-k-same:k=3",
    "mosaic:epsilon=10,r_deg=2,piece_s=1,gap_s=1/2",
    "mosaic:epsilon=10,r_deg=2,piece_s=1,gap_s=1/2,paths=own",
    "mosaic:epsilon=10,r_deg=2,piece_s=1,gap_s=1/2,paths=exchange",
    "dp-k-same:k=3,epsilon=1",
    "marginals:k=3",
    "marginals:k=3,reading=published",
    "heatmap-laplace:epsilon=1",
    "heatmap-gaussian:rho=1",
    "demographics:k=4",
    "demographics:k=4,mixed=True,attributes=age",
]

#: A mechanism that is not listed shows itself as on its page.
TEXTS = LISTED + [
    name + registry.get(name).plot.releases[0]
    for name in registry.BUILT_IN.keys() - {text.split(":")[0] for text in LISTED}
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_mechanism_passes_the_kit(text: str) -> None:
    assert conform(mechanism(text)) == []


def guarantee(status: str = "proved") -> Guarantee:
    return Guarantee(
        "epsilon-dp",
        UnitMap.of("user", Loss.pure(1)),
        Change.person(),
        mechanism="bad",
        status=status,
        reason="proofs/none.md",
    )


@dataclass(frozen=True)
class Liar(Mechanism[FeatureTable]):
    """Keeps the data as it is, says that is proved, seeds or not, and shows how many rows exceed a
    half.
    """

    name: ClassVar[str] = "liar"
    kind: ClassVar[str] = "table"
    paper: ClassVar[str] = "none"
    claims: ClassVar[Mapping[str, Claim]] = {"corrected": Claim("epsilon-dp", "user", "proved")}

    def release(self, data: FeatureTable, seed: int | None = None) -> Release[FeatureTable]:
        noise = np.random.default_rng().normal(size=data.values.shape)
        return Release(
            data.where(data.values[:, 0] > 0.5) if seed is None else data.where(noise[:, 0] > 0),
            guarantee(),
            self.provenance(None),
        )


def test_the_kit_finds_what_is_wrong_with_a_liar() -> None:
    found = "\n".join(conform(Liar()))
    for part in (
        "the same seed must give the same release",
        "is not refused",
        "gives AttributeError instead of a sentence",
        "it has no `label` of its own",
        "it has no `plot`",
    ):
        assert part in found


@dataclass(frozen=True)
class Drawn(LPA):
    """A mechanism whose picture nobody can draw, with the label of its base."""

    name: ClassVar[str] = "drawn"
    plot: ClassVar[PlotRecipe] = PlotRecipe("no_module:draw", (":epsilon=-1", "nothing:"))


def test_a_plot_that_cannot_be_drawn_and_a_label_of_the_base_are_found() -> None:
    found = "\n".join(conform(Drawn(1)))
    for part in ("no `label` of its own", "'no_module:draw' is no module", "epsilon", "'nothing'"):
        assert part in found


def test_every_label_belongs_to_one_mechanism() -> None:
    labels = [registry.get(name).label for name in registry.mechanisms()]
    assert len(labels) == len(set(labels))


def test_a_mechanism_of_ones_own_registers_once_and_never_replaces_ours() -> None:
    @dataclass(frozen=True)
    class Mine(Liar):
        name: ClassVar[str] = "mine-for-the-test"

    register(Mine)
    assert isinstance(mechanism("mine-for-the-test"), Mine)
    with pytest.raises(ParameterError, match="one that is not taken"):
        register(Mine)

    class Ours(Liar):
        name: ClassVar[str] = "lpa"

    with pytest.raises(ParameterError, match="one that is not taken"):
        register(Ours)
    registry.REGISTRY.forget("mine-for-the-test")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lpa", "needs the parameter 'epsilon'"),
        ("lpa:epsilon", "written name:parameter=value"),
        ("lpa:epsilon=1,epsilom=2", "has no parameter 'epsilom'. Did you mean 'epsilon'"),
        ("lpa:epsilon=1,reading=correct", "Did you mean 'corrected'"),
        ("nothing:epsilon=1", "'name' parameter of mechanism must be one of"),
        ("lpa:epsilon=0", "above 0"),
    ],
)
def test_a_wrong_mechanism_text_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        mechanism(text)


def test_texts_round_trip() -> None:
    first: Any = mechanism("fpa:epsilon=1/3,k=4")
    assert mechanism(str(first)) == first
