#include "worker/training/device.h"

#include "common/base/error.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace parley {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    choose_device(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Device, WordsThatArePlacesOrAreNot) {
  EXPECT_EQ(choose_device("cpu"), at::Device(at::kCPU));
  for (const char* text : {"gpu", "cuda", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", ""})
    EXPECT_THAT(refusal(text),
                HasSubstr("worker.device: found '" + std::string(text) + "', expected auto, cpu or cuda:N"));
}

TEST(Device, ADeviceThatIsNotThereIsRefused) {
  if (at::hasCUDA()) GTEST_SKIP() << "this process sees CUDA devices";
  EXPECT_EQ(choose_device("auto"), at::Device(at::kCPU));
  EXPECT_EQ(refusal("cuda:0"), "worker.device: found 'cuda:0', expected auto or cpu: this process sees no CUDA device");
}

}  // namespace
}  // namespace parley
