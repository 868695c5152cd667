// The transport over MPI, whose mpirun has started the units, one a rank. MPI has no writes with a
// notification, so that a write is an offer, which the receiver grants when MPI may place its
// bytes:
//
//   offer: slot, place, length ────────> validated; a receive into the arena is posted
//         <──────────────────── grant: slot
//   bytes ═════════════════════════════> straight into the arena
//         <───────────────────── done: slot
//
// A rank that ends ends all others: no unit can be lost, and a transport that ends completes the
// transfers that have been granted. There is no descriptor to wait on, so that an idle unit naps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/ring.hpp"
#include "live/transport/earlier.hpp"
#include "live/transport/envelope.hpp"
#include "live/transport/loopback.hpp"
#include "live/transport/mpi/world.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

namespace mpi {

/// A step of a write, or of connecting; on the network as it is.
struct Step {
    enum class Kind : std::uint32_t { greeting, offer, grant, done };

    Kind kind = Kind::greeting;
    std::uint32_t slot = 0;  ///< of the write, at its sender
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t immediate = 0;
    std::uint32_t unused = 0;
};

/// A record, a write or an arrival under way; reused when it is complete.
struct Operation {
    enum class Kind : std::uint8_t { message, step, write, arrival };

    Kind kind = Kind::message;
    bool is_granted = false;  ///< write
    bool is_done = false;     ///< write: all is in the receiver's arena
    UnitIndex peer{};
    std::uint32_t slot = 0;      ///< write, arrival: at the sender
    std::byte* room = nullptr;   ///< message, step
    std::byte* next = nullptr;   ///< write, arrival: first byte that is not in a request
    std::size_t left = 0;        ///< write, arrival: bytes from `next` on
    std::uint32_t requests = 0;  ///< write, arrival: under way
    std::uint32_t immediate = 0;
    std::uint64_t context = 0;
};

struct Peer {
    enum class State : std::uint8_t { absent, greeting, connected, lost };

    State state = State::absent;
    int rank = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t arena = 0;  ///< bytes
    std::uint32_t messages = 0;
    std::uint32_t writes = 0;
    std::uint32_t offers = 0;  ///< of this peer, not granted
};

}  // namespace mpi

class MpiTransport final : public Transport {
  public:
    /// Fails outside of an mpirun, or without the shim of its MPI.
    static base::expected<std::unique_ptr<MpiTransport>> create(const TransportConfig& config);
    ~MpiTransport() override;

    [[nodiscard]] std::vector<std::byte> address() const override;
    [[nodiscard]] base::expected<std::vector<UnitIndex>> connect(std::span<const Peer> peers,
                                                                 base::Time until) override;
    [[nodiscard]] bool send(UnitIndex to, std::span<const std::byte> bytes) override;
    [[nodiscard]] bool write(const Write& write) override;
    bool poll(TransportEvents& events) override;
    void wait(base::Time until) override;
    [[nodiscard]] const TransportCounters& counters() const override { return counters_; }

  private:
    using Operation = mpi::Operation;
    using Step = mpi::Step;
    struct QueuedStep {
        UnitIndex to{};
        Envelope::Kind kind{};
        Step step;
    };
    struct Offer {
        UnitIndex from{};
        Step step;
    };

    MpiTransport(const TransportConfig& config, mpi::World& world, std::uint64_t incarnation);

    [[nodiscard]] mpi::Peer* reachable(UnitIndex unit);
    void lose(UnitIndex unit);
    void refuse(UnitIndex unit);
    void post_record(Operation& operation, Envelope::Kind kind, std::span<const std::byte> content);
    void post_steps();
    void queue(UnitIndex to, Envelope::Kind kind, const Step& step) {
        steps_.push({to, kind, step});
    }
    void post_part(Operation& operation);

    bool receive(TransportEvents& events);
    void take(const mpi::Record& record, TransportEvents& events);
    void take(UnitIndex from, const Step& step, TransportEvents& events);
    void grant_offers(TransportEvents& events);
    bool complete(TransportEvents& events);
    void finish(Operation& write, TransportEvents& events);

    TransportConfig config_;
    mpi::World& world_;
    std::uint64_t incarnation_;
    Sealer sealer_;
    std::span<std::byte> arena_;
    base::Table<UnitIndex, mpi::Peer> peers_;
    Loopback loopback_;
    std::uint32_t message_share_;
    std::uint32_t write_share_;

    std::vector<std::byte> rooms_;
    std::vector<Operation> operations_;
    std::span<Operation> writes_;  ///< part of `operations_`, by slot
    std::vector<Operation*> free_messages_;
    std::vector<Operation*> free_steps_;
    std::vector<Operation*> free_writes_;
    std::vector<Operation*> free_arrivals_;
    mpi::Requests requests_;
    base::Ring<QueuedStep> steps_;  ///< not yet sent
    base::Ring<Offer> offers_;      ///< not yet granted
    std::vector<UnitIndex> lost_;   ///< not yet reported
    Earlier earlier_;
    std::uint32_t idle_ = 0;  ///< waits in a row
    TransportCounters counters_;
};

}  // namespace daqloom::live
