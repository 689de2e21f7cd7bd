"""What is compared: names, encoders, and the numbers of the paper."""

import pytest

from polypcount.clustering import METHODS
from polypcount.errors import DataError
from polypcount.reproduce.encoders import recipe_for
from polypcount.reproduce.rows import ENCODERS, NESTED, ROWS, TABLES, choose_rows, encoders_of
from polypcount.training.recipe import PolypViewSettings


def test_every_line_has_a_row_and_every_row_an_encoder_and_a_method() -> None:
    for table in TABLES.values():
        assert all(line.row in ROWS for line in table.lines)
    for row in ROWS.values():
        assert row.encoder is None or row.encoder in ENCODERS
        assert row.method in (*METHODS, NESTED)
    assert {row.encoder for row in ROWS.values()} == {None, *ENCODERS}, "no encoder is trained for nothing"
    assert {line.row for table in TABLES.values() for line in table.lines} == set(ROWS), "no row is run for nothing"


def test_views_and_polyps_fill_a_batch_of_56() -> None:
    found = {}
    for name in ("views-2", "views-4", "views-7", "temporal", "views-28"):
        sampler = recipe_for(ENCODERS[name], None, ()).sampler
        assert isinstance(sampler, PolypViewSettings)
        found[sampler.views] = sampler.polyps
    assert found == {2: 28, 4: 14, 7: 8, 14: 4, 28: 2}


def test_changes_go_to_all_recipes_and_rows_keep_their_own() -> None:
    recipe = recipe_for(ENCODERS["views-7"], 5, ["sampler.views=3", "crop.size=64"], ["epochs=2"])
    assert (recipe.seed, recipe.epochs, recipe.crop.size) == (5, 2, 64)
    assert isinstance(recipe.sampler, PolypViewSettings)
    assert recipe.sampler.views == 7


def test_published_ratios() -> None:
    """The gains that the paper states in its text."""
    known = {line.row: line.published for table in TABLES.values() for line in table.lines if line.published}
    fr = {name: published.fr for name, published in known.items()}
    assert fr["mve"] / fr["ours"] == pytest.approx(3.6, abs=0.05)
    assert fr["sfe"] / fr["ours"] == pytest.approx(4.0, abs=0.05)
    assert fr["ours-ap"] / fr["ours"] == pytest.approx(1.80, abs=0.01)
    assert fr["supervised"] / fr["ours"] == pytest.approx(1.71, abs=0.01)
    assert len(known) == 13, "ours is there as the crop of 5 times the box, too"


def test_rows_are_chosen_by_name_or_by_table() -> None:
    assert [row.name for row in choose_rows(["tpc", " ours "])] == ["tpc", "ours"]
    assert [row.name for row in choose_rows(["ours", "tpc", "ours"])] == ["tpc", "ours"]
    default = {row.name for row in choose_rows([""])}
    assert set(ROWS) - default == {f"crop-{scale}" for scale in (1, 2, 3, 5, 10)}, "each needs its own crops"
    assert {row.name for row in choose_rows(["crop-scale"])} == set(ROWS) - default
    assert {row.name for row in choose_rows(["table-3", "none"])} == {
        *("none", "ours", "ours-ap", "self-supervised", "supervised")
    }
    with pytest.raises(DataError, match=r"there is no row 'our'; there are: none, sfe, .*table-4"):
        choose_rows(["our"])


def test_encoders_follow_from_rows() -> None:
    assert [encoder.name for encoder in encoders_of(choose_rows(["ours", "ours-ap", "ours+"]))] == ["temporal"]
    assert encoders_of(choose_rows(["none", "time-only"])) == []
    assert [encoder.name for encoder in encoders_of(choose_rows(["table-1"]))] == ["sfe", "mve", "tpc", "temporal"]


def test_the_crop_of_ours_is_not_another_encoder() -> None:
    for common, same in (((), "crop-5"), (("crop.scale=2",), "crop-2")):
        ours = recipe_for(ENCODERS["temporal"], 0, common)
        alike = [scale for scale in (1, 2, 3, 5, 10) if recipe_for(ENCODERS[f"crop-{scale}"], 0, common) == ours]
        assert [f"crop-{scale}" for scale in alike] == [same]
        assert ENCODERS[same].like == "temporal"
