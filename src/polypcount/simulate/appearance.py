"""How a polyp and the picture of it look at a time: a state that drifts, and changes at events.

Everything that is drawn wanders on several scales of time, from a second to minutes. So two tracklets that are near in
time look more alike than two that are far apart, as in a real procedure: the view turns, light and focus come and go,
the polyp is washed and gets dirty, folds and instruments move in, it is lifted and bleeds at the end.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import DataError
from polypcount.simulate.noise import Drifts

Values = NDArray[np.float64]
Numbers = NDArray[np.float32]
_QUICK, _MIDDLE, _SLOW = 1.5, 12.0, 100.0  # seconds after which the parts of a drift are forgotten


@dataclass(frozen=True)
class Looks:
    """How strong each difficulty is; 1 is that of the study preset, 0 none.

    occlusion: folds and instruments before the polyp. dirt: stool, mucus, bubbles. blur: out of focus and motion.
    light: exposure, its direction and colour. view: turn and tilt. events: narrow-band imaging, injection, blood.
    """

    occlusion: float = 1.0
    dirt: float = 1.0
    blur: float = 1.0
    light: float = 1.0
    view: float = 1.0
    events: float = 1.0

    def __post_init__(self) -> None:
        for entry in fields(self):
            if not 0 <= getattr(self, entry.name) <= 3:
                raise DataError(f"looks: {entry.name} must be from 0 to 3, found {getattr(self, entry.name)}")


@dataclass(frozen=True, eq=False)
class FrameLooks:
    """What all of a frame has in common, of n frames.

    light: float32[n, 6] and wall: float32[n, 8], see `layers.py`. camera: float32[n, 9], see `camera.develop`.
    blur: float64[n, 3], out of focus, and streak along x and y, in heights of the frame.
    """

    light: Numbers
    wall: Numbers
    camera: Numbers
    blur: Values


class FrameState:
    """Lamp, camera and place in the colon. seconds: length of the procedure."""

    def __init__(self, seconds: float, looks: Looks, rng: np.random.Generator) -> None:
        self._looks = looks
        self._balance = 1 + 0.05 * rng.standard_normal(3)
        self._falloff, self._sharp = rng.uniform(0.8, 2.0), rng.uniform(0.35, 0.8)
        corner = (rng.uniform(0.52, 0.62), rng.uniform(0.46, 0.5), rng.uniform(1.45, 1.75))
        self._steady = (rng.uniform(1.0, 4.0), *corner, rng.uniform(0.95, 1.1))
        self._shape = (2.0, 0.7, *rng.uniform(-1, 1, 2))
        even, slow = (0.3, 1.0, 1.0), (0.1, 0.6, 1.0)
        self._drifts = Drifts(
            seconds,
            (_QUICK, _MIDDLE, _SLOW),
            {
                "exposure": (0.5, 1, 1),
                "focus": (1, 0.8, 0.4),
                "shake": (1, 0.6, 0.2),
                **dict.fromkeys(("lean x", "lean y", "lamp x", "lamp y"), even),
                **dict.fromkeys(("red", "green", "blue", "turn", "forward"), slow),
                **dict.fromkeys(("lumen x", "lumen y"), (0.4, 1, 0.6)),
                **dict.fromkeys(("streak x", "streak y"), (1, 0.3, 0)),
                "narrow": (0, 1, 1),
            },
            rng,
        )

    def at(self, seconds: Values) -> FrameLooks:
        """How frames at these times look."""
        now, n, light = self._drifts.at(seconds), len(seconds), self._looks.light
        lamp = 0.12 * (0.3 + 0.7 * light)
        lights = [1.25 * np.exp(0.22 * light * now["exposure"]), np.full(n, self._falloff)]
        lights += [0.3 * light * now["lean x"], 0.3 * light * now["lean y"], lamp * now["lamp x"], lamp * now["lamp y"]]
        gains = [
            base * np.exp(0.05 * light * now[name])
            for base, name in zip(self._balance, ("red", "green", "blue"), strict=True)
        ]
        narrow = (now["narrow"] > 3.5 - 1.9 * min(self._looks.events, 1.5)) * (0.92 if self._looks.events > 0 else 0)
        walls = [0.4 * now["lumen x"], 0.4 * now["lumen y"]]
        walls += [0.25 * now["turn"], 0.9 * now["forward"] + 0.02 * seconds]
        sigma = self._sharp + 2.2 * self._looks.blur * np.maximum(now["focus"] - 0.4, 0)
        fast = 9 * self._looks.blur * np.maximum(now["shake"] - 0.5, 0)
        return FrameLooks(
            light=np.column_stack(lights).astype(np.float32),
            wall=np.column_stack([*walls, *(np.full(n, value) for value in self._shape)]).astype(np.float32),
            camera=np.column_stack([*gains, narrow, *(np.full(n, value) for value in self._steady)]).astype(np.float32),
            blur=np.column_stack([sigma, fast * now["streak x"], fast * now["streak y"]]) / 512,
        )


@dataclass(frozen=True, eq=False)
class PolypLooks:
    """How a polyp looks at n times.

    view: float64[n, 3], turn in radians, and tilt along x and y, a vector whose length is an angle in radians.
    surface: float32[n, 10], see `layers.paint_patch`.
    folds: float64[n, 2, 3], of two folds the direction they come from, the share of the box that they cover (negative:
        they stay off it), and their place on the wall.
    tool: float64[n, 3], whether an instrument is there (above 0), and its tip from the middle, in sizes of the box.
    foam: float64[n], how much there is, none below 0.
    """

    view: Values
    surface: Numbers
    folds: Values
    tool: Values
    foam: Values


class PolypState:
    """What one polyp goes through, from when it is first seen to when it is last seen, in seconds."""

    def __init__(self, first: float, last: float, looks: Looks, rng: np.random.Generator) -> None:
        self._first, self._life, self._looks = first, last - first + 1, looks
        self._turned, self._fold_angle, self._fold_wall = rng.uniform(0, [2 * np.pi, 2 * np.pi, 1])
        self._soiled = rng.uniform(-0.3, 0.6)
        self._washed = np.sort(first + self._life * rng.uniform(0, 1, rng.integers(0, 4)))
        self._spots = rng.uniform(0, 5, (len(self._washed) + 1, 2))
        self._foam_seed = int(rng.integers(2**31))
        self._lifted = first + self._life * (rng.uniform(0.5, 0.95) if rng.uniform() < 0.35 else 2)
        self._bleeds = first + self._life * (rng.uniform(0.6, 0.95) if rng.uniform() < 0.3 else 2)
        self.tool_shape = _tool_shape(rng)
        fold = (0.35, 0.9, 1)
        self._drifts = Drifts(
            self._life,
            (_QUICK, _MIDDLE, float(np.clip(self._life / 3, 30, 200))),
            {
                "turn": (0.1, 0.35, 1),
                **dict.fromkeys(("tilt x", "tilt y"), (0.2, 0.6, 1)),
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
        t, looks = seconds - self._first, self._looks
        now = self._drifts.at(t)
        tilt = 0.38 * looks.view * np.column_stack([now["tilt x"], now["tilt y"]])
        tilt *= np.minimum(1, 1.1 / np.maximum(np.linalg.norm(tilt, axis=1, keepdims=True), 1e-9))
        # Late in its life a polyp is more often worked on.
        there = now["tool"] + t / self._life - 2.2 + 0.6 * looks.occlusion
        tips = [0.35 * now["tip x"] + 0.1, 0.35 * now["tip y"] + 0.1]
        return PolypLooks(
            view=np.column_stack([self._turned + 1.1 * looks.view * now["turn"], tilt]),
            surface=self._surface(seconds, now["dirt"]),
            folds=self._folds(now),
            tool=np.column_stack([there if looks.occlusion > 0 else np.full(len(t), -1.0), *tips]),
            foam=now["foam"] * looks.dirt - 0.7,
        )

    def bubbles(self, seconds: float, foam: float) -> Numbers:
        """float32[n, 4], see `fronts.paint_bubbles`, in sizes of the box from its middle."""
        if foam <= 0:
            return np.empty((0, 4), np.float32)
        rng = np.random.default_rng([self._foam_seed, int(seconds / 6)])
        count = int(min(6 + 50 * foam, 90))
        drifted = rng.normal(0, 0.02, (count, 2)) * (seconds % 6)
        place = rng.normal(0, 0.38, (count, 2)) + rng.normal(0, 0.25, 2) + drifted
        radius = np.minimum(rng.lognormal(np.log(0.045), 0.6, count), 0.22)
        return np.column_stack([place, radius, rng.uniform(0, 0.35, count)]).astype(np.float32)

    def _surface(self, seconds: Values, dirt: Values) -> Numbers:
        washes = np.searchsorted(self._washed, seconds)
        since = seconds - np.concatenate([[-1e9], self._washed])[washes]
        # Washed clean, it gets dirty again over half a minute.
        soil = self._soiled + 0.6 * dirt - 0.9 * np.exp(-since / 30)
        threshold = 2.6 - self._looks.dirt * 1.1 * np.clip(soil + 0.6, 0, 2.0) if self._looks.dirt > 0 else 9 + 0 * soil
        on = self._looks.events > 0
        blood, lifted = (on * np.clip((seconds - start) / 3, 0, 1) for start in (self._bleeds, self._lifted))
        one = np.ones(len(seconds))
        # The turn of the slopes, a cosine and a sine, is filled in by who knows how the polyp is seen.
        columns = [one, one, one, threshold, *self._spots[washes].T, one, 0 * one, 0.85 * blood, 0.8 * lifted]
        return np.column_stack(columns).astype(np.float32)

    def _folds(self, now: dict[str, Values]) -> Values:
        strength, n = self._looks.occlusion, len(now["fold"])
        angle = self._fold_angle + 0.8 * now["fold from"]
        found = []
        # Something of the polyp stays to be seen: nobody draws a box around nothing.
        for beside, name, rest, most in ((0.0, "fold", -0.3, 0.6), (2.4, "second fold", -0.6, 0.25)):
            cover = np.clip(rest + 0.55 * strength * now[name], -1, most) if strength > 0 else np.full(n, -1.0)
            found.append(np.column_stack([angle + beside, cover, np.full(n, self._fold_wall + beside)]))
        return np.stack(found, axis=1)


def _tool_shape(rng: np.random.Generator) -> Numbers:
    """float32[9]: direction (cosine, sine), half width, colour, rings, loop, its flatness; see `fronts.paint_tool`."""
    colours = ((0.90, 0.90, 0.92), (0.55, 0.70, 0.85), (0.35, 0.35, 0.38), (0.85, 0.80, 0.55))
    colour = colours[int(rng.integers(len(colours)))]
    angle = rng.uniform(0.2, 1.4)
    rings = rng.uniform(0.06, 0.12) if rng.uniform() < 0.2 else 0.0
    loop = rng.uniform(0.06, 0.16) if rng.uniform() < 0.6 else 0.0
    shape = (np.cos(angle), np.sin(angle), rng.uniform(0.025, 0.05), *colour, rings, loop, rng.uniform(0.3, 0.8))
    return np.array(shape, np.float32)
