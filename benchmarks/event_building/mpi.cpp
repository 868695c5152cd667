// Equal volume through MPI: MPI_Alltoall, a linear shift of MPI_Sendrecv, and MPI_Barrier.
//
//     mpi alltoall|shift|barrier BLOCK READ_AREA WRITE_AREA SECONDS
//
// Messages of BLOCK bytes, one from each rank to each per round, itself included; rounds go through
// the whole of both areas.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Ranks {
    int self = 0;
    int count = 1;
};

class Rounds {
  public:
    Rounds(const std::string& mode, Ranks ranks, int block, std::size_t read_area,
           std::size_t write_area)
        : mode_(mode),
          ranks_(ranks),
          block_(block),
          from_(std::max(read_area, round_bytes()), 1),
          to_(std::max(write_area, round_bytes()), 2) {}

    void one() {
        if (mode_ == "barrier") {
            MPI_Barrier(MPI_COMM_WORLD);
            return;
        }
        const char* from = from_.data() + round_ % (from_.size() / round_bytes()) * round_bytes();
        char* to = to_.data() + round_ % (to_.size() / round_bytes()) * round_bytes();
        ++round_;
        if (mode_ == "alltoall") {
            MPI_Alltoall(from, block_, MPI_BYTE, to, block_, MPI_BYTE, MPI_COMM_WORLD);
            return;
        }
        for (int phase = 0; phase < ranks_.count; ++phase) {
            const int next = (ranks_.self + phase) % ranks_.count;
            const int before = (ranks_.self - phase + ranks_.count) % ranks_.count;
            MPI_Sendrecv(from + static_cast<std::size_t>(next) * block(), block_, MPI_BYTE, next, 0,
                         to + static_cast<std::size_t>(before) * block(), block_, MPI_BYTE, before,
                         0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }

    /// Bytes of a round, of all ranks.
    [[nodiscard]] double bytes() const {
        return static_cast<double>(round_bytes()) * static_cast<double>(ranks_.count);
    }

  private:
    [[nodiscard]] std::size_t block() const { return static_cast<std::size_t>(block_); }
    [[nodiscard]] std::size_t round_bytes() const {
        return block() * static_cast<std::size_t>(ranks_.count);
    }

    std::string mode_;
    Ranks ranks_;
    int block_;
    std::vector<char> from_;
    std::vector<char> to_;
    std::size_t round_ = 0;
};

/// The slowest rank's.
double time_of(Rounds& rounds, long count) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (long i = 0; i < count; ++i) {
        rounds.one();
    }
    double passed = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &passed, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return passed;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "mpi alltoall|shift|barrier BLOCK READ_AREA WRITE_AREA SECONDS\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    Ranks ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.self);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks.count);
    const double seconds = std::atof(argv[5]);
    Rounds rounds(argv[1], ranks, std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 10),
                  std::strtoull(argv[4], nullptr, 10));
    double first = time_of(rounds, 1);
    long count = 1;
    double passed = 0;
    while ((passed = time_of(rounds, count)) < seconds / 10) {
        count *= 2;
    }
    count = std::max(1L, static_cast<long>(static_cast<double>(count) * seconds / passed));
    passed = time_of(rounds, count);
    if (ranks.self == 0) {
        std::printf("{\"bytes_per_s\": %.6g, \"round_s\": %.6g, \"first_round_s\": %.6g}\n",
                    rounds.bytes() * static_cast<double>(count) / passed,
                    passed / static_cast<double>(count), first);
    }
    MPI_Finalize();
}
