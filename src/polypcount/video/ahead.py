"""Items of an iterator made ahead by a thread, such as frames that are decoded while others are looked at."""

import contextlib
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
_END = object()


def ahead(items: Iterable[Item], most: int = 4) -> Generator[Item, None, None]:
    """The same items in the same order; a thread makes up to `most` of them before they are asked for.

    Nothing is begun before the first item is asked for. What the items raise comes out after the items before it. When
    the iterator is closed or forgotten, the item that is being made is the last, the thread ends, and so does `items`.
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
