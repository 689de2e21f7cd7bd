"""A scene: one simulated procedure that can be drawn, a whole frame or a part of one, in any order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from polypcount.corpus import Boxes
from polypcount.simulate.appearance import Difficulty, FrameLooks, FrameState, PolypLooks, PolypState
from polypcount.simulate.camera import blur, develop
from polypcount.simulate.layers import (
    Canvas,
    Texture,
    paint_bubbles,
    paint_fold,
    paint_liquid,
    paint_patch,
    paint_tool,
    paint_wall,
)
from polypcount.simulate.mucosa import Patient, draw_wall
from polypcount.simulate.noise import Float32, layered_noise
from polypcount.simulate.patches import Patch
from polypcount.simulate.paths import Visit
from polypcount.simulate.projection import Values, outline_boxes, seen_from
from polypcount.simulate.surroundings import Surroundings, Views
from polypcount.simulate.timeline import SimulatedTimeline, visited_boxes
from polypcount.video.frames import Image

Region = tuple[float, float, float, float]
PatchMaker = Callable[[Patient, np.random.Generator], Patch]
_MARGIN = (4, 24)  # fewest and most pixels drawn around a part, for the blur at its edge
_MOST_TILT = 1.2  # radians
_SHUTTER = 0.4  # share of the time between frames for which the shutter is open
_RED_BLUR, _RUSH_BLUR, _RUSH_STREAK = 9 / 512, 6 / 512, 40 / 512  # of a veil of 1, in heights of the frame


class Scene:
    """One procedure.

    Args:
        timeline: Which polyp is where, and when.
        makers: For each polyp, the function that draws its patch.
        difficulty: How hard it is to recognise a polyp.
        seed: Everything random follows from it.
    """

    def __init__(
        self, timeline: SimulatedTimeline, makers: Sequence[PatchMaker], difficulty: Difficulty, seed: Sequence[int]
    ) -> None:
        self.video = timeline.corpus.videos[0]
        self.width, self.height = int(self.video.width or 0), int(self.video.height or 0)
        self._fps = float(self.video.fps or 30.0)
        self._seed, self._makers, self._difficulty = list(seed), makers, difficulty
        self._visits = [_as_hard(visit, difficulty) for visit in timeline.visits]
        self._starts = np.array([visit.start for visit in self._visits], int)
        self._stops = np.array([visit.stop for visit in self._visits], int)
        seconds = self.video.frame_count / self._fps + 1
        rng = self._rng(0)
        self._patient = Patient.random(rng)
        self._frame_state = FrameState(seconds, self.width / self.height, difficulty, rng)
        self._surroundings = Surroundings(seconds, difficulty, self._rng(4))
        self._noise = layered_noise(256, (0.08, 0.03, 0.012), rng)
        self._polyp_states: dict[int, PolypState] = {}
        for polyp in sorted({visit.polyp for visit in self._visits}):
            mine = [visit for visit in self._visits if visit.polyp == polyp]
            first, last = min(visit.start for visit in mine), max(visit.stop for visit in mine)
            state = PolypState(first / self._fps, last / self._fps, difficulty, self._rng(1, polyp))
            self._polyp_states[polyp] = state
        self.patch = lru_cache(maxsize=32)(self._make_patch)
        self._walls = lru_cache(maxsize=16)(self._make_wall)

    @property
    def boxes(self) -> Boxes:
        """A box around each polyp as it is drawn, in whole pixels, in every frame in which it is seen."""
        shapes = [self._shape(polyp) for polyp in range(len(self._makers))]
        return visited_boxes(self._visits, shapes, self.video)

    def draw(self, frame: int, region: Region | None = None, size: tuple[int, int] | None = None) -> Image:
        """Draw a frame, or a part of it, uint8[h, w, 3].

        Args:
            frame: Its number.
            region: Left, top, right, bottom of the part to draw, in pixels of the frame; the whole frame by default.
            size: Width and height of the result; those of the region by default. A small result is drawn small from the
                start, so it takes a fraction of the time.
        """
        left, top, right, bottom = region or (0, 0, self.width, self.height)
        width, height = size or (round(right - left), round(bottom - top))
        step = np.array([(right - left) / width, (bottom - top) / height]) / self.height
        common = self._frame_state.at(np.array([frame / self._fps]))
        visits = [self._visits[k] for k in np.flatnonzero((self._starts <= frame) & (frame < self._stops))]
        sigma, *streak = (self._blur(common, visits, frame) / [step.mean(), *step]).tolist()  # in pixels
        margin = int(np.clip(2 * sigma + np.hypot(*streak) / 2, *_MARGIN))
        corner = np.array([left - self.width / 2, top - self.height / 2]) / self.height - margin * step
        view = np.array([*corner, *step], np.float32)
        canvas = np.empty((3, height + 2 * margin, width + 2 * margin), np.float32)
        self._paint(canvas, view, frame, common, visits)
        camera = common.camera[0]
        camera[4] /= max(1.0, float(step.mean()) * self.height)  # noise averages out where pixels are combined
        camera[9] = max([camera[9], *(visit.veil[frame - visit.start, 1] for visit in visits)])
        image = develop(blur(canvas, sigma, *streak), view, camera, frame)
        return np.ascontiguousarray(image[margin:-margin, margin:-margin])

    def _blur(self, common: FrameLooks, visits: Sequence[Visit], frame: int) -> Values:
        """Out of focus, and streaks along x and y, in heights of the frame."""
        total = np.array(common.blur[0])
        for visit in visits[:1]:
            k = frame - visit.start
            red, rush = visit.veil[k, 1:]
            # A moving camera smears the image, as far as it moves while the shutter is open.
            moved = visit.pose[min(k + 1, len(visit.pose) - 1), :2] - visit.pose[max(k - 1, 0), :2]
            total[1:] += self._difficulty.blur * _SHUTTER * np.clip(moved / 2, -0.1, 0.1)
            total[0] += _RED_BLUR * red + _RUSH_BLUR * rush
            total[1:] += _RUSH_STREAK * rush * np.array([np.cos(visit.start), np.sin(visit.start)])
        return total

    def _paint(self, canvas: Canvas, view: Float32, frame: int, common: FrameLooks, visits: Sequence[Visit]) -> None:
        now, light, place = frame / self._fps, common.light[0], common.wall[0]
        views = self._surroundings.at(np.array([now]))
        there = [visit for visit in visits if visit.there[frame - visit.start]]
        wall = self._walls(there[0].polyp if there else -1)
        states = [self._polyp_states[visit.polyp] for visit in there]
        poses = [visit.pose[frame - visit.start] for visit in there]
        looks = [state.at(np.array([now])) for state in states]
        if there:
            states[0].pin_wall(place, poses[0])
        paint_wall(canvas, view, wall, place, light)
        down, edge, murky = views.liquid[0]
        if murky > 0:
            liquid = [np.cos(down), np.sin(down), edge, now % 100 / 5, murky, *self._surroundings.colour]
            paint_liquid(canvas, view, self._noise, np.array(liquid, np.float32), light)
        if not there:
            self._paint_surroundings(canvas, view, views, now, wall, light)
        half = np.array([self.width / self.height, 1.0]) / 2
        for visit, look, pose in zip(there, looks, poses, strict=True):
            # What an annotator does not see is not drawn; but a polyp leaves the view and does not vanish.
            if visit.seen[frame - visit.start] or (np.abs(pose[:2]) > half).any():
                away = float(np.hypot(*(pose[:2] - place[:2])))
                self._paint_polyp(canvas, view, visit.polyp, look, pose, away, light)
        for visit, state, look, pose in zip(there, states, looks, poses, strict=True):
            veil = float(visit.veil[frame - visit.start, 0])
            self._paint_fronts(canvas, view, state, look, now, pose, veil, wall, light)

    def _paint_surroundings(
        self, canvas: Canvas, view: Float32, views: Views, now: float, wall: Texture, light: Float32
    ) -> None:
        """Folds, an instrument, foam and a jet, where no polyp is."""
        for (angle, edge, thick), place in zip(views.folds[0], self._surroundings.fold_places, strict=True):
            if edge < 1:
                fold = [np.cos(angle), np.sin(angle), edge, 0.03, place, 0.03, 1.05, place, thick]
                paint_fold(canvas, view, wall, self._noise, np.array(fold, np.float32), light)
        bubbles = self._surroundings.bubbles(now, views)
        if len(bubbles):
            paint_bubbles(canvas, view, bubbles, light)
        there, x, y = views.tool[0]
        if there > 0:
            _paint_tool(canvas, view, self._surroundings.tool_shape, x, y, there, light)

    def _paint_polyp(
        self, canvas: Canvas, view: Float32, polyp: int, look: PolypLooks, pose: Values, away: float, light: Float32
    ) -> None:
        patch, surface = self.patch(polyp), look.surface[0]
        surface[:3] *= _brightness(pose, away)
        surface[6:8] = np.cos(pose[3]), np.sin(pose[3])
        matrix = seen_from(pose[None])[0] @ patch.to_disc
        corners = np.array([[-0.5, -0.5, 1], [0.5, -0.5, 1], [0.5, 0.5, 1], [-0.5, 0.5, 1]]) @ matrix.T
        corners = (corners[:, :2] / corners[:, 2:] - view[:2]) / view[2:]
        low, high = np.floor(corners.min(axis=0)).astype(int), np.ceil(corners.max(axis=0)).astype(int)
        (left, top), (right, bottom) = np.maximum(low, 0), np.minimum(high, canvas.shape[:0:-1])
        if left >= right or top >= bottom:
            return
        part = view.copy()
        part[:2] += np.array([left, top], np.float32) * view[2:]
        level = patch.level_for(float(np.sqrt(np.prod((high - low).astype(float)))))
        inverse = np.linalg.inv(matrix).astype(np.float32)
        paint_patch(canvas[:, top:bottom, left:right], part, level, inverse, light, self._noise, surface)

    def _paint_fronts(
        self,
        canvas: Canvas,
        view: Float32,
        state: PolypState,
        look: PolypLooks,
        now: float,
        pose: Values,
        veil: float,
        wall: Texture,
        light: Float32,
    ) -> None:
        """Folds, bubbles and an instrument, in front of a polyp; veil: how far a fold hides it, beyond its own way."""
        x, y, size = pose[:3].tolist()
        for number, (angle, cover, place) in enumerate(look.folds[0]):
            covers = cover + veil * (1.2 - cover) if number == 0 and veil > 0 else cover
            if covers > -1:
                along, across = np.cos(angle), np.sin(angle)
                # It comes from beyond the frame, however small the polyp is.
                edge = x * along + y * across + 0.5 * size - covers * (size if covers > 0 else 1.2)
                fold = [along, across, edge, 0.03, place, 0.02 + 0.03 * size, 1.05, place, 0.12 + size]
                paint_fold(canvas, view, wall, self._noise, np.array(fold, np.float32), light)
        bubbles = state.bubbles(now, float(look.foam[0]))
        if len(bubbles):
            placed = bubbles * np.array([size, size, size, 1], np.float32) + np.array([x, y, 0, 0], np.float32)
            paint_bubbles(canvas, view, placed, light)
        there, tip_x, tip_y = look.tool[0]
        if there > 0:
            _paint_tool(canvas, view, state.tool_shape, x + tip_x * size, y + tip_y * size, there, light)

    def _shape(self, polyp: int) -> Callable[[Values], Values]:
        """The function that gives boxes around a polyp as it is drawn."""

        def boxes(matrix: Values) -> Values:
            patch = self.patch(polyp)
            return outline_boxes(matrix @ patch.to_disc, patch.outline.astype(np.float64))

        return boxes

    def _make_patch(self, polyp: int) -> Patch:
        return self._makers[polyp](self._patient, self._rng(2, polyp))

    def _make_wall(self, polyp: int) -> Texture:
        return draw_wall(self._patient, self._rng(3, polyp + 1))

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([*self._seed, *key])


def _paint_tool(
    canvas: Canvas, view: Float32, shape: Float32, x: float, y: float, there: float, light: Float32
) -> None:
    """An instrument with its tip at x and y; it slides in as `there` rises from 0."""
    tip = np.array([x, y]) + 0.5 * np.exp(-4 * there) * shape[:2]
    paint_tool(canvas, view, np.concatenate([tip, shape]).astype(np.float32), light)


def _as_hard(visit: Visit, difficulty: Difficulty) -> Visit:
    """The visit with as much tilt, turn and hiding as the difficulty has."""
    pose = visit.pose.copy()
    pose[:, 3] = pose[0, 3] + difficulty.view * (pose[:, 3] - pose[0, 3])
    tilt = np.linalg.norm(pose[:, 4:], axis=1, keepdims=True)
    pose[:, 4:] *= np.minimum(difficulty.view, _MOST_TILT / np.maximum(tilt, 1e-9))
    veil = visit.veil * np.minimum(1, [difficulty.occlusion, difficulty.light, difficulty.blur])
    return replace(visit, pose=pose, veil=veil)


def _brightness(pose: Values, away: float) -> float:
    """Light that a polyp gets: less far down the lumen, as the wall does, less from the side, and more near the lens.

    Args:
        pose: See `projection`.
        away: Its distance from the lumen, in heights of the frame.
    """
    deep = 1.2 * away**2 / (away**2 + 0.16)  # see `layers.paint_wall`
    return float(deep * np.sqrt(np.cos(np.linalg.norm(pose[4:]))) * (0.85 + 0.7 * min(pose[2], 0.8)))
