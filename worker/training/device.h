// Where tensors live and how many threads compute: `worker.device` and `worker.threads`. Settings of the process, made
// once at the start of main, before torch computes anything.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace parley {

// "auto" (the first CUDA device if there is one, else the CPU), "cpu" or "cuda:N". UsageError naming worker.device: an
// unknown word, or a device that this process cannot see.
at::Device choose_device(const std::string& text);

// Lets each torch operation use `threads` threads, run one at a time, and choose the algorithms that give the same bits
// each time. Once a process: torch refuses it later.
void configure_torch(int threads);

// The version of the torch library, for reports.
std::string torch_version();

}  // namespace parley
