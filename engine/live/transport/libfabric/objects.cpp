#include "live/transport/libfabric/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "live/transport/libfabric/libfabric.hpp"

namespace daqloom::live {

namespace ofi {

Info needs() {
    if (!library()) {
        return nullptr;
    }
    Info hints(library()->dupinfo(nullptr));
    if (!hints) {
        throw std::bad_alloc();
    }
    hints->caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
    hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
    hints->ep_attr->type = FI_EP_RDM;
    // FI_MR_HMEM concerns memory of accelerators, which is not used here.
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
                                  FI_MR_ENDPOINT | FI_MR_HMEM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->cq_data_size = sizeof(std::uint32_t);
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    return hints;
}

Info look_for(const fi_info& hints, const std::string& node) {
    fi_info* found = nullptr;
    if (node.empty()) {
        library()->getinfo(version, nullptr, nullptr, 0, &hints, &found);
    } else {
        library()->getinfo(version, node.c_str(), nullptr, FI_SOURCE, &hints, &found);
    }
    Info list(found);
    const char* domain = hints.domain_attr->name;  // some providers ignore it
    while (found != nullptr && domain != nullptr &&
           std::strcmp(found->domain_attr->name, domain) != 0) {
        found = found->next;
    }
    return found == list.get() ? std::move(list)
                               : Info(found == nullptr ? nullptr : library()->dupinfo(found));
}

bool is_internet(const fi_info& info) {
    return info.addr_format == FI_SOCKADDR || info.addr_format == FI_SOCKADDR_IN ||
           info.addr_format == FI_SOCKADDR_IN6;
}

tl::unexpected<base::Error> failure(const std::string& action, std::int64_t code) {
    return base::system_failure(fmt::format("cannot {}: {}", action,
                                            library()->strerror(static_cast<int>(std::abs(code)))));
}

base::expected<Queue> open_queue(fi_info& info) {
    Queue queue;
    fid_fabric* fabric = nullptr;
    if (const int code = library()->fabric(info.fabric_attr, &fabric, nullptr)) {
        return failure("open libfabric's fabric", code);
    }
    queue.fabric.reset(fabric);
    fid_domain* domain = nullptr;
    if (const int code = ::fi_domain(fabric, &info, &domain, nullptr)) {
        return failure("open libfabric's domain", code);
    }
    queue.domain.reset(domain);

    fi_cq_attr attributes{};
    attributes.size = info.tx_attr->size + info.rx_attr->size;
    attributes.format = FI_CQ_FORMAT_DATA;
    attributes.wait_obj = FI_WAIT_FD;
    fid_cq* cq = nullptr;
    int code = ::fi_cq_open(domain, &attributes, &cq, nullptr);
    const bool waits = code == 0;
    if (!waits) {
        attributes.wait_obj = FI_WAIT_NONE;
        code = ::fi_cq_open(domain, &attributes, &cq, nullptr);
    }
    if (code != 0) {
        return failure("open libfabric's completion queue", code);
    }
    queue.cq.reset(cq);
    if (waits && ::fi_control(&cq->fid, FI_GETWAIT, &queue.fd) != 0) {
        queue.fd = -1;
    }
    return queue;
}

}  // namespace ofi

std::vector<Provider> libfabric_providers() {
    std::vector<Provider> providers;
    const ofi::Info hints = ofi::needs();
    const ofi::Info found = hints ? ofi::look_for(*hints) : nullptr;
    for (fi_info* info = found.get(); info != nullptr; info = info->next) {
        const std::string name = info->fabric_attr->prov_name;
        if (std::ranges::find(providers, name, &Provider::name) != providers.end()) {
            continue;
        }
        if (const auto queue = ofi::open_queue(*info)) {
            providers.push_back({.name = name, .has_wait_fd = queue->fd >= 0});
        }
    }
    return providers;
}

}  // namespace daqloom::live
