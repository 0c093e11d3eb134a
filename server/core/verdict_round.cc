#include "server/core/verdict_round.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace parley {

void VerdictRound::add(Clock clock, ShardId from, ShardVerdict verdict) {
  rounds_[clock].try_emplace(from, std::move(verdict));
}

bool VerdictRound::has(Clock clock, ShardId from) const {
  const auto round = rounds_.find(clock);
  return round != rounds_.end() && round->second.contains(from);
}

std::optional<ClockDecision> VerdictRound::decide(Clock clock) const {
  const auto round = rounds_.find(clock);
  if (round == rounds_.end() || round->second.size() < shards_) return std::nullopt;
  ClockDecision decision;
  std::vector<SliceVerdict> slices;
  for (const auto& [shard, verdict] : round->second) {
    if (!verdict.finite) decision.skip = true;
    slices.insert(slices.end(), verdict.slices.begin(), verdict.slices.end());
  }
  if (decision.skip || clip_norm_ <= 0) return decision;
  std::ranges::sort(slices, {}, &SliceVerdict::slice);
  double sum = 0;
  for (const SliceVerdict& slice : slices) sum += slice.sum_of_squares;
  // As torch.nn.utils.clip_grad_norm_: the factor max / (norm + 1e-6), never above 1.
  const double factor = clip_norm_ / (std::sqrt(sum) + 1e-6);
  if (factor < 1) decision.gradient_scale = static_cast<float>(factor);
  return decision;
}

std::vector<Clock> VerdictRound::clocks() const {
  std::vector<Clock> clocks;
  for (const auto& [clock, round] : rounds_) clocks.push_back(clock);
  return clocks;
}

}  // namespace parley
