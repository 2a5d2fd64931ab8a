import math

import pytest
import seqlab
import torch


@pytest.fixture
def hmm():
    return seqlab.Hmm(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0.5, 0.5]))


def test_viterbi(hmm):
    path, score = hmm.decode(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.05, 0.95]]))
    assert path == [0, 0, 1]
    assert score < 0


def test_forward_score_is_above_the_best_path(hmm):
    emission = torch.tensor([[0.9, 0.1], [0.4, 0.6]])
    assert hmm.log_likelihood(emission) > hmm.decode(emission)[1]
    assert hmm.log_likelihood(torch.ones(1, 2)) == pytest.approx(0.0, abs=1e-6)


def test_ctc():
    scores = torch.eye(3).index_select(0, torch.tensor([1, 1, 0, 1, 2, 2]))
    assert seqlab.ctc_decode(scores) == [1, 1, 2]


def test_beam_search():
    steps = [torch.log(torch.tensor([0.6, 0.4])), torch.log(torch.tensor([0.3, 0.7]))]
    assert seqlab.beam_search(steps) == [[0, 1], [1, 1]]


def test_repeat_mask():
    ids = torch.tensor([1, 2, 3, 1, 2])
    assert seqlab.ops.repeat_mask(ids, 3, 5).tolist() == [0, 0, 0, 1, 0]
    assert math.prod(seqlab.ops.repeat_mask(ids, 2, 5).tolist()) == 0
