"""Draw docs/images/detector-curves.svg: precision and false alarms of the bundled detector, by recall.

Run: .venv/bin/python docs/draw_detector.py
"""

import json
from pathlib import Path

from matplotlib.figure import Figure

from polypcount.detection.detector_file import BUNDLED, DESCRIPTION, find_model
from polypcount.evaluation.figures import save_figure

NAMES = {"kvasir": "Kvasir-SEG", "polypgen": "PolypGen", "cvc": "CVC-ClinicDB 1-14"}


def main() -> None:
    """Draw both curves of each dataset; a dot marks the threshold."""
    _, model = find_model(BUNDLED)
    described = json.loads(model.with_name(DESCRIPTION).read_text())
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, (key, name) in enumerate(NAMES.items()):
        own, colour = described["figures"][key], f"C{number}"
        curve = own["curve"]
        left.plot(curve["recall"], curve["precision"], color=colour, label=f"{name}, AP50 {own['ap50']['value']:.2f}")
        left.plot(own["recall"]["value"], own["precision"]["value"], "o", color=colour)
        right.plot(curve["false_alarms"], curve["recall"], color=colour, label=name)
        right.plot(own["false_alarms"]["value"], own["recall"]["value"], "o", color=colour)
    left.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    right.set(xlabel="false boxes an image", ylabel="recall", xlim=(0, 1), ylim=(0, 1.02))
    for axes in (left, right):
        axes.grid(color="0.9")
    left.legend(fontsize=8, loc="lower left")
    save_figure(figure, Path(__file__).parent / "images" / "detector-curves.svg")


if __name__ == "__main__":
    main()
