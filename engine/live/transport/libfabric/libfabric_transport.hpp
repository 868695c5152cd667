// The transport over libfabric: operations under way, and peers. Set-up, connecting and sending are
// in libfabric.cpp; completions and waiting in completions.cpp.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/polling.hpp"
#include "live/transport/earlier.hpp"
#include "live/transport/envelope.hpp"
#include "live/transport/libfabric/connections.hpp"
#include "live/transport/libfabric/endpoint.hpp"
#include "live/transport/libfabric/libfabric.hpp"
#include "live/transport/loopback.hpp"

namespace daqloom::live::ofi {

constexpr std::size_t kMessageRoom = (sizeof(Envelope) + Transport::most_message + 63) / 64 * 64;

/// An operation under way at the provider; reused when it has completed.
struct Operation {
    enum class Kind : std::uint8_t { receive, send, write };

    fi_context2 context{};  ///< the provider's; first, so that its address is the operation's
    Kind kind = Kind::receive;
    Path path = Path::messages;
    bool waits = false;  ///< write: some parts are not yet posted
    UnitIndex peer{};
    std::byte* room = nullptr;  ///< receive, send: an envelope and its message
    Write write;
    std::size_t given = 0;        ///< write: bytes posted at the provider
    std::uint32_t under_way = 0;  ///< write: posted parts that are not complete
};

/// Progress of two units in connecting a path.
struct Greeting {
    bool owes_hello = false;
    bool owes_answer = false;
    bool has_answered = false;    ///< it has answered our hello
    bool has_our_answer = false;  ///< it has our answer to its hello

    [[nodiscard]] bool owes() const { return owes_hello || owes_answer; }
    /// Whether both directions have been used: a unit that leaves `connect` then owes no answer to
    /// this peer.
    [[nodiscard]] bool is_over() const { return has_answered && has_our_answer; }
};

struct Remote {
    enum class State : std::uint8_t { absent, greeting, connected, lost };

    State state = State::absent;
    PerPath<Greeting> greetings = {};
    std::uint32_t sends = 0;   ///< under way
    std::uint32_t writes = 0;  ///< under way
    Destination where;
};

class LibfabricTransport final : public Transport {
  public:
    LibfabricTransport(const TransportConfig& config, const LibfabricConfig& libfabric,
                       Endpoints endpoints)
        : config_(config),
          congestion_control_(libfabric.congestion_control),
          sealer_(config.token, config.self, config.units, config.epoch, endpoints.incarnation()),
          endpoints_(std::move(endpoints)),
          peers_(config.units),
          loopback_(config.self, config.arena) {}

    /// Called once, before any other call.
    base::expected<void> prepare();

    [[nodiscard]] std::vector<std::byte> address() const override { return address_; }
    [[nodiscard]] base::expected<std::vector<UnitIndex>> connect(
        std::span<const Transport::Peer> peers, base::Time until) override;
    [[nodiscard]] bool send(UnitIndex to, std::span<const std::byte> bytes) override;
    [[nodiscard]] bool write(const Write& write) override;
    void enter_barrier() override { endpoints_.collective()->enter(); }
    bool poll(TransportEvents& events) override;
    void wait(base::Time until) override;
    [[nodiscard]] const TransportCounters& counters() const override { return counters_; }

  private:
    void make_operations();
    [[nodiscard]] bool add(const Transport::Peer& peer);

    void sleep(base::Time until);
    bool work(TransportEvents& events);
    bool catch_up();
    bool read_completions(TransportEvents& events);
    bool read_error();
    void on_received(Operation& operation, std::size_t length, TransportEvents& events);
    void on_opened(const Sealer::Contents& opened, Path path, TransportEvents& events);
    void on_sent(Operation& operation);
    void settle(Remote& peer);
    bool end_part(Operation& operation);
    void receive_again(Operation& operation);
    bool post_write(const Write& write);
    bool post_message(UnitIndex to, Path path, Envelope::Kind kind,
                      std::span<const std::byte> message);
    void owe(UnitIndex unit, Path path, bool Greeting::*what);
    /// True: the unit is owed no hello or answer any more.
    bool greet(UnitIndex unit);
    void advance(Operation& operation);
    void release(Operation& operation);
    void lose(UnitIndex unit);
    [[nodiscard]] Operation* ours(void* context);

    TransportConfig config_;
    std::string congestion_control_;
    Sealer sealer_;
    TransportCounters counters_;

    std::vector<std::byte> rooms_;  ///< buffers of messages; outlives the endpoints
    Endpoints endpoints_;
    std::vector<std::byte> address_;

    base::Table<UnitIndex, Remote> peers_;
    std::uint32_t send_share_ = 0;  ///< limit on sends under way to one unit
    std::uint32_t write_share_ = 0;
    std::vector<Operation> operations_;
    std::vector<Operation*> free_sends_;
    std::vector<Operation*> free_writes_;
    std::vector<Operation*> waiting_writes_;
    std::vector<Operation*> unposted_receives_;
    std::vector<UnitIndex> greetings_;  ///< units that are owed a hello or an answer
    std::vector<UnitIndex> lost_;       ///< not yet reported
    Loopback loopback_;
    Earlier earlier_;
    base::Time busy_at_;
    Polling polling_;
    int in_vain_ = 0;          ///< futile wake-ups in a row
    bool is_polling_ = false;  ///< the caller polls before it sleeps
};

inline Envelope::Kind kind_of(const Operation& operation) {
    Envelope envelope;
    std::memcpy(&envelope, operation.room, sizeof envelope);
    return envelope.kind;
}

}  // namespace daqloom::live::ofi
