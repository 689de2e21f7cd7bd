"""XML from anywhere: read piece by piece, without a DTD, entities or anything from outside the file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from polypcount.errors import FileError

_DEEPEST = 64
_LONGEST_TEXT = 1 << 20
_CHUNK = 1 << 20


@dataclass
class Element:
    """An element: its name, attributes, text without surrounding space, children, and line in the file."""

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list["Element"] = field(default_factory=list)

    def find(self, tag: str) -> "Element | None":
        """The first child of this name."""
        return next((child for child in self.children if child.tag == tag), None)

    def find_all(self, tag: str) -> list["Element"]:
        """All children of this name."""
        return [child for child in self.children if child.tag == tag]

    def text_of(self, *path: str) -> str | None:
        """Text of the descendant along this path of names; None where there is none."""
        element: Element | None = self
        for tag in path:
            element = element.find(tag) if element else None
        return element.text if element else None


def parse(data: bytes, name: object) -> Element:
    """The root element of a small document. Anything that is not plain, well-formed XML is a `FileError`."""
    (root,) = elements(data, name, tags=None)
    return root


def elements(data: bytes, name: object, tags: frozenset[str] | None, root: str | None = None) -> Iterator[Element]:
    """Elements with these tags, each as soon as it ends, with its content. Everything outside is dropped.

    Args:
        data: The document.
        name: Name of the document, for messages.
        tags: None gives the root element alone.
        root: Tag that the root element must have; None takes any.
    """
    builder = _Builder(name, tags, root)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: builder.start(tag, attributes, parser.CurrentLineNumber)
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.StartDoctypeDeclHandler = builder.refuse_doctype
    try:
        for start in range(0, len(data), _CHUNK):
            parser.Parse(data[start : start + _CHUNK], False)
            yield from builder.finished()
        parser.Parse(b"", True)
    except expat.ExpatError as problem:
        raise FileError(f"{name}:{problem.lineno}: not well-formed XML: {expat.ErrorString(problem.code)}") from None
    except (LookupError, ValueError) as problem:  # an encoding that Python does not know
        raise FileError(f"{name}: not readable as XML: {problem}") from None
    yield from builder.finished()


class _Builder:
    def __init__(self, name: object, tags: frozenset[str] | None, root: str | None) -> None:
        self._name, self._tags, self._root = name, tags, root
        self._depth = 0
        self._open: list[Element] = []
        self._done: list[Element] = []

    def start(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self._depth += 1
        if self._depth == 1 and self._root is not None and tag != self._root:
            raise FileError(f"{self._name}:{line}: the root element must be {self._root}, found {tag}")
        if self._depth > _DEEPEST:
            raise FileError(f"{self._name}:{line}: elements nested more than {_DEEPEST} deep")
        if self._open or self._tags is None or tag in self._tags:
            element = Element(tag, attributes, line)
            if self._open:
                self._open[-1].children.append(element)
            self._open.append(element)

    def end(self, _tag: str) -> None:
        self._depth -= 1
        if self._open:
            element = self._open.pop()
            element.text = element.text.strip()
            if not self._open:
                self._done.append(element)

    def characters(self, text: str) -> None:
        if self._open:
            element = self._open[-1]
            if len(element.text) + len(text) > _LONGEST_TEXT:
                raise FileError(f"{self._name}:{element.line}: the text of {element.tag} is too long")
            element.text += text

    def refuse_doctype(self, *_: object) -> None:
        raise FileError(f"{self._name}: a document type declaration is not allowed, since it could define entities")

    def finished(self) -> Iterator[Element]:
        done, self._done = self._done, []
        yield from done
