"""Figures of the 60 procedures of REAL-Colon, on which simulated timelines are modelled.

From the tables published with the dataset (Biffi et al., Scientific Data 2024, CC BY 4.0): frame rate and number of
frames from `video_info.csv`, and polyps counted in `lesion_info.csv`. Users of the dataset counted in the annotations
how many frames show a polyp.
"""

from typing import Literal, NamedTuple, get_args

from polypcount.errors import DataError

SplitPart = Literal["all", "train", "study", "none"]


class RealColonProcedure(NamedTuple):
    """One procedure: its name, frames per second, number of frames, polyps, and frames that show a polyp."""

    name: str
    fps: float
    frame_count: int
    polyps: int
    polyp_frames: int


def procedures_like(part: SplitPart) -> tuple[RealColonProcedure, ...]:
    """All 60 procedures, a part of the published split, which has only procedures with polyps, or those without any.

    "train" is 001-008 of each study (27 procedures, 85 polyps), "study" the others (19 procedures, 47 polyps), and
    "none" the 14 procedures without a polyp.
    """
    if part not in get_args(SplitPart):
        raise DataError(f"like must be one of {', '.join(get_args(SplitPart))}, found {part!r}")
    if part == "none":
        return tuple(p for p in REAL_COLON if not p.polyps)
    return tuple(p for p in REAL_COLON if part == "all" or (p.polyps and (int(p.name[-3:]) <= 8) == (part == "train")))


REAL_COLON = (
    RealColonProcedure("001-001", 29.97, 45465, 3, 6190),
    RealColonProcedure("001-002", 29.97, 26164, 0, 0),
    RealColonProcedure("001-003", 29.97, 39611, 2, 5598),
    RealColonProcedure("001-004", 29.97, 45663, 2, 5244),
    RealColonProcedure("001-005", 29.97, 29161, 1, 2996),
    RealColonProcedure("001-006", 29.97, 49901, 7, 12130),
    RealColonProcedure("001-007", 29.97, 39580, 6, 7057),
    RealColonProcedure("001-008", 29.97, 35740, 0, 0),
    RealColonProcedure("001-009", 29.97, 40700, 2, 7714),
    RealColonProcedure("001-010", 29.97, 46424, 3, 3318),
    RealColonProcedure("001-011", 29.97, 24006, 0, 0),
    RealColonProcedure("001-012", 60, 42420, 0, 0),
    RealColonProcedure("001-013", 29.97, 22418, 0, 0),
    RealColonProcedure("001-014", 29.97, 28712, 1, 1255),
    RealColonProcedure("001-015", 29.97, 31349, 0, 0),
    RealColonProcedure("002-001", 25, 25998, 0, 0),
    RealColonProcedure("002-002", 25, 24969, 2, 5132),
    RealColonProcedure("002-003", 25, 48091, 9, 16239),
    RealColonProcedure("002-004", 25, 31818, 3, 5469),
    RealColonProcedure("002-005", 25, 40734, 4, 6443),
    RealColonProcedure("002-006", 29.97, 52719, 2, 5351),
    RealColonProcedure("002-007", 25, 50299, 6, 12411),
    RealColonProcedure("002-008", 29.97, 33216, 3, 5794),
    RealColonProcedure("002-009", 29.97, 29853, 5, 6775),
    RealColonProcedure("002-010", 25, 25898, 3, 4408),
    RealColonProcedure("002-011", 29.97, 38474, 5, 10916),
    RealColonProcedure("002-012", 29.97, 34464, 0, 0),
    RealColonProcedure("002-013", 29.97, 24432, 0, 0),
    RealColonProcedure("002-014", 25, 56272, 4, 9041),
    RealColonProcedure("002-015", 29.97, 20915, 0, 0),
    RealColonProcedure("003-001", 25, 51719, 1, 8640),
    RealColonProcedure("003-002", 25, 50601, 4, 6291),
    RealColonProcedure("003-003", 25, 105812, 8, 21286),
    RealColonProcedure("003-004", 25, 75918, 3, 9398),
    RealColonProcedure("003-005", 25, 123610, 3, 13681),
    RealColonProcedure("003-006", 25, 102691, 4, 9055),
    RealColonProcedure("003-007", 25, 58647, 1, 1170),
    RealColonProcedure("003-008", 25, 51679, 3, 9109),
    RealColonProcedure("003-009", 25, 58238, 1, 3765),
    RealColonProcedure("003-010", 25, 56282, 1, 2680),
    RealColonProcedure("003-011", 25, 63077, 0, 0),
    RealColonProcedure("003-012", 25, 96731, 3, 11778),
    RealColonProcedure("003-013", 25, 73670, 6, 14686),
    RealColonProcedure("003-014", 25, 77112, 1, 4317),
    RealColonProcedure("003-015", 25, 111057, 1, 7889),
    RealColonProcedure("004-001", 29.97, 25516, 1, 3298),
    RealColonProcedure("004-002", 29.97, 34529, 0, 0),
    RealColonProcedure("004-003", 29.97, 33598, 3, 8735),
    RealColonProcedure("004-004", 29.97, 33960, 1, 4499),
    RealColonProcedure("004-005", 29.97, 22465, 1, 3401),
    RealColonProcedure("004-006", 29.97, 40986, 1, 3437),
    RealColonProcedure("004-007", 29.97, 29108, 0, 0),
    RealColonProcedure("004-008", 29.97, 22742, 1, 1422),
    RealColonProcedure("004-009", 29.97, 30311, 1, 2800),
    RealColonProcedure("004-010", 29.97, 24491, 0, 0),
    RealColonProcedure("004-011", 29.97, 48470, 1, 2781),
    RealColonProcedure("004-012", 29.97, 23527, 1, 3592),
    RealColonProcedure("004-013", 29.97, 54167, 1, 23201),
    RealColonProcedure("004-014", 29.97, 36869, 4, 7965),
    RealColonProcedure("004-015", 29.97, 54674, 3, 13752),
)

# The dataset has 351,264 boxes in the 342,109 frames that show a polyp: some show two.
BOXES_PER_POLYP_FRAME = 351_264 / 342_109

# How often each value occurs among the 132 polyps; sites in the order in which a withdrawing endoscope passes them.
SITES = {
    "caecum": 6,
    "ascending": 25,
    "hepatic_flexure": 8,
    "transverse": 13,
    "splenic_flexure": 4,
    "descending": 14,
    "sigma": 32,
    "rectum": 30,
}
HISTOLOGIES = {"AD": 55, "HP": 54, "NO POLYP": 19, "SSL": 2, "TSA": 1, "OTHER": 1}
SIZES_MM = {1: 27, 2: 34, 3: 29, 4: 16, 5: 11, 6: 7, 7: 1, 8: 3, 9: 1, 10: 2, 17: 1}

# Medians of `polypcount.simulate.spread` of real boxes, computed by benchmarks/real_boxes.py: every box of three whole
# procedures of REAL-Colon (CC BY 4.0), and of the 139 videos of LDPolypVideo (Ma et al., MICCAI 2021) that have one box
# in a frame, whose frame rate is taken as 25.
REAL_BOXES: dict[str, dict[str, float]] = {
    "REAL-Colon 003-001": {
        "seconds": 3.64,
        "gap_seconds": 0.68,
        "motion": 0.0086,
        "size": 0.2281,
        "size_between": 0.4462,
        "size_within": 0.2375,
        "aspect_within": 0.1679,
        "distance": 0.2345,
        "edge": 0.0984,
        "short": 0.25,
    },
    "REAL-Colon 004-008": {
        "seconds": 7.3574,
        "gap_seconds": 2.0687,
        "motion": 0.0067,
        "size": 0.3031,
        "size_between": 0.3209,
        "size_within": 0.3309,
        "aspect_within": 0.273,
        "distance": 0.2825,
        "edge": 0.2631,
        "short": 0.4545,
    },
    "REAL-Colon 001-003": {
        "seconds": 2.4358,
        "gap_seconds": 0.7674,
        "motion": 0.0106,
        "size": 0.1502,
        "size_between": 0.4793,
        "size_within": 0.2259,
        "aspect_within": 0.1567,
        "distance": 0.3293,
        "edge": 0.0282,
        "short": 0.625,
    },
    "LDPolypVideo": {
        "seconds": 3.56,
        "gap_seconds": 0.72,
        "motion": 0.0104,
        "size": 0.1613,
        "size_between": 0.2001,
        "size_within": 0.1766,
        "aspect_within": 0.1484,
        "distance": 0.2687,
        "edge": 0.0146,
        "short": 0.4341,
    },
}
