"""What comes into view where no polyp is: folds, liquid, foam, instruments, and washing.

A recording shows no polyp for most of its time. That time has to be as varied as the rest, or a detector is tested on
an empty tube.
"""

from dataclasses import dataclass

import numpy as np

from polypcount.simulate.appearance import MIDDLE, QUICK, SLOW, Difficulty, Values, tool_shape
from polypcount.simulate.noise import Drifts, Float32

_COLOURS = ((0.55, 0.42, 0.10), (0.40, 0.33, 0.08), (0.36, 0.22, 0.06), (0.62, 0.56, 0.38))  # of liquids, as light
_FOAM_SECONDS = 6.0
_MOST_DROPS = 70


@dataclass(frozen=True, eq=False)
class Views:
    """What is there at n times; lengths are in heights of the frame.

    Attributes:
        liquid: float64[n, 3]: direction in which it lies, distance of its edge from the middle, how murky it is. None
            is there if it is not murky.
        folds: float64[n, 2, 3]: for each of two folds its direction, the distance of its edge from the middle, and its
            thickness. A fold whose edge is beyond the frame is not there.
        tool: float64[n, 3]: above 0 if an instrument is there; x and y of its tip.
        foam: float64[n, 3]: how much, none below 0; x and y of its middle.
        wash: float64[n, 3]: strength of the jet, none below 0; x and y of where it hits the wall.
    """

    liquid: Values
    folds: Values
    tool: Values
    foam: Values
    wash: Values


class Surroundings:
    """What comes into view during a procedure of so many seconds."""

    def __init__(self, seconds: float, difficulty: Difficulty, rng: np.random.Generator) -> None:
        self._difficulty, self._seed = difficulty, int(rng.integers(2**31))
        self.colour = np.array(_COLOURS[int(rng.integers(len(_COLOURS)))]) * rng.uniform(0.7, 1.1)
        self.tool_shape = tool_shape(rng)
        self.fold_places = rng.uniform(0, 1, 2)
        self._fold_angle = rng.uniform(0, 2 * np.pi)
        self._murky = rng.uniform(0.35, 0.9)
        come_and_go = (0.1, 1, 0.8)
        self._drifts = Drifts(
            seconds,
            (QUICK, MIDDLE, SLOW),
            {
                **dict.fromkeys(("liquid", "foam", "wash"), come_and_go),
                **dict.fromkeys(("tool", "fold", "second fold"), (0.2, 1, 0.6)),
                **dict.fromkeys(("down", "turn"), (0.05, 0.5, 1)),
                **dict.fromkeys(("tool x", "tool y", "foam x", "foam y"), (0.5, 1, 0.5)),
            },
            rng,
        )

    def at(self, seconds: Values) -> Views:
        """What is there at these times."""
        now, difficulty = self._drifts.at(seconds), self._difficulty
        none = np.full(len(seconds), -1.0)
        level = now["liquid"] - 0.5
        murky = self._murky * np.clip(3 * level, 0, 1) * min(difficulty.dirt, 1.5)
        down = np.pi / 2 + 0.3 * now["down"]
        edges = []
        for beside, name in ((0.0, "fold"), (2.5, "second fold")):
            distance = 0.85 - 0.35 * now[name] if difficulty.occlusion > 0 else np.full(len(seconds), 2.0)
            angle = self._fold_angle + beside + 1.5 * now["turn"]
            edges.append(np.column_stack([angle, np.maximum(distance, 0.08), 0.1 + 0.1 * now[name] ** 2]))
        tool = now["tool"] - 2.0 + 0.6 * difficulty.occlusion if difficulty.occlusion > 0 else none
        foam = now["foam"] * difficulty.dirt - 0.7 if difficulty.dirt > 0 else none
        wash = now["wash"] * difficulty.dirt - 1.7 if difficulty.dirt > 0 else none
        hit = [0.25 * now["tool x"], 0.25 * now["tool y"]]
        return Views(
            liquid=np.column_stack([down, 0.42 - 0.22 * np.clip(level, 0, 1.5), murky]),
            folds=np.stack(edges, axis=1),
            tool=np.column_stack([tool, *hit]),
            foam=np.column_stack([foam, 0.3 * now["foam x"], 0.25 * now["foam y"]]),
            wash=np.column_stack([wash, *hit]),
        )

    def bubbles(self, seconds: float, views: Views) -> Float32:
        """float32[n, 4], see `layers.paint_bubbles`, of the foam and of the drops of a jet, at the first time."""
        parts = []
        foam, x, y = views.foam[0]
        if foam > 0:
            rng = np.random.default_rng([self._seed, int(seconds / _FOAM_SECONDS)])
            count = int(min(10 + 60 * foam, 120))
            drifted = rng.normal(0, 0.01, (count, 2)) * (seconds % _FOAM_SECONDS)
            centres = rng.normal([x, y], 0.16, (count, 2)) + drifted
            radius = np.minimum(rng.lognormal(np.log(0.014), 0.6, count), 0.08)
            parts.append(np.column_stack([centres, radius, rng.uniform(0, 0.35, count)]))
        wash, x, y = views.wash[0]
        if wash > 0:
            # The jet comes from beside the lens; its drops are new in every frame.
            rng = np.random.default_rng([self._seed, 1, round(seconds * 1000)])
            along = rng.uniform(0, 1, (_MOST_DROPS, 1))
            centres = np.array([0.25, 0.62]) * (1 - along) + np.array([x, y]) * along
            centres = (
                centres
                + rng.normal(0, 0.012, (_MOST_DROPS, 2))
                + rng.normal(0, 0.09, (_MOST_DROPS, 2)) * (along > 0.85)
            )
            radius = 0.022 - 0.013 * along[:, 0] * rng.uniform(0.5, 1, _MOST_DROPS)
            parts.append(np.column_stack([centres, radius, rng.uniform(0.1, 0.6, _MOST_DROPS)]))
        return np.concatenate([np.empty((0, 4)), *parts]).astype(np.float32)
