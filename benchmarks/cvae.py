"""The C-VAE of saccades on real people who are held out: its loss beside the published one, beside
probabilistic PCA and beside the mean profile.

    python benchmarks/cvae.py [--data FOLDER | --profiles FILE] [--write-profiles FILE] [--device
    cpu] [--splits 3] [--sample 100000] [--people N] [--json FILE]

Profiles come from the recordings of a folder (GazeCom under GAZEVEIL_DATA by default), or from an
.npz file that `--write-profiles` made of them: with a file nothing but numpy, scipy, numba,
scikit-learn and torch is needed, and no recordings. Three quarters of the people are trained on,
the others are held out.

All losses are in units of the training set's own mean squared deviation from its mean profile, so
that the mean profile has a loss of about 1. David-John et al. 2023 does not say the units of its
0.33. For each model:

* *given conditions*: squared error of the profile the model gives with no latent number known, for
  a held-out person's amplitude and duration;
* *reconstruction*: squared error at the encoder's means;
* *divergence*: KL of the encoder's law from the standard normal;
* *loss*: squared error with latent numbers drawn plus divergence, for all models by the formula the
  network is trained with.

Training and sampling are timed; on a GPU the clock stops after the device has.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from gazeveil.models.cvae import CVAE, MOST_DEG_S, Layers, Schedule, trained
from gazeveil.models.training import split_by_person
from gazeveil.privacy.synthesis.events_pd.saccade_models import PPCA, conditions, fitted, moments
from lines import Lines

ROOT = Path(__file__).parent.parent

#: Share of the people that is trained on, and the validation loss that the paper prints.
TRAINING_SHARE, PUBLISHED_LOSS = 0.75, 0.33

Floats = NDArray[np.float64]
Saccades = dict[str, NDArray]


def from_recordings(folder: Path) -> Saccades:
    """Profiles, amplitudes, durations and people of all saccades of a folder."""
    import gazeveil
    from gazeveil.privacy.synthesis.motion import motion

    parts: dict[str, list[NDArray]] = {
        "profiles": [],
        "amplitude_deg": [],
        "duration_s": [],
        "person": [],
    }
    for recording in gazeveil.read(folder):
        m = motion(recording)
        if len(m.saccades):
            amplitude, duration = conditions(m.profiles, m.saccades[:, 3] / m.rate_hz)
            for name, values in zip(
                parts,
                (m.profiles, amplitude, duration, np.full(len(duration), recording.person)),
                strict=True,
            ):
                parts[name].append(values)
    if not parts["profiles"]:
        sys.exit(f"No saccade was found in {folder}. Give a folder of recordings with --data.")
    return {name: np.concatenate(values) for name, values in parts.items()}


def from_file(path: Path) -> Saccades:
    """The same from a file of `--write-profiles`."""
    with np.load(path, allow_pickle=False) as held:
        missing = {"profiles", "amplitude_deg", "duration_s", "person"} - set(held.files)
        if missing:
            sys.exit(f"{path} lacks {', '.join(sorted(missing))}. Make it with --write-profiles.")
        return {name: held[name] for name in held.files}


def held_arrays(saccades: Saccades) -> tuple[Floats, Floats, Floats, Floats]:
    """What a generator is asked with; who it was is left out, since held-out
    people have no number.
    """
    count = len(saccades["person"])
    return saccades["profiles"], saccades["amplitude_deg"], saccades["duration_s"], np.zeros(count)


def wait(device: str) -> None:
    """Until the device has done what it was asked."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def judged(
    generator: CVAE | PPCA, arrays: tuple[Floats, ...], training: NDArray[np.bool_]
) -> dict[str, float]:
    """Errors of held-out profiles in units of the training set's deviation."""
    profiles = np.clip(arrays[0], 0.0, MOST_DEG_S)
    middle = profiles[training].mean(axis=0)
    unit = float(((profiles[training] - middle) ** 2).mean())
    asked = tuple(a[~training] for a in arrays)
    truth = profiles[~training]
    mean, spread = generator.encode(*asked)
    made, alone = (
        generator.decode(mean, *asked[1:]),
        generator.decode(np.zeros_like(mean), *asked[1:]),
    )
    divergence = 0.5 * (mean**2 + spread**2 - 1 - 2 * np.log(spread)).sum(axis=1)
    drawn = generator.decode(
        mean + spread * np.random.default_rng(0).normal(size=mean.shape), *asked[1:]
    )
    squares = float(((drawn - truth) ** 2).mean()) / unit
    return {
        "mean_profile": float(((truth - middle) ** 2).mean()) / unit,
        "given_conditions": float(((alone - truth) ** 2).mean()) / unit,
        "reconstruction": float(((made - truth) ** 2).mean()) / unit,
        "divergence": float(divergence.mean()),
        "loss": squares + float(divergence.mean()),
        "used_latents": int((mean.var(axis=0) > 0.01).sum()),
    }


def closed_form(saccades: Saccades, training: NDArray[np.bool_], latent: int) -> PPCA:
    """Probabilistic PCA of the people trained on, each weighing the same."""
    rows = np.flatnonzero(training)
    order = rows[np.argsort(saccades["person"][rows], kind="stable")]
    _, counts = np.unique(saccades["person"][order], return_counts=True)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return fitted(
        moments(
            saccades["profiles"][order],
            saccades["amplitude_deg"][order],
            saccades["duration_s"][order],
            starts,
        ),
        latent,
    )


def fit(
    saccades: Saccades, training: NDArray[np.bool_], layers: Layers, schedule: Schedule, device: str
) -> tuple[CVAE, float]:
    """A trained network, and the seconds it took."""
    begin = perf_counter()
    arrays = (a[training] for a in held_arrays(saccades))
    net, _ = trained(*arrays, layers=layers, schedule=schedule, device=device)
    wait(device)
    return net, perf_counter() - begin


def sampling_s(net: CVAE, count: int, device: str) -> float:
    """Seconds of drawing and decoding so many saccades."""
    rng = np.random.default_rng(1)
    z, amplitude, duration = (
        rng.normal(size=(count, net.latent)),
        rng.uniform(1, 20, count),
        rng.uniform(0.02, 0.1, count),
    )
    net.decode(z[:1000], amplitude[:1000], duration[:1000], np.zeros(1000))
    wait(device)
    begin = perf_counter()
    net.decode(z, amplitude, duration, np.zeros(count))
    wait(device)
    return perf_counter() - begin


def models(lines: Lines, saccades: Saccades, splits: int, device: str, count: int) -> None:
    """Losses of the paper's network and its rivals on people who are held
    out; means over splits.
    """
    arrays = held_arrays(saccades)
    about = {
        "saccades": len(arrays[0]),
        "people": len(set(saccades["person"].tolist())),
        "splits": splits,
    }
    rows: dict[str, list[dict[str, float]]] = {}
    seconds = []
    for split in range(splits):
        training = split_by_person(saccades["person"], TRAINING_SHARE, split)
        for name, weight in (("cvae", 1.0), ("cvae, squared error x 15", 15.0)):
            layers = Layers(identity=False, weight=weight)
            net, took = fit(saccades, training, layers, Schedule(seed=split), device)
            if weight == 1.0:
                seconds.append(took)
            rows.setdefault(name, []).append(judged(net, arrays, training))
        for latent in (1, 4):
            rows.setdefault(f"ppca, {latent} latent", []).append(
                judged(closed_form(saccades, training, latent), arrays, training)
            )
    value = float(np.mean([r["loss"] for r in rows["cvae"]]))
    mean_profile = float(np.mean([r["mean_profile"] for r in rows["cvae"]]))
    lines.keep(
        {
            "figure": "cvae: validation loss (MSE + KL)",
            "value": round(value, 3),
            "unit": "of the variance",
            "met": value < mean_profile,
            "published": PUBLISHED_LOSS,
            "mean_profile": round(mean_profile, 3),
            **about,
        }
    )
    for name, found in rows.items():
        means = {k: round(float(np.mean([r[k] for r in found])), 3) for k in found[0]}
        lines.keep(
            {
                "figure": f"model: {name}",
                "value": means["given_conditions"],
                "unit": "of the variance",
                "met": True,
                **means,
            }
        )
    lines.keep(
        {
            "figure": "cvae: training",
            "value": round(float(np.median(seconds)), 3),
            "unit": "s",
            "met": True,
            "first_s": round(seconds[0], 3),
            "device": device,
            "processor": machine(device),
        }
    )
    took = min(sampling_s(net, count, device) for _ in range(3))
    lines.keep(
        {
            "figure": "cvae: sampling",
            "value": round(took, 3),
            "unit": "s",
            "met": True,
            "saccades": count,
            "per_s": round(count / took),
            "device": device,
        }
    )


def machine(device: str) -> str:
    """What it ran on."""
    if device.startswith("cuda"):
        import torch

        return str(torch.cuda.get_device_name(device))
    return f"{platform.machine()}, {os.cpu_count()} cores"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("GAZEVEIL_DATA", ROOT.parent / "shared" / "data")) / "gazecom",
    )
    parser.add_argument("--profiles", type=Path)
    parser.add_argument("--write-profiles", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument(
        "--sample", type=int, default=100_000, help="saccades to draw for the time of sampling"
    )
    parser.add_argument("--people", type=int, help="only this many people, for a shorter run")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    source = arguments.profiles if arguments.profiles is not None else arguments.data
    if not source.exists():
        sys.exit(
            f"{source} is not there. Name a folder of recordings with --data, or a file of profiles"
            " with --profiles."
        )
    saccades = from_file(source) if arguments.profiles is not None else from_recordings(source)
    if arguments.people is not None:
        some = np.isin(
            saccades["person"], sorted(set(saccades["person"].tolist()))[: arguments.people]
        )
        saccades = {name: values[some] for name, values in saccades.items()}
    if arguments.write_profiles is not None:
        np.savez_compressed(arguments.write_profiles, **saccades)
        print(f"{len(saccades['person'])} saccades written to {arguments.write_profiles}")
        return
    lines = Lines(arguments.json)
    models(lines, saccades, arguments.splits, arguments.device, arguments.sample)
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
