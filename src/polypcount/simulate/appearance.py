"""How a polyp and its image look at a time: a state that drifts, and changes at events.

Everything drifts on several scales of time, from a second to minutes. So two tracklets that are near in time look more
similar than two that are far apart, as in a real procedure. The view turns, and light and focus change. The polyp is
washed and gets dirty. Folds and instruments move in. At the end it is lifted and bleeds.
"""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import DataError
from polypcount.simulate.noise import Drifts, Float32

Values = NDArray[np.float64]
COPIES, ALONG = 3.0, 0.7  # copies of the wall around the lumen; length of wall for each e-fold of the distance from it
QUICK, MIDDLE, SLOW = 1.5, 12.0, 100.0  # periods of the curves of a drift, in seconds


@dataclass(frozen=True)
class Difficulty:
    """How hard it is to recognise a polyp: the strength of each effect, from 0 to 3.

    0 is none, and 1 is the study preset.

    Attributes:
        occlusion: Folds and instruments in front of the polyp.
        dirt: Stool, mucus, bubbles.
        blur: Out of focus, and motion.
        light: Exposure, its direction and colour.
        view: Turn and tilt.
        events: Narrow-band imaging, injection, blood.
    """

    occlusion: float = 1.0
    dirt: float = 1.0
    blur: float = 1.0
    light: float = 1.0
    view: float = 1.0
    events: float = 1.0

    def __post_init__(self) -> None:
        for name, strength in asdict(self).items():
            if not 0 <= strength <= 3:
                raise DataError(f"difficulty: {name} must be from 0 to 3, found {strength}")


@dataclass(frozen=True, eq=False)
class FrameLooks:
    """What is common to a whole frame, for n frames.

    Attributes:
        light: float32[n, 6], see `layers.py`.
        wall: float32[n, 8], see `layers.paint_wall`.
        camera: float32[n, 10], see `camera.develop`.
        blur: float64[n, 3], out of focus, and streak along x and y, in heights of the frame.
    """

    light: Float32
    wall: Float32
    camera: Float32
    blur: Values


class FrameState:
    """Lamp, camera and position in the colon.

    Args:
        seconds: Length of the procedure.
        aspect: Width of the frame by its height.
        difficulty: Strength of what happens.
        rng: Source of everything random.
    """

    def __init__(self, seconds: float, aspect: float, difficulty: Difficulty, rng: np.random.Generator) -> None:
        self._difficulty = difficulty
        self._balance = 1 + 0.05 * rng.standard_normal(3)
        self._falloff, self._sharp = rng.uniform(0.8, 2.0), rng.uniform(0.35, 0.8)
        corner = (aspect / 2 * rng.uniform(0.97, 1.02), rng.uniform(0.485, 0.51), rng.uniform(1.6, 1.9))
        self._steady = (rng.uniform(1.0, 4.0), *corner, rng.uniform(0.95, 1.1))
        self._shape = (COPIES, ALONG, *rng.uniform(-1, 1, 2))
        even, slow = (0.3, 1.0, 1.0), (0.1, 0.6, 1.0)
        self._drifts = Drifts(
            seconds,
            (QUICK, MIDDLE, SLOW),
            {
                "exposure": (0.5, 1, 1),
                "focus": (1, 0.8, 0.4),
                "shake": (1, 0.6, 0.2),
                **dict.fromkeys(("lean x", "lean y", "lamp x", "lamp y"), even),
                **dict.fromkeys(("red", "green", "blue", "turn", "forward"), slow),
                **dict.fromkeys(("lumen x", "lumen y"), (0.4, 1, 0.6)),
                **dict.fromkeys(("streak x", "streak y"), (1, 0.3, 0)),
                "narrow": (0, 1, 1),
                "glare": (0.8, 1, 0.3),
                "touch": (0.8, 1, 0.3),
            },
            rng,
        )

    def at(self, seconds: Values) -> FrameLooks:
        """How frames at these times look."""
        now, n, light = self._drifts.at(seconds), len(seconds), self._difficulty.light
        lamp = 0.12 * (0.3 + 0.7 * light)
        # Now and then the light is far too strong, or the lens comes so near to the wall that all is red.
        glare = 0.9 * light * np.maximum(now["glare"] - 1.7, 0)
        touch = np.clip(1.3 * min(light, 1.5) * (now["touch"] - 2.1), 0, 0.75)
        exposure = 1.25 * np.exp(0.22 * light * now["exposure"]) * (1 + glare)
        lights = [exposure, np.full(n, self._falloff), 0.3 * light * now["lean x"], 0.3 * light * now["lean y"]]
        gains = [
            base * np.exp(0.05 * light * now[name])
            for base, name in zip(self._balance, ("red", "green", "blue"), strict=True)
        ]
        narrow = (now["narrow"] > 3.5 - 1.9 * min(self._difficulty.events, 1.5)) * (
            0.92 if self._difficulty.events > 0 else 0
        )
        forward = 0.9 * now["forward"] + 0.02 * seconds
        walls = [0.4 * now["lumen x"], 0.4 * now["lumen y"], 0.25 * now["turn"], forward]
        sigma = self._sharp + 1.5 * self._difficulty.blur * np.maximum(now["focus"] - 0.4, 0)
        fast = 5 * self._difficulty.blur * np.maximum(now["shake"] - 0.5, 0)
        return FrameLooks(
            light=np.column_stack([*lights, lamp * now["lamp x"], lamp * now["lamp y"]]).astype(np.float32),
            wall=np.column_stack([*walls, *(np.full(n, value) for value in self._shape)]).astype(np.float32),
            camera=np.column_stack([*gains, narrow, *(np.full(n, value) for value in self._steady), touch]).astype(
                np.float32
            ),
            blur=np.column_stack([sigma + 8 * touch, fast * now["streak x"], fast * now["streak y"]]) / 512,
        )


@dataclass(frozen=True, eq=False)
class PolypLooks:
    """How a polyp looks at n times.

    Attributes:
        surface: float32[n, 10], see `layers.paint_patch`.
        folds: float64[n, 2, 3], for each of two folds its direction, the share of the box that it covers (negative: it
            is beside the box), and its position on the wall.
        tool: float64[n, 3]: above 0 if an instrument is there; x and y of its tip from the middle, in sizes of the box.
        foam: float64[n], how much there is; none below 0.
    """

    surface: Float32
    folds: Values
    tool: Values
    foam: Values


class PolypState:
    """What happens to one polyp, from the second when it is first seen to the second when it is last seen."""

    def __init__(self, first: float, last: float, difficulty: Difficulty, rng: np.random.Generator) -> None:
        self._first, self._life, self._difficulty = first, last - first + 1, difficulty
        self._fold_angle, self._fold_wall = rng.uniform(0, [2 * np.pi, 1])
        self._to_lumen, self._depth = rng.uniform([0, 2.2], [2 * np.pi, 4.2])
        self._on_wall = rng.uniform(0, 1, 2)
        self._soiled = rng.uniform(-0.3, 0.6)
        self._washed = np.sort(first + self._life * rng.uniform(0, 1, rng.integers(0, 4)))
        self._spots = rng.uniform(0, 5, (len(self._washed) + 1, 2))
        self._foam_seed = int(rng.integers(2**31))
        self._lifted = first + self._life * (rng.uniform(0.5, 0.95) if rng.uniform() < 0.35 else 2)
        self._bleeds = first + self._life * (rng.uniform(0.6, 0.95) if rng.uniform() < 0.3 else 2)
        self.tool_shape = tool_shape(rng)
        fold = (0.35, 0.9, 1)
        self._drifts = Drifts(
            self._life,
            (QUICK, MIDDLE, float(np.clip(self._life / 3, 30, 200))),
            {
                "dirt": (0.1, 0.5, 1),
                **dict.fromkeys(("fold", "second fold"), fold),
                "fold from": (0.1, 0.4, 1),
                "tool": (0.2, 1, 0.6),
                **dict.fromkeys(("tip x", "tip y"), (0.6, 1, 0.5)),
                "foam": (0.2, 1, 0.8),
            },
            rng,
        )

    def at(self, seconds: Values) -> PolypLooks:
        """How it looks at these times."""
        t, difficulty = seconds - self._first, self._difficulty
        now = self._drifts.at(t)
        # Instruments come mostly late in the life of a polyp.
        there = now["tool"] + t / self._life - 2.2 + 0.6 * difficulty.occlusion
        tips = [0.35 * now["tip x"] + 0.1, 0.35 * now["tip y"] + 0.1]
        return PolypLooks(
            surface=self._surface(seconds, now["dirt"]),
            folds=self._folds(now),
            tool=np.column_stack([there if difficulty.occlusion > 0 else np.full(len(t), -1.0), *tips]),
            foam=now["foam"] * difficulty.dirt - 0.7,
        )

    def pin_wall(self, place: Float32, pose: Values) -> None:
        """Move the wall so that the polyp sits at its own place on it, and turn and zoom it with the polyp.

        The larger a polyp is seen, the nearer it is to the lens, and the farther from the lumen in the image.

        Args:
            place: See `layers.paint_wall`; changed in place.
            pose: See `projection`.
        """
        away = self._depth * pose[2] / (1 + 0.5 * self._depth * pose[2])
        towards = self._to_lumen + pose[3]
        x, y = -away * np.cos(towards), -away * np.sin(towards)  # of the polyp, from the lumen
        place[:2] = pose[0] - x, pose[1] - y
        around, along = on_wall(x, y, place)
        place[2] += self._on_wall[0] - around
        place[3] += self._on_wall[1] - along

    def bubbles(self, seconds: float, foam: float) -> Float32:
        """float32[n, 4], see `layers.paint_bubbles`, in sizes of the box from its middle."""
        if foam <= 0:
            return np.empty((0, 4), np.float32)
        rng = np.random.default_rng([self._foam_seed, int(seconds / 6)])
        count = int(min(6 + 50 * foam, 90))
        drifted = rng.normal(0, 0.02, (count, 2)) * (seconds % 6)
        centres = rng.normal(0, 0.38, (count, 2)) + rng.normal(0, 0.25, 2) + drifted
        radius = np.minimum(rng.lognormal(np.log(0.045), 0.6, count), 0.22)
        return np.column_stack([centres, radius, rng.uniform(0, 0.35, count)]).astype(np.float32)

    def _surface(self, seconds: Values, dirt: Values) -> Float32:
        washes = np.searchsorted(self._washed, seconds)
        since = seconds - np.concatenate([[-1e9], self._washed])[washes]
        # After washing it gets dirty again over half a minute.
        soil = self._soiled + 0.6 * dirt - 0.9 * np.exp(-since / 30)
        threshold = (
            2.6 - self._difficulty.dirt * 0.85 * np.clip(soil + 0.6, 0, 2.0)
            if self._difficulty.dirt > 0
            else 9 + 0 * soil
        )
        on = self._difficulty.events > 0
        blood, lifted = (on * np.clip((seconds - start) / 3, 0, 1) for start in (self._bleeds, self._lifted))
        one = np.ones(len(seconds))
        # The caller fills in the turn of the slopes, a cosine and a sine: it knows how the polyp is seen.
        columns = [one, one, one, threshold, *self._spots[washes].T, one, 0 * one, 0.85 * blood, 0.8 * lifted]
        return np.column_stack(columns).astype(np.float32)

    def _folds(self, now: dict[str, Values]) -> Values:
        strength, n = self._difficulty.occlusion, len(now["fold"])
        angle = self._fold_angle + 0.8 * now["fold from"]
        folds = []
        # A part of the polyp stays visible: an annotator would draw no box around an invisible one.
        for beside, name, rest, most in ((0.0, "fold", -0.7, 0.5), (2.4, "second fold", -1.0, 0.25)):
            cover = np.clip(rest + 0.55 * strength * now[name], -1, most) if strength > 0 else np.full(n, -1.0)
            folds.append(np.column_stack([angle + beside, cover, np.full(n, self._fold_wall + beside)]))
        return np.stack(folds, axis=1)


def on_wall(x: float, y: float, place: Float32) -> tuple[float, float]:
    """Where on the wall, around it and along it, a point is that is at (x, y) from the lumen; see `paint_wall`."""
    square = x * x + y * y + 1e-4
    three = x * (x * x - 3 * y * y) / square**1.5
    square *= 1 + 0.22 * three * float(place[6]) + 0.2 * x * y / square * float(place[7])
    around = np.arctan2(y, x) / (2 * np.pi) * float(place[4]) + float(place[2])
    return float(around), float(place[5]) * 0.5 * float(np.log(square)) + float(place[3])


def tool_shape(rng: np.random.Generator) -> Float32:
    """A random instrument, float32[9]: the last nine values of `layers.paint_tool`."""
    colours = ((0.90, 0.90, 0.92), (0.55, 0.70, 0.85), (0.35, 0.35, 0.38), (0.85, 0.80, 0.55))
    colour = colours[int(rng.integers(len(colours)))]
    angle = rng.uniform(0.2, 1.4)
    rings = rng.uniform(0.06, 0.12) if rng.uniform() < 0.2 else 0.0
    loop = rng.uniform(0.06, 0.16) if rng.uniform() < 0.6 else 0.0
    shape = (np.cos(angle), np.sin(angle), rng.uniform(0.025, 0.05), *colour, rings, loop, rng.uniform(0.3, 0.8))
    return np.array(shape, np.float32)
