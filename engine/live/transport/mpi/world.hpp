// The ranks of an mpirun, of which this process is one from its first transport to its end. The
// transports of all its epochs share the rank, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "live/transport/envelope.hpp"
#include "live/transport/mpi/library.hpp"

namespace daqloom::live::mpi {

enum Channel : int { records, payload };

/// A record: an envelope and its content.
struct Record {
    int from = 0;  ///< rank
    int tag = 0;
    std::span<const std::byte> bytes;
};

struct Operation;

/// Requests under way, each with its operation.
class Requests {
  public:
    void reserve(std::size_t most) {
        bits_.reserve(most);
        owners_.reserve(most);
        done_.reserve(most);
    }
    [[nodiscard]] bool empty() const { return bits_.empty(); }
    [[nodiscard]] std::span<Operation* const> owners() const { return owners_; }

    void add(std::uint64_t request, Operation* owner) {
        bits_.push_back(request);
        owners_.push_back(owner);
    }
    /// Removes the complete requests, and returns their operations, valid until the next call. Ends
    /// all ranks if a request has failed.
    std::span<Operation* const> complete(const Library& library);

  private:
    std::vector<std::uint64_t> bits_;
    std::vector<Operation*> owners_;
    std::vector<Operation*> done_;
};

class World {
  public:
    static constexpr std::size_t most_record = sizeof(Envelope) + Transport::most_message;

    /// The ranks of this process; at the first call waits until all ranks make that call. Fails
    /// outside of an mpirun.
    static base::expected<World*> join();

    World(const World&) = delete;
    ~World();

    [[nodiscard]] const Library& library() const { return library_; }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int ranks() const { return ranks_; }

    /// Starts to receive what ranks have sent; whether the oldest record is complete.
    bool look();
    /// The oldest record, after `look` has returned true; longer ones than `most_record` are empty.
    [[nodiscard]] Record oldest() const;
    void drop_oldest();

    /// Keeps records that are still being sent at the end of their transport.
    void keep(std::vector<std::byte> rooms, Requests requests);

  private:
    static constexpr std::size_t kRooms = 64;  ///< records received and not processed

    struct Room {
        int from = 0;
        int tag = 0;
        int length = 0;
        std::uint64_t request = 0;
    };
    struct Remains {
        std::vector<std::byte> rooms;
        Requests requests;
    };

    explicit World(const Library& library);
    [[nodiscard]] const std::byte* bytes_of(std::uint64_t record) const {
        return bytes_.data() + record % kRooms * most_record;
    }

    Library library_;
    int rank_ = 0;
    int ranks_ = 0;
    bool is_open_;
    std::vector<std::byte> bytes_;
    std::vector<Room> rooms_;
    std::uint64_t received_ = 0;
    std::uint64_t dropped_ = 0;
    bool is_complete_ = false;  ///< the oldest record
    std::vector<Remains> remains_;
};

}  // namespace daqloom::live::mpi
