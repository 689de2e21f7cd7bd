"""Files of a review that are damaged, or made by somebody who means harm: one plain line, and nothing else is read."""

import json
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polypcount.errors import FileError, PolypcountError
from polypcount.review import Procedure, Review
from polypcount.review.app import new_app
from polypcount.review.values import state_values
from polypcount.video.write import write_video
from tests.review.results import FRAMES, frame_at, recording

Damage = Callable[[Path], object]


def described(**changed: Any) -> Damage:
    """Change values of review.json."""

    def damage(folder: Path) -> None:
        path = folder / "review.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))

    return damage


def first(name: str, **changed: Any) -> Damage:
    """Change values of the first tracklet or picture in review.json."""

    def damage(folder: Path) -> None:
        rows = json.loads((folder / "review.json").read_text())[name]
        described(**{name: [{**rows[0], **changed}, *rows[1:]]})(folder)

    return damage


def boxes(**changed: Any) -> Damage:
    """Change columns of boxes.parquet: None for none, a value for the first row, or a whole column."""

    def damage(folder: Path) -> None:
        path = folder / "boxes.parquet"
        table = pq.read_table(path)
        for name, value in changed.items():
            place = table.schema.get_field_index(name)
            if value is None:
                table = table.drop_columns([name])
            elif isinstance(value, pa.Array):
                table = table.set_column(place, name, value)
            else:
                column = [value, *table.column(name).to_pylist()[1:]]
                table = table.set_column(place, name, pa.array(column, table.column(name).type))
        pq.write_table(table, path)

    return damage


def vectors(change: Callable[[np.ndarray], np.ndarray]) -> Damage:
    def damage(folder: Path) -> None:
        array = np.load(folder / "vectors.npy")
        np.save(folder / "vectors.npy", change(array))

    return damage


def cut(name: str, size: int = 100) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def gone(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def image_bomb(folder: Path) -> None:
    """A PNG file that says that it has 100,000 x 100,000 pixels."""
    head = struct.pack(">IIBBBBB", 100_000, 100_000, 1, 0, 0, 0, 0)
    chunk = struct.pack(">I", len(head)) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    (folder / "view.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk)


ROWS = sum((40, 40, 40, 40, 40, 40, 8, 12))
DAMAGES: dict[str, tuple[Damage, str]] = {
    "no review.json": (gone("review.json"), "holds no data for a review; count the recording again"),
    "half of review.json": (cut("review.json", 900), "is not valid JSON"),
    "a list": (lambda folder: (folder / "review.json").write_text("[]"), "is not the data of a review"),
    "deep": (lambda folder: (folder / "review.json").write_text("[" * 200_000), "is not valid JSON"),
    "newer": (described(format_version=99), "this polypcount reads up to 1: upgrade polypcount"),
    "unknown key": (described(more=1), "more is unknown"),
    "no rate": (described(fps=0), "fps must be above 0"),
    "no time": (described(duration=-1.0), "duration must be above 0"),
    "no frames": (described(frame_count=10), "a tracklet ends after the recording"),
    "many frames": (described(frame_count=10**30), "frame_count must be at most 2147483647"),
    "infinite": (
        lambda folder: (folder / "review.json").write_text(
            (folder / "review.json").read_text().replace('"duration": ', '"duration": 1e999, "x": ', 1)
        ),
        "duration",
    ),
    "other tracklets": (first("tracklets", start_frame=-1), "tracklets[0].start_frame must be at least 0"),
    "huge tracklet": (first("tracklets", box_count=10**40), "tracklets[0].box_count must be at most 2147483647"),
    "empty tracklet": (first("tracklets", stop_frame=5), "stop_frame must be after start_frame 5"),
    "picture of nothing": (first("pictures", tracklet=77), "pictures name a tracklet that there is not"),
    "picture far away": (first("pictures", start=10**25), "pictures[0].start must be at most"),
    "together": (described(together=[[0, 77]]), "together names a tracklet that there is not"),
    "rectangle": (described(rectangles=[[0, 0, 0, 5]]), "a rectangle is x, y, width, height"),
    "no method": (described(point={}), "method is missing"),
    "no vectors": (gone("vectors.npy"), "vectors.npy is missing or damaged; count the recording again"),
    "short vectors": (cut("vectors.npy", 500), "vectors.npy is missing or damaged"),
    "other vectors": (vectors(lambda array: array[:, :5]), "vectors.npy is missing or damaged"),
    "double vectors": (vectors(lambda array: array.astype(np.float64)), "vectors.npy is missing or damaged"),
    "no numbers": (vectors(lambda array: array * np.float32(np.nan)), "vectors.npy is missing or damaged"),
    "objects": (vectors(lambda array: array.astype(object)), "vectors.npy is missing or damaged"),
    "no boxes": (gone("boxes.parquet"), "boxes.parquet is missing or damaged"),
    "short boxes": (cut("boxes.parquet"), "boxes.parquet is missing or damaged"),
    "no side": (boxes(x2=None), "boxes.parquet is missing or damaged"),
    "text": (boxes(x1=pa.array(["a"] * ROWS)), "boxes.parquet is missing or damaged"),
    "no box": (boxes(x1=float("nan")), "boxes.parquet is missing or damaged"),
    "nothing": (boxes(tracklet=pa.array([None] * ROWS, pa.int32())), "boxes.parquet is missing or damaged"),
    "odd tracklets": (boxes(tracklet=pa.array([1e300] * ROWS)), "boxes.parquet is missing or damaged"),
    "early frame": (boxes(frame=-1), "boxes.parquet is missing or damaged"),
    "late frame": (boxes(frame=pa.array([FRAMES] * ROWS, pa.int32())), "boxes.parquet is damaged: its frames"),
    "mixed frames": (boxes(frame=359), "boxes.parquet is damaged: its frames are not in order"),
    "crowd": (
        lambda folder: pq.write_table(
            pa.concat_tables([pq.read_table(folder / "boxes.parquet").slice(0, 1)] * 1001), folder / "boxes.parquet"
        ),
        "frame 5 has 1,001 boxes, at most 1,000 can be handled",
    ),
    "no view": (gone("view.png"), "view.png is missing or damaged"),
    "a text as view": (lambda folder: (folder / "view.png").write_text("view"), "view.png is missing or damaged"),
    "a view like a bomb": (image_bomb, "view.png is"),
    "times": (described(has_times=True), "times.npy is missing or damaged"),
    "other count": (
        lambda folder: (
            described(tracklets=[], pictures=[], together=[])(folder) or vectors(lambda one: one[:0])(folder)
        ),
        "are of different counts; count it again",
    ),
    "no count": (lambda folder: (folder.parent / "count.json").write_text("{}"), "is not a count"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files(result: Path, name: str) -> None:
    damage, sentence = DAMAGES[name]
    damage(result / "review")
    with pytest.raises(PolypcountError) as problem:
        Review(result)
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("damage", [cut("pictures.bin", 10), gone("pictures.bin"), first("pictures", size=2**31 - 1)])
def test_damaged_pictures(result: Path, damage: Damage) -> None:
    """Nothing else is wrong then, and the rest can be reviewed."""
    damage(result / "review")
    review = Review(result)
    assert state_values(review, review.moment, recording=True)["count"] == 4
    with pytest.raises(FileError, match=r"pictures\.bin (cannot be read|is damaged)"):
        review.data.jpeg(review.data.pictures[0])


def test_recordings_that_are_none(result: Path, tmp_path: Path) -> None:
    """Only what the private file names is read, and only as a recording."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text.mp4").write_text("a secret")
    write_video(tmp_path / "other.mp4", [frame_at(frame) for frame in range(9)], 25.0)
    write_video(tmp_path / "small.mp4", np.zeros((FRAMES, 64, 80, 3), np.uint8), 25.0)
    (tmp_path / "list.m3u8").write_text(f"#EXTM3U\n#EXTINF:9,\n{recording()}\n#EXT-X-ENDLIST\n")
    sources = {
        "/etc/passwd": "cannot be read as a video",
        str(tmp_path / "pipe"): "is neither file nor folder",
        str(tmp_path / "text.mp4"): "cannot be read as a video",
        str(tmp_path / "list.m3u8"): "cannot be read as a video",
        str(tmp_path / "other.mp4"): "has 9 frames, and the recording that was counted 360: it is another one",
        # What must not be shown would be elsewhere in it.
        str(tmp_path / "small.mp4"): "has frames of 80 x 64 pixels, and the recording that was counted 160 x 128",
        str(tmp_path / "missing.mp4"): "does not exist",
        f"concat:{recording()}": "does not exist",
        "http://127.0.0.1:9/case.mp4": "does not exist",
        "\0": "does not exist",
        "": "source must be of length at least 1",
    }
    for source, sentence in sources.items():
        (result / "review" / "recording.json").write_text(json.dumps({"source": source}))
        procedure = Procedure(result)
        assert procedure.frames() is None, source
        assert sentence in procedure.frames_problem
        assert "secret" not in procedure.frames_problem
        assert "\n" not in procedure.frames_problem
        assert procedure.has_frames() is False
    for text in ("{", "[]", '{"source": 5}', '{"source": "a", "more": 1}', '{"source": "' + "x" * 70_000 + '"}'):
        (result / "review" / "recording.json").write_text(text)
        assert Procedure(result).frames() is None
    (result / "review" / "recording.json").unlink()
    assert Procedure(result, recording=recording()).frames() is not None


def test_a_result_without_review_data_is_listed_with_the_reason(result: Path) -> None:
    from fastapi.testclient import TestClient

    damage, _ = DAMAGES["no boxes"]
    damage(result / "review")
    with TestClient(new_app([Procedure(result)], "folder")) as client:
        values = client.get("/api/procedures").json()
        (row,) = values["procedures"]
        assert (row["state"], row["count"], values["sums"]["polyps"]) == ("failed", None, 0)
        assert row["message"].startswith("result/review/boxes.parquet is missing or damaged")
        answer = client.get(f"/api/procedures/{row['id']}")
        assert (answer.status_code, answer.json()["detail"]) == (400, row["message"])
