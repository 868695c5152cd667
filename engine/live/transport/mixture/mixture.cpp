#include "live/transport/mixture/mixture.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace daqloom::live {

namespace {

/// Head of an address; the address for shared memory follows, then that between hosts.
struct MixedAddress {
    HostId host{};
    std::uint64_t within = 0;  ///< bytes
};

}  // namespace

base::expected<HostId> host_id() {
    std::string boot;
    struct stat network {};
    if (!std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot) ||
        ::stat("/proc/self/ns/net", &network) != 0) {
        return base::system_failure(
            "the identity of this host cannot be read from /proc; use one transport, such as tcp");
    }
    const std::uint64_t words[] = {std::hash<std::string>()(boot), network.st_ino};
    HostId id;
    std::memcpy(id.data(), words, sizeof words);
    return id;
}

base::expected<std::unique_ptr<MixedTransport>> MixedTransport::create(
    const TransportConfig& config, std::unique_ptr<Transport> between, const HostId& host) {
    DAQLOOM_TRY(within, ShmTransport::create(config));
    return std::unique_ptr<MixedTransport>(
        new MixedTransport(config, std::move(within), std::move(between), host));
}

MixedTransport::MixedTransport(const TransportConfig& config, std::unique_ptr<ShmTransport> within,
                               std::unique_ptr<Transport> between, const HostId& host)
    : host_(host),
      within_(std::move(within)),
      between_(std::move(between)),
      is_here_(config.units) {
    is_here_[config.self] = true;
}

std::vector<std::byte> MixedTransport::address() const {
    const auto within = within_->address();
    const auto between = between_->address();
    const MixedAddress head{.host = host_, .within = within.size()};
    std::vector<std::byte> address(sizeof head + within.size() + between.size());
    std::memcpy(address.data(), &head, sizeof head);
    std::ranges::copy(within, address.begin() + sizeof head);
    std::ranges::copy(between, address.end() - static_cast<std::ptrdiff_t>(between.size()));
    return address;
}

/// Connects both transports at the same time, so that neither uses up the time of the other.
base::expected<std::vector<UnitIndex>> MixedTransport::connect(std::span<const Peer> peers,
                                                               base::Time until) {
    std::vector<Peer> here;
    std::vector<Peer> elsewhere;
    std::vector<UnitIndex> silent;
    for (const Peer& peer : peers) {
        MixedAddress head;
        if (!is_here_.contains(peer.unit) || peer.address.size() < sizeof head) {
            silent.push_back(peer.unit);
            continue;
        }
        std::memcpy(&head, peer.address.data(), sizeof head);
        const auto rest = std::span(peer.address).subspan(sizeof head);
        if (head.within > rest.size()) {
            silent.push_back(peer.unit);
            continue;
        }
        is_here_[peer.unit] = head.host == host_;
        const auto own = is_here_[peer.unit] ? rest.first(head.within) : rest.subspan(head.within);
        (is_here_[peer.unit] ? here : elsewhere).push_back({peer.unit, {own.begin(), own.end()}});
    }
    base::expected<std::vector<UnitIndex>> silent_here;
    std::thread thread([&] { silent_here = within_->connect(here, until); });
    auto silent_elsewhere = between_->connect(elsewhere, until);
    thread.join();
    for (auto* const outcome : {&silent_here, &silent_elsewhere}) {
        DAQLOOM_TRY(units, std::move(*outcome));
        silent.insert(silent.end(), units.begin(), units.end());
    }
    std::ranges::sort(silent);
    return silent;
}

Transport& MixedTransport::transport_to(UnitIndex unit) {
    return is_here_.contains(unit) && is_here_[unit] ? static_cast<Transport&>(*within_)
                                                     : *between_;
}

bool MixedTransport::poll(TransportEvents& events) {
    const bool has_within = within_->poll(events);
    const bool has_between = between_->poll(events);
    count();
    return has_within || has_between;
}

/// Sleeps in the transport between hosts, which the doorbell wakes for a record in shared memory.
void MixedTransport::wait(base::Time until) {
    const base::Time next_look = within_->prepare_wait();
    if (within_->is_quiet()) {
        between_->wait(std::min(until, next_look));
    }
    count();
}

void MixedTransport::count() {
    TransportCounters::each([this](const char*, auto member, const char*) {
        (counters_.*member).set(within_->counters().*member + between_->counters().*member);
    });
}

}  // namespace daqloom::live
