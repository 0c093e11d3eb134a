#include "worker/training/device.h"

#include "common/base/error.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <charconv>
#include <string_view>

namespace parley {
namespace {

constexpr std::string_view kCuda = "cuda:";

[[noreturn]] void refuse(const std::string& text, const std::string& expected) {
  throw UsageError(fmt::format("worker.device: found '{}', expected {}", text, expected));
}

}  // namespace

at::Device choose_device(const std::string& text) {
  const std::size_t count = at::hasCUDA() ? at::getNumGPUs() : 0;
  if (text == "cpu") return at::kCPU;
  if (text == "auto") return count > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);

  unsigned index = 0;
  const char* const end = text.data() + text.size();
  const bool named = text.starts_with(kCuda);
  const auto parsed = named ? std::from_chars(text.data() + kCuda.size(), end, index)
                            : std::from_chars_result{text.data(), std::errc::invalid_argument};
  if (parsed.ec != std::errc() || parsed.ptr != end) refuse(text, "auto, cpu or cuda:N");
  if (count == 0) refuse(text, "auto or cpu: this process sees no CUDA device");
  if (index >= count) refuse(text, fmt::format("a device from cuda:0 to cuda:{}", count - 1));
  return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

void configure_torch(int threads) {
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
}

std::string torch_version() { return TORCH_VERSION; }

}  // namespace parley
