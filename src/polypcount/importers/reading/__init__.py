"""What the readers of datasets and box formats share."""

from polypcount.importers.reading.files import (
    all_folders,
    entries_of,
    files_by_stem,
    list_files,
    load_json,
    subfolders,
)
from polypcount.importers.reading.identities import (
    join,
    number_or_text,
    numbers_for_polyps,
    polyp_name,
    track_numbers,
)
from polypcount.importers.reading.options import BoxConvention, Options
from polypcount.importers.reading.pixels import image_size, mask_boxes, read_mask
from polypcount.importers.reading.problems import Problems
from polypcount.importers.reading.rows import BoxNumbers, BoxRows, to_xyxy
from polypcount.importers.reading.values import (
    corners_and_sides,
    decimal,
    decimals,
    frames_by_number,
    frames_by_rank,
    json_decimal,
    json_whole,
    last_number,
    quoted,
    safe_names,
    shortest,
    unquoted,
    usable,
    whole,
)
from polypcount.importers.reading.videos import (
    VideoFacts,
    check_options,
    files_by_frame,
    frame_of,
    image_names,
    name_of,
    remark_classes,
    video_folders,
)
from polypcount.importers.reading.work import ImportTask, Work
from polypcount.importers.reading.xml import Element, elements, parse

__all__ = [
    "BoxConvention",
    "BoxNumbers",
    "BoxRows",
    "Element",
    "ImportTask",
    "Options",
    "Problems",
    "VideoFacts",
    "Work",
    "all_folders",
    "check_options",
    "corners_and_sides",
    "decimal",
    "decimals",
    "elements",
    "entries_of",
    "files_by_frame",
    "files_by_stem",
    "frame_of",
    "frames_by_number",
    "frames_by_rank",
    "image_names",
    "image_size",
    "join",
    "json_decimal",
    "json_whole",
    "last_number",
    "list_files",
    "load_json",
    "mask_boxes",
    "name_of",
    "number_or_text",
    "numbers_for_polyps",
    "parse",
    "polyp_name",
    "quoted",
    "read_mask",
    "remark_classes",
    "safe_names",
    "shortest",
    "subfolders",
    "to_xyxy",
    "track_numbers",
    "unquoted",
    "usable",
    "video_folders",
    "whole",
]
