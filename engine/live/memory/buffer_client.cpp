#include "live/memory/buffer_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

base::expected<Handover> connect(const std::string& name, base::Time until) {
    while (true) {
        auto unit = Handover::connect(name);
        if (unit || now() >= until) {
            return unit;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

}  // namespace

std::string buffer_name(const std::string& run, std::uint32_t unit, const std::string& what) {
    return fmt::format("daqloom/{}/{}/{}", run, unit, what);
}

base::expected<AttachedBuffer> attach_buffer(const std::string& name, BufferSide side,
                                             base::Time until) {
    DAQLOOM_TRY(unit, connect(name, until));
    DAQLOOM_CHECK(unit.send(BufferHello::encode(side)));
    DAQLOOM_TRY(answer, unit.receive(until));
    if (answer.bytes.front() != std::byte{1}) {
        const auto* text = reinterpret_cast<const char*>(answer.bytes.data());
        return base::system_failure(
            fmt::format("{}: {}", name, std::string_view(text + 1, answer.bytes.size() - 1)));
    }
    DAQLOOM_TRY(buffer, Buffer::attach(std::move(answer.fds)));
    return AttachedBuffer(std::move(unit), std::move(buffer));
}

}  // namespace daqloom::live
