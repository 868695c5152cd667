#include "live/transport/make.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "live/transport/checksums.hpp"
#include "live/transport/mixture/mixture.hpp"
#include "live/transport/mpi/library.hpp"
#include "live/transport/mpi/mpi.hpp"
#include "live/transport/shm/shm.hpp"
#include "live/transport/tcp/tcp.hpp"

namespace daqloom::live {

namespace {

constexpr std::string_view kLibfabric = "libfabric:";
constexpr std::string_view kMixed = "shm+";

}  // namespace

#ifndef DAQLOOM_LIBFABRIC
std::vector<Provider> libfabric_providers() { return {}; }

base::expected<std::unique_ptr<Transport>> make_libfabric(const TransportConfig&,
                                                          const LibfabricConfig& libfabric) {
    return base::failure(
        fmt::format("the transport 'libfabric:{}', but this daqloom was built without libfabric: "
                    "install it (on Debian and Ubuntu: apt-get install libfabric-dev) and build "
                    "daqloom again",
                    libfabric.provider));
}
#endif

std::vector<std::string> transport_names() {
    std::vector<std::string> names{"shm", "tcp"};
    if (mpi::has_shim()) {
        names.emplace_back("mpi");
    }
    for (const auto& provider : libfabric_providers()) {
        names.push_back(fmt::format("{}{}", kLibfabric, provider.name));
    }
    return names;
}

namespace {

base::expected<std::unique_ptr<Transport>> make_plain(const std::string& name,
                                                      const TransportConfig& config,
                                                      const TcpConfig& tcp) {
    if (name.starts_with(kLibfabric)) {
        return make_libfabric(config, {.provider = name.substr(kLibfabric.size()),
                                       .node = tcp.node,
                                       .domain = tcp.domain,
                                       .congestion_control = tcp.congestion_control});
    }
    DAQLOOM_REFUSE_IF(!config.barrier.empty(),
                      "the transport '{}' has no barrier of the network; use one of libfabric with "
                      "collective operations, such as 'libfabric:tcp;ofi_rxm', or another "
                      "building.barrier",
                      name);
    if (name == "tcp") {
        DAQLOOM_TRY(made, TcpTransport::create(config, tcp));
        return std::move(made);
    }
    if (name == "shm") {
        DAQLOOM_TRY(made, ShmTransport::create(config));
        return std::move(made);
    }
    if (name == "mpi") {
        DAQLOOM_TRY(made, MpiTransport::create(config));
        return std::move(made);
    }
    return base::failure(fmt::format("there is no transport '{}'; this machine has: {}", name,
                                     fmt::join(transport_names(), ", ")));
}

}  // namespace

base::expected<std::unique_ptr<Transport>> make_transport(const std::string& name,
                                                          const TransportConfig& config,
                                                          const TcpConfig& tcp) {
    if (name.starts_with(kMixed)) {
        DAQLOOM_TRY(host, host_id());
        DAQLOOM_TRY(between, make_transport(name.substr(kMixed.size()), config, tcp));
        DAQLOOM_TRY(mixed, MixedTransport::create(config, std::move(between), host));
        return std::move(mixed);
    }
    DAQLOOM_TRY(made, make_plain(name, config, tcp));
    if (tcp.checksums && name != "tcp") {  // records of `tcp` have checksums of their own
        return std::make_unique<CheckedTransport>(config, std::move(made));
    }
    return std::move(made);
}

}  // namespace daqloom::live
