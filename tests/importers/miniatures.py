"""Small copies of the public datasets, in their exact layouts."""

import io
import tarfile
from pathlib import Path

from PIL import Image

VIDEO_INFO = '"unique_video_name","age","sex","endoscope_brand","fps","num_frames","num_lesions","bbps"\n'
LESION_INFO = '"unique_object_id","unique_video_name","size [mm]","site","histology_extended","histology_class"\n'
Box = tuple[float, float, float, float]


def image(path: Path, size: tuple[int, int] = (64, 48), parts: tuple[Box, ...] = ()) -> None:
    """A black image with white rectangles."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.new("RGB", size)
    for x1, y1, x2, y2 in parts:
        picture.paste((255, 255, 255), (int(x1), int(y1), int(x2), int(y2)))
    picture.save(path, quality=95)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def real_colon_xml(video: str, frame: object, *objects: tuple[str, Box], size: tuple[int, int] = (1240, 1080)) -> str:
    """One frame as the dataset writes it; objects are (unique_id, box)."""
    found = "".join(
        f"<object>\n<name>lesion</name>\n<unique_id>{name}</unique_id>\n<box_id>{number}</box_id>\n<bndbox>\n"
        f"<xmin>{x1}</xmin>\n<xmax>{x2}</xmax>\n<ymin>{y1}</ymin>\n<ymax>{y2}</ymax>\n</bndbox>\n</object>\n"
        for number, (name, (x1, y1, x2, y2)) in enumerate(objects)
    )
    return (
        f"<annotation>\n<version_fmt>1.0</version_fmt>\n<folder>{video}</folder>\n<filename>{video}_{frame}.jpg</filename>\n"
        "<source>\n<database>cosmoimd</database>\n<release>v1.0_20230228</release>\n</source>\n"
        f"<size>\n<width>{size[0]}</width>\n<height>{size[1]}</height>\n<depth>3</depth>\n</size>\n{found}</annotation>\n"
    )


def real_colon(root: Path, videos: dict[str, int], folder: str = "annotations", frames: int = 12) -> Path:
    """Videos with this many polyps; polyp k is seen in frames 2k and 2k + 1, at x = 10k."""
    rows, lesions = "", ""
    for video, polyps in videos.items():
        rows += f'"{video}",60,"male","Olympus",29.97,{frames},{polyps},8.5\n'
        for k in range(1, polyps + 1):
            lesions += f'"{video}_{k}","{video}",{k},"sigma","adenoma","AD"\n'
        for frame in range(frames):
            k = frame // 2
            box = (10.0 * k, 5.0, 10.0 * k + 50, 60.0)
            objects = [(f"{video}_{k}", box)] if 1 <= k <= polyps else []
            write(root / f"{video}_{folder}" / f"{video}_{frame}.xml", real_colon_xml(video, frame, *objects))
    write(root / "video_info.csv", VIDEO_INFO + rows)
    write(root / "lesion_info.csv", LESION_INFO + lesions)
    return root


def archived(folder: Path) -> Path:
    """Pack a folder as `<folder>.tar.gz` and remove it."""
    path = folder.with_name(f"{folder.name}.tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, folder.name)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    return path


def hostile_archive(path: Path, name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"<annotation/>") -> None:
    """An archive with one entry that must not be opened."""
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.type = kind
        member.size = len(content) if kind == tarfile.REGTYPE else 0
        member.linkname = "/etc/passwd"
        archive.addfile(member, io.BytesIO(content))


def ldpolypvideo(root: Path) -> Path:
    """Video 1 with one box a frame, and 101 of the test part with two boxes in a frame and blank lines."""
    for number in range(1, 4):
        image(root / "TrainValid" / "Images" / "1" / f"{number}.jpg", (560, 480))
        write(root / "TrainValid" / "Annotations" / "1" / f"{number}.txt", f"1\n{10 + number} 20 60 70\n")
    for number, text in {
        1: "2\n10 10 50 50\n\n300 300 350 350\n",
        2: "\n2\n12 10 52 50\n301 300 351 350\n",
        3: "0\n",
    }.items():
        image(root / "Test" / "Images" / "101" / f"{number}.jpg", (560, 480))
        write(root / "Test" / "Annotations" / "101" / f"{number}.txt", text)
    return root


def sun_name(clip: int, number: int, part: int = 1) -> str:
    return f"case_M_20181001100941_0U62372100109341_1_005_{part:03d}-1_a{clip}_ayy_image{number:04d}.jpg"


def sun(root: Path) -> Path:
    """Case 1 with the clips a2 and a10 of three and two frames, one negative case."""
    names = [sun_name(10, 1), sun_name(10, 2), sun_name(2, 1), sun_name(2, 2), sun_name(2, 3)]
    lines = ""
    for index, name in enumerate(names):
        image(root / "positive" / "case1" / name, (100, 80))
        lines += f"{name} {index},5,{index + 40},50,{0 if index < 4 else 1}\n"
    write(root / "positive" / "annotation_txt" / "case1.txt", lines)
    for number in (1, 2):
        image(root / "negative" / "case1" / sun_name(1, number), (100, 80))
    return root


def voc(width: int, height: int, *boxes: tuple[str, str, str, str], path: str = "", filename: str = "x.jpg") -> str:
    found = "".join(
        f"<object><name>adenomatous</name><bndbox><xmin>{a}</xmin><ymin>{b}</ymin><xmax>{c}</xmax><ymax>{d}</ymax></bndbox></object>"
        for a, b, c, d in boxes
    )
    return (
        f"<annotation><folder>f</folder><filename>{filename}</filename><path>{path}</path><source><database>Unknown</database>"
        f"</source><size><width>{width}</width><height>{height}</height><depth>3</depth></size>{found}</annotation>"
    )


def polypsset(root: Path) -> Path:
    """Sequence 10 in val and in test, with padded numbers and a frame without an object; two frames of train2019."""
    for part in ("val2019", "test2019"):
        for number, boxes in {1: [(" 10\n", "20 ", "\t50", "60")], 2: [], 10: [("12", "20", "52", "60")]}.items():
            image(root / part / "Image" / "10" / f"{number}.jpg", (100, 90))
            write(root / part / "Annotation" / "10" / f"{number}.xml", voc(100, 90, *boxes))
    for number, path in {7: "D:\\data\\seq3\\adenoma_002.jpg", 8: "D:\\data\\seq3\\adenoma_001.jpg"}.items():
        image(root / "train2019" / "Image" / f"{number}.jpg", (100, 90))
        text = voc(100, 90, ("1", "2", "30", "40"), path=path, filename=path.rpartition("\\")[2])
        write(root / "train2019" / "Annotation" / f"{number}.xml", text)
    return root
