"""seqlab: operators for symbol sequences and time series, on the CPU."""

import torch

from . import _C  # noqa: F401  (registers the operators)
from .align import Scores, align_local, edit_distance, similarity
from .decode import Hmm, beam_search, ctc_decode
from .series import Pyramid, coarse_to_fine_dtw, summary

ops = torch.ops.seqlab

__all__ = [
    "Hmm",
    "Pyramid",
    "Scores",
    "align_local",
    "beam_search",
    "coarse_to_fine_dtw",
    "ctc_decode",
    "edit_distance",
    "ops",
    "similarity",
    "summary",
]
