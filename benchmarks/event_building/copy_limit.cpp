// Limit of this machine's memory and cores: non-temporal copies, block after block, by as many
// processes as asked for, each with an area of its own to read and one to write.
#include <cstring>

#include "live/memory/copy.hpp"
#include "live/memory/shared_memory.hpp"
#include "window.hpp"

int main(int argc, char** argv) {
    using namespace daqloom;
    const bench::Options options(argc, argv,
                                 {{"processes", 2},
                                  {"block", 1 << 20},
                                  {"read_area", 64 << 20},
                                  {"write_area", 256 << 20},
                                  {"warmup", 0.2},
                                  {"seconds", 1}});
    const std::size_t block = options.whole("block");
    const auto work = [&](std::size_t self, bench::Shared& shared) {
        const auto from = live::SharedMemory::create(
            "bench-from", static_cast<base::Bytes>(options.whole("read_area")));
        const auto to = live::SharedMemory::create(
            "bench-to", static_cast<base::Bytes>(options.whole("write_area")));
        if (!from || !to || from->bytes().size() < block || to->bytes().size() < block) {
            bench::give_up("areas of at least a block");
        }
        std::memset(from->bytes().data(), 1, from->bytes().size());
        std::memset(to->bytes().data(), 2, to->bytes().size());
        shared.wait_for_go();
        std::size_t source = 0;
        std::size_t target = 0;
        while (true) {
            live::copy(to->bytes().data() + target, from->bytes().data() + source, block);
            live::fence_copies();
            shared.add(self, block);
            source = source + 2 * block <= from->bytes().size() ? source + block : 0;
            target = target + 2 * block <= to->bytes().size() ? target + block : 0;
        }
    };
    const bench::Rate copied = bench::rate(options.whole("processes"), options.number("warmup"),
                                           options.number("seconds"), work);
    std::printf("{\"bytes_per_s\": %.6g, \"bytes_per_cpu_s\": %.6g}\n", copied.per_s,
                copied.per_cpu_s);
}
