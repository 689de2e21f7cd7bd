"""Tracks from boxes without numbers."""

import subprocess
import sys
import tracemalloc
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polypcount as pc
from polypcount.corpus import Boxes
from polypcount.errors import DataError, PolypcountError
from polypcount.simulate import simulate_timelines
from polypcount.tracking import OnlineTracker, TrackRules, link_tracklets, track_boxes
from tests.conftest import DATA

Stream = list[tuple[int, list[list[float]], list[float]]]  # frame, boxes, scores


def box(x: float, y: float = 0.0, size: float = 40.0) -> list[float]:
    return [x, y, x + size, y + size]


def tracked(stream: Stream, fps: float | None = 30.0, rules: TrackRules | None = None) -> list[list[int]]:
    tracker = OnlineTracker(fps, rules or TrackRules())
    return [tracker.update(frame, boxes, scores).tolist() for frame, boxes, scores in stream]


def one(frames: list[int], **options: float) -> list[int]:
    """Tracks of one box of score 1 that stays where it is."""
    rules = TrackRules(**options)  # type: ignore[arg-type]
    return [track for (track,) in tracked([(frame, [box(0)], [1.0]) for frame in frames], 10.0, rules)]


def test_two_polyps_side_by_side_are_two_tracks_from_their_first_boxes_on() -> None:
    path = DATA / "ldpolypvideo-clip" / "boxes.json"
    if not path.exists():
        pytest.skip("the clip is not here")
    boxes = pc.read_corpus("frames-json", path).boxes
    track = track_boxes(boxes, [None]).track
    for frame in range(53):
        assert track[boxes.frame == frame].tolist() == ([0, 1] if frame < 8 else [0]), f"frame {frame}"


def test_a_box_that_moves_keeps_its_track() -> None:
    assert tracked([(k, [box(12.0 * k)], [1.0]) for k in range(9)]) == [[0]] * 9


def test_two_boxes_that_pass_each_other_keep_their_tracks() -> None:
    stream: Stream = [(k, [box(10.0 * k), box(200 - 10.0 * k, 30)], [1.0, 1.0]) for k in range(20)]
    assert tracked(stream) == [[0, 1]] * 20
    assert tracked([(frame, boxes[::-1], scores) for frame, boxes, scores in stream[:1]] + stream[1:])[-1] == [1, 0]


def test_scores_say_what_begins_and_what_continues() -> None:
    scores = [0.49, 0.5, 0.1, 0.09, 0.3, 0.9]
    assert tracked([(k, [box(0)], [score]) for k, score in enumerate(scores)]) == [[-1], [0], [0], [-1], [0], [0]]
    # Scores come as float32, in which 0.7 and 0.2 are not what they are in float64.
    rules = TrackRules(confidence=0.7, low_confidence=0.2)
    assert tracked([(k, [box(0)], [score]) for k, score in enumerate([0.69, 0.7, 0.2])], rules=rules) == [
        [-1],
        [0],
        [0],
    ]


def test_a_good_box_goes_before_a_weak_one() -> None:
    stream: Stream = [(0, [box(0)], [1.0]), (1, [box(0), box(8)], [0.2, 0.8])]
    assert tracked(stream) == [[0], [-1, 0]]


def test_a_track_lives_so_long_without_boxes() -> None:
    assert TrackRules(lost_seconds=0.5).lost_frames(10.0) == 5
    assert TrackRules(lost_seconds=0.5).lost_frames(None) == 12
    assert one([0, 6], lost_seconds=0.5) == [0, 0], "five frames without, also after a single box"
    assert one([0, 1, 2, 8], lost_seconds=0.5) == [0, 0, 0, 0]
    assert one([0, 7], lost_seconds=0.5) == [0, 1]
    assert one([0, 1, 3], lost_seconds=0.0) == [0, 0, 1]
    assert one([0, 1, 2**31 - 2]) == [0, 0, 1], "a gap costs no more than a track's life"


def test_tracks_may_count_only_after_some_boxes() -> None:
    assert one([0, 1, 2, 3], min_boxes=3) == [-1, -1, 0, 0]
    assert one([0, 1, 3, 4, 5], min_boxes=3) == [-1, -1, -1, -1, 0], "consecutive ones"


def test_a_jump_begins_another_track() -> None:
    assert tracked([(0, [box(0)], [1.0]), (1, [box(300)], [1.0]), (2, [box(300)], [1.0])]) == [[0], [1], [1]]


BOX = st.builds(box, st.integers(0, 60), st.integers(0, 60), st.integers(1, 80))
SCORED = st.lists(st.tuples(BOX, st.sampled_from([0.05, 0.2, 0.6, 1.0])), max_size=4)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    frames = draw(st.lists(st.integers(0, 40), max_size=12, unique=True).map(sorted))
    scored = [draw(SCORED) for _ in frames]
    return [(f, [b for b, _ in s], [score for _, score in s]) for f, s in zip(frames, scored, strict=True)]


@settings(max_examples=50)
@given(streams(), st.sampled_from([1, 2]))
def test_what_holds_for_any_boxes(stream: Stream, min_boxes: int) -> None:
    rules = TrackRules(lost_seconds=0.2, min_boxes=min_boxes)
    given = tracked(stream, rules=rules)
    flat = [track for tracks in given for track in tracks]
    scores = [score for _, _, scores in stream for score in scores]
    firsts = list(dict.fromkeys(track for track in flat if track >= 0))
    if min_boxes == 1:
        assert firsts == list(range(len(firsts))), "numbered in order of appearance"
        assert all(track >= 0 for track, score in zip(flat, scores, strict=True) if score >= rules.confidence)
        assert all(scores[flat.index(track)] >= rules.confidence for track in firsts)
    else:
        assert sorted(firsts) == list(range(len(firsts)))
    assert all(track == -1 for track, score in zip(flat, scores, strict=True) if score < rules.low_confidence)
    for tracks in given:
        numbered = [track for track in tracks if track >= 0]
        assert len(set(numbered)) == len(numbered), "one box of a track in a frame"

    by_frame = {frame: (boxes, scores) for frame, boxes, scores in stream}
    every = [(frame, *by_frame.get(frame, ([], []))) for frame in range(max(by_frame, default=-1) + 1)]
    assert [tracks for tracks in tracked(every, rules=rules) if tracks] == [tracks for tracks in given if tracks], (
        "a frame that is left out is one without boxes"
    )


@settings(max_examples=15)
@given(streams(), streams())
def test_two_trackers_side_by_side_do_not_disturb_each_other(first: Stream, second: Stream) -> None:
    a, b = OnlineTracker(30.0), OnlineTracker(30.0)
    results: tuple[list[list[int]], list[list[int]]] = ([], [])
    for step in range(max(len(first), len(second))):
        for tracker, stream, result in ((a, first, results[0]), (b, second, results[1])):
            if step < len(stream):
                result.append(tracker.update(*stream[step]).tolist())
    assert results == (tracked(first), tracked(second))


def test_a_corpus_is_tracked_video_by_video_in_any_order_of_rows() -> None:
    corpus = simulate_timelines(2, 1, like="study")
    starts = [corpus.boxes.of_video(video).start for video in range(2)]
    boxes = corpus.boxes.take(np.concatenate([np.arange(start, start + 300) for start in starts]))
    fps = [video.fps for video in corpus.videos]
    score = np.random.default_rng(0).random(len(boxes)).astype(np.float32)
    boxes = Boxes(boxes.video, boxes.frame, boxes.xyxy, score, boxes.polyp)
    result = track_boxes(boxes, fps)
    assert Boxes(**{**result.columns(), "track": boxes.track}) == boxes, "all but the track stays"
    for video in range(2):
        mine = boxes.of_video(video)
        tracker = OnlineTracker(fps[video])
        expected = [
            tracker.update(frame, boxes.xyxy[mine][rows], boxes.score[mine][rows]).tolist()
            for frame in np.unique(boxes.frame[mine]).tolist()
            for rows in [boxes.frame[mine] == frame]
        ]
        assert result.track[mine].tolist() == [track for tracks in expected for track in tracks]
        assert len(expected) > 200
    # Boxes of one frame keep their order, so that equals among them are told apart in the same way.
    _, frame = np.unique(boxes.frame, return_inverse=True)
    mixed = np.argsort(np.random.default_rng(1).permutation(len(boxes))[frame], kind="stable")
    assert track_boxes(boxes.take(mixed), fps).track.tolist() == result.track[mixed].tolist()


def test_no_boxes() -> None:
    assert len(track_boxes(Boxes.empty(), [])) == 0
    assert tracked([(0, [], []), (5, [box(0)], [1.0]), (6, [], [])]) == [[], [0], []]


def test_clean_boxes_give_nearly_the_tracklets_that_their_polyps_give() -> None:
    """A polyp that moves as fast as a real one now and then outruns the tracker, which then begins a new track."""
    corpus = simulate_timelines(1, 4, like="study")
    boxes = corpus.boxes.take(np.arange(1500))
    result = track_boxes(boxes, [video.fps for video in corpus.videos])
    ours, theirs = (
        link_tracklets(Boxes(boxes.video, boxes.frame, boxes.xyxy, track=result.track)),
        link_tracklets(boxes),
    )
    spans = [set(zip(t.start_frame.tolist(), t.stop_frame.tolist(), strict=True)) for t in (ours, theirs)]
    assert len(spans[0] & spans[1]) >= 0.9 * len(theirs)
    assert len(theirs) <= len(ours) <= 1.1 * len(theirs)


def test_memory_does_not_grow() -> None:
    tracker = OnlineTracker(10.0)

    def feed(start: int, stop: int) -> int:
        # Two tracks of three boxes each at a time, then others elsewhere: a new pair every three frames.
        for step in range(start, stop):
            x = 1000.0 * (step // 3 % 7)
            tracker.update(100 * step, [box(x), box(x, 500)], [1.0, 0.9])
            tracker.update(100 * step + 1, [box(x + 5), box(x + 500, 500)], [1.0, 0.9])
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = feed(0, 40)
        assert feed(40, 140) - before < 20_000, "100 x 3 remembered tracks would be megabytes"
    finally:
        tracemalloc.stop()


QUIET = """
import sys
reached = []
sys.addaudithook(lambda event, _: reached.append(event) if event in (
    "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "urllib.Request", "http.client.connect") else None)
import polypcount.tracking
assert not {"trackers", "supervision", "cv2"} & sys.modules.keys(), "loaded before anybody tracks"
tracker = polypcount.tracking.OnlineTracker(25.0)
for frame in range(4):
    assert tracker.update(frame, [[0, 0, 9, 9]], [1.0]).tolist() == [0]
assert not {"torch", "torchvision", "matplotlib"} & sys.modules.keys(), "heavy libraries"
assert reached == [], reached
"""


def test_the_tracker_is_loaded_late_light_and_without_the_network() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", QUIET], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_machine_without_a_screen_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trackers.py").write_text("raise ImportError('libGL.so.1: cannot open shared object file')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "trackers", raising=False)
    with pytest.raises(PolypcountError, match=r"libGL\.so\.1: cannot open .*opencv-python-headless"):
        OnlineTracker(25.0)


def test_senseless_input_is_refused() -> None:
    tracker = OnlineTracker(None)
    tracker.update(4, [box(0)], [1.0])
    with pytest.raises(DataError, match="rising order from 0, found 4 after 4"):
        tracker.update(4, [box(0)], [1.0])
    with pytest.raises(DataError, match="1 boxes and 2 scores"):
        tracker.update(5, [box(0)], [1.0, 1.0])
    with pytest.raises(DataError, match="rising order from 0, found -1"):
        OnlineTracker(None).update(-1, [box(0)], [1.0])
    with pytest.raises(DataError, match="2 videos, given are the fps of 1"):
        track_boxes(Boxes([1], [0], [box(0)]), [None])
    for fps in (0.0, float("nan")):
        with pytest.raises(DataError, match="fps must be a positive number"):
            OnlineTracker(fps)


@pytest.mark.parametrize(
    "change",
    [
        {"confidence": 1.5},
        {"low_confidence": 0.6},
        {"lost_seconds": float("inf")},
        {"min_iou": 0.0},
        {"min_boxes": 0},
    ],
)
def test_senseless_rules_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(DataError, match=f"tracking: .*{next(iter(change))}"):
        TrackRules(**{**asdict(TrackRules()), **change})


@pytest.mark.parametrize("size", [1e-3, 1e6, 1e18])
def test_boxes_of_any_size_are_tracked(size: float) -> None:
    stream: Stream = [(k, [box(0, 0, size * (1 - 0.18 * k))], [1.0]) for k in range(5)]
    assert tracked([*stream, (9, [box(0, 0, size)], [1.0])])[:5] == [[0]] * 5
