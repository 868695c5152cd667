#include "live/transport/shm.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <string>

#include "live/transport/conformance.hpp"

namespace daqloom::live {
namespace {

base::expected<std::unique_ptr<Transport>> make_shm(const TransportConfig& config) {
    auto made = ShmTransport::create(config);
    if (!made) {
        return tl::unexpected(made.error());
    }
    return std::move(*made);
}

void send_raw(std::span<const std::byte> address, std::span<const std::byte> bytes) {
    const auto to = Handover::connect(
        std::string(reinterpret_cast<const char*>(address.data()), address.size()));
    if (to) {
        static_cast<void>(to->send(bytes));
    }
}

INSTANTIATE_TEST_SUITE_P(Shm, TransportConformance,
                         testing::Values(TransportUnderTest{
                             .name = "shm", .make = make_shm, .disturb = send_raw}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace daqloom::live
