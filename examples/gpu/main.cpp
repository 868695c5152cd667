// A sink that registers the output buffer of a running unit with a GPU, which then reads each built
// event (MEP) where the unit has built it. Start the run with measure.output_alignment="4 KiB".
//
//     my_gpu_sink daqloom/RUN/UNIT/output ALIGNMENT
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include <daqloom/live/memory/buffer_client.hpp>
#include <daqloom/live/memory/clock.hpp>

#if defined(WITH_CUDA)
#include <cuda_runtime.h>
#define GPU(call) cuda##call
#elif defined(WITH_HIP)
#include <hip/hip_runtime.h>
#define GPU(call) hip##call
#endif

using namespace daqloom;

int fail(const std::string& message) {
    std::fprintf(stderr, "my_gpu_sink: %s\n", message.c_str());
    return 1;
}

/// Whole pages of memory, registered with the GPU while this object exists. The memory must stay
/// mapped for longer: declare this object behind the AttachedBuffer.
class Registered {
  public:
    explicit Registered(std::span<std::byte> memory) : memory_(memory) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        const std::size_t pages = (memory.size() + page - 1) / page * page;
        is_ready_ = reinterpret_cast<std::uintptr_t>(memory.data()) % page == 0;
#ifdef GPU
        is_ready_ = is_ready_ && GPU(HostRegister)(memory.data(), pages, 0) == GPU(Success) &&
                    GPU(Malloc)(&device_, pages) == GPU(Success);
#else
        std::printf("no GPU: %zu pages could be registered\n", pages / page);
#endif
    }
    ~Registered() {
#ifdef GPU
        (void)GPU(Free)(device_);
        (void)GPU(HostUnregister)(memory_.data());
#endif
    }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;

    [[nodiscard]] bool is_ready() const { return is_ready_; }
    /// Copies a part of the memory to the GPU by DMA, and waits for the end of the copy.
    [[nodiscard]] bool copy([[maybe_unused]] std::span<const std::byte> bytes) const {
#ifdef GPU
        return GPU(MemcpyAsync)(device_, bytes.data(), bytes.size(), GPU(MemcpyHostToDevice),
                                nullptr) == GPU(Success) &&
               GPU(StreamSynchronize)(nullptr) == GPU(Success);
#else
        return true;
#endif
    }

  private:
    std::span<std::byte> memory_;
    void* device_ = nullptr;
    bool is_ready_ = false;
};

int main(int argc, char** argv) {
    const std::size_t alignment = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
    if (alignment == 0) {
        return fail("give the name of a buffer and the alignment of MEPs in bytes");
    }
    auto unit = live::attach_reader(argv[1], live::now() + base::seconds(10));
    if (!unit) {
        return fail(unit.error().message);
    }
    const Registered memory(unit->buffer().area().bytes());
    if (!memory.is_ready()) {
        return fail("the output buffer cannot be registered");
    }
    live::BufferReader reader(unit->buffer());
    unsigned long long meps = 0;
    while (!reader.is_at_end() && !reader.is_broken()) {
        const auto piece = reader.next();
        if (!piece) {
            if (unit->is_abandoned()) {
                break;
            }
            reader.wait(live::now() + base::milliseconds(100));
            continue;
        }
        if (reinterpret_cast<std::uintptr_t>(piece->bytes.data()) % alignment != 0) {
            return fail("MEP " + std::to_string(piece->tag) + " starts at no multiple of " +
                        std::to_string(alignment) + " bytes; set measure.output_alignment");
        }
        if (!memory.copy(piece->bytes)) {
            return fail("MEP " + std::to_string(piece->tag) + " could not be copied");
        }
        meps += reader.acknowledge() ? 1 : 0;  // false: another consumer has the MEP now
    }
    std::printf("%llu MEPs at multiples of %zu bytes\n", meps, alignment);
}
