#include "worker/sync/allreduce_strategy.h"

#include "common/base/error.h"
#include "common/base/instant.h"
#include "common/base/log.h"
#include "common/optimizer/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace parley {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Rank kSource{0};  // whose initial weights and buffers count

}  // namespace

AllreduceStrategy::AllreduceStrategy(const AllreduceStrategyOptions& options, const Layout& layout,
                                     ParameterArena parameters, GradientArena gradients, Collective& collective)
    : options_(options),
      layout_(layout),
      parameters_(parameters),
      gradients_(gradients),
      collective_(collective),
      exchange_(collective, layout.tensors().size()),
      tensor_present_(layout.tensors().size()),
      gate_(layout) {
  std::size_t most_parts = 0;
  optimizers_.reserve(layout.slice_count());
  for (const Slice& slice : layout.slices()) {
    PARLEY_CHECK(slice.group < options_.groups.size(), "group {} of {}", slice.group, options_.groups.size());
    optimizers_.emplace_back(options_.optimizer, options_.groups[slice.group], slice);
    most_parts = std::max(most_parts, slice.parts.size());
  }
  part_present_.resize(most_parts);
}

AllreduceStrategy::~AllreduceStrategy() { gate_.abandon(); }

Clock AllreduceStrategy::start() {
  comms_.post([this] { collective_.broadcast(std::as_writable_bytes(parameters_.half(Clock(0))), kSource); });
  comms_.wait();
  return Clock(0);
}

StepResult AllreduceStrategy::begin_step(Clock clock, std::uint64_t samples) {
  if (options_.check_job) options_.check_job();
  gate_.reset();
  const bool stop = stop_at_ && *stop_at_ <= clock;
  comms_.post([this, ours = Contribution{clock, samples, stop, false}] { run_step(ours); });
  return StepResult::advanced;
}

void AllreduceStrategy::slice_ready(SliceId slice, std::span<const std::uint8_t> present) {
  gate_.mark(slice, present);
}

StepResult AllreduceStrategy::finish_step(Clock clock) {
  PARLEY_CHECK(gate_.all_ready(), "finish_step({}) before all slices were ready", clock);
  if (wait_for_step() == Outcome::stopped) return StepResult::stopped;
  apply(clock);
  return StepResult::advanced;
}

void AllreduceStrategy::request_stop(Clock clock) {
  if (!stop_at_ || clock < *stop_at_) stop_at_ = clock;
}

Clock AllreduceStrategy::finish(Clock clock) {
  for (;;) {
    gate_.reset();
    gate_.mark_all_absent();
    comms_.post([this, ours = Contribution{clock, 0, false, true}] { run_step(ours); });
    const Outcome outcome = wait_for_step();
    if (outcome == Outcome::finished) break;
    // Where somebody stops at this clock, it will finish at this clock too.
    if (outcome == Outcome::stopped) continue;
    apply(clock);
    ++clock;
  }
  comms_.post([this] { collective_.barrier(); });
  comms_.wait();
  return clock;
}

AllreduceStrategy::Outcome AllreduceStrategy::wait_for_step() {
  const auto since = SteadyClock::now();
  comms_.wait();
  const double blocked = to_seconds(SteadyClock::now() - since);
  // The rank that came last to the operations saw nothing but communication; what the others were in them longer than
  // that they spent waiting for it. A step that closed nothing was all waiting.
  double waiting = blocked;
  if (outcome_ == Outcome::advanced) {
    const auto& busy = closing_->busy_seconds;
    const double longer = busy[collective_.rank().value] - *std::ranges::min_element(busy);
    waiting = std::min(blocked, longer);
  }
  stats_.waiting_seconds += waiting;
  stats_.communication_seconds += blocked - waiting;
  stats_.bytes_pushed = bytes_pushed_;
  stats_.bytes_pulled = bytes_pulled_;
  return outcome_;
}

void AllreduceStrategy::apply(Clock clock) {
  const double rate = learning_rate(options_.schedule, clock);
  for (std::uint32_t index = 0; index < layout_.slice_count(); ++index) {
    const SliceId id(index);
    const Slice& slice = layout_.slice(id);
    const auto present = std::span(part_present_).first(slice.parts.size());
    for (std::size_t part = 0; part < present.size(); ++part) {
      present[part] = slice.kind == TensorKind::buffer ? 1 : closing_->present[slice.parts[part].tensor];
    }
    optimizers_[index].apply(rate, present, gradients_.slice(id), parameters_.slice(id, clock),
                             parameters_.slice(id, clock.next()));
  }
}

template <class Operation>
void AllreduceStrategy::timed(Operation&& operation) {
  const auto since = SteadyClock::now();
  operation();
  busy_ += SteadyClock::now() - since;
}

void AllreduceStrategy::run_step(const Contribution& ours) {
  busy_ = {};
  non_finite_.reset();
  overflow_.reset();
  std::fill(tensor_present_.begin(), tensor_present_.end(), 0);

  timed([&] { opening_ = &exchange_.open(ours.samples, ours.stop, ours.finished); });
  if (opening_->finished == collective_.world_size()) {
    outcome_ = Outcome::finished;
    return;
  }
  if (opening_->stop) {
    outcome_ = Outcome::stopped;
    return;
  }
  scaling_ = mean_scaling(opening_->samples);
  for (std::uint32_t index = 0; index < layout_.slice_count(); ++index) {
    const SliceId id(index);
    const Slice& slice = layout_.slice(id);
    const auto present = gate_.wait(id);
    const auto gradient = gradients_.slice(id);
    if (slice.kind == TensorKind::buffer) {
      share_buffer(slice, present, gradient, ours.clock);
      continue;
    }
    prepare(slice, present, gradient, ours);
    timed([&] { collective_.all_reduce(gradient); });
    if (!finish_mean(scaling_, gradient, gradient)) note_non_finite(slice, gradient, overflow_);
    if (collective_.world_size() > 1) {
      bytes_pushed_ += slice.bytes();
      bytes_pulled_ += slice.bytes();
    }
  }
  // Not timed: it carries the time of all that came before.
  closing_ = &exchange_.close(tensor_present_, non_finite_, to_seconds(busy_));
  judge(ours.clock);
  outcome_ = Outcome::advanced;
}

// Makes the slice what the others are to add: zeros for what we have not, scaled where counts differ.
void AllreduceStrategy::prepare(const Slice& slice, std::span<const std::uint8_t> present, std::span<float> gradient,
                                const Contribution& ours) {
  if (ours.samples == 0) {
    std::ranges::fill(gradient, 0.0F);
    return;
  }
  for (std::size_t index = 0; index < slice.parts.size(); ++index) {
    const SlicePart& part = slice.parts[index];
    if (present[index] != 0) {
      tensor_present_[part.tensor] = 1;
    } else {
      std::ranges::fill(gradient.subspan(part.begin, part.count), 0.0F);
    }
  }
  if (!all_finite(gradient)) note_non_finite(slice, gradient, non_finite_);
  if (scaling_.weighted) scale(gradient, scaling_.before(ours.samples), gradient);
}

void AllreduceStrategy::note_non_finite(const Slice& slice, std::span<const float> values,
                                        std::optional<std::uint32_t>& tensor) const {
  if (tensor) return;
  for (const SlicePart& part : slice.parts) {
    if (all_finite(values.subspan(part.begin, part.count))) continue;
    tensor = part.tensor;
    return;
  }
  PARLEY_CHECK(tensor, "a padding value of the gradient arena is not finite");
}

void AllreduceStrategy::share_buffer(const Slice& slice, std::span<const std::uint8_t> present, std::span<float> values,
                                     Clock clock) {
  if (collective_.rank() == kSource) {
    const auto old_values = parameters_.half(clock).subspan(slice.offset, slice.count);
    for (std::size_t index = 0; index < slice.parts.size(); ++index) {
      const SlicePart& part = slice.parts[index];
      if (present[index] != 0) continue;
      copy_weights(old_values.subspan(part.begin, part.count), values.subspan(part.begin, part.count));
    }
  }
  timed([&] { collective_.broadcast(std::as_writable_bytes(values), kSource); });
  if (collective_.world_size() > 1) {
    (collective_.rank() == kSource ? bytes_pushed_ : bytes_pulled_) += slice.bytes();
  }
}

// Throws where this clock must not be applied; on exchanged values only, so that all ranks throw the same.
void AllreduceStrategy::judge(Clock clock) const {
  for (std::size_t rank = 0; rank < closing_->non_finite.size(); ++rank) {
    if (const auto tensor = closing_->non_finite[rank]) {
      throw RunError(
          fmt::format("the gradient of worker {} at clock {} is not finite in tensor '{}'; the job "
                      "stops before "
                      "any weight of that clock is changed",
                      rank, clock, layout_.tensor(*tensor).name));
    }
  }
  if (overflow_) {
    throw RunError(
        fmt::format("the mean gradient at clock {} is not finite in tensor '{}', though every worker's "
                    "gradient "
                    "is (their sum overflows); the job stops before any weight of that clock is changed",
                    clock, layout_.tensor(*overflow_).name));
  }
}

}  // namespace parley
