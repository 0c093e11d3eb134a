#include "worker/training/gradient_tracker.h"

#include "common/base/error.h"
#include "common/base/log.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string>

namespace parley {
namespace {

using torch::autograd::variable_list;

}  // namespace

GradientTracker::GradientTracker(ModuleBinding& binding, Strategy& strategy)
    : binding_(binding), strategy_(strategy), remaining_(binding.layout().slice_count()) {
  find_places();
  add_hooks();
}

GradientTracker::~GradientTracker() {
  for (const Watch& watch : watches_) watch.accumulator->del_post_hook(watch.hook);
}

void GradientTracker::find_places() {
  const Layout& layout = binding_.layout();
  std::vector<std::vector<Place>> by_tensor(layout.tensors().size());
  std::size_t part_count = 0;
  for (std::uint32_t index = 0; index < layout.slice_count(); ++index) {
    first_part_.push_back(part_count);
    for (const SlicePart& part : layout.slice(SliceId(index)).parts)
      by_tensor[part.tensor].push_back({SliceId(index), part_count++});
  }
  first_part_.push_back(part_count);
  present_.resize(part_count);
  for (const ModuleBinding::Bound& bound : binding_.bound())
    watches_.push_back({.bound = &bound, .places = by_tensor[bound.tensor]});
}

void GradientTracker::add_hooks() {
  for (Watch& watch : watches_) {
    watch.accumulator = torch::autograd::impl::grad_accumulator(watch.bound->parameter);
    // A hook behind the accumulator sees the gradient in the arena; where backward had none for this tensor, it is
    // called with an undefined one, and the tensor counts as not reached.
    auto hook = std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [this, &watch](const variable_list& outputs, const variable_list& inputs) {
          on_gradient(watch, !inputs.empty() && inputs[0].defined());
          return outputs;
        });
    watch.hook = watch.accumulator->add_post_hook(std::move(hook));
  }
}

std::span<const std::uint8_t> GradientTracker::present(SliceId slice) const {
  return std::span(present_).subspan(first_part_[slice.value], first_part_[slice.value + 1] - first_part_[slice.value]);
}

void GradientTracker::begin_step() {
  PARLEY_CHECK(downloading_.empty(), "{} slices of the last step are not delivered", downloading_.size());
  const Layout& layout = binding_.layout();
  std::ranges::fill(present_, std::uint8_t{0});
  for (std::uint32_t index = 0; index < layout.slice_count(); ++index)
    remaining_[index].store(static_cast<std::uint32_t>(layout.slice(SliceId(index)).parts.size()),
                            std::memory_order_relaxed);
  for (Watch& watch : watches_) watch.seen = false;
  binding_.clear_gradients();
  armed_ = true;
}

void GradientTracker::on_gradient(Watch& watch, bool defined) {
  const std::string& name = binding_.layout().tensor(watch.bound->tensor).name;
  if (!armed_) throw RunError(fmt::format("tensor '{}' got a gradient outside a training step", name));
  if (watch.seen)
    throw RunError(
        fmt::format("tensor '{}' got a second gradient in one step: only one backward pass a step is supported", name));
  if (!binding_.gradient_in_place(*watch.bound))
    throw RunError(
        fmt::format("the gradient of tensor '{}' is not in the gradient arena: something replaced it", name));
  watch.seen = true;
  for (const Place& place : watch.places) {
    present_[place.part] = defined ? 1 : 0;
    // Acquire and release: who counts to zero sees the gradients and flags of all the others.
    if (remaining_[place.slice.value].fetch_sub(1, std::memory_order_acq_rel) == 1) complete(place.slice);
  }
  deliver_downloaded(/*wait=*/false);
}

void GradientTracker::complete(SliceId slice) {
  if (binding_.device().is_cpu()) {
    strategy_.slice_ready(slice, present(slice));
    return;
  }
  binding_.start_download(slice);
  downloading_.push_back(slice);
}

void GradientTracker::deliver_downloaded(bool wait) {
  while (!downloading_.empty()) {
    const SliceId slice = downloading_.front();
    if (wait) binding_.finish_download(slice);
    if (!binding_.download_done(slice)) return;
    downloading_.pop_front();
    strategy_.slice_ready(slice, present(slice));
  }
}

void GradientTracker::finish_backward(bool trained) {
  armed_ = false;
  binding_.publish_buffers();
  const Layout& layout = binding_.layout();
  for (std::uint32_t index = 0; index < layout.slice_count(); ++index) {
    if (remaining_[index].load(std::memory_order_acquire) == 0) continue;
    if (layout.slice(SliceId(index)).kind == TensorKind::buffer)
      std::fill(present_.begin() + static_cast<std::ptrdiff_t>(first_part_[index]),
                present_.begin() + static_cast<std::ptrdiff_t>(first_part_[index + 1]),
                static_cast<std::uint8_t>(trained));
    complete(SliceId(index));
  }
  deliver_downloaded(/*wait=*/true);
}

}  // namespace parley
