"""From scenes to files that every program can read: an mp4 video or a folder of JPEG images for each procedure."""

import dataclasses
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from polypcount.corpus import Corpus
from polypcount.errors import FileError, first_line
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress
from polypcount.simulate.scene import Scene
from polypcount.simulate.scene_file import SceneFile
from polypcount.storage import whole_file
from polypcount.video.frames import Image
from polypcount.video.write import write_video
from polypcount.workers import in_processes

_FRAMES_A_TASK = 500  # images of one task; a video is one
_QUALITY = 92


def render(
    corpus: Corpus, form: Literal["mp4", "jpg"] = "mp4", processes: int | None = None, progress: Progress = no_progress
) -> Corpus:
    """Draw every frame of a corpus of scenes, into files beside them.

    Files that are newer than their scene are not drawn again.

    Args:
        corpus: Its videos are scenes.
        form: "mp4" for a video, "jpg" for a folder of numbered images.
        processes: None for one per core.
        progress: Counts frames.

    Returns:
        The corpus whose videos are these files.
    """
    cores = available_cores() if processes is None else processes
    threads = max(1, cores // max(1, len(corpus.videos)))
    tasks: list[tuple[Path, Path, range, int]] = []  # scene, file or folder to write, frames, threads
    videos, done = [], 0
    for video in corpus.videos:
        scene = Path(str(video.source))
        target = scene.with_suffix(".mp4" if form == "mp4" else "")
        videos.append(dataclasses.replace(video, source=str(target)))
        step = video.frame_count if form == "mp4" else _FRAMES_A_TASK
        for start in range(0, video.frame_count, step):
            frames = range(start, min(start + step, video.frame_count))
            files = [target] if form == "mp4" else [_image(target, frame) for frame in frames]
            if all(_is_newer(file, scene) for file in files):
                done += len(frames)
            else:
                tasks.append((scene, target, frames, threads))
        for file in target.glob("*.jpg"):  # of a longer procedure that was here before
            if file.stem.isdigit() and int(file.stem) >= video.frame_count:
                file.unlink()
    total = sum(video.frame_count for video in videos)
    progress(done, total)
    if form == "mp4" and len(tasks) == 1:  # drawn in this process, so that progress can count every frame
        _draw_video(*tasks.pop(), report=lambda drawn: progress(done + drawn, total))
        progress(total, total)
    for _, count in in_processes(_draw_video if form == "mp4" else _draw_images, tasks, cores):
        done += count
        progress(done, total)
    return dataclasses.replace(corpus, videos=tuple(videos))


def _draw_video(
    path: Path, target: Path, frames: range, threads: int, report: Callable[[int], None] = lambda _: None
) -> int:
    """Draw a video; `report` is called with the number of frames drawn so far."""
    scene = SceneFile.load(path).scene()
    return write_video(target, _drawn(scene, frames, threads, report), float(scene.video.fps or 30))


def _drawn(scene: Scene, frames: range, threads: int, report: Callable[[int], None]) -> Iterator[Image]:
    """Frames in order, some drawn ahead by threads, as the compiled loops leave Python free."""
    with ThreadPoolExecutor(threads) as pool:
        left = iter(frames)
        coming = deque(pool.submit(scene.draw, frame) for frame in itertools.islice(left, 2 * threads))
        for number in range(len(frames)):
            report(number)
            yield coming.popleft().result()
            coming.extend(pool.submit(scene.draw, frame) for frame in itertools.islice(left, 1))


def _draw_images(path: Path, target: Path, frames: range, _: int) -> int:
    import simplejpeg  # type: ignore[import-untyped]

    scene = SceneFile.load(path).scene()
    for frame in frames:
        file = _image(target, frame)
        if not _is_newer(file, path):
            jpeg = simplejpeg.encode_jpeg(scene.draw(frame), quality=_QUALITY)
            try:
                with whole_file(file) as unfinished:
                    unfinished.write_bytes(jpeg)
            except OSError as problem:
                raise FileError(f"{target}: images cannot be written: {first_line(problem)}") from None
    return len(frames)


def _image(folder: Path, frame: int) -> Path:
    return folder / f"{frame:06d}.jpg"


def _is_newer(file: Path, scene: Path) -> bool:
    """Whether a file was drawn since the scene was last changed."""
    return file.exists() and file.stat().st_mtime_ns >= scene.stat().st_mtime_ns
