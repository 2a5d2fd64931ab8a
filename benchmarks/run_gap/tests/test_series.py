import pytest
import seqlab
import torch


@pytest.fixture
def ramp():
    return torch.tensor([float(i) for i in range(8)])


def test_dtw_ignores_a_repeated_sample():
    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 2.0, 3.0])
    assert seqlab.ops.dtw(x, y, -1) == 0.0
    assert seqlab.ops.dtw_path(x, y).tolist() == [[0, 0], [1, 1], [1, 2], [2, 3]]


def test_cross_distance(ramp):
    table = seqlab.ops.cross_distance(ramp, ramp).tolist()
    assert table[2][5] == 3.0 and table[4][4] == 0.0


def test_windows(ramp):
    windows = seqlab.ops.sliding_windows(ramp, 4, 2)
    assert windows.reshape(-1, 4).tolist()[1] == [2.0, 3.0, 4.0, 5.0]


def test_pyramid_halves_the_series(ramp):
    pyramid = seqlab.Pyramid(ramp)
    assert pyramid.lengths() == [8, 4, 2]


def test_coarse_to_fine_ends_with_the_series(ramp):
    assert seqlab.coarse_to_fine_dtw(ramp, ramp)[-1] == 0.0


def test_summary(ramp):
    found = seqlab.summary(ramp, 4)
    assert found == {"mean": [1.5, 5.5], "min": [0.0, 4.0], "max": [3.0, 7.0]}


def test_smoothing(ramp):
    assert seqlab.ops.moving_average(ramp, 2).reshape(-1).tolist()[:3] == [0.0, 0.5, 1.5]
    assert seqlab.ops.rolling_max(-ramp, 3).reshape(-1).tolist()[3] == -1.0


def test_peaks():
    wave = torch.tensor([0.0, 1.0, 0.0, -1.0] * 4)
    assert seqlab.ops.find_peaks(wave, 0.5).tolist() == [1, 5, 9, 13]
