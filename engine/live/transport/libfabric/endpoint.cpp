#include "live/transport/libfabric/endpoint.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "live/transport/envelope.hpp"
#include "live/transport/libfabric/connections.hpp"
#include "live/transport/tcp/socket.hpp"

namespace daqloom::live::ofi {

namespace {

/// Head of a unit's address; the names of its endpoints follow.
struct AddressHead {
    static constexpr std::uint32_t our_magic = 0x33'61'6c'64;  ///< "dla3"

    std::uint32_t magic = our_magic;
    std::uint32_t format = 0;  ///< libfabric's addr_format
    std::uint64_t incarnation = 0;
    std::uint64_t key = 0;
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    PerPath<std::uint32_t> names = {};  ///< lengths of the names
    std::uint32_t collective = 0;       ///< length of the name for barriers, the last; 0: none
    std::uint32_t unused = 0;
};
static_assert(sizeof(AddressHead) == 56);
constexpr std::size_t kMostName = (1024 - sizeof(AddressHead)) / (paths.size() + 1);

base::expected<std::vector<std::byte>> name_of(fid_ep* endpoint) {
    std::vector<std::byte> name(kMostName);
    std::size_t length = name.size();
    if (const int code = ::fi_getname(&endpoint->fid, name.data(), &length)) {
        return failure("learn the address of a libfabric endpoint", code);
    }
    name.resize(length);
    return name;
}

/// A zero-padded copy, longer than any address that a provider may read there.
std::vector<std::byte> padded(std::span<const std::byte> name) {
    std::vector<std::byte> copy(name.begin(), name.end());
    copy.resize(kMostName + 1);
    return copy;
}

std::string list_of_providers() {
    std::vector<std::string> names;
    for (const auto& provider : libfabric_providers()) {
        names.push_back(provider.name);
    }
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// The first address of interface `node`; `node` itself if there is no such interface.
std::string node_as_text(const std::string& node) {
    const auto found = address_of_interface(node, AF_INET);
    if (!found) {
        return node;
    }
    char text[INET_ADDRSTRLEN];
    const auto& internet = reinterpret_cast<const sockaddr_in&>(found->address);
    ::inet_ntop(AF_INET, &internet.sin_addr, text, sizeof text);
    return text;
}

}  // namespace

base::expected<Endpoints> Endpoints::open(const LibfabricConfig& config, std::size_t longest,
                                          std::size_t others, bool has_barriers) {
    Endpoints endpoints;
    DAQLOOM_TRY(incarnation, random_bits());
    endpoints.incarnation_ = incarnation;
    DAQLOOM_CHECK(endpoints.choose(config, longest, has_barriers));
    if (auto started = endpoints.start(others, has_barriers); !started) {
        return base::failure(fmt::format("libfabric's provider '{}' at '{}': {}", config.provider,
                                         config.node, started.error().message));
    }
    return endpoints;
}

Endpoints::~Endpoints() {
    exposed_.reset();
    if (queue_.cq && !hang_up(queue_)) {
        for (auto& endpoint : endpoints_) {
            static_cast<void>(endpoint.release());  // left open on purpose, not used again
        }
    }
    if (info_ && (info_->domain_attr->mr_mode & FI_MR_ENDPOINT)) {
        used_.clear();
    }
}

base::expected<void> Endpoints::choose(const LibfabricConfig& config, std::size_t longest,
                                       bool has_barriers) {
    DAQLOOM_REFUSE_IF(!ofi::library(),
                      "{}; install it (Debian and Ubuntu: libfabric1), or use another transport",
                      ofi::library().error().message);
    auto hints = needs();
    hints->fabric_attr->prov_name = ::strdup(config.provider.c_str());
    if (!config.domain.empty()) {
        hints->domain_attr->name = ::strdup(config.domain.c_str());
    }
    if (!config.provider.empty()) {
        info_ = look_for(*hints);
    }
    DAQLOOM_REFUSE_IF(!info_ && !config.domain.empty(),
                      "libfabric's provider '{}' has no domain '{}' here; give a device that "
                      "`fi_info -p {}` lists",
                      config.provider, config.domain, config.provider);
    DAQLOOM_REFUSE_IF(!info_,
                      "libfabric has no provider '{}' here with reliable datagrams and remote "
                      "writes; it has: {}",
                      config.provider, list_of_providers());
    hints->caps |= has_barriers ? FI_COLLECTIVE : 0;
    DAQLOOM_REFUSE_IF(has_barriers && !look_for(*hints),
                      "libfabric's provider '{}' has no collective operations, which a barrier of "
                      "the network needs; use one that `fi_info -c FI_COLLECTIVE` lists, such as "
                      "'tcp;ofi_rxm', or another building.barrier",
                      config.provider);
    const std::string node = is_internet(*info_) ? node_as_text(config.node) : "";
    info_ = look_for(*hints, node);
    DAQLOOM_REFUSE_IF(!info_,
                      "libfabric's provider '{}' cannot use '{}' as this unit's address; give an "
                      "address, host name or interface of this machine",
                      config.provider, config.node);
    part_ = std::min(info_->ep_attr->max_msg_size,
                     static_cast<std::size_t>(std::max<base::Bytes>(config.most_per_write, 1)));
    // A write should be done when it is in the other unit's memory, if the provider supports that.
    // Over TCP it is otherwise done when the socket has taken it, with much data still under way.
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    if (auto delivering = look_for(*hints, node)) {
        info_ = std::move(delivering);
        info_->tx_attr->op_flags = 0;
        write_flags_ = FI_DELIVERY_COMPLETE;
        return {};
    }
    if (longest <= part_) {
        return {};
    }
    // The last part notifies the other unit. It is posted only when all other parts are in that
    // unit's memory; if the provider cannot report this, its writes must stay in order.
    hints->tx_attr->op_flags = 0;
    hints->tx_attr->msg_order |= FI_ORDER_WAW;
    hints->rx_attr->msg_order |= FI_ORDER_WAW;
    auto ordered = look_for(*hints, node);
    DAQLOOM_REFUSE_IF(!ordered || ordered->ep_attr->max_order_waw_size < part_,
                      "libfabric's provider '{}' writes up to {} bytes at once and cannot "
                      "report their arrival: choose another",
                      config.provider, part_);
    info_ = std::move(ordered);
    return {};
}

base::expected<void> Endpoints::start(std::size_t others, bool has_barriers) {
    DAQLOOM_TRY(queue, open_queue(*info_));
    queue_ = std::move(queue);
    if (has_barriers) {
        DAQLOOM_TRY(collective, Collective::open(*info_, queue_));
        collective_.emplace(std::move(collective));
        info_->caps &= ~FI_COLLECTIVE;  // the other endpoints have no collective operations
    }

    fi_av_attr attributes{};
    attributes.type = info_->domain_attr->av_type;
    attributes.count = others;
    fid_av* av = nullptr;
    if (const int code = ::fi_av_open(queue_.domain.get(), &attributes, &av, nullptr)) {
        return failure("open libfabric's address vector", code);
    }
    av_.reset(av);

    for (auto& owner : endpoints_) {
        fid_ep* endpoint = nullptr;
        if (const int code = ::fi_endpoint(queue_.domain.get(), info_.get(), &endpoint, nullptr)) {
            return failure("open a libfabric endpoint", code);
        }
        owner.reset(endpoint);
        int code = ::fi_ep_bind(endpoint, &av->fid, 0);
        if (code == 0) {
            code = ::fi_ep_bind(endpoint, &queue_.cq->fid, FI_TRANSMIT | FI_RECV);
        }
        if (code == 0) {
            code = ::fi_enable(endpoint);
        }
        if (code != 0) {
            return failure("start a libfabric endpoint", code);
        }
    }
    return {};
}

/// Registers memory, with a random key if the provider permits one.
base::expected<Owned<fid_mr>> Endpoints::register_memory(std::span<const std::byte> memory,
                                                         std::uint64_t access) const {
    DAQLOOM_TRY(key, random_bits());
    const auto& domain = *info_->domain_attr;
    if (domain.mr_key_size < sizeof key) {
        key &= (std::uint64_t{1} << 8 * domain.mr_key_size) - 1;
    }
    fid_mr* made = nullptr;
    if (const int code = ::fi_mr_reg(queue_.domain.get(), memory.data(), memory.size(), access, 0,
                                     key, 0, &made, nullptr)) {
        return failure(
            fmt::format("register {} bytes of memory with libfabric (is `ulimit -l` too low?)",
                        memory.size()),
            code);
    }
    Owned<fid_mr> region(made);
    if (domain.mr_mode & FI_MR_ENDPOINT) {
        int code = ::fi_mr_bind(made, &get(Path::writes)->fid, 0);
        if (code == 0) {
            code = ::fi_mr_enable(made);
        }
        if (code != 0) {
            return failure("register memory with a libfabric endpoint", code);
        }
    }
    return region;
}

base::expected<void> Endpoints::expose(std::span<std::byte> arena) {
    DAQLOOM_TRY(region, register_memory(arena, FI_REMOTE_WRITE));
    exposed_ = std::move(region);
    arena_ = arena;
    return {};
}

base::expected<void> Endpoints::use(std::span<const std::byte> memory, std::uint64_t access) {
    if (!(info_->domain_attr->mr_mode & FI_MR_LOCAL) || memory.empty()) {
        return {};
    }
    DAQLOOM_TRY(region, register_memory(memory, access));
    regions_.push_back({memory, ::fi_mr_desc(region.get())});
    used_.push_back(std::move(region));
    return {};
}

void* Endpoints::descriptor_of(const std::byte* bytes) const {
    for (const auto& region : regions_) {
        if (bytes >= region.memory.data() && bytes < region.memory.data() + region.memory.size()) {
            return region.descriptor;
        }
    }
    return nullptr;
}

base::expected<std::vector<std::byte>> Endpoints::address() const {
    AddressHead head{.format = info_->addr_format, .incarnation = incarnation_};
    if (exposed_) {
        head.key = ::fi_mr_key(exposed_.get());
        head.bytes = arena_.size();
        if (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) {
            head.base = reinterpret_cast<std::uintptr_t>(arena_.data());
        }
    }
    std::vector<std::byte> address(sizeof head);
    for (const Path path : paths) {
        DAQLOOM_TRY(name, name_of(get(path)));
        head.names[index_of(path)] = static_cast<std::uint32_t>(name.size());
        address.insert(address.end(), name.begin(), name.end());
    }
    if (collective_) {
        DAQLOOM_TRY(name, name_of(collective_->endpoint()));
        head.collective = static_cast<std::uint32_t>(name.size());
        address.insert(address.end(), name.begin(), name.end());
    }
    std::memcpy(address.data(), &head, sizeof head);
    return address;
}

std::vector<std::byte> Endpoints::name_for_barriers() const {
    const auto name = name_of(collective_->endpoint());
    return name ? padded(*name) : std::vector<std::byte>{};
}

std::optional<Destination> Endpoints::add_address(std::span<const std::byte> address) const {
    AddressHead head;
    if (address.size() < sizeof head) {
        return {};
    }
    std::memcpy(&head, address.data(), sizeof head);
    auto names = address.subspan(sizeof head);
    constexpr auto most = std::uint64_t{1} << 62;
    const auto is_possible = [](std::uint32_t name) { return name > 0 && name <= kMostName; };
    if (head.magic != AddressHead::our_magic || head.format != info_->addr_format ||
        !std::ranges::all_of(head.names, is_possible) || head.collective > kMostName ||
        head.names[0] + head.names[1] + head.collective != names.size() || head.bytes > most) {
        return {};
    }
    Destination destination{
        .incarnation = head.incarnation, .key = head.key, .base = head.base, .bytes = head.bytes};
    for (const Path path : paths) {
        const auto name = padded(names.first(head.names[index_of(path)]));
        names = names.subspan(head.names[index_of(path)]);
        if (::fi_av_insert(av_.get(), name.data(), 1, &destination.at[index_of(path)], 0,
                           nullptr) != 1) {
            return {};
        }
    }
    if (head.collective > 0) {
        destination.collective = padded(names);
    }
    return destination;
}

}  // namespace daqloom::live::ofi
