"""The package as a whole: one name for one thing, and public names that are what the documentation uses."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import polypcount

PACKAGE = Path(polypcount.__file__).parent
ROOT = Path(__file__).parents[1]


def test_no_two_public_classes_share_a_name() -> None:
    files = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}


def test_public_names_load_when_used() -> None:
    for name in polypcount.__all__:
        assert getattr(polypcount, name) is not None
    assert set(polypcount.__all__) <= set(dir(polypcount))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = polypcount.nonsense


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name
)
def test_documentation_uses_public_names(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names = set(re.findall(r"\bpc\.([A-Za-z_]\w*)", text))
    assert names - set(polypcount.__all__) == set()
