#include "softswitch/io/dpdk_ports.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <utility>

namespace daqloom::softswitch::io {

namespace {

/// Ethernet header with two tags, or with one tag and the header of virtio.
constexpr std::uint16_t kEthernetHeader = 14 + 4 + std::max(4, 12);

base::expected<void> check(int result, const std::string& name, const char* what) {
    return result >= 0 ? base::expected<void>{}
                       : base::failure(fmt::format("device {}: {} fails: {}", name, what,
                                                   rte_strerror(-result)));
}

/// Largest MTU of a device, which reports its limit as frame length, payload length, or both.
std::uint32_t most_mtu(const rte_eth_dev_info& info) {
    constexpr std::uint32_t frame = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    if (info.max_mtu > 0 && info.max_mtu != UINT16_MAX) {
        return info.max_mtu;
    }
    return info.max_rx_pktlen > frame ? info.max_rx_pktlen - frame : RTE_ETHER_MTU;
}

}  // namespace

base::expected<Devices> Devices::open(const DevicesConfig& config) {
    Devices devices;
    devices.receive_queues_ = config.receive_queues;
    const auto room = static_cast<std::uint16_t>(config.buffer_bytes + RTE_PKTMBUF_HEADROOM);
    devices.pool_ = rte_pktmbuf_pool_create(fmt::format("buffers{}", rte_rdtsc() & 0xffff).c_str(),
                                            config.buffers, std::min(256U, config.buffers / 2), 0,
                                            room, static_cast<int>(rte_socket_id()));
    DAQLOOM_REFUSE_IF(devices.pool_ == nullptr,
                      "{} buffers of {} B: {}; give fewer, or more memory to DPDK (-m, in MB)",
                      config.buffers, room, rte_strerror(rte_errno));
    for (const std::string& name : config.names) {
        DAQLOOM_CHECK(devices.start(config, name));
    }
    return devices;
}

base::expected<void> Devices::start(const DevicesConfig& config, const std::string& name) {
    std::uint16_t id = 0;
    DAQLOOM_REFUSE_IF(rte_eth_dev_get_port_by_name(name.c_str(), &id) != 0,
                      "DPDK has no device {}; expected the name of a virtual device (--vdev) or "
                      "a PCI address bound to a driver of DPDK",
                      name);
    rte_eth_dev_info info{};
    DAQLOOM_CHECK(check(rte_eth_dev_info_get(id, &info), name, "to ask what it is"));
    rte_eth_conf configuration{};
    if (config.buffer_bytes > kEthernetHeader) {
        const auto mtu = static_cast<std::uint32_t>(config.buffer_bytes - kEthernetHeader);
        configuration.rxmode.mtu = std::min(mtu, most_mtu(info));
    }
    if (config.receive_queues > 1) {
        DAQLOOM_REFUSE_IF(config.receive_queues > info.max_rx_queues,
                          "device {} has {} receive queues; expected {}", name, info.max_rx_queues,
                          config.receive_queues);
        configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        configuration.rx_adv_conf.rss_conf.rss_hf =
            info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
    }
    DAQLOOM_CHECK(check(rte_eth_dev_configure(id, config.receive_queues, 1, &configuration), name,
                        "to configure it"));
    std::uint16_t in = config.descriptors;
    std::uint16_t out = config.descriptors;
    DAQLOOM_CHECK(check(rte_eth_dev_adjust_nb_rx_tx_desc(id, &in, &out), name,
                        "to choose how many descriptors it has"));
    const int socket = rte_eth_dev_socket_id(id);
    const auto node = static_cast<unsigned>(socket < 0 ? 0 : socket);
    for (std::uint16_t queue = 0; queue < config.receive_queues; ++queue) {
        DAQLOOM_CHECK(check(rte_eth_rx_queue_setup(id, queue, in, node, nullptr, pool_), name,
                            "to set up its receive queue"));
    }
    DAQLOOM_CHECK(
        check(rte_eth_tx_queue_setup(id, 0, out, node, nullptr), name, "to set up its send queue"));
    DAQLOOM_CHECK(check(rte_eth_dev_start(id), name, "to start it"));
    ids_.push_back(id);
    rte_eth_promiscuous_enable(id);  // a switch wants all; devices that cannot have all
    return {};
}

Devices::Devices(Devices&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      receive_queues_(other.receive_queues_),
      ids_(std::exchange(other.ids_, {})) {}

Devices::~Devices() {
    for (const std::uint16_t id : ids_) {
        rte_eth_dev_stop(id);
    }
    rte_mempool_free(pool_);
}

DeviceCounters Devices::counters(std::size_t port) const {
    rte_eth_stats stats{};
    rte_eth_stats_get(ids_[port], &stats);
    return {.received = stats.ipackets,
            .received_bytes = stats.ibytes,
            .sent = stats.opackets,
            .sent_bytes = stats.obytes,
            .missed = stats.imissed,
            .errors = stats.ierrors + stats.oerrors,
            .no_buffers = stats.rx_nombuf,
            .is_up = is_up(port)};
}

bool Devices::is_up(std::size_t port) const {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(ids_[port], &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

}  // namespace daqloom::softswitch::io
