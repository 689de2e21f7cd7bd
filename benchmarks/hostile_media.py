"""Cases of hostile.py: videos, images, DICOM files."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.hostile_inputs import (
    FOLDER,
    PIPE,
    SECRET,
    ZERO,
    Cases,
    Content,
    Material,
    Mutated,
    put,
    write_boxes,
    write_video,
)
from PIL import Image

from polypcount.video import open_source


def _png(width: int, height: int) -> bytes:
    """A PNG file that claims to have this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


def _read_some(path: Path) -> None:
    source = open_source(path)
    for _ in source.frames(range(min(source.frame_count, 5))):
        pass


def videos(at: Material, copies: int) -> Cases:
    """Video files and folders of images."""
    images = at.images
    write_video(at.good / "m.mkv", images, "mpeg4")
    write_video(at.good / "m.avi", images, "mpeg4")
    (at.good / "images").mkdir()
    for number, image in enumerate(images[:6]):
        Image.fromarray(image).save(at.good / "images" / f"f_{number}.{'jpg' if number % 2 else 'png'}")
    for name in ("case.mp4", "m.mkv", "m.avi", "images"):
        yield Mutated(f"damaged {name}", at.good / name, _read_some, copies)
    sizes = {"1x1": (1, 1), "2x2": (2, 2), "portrait": (96, 32), "odd": (63, 95), "wide": (2, 20_000)}
    for name, (height, width) in sizes.items():
        folder = at.fresh()
        write_video(folder / "a.mkv", [np.resize(images[0], (height, width, 3))] * 40, "ffv1", pixels="bgr0")
        write_boxes(folder / "a.csv", 40, width, height)
        yield at.count(name, "a.mkv", folder=folder)
    forms: dict[str, dict[str, Any]] = {
        "1 frame": {},
        "grey": {"codec": "ffv1", "pixels": "gray"},
        "alpha": {"codec": "ffv1", "pixels": "bgra"},
        "16 bits": {"codec": "ffv1", "pixels": "gray16le"},
        "uneven times": {"times": [int(1.3**n) + 7 * n for n in range(40)]},
        "negative times": {"times": [40 * n - 900 for n in range(40)]},
        "far times": {"times": [40 * n + (n > 20) * 10**9 for n in range(40)]},
        "farther times": {"times": [40 * n + (n > 20) * 10**12 for n in range(40)]},
    }
    for name, more in forms.items():
        folder = at.fresh()
        write_video(folder / "a.mkv", images[: 1 if name == "1 frame" else 40], **more)
        write_boxes(folder / "a.csv", 1 if name == "1 frame" else 40)
        yield at.count(name, "a.mkv", "--video", folder=folder, keeps=True)  # a report stays without its video
    good = (at.good / "case.mp4").read_bytes()
    scale = good.index(b"mdhd") + 16
    contents: dict[str, Content] = {
        "empty.mp4": b"",
        "text.mp4": b"hello\n" * 100,
        "zeros.mp4": bytes(100_000),
        "half.mp4": good[: len(good) // 2],
        "no-frames.mp4": good[: good.index(b"mdat") - 4],
        "time-base-0.mp4": good[:scale] + bytes(4) + good[scale + 4 :],
        "time-base-max.mp4": good[:scale] + b"\xff" * 4 + good[scale + 4 :],
        "playlist.mp4": f"#EXTM3U\n#EXTINF:1,\nfile://{at.outside}/secret.txt\n#EXT-X-ENDLIST\n",
        "web.mp4": "#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n",
        "concat.mp4": f"ffconcat version 1.0\nfile {at.outside}/secret.txt\n",
        "dash.mp4": '<?xml version="1.0"?><MPD><Period><BaseURL>http://127.0.0.1:9/</BaseURL></Period></MPD>',
        "a.gif": b"GIF89a" + bytes(40),
        "a.sdp": "v=0\nc=IN IP4 127.0.0.1\nm=video 5000 RTP/AVP 96\n",
        "a.avs": f'AviSource("{at.outside}/secret.txt")',
        "a.txt": SECRET,
        "a.scene": "{}",
        "pipe.mp4": PIPE,
        "zero.mp4": ZERO,
        "bomb.png": _png(50_000, 50_000),
        "tall.png": _png(1, 2**31 - 1),
        "no-size.png": _png(0, 0),
    }
    for name, content in contents.items():
        yield at.count(name, name, "--boxes", "case.csv", files={name: content})
    for name in ("http://127.0.0.1:9/a.mp4", "concat:case.mp4|case.mp4", "pipe:0", "/dev/video0", "subfile,,:case.mp4"):
        yield at.count(name, name, "--boxes", "case.csv")
    exif = Image.Exif()
    exif[0x010E] = exif[0x013B] = SECRET  # description and artist
    odd: dict[str, Content] = {
        "a folder": FOLDER,
        "a pipe": PIPE,
        "/dev/zero": ZERO,
        "a link to a text": at.outside / "secret.txt",
        "a link to nothing": Path("nothing"),
        "corrupt": b"\xff\xd8\xff\xe0" + SECRET.encode(),
        "a bomb": _png(50_000, 50_000),
    }
    for name in (*odd, "of another size", "as the others", "the only one"):
        folder = at.fresh({"frames": FOLDER})
        for number in range(40):
            shown = Image.fromarray(images[number])
            shown = shown.resize((31, 77)) if name == "of another size" and number == 20 else shown
            if name != "the only one" or number == 20:
                shown.save(folder / "frames" / f"f_{number:03}.jpg", exif=exif)
        if name in odd:
            put(folder / "frames" / "f_020.jpg", odd[name])
        yield at.count(f"an image is {name}", "frames", "--boxes", "case.csv", "--fps", "25", folder=folder)
    yield at.count("a folder without images", "frames", "--boxes", "case.csv", files={"frames": FOLDER})


def dicom(at: Material, copies: int) -> Cases:
    """DICOM files with the name of a patient in them."""
    from pydicom.encaps import encapsulate
    from pydicom.uid import ExplicitVRLittleEndian, JPEGBaseline8Bit
    from tests.video.test_dicom import H264, write_dicom

    pixels, plain = np.stack(at.images[:8]).tobytes(), ExplicitVRLittleEndian
    names: dict[str, Any] = {"PatientName": SECRET, "PatientID": SECRET, "CineRate": "25", "StudyDescription": SECRET}
    good = write_dicom(at.good / "a.dcm", pixels, plain, 8, **names)
    stream = encapsulate([(at.good / "case.mp4").read_bytes()], has_bot=False)
    for path in (good, write_dicom(at.good / "v.dcm", stream, H264, 40, **names)):
        yield Mutated(f"damaged {path.name}", path, _read_some, copies)
        yield Mutated(f"damaged header of {path.name}", path, _read_some, copies, head=900)
    garbage = encapsulate([SECRET.encode() * 9] * 8)
    elements: dict[str, dict[str, Any]] = {
        "good": {},
        "huge sides": {"Rows": 65535, "Columns": 65535},
        "sides 0": {"Rows": 0, "Columns": 0},
        "12 bits said": {"BitsStored": 12, "HighBit": 11},
        "palette without table": {"PhotometricInterpretation": "PALETTE COLOR"},
        "frame times": {"FrameTimeVector": ["1e300"] * 8},
        "a billion frames": {"NumberOfFrames": 10**9},
        "no pixels": {},
        "garbage as JPEG": {},
        "garbage as H.264": {},
    }
    for name, more in elements.items():
        folder = at.fresh()
        data = b"" if name == "no pixels" else garbage if "garbage" in name else pixels
        syntax = {"garbage as JPEG": JPEGBaseline8Bit, "garbage as H.264": H264}.get(name, plain)
        write_dicom(folder / "a.dcm", data, syntax, 8, **{**names, **more})
        write_boxes(folder / "a.csv", 8)
        yield at.count(name, "a.dcm", "--video", folder=folder)
    for name, old, new in (
        ("unknown VR", b"\x10\x00\x10\x00PN", b"\x10\x00\x10\x00QQ"),
        ("number is a name", b"IS\x02\x0025", b"IS\x02\x00GE"),
        ("length beyond the end", b"\x10\x00\x10\x00PN\x14\x00", b"\x10\x00\x10\x00PN\xff\xff"),
    ):
        folder = at.fresh({"a.dcm": good.read_bytes().replace(old, new)})
        write_boxes(folder / "a.csv", 8)
        yield at.count(name, "a.dcm", folder=folder, installed=True)
