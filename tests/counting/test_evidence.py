"""Which frames are looked at, and what is kept of them."""

import numpy as np
import pytest

from polypcount.counting.evidence import RESAMPLES, EvidenceCollector
from polypcount.counting.pictures import DecodedFrame
from polypcount.encoder import load_encoder
from polypcount.tracking import looked_at_step
from polypcount.video import FrameMask


def frame_at(index: int) -> np.ndarray:
    """A frame with a texture of its own."""
    return np.random.default_rng(index).integers(0, 255, (96, 128, 3), np.uint8)


BOX = np.array([40, 30, 90, 80], np.float32)


@pytest.mark.parametrize("boxes", [1, 33, 150])
def test_live_and_whole_file_end_with_the_same_vectors(boxes: int) -> None:
    encoder = load_encoder(threads=1)
    every, few = EvidenceCollector(encoder, pictures=False), EvidenceCollector(encoder, pictures=False)
    for index in range(boxes):
        pixels = DecodedFrame(frame_at(index))
        every.see(7, index, index, BOX, pixels)
        if index % looked_at_step(boxes) == 0:
            few.see(7, index, index, BOX, pixels)
    (one,), (other,) = every.end(7, 0, boxes, boxes), few.end(7, 0, boxes, boxes)
    assert np.array_equal(one.vectors, other.vectors)
    assert one.vectors.shape == (1 + RESAMPLES, encoder.spec.d)
    assert not every._open
    assert one.views == ()
    assert one.frames.tolist() == list(range(0, boxes, looked_at_step(boxes)))
    unmixed = encoder.encode_frames(
        np.stack([DecodedFrame(frame_at(k)).crop(BOX, encoder.spec.preprocessing.crop) for k in one.frames])
    )
    alone = encoder.encode_sequences(unmixed[:, None], np.ones((len(unmixed), 1), bool))
    assert np.allclose(one.frame_vectors, alone, atol=1e-5)


def test_resampled_vectors_lie_about_the_whole_one_and_follow_the_span() -> None:
    encoder = load_encoder(threads=1)
    found = []
    for start in (0, 0, 5):
        collector = EvidenceCollector(encoder, pictures=False)
        for index in range(12):
            collector.see(1, index, index, BOX, DecodedFrame(frame_at(index)))
        found.append(collector.end(1, start, start + 12, 12)[0].vectors)
    assert np.array_equal(found[0], found[1])
    assert np.allclose(found[0][0], found[2][0])
    assert not np.array_equal(found[0][1:], found[2][1:])
    unit = found[0] / np.linalg.norm(found[0], axis=1, keepdims=True)
    assert (unit[1:] @ unit[0] > 0.9).all()
    assert len(np.unique(found[0], axis=0)) > RESAMPLES // 2


def test_views_are_over_time_and_the_whole_frame_is_the_best() -> None:
    collector = EvidenceCollector(load_encoder(threads=1))
    plain = np.full((96, 128, 3), 128, np.uint8)
    for index in range(8):
        collector.see(1, index, 10 + index, BOX, DecodedFrame(frame_at(index) if index == 5 else plain))
    (found,) = collector.end(1, 10, 18, 8)
    assert len(found.views) == 4
    assert [view.frame for view in found.views] == sorted(view.frame for view in found.views)
    assert found.whole is not None
    assert found.whole.frame == 15
    assert (found.whole.width, found.whole.height) == (128, 96)
    assert found.whole.xyxy == (40, 30, 90, 80)
    assert found.views[2].quality == found.whole.quality


def test_what_is_masked_is_not_shown_and_changes_no_vector() -> None:
    import simplejpeg  # type: ignore[import-untyped, unused-ignore]

    encoder = load_encoder(threads=1)
    vectors = []
    for mask in (None, FrameMask(((0, 0, 128, 96),))):
        collector = EvidenceCollector(encoder)
        collector.see(1, 0, 0, BOX, DecodedFrame(frame_at(0), mask))
        (found,) = collector.end(1, 0, 1, 1)
        vectors.append(found.vectors)
    assert np.array_equal(vectors[0], vectors[1])
    for picture in (*found.views, found.whole):
        assert picture is not None
        assert simplejpeg.decode_jpeg(picture.jpeg).max() < 8
