"""How long `polypcount --help` takes beyond starting Python, measured turn by turn.

Run: .venv/bin/python benchmarks/start.py
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 15


def seconds(*command: str) -> float:
    """Wall time of a command."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Print the difference in seconds."""
    program = str(Path(sys.executable).with_name("polypcount"))
    seconds(program, "--help")
    differences = [seconds(program, "--help") - seconds(sys.executable, "-c", "pass") for _ in range(ROUNDS)]
    print(
        f"polypcount --help minus python -c pass: median {statistics.median(differences):.2f} s, "
        f"highest {max(differences):.2f} s of {ROUNDS}"
    )


if __name__ == "__main__":
    main()
