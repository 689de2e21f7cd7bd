"""Items are made ahead by a thread that never outlives them."""

import threading
import time
from collections.abc import Iterator

import pytest

from polypcount.errors import FileError
from polypcount.video.ahead import ahead


def threads() -> int:
    return sum(thread.name.startswith("ahead") for thread in threading.enumerate())


class Source:
    """Counts what was asked of it, and whether it was closed."""

    def __init__(self, count: int, fails_at: int | None = None) -> None:
        self.made, self.closed, self.maker = 0, False, ""
        self._count, self._fails_at = count, fails_at

    def __iter__(self) -> Iterator[int]:
        try:
            for number in range(self._count):
                if number == self._fails_at:
                    raise FileError(f"item {number} cannot be read")
                self.made, self.maker = number + 1, threading.current_thread().name
                yield number
        finally:
            self.closed = True


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("most", [1, 4])
def test_same_items_in_order(count: int, most: int) -> None:
    source = Source(count)
    assert list(ahead(source, most)) == list(range(count))
    assert source.closed
    assert threads() == 0


def test_nothing_is_begun_before_the_first_item_is_asked_for() -> None:
    source = Source(5)
    items = ahead(source)
    assert source.made == 0
    assert threads() == 0
    items.close()
    assert source.made == 0


def test_a_thread_makes_the_next_items_and_no_more() -> None:
    source = Source(50)
    items = ahead(source, 3)
    for number in range(10):
        assert next(items) == number
        deadline = time.monotonic() + 20
        while source.made < number + 4 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.002)
        assert source.made == number + 4  # this one, and three that wait
    assert source.maker.startswith("ahead")
    items.close()


def test_an_error_comes_after_the_items_before_it() -> None:
    source = Source(50, fails_at=5)
    items = ahead(source)
    for expected in range(5):
        time.sleep(0.01)  # the error is there long before
        assert next(items) == expected
    with pytest.raises(FileError, match="item 5 cannot be read"):
        next(items)
    assert source.closed
    assert threads() == 0
    assert next(items, None) is None


@pytest.mark.parametrize("taken", [1, 7])
def test_closing_ends_the_thread_and_the_source(taken: int) -> None:
    source = Source(1000)
    items = ahead(source)
    for _ in range(taken):
        next(items)
    items.close()
    assert source.closed
    assert threads() == 0
    assert source.made <= taken + 4


def test_forgetting_it_ends_the_thread_as_well() -> None:
    source = Source(1000)
    items = ahead(source)
    next(items)
    del items
    assert source.closed
    assert threads() == 0


def test_an_iterator_that_cannot_be_closed() -> None:
    assert list(ahead([1, 2, 3])) == [1, 2, 3]
    assert list(ahead(iter(()))) == []
