"""What the tests of dataset importers share."""

from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.importers import read_corpus


def read(name: str, path: Path, **options: object) -> Corpus:
    """Import without the cache, in this process."""
    return read_corpus(name, path, cache=False, **{"processes": 1, **options})  # type: ignore[arg-type]


def real_colon_corpus(path: Path, **options: object) -> Corpus:
    """Import REAL-Colon without the cache."""
    return read("real-colon", path, **options)


def remarks(corpus: Corpus) -> list[str]:
    found: list[str] = corpus.provenance.parameters["remarks"]
    return found


def boxes_of(corpus: Corpus) -> list[tuple[str, int, list[float], str]]:
    boxes = corpus.boxes
    return [
        (corpus.videos[v].id, int(f), xyxy, corpus.polyps[p].id)
        for v, f, xyxy, p in zip(boxes.video, boxes.frame, boxes.xyxy.tolist(), boxes.polyp, strict=True)
    ]


def frames_and_boxes(corpus: Corpus, video: str) -> list[tuple[int, list[float]]]:
    row = [v.id for v in corpus.videos].index(video)
    mine = corpus.boxes.of_video(row)
    return list(zip(corpus.boxes.frame[mine].tolist(), corpus.boxes.xyxy[mine].tolist(), strict=True))
