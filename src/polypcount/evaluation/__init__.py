"""How good a grouping is, how good the vectors behind it are, and what that is on average over videos."""

from polypcount.evaluation.candidates import Candidate, default_candidates
from polypcount.evaluation.leave_one_out import leave_one_out
from polypcount.evaluation.nested import NestedStudy, nested_leave_one_out
from polypcount.evaluation.pairs import PairCounts, SweepCounts, pair_counts, sweep_counts
from polypcount.evaluation.retrieval import (
    ReidentificationScores,
    RetrievalScores,
    pair_auc_by_video,
    reidentification_scores,
    retrieval_scores,
)
from polypcount.evaluation.scores import VideoScores, score_video
from polypcount.evaluation.selection import RULES, Rule, choose
from polypcount.evaluation.study import Fold, MethodStudy, RuleStudy, Study
from polypcount.evaluation.summary import Mean, mean_of, summarise

__all__ = [
    "RULES",
    "Candidate",
    "Fold",
    "Mean",
    "MethodStudy",
    "NestedStudy",
    "PairCounts",
    "ReidentificationScores",
    "RetrievalScores",
    "Rule",
    "RuleStudy",
    "Study",
    "SweepCounts",
    "VideoScores",
    "choose",
    "default_candidates",
    "leave_one_out",
    "mean_of",
    "nested_leave_one_out",
    "pair_auc_by_video",
    "pair_counts",
    "reidentification_scores",
    "retrieval_scores",
    "score_video",
    "summarise",
    "sweep_counts",
]
