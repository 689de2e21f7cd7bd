"""The layers of a frame, painted one over the other by compiled loops: wall, polyps, and what comes in front of them.

A canvas is float32[h, w, 3], light as the sensor gets it, 1 for white; colours of textures are as
they look, and their square is the light. It shows a part of the frame: pixel (i, j) looks
at x = left + (j + 0.5) * step_x, y = top + (i + 0.5) * step_y. Places and lengths are in heights of the frame, from its
middle, so that a part and the whole show the same. `view` is float32[4]: left, top, step_x, step_y.
`light` is float32[6]: exposure, how fast it falls off, its lean along x and y, its place x and y.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Canvas = NDArray[np.float32]
Numbers = NDArray[np.float32]

_compiled = njit(cache=True, fastmath=True, nogil=True, boundscheck=False)


# Plain numbers in a compiled loop are of 64 bits and make all that they touch so, at twice the time.
_1, _LEAST, _DIFFUSE, _STEEP = np.float32(1.0), np.float32(0.15), np.float32(0.9), np.float32(1.6)
_MIRROR, _GLEAM = np.float32(0.9), np.float32(50.0)


@_compiled
def _lit(x: float, y: float, slope_x: float, slope_y: float, light: Numbers) -> Any:
    """Diffuse and mirrored light at a place with a slope; the lamp is beside the lens."""
    lean = _1 + light[2] * x + light[3] * y
    diffuse = light[0] * lean / (_1 + light[1] * (x * x + y * y))
    # A surface shines where its slope turns the lamp's light into the lens.
    from_x, from_y = x - light[4], y - light[5]
    away_x, away_y = slope_x - from_x * _MIRROR, slope_y - from_y * _MIRROR
    shine = max(_1 - _GLEAM * (away_x * away_x + away_y * away_y), np.float32(0.0))
    # It is darker where it is steep, and most where it leans away from the lamp.
    diffuse *= max(_LEAST, _1 + _DIFFUSE * (slope_x * from_x + slope_y * from_y))
    return diffuse / np.sqrt(_1 + _STEEP * (slope_x * slope_x + slope_y * slope_y)), shine * shine * light[0]


@_compiled
def paint_wall(canvas: Canvas, view: Numbers, wall: NDArray[np.uint8], place: Numbers, light: Numbers) -> None:
    """The inside of the colon, looked along or at.

    wall: uint8[s, s, 5], see `draw_wall`. place: float32[8]: where the lumen is (x, y), turn, forward, copies of the
    wall around, length of wall for each e-fold of the distance from the lumen, how triangular it is, how flat.
    """
    side = wall.shape[0]
    mask = side - 1
    for i in range(canvas.shape[0]):
        y = view[1] + (np.float32(i) + np.float32(0.5)) * view[3]
        for j in range(canvas.shape[1]):
            x = view[0] + (np.float32(j) + np.float32(0.5)) * view[2]
            dx, dy = x - place[0], y - place[1]
            square = dx * dx + dy * dy + np.float32(1e-4)
            # Three bands of muscle pull the rings into a rounded triangle.
            three = dx * (dx * dx - np.float32(3) * dy * dy) / (square * np.sqrt(square))
            square *= _1 + np.float32(0.22) * three * place[6] + np.float32(0.2) * dx * dy / square * place[7]
            around = (np.float32(0.15915494) * np.arctan2(dy, dx) * place[4] + place[2]) * np.float32(side)
            along = (place[5] * np.float32(0.5) * np.log(square) + place[3]) * np.float32(side)
            u, v = np.floor(around), np.floor(along)
            a, b = around - u, along - v
            u0, v0 = int(u) & mask, int(v) & mask
            u1, v1 = (u0 + 1) & mask, (v0 + 1) & mask
            w00, w01, w10, w11 = (_1 - a) * (_1 - b), a * (_1 - b), (_1 - a) * b, a * b
            around_slope = w00 * wall[v0, u0, 3] + w01 * wall[v0, u1, 3] + w10 * wall[v1, u0, 3] + w11 * wall[v1, u1, 3]
            along_slope = w00 * wall[v0, u0, 4] + w01 * wall[v0, u1, 4] + w10 * wall[v1, u0, 4] + w11 * wall[v1, u1, 4]
            around_slope = (around_slope - np.float32(128)) * np.float32(0.02)
            along_slope = (along_slope - np.float32(128)) * np.float32(0.02)
            away = np.sqrt(square)
            radial_x, radial_y = dx / away, dy / away
            slope_x = along_slope * radial_x - around_slope * radial_y
            slope_y = along_slope * radial_y + around_slope * radial_x
            diffuse, shine = _lit(x, y, slope_x * np.float32(0.5), slope_y * np.float32(0.5), light)
            # Far down the lumen it is dark; the side of a fold that faces the lens is brighter.
            deep = square / (square + np.float32(0.09))
            diffuse *= deep * (_1 - np.float32(0.35) * max(np.float32(-1.0), min(np.float32(1.0), along_slope)))
            shine *= deep * np.float32(0.5)
            for c in range(3):
                value = w00 * wall[v0, u0, c] + w01 * wall[v0, u1, c] + w10 * wall[v1, u0, c] + w11 * wall[v1, u1, c]
                canvas[i, j, c] = value * value * np.float32(1.5378701e-05) * diffuse + shine  # 255 ** -2


@_compiled
def paint_patch(
    canvas: Canvas,
    view: Numbers,
    patch: NDArray[np.uint8],
    inverse: Numbers,
    light: Numbers,
    dirt: NDArray[np.float32],
    looks: Numbers,
) -> None:
    """A polyp with its surroundings.

    patch: one level of a `Patch`. inverse: float32[3, 3], from a place in the frame to one in the patch (-0.5..0.5).
    dirt: float32[s, s] noise. looks: float32[10]: gains of red, green, blue; dirt's threshold; its place x and y;
    turn of the slopes (cosine, sine); blood, and blue of an injection, both 0..1.
    """
    side, dirt_mask = patch.shape[0], dirt.shape[0] - 1
    for i in range(canvas.shape[0]):
        y = view[1] + (np.float32(i) + np.float32(0.5)) * view[3]
        for j in range(canvas.shape[1]):
            x = view[0] + (np.float32(j) + np.float32(0.5)) * view[2]
            depth = inverse[2, 0] * x + inverse[2, 1] * y + inverse[2, 2]
            if depth <= 1e-3:
                continue
            px = (inverse[0, 0] * x + inverse[0, 1] * y + inverse[0, 2]) / depth
            py = (inverse[1, 0] * x + inverse[1, 1] * y + inverse[1, 2]) / depth
            if not (-0.5 < px < 0.5 and -0.5 < py < 0.5):
                continue
            across, down = (px + 0.5) * side - 0.5, (py + 0.5) * side - 0.5
            u0, v0 = int(max(across, 0.0)), int(max(down, 0.0))
            a, b = min(max(across - u0, 0.0), 1.0), min(max(down - v0, 0.0), 1.0)
            u1, v1 = min(u0 + 1, side - 1), min(v0 + 1, side - 1)
            w00, w01, w10, w11 = (1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b
            opacity = (
                w00 * patch[v0, u0, 3] + w01 * patch[v0, u1, 3] + w10 * patch[v1, u0, 3] + w11 * patch[v1, u1, 3]
            ) / 255
            if opacity <= 0:
                continue
            flat_x = (
                w00 * patch[v0, u0, 4] + w01 * patch[v0, u1, 4] + w10 * patch[v1, u0, 4] + w11 * patch[v1, u1, 4] - 128
            ) / 100
            flat_y = (
                w00 * patch[v0, u0, 5] + w01 * patch[v0, u1, 5] + w10 * patch[v1, u0, 5] + w11 * patch[v1, u1, 5] - 128
            ) / 100
            on_polyp = (
                w00 * patch[v0, u0, 6] + w01 * patch[v0, u1, 6] + w10 * patch[v1, u0, 6] + w11 * patch[v1, u1, 6]
            ) / 255
            slope_x = looks[6] * flat_x - looks[7] * flat_y
            slope_y = looks[7] * flat_x + looks[6] * flat_y
            # Stool and mucus lie on the surface; the threshold falls as it gets dirtier.
            spot_x, spot_y = int((px + looks[4]) * 300), int((py + looks[5]) * 300)
            soil = dirt[spot_y & dirt_mask, spot_x & dirt_mask] - looks[3]
            cover = min(max(soil * 2.5, 0.0), 1.0)
            if cover > 0:
                right = dirt[spot_y & dirt_mask, (spot_x + 3) & dirt_mask] - looks[3]
                below = dirt[(spot_y + 3) & dirt_mask, spot_x & dirt_mask] - looks[3]
                slope_x, slope_y = slope_x + 1.2 * cover * (soil - right), slope_y + 1.2 * cover * (soil - below)
            diffuse, shine = _lit(x, y, slope_x, slope_y, light)
            wound = (
                looks[8]
                * on_polyp
                * min(max(0.4 + 0.5 * dirt[(spot_x // 2) & dirt_mask, spot_y // 2 & dirt_mask], 0.0), 1.0)
            )
            for c in range(3):
                value = (
                    w00 * patch[v0, u0, c] + w01 * patch[v0, u1, c] + w10 * patch[v1, u0, c] + w11 * patch[v1, u1, c]
                ) / 255
                value = value * value * looks[c]
                red = 0.22 if c == 0 else 0.01
                value += wound * (red - value)
                blue = 0.25 if c == 0 else (0.6 if c == 1 else 0.95)
                value += looks[9] * (1 - 0.6 * on_polyp) * (value * blue - value)
                stool = 0.46 if c == 0 else (0.27 if c == 1 else 0.04)
                value += cover * 0.9 * (stool * (0.85 + 0.25 * soil) - value)
                canvas[i, j, c] += opacity * (value * diffuse + shine * 0.9 - canvas[i, j, c])
