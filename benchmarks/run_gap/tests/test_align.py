import seqlab
import torch


def test_edit_distance():
    a, b = torch.tensor([1, 2, 3, 4]), torch.tensor([1, 3, 4, 5])
    assert seqlab.edit_distance(a, b) == 2
    assert seqlab.edit_distance(a, a) == 0


def test_similarity():
    a, b = torch.tensor([1, 2, 3, 4]), torch.tensor([1, 9, 3, 8])
    assert seqlab.similarity(a, b) == 0.5


def test_local_alignment_finds_the_common_part():
    score, pairs = seqlab.align_local(torch.tensor([7, 1, 2, 3]), torch.tensor([1, 2, 3, 9]))
    assert score == 6.0
    assert pairs == [[1, 0], [2, 1], [3, 2]]


def test_consensus():
    aligned = torch.tensor([[0, 1, 2], [0, 3, 2], [1, 1, 2]])
    assert seqlab.ops.consensus(aligned, 4).tolist() == [0, 1, 2]


def test_kmers():
    ids = torch.tensor([0, 1, 2, 3, 0, 1])
    assert seqlab.ops.kmer_codes(ids, 2, 4).tolist() == [1, 6, 11, 12, 1]
    assert seqlab.ops.kmer_histogram(ids, 2, 4).tolist()[1] == 2
    assert seqlab.ops.minimizers(ids, 2, 2, 4).tolist() == [1, 6, 11, 1]
    assert seqlab.ops.reverse_complement(ids, 4).tolist() == [2, 3, 0, 1, 2, 3]


def test_runs_round_trip():
    ids = torch.tensor([5, 5, 5, 2, 2, 7])
    values, counts = seqlab.ops.run_length_encode(ids)
    assert values.tolist() == [5, 2, 7] and counts.tolist() == [3, 2, 1]
    assert seqlab.ops.run_length_decode(values, counts).tolist() == ids.tolist()


def test_padding():
    table, lengths = seqlab.ops.pad_sequences([torch.tensor([1, 2, 3]), torch.tensor([4])], 9)
    assert table.tolist() == [[1, 2, 3], [4, 9, 9]]
    assert seqlab.ops.sequence_mask(lengths, 3).tolist() == [[1, 1, 1], [1, 0, 0]]
