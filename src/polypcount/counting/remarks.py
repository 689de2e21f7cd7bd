"""What a reader of a count should know, in sentences."""

import numpy as np

from polypcount.clustering import OperatingPoint
from polypcount.counting.decide import Decision
from polypcount.counting.found import FoundTracklets
from polypcount.counting.looks import LookFigures
from polypcount.counting.recording import Recording
from polypcount.counting.scope import MUCH_LEFT_OUT, why_no_interval
from polypcount.counting.settings import CountSettings
from polypcount.counting.tracklets import TrackedBoxes
from polypcount.video import FrameMask

UNKNOWN_RATE = "The frame rate is not known, so times are given in frames."
UNMET = "No interval is given: the number of polyps that was given could not be met."


def no_interval(
    recording: Recording, found: FoundTracklets, decision: Decision, point: OperatingPoint, settings: CountSettings
) -> str:
    """Why no interval can be given, a sentence; empty if one can. Without any tracklet: why nothing was counted."""
    tracked = found.tracked
    if not len(decision.labels):
        if found.looks.looks:
            tracklets, longest = len(tracked.tracklets), int(tracked.tracklets.box_count.max(initial=0))
            return why_nothing_found(found.looks, tracklets, longest, tracked.min_frames, recording.seconds)
        return _why_nothing(tracked, settings)
    if decision.unmet:
        return UNMET
    if settings.keep_polyps:
        return "No interval is given: the polyps are those that came with the boxes."
    return why_no_interval(point, recording.seconds, len(decision.labels), tracked.short_share)


def remarks(
    recording: Recording, found: FoundTracklets, decision: Decision, mask: FrameMask | None, settings: CountSettings
) -> tuple[str, ...]:
    """The remarks of a report; the most important first."""
    tracked, video = found.tracked, recording.video
    boxes, sentences = tracked.boxes, set_aside_remarks(len(found.set_aside))
    ownerless = int((tracked.tracklets.label < 0).sum())
    if len(decision.labels):
        sentences += _left_out(tracked)
    if tracked.named_polyps:
        sentences.append(_named(tracked, decision, kept=settings.keep_polyps))
    if found.looks.looks:
        sentences.append(looks_remark(found.looks))
    elif tracked.tracked:
        lost = f"; {ownerless:,} of {len(boxes):,} are in no track" if ownerless else ""
        sentences.append(f"The boxes came without tracks and were tracked{lost}.")
    elif ownerless:
        sentences.append(
            f"{ownerless:,} of {len(boxes):,} boxes have neither a polyp nor a track, unlike the others, and were not "
            "counted."
        )
    if len(recording.part) < video.frame_count:
        first, last = recording.part[0], recording.part[-1]
        sentences.append(f"Only frames {first:,} to {last:,} of {video.frame_count:,} were counted.")
    if recording.unread_frames:
        sentences.append(f"{recording.unread_frames:,} of {len(recording.part):,} frames could not be read.")
    if video.fps is None:
        sentences.append(UNKNOWN_RATE)
    elif settings.fps is not None and settings.fps != video.fps:
        sentences.append(
            f"The recording has a frame rate of its own, {video.fps:g}, so the given one, {settings.fps:g}, was not "
            "used."
        )
    if decision.unmet:
        sentences.append(decision.unmet)
    if settings.pictures:
        sentences.append(mask_remark(mask, settings.mask_border))
    return tuple(sentences)


def mask_remark(mask: FrameMask | None, mask_border: bool) -> str:
    """A remark on what is blacked out in the pictures, for people who pass the report on."""
    if mask is not None and mask.view is not None:
        rectangles = ", and so were the given rectangles" if mask.rectangles else ""
        return f"In pictures, everything outside the endoscope's view was blacked out{rectangles}."
    if mask_border:
        return "No dark border around the endoscope's view was found: look for burned-in text before passing this on."
    if mask is None:
        return "In pictures, the border was left as it is."
    return "In pictures, only the given rectangles were blacked out."


def looks_remark(looks: LookFigures) -> str:
    """How a detector looked at a recording."""
    if looks.step == 1:
        return f"The detector looked at every frame, {looks.looks:,} in all; its boxes were tracked."
    every = {2: "second", 3: "third"}.get(looks.step, f"{looks.step}th")
    return (
        f"The detector looked at every {every} frame, {looks.looks:,} in all; its boxes were tracked, and boxes in the "
        "frames between were interpolated."
    )


def set_aside_remarks(set_aside: int) -> list[str]:
    """How many tracklets are perhaps no polyp; nothing where there are none."""
    if not set_aside:
        return []
    many = "1 tracklet is" if set_aside == 1 else f"{set_aside} tracklets are"
    return [f"{many} perhaps no polyp, by the scores of the detector, and not counted. The report shows them apart."]


def why_nothing_found(looks: LookFigures, tracklets: int, longest: int, min_boxes: int, seconds: float | None) -> str:
    """Why nothing is counted of a recording in which a detector looked for polyps.

    Args:
        looks: How it looked.
        tracklets: How many tracklets there are.
        longest: Boxes of the longest.
        min_boxes: Boxes that a tracklet must have.
        seconds: Duration of what was looked at; None where it is not known.
    """
    length = "the recording" if seconds is None else f"{int(seconds) // 60}:{int(seconds) % 60:02d} of recording"
    looked = f"{looks.looks:,} looks in {length}"
    if not tracklets:
        best = f"the highest score is {looks.best_score:.2g}" if looks.best_score else "there is no box at all"
        return f"{looked}, no box that begins a track: {best}, and a track begins with {looks.threshold:.2g}."
    if longest < min_boxes:
        return (
            f"{looked}, no tracklet that is long enough to be counted: {min_boxes} boxes are needed, and the longest "
            f"of {tracklets:,} has {longest}."
        )
    return f"{looked}, no tracklet that is counted: those that are long enough are perhaps no polyps."


def _why_nothing(tracked: TrackedBoxes, settings: CountSettings) -> str:
    """Why there is no tracklet to count."""
    boxes, tracklets = tracked.boxes, tracked.tracklets
    if not len(boxes):
        return "There are no boxes, so there is nothing to count."
    if tracked.tracked and not len(tracklets):
        low, middle, high = np.quantile(boxes.score, (0, 0.5, 1))
        return (
            f"None of the {len(boxes):,} boxes has the score of {settings.tracker.confidence:g} that begins a track. "
            f"Their scores are {low:.2g} to {high:.2g}, half of them below {middle:.2g}."
        )
    if not len(tracklets):
        return f"None of the {len(boxes):,} boxes has a polyp or a track."
    longest = int(tracklets.box_count.max())
    return (
        f"No tracklet is long enough to be counted: {tracked.min_frames} boxes are needed, and the longest of "
        f"{len(tracklets):,} has {longest}."
    )


def _left_out(tracked: TrackedBoxes) -> list[str]:
    """How much was too short to be counted."""
    short = tracked.tracklets.box_count < tracked.min_frames
    if not short.any():
        return []
    warning = "Much was left out: " if tracked.short_share > MUCH_LEFT_OUT else ""
    return [
        f"{warning}{int(short.sum())} of {len(short)} tracklets, with {tracked.short_share:.0%} of the boxes, have "
        f"fewer than {tracked.min_frames} boxes and were not counted."
    ]


def _named(tracked: TrackedBoxes, decision: Decision, *, kept: bool) -> str:
    """How many polyps the boxes name, beside how many were counted."""
    named, counted = tracked.named_polyps, len(np.unique(decision.labels))
    polyps = "1 polyp" if named == 1 else f"{named} polyps"
    owners = tracked.tracklets.polyp[tracked.counted]
    seen = len(np.unique(owners[owners >= 0]))
    short = f" {named - seen} of them have only tracklets that are too short." if seen < named else ""
    if kept:
        return f"The boxes name {polyps}, which were kept.{short}"
    return f"The boxes name {polyps}; by appearance and time, {counted} were counted.{short}"
