"""Pascal VOC XML, one file a frame, as LabelImg and others write it.

The frame is the number at the end of the file name, from 0 (`--first-frame`); a file without objects is a frame
without boxes. Boxes are xmin, ymin, xmax, ymax as they stand (`--box xyxy-inclusive` where xmax and ymax are the last
pixels inside). All class names are taken for polyps. Identity is `unique_id`, `identity_id` or `track_id` of the
object; see `identities.py` for the polyp's id. `--ids track` makes ids tracks.

The path is the folder of one video, or a folder of such folders.
"""

from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.importers.files import list_files, subfolders
from polypcount.importers.identities import join, number_or_text, polyp_name, track_numbers
from polypcount.importers.numbering import last_number
from polypcount.importers.options import Options
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows, to_xyxy
from polypcount.importers.texts import shown, usable
from polypcount.importers.videos import VideoFacts, check_options, frame_of, name_of
from polypcount.importers.voc_frame import VocFrame, VocObject, read_voc_file
from polypcount.importers.work import Task, Work

_XML = frozenset({".xml"})


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read the XML files of one or several videos."""
    if not path.is_dir():
        raise FileError(f"{path}: a folder of XML files is expected, found a file")
    here = len(list_files(path, _XML))
    counts = {path: here} if here else {folder: len(list_files(folder, _XML)) for folder in subfolders(path)}
    tasks = [Task((folder, options), (folder,), weight=count) for folder, count in counts.items() if count]
    if not tasks:
        raise FileError(f"{path} holds no XML files, nor folders that do")
    check_options(options, len(tasks), path)
    return join(work.read_all(_read_video, tasks), path)


def _read_video(folder: Path, options: Options, problems: Problems) -> Corpus:
    facts = VideoFacts(name_of(folder)).with_options(options)
    frames: dict[int, VocFrame] = {}
    for path in list_files(folder, _XML):
        number = last_number(path.stem)
        if number is None:
            problems.bad(path, "a name that ends in the number of the frame is expected")
            continue
        frame = frame_of(path, number, options.first_frame or 0, facts.frame_count, problems)
        if frame is None:
            continue
        if frame in frames:
            problems.bad(path, f"frame {number} has a file already")
        elif (content := read_voc_file(path, problems)) is not None:
            frames[frame] = content
    rows = _rows(frames, facts.id, options, problems)
    width, height = _size(frames, facts.id, problems)
    facts = VideoFacts(facts.id, facts.fps, width, height, facts.frame_count)
    return rows.to_corpus(facts.video(options, max(frames, default=-1) + 1))


def _rows(frames: dict[int, VocFrame], video: str, options: Options, problems: Problems) -> Rows:
    found = [
        (frame, item) for frame, content in frames.items() for item in content.objects if _has_identity(item, problems)
    ]
    identities = [None if item.identity is None else number_or_text(item.identity) for _, item in found]
    number_of = track_numbers([identity for identity in identities if identity is not None])
    rows = Rows(problems)
    for (frame, item), identity in zip(found, identities, strict=True):
        polyp, track = None, -1
        if identity is not None and options.ids == "track":
            track = number_of[identity]
        elif identity is not None:
            polyp = polyp_name(identity, video)
        rows.add(item.where, frame, to_xyxy(item.box, options.box or "xyxy"), 1.0, polyp, track)
    return rows


def _has_identity(item: VocObject, problems: Problems) -> bool:
    if item.identity is None or usable(item.identity):
        return True
    problems.bad(item.where, f"an identity that can be an id is expected, found {shown(item.identity)}")
    return False


def _size(frames: dict[int, VocFrame], video: str, problems: Problems) -> tuple[int | None, int | None]:
    """Width and height of the first frame that tells them."""
    sizes = [content.size for content in frames.values() if content.size]
    if not sizes:
        return None, None
    if others := sum(size != sizes[0] for size in sizes):
        problems.remark(
            f"video {video}: {others:,} of {len(sizes):,} frames have another size than {sizes[0][0]} x {sizes[0][1]}, "
            "which is taken for all"
        )
    return sizes[0]
