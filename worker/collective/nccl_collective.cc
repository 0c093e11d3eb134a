#include "worker/collective/nccl_collective.h"

#include "common/base/error.h"
#include "common/base/log.h"
#include "worker/collective/gpu_claim.h"
#include "worker/collective/local_address.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace parley {
namespace {

// Between two looks at an operation that is under way: short against a transfer, long against a core's time.
constexpr auto kPollInterval = std::chrono::microseconds(20);

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (const char byte : uuid.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

GpuClaim claim_of(int device) {
  GpuClaim claim{.host = host_name(), .uuid = "", .device = fmt::format("cuda:{}", device), .problem = ""};
  int devices = 0;
  cudaError_t status = cudaGetDeviceCount(&devices);
  cudaDeviceProp properties{};
  if (status == cudaSuccess && device >= devices) {
    claim.problem = fmt::format("this machine has {} CUDA device{}", devices, devices == 1 ? "" : "s");
    return claim;
  }
  if (status == cudaSuccess) status = cudaSetDevice(device);
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, device);
  if (status == cudaSuccess) {
    claim.uuid = uuid_text(properties.uuid);
  } else {
    claim.problem = fmt::format("no CUDA device ({})", cudaGetErrorString(status));
  }
  return claim;
}

bool on_device(const void* pointer) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess &&
         (attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged);
}

}  // namespace

// What an error tells about the operation that is running, and when it is to end.
class NcclCollective::Operation {
 public:
  Operation(std::string_view name, std::size_t bytes, Duration timeout)
      : name_(name), bytes_(bytes), started_(std::chrono::steady_clock::now()), timeout_(timeout) {}

  double waited_seconds() const { return to_seconds(std::chrono::steady_clock::now() - started_); }
  bool late() const { return std::chrono::steady_clock::now() - started_ > timeout_; }

  std::string text() const { return fmt::format("{} of {} bytes", name_, bytes_); }

 private:
  const std::string_view name_;
  const std::size_t bytes_;
  const std::chrono::steady_clock::time_point started_;
  const Duration timeout_;
};

NcclCollective::NcclCollective(const NcclOptions& options, RendezvousStore& store) : options_(options) {
  PARLEY_CHECK(options.rank.value < options.world_size, "rank {} of {}", options.rank, options.world_size);
  PARLEY_CHECK(options.timeout > Duration::zero(), "a collective needs a timeout");
  claim_device(store);
  if (options.world_size > 1) connect(store);
}

NcclCollective::~NcclCollective() {
  if (communicator_ != nullptr) {
    // All operations have ended, so nothing is lost where a peer has gone already and finalizing fails.
    const Operation operation("finalize", 0, options_.timeout);
    ncclResult_t state = ncclCommFinalize(communicator_);
    while (state == ncclInProgress && !operation.late()) {
      std::this_thread::sleep_for(kPollInterval);
      if (ncclCommGetAsyncError(communicator_, &state) != ncclSuccess) break;
    }
    if (state == ncclSuccess) {
      ncclCommDestroy(communicator_);
    } else {
      ncclCommAbort(communicator_);
    }
  }
  if (staging_ != nullptr) cudaFree(staging_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void NcclCollective::claim_device(RendezvousStore& store) {
  const GpuClaim ours = claim_of(options_.device);
  std::vector<GpuClaim> claims{ours};
  if (options_.world_size > 1) {
    claims =
        exchange_gpu_claims(store, options_.key_prefix, options_.rank, options_.world_size, ours, options_.timeout);
  }
  if (const auto conflict = find_gpu_conflict(claims)) throw UsageError(*conflict);
}

void NcclCollective::connect(RendezvousStore& store) {
  const LocalAddress local = local_address(options_.host);
  setenv("NCCL_SOCKET_IFNAME", fmt::format("={}", local.interface).c_str(), /*overwrite=*/0);
  const Operation operation("connecting the GPUs of all workers", 0, options_.timeout);
  if (const auto status = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); status != cudaSuccess) {
    fail(operation, cudaGetErrorString(status));
  }
  const std::string key = options_.key_prefix + "nccl_id";
  ncclUniqueId id{};
  if (options_.rank == Rank(0)) {
    if (const auto status = ncclGetUniqueId(&id); status != ncclSuccess) {
      fail(operation, ncclGetErrorString(status));
    }
    store.set(key, std::as_bytes(std::span(id.internal)));
  } else {
    const std::vector<std::byte> value = store.get(key, options_.timeout);
    if (value.size() != sizeof(id.internal)) fail(operation, "the group's NCCL id is malformed");
    std::memcpy(id.internal, value.data(), value.size());
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto status = ncclCommInitRankConfig(&communicator_, static_cast<int>(options_.world_size), id,
                                             static_cast<int>(options_.rank.value), &config);
  if (status != ncclSuccess && status != ncclInProgress) fail(operation, ncclGetErrorString(status));
  await_communicator(operation);
}

void NcclCollective::reserve_staging(std::size_t bytes) {
  if (bytes <= staging_bytes_) return;
  const Operation operation("reserving device memory", bytes, options_.timeout);
  if (staging_ != nullptr) cudaFree(staging_);
  staging_ = nullptr;
  staging_bytes_ = 0;
  void* memory = nullptr;
  if (const auto status = cudaMalloc(&memory, bytes); status != cudaSuccess) {
    fail(operation, cudaGetErrorString(status));
  }
  staging_ = static_cast<std::byte*>(memory);
  staging_bytes_ = bytes;
}

// Aborts the communicator: peers that wait for us in an operation get an error too.
void NcclCollective::fail(const Operation& operation, std::string_view reason) {
  failure_ = fmt::format("worker {}: {} by NCCL on cuda:{} failed after {:.1f} s: {}", options_.rank, operation.text(),
                         options_.device, operation.waited_seconds(), reason);
  if (communicator_ != nullptr) ncclCommAbort(communicator_);
  communicator_ = nullptr;
  throw RunError(failure_);
}

// Until the last call on the communicator is done with on the host; its work on the stream may go on.
void NcclCollective::await_communicator(const Operation& operation) {
  for (;;) {
    ncclResult_t state = ncclSuccess;
    if (const auto status = ncclCommGetAsyncError(communicator_, &state); status != ncclSuccess) {
      fail(operation, ncclGetErrorString(status));
    }
    if (state == ncclSuccess) return;
    if (state != ncclInProgress) {
      fail(operation, fmt::format("{}: {}", ncclGetErrorString(state), ncclGetLastError(communicator_)));
    }
    if (operation.late()) fail(operation, "timed out waiting for the other workers");
    std::this_thread::sleep_for(kPollInterval);
  }
}

void NcclCollective::await_stream(const Operation& operation) {
  for (;;) {
    const cudaError_t status = cudaStreamQuery(stream_);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) fail(operation, cudaGetErrorString(status));
    // Throws where a peer has gone.
    await_communicator(operation);
    if (operation.late()) fail(operation, "timed out waiting for the other workers");
    std::this_thread::sleep_for(kPollInterval);
  }
}

// start(pointer) begins the operation in place at that device address.
template <class Start>
void NcclCollective::run(std::string_view name, std::span<std::byte> bytes, Start&& start) {
  if (!failure_.empty()) throw RunError(failure_);
  const Operation operation(name, bytes.size(), options_.timeout);
  const auto check = [&](cudaError_t status) {
    if (status != cudaSuccess) fail(operation, cudaGetErrorString(status));
  };
  // The current device belongs to the calling thread, which may not be the one that constructed this.
  check(cudaSetDevice(options_.device));
  std::byte* place = bytes.data();
  const bool staged = !on_device(place);
  if (staged) {
    reserve_staging(bytes.size());
    place = staging_;
    check(cudaMemcpyAsync(place, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream_));
  }
  if (const ncclResult_t status = start(place); status != ncclSuccess && status != ncclInProgress) {
    fail(operation, ncclGetErrorString(status));
  }
  await_communicator(operation);
  // Only after the stream, so that a copy into pageable memory cannot block for ever behind an operation that hangs.
  await_stream(operation);
  if (staged) {
    check(cudaMemcpyAsync(bytes.data(), place, bytes.size(), cudaMemcpyDeviceToHost, stream_));
    await_stream(operation);
  }
}

void NcclCollective::all_reduce(std::span<float> values) {
  if (values.empty() || options_.world_size == 1) return;
  run("all_reduce", std::as_writable_bytes(values), [&](std::byte* place) {
    return ncclAllReduce(place, place, values.size(), ncclFloat32, ncclSum, communicator_, stream_);
  });
}

void NcclCollective::broadcast(std::span<std::byte> bytes, Rank root) {
  PARLEY_CHECK(root.value < options_.world_size, "root {} of {} ranks", root, options_.world_size);
  if (bytes.empty() || options_.world_size == 1) return;
  run("broadcast", bytes, [&](std::byte* place) {
    return ncclBroadcast(place, place, bytes.size(), ncclInt8, static_cast<int>(root.value), communicator_, stream_);
  });
}

void NcclCollective::barrier() {
  if (options_.world_size == 1) return;
  float token = 0;
  run("barrier", std::as_writable_bytes(std::span(&token, 1)),
      [&](std::byte* place) { return ncclAllReduce(place, place, 1, ncclFloat32, ncclSum, communicator_, stream_); });
}

}  // namespace parley
