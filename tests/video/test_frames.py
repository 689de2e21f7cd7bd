"""Folders of images, and choosing the source for what is there."""

import io
import os
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import simplejpeg  # type: ignore[import-untyped]
from PIL import Image

from polypcount.corpus import FrameFiles, Video
from polypcount.errors import DataError, FileError
from polypcount.importers.reading import image_size
from polypcount.video import open_source, open_video
from polypcount.video.images import read_image
from tests.video.movies import number_of, numbered, write_movie


def write_folder(folder: Path, frames: int, suffix: str = ".jpg") -> Path:
    folder.mkdir()
    for number in range(frames):
        Image.fromarray(numbered(number)).save(folder / f"f_{number}{suffix}", quality=95)
    return folder


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif", ".bmp"])
def test_a_folder_is_read_in_natural_order(tmp_path: Path, suffix: str) -> None:
    folder = write_folder(tmp_path / "a", 12, suffix)
    (folder / ".hidden.png").write_bytes(b"")
    (folder / "notes.txt").write_text("no image")
    source = open_source(folder)
    assert (source.frame_count, source.width, source.height, source.fps) == (12, 96, 64, None)
    assert [(index, number_of(image)) for index, image in source.frames(range(12))] == [(k, k) for k in range(12)]
    with pytest.raises(DataError, match="no frame 12; its frames are 0 to 11"):
        source.frames([12])


def test_frame_files_say_which_image_is_which_frame(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", 6)
    files = FrameFiles([1, 1, 1], [0, 2, 5], ["f_4.jpg", "f_1.jpg", "f_0.jpg"])
    video = Video("v", 7, fps=25, source=str(folder))
    source = open_video(video, files, 1)
    assert source.fps == 25
    assert [(index, number_of(image)) for index, image in source.frames([0, 2, 5])] == [(0, 4), (2, 1), (5, 0)]
    with pytest.raises(FileError, match="frame 3 cannot be read; 1 of the 2 wanted"):
        list(source.frames([2, 3]))
    unlisted = open_video(replace(video, frame_count=6), files, 0)
    assert [number_of(image) for _, image in unlisted.frames([4])] == [4]


def test_a_folder_with_fewer_images_than_the_video_has_frames(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="has 6 images, and the video v has 9 frames: some are missing"):
        open_video(Video("v", 9, source=str(write_folder(tmp_path / "a", 6))))


def test_videos_without_pixels_say_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="video v has no pixels"):
        open_video(Video("v", 9))
    with pytest.raises(FileError, match=r"video v: its source .* does not exist"):
        open_video(Video("v", 9, source=str(tmp_path / "gone")))
    with pytest.raises(FileError, match="does not exist"):
        open_source(tmp_path / "gone")
    with pytest.raises(FileError, match="holds no images"):
        open_source(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="neither file nor folder"):
        open_source(tmp_path / "pipe")


def test_a_video_file_of_a_corpus(tmp_path: Path) -> None:
    video = Video("v", 30, source=str(write_movie(tmp_path / "a.mp4", 30)))
    assert [number_of(image) for _, image in open_video(video, FrameFiles.empty(), 0).frames([11])] == [11]


def test_a_single_image_is_a_recording_of_one_frame(tmp_path: Path) -> None:
    path = tmp_path / "still.png"
    Image.fromarray(numbered(5)).save(path)
    assert [number_of(image) for _, image in open_source(path).frames([0])] == [5]


@pytest.mark.parametrize("mode", ["L", "P", "1", "RGBA", "LA", "I;16"])
def test_every_kind_of_image_becomes_rgb(tmp_path: Path, mode: str) -> None:
    grey = np.tile(np.arange(256, dtype=np.uint8), (8, 1))
    path = tmp_path / "a.png"
    if mode == "I;16":
        Image.fromarray(grey.astype(np.uint16) * 257).save(path)
    else:
        Image.fromarray(grey).convert("RGB" if mode == "RGBA" else "L").convert(mode).save(path)
    image = read_image(path)
    assert image.shape == (8, 256, 3)
    assert image.dtype == np.uint8
    if mode not in ("1", "P"):
        np.testing.assert_array_equal(image, np.repeat(grey[:, :, None], 3, axis=2))


def test_orientation_in_exif_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(numbered(9)).save(path, exif=exif, quality=95)
    assert number_of(read_image(path)) == 9
    assert open_source(path).width == 96


def test_cmyk_jpeg_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    Image.new("CMYK", (16, 8), (0, 255, 255, 0)).save(path, quality=95)
    assert read_image(path).shape == (8, 16, 3)


@pytest.mark.parametrize(("suffix", "kept"), [(".jpg", 0.3), (".png", 0.9), (".tif", 0.0), (".bmp", 0.3)])
def test_a_damaged_image_is_named(tmp_path: Path, suffix: str, kept: float) -> None:
    folder = write_folder(tmp_path / "a", 3, suffix)
    path = folder / f"f_1{suffix}"
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])
    frames = open_source(folder).frames(range(3))
    next(frames)
    with pytest.raises(FileError, match=rf"f_1\{suffix} .*copy it again"):
        next(frames)


def test_an_image_that_claims_to_be_huge_takes_no_memory(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    for side in (9_000, 12_000, 60_000):
        header = side.to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
        path = tmp_path / "a.png"
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(9))))
        with pytest.raises(FileError, match="pixels"):
            read_image(path)
    jpeg = bytearray(simplejpeg.encode_jpeg(np.zeros((8, 8, 3), np.uint8)))
    size = jpeg.index(b"\xff\xc0") + 5
    jpeg[size : size + 4] = b"\x4e\x20\x4e\x20"
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg)
    with pytest.raises(FileError, match="pixels"):
        read_image(path)


def test_a_picture_of_fractions_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.float32)).save(stream, format="TIFF")
    path = tmp_path / "a.tif"
    path.write_bytes(stream.getvalue())
    with pytest.raises(FileError, match="fractions"):
        read_image(path)


def test_a_link_to_nothing_does_not_shift_the_frames_after_it(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "a", 4)
    (folder / "f_2.jpg").unlink()
    (folder / "f_2.jpg").symlink_to(tmp_path / "gone.jpg")
    with pytest.raises(FileError, match=r"f_2\.jpg is a link to nothing"):
        open_source(folder)


def test_a_device_or_pipe_is_not_read_as_an_image(tmp_path: Path) -> None:
    (tmp_path / "a.png").symlink_to(os.devnull)  # a pipe would wait for ever
    for read in (read_image, image_size):
        with pytest.raises(FileError, match=r"a\.png is not a file"):
            read(tmp_path / "a.png")
