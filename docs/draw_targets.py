"""Draw docs/images/targets.svg, the pair targets of the three ways to learn.

Run: .venv/bin/python docs/draw_targets.py
"""

from pathlib import Path

from polypcount.evaluation.figures import save_figure
from polypcount.training.pictures import draw_targets

if __name__ == "__main__":
    save_figure(draw_targets(), Path(__file__).parent / "images" / "targets.svg")
