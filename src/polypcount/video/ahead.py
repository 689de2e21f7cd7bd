"""Items of an iterator, made ahead by a thread: frames are decoded while earlier ones are used."""

import contextlib
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
_END = object()


def ahead(items: Iterable[Item], most: int = 4) -> Generator[Item, None, None]:
    """The same items in the same order; a thread makes up to `most` of them before they are asked for.

    The thread starts with the first item that is asked for. An error of `items` is raised after the items before it.
    When the iterator is closed or garbage-collected, the thread finishes the current item and ends, and `items` is
    closed.
    """
    source = iter(items)
    with contextlib.ExitStack() as ending:
        if callable(close := getattr(source, "close", None)):
            ending.callback(close)
        # One thread, so the calls of next() are done one by one and in order.
        thread = ThreadPoolExecutor(1, "ahead")
        ending.callback(thread.shutdown, cancel_futures=True)
        coming = deque(thread.submit(next, source, _END) for _ in range(most))
        while (item := coming.popleft().result()) is not _END:
            coming.append(thread.submit(next, source, _END))
            yield item  # type: ignore[misc]
