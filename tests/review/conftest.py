"""What the tests of the review share."""

from pathlib import Path

import pytest

from tests.review.results import copy_of_result


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """The folder of a count, a copy of its own for each test; see `results.counted`."""
    return copy_of_result(tmp_path / "result")
