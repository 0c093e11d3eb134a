#include "worker/training/module_binding.h"

#include "common/base/log.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace parley {
namespace {

std::int64_t as_signed(std::uint64_t count) { return static_cast<std::int64_t>(count); }

at::Tensor wrap(std::span<float> values) {
  return at::from_blob(values.data(), {as_signed(values.size())}, at::kFloat);
}

// A contiguous tensor of `shape` at an element offset of a storage.
at::Tensor view_of(const c10::Storage& storage, std::uint64_t offset, at::IntArrayRef shape) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(storage.device());
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  at::Tensor view = at::empty({0}, options);
  view.set_(storage, as_signed(offset), shape, strides);
  return view;
}

std::uint64_t first_buffer_offset(const Layout& layout) {
  for (std::uint32_t index = 0; index < layout.tensors().size(); ++index)
    if (layout.tensor(index).kind == TensorKind::buffer) return layout.place(index).offset;
  return layout.arena_count();
}

}  // namespace

ModuleBinding::ModuleBinding(const Model& model, const std::vector<ModelTensor>& tensors, const Layout& layout,
                             const ParameterArena& parameters, const GradientArena& gradients, at::Device device)
    : layout_(layout),
      parameters_(parameters),
      gradients_(gradients),
      device_(device),
      buffers_begin_(first_buffer_offset(layout)),
      downloads_(layout.slice_count()) {
  PARLEY_CHECK(tensors.size() == layout.tensors().size(), "{} tensors, {} in the layout", tensors.size(),
               layout.tensors().size());
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  const std::int64_t count = as_signed(layout.arena_count());
  host_gradients_ = wrap(gradients.values());
  device_gradients_ = host_gradients_;
  at::Tensor weights = wrap(parameters.half(Clock(0)));
  if (!device.is_cpu()) {
    device_gradients_ = at::empty({count}, options).zero_();
    for (at::Tensor& half : device_halves_) half = at::empty({count}, options).zero_();
    // A storage of its own, since its pointer will move between those of the two halves.
    weights = at::from_blob(device_halves_[0].mutable_data_ptr(), {count}, options);
  }
  weights_ = weights.storage();
  buffers_ = at::empty({count - as_signed(buffers_begin_)}, options).zero_();

  for (const ModelTensor& item : tensors) bind(item);
  // What has no place in the arena (frozen, empty) still computes together with what has.
  for (const NamedTensor& item : model.parameters())
    if (item.tensor.device() != device) at::Tensor(item.tensor).set_data(item.tensor.detach().to(device));
  select(Clock(0));
}

void ModuleBinding::bind(const ModelTensor& item) {
  const auto index = layout_.find(item.spec.name);
  PARLEY_CHECK(index && layout_.tensor(*index) == item.spec, "tensor '{}' is not in the layout", item.spec.name);
  const TensorPlace& where = layout_.place(*index);
  if (where.count == 0) return;
  const at::IntArrayRef shape(item.spec.shape);
  wrap(parameters_.half(Clock(0)).subspan(where.offset, where.count)).view(shape).copy_(item.tensor.detach());
  at::Tensor tensor = item.tensor;
  if (item.spec.kind == TensorKind::buffer) {
    tensor.set_data(view_of(buffers_.storage(), where.offset - buffers_begin_, shape));
    return;
  }
  tensor.set_data(view_of(weights_, where.offset, shape));
  tensor.mutable_grad() = view_of(device_gradients_.storage(), where.offset, shape);
  bound_.push_back({tensor, *index});
}

void ModuleBinding::select(Clock clock) {
  const at::NoGradGuard no_grad;
  const std::span<float> half = parameters_.half(clock);
  void* address = half.data();
  if (!device_.is_cpu()) {
    at::Tensor& mirror = device_halves_[clock.value % 2];
    mirror.copy_(wrap(half));
    address = mirror.mutable_data_ptr();
  }
  weights_.unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(address, device_));
  if (buffers_.numel() > 0) buffers_.copy_(wrap(buffer_range(half)));
}

void ModuleBinding::clear_gradients() {
  const at::NoGradGuard no_grad;
  if (!device_.is_cpu()) device_gradients_.zero_();
  std::ranges::fill(gradients_.values(), 0.0F);
}

void ModuleBinding::publish_buffers() {
  if (buffers_.numel() == 0) return;
  const at::NoGradGuard no_grad;
  wrap(buffer_range(gradients_.values())).copy_(buffers_);
}

void ModuleBinding::start_download(SliceId id) {
  if (device_.is_cpu()) return;
  const at::NoGradGuard no_grad;
  const Slice& slice = layout_.slice(id);
  if (slice.kind == TensorKind::buffer) return;
  const std::int64_t begin = as_signed(slice.offset);
  const std::int64_t count = as_signed(slice.count);
  host_gradients_.narrow(0, begin, count).copy_(device_gradients_.narrow(0, begin, count), /*non_blocking=*/true);
  auto& event = downloads_[id.value];
  if (!event) event.emplace(device_.type());
  event->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

bool ModuleBinding::download_done(SliceId id) const {
  const auto& event = downloads_[id.value];
  return !event || event->query();
}

void ModuleBinding::finish_download(SliceId id) {
  const auto& event = downloads_[id.value];
  if (event) event->synchronize();
}

bool ModuleBinding::gradient_in_place(const Bound& bound) const {
  const at::Tensor& gradient = bound.parameter.grad();
  if (!gradient.defined() || !gradient.is_contiguous()) return false;
  const auto* const arena = static_cast<const float*>(device_gradients_.const_data_ptr());
  return gradient.const_data_ptr() == arena + layout_.place(bound.tensor).offset;
}

}  // namespace parley
