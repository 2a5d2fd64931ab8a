"""Time series at several resolutions."""

import torch


class Pyramid:
    """A series and its coarser versions; each level keeps every `step`-th row of the one before."""

    def __init__(self, series, levels=3, step=2):
        self.step = step
        self.levels = [series.reshape(series.shape[0], -1)]
        while len(self.levels) < levels:
            self.levels.append(torch.ops.seqlab.coarsen(self.levels[-1], step))

    def __getitem__(self, level):
        return self.levels[level]

    def lengths(self):
        return [level.shape[0] for level in self.levels]


def coarse_to_fine_dtw(x, y, levels=2):
    """Costs of warping x to y, from the coarsest level to the series themselves."""
    left, right = Pyramid(x, levels), Pyramid(y, levels)
    return [torch.ops.seqlab.dtw(left[level], right[level], -1) for level in reversed(range(levels))]


def summary(series, size):
    """Means, smallest and largest values of windows of `size` rows."""
    pool = torch.ops.seqlab.pool_rows
    return {how: pool(series, size, how).reshape(-1).tolist() for how in ("mean", "min", "max")}
