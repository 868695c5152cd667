// A sink of one's own: takes the built events (MEPs) of a running unit, and shows how large they
// are.
//
//     my_sink daqloom/RUN/UNIT/output
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include <daqloom/live/memory/buffer_client.hpp>
#include <daqloom/live/memory/clock.hpp>
#include <daqloom/protocol/data/mep.hpp>

using namespace daqloom;

int fail(const std::string& message) {
    std::fprintf(stderr, "my_sink: %s\n", message.c_str());
    return 1;
}

int main(int argc, char** argv) {
    if (argc != 2) {
        return fail("give the name of a buffer");
    }
    auto unit = live::attach_reader(argv[1], live::now() + base::seconds(10));
    if (!unit) {
        return fail(unit.error().message);
    }
    live::BufferReader reader(unit->buffer());
    std::array<std::uint64_t, 64> by_size{};  // MEPs of 2^(i-1) to 2^i - 1 bytes
    std::uint64_t incomplete = 0;
    while (!reader.is_at_end() && !reader.is_broken()) {
        const auto piece = reader.next();
        if (!piece) {
            if (unit->is_abandoned()) {
                break;
            }
            reader.wait(live::now() + base::milliseconds(100));
            continue;
        }
        const auto mep = protocol::MepView::decode(
            {reinterpret_cast<const std::uint8_t*>(piece->bytes.data()), piece->bytes.size()});
        if (!mep) {
            return fail(mep.error().message);
        }
        const bool is_complete = mep->is_complete();
        if (!reader.acknowledge()) {
            break;  // the unit has given the MEP to another consumer: this one took too long
        }
        // From here on the memory of the MEP belongs to the unit again.
        incomplete += is_complete ? 0 : 1;
        ++by_size[static_cast<std::size_t>(std::bit_width(piece->bytes.size()))];
    }
    for (std::size_t i = 0; i < by_size.size(); ++i) {
        if (by_size[i] > 0) {
            std::printf("below %llu bytes: %llu\n", 1ULL << i,
                        static_cast<unsigned long long>(by_size[i]));
        }
    }
    std::printf("incomplete: %llu\n", static_cast<unsigned long long>(incomplete));
}
