"""Decoders that turn scores into symbols."""

import torch


class Hmm:
    """A hidden Markov model in log space."""

    def __init__(self, transition, start):
        self.transition = torch.log(transition)
        self.start = torch.log(start)

    def decode(self, emission):
        """The most likely states and their log score."""
        path, score = torch.ops.seqlab.viterbi(torch.log(emission), self.transition, self.start)
        return path.tolist(), score.tolist()[0]

    def log_likelihood(self, emission):
        return torch.ops.seqlab.forward_score(torch.log(emission), self.transition, self.start)


def ctc_decode(scores, blank=0):
    """Best symbols of [t, c] scores without repeats and blanks."""
    ids, _ = torch.ops.seqlab.ctc_greedy(scores, blank)
    return ids.tolist()


def beam_search(steps, beams=2):
    """The best sequences for a list of [symbols] log scores, best first."""
    sequences, totals = [[]], torch.zeros(1, 1, dtype=torch.float64)
    for scores in steps:
        table = totals + scores.reshape(1, -1)
        pairs, values = torch.ops.seqlab.beam_step(table, beams)
        sequences = [[*sequences[beam], symbol] for beam, symbol in pairs.tolist()]
        totals = values.reshape(-1, 1)
    return sequences
