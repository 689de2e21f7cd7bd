"""Draw the figures of docs/study.md, from the example of docs/bring-your-own-embeddings.md.

Run: .venv/bin/python docs/draw_study.py
"""

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import polypcount as pc
from polypcount.evaluation.study_folder import save_study

HERE = Path(__file__).parent.resolve()
VIDEO = "sim-study-7-013"


def main() -> None:
    """Run the example and its study with the coarse grid in a temporary folder, and keep three figures."""
    page = (HERE / "bring-your-own-embeddings.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        names: dict[str, Any] = {}
        for block in blocks[:3]:
            exec(block, names)
        vectors = pc.Embeddings.load("mine-gathered.parquet")
        methods = ["none", "threshold", "ap", "temporal-ap", "time-only", "oracle"]
        study = pc.leave_one_out(vectors, methods, grid="coarse")
        save_study(study, "study", vectors, videos=[VIDEO])
        (timeline,) = Path("study/figures").glob(f"*{VIDEO}-timeline.png")
        (similarities,) = Path("study/figures").glob(f"*{VIDEO}-similarities.png")
        shutil.copy("study/figures/fr-against-fpr.png", HERE / "images" / "study-trade-off.png")
        shutil.copy(timeline, HERE / "images" / "study-timeline.png")
        shutil.copy(similarities, HERE / "images" / "study-similarities.png")
        print(Path("study/summary.md").read_text(encoding="utf-8"))
        os.chdir(HERE)


if __name__ == "__main__":
    main()
