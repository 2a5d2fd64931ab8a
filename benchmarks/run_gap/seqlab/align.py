"""Comparing symbol sequences."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Scores:
    """What a match, a mismatch and a gap count in an alignment."""

    match: float = 2.0
    mismatch: float = -1.0
    gap: float = -2.0


def edit_distance(a, b):
    """Insertions, deletions and changes that turn one sequence into the other."""
    return torch.ops.seqlab.edit_distance(a, b)


def similarity(a, b):
    """1 for equal sequences, 0 for sequences with nothing in common."""
    longest = max(a.shape[0], b.shape[0])
    return torch.ops.seqlab.lcs_length(a, b) / longest if longest else 1.0


def align_local(a, b, scores=None):
    """Score of the best local alignment, and its pairs of positions."""
    s = scores or Scores()
    top, pairs = torch.ops.seqlab.local_alignment(a, b, s.match, s.mismatch, s.gap)
    return top.tolist()[0], pairs.tolist()
