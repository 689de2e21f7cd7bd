"""A scene: one simulated procedure that can be drawn, a whole frame or a part of one, in any order."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Corpus
from polypcount.simulate.appearance import Difficulty, FrameLooks, FrameState, PolypLooks, PolypState
from polypcount.simulate.camera import blur, develop
from polypcount.simulate.layers import Canvas, paint_bubbles, paint_fold, paint_patch, paint_tool, paint_wall
from polypcount.simulate.mucosa import Patient, draw_wall
from polypcount.simulate.noise import Float32, layered_noise
from polypcount.simulate.patches import Patch
from polypcount.video.frames import Image

Region = tuple[float, float, float, float]
PatchMaker = Callable[[Patient, np.random.Generator], Patch]
_MARGIN = 6  # pixels drawn around a part, for the blur at its edge


class Scene:
    """One procedure.

    Args:
        timeline: A corpus of one video. Its boxes say roughly where in the frame each polyp is, and how large it is.
        makers: For each polyp, the function that draws its patch.
        difficulty: How hard it is to recognise a polyp.
        seed: Everything random follows from it.
    """

    def __init__(
        self, timeline: Corpus, makers: Sequence[PatchMaker], difficulty: Difficulty, seed: Sequence[int]
    ) -> None:
        self.video = timeline.videos[0]
        self.width, self.height = int(self.video.width or 0), int(self.video.height or 0)
        self._fps = float(self.video.fps or 30.0)
        self._seed, self._makers = list(seed), makers
        self._timeline = timeline.boxes
        seconds = self.video.frame_count / self._fps + 1
        rng = self._rng(0)
        self._patient = Patient.random(rng)
        self._frame_state = FrameState(seconds, difficulty, rng)
        self._noise = layered_noise(256, (0.08, 0.03, 0.012), rng)
        self._polyp_states: dict[int, PolypState] = {}
        for polyp in np.unique(self._timeline.polyp).tolist():
            times = self._timeline.frame[self._timeline.polyp == polyp] / self._fps
            state = PolypState(float(times.min()), float(times.max()), difficulty, self._rng(1, polyp))
            self._polyp_states[polyp] = state
        self.patch = lru_cache(maxsize=32)(self._make_patch)
        self._walls = lru_cache(maxsize=4)(self._make_wall)

    @property
    def boxes(self) -> Boxes:
        """The timeline's boxes as they are drawn: around each polyp, in whole pixels."""
        xyxy = np.empty((len(self._timeline), 4), np.float32)
        for polyp in self._polyp_states:
            rows = np.flatnonzero(self._timeline.polyp == polyp)
            view = self._polyp_states[polyp].at(self._timeline.frame[rows] / self._fps).view
            _, xyxy[rows] = self._placed(polyp, rows, view)
        line = self._timeline
        return Boxes(line.video, line.frame, xyxy, polyp=line.polyp)

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
        corner = np.array([left - self.width / 2, top - self.height / 2]) / self.height - _MARGIN * step
        view = np.array([*corner, *step], np.float32)
        canvas = np.empty((height + 2 * _MARGIN, width + 2 * _MARGIN, 3), np.float32)
        common = self._frame_state.at(np.array([frame / self._fps]))
        self._paint(canvas, view, frame, common)
        sigma, streak_x, streak_y = common.blur[0]
        canvas = blur(canvas, float(sigma / step.mean()), float(streak_x / step[0]), float(streak_y / step[1]))
        camera = common.camera[0]
        camera[4] /= max(1.0, float(step.mean()) * self.height)  # noise averages out where pixels are combined
        image = develop(canvas, view, camera, frame)
        return np.ascontiguousarray(image[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN])

    def _paint(self, canvas: Canvas, view: Float32, frame: int, common: FrameLooks) -> None:
        now = np.array([frame / self._fps])
        rows = np.arange(*np.searchsorted(self._timeline.frame, [frame, frame + 1]))
        polyps = self._timeline.polyp[rows].tolist()
        looks = [self._polyp_states[polyp].at(now) for polyp in polyps]
        placed = [
            self._placed(polyp, np.array([row]), look.view)
            for polyp, row, look in zip(polyps, rows.tolist(), looks, strict=True)
        ]
        where = [self._in_heights(box[0]) for _, box in placed]
        wall, place, light = self._walls(polyps[0] if polyps else -1), common.wall[0], common.light[0]
        if where:
            _keep_off(place, where[0])
        paint_wall(canvas, view, wall, place, light)
        for polyp, look, (matrix, _) in zip(polyps, looks, placed, strict=True):
            self._paint_polyp(canvas, view, self.patch(polyp), look, matrix[0], light)
        for polyp, look, spot in zip(polyps, looks, where, strict=True):
            self._paint_fronts(canvas, view, self._polyp_states[polyp], look, float(now[0]), spot, wall, light)

    def _paint_polyp(
        self, canvas: Canvas, view: Float32, patch: Patch, look: PolypLooks, matrix: NDArray[np.float64], light: Float32
    ) -> None:
        surface, turn = look.surface[0], look.view[0, 0]
        surface[6:8] = np.cos(turn), np.sin(turn)
        corners = np.array([[-0.5, -0.5, 1], [0.5, -0.5, 1], [0.5, 0.5, 1], [-0.5, 0.5, 1]]) @ matrix.T
        corners = (corners[:, :2] / corners[:, 2:] - view[:2]) / view[2:]
        low, high = np.floor(corners.min(axis=0)).astype(int), np.ceil(corners.max(axis=0)).astype(int)
        (left, top), (right, bottom) = np.maximum(low, 0), np.minimum(high, canvas.shape[1::-1])
        if left >= right or top >= bottom:
            return
        part = view.copy()
        part[:2] += np.array([left, top], np.float32) * view[2:]
        level = patch.level_for(float(np.sqrt(np.prod((high - low).astype(float)))))
        inverse = np.linalg.inv(matrix).astype(np.float32)
        paint_patch(canvas[top:bottom, left:right], part, level, inverse, light, self._noise, surface)

    def _paint_fronts(
        self,
        canvas: Canvas,
        view: Float32,
        state: PolypState,
        look: PolypLooks,
        now: float,
        where: tuple[float, float, float],
        wall: NDArray[np.uint8],
        light: Float32,
    ) -> None:
        """Bubbles, an instrument and folds, in front of a polyp; where: its x, y and size, in heights of the frame."""
        x, y, size = where
        bubbles = state.bubbles(now, float(look.foam[0]))
        if len(bubbles):
            placed = bubbles * np.array([size, size, size, 1], np.float32) + np.array([x, y, 0, 0], np.float32)
            paint_bubbles(canvas, view, placed, light)
        there, tip_x, tip_y = look.tool[0]
        if there > 0:
            shape = state.tool_shape
            tip = np.array([x + tip_x * size, y + tip_y * size]) + 0.5 * np.exp(-4 * there) * shape[:2]  # it slides in
            paint_tool(canvas, view, np.concatenate([tip, shape]).astype(np.float32), light)
        for angle, cover, place in look.folds[0]:
            if cover > -0.6:
                along, across = np.cos(angle), np.sin(angle)
                edge = x * along + y * across + (0.5 - cover) * size
                fold = [along, across, edge, 0.03, place, 0.02 + 0.03 * size, 1.05, place]
                paint_fold(canvas, view, wall, self._noise, np.array(fold, np.float32), light)

    def _placed(
        self, polyp: int, rows: NDArray[np.int64], view: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """From patch to frame, float64[n, 3, 3], and boxes in pixels, float32[n, 4], of timeline rows of a polyp."""
        outline = self.patch(polyp).outline.astype(np.float64)
        turned = _seen_from(view)
        flat = np.column_stack([outline, np.ones(len(outline))]) @ np.swapaxes(turned, 1, 2)
        shape = flat[..., :2] / flat[..., 2:]
        low, high = shape.min(axis=1), shape.max(axis=1)
        asked = self._timeline.xyxy[rows].astype(np.float64)
        side = np.sqrt(np.prod(asked[:, 2:] - asked[:, :2], axis=1)) / self.height
        scale = side / np.sqrt(np.maximum(np.prod(high - low, axis=1), 1e-9))
        centre = (asked[:, :2] + asked[:, 2:]) / 2 / self.height - np.array([self.width / self.height, 1.0]) / 2
        moved = np.zeros((len(rows), 3, 3))
        moved[:, 0, 0] = moved[:, 1, 1] = scale
        moved[:, :2, 2] = centre - scale[:, None] * (low + high) / 2
        moved[:, 2, 2] = 1
        half = scale[:, None] * (high - low) / 2
        edges = np.array([self.width, self.height]) / 2
        boxes = np.hstack([(centre - half) * self.height + edges, (centre + half) * self.height + edges]).round()
        boxes[:, 0::2], boxes[:, 1::2] = np.clip(boxes[:, 0::2], 0, self.width), np.clip(boxes[:, 1::2], 0, self.height)
        return moved @ turned, boxes.astype(np.float32)

    def _in_heights(self, box: NDArray[np.float32]) -> tuple[float, float, float]:
        x, y = ((box[:2] + box[2:]) / 2 - np.array([self.width, self.height]) / 2) / self.height
        return float(x), float(y), float(np.sqrt(np.prod(box[2:] - box[:2])) / self.height)

    def _make_patch(self, polyp: int) -> Patch:
        return self._makers[polyp](self._patient, self._rng(2, polyp))

    def _make_wall(self, polyp: int) -> NDArray[np.uint8]:
        return draw_wall(self._patient, self._rng(3, polyp + 1))

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([*self._seed, *key])


def _seen_from(view: NDArray[np.float64]) -> NDArray[np.float64]:
    """Homographies float64[n, 3, 3] of a unit patch seen turned and tilted; see `PolypState.view`."""
    turn, tilt = view[:, 0], np.linalg.norm(view[:, 1:], axis=1)
    along = np.arctan2(view[:, 2], view[:, 1])
    rotate = _rotation(turn - along)
    squeeze = np.zeros_like(rotate)
    squeeze[:, 0, 0], squeeze[:, 1, 1], squeeze[:, 2, 2] = np.cos(tilt), 1, 1
    squeeze[:, 2, 0] = 0.55 * np.sin(tilt)  # the far side is smaller
    return np.asarray(_rotation(along) @ squeeze @ rotate)


def _rotation(angle: NDArray[np.float64]) -> NDArray[np.float64]:
    matrix = np.zeros((len(angle), 3, 3))
    matrix[:, 0, 0] = matrix[:, 1, 1] = np.cos(angle)
    matrix[:, 1, 0] = np.sin(angle)
    matrix[:, 0, 1] = -matrix[:, 1, 0]
    matrix[:, 2, 2] = 1
    return matrix


def _keep_off(place: NDArray[np.float32], centre: tuple[float, float, float]) -> None:
    """Move the lumen out of a polyp, which is on the wall."""
    x, y, size = centre
    apart = np.array([place[0] - x, place[1] - y])
    far, least = float(np.linalg.norm(apart)), 0.6 * size + 0.15
    if far < least:
        place[:2] = np.array([x, y]) + apart / max(far, 1e-3) * least if far > 1e-3 else (x + least, y)
