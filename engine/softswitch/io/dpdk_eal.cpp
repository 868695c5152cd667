#include "softswitch/io/dpdk_eal.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <vector>

namespace daqloom::softswitch::io {

base::expected<Eal> Eal::start(std::span<const std::string> arguments) {
    std::string name = "daqloom-switch";
    std::vector<std::string> kept(arguments.begin(), arguments.end());
    std::vector<char*> given{name.data()};
    for (std::string& each : kept) {
        given.push_back(each.data());
    }
    DAQLOOM_REFUSE_IF(rte_eal_init(static_cast<int>(given.size()), given.data()) < 0,
                      "DPDK does not start with {}: {}; see its messages above, and whether "
                      "there are huge pages (else --no-huge) and rights to devices",
                      fmt::join(arguments, " "), rte_strerror(rte_errno));
    return Eal();
}

Eal::~Eal() {
    if (is_there_) {
        rte_eal_cleanup();
    }
}

}  // namespace daqloom::softswitch::io
