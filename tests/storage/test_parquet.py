"""Parquet files from anywhere: what a footer claims, and damaged footers."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polypcount.errors import DataError
from polypcount.storage.parquet import read_columns
from polypcount.storage.parquet_footer import values_of_chunks

_READ_ALL = """
import sys
from pathlib import Path
from polypcount.errors import DataError
from polypcount.storage.parquet import BROKEN_PARQUET, read_columns

good, copy = Path(sys.argv[1]), Path(sys.argv[2])
data = good.read_bytes()
footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
for at in range(footer, len(data) - 8):
    for value in (data[at] ^ 1, data[at] ^ 16, 0xFF):
        copy.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
        try:
            read_columns(copy, ["n", "v"], ["t"])
        except (DataError, *BROKEN_PARQUET, KeyError):
            pass
print("done")
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    table = pa.table({"n": [1, 2, 3, 4, 5], "t": list("abcde"), "v": [[0.5], [], [1.0, 2.0], None, [3.0] * 20]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    return tmp_path / "a.parquet"


def test_values_are_those_that_pyarrow_gives(written: Path) -> None:
    with pq.ParquetFile(written) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        expected = [[group.column(number).num_values for number in range(group.num_columns)] for group in groups]
    assert values_of_chunks(written) == expected == [[2, 2, 2], [2, 2, 3], [1, 1, 20]]


def test_no_damaged_byte_of_the_footer_ends_the_process(written: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _READ_ALL, str(written), str(tmp_path / "b.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_footer_of_no_known_kind_is_refused(written: Path, tmp_path: Path) -> None:
    data = written.read_bytes()
    (tmp_path / "b.parquet").write_bytes(data[:-9] + b"\x1f" + data[-8:])
    with pytest.raises((DataError, OSError)):
        read_columns(tmp_path / "b.parquet", ["n"], [])
    (tmp_path / "c.parquet").write_bytes(b"PAR1" + b"\x1e" * 40 + (40).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DataError, match="its footer is damaged"):
        values_of_chunks(tmp_path / "c.parquet")


def test_a_list_that_claims_more_than_the_footer_holds_ends_at_once(tmp_path: Path) -> None:
    footer = bytes([0x19, 0xF7, *[0xFF] * 8, 0x3F])  # field 1: a list of 2**62 fractions
    (tmp_path / "d.parquet").write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DataError, match="footer is damaged"):
        values_of_chunks(tmp_path / "d.parquet")
