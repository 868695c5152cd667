#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/memory/polling.hpp"
#include "live/transport/libfabric/libfabric_transport.hpp"
#include "live/transport/libfabric/objects.hpp"

namespace daqloom::live::ofi {

namespace {

constexpr std::size_t kCompletionsPerPoll = 32;
/// Polling interval of an idle unit whose provider has no descriptor to wait on.
constexpr base::Time kLook = base::milliseconds(1);
/// Limit on futile wake-ups, after which a unit polls. With `tcp` of 1.17, a stranger that
/// connected and left (a port scan) wakes a unit forever; parts of a long write also wake it in
/// vain.
constexpr int kMostInVain = 1000;

}  // namespace

// ---- completions

bool LibfabricTransport::poll(TransportEvents& events) {
    bool happened = earlier_.replay(events);
    happened |= report_lost(lost_, events);
    happened |= loopback_.poll(events, counters_);
    happened |= work(events);
    in_vain_ = happened ? 0 : in_vain_;
    if (happened && config_.waiting == Waiting::adaptive) {
        busy_at_ = now();
        if (std::exchange(is_polling_, false)) {
            polling_.on_found();
        }
    }
    return happened;
}

bool LibfabricTransport::work(TransportEvents& events) {
    Collective* const collective = endpoints_.collective();
    if (collective != nullptr) {
        collective->advance();
    }
    const bool moved = catch_up();
    return read_completions(events) || moved;
}

/// Retries operations that the provider did not accept earlier.
bool LibfabricTransport::catch_up() {
    bool moved = false;
    if (!unposted_receives_.empty()) {
        Operation& operation = *unposted_receives_.back();
        unposted_receives_.pop_back();
        receive_again(operation);
    }
    if (!greetings_.empty()) {
        std::erase_if(greetings_, [this](UnitIndex unit) { return greet(unit); });
    }
    for (std::size_t i = 0; i < waiting_writes_.size();) {
        Operation& operation = *waiting_writes_[i];
        const std::size_t given = operation.given;
        advance(operation);
        moved |= operation.given != given;
        if (operation.waits) {
            ++i;
            continue;
        }
        waiting_writes_[i] = waiting_writes_.back();
        waiting_writes_.pop_back();
        if (operation.under_way == 0) {
            release(operation);
        }
    }
    return moved;
}

bool LibfabricTransport::read_completions(TransportEvents& events) {
    std::array<fi_cq_data_entry, kCompletionsPerPoll> done;
    const auto count = ::fi_cq_read(endpoints_.queue().cq.get(), done.data(), done.size());
    if (count == -FI_EAVAIL) {
        return read_error();
    }
    for (std::int64_t i = 0; i < count; ++i) {
        const fi_cq_data_entry& entry = done[static_cast<std::size_t>(i)];
        if (endpoints_.collective() != nullptr &&
            endpoints_.collective()->is_end(entry.op_context)) {
            events.on_released();
            continue;
        }
        const bool is_written =
            (entry.flags & FI_REMOTE_WRITE) ||
            ((entry.flags & FI_REMOTE_CQ_DATA) && !(entry.flags & (FI_SEND | FI_WRITE | FI_RECV)));
        if (is_written) {
            if (entry.flags & FI_REMOTE_CQ_DATA) {
                ++counters_.writes_received;
                events.on_written(UnitIndex::none(), static_cast<std::uint32_t>(entry.data));
            }
            if (endpoints_.info().mode & FI_RX_CQ_DATA) {  // it has used one of our receives
                if (Operation* operation = ours(entry.op_context)) {
                    receive_again(*operation);
                }
            }
            continue;
        }
        Operation& operation = *reinterpret_cast<Operation*>(entry.op_context);
        switch (operation.kind) {
            case Operation::Kind::receive:
                on_received(operation, entry.len, events);
                break;
            case Operation::Kind::send:
                on_sent(operation);
                break;
            case Operation::Kind::write:
                if (end_part(operation)) {
                    events.on_write_done(operation.write.context);
                }
                break;
        }
    }
    return count > 0;
}

void LibfabricTransport::on_received(Operation& operation, std::size_t length,
                                     TransportEvents& events) {
    const auto opened = sealer_.open({operation.room, std::min(length, kMessageRoom)});
    if (opened.verdict != Sealer::Verdict::ours) {
        ++Sealer::counter_of(opened.verdict, counters_);
    } else {
        on_opened(opened, operation.path, events);
    }
    receive_again(operation);
}

void LibfabricTransport::on_opened(const Sealer::Contents& opened, Path path,
                                   TransportEvents& events) {
    Remote& peer = peers_[opened.from];
    if (peer.state == Remote::State::lost) {
        return;
    }
    // A member's number, but not the address that the run control has for it.
    if (peer.state == Remote::State::absent || opened.incarnation != peer.where.incarnation) {
        ++counters_.refused_strangers;
        return;
    }
    switch (opened.kind) {
        case Envelope::Kind::hello:
            owe(opened.from, path, &Greeting::owes_answer);
            break;
        case Envelope::Kind::answer:
            peer.greetings[index_of(path)].has_answered = true;
            settle(peer);
            break;
        case Envelope::Kind::message:
            ++counters_.messages_received;
            events.on_message(opened.from, opened.message);
            break;
        default:
            ++counters_.refused_malformed;
    }
}

void LibfabricTransport::on_sent(Operation& operation) {
    Remote& peer = peers_[operation.peer];
    if (peer.state == Remote::State::greeting && kind_of(operation) == Envelope::Kind::answer) {
        peer.greetings[index_of(operation.path)].has_our_answer = true;
        settle(peer);
    }
    release(operation);
}

void LibfabricTransport::settle(Remote& peer) {
    if (peer.state == Remote::State::greeting &&
        std::ranges::all_of(peer.greetings, &Greeting::is_over)) {
        peer.state = Remote::State::connected;
    }
}

/// Ends one part of a write. True: the whole write is done.
bool LibfabricTransport::end_part(Operation& operation) {
    --operation.under_way;
    if (operation.waits || operation.under_way > 0) {
        return false;
    }
    release(operation);
    return peers_[operation.peer].state != Remote::State::lost;
}

/// Reads an error completion. If it names the operation that failed, the operation's unit is lost.
bool LibfabricTransport::read_error() {
    fi_cq_err_entry error{};
    if (::fi_cq_readerr(endpoints_.queue().cq.get(), &error, 0) != 1) {
        return false;
    }
    Operation* operation = ours(error.op_context);
    if (operation == nullptr) {
        ++counters_.refused_malformed;
        return true;
    }
    switch (operation->kind) {
        case Operation::Kind::receive:
            if (error.err == FI_ETRUNC) {
                ++counters_.refused_malformed;
            }
            receive_again(*operation);
            break;
        case Operation::Kind::send: {
            Remote& peer = peers_[operation->peer];
            release(*operation);
            if (peer.state != Remote::State::greeting) {
                lose(operation->peer);
                break;
            }
            // Repeat the hello or answer later, because the other unit may not listen yet.
            owe(operation->peer, operation->path,
                kind_of(*operation) == Envelope::Kind::hello ? &Greeting::owes_hello
                                                             : &Greeting::owes_answer);
            return false;
        }
        case Operation::Kind::write:
            lose(operation->peer);
            end_part(*operation);
            break;
    }
    return true;
}

Operation* LibfabricTransport::ours(void* context) {
    const auto at = reinterpret_cast<std::uintptr_t>(context);
    const auto first = reinterpret_cast<std::uintptr_t>(operations_.data());
    if (at < first || at >= first + operations_.size() * sizeof(Operation) ||
        (at - first) % sizeof(Operation) != 0) {
        return nullptr;
    }
    return reinterpret_cast<Operation*>(context);
}

// ---- waiting

void LibfabricTransport::wait(base::Time until) {
    if (config_.waiting == Waiting::spinning || !earlier_.empty() || !lost_.empty() ||
        !loopback_.empty()) {
        return;
    }
    if (config_.waiting == Waiting::adaptive && now() - busy_at_ < polling_.length()) {
        is_polling_ = true;
        return;  // the caller polls for a while, and has other inputs to read
    }
    is_polling_ = false;
    polling_.on_slept();
    ++counters_.sleeps;
    sleep(until);
}

void LibfabricTransport::sleep(base::Time until) {
    const Queue& queue = endpoints_.queue();
    if (queue.fd < 0 || in_vain_ >= kMostInVain) {
        config_.doorbell->sleep(std::min(until, now() + kLook), [] { return true; });
        return;
    }
    const bool is_woken = config_.doorbell->sleep_with(queue.fd, until, [&queue] {
        fid* watched = &queue.cq->fid;
        return ::fi_trywait(queue.fabric.get(), &watched, 1) == FI_SUCCESS;
    });
    in_vain_ = is_woken ? in_vain_ + 1 : 0;  // by count: it may have waited for a processor
}

}  // namespace daqloom::live::ofi
