#include "live/transport/libfabric/collective.hpp"

namespace daqloom::live::ofi {

base::expected<Collective> Collective::open(fi_info& info, const Queue& queue) {
    Collective made;
    fi_eq_attr of_events{};
    fid_eq* events = nullptr;
    int code = ::fi_eq_open(queue.fabric.get(), &of_events, &events, nullptr);
    made.events_.reset(events);
    fi_av_attr of_addresses{};
    of_addresses.type = FI_AV_TABLE;  // addresses are numbered in the order of the group
    fid_av* av = nullptr;
    code = code != 0 ? code : ::fi_av_open(queue.domain.get(), &of_addresses, &av, nullptr);
    made.av_.reset(av);
    fid_ep* endpoint = nullptr;
    code = code != 0 ? code : ::fi_endpoint(queue.domain.get(), &info, &endpoint, nullptr);
    made.endpoint_.reset(endpoint);
    code = code != 0 ? code : ::fi_ep_bind(endpoint, &av->fid, 0);
    code = code != 0 ? code : ::fi_ep_bind(endpoint, &events->fid, 0);
    code = code != 0 ? code : ::fi_ep_bind(endpoint, &queue.cq->fid, FI_TRANSMIT | FI_RECV);
    code = code != 0 ? code : ::fi_enable(endpoint);
    if (code != 0) {
        return failure("start a libfabric endpoint for barriers", code);
    }
    return made;
}

bool Collective::add(std::span<const std::byte> name) {
    ++members_;
    return !name.empty() && ::fi_av_insert(av_.get(), name.data(), 1, nullptr, 0, nullptr) == 1;
}

base::expected<void> Collective::join() {
    fi_av_set_attr members{};
    members.end_addr = members_ - 1;
    members.stride = 1;
    fid_av_set* set = nullptr;
    int code = ::fi_av_set(av_.get(), &members, &set, nullptr);
    set_.reset(set);
    fi_addr_t address = FI_ADDR_UNSPEC;
    code = code != 0 ? code : ::fi_av_set_addr(set, &address);
    fid_mc* group = nullptr;
    code =
        code != 0 ? code : ::fi_join_collective(endpoint_.get(), address, set, 0, &group, nullptr);
    group_.reset(group);
    return code == 0 ? base::expected<void>{} : failure("join a barrier of the network", code);
}

void Collective::advance() {
    if (group_ && !has_joined_) {
        std::uint32_t event = 0;
        fi_eq_entry entry{};
        const auto read = ::fi_eq_read(events_.get(), &event, &entry, sizeof entry, 0);
        has_joined_ = read > 0 && event == FI_JOIN_COMPLETE;
    }
    if (has_joined_ && is_waiting_) {
        is_waiting_ =
            ::fi_barrier(endpoint_.get(), ::fi_mc_addr(group_.get()), context_.data()) != 0;
    }
}

}  // namespace daqloom::live::ofi
