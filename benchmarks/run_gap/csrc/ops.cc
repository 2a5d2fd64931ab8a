// seqlab: CPU operators for symbol sequences and time series.
//
// Symbols are int64 ids in tensors of one dimension.  A series is [t] or
// [t, c], time first.  Every operator returns freshly allocated outputs and
// leaves its arguments alone; scores are computed in double precision.
#include <Python.h>

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#define SEQ_CHECK_IDS(x)                                                      \
  TORCH_CHECK((x).dim() == 1 && (x).scalar_type() == at::kLong,               \
              #x " must be a vector of int64 ids")
#define SEQ_CHECK_MATRIX(x) \
  TORCH_CHECK((x).dim() == 2, #x " must have 2 dims, got ", (x).dim())
#define SEQ_CHECK_SERIES(x)                                                   \
  TORCH_CHECK((x).dim() == 1 || (x).dim() == 2, #x " must be [t] or [t, c]")

namespace seqlab {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

enum class Pooling { kMean, kMax, kMin };

Pooling parse_pooling(const std::string& name) {
  if (name == "mean") return Pooling::kMean;
  if (name == "max") return Pooling::kMax;
  TORCH_CHECK(name == "min", "unknown pooling: ", name);
  return Pooling::kMin;
}

// A contiguous vector of ids, copied out of its tensor.
std::vector<int64_t> ids_of(const at::Tensor& x) {
  const at::Tensor xc = x.contiguous();
  const int64_t n = xc.numel();
  std::vector<int64_t> out(n);
  if (n > 0) std::memcpy(out.data(), xc.data_ptr<int64_t>(), n * sizeof(int64_t));
  return out;
}

at::Tensor id_tensor(const std::vector<int64_t>& values) {
  const int64_t n = static_cast<int64_t>(values.size());
  at::Tensor out = at::empty({n}, at::TensorOptions().dtype(at::kLong));
  if (n > 0) std::memcpy(out.data_ptr<int64_t>(), values.data(), n * sizeof(int64_t));
  return out;
}

// A matrix in double precision that owns its numbers.
class Table {
 public:
  Table(int64_t rows, int64_t cols, double value)
      : rows_(rows), cols_(cols), data_(rows * cols, value) {}

  static Table load(const at::Tensor& x) {
    const at::Tensor xc = x.to(at::kDouble).contiguous();
    const int64_t cols = xc.dim() == 2 ? xc.size(1) : 1;
    Table out(xc.size(0), cols, 0);
    const double* src = xc.data_ptr<double>();
    std::copy(src, src + xc.numel(), out.data_.begin());
    return out;
  }

  at::Tensor store() const {
    at::Tensor out = at::empty({rows_, cols_}, at::TensorOptions().dtype(at::kDouble));
    std::copy(data_.begin(), data_.end(), out.data_ptr<double>());
    return out;
  }

  double& operator()(int64_t r, int64_t c) { return data_[r * cols_ + c]; }
  double operator()(int64_t r, int64_t c) const { return data_[r * cols_ + c]; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }

 private:
  int64_t rows_;
  int64_t cols_;
  std::vector<double> data_;
};

// Costs of a step in an alignment.
struct Scoring {
  double match, mismatch, gap;

  double pair(int64_t a, int64_t b) const { return a == b ? match : mismatch; }
};

// A step back through a table of an alignment.
enum Move : int8_t { kStop = 0, kDiagonal = 1, kUp = 2, kLeft = 3 };

struct Best {
  double score;
  Move move;
};

Best best_of(double diagonal, double up, double left) {
  Best best{diagonal, kDiagonal};
  if (up > best.score) best = Best{up, kUp};
  if (left > best.score) best = Best{left, kLeft};
  return best;
}

// Walks back from (r, c) and returns the cells on the way, first cell first.
std::vector<int64_t> walk_back(const std::vector<Move>& moves, int64_t width,
                               int64_t r, int64_t c) {
  std::vector<int64_t> cells;
  while (moves[r * width + c] != kStop) {
    const Move move = moves[r * width + c];
    if (move == kDiagonal) {
      cells.push_back(c - 1);
      cells.push_back(r - 1);
    }
    if (move != kLeft) --r;
    if (move != kUp) --c;
  }
  std::reverse(cells.begin(), cells.end());
  return cells;
}

double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  if (b == kMinusInfinity) return a;
  return a + std::log1p(std::exp(b - a));
}

double row_distance(const Table& x, int64_t i, const Table& y, int64_t j) {
  double total = 0;
  for (int64_t c = 0; c < x.cols(); ++c) {
    const double diff = x(i, c) - y(j, c);
    total += diff * diff;
  }
  return std::sqrt(total);
}

// Accumulated costs of dynamic time warping; row and column 0 are the border.
// Cells further than `window` from the diagonal stay at infinity.
Table warp(const Table& x, const Table& y, int64_t window) {
  const int64_t n = x.rows(), m = y.rows();
  const int64_t reach = window < 0 ? std::max(n, m) : std::max(window, std::abs(n - m));
  Table cost(n + 1, m + 1, std::numeric_limits<double>::infinity());
  cost(0, 0) = 0;
  for (int64_t i = 1; i <= n; ++i) {
    const int64_t from = std::max<int64_t>(1, i - reach);
    const int64_t to = std::min<int64_t>(m, i + reach);
    for (int64_t j = from; j <= to; ++j) {
      const double before =
          std::min({cost(i - 1, j - 1), cost(i - 1, j), cost(i, j - 1)});
      cost(i, j) = before + row_distance(x, i - 1, y, j - 1);
    }
  }
  return cost;
}

// Numbers of the rows at which windows of `size` start.
std::vector<int64_t> window_starts(int64_t length, int64_t size, int64_t hop) {
  std::vector<int64_t> starts;
  for (int64_t at = 0; at + size <= length; at += hop) starts.push_back(at);
  return starts;
}

// Indices of the k largest values, the largest first; equal values keep order.
std::vector<int64_t> top_indices(const double* values, int64_t n, int64_t k) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return values[a] > values[b]; });
  order.resize(std::min(n, k));
  return order;
}

// Extremes of the last `size` values, kept in falling (or rising) order.
class RollingExtreme {
 public:
  RollingExtreme(int64_t size, bool largest) : size_(size), largest_(largest) {}

  double push(int64_t position, double value) {
    while (!items_.empty() && !keeps(items_.back().second, value)) items_.pop_back();
    items_.emplace_back(position, value);
    if (items_.front().first <= position - size_) items_.pop_front();
    return items_.front().second;
  }

 private:
  bool keeps(double old, double fresh) const {
    return largest_ ? old > fresh : old < fresh;
  }

  int64_t size_;
  bool largest_;
  std::deque<std::pair<int64_t, double>> items_;
};

// Code of the k ids from `at` on, or -1 when one is outside the alphabet.
int64_t kmer_code(const std::vector<int64_t>& ids, int64_t at, int64_t k,
                  int64_t alphabet) {
  int64_t code = 0;
  for (int64_t i = at; i < at + k; ++i) {
    if (ids[i] < 0 || ids[i] >= alphabet) return -1;
    code = code * alphabet + ids[i];
  }
  return code;
}

int64_t kmer_count(int64_t k, int64_t alphabet) {
  int64_t count = 1;
  for (int64_t i = 0; i < k; ++i) count *= alphabet;
  TORCH_CHECK(count < (int64_t{1} << 24), "too many k-mers: ", count);
  return count;
}

// The series as [t, c], whatever it was.
at::Tensor as_rows(const at::Tensor& series) {
  SEQ_CHECK_SERIES(series);
  const at::Tensor dense = series.contiguous();
  if (dense.dim() == 2) return dense;
  return dense.reshape({dense.size(0), 1});
}

// The rows with the given numbers.
at::Tensor take_rows(const at::Tensor& rows, const std::vector<int64_t>& which) {
  return rows.index_select(0, id_tensor(which)).contiguous();
}

}  // namespace

// ---------------------------------------------------------------------------
// Alignment of symbol sequences
// ---------------------------------------------------------------------------

// Levenshtein distance, in two rows of memory.
int64_t edit_distance(const at::Tensor& a, const at::Tensor& b) {
  SEQ_CHECK_IDS(a);
  SEQ_CHECK_IDS(b);
  const auto left = ids_of(a), right = ids_of(b);
  std::vector<int64_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < left.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < right.size(); ++j) {
      const int64_t change = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// Length of the longest common subsequence.
int64_t lcs_length(const at::Tensor& a, const at::Tensor& b) {
  SEQ_CHECK_IDS(a);
  SEQ_CHECK_IDS(b);
  const auto left = ids_of(a), right = ids_of(b);
  std::vector<int64_t> before(right.size() + 1, 0), now(right.size() + 1, 0);
  for (int64_t id : left) {
    for (size_t j = 0; j < right.size(); ++j) {
      now[j + 1] = id == right[j] ? before[j] + 1 : std::max(before[j + 1], now[j]);
    }
    std::swap(before, now);
  }
  return before.back();
}

// Score of the best local alignment, and the pairs of positions on it [k, 2].
std::tuple<at::Tensor, at::Tensor> local_alignment(const at::Tensor& a,
                                                   const at::Tensor& b,
                                                   double match, double mismatch,
                                                   double gap) {
  SEQ_CHECK_IDS(a);
  SEQ_CHECK_IDS(b);
  const Scoring scoring{match, mismatch, gap};
  const auto left = ids_of(a), right = ids_of(b);
  const int64_t n = static_cast<int64_t>(left.size());
  const int64_t m = static_cast<int64_t>(right.size());
  Table score(n + 1, m + 1, 0);
  std::vector<Move> moves((n + 1) * (m + 1), kStop);
  int64_t end_i = 0, end_j = 0;
  for (int64_t i = 1; i <= n; ++i) {
    for (int64_t j = 1; j <= m; ++j) {
      const double pair = score(i - 1, j - 1) + scoring.pair(left[i - 1], right[j - 1]);
      const Best best = best_of(pair, score(i - 1, j) + gap, score(i, j - 1) + gap);
      if (best.score <= 0) continue;
      score(i, j) = best.score;
      moves[i * (m + 1) + j] = best.move;
      if (best.score > score(end_i, end_j)) {
        end_i = i;
        end_j = j;
      }
    }
  }
  const auto cells = walk_back(moves, m + 1, end_i, end_j);
  const int64_t pairs = static_cast<int64_t>(cells.size()) / 2;
  at::Tensor top = at::empty({1}, at::TensorOptions().dtype(at::kDouble));
  top.data_ptr<double>()[0] = score(end_i, end_j);
  return std::make_tuple(top, id_tensor(cells).reshape({pairs, 2}));
}

// The most frequent symbol of each column of an alignment [n, l]; ties go to
// the smaller symbol.
at::Tensor consensus(const at::Tensor& aligned, int64_t alphabet) {
  SEQ_CHECK_MATRIX(aligned);
  const auto cells = ids_of(aligned);
  const int64_t rows = aligned.size(0), width = aligned.size(1);
  std::vector<int64_t> out(width);
  for (int64_t c = 0; c < width; ++c) {
    std::vector<int64_t> votes(alphabet, 0);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t id = cells[r * width + c];
      if (id >= 0 && id < alphabet) ++votes[id];
    }
    out[c] = std::max_element(votes.begin(), votes.end()) - votes.begin();
  }
  return id_tensor(out);
}

// ---------------------------------------------------------------------------
// Time warping
// ---------------------------------------------------------------------------

// Cost of the cheapest warping of x to y; window < 0 means no window.
double dtw(const at::Tensor& x, const at::Tensor& y, int64_t window) {
  const Table left = Table::load(as_rows(x)), right = Table::load(as_rows(y));
  TORCH_CHECK(left.cols() == right.cols(), "the series differ in channels");
  return warp(left, right, window)(left.rows(), right.rows());
}

// Pairs of positions on the cheapest warping: [k, 2].
at::Tensor dtw_path(const at::Tensor& x, const at::Tensor& y) {
  const Table left = Table::load(as_rows(x)), right = Table::load(as_rows(y));
  TORCH_CHECK(left.cols() == right.cols(), "the series differ in channels");
  const Table cost = warp(left, right, -1);
  int64_t i = left.rows(), j = right.rows();
  std::vector<int64_t> cells;
  while (i > 0 && j > 0) {
    cells.push_back(j - 1);
    cells.push_back(i - 1);
    const Best best = best_of(-cost(i - 1, j - 1), -cost(i - 1, j), -cost(i, j - 1));
    if (best.move != kLeft) --i;
    if (best.move != kUp) --j;
  }
  std::reverse(cells.begin(), cells.end());
  const int64_t pairs = static_cast<int64_t>(cells.size()) / 2;
  return id_tensor(cells).reshape({pairs, 2});
}

// Distances between all rows of two series: [n, m].
at::Tensor cross_distance(const at::Tensor& x, const at::Tensor& y) {
  const Table left = Table::load(as_rows(x)), right = Table::load(as_rows(y));
  TORCH_CHECK(left.cols() == right.cols(), "the series differ in channels");
  Table out(left.rows(), right.rows(), 0);
  for (int64_t i = 0; i < left.rows(); ++i) {
    for (int64_t j = 0; j < right.rows(); ++j) out(i, j) = row_distance(left, i, right, j);
  }
  return out.store();
}

// ---------------------------------------------------------------------------
// Decoding
// ---------------------------------------------------------------------------

// The most likely states of a hidden Markov model, and their log score.
std::tuple<at::Tensor, at::Tensor> viterbi(const at::Tensor& emission,
                                           const at::Tensor& transition,
                                           const at::Tensor& start) {
  SEQ_CHECK_MATRIX(emission);
  SEQ_CHECK_MATRIX(transition);
  const Table emit = Table::load(emission), move = Table::load(transition);
  const Table first = Table::load(start);
  const int64_t steps = emit.rows(), states = emit.cols();
  Table score(steps, states, kMinusInfinity);
  std::vector<int64_t> from(steps * states, 0);
  for (int64_t s = 0; s < states; ++s) score(0, s) = first(s, 0) + emit(0, s);
  for (int64_t t = 1; t < steps; ++t) {
    for (int64_t s = 0; s < states; ++s) {
      for (int64_t p = 0; p < states; ++p) {
        const double candidate = score(t - 1, p) + move(p, s) + emit(t, s);
        if (candidate <= score(t, s)) continue;
        score(t, s) = candidate;
        from[t * states + s] = p;
      }
    }
  }
  std::vector<int64_t> path(steps, 0);
  for (int64_t s = 1; s < states; ++s) {
    if (score(steps - 1, s) > score(steps - 1, path.back())) path.back() = s;
  }
  for (int64_t t = steps - 1; t > 0; --t) path[t - 1] = from[t * states + path[t]];
  at::Tensor top = at::empty({1}, at::TensorOptions().dtype(at::kDouble));
  top.data_ptr<double>()[0] = score(steps - 1, path.back());
  return std::make_tuple(id_tensor(path), top);
}

// Log likelihood of the observations, summed over all paths.
double forward_score(const at::Tensor& emission, const at::Tensor& transition,
                     const at::Tensor& start) {
  SEQ_CHECK_MATRIX(emission);
  SEQ_CHECK_MATRIX(transition);
  const Table emit = Table::load(emission), move = Table::load(transition);
  const Table first = Table::load(start);
  const int64_t states = emit.cols();
  std::vector<double> alpha(states), next(states);
  for (int64_t s = 0; s < states; ++s) alpha[s] = first(s, 0) + emit(0, s);
  for (int64_t t = 1; t < emit.rows(); ++t) {
    for (int64_t s = 0; s < states; ++s) {
      double total = kMinusInfinity;
      for (int64_t p = 0; p < states; ++p) total = log_add(total, alpha[p] + move(p, s));
      next[s] = total + emit(t, s);
    }
    std::swap(alpha, next);
  }
  double total = kMinusInfinity;
  for (double value : alpha) total = log_add(total, value);
  return total;
}

// Drops repeats, then blanks.
at::Tensor ctc_collapse(const at::Tensor& ids, int64_t blank) {
  SEQ_CHECK_IDS(ids);
  std::vector<int64_t> kept;
  int64_t last = blank;
  for (int64_t id : ids_of(ids)) {
    if (id != last && id != blank) kept.push_back(id);
    last = id;
  }
  return id_tensor(kept);
}

// The collapsed best symbols of [t, c] scores, and the best score of each step.
std::tuple<at::Tensor, at::Tensor> ctc_greedy(const at::Tensor& scores, int64_t blank) {
  SEQ_CHECK_MATRIX(scores);
  const Table table = Table::load(scores);
  std::vector<int64_t> best(table.rows(), 0);
  Table top(table.rows(), 1, 0);
  for (int64_t t = 0; t < table.rows(); ++t) {
    for (int64_t c = 1; c < table.cols(); ++c) {
      if (table(t, c) > table(t, best[t])) best[t] = c;
    }
    top(t, 0) = table(t, best[t]);
  }
  return std::make_tuple(ctc_collapse(id_tensor(best), blank), top.store());
}

// The best k of [beams, symbols] scores: (beam, symbol) pairs and the scores.
std::tuple<at::Tensor, at::Tensor> beam_step(const at::Tensor& scores, int64_t k) {
  SEQ_CHECK_MATRIX(scores);
  TORCH_CHECK(k > 0, "k must be positive, got ", k);
  const at::Tensor sc = scores.to(at::kDouble).contiguous();
  const int64_t symbols = sc.size(1);
  const double* src = sc.data_ptr<double>();
  const auto order = top_indices(src, sc.numel(), k);
  const int64_t found = static_cast<int64_t>(order.size());
  at::Tensor pairs = at::empty({found, 2}, at::TensorOptions().dtype(at::kLong));
  at::Tensor values = at::empty({found}, at::TensorOptions().dtype(at::kDouble));
  for (int64_t i = 0; i < found; ++i) {
    pairs.data_ptr<int64_t>()[2 * i] = order[i] / symbols;
    pairs.data_ptr<int64_t>()[2 * i + 1] = order[i] % symbols;
    values.data_ptr<double>()[i] = src[order[i]];
  }
  return std::make_tuple(pairs, values);
}

// 1 at the symbols that would complete an n-gram seen before.
at::Tensor repeat_mask(const at::Tensor& ids, int64_t n, int64_t alphabet) {
  SEQ_CHECK_IDS(ids);
  TORCH_CHECK(n > 1, "n must be at least 2");
  const auto seq = ids_of(ids);
  const int64_t length = static_cast<int64_t>(seq.size());
  at::Tensor out = at::zeros({alphabet}, at::TensorOptions().dtype(at::kLong));
  int64_t* mask = out.data_ptr<int64_t>();
  if (length + 1 < n) return out;
  const auto tail = seq.end() - (n - 1);
  for (int64_t at = 0; at + n <= length; ++at) {
    if (std::equal(tail, seq.end(), seq.begin() + at)) mask[seq[at + n - 1]] = 1;
  }
  return out;
}

// ---------------------------------------------------------------------------
// Runs, k-mers and batches
// ---------------------------------------------------------------------------

std::tuple<at::Tensor, at::Tensor> run_length_encode(const at::Tensor& ids) {
  SEQ_CHECK_IDS(ids);
  std::vector<int64_t> values, counts;
  for (int64_t id : ids_of(ids)) {
    if (values.empty() || values.back() != id) {
      values.push_back(id);
      counts.push_back(0);
    }
    ++counts.back();
  }
  return std::make_tuple(id_tensor(values), id_tensor(counts));
}

at::Tensor run_length_decode(const at::Tensor& values, const at::Tensor& counts) {
  SEQ_CHECK_IDS(values);
  SEQ_CHECK_IDS(counts);
  TORCH_CHECK(values.size(0) == counts.size(0), "one count per value is needed");
  const auto ids = ids_of(values), times = ids_of(counts);
  std::vector<int64_t> out;
  for (size_t i = 0; i < ids.size(); ++i) out.insert(out.end(), times[i], ids[i]);
  return id_tensor(out);
}

// Codes of all k-mers in order; -1 where a symbol is outside the alphabet.
at::Tensor kmer_codes(const at::Tensor& ids, int64_t k, int64_t alphabet) {
  SEQ_CHECK_IDS(ids);
  kmer_count(k, alphabet);
  const auto seq = ids_of(ids);
  std::vector<int64_t> codes;
  for (int64_t at : window_starts(static_cast<int64_t>(seq.size()), k, 1)) {
    codes.push_back(kmer_code(seq, at, k, alphabet));
  }
  return id_tensor(codes);
}

at::Tensor kmer_histogram(const at::Tensor& ids, int64_t k, int64_t alphabet) {
  SEQ_CHECK_IDS(ids);
  const auto seq = ids_of(ids);
  std::vector<int64_t> counts(kmer_count(k, alphabet), 0);
  for (int64_t at : window_starts(static_cast<int64_t>(seq.size()), k, 1)) {
    const int64_t code = kmer_code(seq, at, k, alphabet);
    if (code >= 0) ++counts[code];
  }
  return id_tensor(counts);
}

// Smallest code of each window of w k-mers, repeats dropped.
at::Tensor minimizers(const at::Tensor& ids, int64_t k, int64_t w, int64_t alphabet) {
  const auto codes = ids_of(kmer_codes(ids, k, alphabet));
  std::vector<int64_t> kept;
  RollingExtreme smallest(w, /*largest=*/false);
  for (size_t i = 0; i < codes.size(); ++i) {
    const double low = smallest.push(static_cast<int64_t>(i), static_cast<double>(codes[i]));
    if (static_cast<int64_t>(i) + 1 < w) continue;
    const int64_t code = static_cast<int64_t>(low);
    if (kept.empty() || kept.back() != code) kept.push_back(code);
  }
  return id_tensor(kept);
}

// The strand read backwards, with each base replaced by its complement.
at::Tensor reverse_complement(const at::Tensor& ids, int64_t alphabet) {
  SEQ_CHECK_IDS(ids);
  auto seq = ids_of(ids);
  std::reverse(seq.begin(), seq.end());
  for (int64_t& id : seq) {
    if (id >= 0 && id < alphabet) id = alphabet - 1 - id;
  }
  return id_tensor(seq);
}

// Sequences of different lengths as one matrix, and their lengths.
std::tuple<at::Tensor, at::Tensor> pad_sequences(const std::vector<at::Tensor>& parts,
                                                 int64_t pad) {
  TORCH_CHECK(!parts.empty(), "pad_sequences needs at least one sequence");
  std::vector<int64_t> lengths;
  for (const auto& part : parts) {
    SEQ_CHECK_IDS(part);
    lengths.push_back(part.size(0));
  }
  const int64_t count = static_cast<int64_t>(parts.size());
  const int64_t width = *std::max_element(lengths.begin(), lengths.end());
  std::vector<int64_t> cells(count * width, pad);
  for (int64_t i = 0; i < count; ++i) {
    const auto ids = ids_of(parts[i]);
    std::copy(ids.begin(), ids.end(), cells.begin() + i * width);
  }
  return std::make_tuple(id_tensor(cells).reshape({count, width}), id_tensor(lengths));
}

// 1 where a position is inside its sequence, 0 in the padding: [n, width].
at::Tensor sequence_mask(const at::Tensor& lengths, int64_t width) {
  SEQ_CHECK_IDS(lengths);
  const auto ends = ids_of(lengths);
  const int64_t count = static_cast<int64_t>(ends.size());
  at::Tensor out = at::zeros({count, width}, at::TensorOptions().dtype(at::kLong));
  int64_t* mask = out.data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    std::fill(mask + i * width, mask + i * width + std::min(ends[i], width), 1);
  }
  return out;
}

// ---------------------------------------------------------------------------
// Series
// ---------------------------------------------------------------------------

// Overlapping windows of a series, one after the other: [windows * size, c].
at::Tensor sliding_windows(const at::Tensor& series, int64_t size, int64_t hop) {
  TORCH_CHECK(size > 0 && hop > 0, "size and hop must be positive");
  const at::Tensor rows = as_rows(series);
  std::vector<int64_t> which;
  for (int64_t at : window_starts(rows.size(0), size, hop)) {
    for (int64_t i = 0; i < size; ++i) which.push_back(at + i);
  }
  return take_rows(rows, which);
}

// Every step-th row of a series, from the first on.
at::Tensor coarsen(const at::Tensor& series, int64_t step) {
  TORCH_CHECK(step > 0, "step must be positive, got ", step);
  at::Tensor rows = as_rows(series);
  return rows.slice(0, 0, rows.size(0), step).contiguous();
}

// Means (or extremes) of windows that follow each other without overlap.
at::Tensor pool_rows(const at::Tensor& series, int64_t size, std::string how) {
  TORCH_CHECK(size > 0, "size must be positive, got ", size);
  const Pooling pooling = parse_pooling(how);
  const Table table = Table::load(as_rows(series));
  const auto starts = window_starts(table.rows(), size, size);
  Table out(static_cast<int64_t>(starts.size()), table.cols(), 0);
  for (int64_t w = 0; w < out.rows(); ++w) {
    for (int64_t c = 0; c < table.cols(); ++c) {
      double acc = table(starts[w], c);
      for (int64_t i = starts[w] + 1; i < starts[w] + size; ++i) {
        switch (pooling) {
          case Pooling::kMean:
            acc += table(i, c);
            break;
          case Pooling::kMax:
            acc = std::max(acc, table(i, c));
            break;
          case Pooling::kMin:
            acc = std::min(acc, table(i, c));
            break;
        }
      }
      out(w, c) = pooling == Pooling::kMean ? acc / size : acc;
    }
  }
  return out.store();
}

// Mean of the last `size` rows; the first rows average what there is.
at::Tensor moving_average(const at::Tensor& series, int64_t size) {
  TORCH_CHECK(size > 0, "size must be positive, got ", size);
  const Table table = Table::load(as_rows(series));
  Table out(table.rows(), table.cols(), 0);
  for (int64_t c = 0; c < table.cols(); ++c) {
    double sum = 0;
    for (int64_t t = 0; t < table.rows(); ++t) {
      sum += table(t, c);
      if (t >= size) sum -= table(t - size, c);
      out(t, c) = sum / static_cast<double>(std::min(t + 1, size));
    }
  }
  return out.store();
}

// Largest of the last `size` rows of each channel.
at::Tensor rolling_max(const at::Tensor& series, int64_t size) {
  TORCH_CHECK(size > 0, "size must be positive, got ", size);
  const Table table = Table::load(as_rows(series));
  Table out(table.rows(), table.cols(), 0);
  for (int64_t c = 0; c < table.cols(); ++c) {
    RollingExtreme largest(size, /*largest=*/true);
    for (int64_t t = 0; t < table.rows(); ++t) out(t, c) = largest.push(t, table(t, c));
  }
  return out.store();
}

// Positions of the local maxima above a threshold.
at::Tensor find_peaks(const at::Tensor& series, double threshold) {
  const Table table = Table::load(as_rows(series));
  TORCH_CHECK(table.cols() == 1, "find_peaks takes one channel");
  std::vector<int64_t> peaks;
  for (int64_t t = 1; t + 1 < table.rows(); ++t) {
    const double here = table(t, 0);
    if (here > threshold && here > table(t - 1, 0) && here >= table(t + 1, 0)) {
      peaks.push_back(t);
    }
  }
  return id_tensor(peaks);
}

}  // namespace seqlab

extern "C" {
// The operators live in the dispatcher; this only makes `import _C` work.
PyObject* PyInit__C(void) {
  static struct PyModuleDef module_def = {
      PyModuleDef_HEAD_INIT, "_C", NULL, -1, NULL,
  };
  return PyModule_Create(&module_def);
}
}

TORCH_LIBRARY(seqlab, m) {
  m.def("edit_distance(Tensor a, Tensor b) -> int");
  m.def("lcs_length(Tensor a, Tensor b) -> int");
  m.def("local_alignment(Tensor a, Tensor b, float match, float mismatch, float gap) -> (Tensor, Tensor)");
  m.def("consensus(Tensor aligned, int alphabet) -> Tensor");
  m.def("dtw(Tensor x, Tensor y, int window) -> float");
  m.def("dtw_path(Tensor x, Tensor y) -> Tensor");
  m.def("cross_distance(Tensor x, Tensor y) -> Tensor");
  m.def("viterbi(Tensor emission, Tensor transition, Tensor start) -> (Tensor, Tensor)");
  m.def("forward_score(Tensor emission, Tensor transition, Tensor start) -> float");
  m.def("ctc_collapse(Tensor ids, int blank) -> Tensor");
  m.def("ctc_greedy(Tensor scores, int blank) -> (Tensor, Tensor)");
  m.def("beam_step(Tensor scores, int k) -> (Tensor, Tensor)");
  m.def("repeat_mask(Tensor ids, int n, int alphabet) -> Tensor");
  m.def("run_length_encode(Tensor ids) -> (Tensor, Tensor)");
  m.def("run_length_decode(Tensor values, Tensor counts) -> Tensor");
  m.def("kmer_codes(Tensor ids, int k, int alphabet) -> Tensor");
  m.def("kmer_histogram(Tensor ids, int k, int alphabet) -> Tensor");
  m.def("minimizers(Tensor ids, int k, int w, int alphabet) -> Tensor");
  m.def("reverse_complement(Tensor ids, int alphabet) -> Tensor");
  m.def("pad_sequences(Tensor[] parts, int pad) -> (Tensor, Tensor)");
  m.def("sequence_mask(Tensor lengths, int width) -> Tensor");
  m.def("sliding_windows(Tensor series, int size, int hop) -> Tensor");
  m.def("coarsen(Tensor series, int step) -> Tensor");
  m.def("pool_rows(Tensor series, int size, str how) -> Tensor");
  m.def("moving_average(Tensor series, int size) -> Tensor");
  m.def("rolling_max(Tensor series, int size) -> Tensor");
  m.def("find_peaks(Tensor series, float threshold) -> Tensor");
}

TORCH_LIBRARY_IMPL(seqlab, CPU, m) {
  m.impl("edit_distance", &seqlab::edit_distance);
  m.impl("lcs_length", &seqlab::lcs_length);
  m.impl("local_alignment", &seqlab::local_alignment);
  m.impl("consensus", &seqlab::consensus);
  m.impl("dtw", &seqlab::dtw);
  m.impl("dtw_path", &seqlab::dtw_path);
  m.impl("cross_distance", &seqlab::cross_distance);
  m.impl("viterbi", &seqlab::viterbi);
  m.impl("forward_score", &seqlab::forward_score);
  m.impl("ctc_collapse", &seqlab::ctc_collapse);
  m.impl("ctc_greedy", &seqlab::ctc_greedy);
  m.impl("beam_step", &seqlab::beam_step);
  m.impl("repeat_mask", &seqlab::repeat_mask);
  m.impl("run_length_encode", &seqlab::run_length_encode);
  m.impl("run_length_decode", &seqlab::run_length_decode);
  m.impl("kmer_codes", &seqlab::kmer_codes);
  m.impl("kmer_histogram", &seqlab::kmer_histogram);
  m.impl("minimizers", &seqlab::minimizers);
  m.impl("reverse_complement", &seqlab::reverse_complement);
  m.impl("pad_sequences", &seqlab::pad_sequences);
  m.impl("sequence_mask", &seqlab::sequence_mask);
  m.impl("sliding_windows", &seqlab::sliding_windows);
  m.impl("coarsen", &seqlab::coarsen);
  m.impl("pool_rows", &seqlab::pool_rows);
  m.impl("moving_average", &seqlab::moving_average);
  m.impl("rolling_max", &seqlab::rolling_max);
  m.impl("find_peaks", &seqlab::find_peaks);
}
