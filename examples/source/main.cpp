// A source of one's own: brings multi-fragment packets (MFPs) to a stream of a running unit.
//
//     my_source daqloom/RUN/UNIT/stream-0 SOURCE_ID PACKING MFPS
//
// The "detector" counts: each fragment holds the number of its event as text. MFP k holds the
// events from k x PACKING on; its number k is the tag of its piece.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <daqloom/live/memory/buffer_client.hpp>
#include <daqloom/live/memory/clock.hpp>
#include <daqloom/protocol/data/mfp.hpp>

using namespace daqloom;

int fail(const std::string& message) {
    std::fprintf(stderr, "my_source: %s\n", message.c_str());
    return 1;
}

int main(int argc, char** argv) {
    if (argc != 5) {
        return fail("give the name of a buffer, a source id, a packing factor and how many MFPs");
    }
    const auto source = static_cast<std::uint16_t>(std::strtoul(argv[2], nullptr, 10));
    const auto packing = std::strtoull(argv[3], nullptr, 10);
    const auto mfps = std::strtoull(argv[4], nullptr, 10);

    auto unit = live::attach_writer(argv[1], live::now() + base::seconds(10));
    if (!unit) {
        return fail(unit.error().message);
    }
    live::BufferWriter writer(unit->buffer());
    std::vector<std::string> texts(packing);
    std::vector<protocol::MfpFragment> fragments(packing);
    for (std::uint64_t mfp = writer.committed(); mfp < mfps;) {
        base::Bytes bytes = protocol::mfp_overhead(static_cast<std::uint16_t>(packing));
        for (std::size_t i = 0; i < packing; ++i) {
            texts[i] = "event " + std::to_string(mfp * packing + i);
            const auto* text = reinterpret_cast<const std::uint8_t*>(texts[i].data());
            fragments[i] = {.type = 1, .payload = {text, texts[i].size()}};
            bytes += static_cast<base::Bytes>(texts[i].size() + 3) / 4 * 4;
        }
        const std::uint64_t seen = writer.acknowledged();
        const auto room = writer.reserve(bytes);
        if (!room) {  // the unit has not yet taken what is in the buffer
            if (unit->is_abandoned()) {
                return fail("the unit is gone");
            }
            writer.wait(seen, live::now() + base::milliseconds(100));
            continue;
        }
        const std::span out(reinterpret_cast<std::uint8_t*>(room->data()), room->size());
        const auto size =
            protocol::encode_mfp({.event_id = mfp * packing, .source_id = source}, fragments, out);
        if (!size) {
            return fail(size.error().message);
        }
        writer.commit(mfp++, *size);
    }
    writer.close();
    std::printf("%llu MFPs\n", mfps);
}
