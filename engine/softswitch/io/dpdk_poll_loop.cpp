#include "softswitch/io/dpdk_poll_loop.hpp"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "softswitch/headers.hpp"

namespace daqloom::softswitch::io {

using base::Time;

namespace {

rte_mbuf* buffer_of(std::uint64_t handle) { return reinterpret_cast<rte_mbuf*>(handle); }

}  // namespace

PollLoop::PollLoop(Forwarder& forwarder, Devices& devices, Exchange* exchange)
    : forwarder_(forwarder),
      devices_(devices),
      exchange_(exchange),
      sending_(devices.size()),
      outboxes_(forwarder.share().cores),
      ps_per_cycle_(1e12 / static_cast<double>(rte_get_tsc_hz())),
      begin_(rte_rdtsc()) {
    const Share& share = forwarder.share();
    for (std::uint32_t core = 0; core < share.cores; ++core) {
        if (core != share.number) {
            others_.push_back(core);
        }
    }
    for (std::uint16_t port = 0; port < devices.size(); ++port) {
        if (share.core_of(PortIndex(port)) == share.number) {
            outputs_.push_back(port);
        }
        // The first queue belongs to the core of the port, each further queue to the next core.
        for (std::uint16_t queue = 0; queue < devices.receive_queues(); ++queue) {
            if ((port + queue) % share.cores == share.number) {
                inputs_.push_back({port, queue});
            }
        }
    }
}

/// Releases the frames still held.
PollLoop::~PollLoop() {
    OutputQueues& queues = forwarder_.queues();
    queues.drain([this](std::uint64_t handle) { drop(handle); });
    for (const Sending& sending : sending_) {
        for (std::size_t i = 0; i < sending.count; ++i) {
            drop(sending.handles[i]);
        }
    }
    std::array<Message, kBatch> messages;
    for (const std::uint32_t core : others_) {
        while (const std::size_t count =
                   exchange_->take(core, forwarder_.share().number, messages)) {
            for (const Message& message : std::span(messages).first(count)) {
                if (message.what == Message::What::frame) {
                    drop(message.packet.handle);
                }
            }
        }
    }
}

Time PollLoop::now() const {
    return {static_cast<std::int64_t>(static_cast<double>(rte_rdtsc() - begin_) * ps_per_cycle_)};
}

bool PollLoop::turn() {
    if (has_call_.load(std::memory_order_acquire)) [[unlikely]] {
        run_call();
    }
    std::size_t moved = 0;
    const Time begin = now();
    if (is_open_) [[likely]] {
        for (const Input input : inputs_) {
            moved += receive(input, begin);
        }
    }
    if (!others_.empty()) {
        moved += receive_messages(begin);
    }
    update_pauses(begin);
    forwarder_.advance(begin);
    for (const std::uint16_t port : outputs_) {
        moved += send(port, begin);
    }
    ++counters_.turns;
    counters_.idle_turns += moved == 0 ? 1 : 0;
    return moved > 0;
}

std::size_t PollLoop::receive(Input input, Time now) {
    std::array<rte_mbuf*, kBatch> buffers;
    const std::uint16_t count = rte_eth_rx_burst(
        devices_.id(input.port), input.queue, buffers.data(), static_cast<std::uint16_t>(kBatch));
    if (count == 0) {
        return 0;
    }
    for (std::uint16_t i = 0; i < count; ++i) {
        rte_prefetch0(rte_pktmbuf_mtod(buffers[i], void*));
    }
    for (std::uint16_t i = 0; i < count; ++i) {
        batch_[i] = {reinterpret_cast<std::uint64_t>(buffers[i]),
                     {rte_pktmbuf_mtod(buffers[i], const std::uint8_t*), buffers[i]->data_len},
                     buffers[i]->pkt_len};
    }
    counters_.received += count;
    forwarder_.in({batch_.data(), count}, PortIndex(input.port), now, *this);
    return count;
}

void PollLoop::share_with(std::uint32_t core, const Message& message) {
    Outbox& outbox = outboxes_[core];
    outbox.messages[outbox.count++] = message;
    if (outbox.count == kBatch) {
        flush_outbox(core);
    }
}

/// Sends messages to a core. If it is far behind, drops them, as waiting would delay all ports.
void PollLoop::flush_outbox(std::uint32_t core) {
    Outbox& outbox = outboxes_[core];
    const std::span all(outbox.messages.data(), outbox.count);
    outbox.count = 0;
    for (const Message& message :
         all.subspan(exchange_->put(forwarder_.share().number, core, all))) {
        if (message.what == Message::What::frame) {
            ++counters_.behind;
            drop(message.packet.handle);
        }
    }
}

std::size_t PollLoop::receive_messages(Time now) {
    std::array<Message, kBatch> messages;
    std::size_t received = 0;
    for (const std::uint32_t core : others_) {
        flush_outbox(core);
        const std::size_t count = exchange_->take(core, forwarder_.share().number, messages);
        for (const Message& message : std::span(messages).first(count)) {
            forwarder_.on_message(message, now, *this);
        }
        received += count;
    }
    return received;
}

std::size_t PollLoop::send(std::size_t port, Time now) {
    Sending& sending = sending_[port];
    sending.count +=
        forwarder_.out(PortIndex(port), now, std::span(sending.handles).subspan(sending.count));
    if (sending.count == 0) {
        return 0;
    }
    auto* const buffers = reinterpret_cast<rte_mbuf**>(sending.handles.data());
    const std::uint16_t taken =
        rte_eth_tx_burst(devices_.id(port), 0, buffers, static_cast<std::uint16_t>(sending.count));
    std::copy(sending.handles.begin() + taken, sending.handles.begin() + sending.count,
              sending.handles.begin());
    sending.count -= taken;
    counters_.sent += taken;
    return taken;
}

void PollLoop::run(Time longest_sleep) {
    constexpr int kIdleTurns = 100;  // idle turns before a sleep
    int idle = 0;
    while (!stops_.load(std::memory_order_relaxed)) {
        idle = turn() ? 0 : idle + 1;
        if (idle > kIdleTurns && longest_sleep > Time::zero()) {
            sleep(longest_sleep);
        }
    }
    stops_.store(false, std::memory_order_relaxed);  // `run` may be called again
    run_call();
}

void PollLoop::sleep(Time longest) {
    const Time due = forwarder_.next_due();
    const Time ahead = due == Time::never() ? longest : std::min(longest, due - now());
    if (ahead > base::microseconds(1)) {
        std::unique_lock lock(sleeping_);
        awake_.wait_for(lock, std::chrono::nanoseconds(ahead.ps / 1000), [this] {
            return has_call_.load(std::memory_order_relaxed) ||
                   stops_.load(std::memory_order_relaxed);
        });
    }
}

/// Wakes `run`. The lock puts the wake-up after the checks of the sleeper, so none is missed.
void PollLoop::wake() {
    { const std::lock_guard lock(sleeping_); }
    awake_.notify_one();
}

void PollLoop::do_between(const std::function<void()>& what) {
    const std::lock_guard one_at_a_time(calling_);
    call_ = &what;
    has_call_.store(true, std::memory_order_release);
    wake();
    has_call_.wait(true, std::memory_order_acquire);
}

void PollLoop::run_call() {
    if (has_call_.load(std::memory_order_acquire)) {
        (*call_)();
        has_call_.store(false, std::memory_order_release);
        has_call_.notify_all();
    }
}

std::size_t PollLoop::waiting() const {
    std::size_t all = 0;
    for (const Sending& sending : sending_) {
        all += sending.count;
    }
    for (const std::uint32_t core : others_) {
        all += outboxes_[core].count + exchange_->waiting(core, forwarder_.share().number);
    }
    return all;
}

void PollLoop::drop(std::uint64_t handle) { rte_pktmbuf_free(buffer_of(handle)); }

void PollLoop::update_pauses(Time now) {
    constexpr Time again = base::milliseconds(1);
    if (!forwarder_.pauses().any()) {
        pauses_sent_ = now;  // the first pause is sent below, and repeated later
    }
    forwarder_.update_pauses(*this);
    if (!forwarder_.pauses().any() || now - pauses_sent_ < again) {
        return;
    }
    pauses_sent_ = now;
    for (std::size_t port = 0; port < devices_.size(); ++port) {
        if (forwarder_.pauses().is_paused(PortIndex(port))) {
            send_pause(port, true);
        }
    }
}

void PollLoop::pause(PortIndex port, bool on) { send_pause(port.value(), on); }

void PollLoop::send_pause(std::size_t port, bool on) {
    rte_mbuf* buffer = rte_pktmbuf_alloc(devices_.buffers());
    if (buffer == nullptr) {
        return;  // it is repeated, and arriving frames have no buffer either
    }
    constexpr std::size_t size = 60;
    auto* const frame = reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(buffer, size));
    std::fill_n(frame, size, std::uint8_t{0});
    constexpr std::array<std::uint8_t, 6> address{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
    constexpr std::array<std::uint8_t, 4> pause_frame{0x88, 0x08, 0x00, 0x01};
    rte_ether_addr own{};
    rte_eth_macaddr_get(devices_.id(port), &own);
    std::copy(address.begin(), address.end(), frame);
    std::copy_n(own.addr_bytes, 6, frame + 6);
    std::copy(pause_frame.begin(), pause_frame.end(), frame + 12);
    frame[16] = frame[17] = on ? 0xff : 0;  // times of 512 bits
    if (rte_eth_tx_burst(devices_.id(port), 0, &buffer, 1) == 0) {
        rte_pktmbuf_free(buffer);
    } else {
        ++counters_.pauses;
    }
}

void PollLoop::mark(std::uint64_t handle) {
    rte_mbuf* const buffer = buffer_of(handle);
    if (rte_mbuf_refcnt_read(buffer) != 1) {
        return;
    }
    const std::span frame(rte_pktmbuf_mtod(buffer, std::uint8_t*), buffer->data_len);
    if (const Headers headers = headers_of(frame); headers.is_ecn_capable) {
        mark_congestion(frame, headers);
    }
}

/// Copies a frame by the reference count of its buffer: a shared buffer is never written.
std::uint64_t PollLoop::copy(std::uint64_t handle) {
    for (rte_mbuf* each = buffer_of(handle); each != nullptr; each = each->next) {
        rte_mbuf_refcnt_update(each, 1);
    }
    return handle;
}

}  // namespace daqloom::softswitch::io
