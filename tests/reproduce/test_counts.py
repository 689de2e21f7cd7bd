"""How much data there is, and how it differs from the paper's."""

import dataclasses
from pathlib import Path

import pytest

from polypcount.corpus import Corpus, Polyp, Video
from polypcount.errors import FileError
from polypcount.reproduce import Benchmark, data_counts, real_benchmark
from polypcount.reproduce.counts import DatasetCounts, difference_note
from tests.conftest import DATA
from tests.importers.miniatures import LESION_INFO, VIDEO_INFO, write
from tests.reproduce.miniature import SEEN, STUDIED, TRAINING

WHOLE = [
    DatasetCounts("real-colon", "learn", 27, 85, 27, 85, 0, 0, 0),
    DatasetCounts("ldpolypvideo", "learn", 160, 160, 160, 160, 0, 0, 0),
    DatasetCounts("sun", "learn", 100, 100, 100, 100, 0, 0, 0),
    DatasetCounts("polypsset", "learn", 39, 39, 39, 39, 0, 0, 0),
    DatasetCounts("real-colon", "study", 19, 47, 19, 47, 0, 0, 0),
]


def test_all_four_datasets_in_miniature(benchmark_of_datasets: Benchmark) -> None:
    """A tracklet has 30 boxes: every fourth makes one fragment of 8."""
    polyps, studied = sum(TRAINING.values()), sum(STUDIED.values())
    assert data_counts(benchmark_of_datasets) == [
        DatasetCounts("real-colon", "learn", 2, polyps, 27, 85, SEEN * 2 * polyps, 2 * polyps, 2 * polyps),
        DatasetCounts("ldpolypvideo", "learn", 10, 10, 160, 160, 10 * SEEN, 10, 10),
        DatasetCounts("sun", "learn", 10, 10, 100, 100, 10 * SEEN, 10, 10),
        DatasetCounts("polypsset", "learn", 5, 5, 39, 39, 5 * SEEN, 5, 5),
        DatasetCounts("real-colon", "study", 4, studied, 19, 47, SEEN * 3 * studied, 3 * studied, 3 * studied),
    ]
    assert [one.fragments for one in data_counts(benchmark_of_datasets, stride=2)][:2] == [2 * polyps, 10], "15 of 30"
    assert [one.fragments for one in data_counts(benchmark_of_datasets, length=3, stride=5)][:2] == [4 * polyps, 20]
    assert {one.tracklets for one in data_counts(benchmark_of_datasets, min_frames=SEEN + 1)} == {0}


def test_the_tables_of_real_colon_alone_tell_videos_and_polyps(tmp_path: Path) -> None:
    """Polyps are counted in the table of lesions: `num_lesions` of the other one is wrong for a video."""
    root = tmp_path / "real-colon"
    rows = "".join(f'"{video}",60,"male","Fuji",25,900,1,8\n' for video in ("001-001", "001-002", "003-012"))
    names = ("001-001_1", "003-012_1", "003-012_2", "003-012_3")
    write(root / "video_info.csv", VIDEO_INFO + rows)
    write(root / "lesion_info.csv", LESION_INFO + "".join(f'"{name}","{name[:7]}",4,"a","b","AD"\n' for name in names))
    benchmark = real_benchmark({"real-colon": root}, tmp_path / "out", tables_suffice=True)
    assert [(one.part, one.videos, one.polyps, one.boxes) for one in data_counts(benchmark)] == [
        ("learn", 1, 1, 0),
        ("study", 1, 3, 0),
    ]
    assert not (tmp_path / "out").exists(), "nothing that a run could take for data is kept"
    with pytest.raises(FileError, match="has no folder or archive"):
        real_benchmark({"real-colon": root}, tmp_path / "out")
    (root / "lesion_info.csv").unlink()
    with pytest.raises(FileError, match="has neither annotations, such as 001-001_annotations, nor lesions"):
        real_benchmark({"real-colon": root}, tmp_path / "out", tables_suffice=True)


def test_the_published_tables_of_real_colon(tmp_path: Path) -> None:
    root = DATA / "real-colon-meta"
    if not root.is_dir():
        pytest.skip(f"the tables of REAL-Colon are not at {root}")
    benchmark = real_benchmark({"real-colon": root}, tmp_path, tables_suffice=True)
    assert [(one.videos, one.polyps) for one in data_counts(benchmark)] == [(27, 85), (19, 47)]
    assert benchmark.note == (
        "learnt from REAL-Colon alone (27 videos, 85 polyps); the paper adds LDPolypVideo, SUN and PolypsSet "
        "(384 polyps)"
    )


def test_videos_without_a_known_polyp_and_other_datasets() -> None:
    videos = (Video("a", 9, dataset="mine"), Video("b", 9, dataset="mine"), Video("c", 9))
    corpus = Corpus(videos, polyps=(Polyp("1", "a"), Polyp("2", "a"), Polyp("3", "c")))
    counts = data_counts(Benchmark("x", Corpus(()), corpus))
    assert [(one.name, one.videos, one.polyps, one.published_polyps) for one in counts] == [
        ("", 1, 1, None),
        ("mine", 1, 2, None),
    ]


def test_the_note_says_what_differs_from_the_paper() -> None:
    assert difference_note(WHOLE) == ""
    assert difference_note([*WHOLE[:1], WHOLE[2], WHOLE[4]]) == (
        "learnt from REAL-Colon and SUN (127 videos, 185 polyps); the paper adds LDPolypVideo and PolypsSet "
        "(384 polyps)"
    )
    fewer = dataclasses.replace(WHOLE[1], videos=159, polyps=159)
    assert difference_note([WHOLE[0], fewer, *WHOLE[2:]]) == (
        "learnt from REAL-Colon, LDPolypVideo, SUN and PolypsSet (325 videos, 383 polyps); the paper learns from 384 "
        "polyps"
    )
    one = dataclasses.replace(WHOLE[4], videos=1, polyps=1)
    assert difference_note([*WHOLE[:4], one]) == (
        "studied on 1 video, 1 polyp; the paper has 19 videos, 47 polyps of REAL-Colon"
    )
    assert difference_note([one]).startswith("nothing was learnt from; studied on 1 video")
