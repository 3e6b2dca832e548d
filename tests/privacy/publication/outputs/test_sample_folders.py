"""Every sample folder comes out as CSV and as BIDS: it reads back here, in pymovements and in
pybids, and the real validator finds no error.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.publication.protecting import protected, write_publication
from tests.support.bids_validator import errors
from tests.support.recordings import real

FOLDERS = (
    "eyenavgs_nthu",
    "gazecom",
    "hmr",
    "irf_lookatpoint",
    "lund2013",
    "webqamgaze",
    "vendor_samples/HTC_Vive_Pro",
    "vendor_samples/Pico_Neo_3_Pro",
    "vendor_samples/Pupil_Invisible",
    "vendor_samples/Tobii_Pro_Glasses_3",
    "vendor_samples/cateyes",
    "vendor_samples/eyelink_asc",
    "vendor_samples/salient360_hmd",
    "vendor_samples/tobii_tx300_i2mc",
    "vendor_samples/tsv_multi",
)
#: Fixations without samples: a mechanism for samples has nothing to protect there.
FIXATIONS = ("osie", "neuroliaa_interiors")

pytestmark = pytest.mark.filterwarnings("ignore::gazeveil.io.reading.ReadingWarning")


@cache
def some(folder: str, most: int = 3) -> Cohort:
    cohort = gazeveil.read(real(*folder.split("/")))
    return cohort.select(people=list(cohort.people)[:2])[:most]


def published(cohort: Cohort, folder: Path, to: str) -> Cohort:
    mechanism = gazeveil.mechanism("gaussian:sigma_deg=1")
    write_publication(protected(cohort, mechanism, PublicationChoices(to=to), seed=1), folder)
    return gazeveil.read(folder)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_sample_folder_as_csv_reads_here_and_in_pymovements(tmp_path: Path, folder: str) -> None:
    pm = pytest.importorskip("pymovements")
    cohort = some(folder)
    back = published(cohort, tmp_path / "csv", "csv")
    assert len(back) == len(cohort)
    for item, recording in zip(back.items, back, strict=True):
        assert recording.t_ns[0] == 0
        gaze = pm.gaze.from_csv(
            item.source,  # type: ignore[union-attr]
            time_column="t_s",
            time_unit="s",
            position_columns=["x_deg", "y_deg"],
            experiment=pm.Experiment(sampling_rate=recording.rate_hz),
        )
        assert len(gaze.samples) == len(recording)
        x_deg = gaze.samples["position"].list.get(0).to_numpy()
        np.testing.assert_array_equal(x_deg[recording.valid], recording.x_deg[recording.valid])


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_sample_folder_as_bids_has_no_error_and_reads_back(tmp_path: Path, folder: str) -> None:
    cohort = some(folder)
    back = published(cohort, tmp_path / "bids", "bids")
    assert len(back) == len(cohort)
    assert errors(tmp_path / "bids") == []
    first = published(cohort, tmp_path / "parquet", "parquet")
    gaze = {r.key: r for r in first}
    for recording in back:
        np.testing.assert_array_equal(recording.t_ns, gaze[recording.key].t_ns)
        np.testing.assert_array_equal(recording.x_deg, gaze[recording.key].x_deg)


@pytest.mark.parametrize("folder", ["gazecom", "eyenavgs_nthu", "vendor_samples/eyelink_asc"])
def test_pybids_finds_the_recordings_of_a_sample_folder(tmp_path: Path, folder: str) -> None:
    bids = pytest.importorskip("bids")
    back = published(some(folder), tmp_path / "bids", "bids")
    layout = bids.BIDSLayout(tmp_path / "bids", validate=True, is_derivative=True)
    assert set(layout.get_subjects()) == set(back.people)
    assert len(layout.get(suffix="physio", extension=".tsv.gz")) == len(back)


@pytest.mark.parametrize("folder", FIXATIONS)
@pytest.mark.parametrize("to", ["csv", "bids"])
def test_fixations_without_samples_are_refused_in_one_sentence(
    tmp_path: Path, folder: str, to: str
) -> None:
    with pytest.raises(DataError) as caught:
        published(some(folder), tmp_path / to, to)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / to).exists()


@pytest.mark.heavy
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_whole_sample_folder_as_bids_has_no_error(tmp_path: Path, folder: str) -> None:
    cohort = gazeveil.read(real(*folder.split("/")))
    back = published(cohort, tmp_path / "bids", "bids")
    # BIDS has no place for recordings without samples.
    assert len(back) == sum(len(recording) > 0 for recording in cohort)
    assert errors(tmp_path / "bids") == []
