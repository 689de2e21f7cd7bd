"""From scenes to files that anything can read: an mp4 video or a folder of JPEG images for each procedure."""

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
from polypcount.video.frames import Image
from polypcount.video.write import write_video
from polypcount.whole import whole_file
from polypcount.workers import in_processes

Form = Literal["mp4", "jpg"]
_FRAMES_A_TASK = 500  # images of one task; a video is one
_QUALITY = 92


def render(
    corpus: Corpus, form: Form = "mp4", processes: int | None = None, progress: Progress = no_progress
) -> Corpus:
    """Draw every frame of a corpus of scenes, beside them; gives the corpus whose videos are these files.

    form: "mp4" for a video, "jpg" for a folder of numbered images. progress: counts frames. What is there already, of
    the same scene, is not drawn again.
    """
    cores = available_cores() if processes is None else processes
    tasks: list[tuple[Path, Path, int, int, int]] = []  # scene, what to write, frames from and to, threads
    videos, done = [], 0
    for video in corpus.videos:
        scene = Path(str(video.source))
        target = scene.with_suffix(".mp4" if form == "mp4" else "")
        step = video.frame_count if form == "mp4" else _FRAMES_A_TASK
        threads = max(1, cores // len(corpus.videos)) if form == "mp4" else 1
        for start in range(0, video.frame_count, step):
            stop = min(start + step, video.frame_count)
            files = [target] if form == "mp4" else [_image(target, frame) for frame in range(start, stop)]
            if all(_is_newer(file, scene) for file in files):
                done += stop - start
            else:
                tasks.append((scene, target, start, stop, threads))
        if form == "jpg" and target.is_dir():  # of a longer procedure that was here before
            for file in target.glob("*.jpg"):
                if file.stem.isdigit() and int(file.stem) >= video.frame_count:
                    file.unlink()
        videos.append(dataclasses.replace(video, source=str(target)))
    total = sum(video.frame_count for video in videos)
    progress(done, total)
    if form == "mp4" and len(tasks) == 1:  # drawn here, so every frame can be told
        _draw_video(*tasks[0], told=lambda drawn: progress(done + drawn, total))
        progress(total, total)
        tasks.clear()
    for _, count in in_processes(_draw_video if form == "mp4" else _draw_images, tasks, cores):
        done += count
        progress(done, total)
    return dataclasses.replace(corpus, videos=tuple(videos))


def _draw_video(
    path: Path, target: Path, start: int, stop: int, threads: int, told: Callable[[int], None] | None = None
) -> int:
    """told: is called with the number of frames drawn so far."""
    scene = SceneFile.load(path).scene()

    def frames() -> Iterator[Image]:
        for number, image in enumerate(_drawn(scene, start, stop, threads)):
            if told is not None:
                told(number)
            yield image

    return write_video(target, frames(), float(scene.video.fps or 30))


def _draw_images(path: Path, target: Path, start: int, stop: int, _: int) -> int:
    import simplejpeg  # type: ignore[import-untyped]

    scene = SceneFile.load(path).scene()
    for frame in range(start, stop):
        if _is_newer(_image(target, frame), path):
            continue
        picture = simplejpeg.encode_jpeg(scene.draw(frame), quality=_QUALITY)
        try:
            with whole_file(_image(target, frame)) as unfinished:
                unfinished.write_bytes(picture)
        except OSError as problem:
            raise FileError(f"{target}: images cannot be written: {first_line(problem)}") from None
    return stop - start


def _image(folder: Path, frame: int) -> Path:
    return folder / f"{frame:06d}.jpg"


def _drawn(scene: Scene, start: int, stop: int, threads: int) -> Iterator[Image]:
    """Frames in order; with several threads some are drawn ahead, as the compiled loops leave Python free."""
    if threads == 1:
        yield from map(scene.draw, range(start, stop))
        return
    with ThreadPoolExecutor(threads) as pool:
        numbers = iter(range(start, stop))
        coming = deque(pool.submit(scene.draw, frame) for frame in itertools.islice(numbers, 2 * threads))
        while coming:
            yield coming.popleft().result()
            coming.extend(pool.submit(scene.draw, frame) for frame in itertools.islice(numbers, 1))


def _is_newer(file: Path, scene: Path) -> bool:
    """Whether a file was drawn since the scene was last changed."""
    return file.exists() and file.stat().st_mtime_ns >= scene.stat().st_mtime_ns
