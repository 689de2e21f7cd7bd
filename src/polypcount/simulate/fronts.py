"""What comes between the lens and a polyp: folds, instruments, bubbles. Places and lengths as in `layers.py`."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from polypcount.simulate.layers import Canvas, Numbers

_compiled = njit(cache=True, fastmath=True, nogil=True, boundscheck=False)


@_compiled
def paint_fold(
    canvas: Canvas, view: Numbers, wall: NDArray[np.uint8], noise: NDArray[np.float32], fold: Numbers, light: Numbers
) -> None:
    """A fold of the wall, nearer than what it hides.

    fold: float32[8]: direction from its edge to its inside (cosine, sine), distance of its edge from the middle along
    that, waviness, place in the noise, softness of its edge, brightness, place on the wall.
    """
    mask, wall_mask = noise.shape[0] - 1, wall.shape[0] - 1
    for i in range(canvas.shape[0]):
        y = view[1] + (i + np.float32(0.5)) * view[3]
        for j in range(canvas.shape[1]):
            x = view[0] + (j + np.float32(0.5)) * view[2]
            inwards = x * fold[0] + y * fold[1] - fold[2]
            if inwards < -0.5:
                continue
            side = y * fold[0] - x * fold[1]
            # An edge is bent as a whole and wavy in detail.
            spot = (side + fold[4]) * 24
            left = int(np.floor(spot))
            part = spot - left
            bend = noise[left & mask, 7] * (1 - part) + noise[(left + 1) & mask, 7] * part
            inside = inwards + fold[3] * bend - 0.35 * side * side
            if inside <= -0.18:
                continue
            cover = min(max(inside / fold[5] + 0.5, 0.0), 1.0)
            # What lies just behind it is in its shadow.
            shadow = 1.0 if inside >= 0 else 1.0 - 0.45 * (1 + inside / 0.18) ** 2
            depth = max(inside, 0.0)
            crest = depth / (depth + 0.05)
            tone = fold[6] * light[0] * (0.62 + 0.55 * crest) / (1.0 + 0.8 * depth + 0.4 * light[1] * (x * x + y * y))
            u = int((side * 0.55 + fold[7]) * 512) & wall_mask
            v = int((inwards * 0.55 + fold[7] * 0.7) * 512) & wall_mask
            for c in range(3):
                value = (wall[v, u, c] / 255) ** 2 * tone
                behind = canvas[i, j, c] * shadow
                canvas[i, j, c] = behind + cover * (value - behind)


@_compiled
def paint_tool(canvas: Canvas, view: Numbers, tool: Numbers, light: Numbers) -> None:
    """A catheter, from beyond the edge of the frame to its tip, with a snare's loop before it where it has one.

    tool: float32[11]: tip (x, y), direction to where it comes from (cosine, sine), half width, red, green, blue,
    distance between its rings (0 for none), radius of the loop (0 for none), flatness of the loop.
    """
    for i in range(canvas.shape[0]):
        y = view[1] + (i + np.float32(0.5)) * view[3]
        for j in range(canvas.shape[1]):
            x = view[0] + (j + np.float32(0.5)) * view[2]
            dx, dy = x - tool[0], y - tool[1]
            along, aside = dx * tool[2] + dy * tool[3], dy * tool[2] - dx * tool[3]
            # It is wider where it is nearer to the lens.
            half = tool[4] * (1 + 0.5 * max(along, 0.0))
            end = half if along >= 0 else np.sqrt(max(half * half - along * along, 0.0))
            edge = (end - abs(aside)) / (0.06 * half + view[2])
            if along > -half and edge > 0:
                across = aside / half
                round_ = np.sqrt(max(1 - across * across, 0.0))
                tone = light[0] * (0.25 + 0.75 * round_)
                if tool[8] > 0 and (along / tool[8]) % 1.0 < 0.3:
                    tone *= 0.35
                gleam = max(0.0, 1 - ((across + 0.3) / 0.13) ** 2) * 0.7 * light[0]
                cover = min(edge, 1.0)
                for c in range(3):
                    value = tool[5 + c] ** 2 * tone + gleam
                    canvas[i, j, c] += cover * (value - canvas[i, j, c])
            elif tool[9] > 0:
                lx, ly = along + tool[9], aside / tool[10]
                far = abs(np.sqrt(lx * lx + ly * ly) - tool[9])
                wire = 0.13 * tool[4] + 0.5 * view[2]
                if far < 2 * wire:
                    cover = min(max((2 * wire - far) / wire, 0.0), 1.0)
                    for c in range(3):
                        value = light[0] * (0.55 + 0.3 * (far < 0.5 * wire))
                        canvas[i, j, c] += cover * (value - canvas[i, j, c])


@_compiled
def paint_bubbles(canvas: Canvas, view: Numbers, bubbles: NDArray[np.float32], light: Numbers) -> None:
    """Bubbles. bubbles: float32[n, 4]: x, y, radius, how milky."""
    height, width = canvas.shape[0], canvas.shape[1]
    for k in range(len(bubbles)):
        cx, cy, radius, milky = bubbles[k]
        top, bottom = int((cy - radius - view[1]) / view[3]), int((cy + radius - view[1]) / view[3]) + 1
        left, right = int((cx - radius - view[0]) / view[2]), int((cx + radius - view[0]) / view[2]) + 1
        for i in range(max(top, 0), min(bottom, height)):
            y = view[1] + (i + np.float32(0.5)) * view[3]
            for j in range(max(left, 0), min(right, width)):
                x = view[0] + (j + np.float32(0.5)) * view[2]
                dx, dy = (x - cx) / radius, (y - cy) / radius
                far = dx * dx + dy * dy
                if far >= 1:
                    continue
                rim = far * far * far
                glint = max(0.0, 1 - ((dx + 0.35) ** 2 + (dy + 0.4) ** 2) / 0.03)
                under = max(0.0, 1 - ((dx - 0.45) ** 2 + (dy - 0.5) ** 2) / 0.06) * 0.25
                for c in range(3):
                    value = canvas[i, j, c]
                    value += milky * (light[0] * (0.72 if c == 2 else 0.85) - value)
                    value *= 1 - 0.45 * rim * (1 - rim) * 4 * 0.6
                    value += light[0] * (0.30 * rim * rim + 0.9 * glint + under)
                    canvas[i, j, c] = value
