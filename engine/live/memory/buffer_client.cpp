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

base::expected<AttachedBuffer> attach(const std::string& name, BufferSide side, base::Time until) {
    auto unit = connect(name, until);
    if (!unit) {
        return tl::unexpected(unit.error());
    }
    if (const auto sent = unit->send(BufferHello::encode(side)); !sent) {
        return tl::unexpected(sent.error());
    }
    auto answer = unit->receive(until);
    if (!answer) {
        return tl::unexpected(answer.error());
    }
    if (answer->bytes.front() != std::byte{1}) {
        const auto* text = reinterpret_cast<const char*>(answer->bytes.data());
        return base::system_failure(
            fmt::format("{}: {}", name, std::string_view(text + 1, answer->bytes.size() - 1)));
    }
    auto buffer = Buffer::attach(std::move(answer->fds));
    if (!buffer) {
        return tl::unexpected(buffer.error());
    }
    return AttachedBuffer(std::move(*unit), std::move(*buffer));
}

}  // namespace

std::string buffer_name(const std::string& run, std::uint32_t unit, const std::string& what) {
    return fmt::format("daqloom/{}/{}/{}", run, unit, what);
}

base::expected<AttachedBuffer> attach_writer(const std::string& name, base::Time until) {
    return attach(name, BufferSide::writer, until);
}

base::expected<AttachedBuffer> attach_reader(const std::string& name, base::Time until) {
    return attach(name, BufferSide::reader, until);
}

}  // namespace daqloom::live
