"""Polyps from stills: none twice, and nothing of the frame that they were taken from."""

import logging
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from polypcount.errors import FileError
from polypcount.simulate import list_stills
from polypcount.simulate.mucosa import Patient
from polypcount.simulate.patches import SIDE, Patch
from polypcount.simulate.stills import first_of_each, related, still_polyp

from ..conftest import DATA
from .drawn import STILL_HEIGHT, STILL_WIDTH, Picture, still, write_still, write_stills

KVASIR, POLYPGEN = DATA / "kvasir-seg", DATA / "polypgen-stills"
PATIENT = Patient(np.array([0.84, 0.55, 0.45], np.float32), 0.5, 0.5)


def names(folder: Path) -> list[str]:
    return [Path(found.image).stem for found in list_stills(folder)]


def lifted(folder: Path, colour: Picture, mask: Picture) -> Patch:
    """The patch of a still, by way of its files."""
    return still_polyp(*write_still(folder, "x", colour, mask), PATIENT)


def in_patch(shown: NDArray[np.bool_], mask: Picture) -> NDArray[np.bool_]:
    """Which pixels of the patch, bool[256, 256], show a marked part of the still: a square of twice the polyp's box."""
    y, x = np.nonzero(mask)
    side = 2 * max(np.ptp(x) + 1, np.ptp(y) + 1)
    left, top = (x.min() + x.max() + 1 - side) / 2, (y.min() + y.max() + 1 - side) / 2
    steps = (np.arange(SIDE) + 0.5) / SIDE * side
    rows, columns = np.floor(top + steps).astype(int), np.floor(left + steps).astype(int)
    inside = ((rows >= 0) & (rows < shown.shape[0]))[:, None] & ((columns >= 0) & (columns < shown.shape[1]))
    found = shown[np.clip(rows, 0, shown.shape[0] - 1)[:, None], np.clip(columns, 0, shown.shape[1] - 1)]
    return np.asarray(found & inside)


def test_stills_that_look_nearly_the_same_are_taken_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_stills(tmp_path, 12)
    colour, mask = still(2)
    moved = [np.roll(picture, 1, axis=1) for picture in (colour, mask)]
    write_still(tmp_path, "still 2 a moment later", *moved)
    write_still(tmp_path, "still 99 compressed", (colour // 8) * 8 + 4, mask)
    with caplog.at_level(logging.INFO, "polypcount"):
        assert names(tmp_path) == [f"still {seed}" for seed in range(12)]
    assert "12 of 14 stills are used" in caplog.text


def test_few_pictures_are_compared_too() -> None:
    one, other = np.random.default_rng(0).uniform(0, 255, (2, 300)).astype(np.float32)
    assert first_of_each(np.empty((0, 300), np.float32)) == []
    assert first_of_each(one[None]) == [0]
    assert first_of_each(np.array([one, one + 3])) == [0]
    assert first_of_each(np.array([one, other])) == [0, 1]
    assert first_of_each(np.array([one, other, one])) == [0, 1]
    assert first_of_each(np.array([one, one, one + 3])) == [0]
    assert first_of_each(np.array([one, other, one, one, other, one])) == [0, 1]


def test_stills_without_a_polyp_of_use_are_left_out(tmp_path: Path) -> None:
    write_stills(tmp_path, 3)
    colour, mask = still(7)
    write_still(tmp_path, "marks nothing", colour, np.zeros_like(mask))
    write_still(tmp_path, "fills the picture", still(8)[0], np.full_like(mask, 255))
    tiny = np.zeros_like(mask)
    tiny[50:70, 50:70] = 255
    write_still(tmp_path, "is tiny", still(9)[0], tiny)
    Image.fromarray(still(10)[0]).save(tmp_path / "images" / "has no mask.png")
    assert names(tmp_path) == ["still 0", "still 1", "still 2"]


def test_a_still_that_cannot_be_animated_is_left_out_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_stills(tmp_path, 2)
    colour, mask = still(7)
    write_still(tmp_path, "z green", (colour * [0.3, 1.0, 0.3]).astype(np.uint8), mask)
    below = np.arange(STILL_HEIGHT)[:, None, None] > 50
    write_still(tmp_path, "z beside the view", np.where(below, 3, still(8)[0]).astype(np.uint8), mask)
    write_still(tmp_path, "z of another size", still(9)[0][:150], mask)
    with caplog.at_level(logging.INFO, "polypcount"):
        assert names(tmp_path) == ["still 0", "still 1"]
    assert "2 of 5 stills are used: 3 are unusable" in caplog.text


def test_names_of_polypgen_say_which_stills_are_of_one_polyp() -> None:
    rng = np.random.default_rng(0)
    one, other, third = rng.uniform(0, 255, (3, 300))
    stills = {
        "176OLCV1_100H0003": one,
        "176OLCV1_100H0009": other,  # the same case, whatever it looks like
        "177OLCV1_100H0003": third,
        "C3_EndoCV2021_0012": one,
        "C3_EndoCV2021_0014": one + rng.normal(0, 40, 300),  # two further, and alike
        "C3_EndoCV2021_0017": one + rng.normal(0, 40, 300),  # and again
        "C3_EndoCV2021_0018": third,  # a neighbour that looks different
        "C3_EndoCV2021_0030": one,  # far away
        "EndoCV2021_0013": one,  # another series
        "image_0012": one,
        "image_0013": one,  # numbers of other sets say nothing
        **{f"other {k}": rng.uniform(0, 255, 300) for k in range(40)},
    }
    group = related(list(stills), np.array(list(stills.values()), np.float32)).tolist()
    assert group[:12] == [0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8]
    assert related([], np.empty((0, 300), np.float32)).tolist() == []


def test_stills_of_polypgen(tmp_path: Path) -> None:
    if not POLYPGEN.is_dir():
        pytest.skip(f"PolypGen is not at {POLYPGEN}")
    chosen = ["EndoCV2021_001036", "EndoCV2021_C5_50000007", "C3_EndoCV2021_00100", "C3_EndoCV2021_00331"]
    for kind, suffix in (("images", "jpg"), ("masks", "png")):
        (tmp_path / kind).mkdir()
        for name in chosen:
            (tmp_path / kind / f"{name}.{suffix}").symlink_to(POLYPGEN / kind / f"{name}.{suffix}")
    found = list_stills(tmp_path)
    assert not {Path(one.image).stem for one in found} & set(chosen[:2]), "hardly anything of their polyps can be seen"
    for one in found:
        still_polyp(Path(one.image), Path(one.mask), PATIENT)


def test_stills_beside_their_masks(tmp_path: Path) -> None:
    write_stills(tmp_path, 3)
    for image in (tmp_path / "images").iterdir():
        image.rename(tmp_path / image.name)
    (tmp_path / "images").rmdir()
    assert names(tmp_path) == ["still 0", "still 1", "still 2"]


def test_folders_without_stills_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="has no stills with masks"):
        list_stills(tmp_path)
    with pytest.raises(FileError, match="nowhere cannot be "):
        list_stills(tmp_path / "nowhere")
    write_still(tmp_path, "x", *still(0))
    (tmp_path / "images" / "x.png").write_bytes(b"no image")
    with pytest.raises(FileError, match=r"x\.png is not a readable") as caught:
        list_stills(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.full((80, 100), 255, np.uint8), r"masks/x\.png must have the size of .*images/x\.png"),
        (np.zeros((STILL_HEIGHT, STILL_WIDTH), np.uint8), r"masks/x\.png marks nothing; leave this still out"),
    ],
    ids=["another size", "empty"],
)
def test_bad_masks_are_refused_in_one_line(tmp_path: Path, mask: Picture, message: str) -> None:
    with pytest.raises(FileError, match=message) as caught:
        lifted(tmp_path, still(0)[0], mask)
    assert "\n" not in str(caught.value)


def test_the_patch_shows_the_largest_polyp_and_what_is_around_it(tmp_path: Path) -> None:
    colour, mask = still(3, middle=(100, 80))
    with_speck = mask.copy()
    with_speck[10:20, 10:20] = 255
    patch = lifted(tmp_path, colour, with_speck)
    polyp = patch.levels[0][..., 6] > 127
    assert np.mean(polyp != in_patch(mask > 0, mask)) < 0.01
    assert np.ptp(patch.outline, axis=0) == pytest.approx([0.5, 0.5], abs=0.02), "half of the side is polyp"
    assert (patch.levels[0][..., 3][polyp] == 255).all()


def test_nothing_is_there_beyond_the_edge_of_the_still(tmp_path: Path) -> None:
    """Above all not the polyp a second time, as by mirroring."""
    colour, mask = still(3, middle=(33, 80))
    patch = lifted(tmp_path, colour, mask)
    outside = ~in_patch(np.ones_like(mask, bool), mask)
    assert outside.mean() > 0.1
    assert (patch.levels[0][..., 3][outside] == 0).all()


def test_black_corners_and_insets_are_left_open(tmp_path: Path) -> None:
    colour, mask = still(4, middle=(60, 100))
    y, x = np.mgrid[:STILL_HEIGHT, :STILL_WIDTH]
    corner = x + (STILL_HEIGHT - y) < 50
    inset = (x > 90) & (y > 125)
    colour[corner | inset] = 4
    picture = Image.fromarray(colour)
    draw = ImageDraw.Draw(picture)
    draw.text((96, 130), "12:03 A7", fill=(250, 250, 250))  # on black
    draw.rectangle((92, 60, 106, 72), fill=(20, 200, 40))  # a green mark on the tissue
    patch = lifted(tmp_path, np.asarray(picture), mask)
    mark = (x >= 92) & (x <= 106) & (y >= 60) & (y <= 72)
    for closed in (corner, inset, mark):
        there = in_patch(closed, mask)
        assert there.sum() > 300
        assert (patch.levels[0][..., 3][there] == 0).all()
    tissue = in_patch(mask > 0, mask)
    assert patch.levels[0][..., 3][tissue].mean() > 200, "and the polyp is not"


def test_white_letters_and_highlights_on_the_tissue_are_filled(tmp_path: Path) -> None:
    colour, mask = still(5)
    picture = Image.fromarray(colour)
    draw = ImageDraw.Draw(picture)
    draw.text((66, 52), "12:03", fill=(255, 255, 255))
    draw.ellipse((100, 75, 105, 79), fill=(255, 250, 250))
    marked = np.asarray(picture)
    letters = in_patch((marked != colour).any(axis=2), mask)
    plain, found = (lifted(tmp_path, still_, mask).levels[0].astype(int) for still_ in (colour, marked))
    assert letters.sum() > 300
    apart = np.abs(plain[..., :3] - found[..., :3]).max(axis=2)[letters]
    assert apart.mean() < 12
    assert apart.max() < 50
    kept = np.asarray(marked.astype(int) - colour).max()
    assert kept > 100, "they stood out before"


def test_a_large_white_polyp_is_no_highlight(tmp_path: Path) -> None:
    colour, mask = still(6)
    colour[mask > 0] = (225, 205, 200)
    patch = lifted(tmp_path, colour, mask)
    polyp = patch.levels[0][..., 6] > 200
    around = (patch.levels[0][..., 6] < 20) & (patch.levels[0][..., 3] > 200)
    means = [patch.levels[0][..., :3][part].mean() for part in (polyp, around)]
    assert means[0] > means[1] + 20


def test_a_polyp_takes_on_the_colours_of_the_patient(tmp_path: Path) -> None:
    patients = [PATIENT, Patient(np.array([0.84, 0.62, 0.38], np.float32), 0.5, 0.5)]

    def tint_of(colour: NDArray[np.floating]) -> NDArray[np.float64]:
        return np.log(np.asarray(colour[:2] / colour[1:], np.float64))

    # Within what is evened out; of a much darker or more deeply coloured still some of it stays.
    for tint in ((1.3, 1.0, 0.9), (1.1, 1.0, 1.2)):
        colour, mask = still(7, tint=tint)
        paths = write_still(tmp_path, "x", colour, mask)
        y, x = np.mgrid[:STILL_HEIGHT, :STILL_WIDTH]
        near = (np.hypot(x - 100, y - 80) < 55) & (mask == 0)
        for patient in patients:
            level = still_polyp(*paths, patient).levels[0].astype(float)
            around = (level[..., 6] < 20) & (level[..., 3] > 128)
            before, after, wanted = map(
                tint_of, (colour[near].mean(axis=0), level[around][:, :3].mean(axis=0), patient.colour)
            )
            assert np.linalg.norm(after - wanted) < 0.5 * np.linalg.norm(before - wanted)


def test_stills_of_kvasir_seg(tmp_path: Path) -> None:
    if not KVASIR.is_dir():
        pytest.skip(f"Kvasir-SEG is not at {KVASIR}")
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
        for file in sorted((KVASIR / kind).rglob("image_000[0-2]*.*")):
            (tmp_path / kind / file.name).symlink_to(file)
    first = min((tmp_path / "images").iterdir())
    # A moment later: cut off by a few pixels and compressed anew.
    for kind, name in (("images", "z.jpg"), ("masks", "z.png")):
        with Image.open(next((tmp_path / kind).glob(f"{first.stem}.*"))) as picture:
            picture.crop((4, 3, picture.width, picture.height)).save(tmp_path / kind / name)
    found = list_stills(tmp_path)
    assert 20 <= len(found) <= 29
    assert "z.jpg" not in [Path(one.image).name for one in found]
    for one in found[:8]:
        level = still_polyp(Path(one.image), Path(one.mask), PATIENT).levels[0]
        opaque = level[..., 3] > 60
        black, green = level[..., :3].max(axis=2) < 26, level[..., 1] > 1.15 * level[..., 0].astype(float)
        assert (black & opaque).mean() < 0.01
        assert (green & opaque).mean() < 0.01
        assert opaque[level[..., 6] > 127].mean() > 0.8
