"""DICOM: video streams inside it, and images one after the other."""

import builtins
import random
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simplejpeg  # type: ignore[import-untyped]

from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.video import open_source
from tests.video.movies import HEIGHT, WIDTH, number_of, numbered, write_movie

pydicom = pytest.importorskip("pydicom")
from pydicom.encaps import encapsulate  # noqa: E402
from pydicom.uid import UID, ExplicitVRLittleEndian, JPEGBaseline8Bit, generate_uid  # noqa: E402

H264 = UID("1.2.840.10008.1.2.4.102")


def test_a_damaged_header_prints_nothing(tmp_path: Path) -> None:
    pixels = np.zeros((2, HEIGHT, WIDTH, 3), np.uint8).tobytes()
    path = write_dicom(tmp_path / "a.dcm", pixels, ExplicitVRLittleEndian, 2, CineRate="30")
    path.write_bytes(path.read_bytes().replace(b"IS\x02\x0030", b"IS\x02\x00Jo"))  # a piece of somebody's name
    script = "import sys; from polypcount.video import open_source; print(open_source(sys.argv[1]).fps)"
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("None\n", "")


def write_dicom(path: Path, pixels: bytes, syntax: UID, frames: int, **elements: Any) -> Path:
    data = pydicom.Dataset()
    data.file_meta = pydicom.dataset.FileMetaDataset()
    data.file_meta.TransferSyntaxUID = syntax
    data.file_meta.MediaStorageSOPClassUID = UID("1.2.840.10008.5.1.4.1.1.77.1.1.1")
    data.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    values = {
        "Rows": HEIGHT,
        "Columns": WIDTH,
        "SamplesPerPixel": 3,
        "PhotometricInterpretation": "RGB",
        "PlanarConfiguration": 0,
        "BitsAllocated": 8,
        "BitsStored": 8,
        "HighBit": 7,
        "PixelRepresentation": 0,
        "NumberOfFrames": frames,
        **elements,
    }
    for name, value in values.items():
        setattr(data, name, value)
    data.add_new(0x7FE00010, "OB" if values["BitsAllocated"] == 8 else "OW", pixels)
    data["PixelData"].is_undefined_length = syntax.is_compressed
    data.save_as(path, enforce_file_format=True)
    return path


def numbers(path: Path, wanted: object) -> list[tuple[int, int]]:
    return [(index, number_of(image)) for index, image in open_source(path).frames(wanted)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("suffix", "fragments"), [(".mp4", 3), (".ts", 1), (".h264", 3)])
def test_a_video_stream_is_read_by_exact_index(tmp_path: Path, suffix: str, fragments: int) -> None:
    stream = write_movie(tmp_path / f"a{suffix}", 50).read_bytes()
    size = len(stream) // fragments // 2 * 2 + 2  # only the last fragment may need a byte to be even
    pixels = encapsulate([stream[at : at + size] for at in range(0, len(stream), size)], has_bot=False)
    path = write_dicom(tmp_path / "a.dcm", pixels, H264, 50, CineRate=30, PhotometricInterpretation="YBR_PARTIAL_420")
    source = open_source(path)
    assert (source.frame_count, source.width, source.height, source.fps) == (50, WIDTH, HEIGHT, 30.0)
    assert numbers(path, range(50)) == [(k, k) for k in range(50)]
    assert numbers(path, [33, 48]) == [(33, 33), (48, 48)]


def test_uncompressed_frames(tmp_path: Path) -> None:
    pixels = np.stack([numbered(number) for number in range(9)])
    path = write_dicom(tmp_path / "no_suffix", pixels.tobytes(), ExplicitVRLittleEndian, 9, FrameTime="40")
    source = open_source(path)
    assert (source.frame_count, source.fps) == (9, 25.0)
    for index, image in source.frames([1, 4, 8]):
        np.testing.assert_array_equal(image, pixels[index])
    with pytest.raises(DataError, match="no frame 9"):
        source.frames([9])


def test_jpeg_frames(tmp_path: Path) -> None:
    pictures = [simplejpeg.encode_jpeg(numbered(number), quality=95) for number in range(9)]
    path = write_dicom(
        tmp_path / "a.dcm", encapsulate(pictures), JPEGBaseline8Bit, 9, PhotometricInterpretation="YBR_FULL"
    )
    assert numbers(path, range(9)) == [(k, k) for k in range(9)]
    for index, image in open_source(path).frames([4]):
        assert np.abs(image.astype(int) - simplejpeg.decode_jpeg(pictures[index])).max() <= 4


@pytest.mark.parametrize("kind", ["MONOCHROME1", "MONOCHROME2"])
def test_grey_frames_of_12_bits(tmp_path: Path, kind: str) -> None:
    pixels = np.arange(HEIGHT * WIDTH, dtype=np.uint16).reshape(HEIGHT, WIDTH) % 4096
    elements = {"SamplesPerPixel": 1, "BitsAllocated": 16, "BitsStored": 12, "HighBit": 11}
    path = write_dicom(
        tmp_path / "a.dcm", pixels.tobytes(), ExplicitVRLittleEndian, 1, PhotometricInterpretation=kind, **elements
    )
    ((_, image),) = open_source(path).frames([0])
    expected = pixels >> 4 if kind == "MONOCHROME2" else 255 - (pixels >> 4)
    np.testing.assert_array_equal(image, np.repeat(expected[:, :, None], 3, axis=2))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "a.dcm"
    broken.write_bytes(b"nothing of the kind")
    with pytest.raises(FileError, match=r"a\.dcm cannot be read as a DICOM file"):
        open_source(broken)
    pixels = np.stack([numbered(number) for number in range(9)])
    path = write_dicom(tmp_path / "b.dcm", pixels.tobytes(), ExplicitVRLittleEndian, 9)
    path.write_bytes(path.read_bytes()[:-40_000])
    with pytest.raises(FileError, match=r"b\.dcm: frame . cannot be read"):
        list(open_source(path).frames(range(9)))
    pictures = [simplejpeg.encode_jpeg(numbered(number)) for number in range(9)]
    pictures[5] = pictures[5][:200]
    path = write_dicom(
        tmp_path / "c.dcm", encapsulate(pictures), JPEGBaseline8Bit, 9, PhotometricInterpretation="YBR_FULL"
    )
    with pytest.raises(FileError, match=r"c\.dcm: frame 5 cannot be read; 5 of the 9"):
        list(open_source(path).frames(range(9)))
    path = write_dicom(tmp_path / "d.dcm", encapsulate([b"no video"], has_bot=False), H264, 9)
    with pytest.raises(FileError, match=r"d\.dcm cannot be read as a video"):
        open_source(path)


@pytest.mark.parametrize("element", [b"\x28\x00\x10\x00US", b"\x18\x00\x40\x00IS"], ids=["rows", "rate"])
def test_a_kind_of_value_that_does_not_exist_is_an_error_of_the_file(tmp_path: Path, element: bytes) -> None:
    pixels = np.zeros((2, HEIGHT, WIDTH, 3), np.uint8).tobytes()
    path = write_dicom(tmp_path / "a.dcm", pixels, ExplicitVRLittleEndian, 2, CineRate="30")
    content = path.read_bytes()
    assert content.count(element) == 1
    path.write_bytes(content.replace(element, element[:4] + b"ZZ"))
    with pytest.raises(FileError, match=r"a\.dcm .* damaged") if element.endswith(b"US") else nullcontext():
        assert open_source(path).fps is None


def test_whatever_the_header_is_only_named_errors_come_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    rng, path = random.Random(7), tmp_path / "a.dcm"
    pixels = np.zeros((2, HEIGHT, WIDTH, 3), np.uint8).tobytes()
    whole = write_dicom(path, pixels, ExplicitVRLittleEndian, 2, CineRate="30", PatientName="Doe^John").read_bytes()
    messages = []
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 2, 8])):
            at = rng.randrange(128, len(whole) - len(pixels))
            if rng.random() < 0.7:
                content[at] = rng.randrange(256)
            else:
                content[at : at + 2] = rng.choice([b"ZZ", b"SQ", b"UN", b"\xff\xff", b"", b"abc"])
        path.write_bytes(content)
        try:
            list(open_source(path).frames([0]))
        except FileError as problem:
            messages.append(str(problem))
    assert 100 < len(messages) < 300
    assert not [message for message in messages if "Doe" in message]
    assert tuple(capfd.readouterr()) == ("", "")
    assert not caplog.records


def test_without_pydicom_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_dicom(tmp_path / "a.dcm", numbered(0).tobytes(), ExplicitVRLittleEndian, 1)
    found = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("pydicom"):
            raise ImportError(name)
        return found(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PolypcountError, match=r"polypcount\[dicom\]"):
        open_source(path)


def test_frames_have_the_times_of_the_frame_time_vector(tmp_path: Path) -> None:
    pixels = np.stack([numbered(number) for number in range(5)]).tobytes()
    steps = ["0", "40", "40", "500", "20"]
    path = write_dicom(tmp_path / "a.dcm", pixels, ExplicitVRLittleEndian, 5, FrameTimeVector=steps)
    source: Any = open_source(path)
    assert source.times == pytest.approx([0, 0.04, 0.08, 0.58, 0.6, 0.75])
    assert source.fps == pytest.approx(5 / 0.75)
    even = write_dicom(tmp_path / "b.dcm", pixels, ExplicitVRLittleEndian, 5, FrameTimeVector=["0"] + ["40"] * 4)
    source = open_source(even)
    assert (source.times, source.fps) == (None, 25.0)


@pytest.mark.parametrize("steps", [["0", "40"], ["0", "40", "-40", "40", "40"]])
def test_a_frame_time_vector_that_does_not_fit_is_not_used(tmp_path: Path, steps: list[str]) -> None:
    pixels = np.stack([numbered(number) for number in range(5)]).tobytes()
    path = write_dicom(tmp_path / "a.dcm", pixels, ExplicitVRLittleEndian, 5, FrameTimeVector=steps, CineRate=10)
    source: Any = open_source(path)
    assert (source.times, source.fps) == (None, 10.0)


def test_frame_times_beyond_any_recording_are_not_used(tmp_path: Path) -> None:
    pixels = np.stack([numbered(number) for number in range(3)]).tobytes()
    steps = ["0", "1e300", "1e300"]
    path = write_dicom(tmp_path / "a.dcm", pixels, ExplicitVRLittleEndian, 3, FrameTimeVector=steps, CineRate=10)
    source: Any = open_source(path)
    assert (source.times, source.fps) == (None, 10.0)


def test_more_frames_than_bytes_are_refused(tmp_path: Path) -> None:
    pixels = np.stack([numbered(number) for number in range(3)]).tobytes()
    path = write_dicom(tmp_path / "a.dcm", pixels, ExplicitVRLittleEndian, 10**9)
    with pytest.raises(FileError, match=r"a\.dcm says it has 1,000,000,000 frames, more than its [0-9,]+ bytes"):
        open_source(path)
