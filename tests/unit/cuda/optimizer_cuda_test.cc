// The GPU's optimizer kernels against the host's: the same bits. Skips where there is no GPU.
#include "common/base/random.h"
#include "common/optimizer/kernels.h"
#include "common/optimizer/mean.h"
#include "common/optimizer/optimizer.h"
#include "worker/cuda/optimizer_kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace parley {
namespace {

constexpr std::size_t kCount = 3'000'001;  // more than one stride of the largest grid, and a tail

void require(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

// A device array that starts as a copy of host values.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    require(cudaMalloc(&pointer_, count_ * sizeof(T)));
    require(cudaMemcpy(pointer_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(pointer_); }

  T* get() const { return static_cast<T*>(pointer_); }
  std::vector<T> values() const {
    std::vector<T> result(count_);
    require(cudaMemcpy(result.data(), pointer_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  std::size_t count_;
  void* pointer_ = nullptr;
};

// Numbers over many magnitudes, zeros of both signs and denormals; finite in all that is computed from them.
std::vector<float> mixed_values(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed, 0);
  std::vector<float> values(count);
  for (float& value : values) {
    const std::uint64_t kind = random.below(8);
    if (kind == 0) {
      value = 0.0F;
    } else if (kind == 1) {
      value = static_cast<float>(random.below(1U << 23)) * std::numeric_limits<float>::denorm_min();
    } else {
      const int exponent = static_cast<int>(random.below(60)) - 40;
      value = static_cast<float>(std::ldexp(random.uniform(), exponent));
    }
    if (random.below(2) == 0) value = -value;
  }
  return values;
}

std::vector<float> absolute(std::vector<float> values) {
  for (float& value : values) value = std::fabs(value);
  return values;
}

std::size_t differing_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t differing = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) ++differing;
  }
  return differing;
}

class OptimizerCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess) GTEST_SKIP() << "no GPU: " << cudaGetErrorString(error);
    if (devices == 0) GTEST_SKIP() << "no GPU";
  }
};

TEST_F(OptimizerCuda, StepsGiveTheHostsBits) {
  const StepScalars scalars{.rate = 0.0123F,
                            .coupled_decay = 0.005F,
                            .decoupled_keep = 0.999F,
                            .momentum = 0.9F,
                            .first_keep = 0.9F,
                            .first_gain = 0.1F,
                            .second_keep = 0.999F,
                            .second_gain = 0.001F,
                            .root_correction = 1.7F,
                            .epsilon = 1e-8F};
  const std::vector<float> gradient = mixed_values(kCount, 1);
  for (std::size_t rule = 0; rule < kUpdateRules; ++rule) {
    std::vector<float> weights = mixed_values(kCount, 2);
    std::vector<float> slot0 = absolute(mixed_values(kCount, 3));
    std::vector<float> slot1 = absolute(mixed_values(kCount, 4));
    const DeviceArray device_gradient(gradient);
    const DeviceArray device_in(weights);
    const DeviceArray device_out(std::vector<float>(kCount, 0.0F));
    const DeviceArray device_slot0(slot0);
    const DeviceArray device_slot1(slot1);
    cuda::apply(static_cast<UpdateRule>(rule), scalars,
                StepArrays{device_gradient.get(), device_in.get(), device_out.get(), device_slot0.get(),
                           device_slot1.get(), kCount},
                nullptr);
    kernels().step[rule](
        scalars, StepArrays{gradient.data(), weights.data(), weights.data(), slot0.data(), slot1.data(), kCount});
    EXPECT_EQ(differing_bits(device_out.values(), weights), 0U) << "rule " << rule;
    EXPECT_EQ(differing_bits(device_slot0.values(), slot0), 0U) << "rule " << rule;
    EXPECT_EQ(differing_bits(device_slot1.values(), slot1), 0U) << "rule " << rule;
  }
}

TEST_F(OptimizerCuda, MeanGivesTheHostsBits) {
  const std::array<std::uint64_t, 2> samples = {31, 64};
  const MeanScaling scaling = mean_scaling(samples);
  std::vector<float> values = mixed_values(kCount, 5);
  const DeviceArray device(values);
  const DeviceArray flag(std::vector<int>{0});
  cuda::scale(device.get(), scaling.before(31), device.get(), kCount, nullptr);
  cuda::finish_mean(device.get(), scaling.after, device.get(), flag.get(), kCount, nullptr);
  scale(values, scaling.before(31), values);
  EXPECT_TRUE(finish_mean(scaling, values, values));
  EXPECT_EQ(differing_bits(device.values(), values), 0U);
  EXPECT_EQ(flag.values()[0], 0);
}

TEST_F(OptimizerCuda, NonFiniteSetsTheFlag) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> values = mixed_values(kCount, 6);
    values.back() = bad;
    const DeviceArray device(values);
    const DeviceArray checked(std::vector<int>{0});
    const DeviceArray finished(std::vector<int>{0});
    cuda::check_finite(device.get(), checked.get(), kCount - 1, nullptr);
    EXPECT_EQ(checked.values()[0], 0);
    cuda::check_finite(device.get(), checked.get(), kCount, nullptr);
    EXPECT_EQ(checked.values()[0], 1);
    cuda::finish_mean(device.get(), 0.5F, device.get(), finished.get(), kCount, nullptr);
    EXPECT_EQ(finished.values()[0], 1);
  }
}

TEST_F(OptimizerCuda, EmptyArraysAreFine) {
  cuda::apply(UpdateRule::sgd, {}, {}, nullptr);
  cuda::scale(nullptr, 1, nullptr, 0, nullptr);
  cuda::finish_mean(nullptr, 1, nullptr, nullptr, 0, nullptr);
  cuda::check_finite(nullptr, nullptr, 0, nullptr);
}

}  // namespace
}  // namespace parley
