"""How the camera moves about a polyp during a visit, and what makes it lose the polyp.

Distance, aim and angle drift on several scales of time, from a third of a second to half a minute, as a hand moves an
endoscope. A polyp is lost because it leaves the view over an edge, or because something comes before it: a fold, the
wall itself (the image turns red), or a quick turn that blurs the image. It comes back in one of these ways.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.simulate.noise import Drifts
from polypcount.simulate.projection import Values, ellipse_boxes, seen_from

LEAD_SECONDS = 1.0  # before the polyp is first seen and after it is last seen, the camera is already there
_RUSH_SECONDS = 0.25  # the camera comes and goes in a blur; in the middle of it, the wall changes

_PERIODS = (0.35, 1.5, 6.0, 25.0)  # seconds
_AIM = 0.265  # standard deviation of the place in the frame, in shares of its sides
_DISTANCE = 0.56  # of the log of the distance
_TILT, _TILT_AT_EDGE, _MOST_TILT = 0.28, 0.55, 1.15  # radians
_TURN = 0.7
_STRENGTHS = {
    **dict.fromkeys(("x", "y"), (0.13, 0.34, 0.7, 0.6)),
    "distance": (0.1, 0.52, 0.7, 0.45),
    **dict.fromkeys(("tilt x", "tilt y"), (0.1, 0.5, 0.7, 0.5)),
    "turn": (0.02, 0.2, 0.5, 0.8),
}
_LARGEST, _SMALLEST = 0.85, 0.05  # diameter in heights of the frame
_KEPT = 0.82  # share of its width or height that stays in view while it is seen
_LEAVING = 0.2  # share that is still in view in the last frame
_LEAVE_SECONDS, _OUT_SECONDS, _COVER_SECONDS = 0.4, 0.3, 0.3
_LONG_GAP_SECONDS = 1.5
_EDGE, _FOLD, _RED, _BLUR = range(4)
_CAUSES = {_EDGE: 0.42, _FOLD: 0.30, _RED: 0.08, _BLUR: 0.20}


@dataclass(frozen=True, eq=False)
class Visit:
    """One polyp, in all frames of a visit and some frames before and after it.

    Attributes:
        polyp: Its row.
        start: First frame.
        pose: float64[n, 6], see `projection`.
        seen: bool[n], whether an annotator would draw a box.
        veil: float64[n, 3], how much of it is hidden by a fold, by red-out and by blur, 0 to 1.
        there: bool[n], whether the camera is at the polyp already and still, rather than on its way.
    """

    polyp: int
    start: int
    pose: Values
    seen: NDArray[np.bool_]
    veil: Values
    there: NDArray[np.bool_]

    @property
    def stop(self) -> int:
        """The frame after the last."""
        return self.start + len(self.seen)


class CameraPath:
    """The camera during a visit of so many frames, at a frame rate, with a frame `aspect` times as wide as high."""

    def __init__(self, frames: int, fps: float, aspect: float, rng: np.random.Generator) -> None:
        self._fps, self._half = fps, np.array([aspect, 1.0]) / 2
        self._lead = round(LEAD_SECONDS * fps)
        seconds = np.asarray((np.arange(frames + 2 * self._lead) + 0.5) / fps, np.float64)
        self._drift = Drifts(float(seconds[-1]), _PERIODS, _STRENGTHS, rng).at(seconds)
        self._turned = rng.uniform(0, 2 * np.pi)

    def visit(
        self,
        polyp: int,
        start: int,
        runs: NDArray[np.int64],
        size_mm: float,
        ratio: float,
        offset: float,
        rng: np.random.Generator,
    ) -> Visit:
        """A polyp as this camera sees it.

        Args:
            polyp: Its row.
            start: Frame of the procedure with which the visit begins.
            runs: int64[n, 2], first frame of each run and the frame after its last, from the start of the visit.
            size_mm: Its size.
            ratio: Its length by its width.
            offset: How far it is beside the path, in widths of the frame.
            rng: Source of what happens at the ends of runs.
        """
        drift, runs = self._drift, runs + self._lead
        aim = _AIM * np.column_stack([drift["x"], drift["y"]]) + [offset, 0]
        pose = np.empty((len(aim), 6))
        pose[:, 2] = np.clip(0.118 * size_mm**0.5 * np.exp(_DISTANCE * drift["distance"]), _SMALLEST, _LARGEST)
        pose[:, 3] = self._turned + _TURN * drift["turn"]
        # The wall runs along the view, so that what is beside its middle is seen from the side.
        tilt = _TILT * np.column_stack([drift["tilt x"], drift["tilt y"]]) + _TILT_AT_EDGE * aim
        pose[:, 4:] = tilt * np.minimum(1, _MOST_TILT / np.maximum(np.linalg.norm(tilt, axis=1, keepdims=True), 1e-9))
        pose[:, :2] = 0
        boxes = ellipse_boxes(seen_from(pose), ratio)
        reach = (boxes[:, 2:] - boxes[:, :2]) / 2
        pose[:, :2] = _reflected(aim * 2 * self._half, self._half + reach * (1 - 2 * _KEPT))
        veil, seen = np.zeros((len(aim), 3)), np.zeros(len(aim), bool)
        for first, stop in runs.tolist():
            seen[first:stop] = True
        self._lose(pose, reach, veil, runs, rng)
        rush = round(_RUSH_SECONDS * self._fps)
        to_end = np.minimum(np.arange(len(aim)), np.arange(len(aim))[::-1])
        veil[:, 2] = np.maximum(veil[:, 2], 1 - np.abs(to_end - rush) / max(rush, 1))
        there = to_end >= rush
        return Visit(polyp, start - self._lead, pose, seen, veil, there)

    def _lose(
        self, pose: Values, reach: Values, veil: Values, runs: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """Move the polyp out of view or hide it, between runs."""
        causes, shares = list(_CAUSES), np.array(list(_CAUSES.values()))
        drawn = rng.choice(causes, (len(runs) + 1, 2), p=shares / shares.sum()).tolist()
        lengths = [0, *(runs[:, 1] - runs[:, 0]).tolist(), 0]
        gaps = zip([0, *runs[:, 1].tolist()], [*runs[:, 0].tolist(), len(pose)], strict=True)
        for number, (gone, back) in enumerate(gaps):
            leaves, returns = drawn[number]
            if back - gone < _LONG_GAP_SECONDS * self._fps:
                returns = leaves
            half = (back - gone + 1) // 2
            if lengths[number]:
                self._end(pose, reach, veil, gone, half, leaves, lengths[number])
            if lengths[number + 1]:  # the same backwards in time
                backwards = (pose[::-1], reach[::-1], veil[::-1])
                self._end(*backwards, len(pose) - back, half, returns, lengths[number + 1])
            if _EDGE in (leaves, returns):
                # Out of view, it goes straight from where it left to where it comes back.
                out = min(round(_OUT_SECONDS * self._fps), (back - gone) // 3)
                between = np.arange(gone + out, back - out)
                for axis in (0, 1):
                    ends = gone + out - 1, min(back - out, len(pose) - 1)
                    pose[between, axis] = np.interp(between, ends, pose[list(ends), axis])

    def _end(self, pose: Values, reach: Values, veil: Values, gone: int, gap: int, cause: int, run: int) -> None:
        """Lose the polyp, from the last frames of a run of this length into the gap that begins with frame `gone`."""
        takes = int(min((_LEAVE_SECONDS if cause == _EDGE else _COVER_SECONDS) * self._fps, 0.5 * run))
        rows = np.arange(gone - takes, gone + gap)
        part = np.clip((rows - gone + takes + 1) / (takes + 1), 0, 1)
        after = np.maximum(rows - gone + 1, 0) / self._fps
        if cause == _EDGE:
            place = pose[gone - 1, :2] / self._half
            axis = int(np.abs(place[1]) > np.abs(place[0]))
            # It goes on moving until nothing of it is left.
            beyond = 1 - 2 * _LEAVING + np.minimum(after / _OUT_SECONDS, 1) * (0.8 + 2 * _LEAVING)
            outside = np.copysign(self._half[axis] + reach[rows, axis] * beyond, place[axis])
            pose[rows, axis] += part * part * (3 - 2 * part) * (outside - pose[rows, axis])
        else:
            covered = np.where(rows < gone, 0.6 * part, 1.0)
            if 2 * gap > _LONG_GAP_SECONDS * self._fps:  # what hid it goes away; by then the polyp is elsewhere
                covered = covered * np.clip(1.6 - after / 0.5, 0, 1)
            veil[rows, cause - _FOLD] = np.maximum(veil[rows, cause - _FOLD], covered)


def _reflected(values: Values, most: Values) -> Values:
    """Values thrown back at -most and most, as often as needed."""
    return np.asarray(most - np.abs((values + most) % (4 * most) - 2 * most))
