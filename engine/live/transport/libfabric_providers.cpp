#include <algorithm>
#include <limits>
#include <utility>

#include "live/transport/libfabric.hpp"
#include "live/transport/libfabric_objects.hpp"

namespace daqloom::live {

namespace {

std::vector<std::string> names_of(int memory_mode) {
    static constexpr std::pair<int, const char*> known[] = {
        {FI_MR_LOCAL, "FI_MR_LOCAL"},         {FI_MR_VIRT_ADDR, "FI_MR_VIRT_ADDR"},
        {FI_MR_ALLOCATED, "FI_MR_ALLOCATED"}, {FI_MR_PROV_KEY, "FI_MR_PROV_KEY"},
        {FI_MR_ENDPOINT, "FI_MR_ENDPOINT"},   {FI_MR_HMEM, "FI_MR_HMEM"},
    };
    std::vector<std::string> names;
    for (const auto& [bit, name] : known) {
        if (memory_mode & bit) {
            names.emplace_back(name);
        }
    }
    return names;
}

}  // namespace

std::vector<Provider> libfabric_providers() {
    std::vector<Provider> providers;
    const ofi::Info found = ofi::look_for(*ofi::needs());
    for (fi_info* info = found.get(); info != nullptr; info = info->next) {
        const std::string name = info->fabric_attr->prov_name;
        if (std::ranges::find(providers, name, &Provider::name) != providers.end()) {
            continue;
        }
        if (const auto queue = ofi::open_queue(*info)) {
            constexpr auto most = std::numeric_limits<base::Bytes>::max();
            providers.push_back({.name = name,
                                 .fabric = info->fabric_attr->name,
                                 .has_wait_fd = queue->fd >= 0,
                                 .memory_modes = names_of(info->domain_attr->mr_mode),
                                 .most_per_write = static_cast<base::Bytes>(
                                     std::min<std::size_t>(info->ep_attr->max_msg_size, most))});
        }
    }
    return providers;
}

}  // namespace daqloom::live
