// The shim of an MPI (shim.c, compiled for that MPI), loaded at its first use: the other transports
// need no MPI.
#pragma once

#include <cstdint>
#include <string>

#include "base/expected.hpp"

namespace daqloom::live::mpi {

/// Entry points of the shim, which describes them.
struct Library {
    static constexpr int most_at_once = 512;  ///< requests of one call of `completed`

    int (*open)(int* rank, int* ranks);
    void (*close)();
    void (*abort)();
    int (*send)(int channel, const void* bytes, int count, int to, int tag, int waits,
                std::uint64_t* request);
    int (*receive)(int channel, void* bytes, int count, int from, int tag, std::uint64_t* request);
    int (*next)(int channel, void* bytes, int most, int* from, int* tag, std::uint64_t* request);
    int (*completed)(int count, std::uint64_t* requests, int* places);
};

/// Whether a shim lies beside this library or program.
bool has_shim();

/// The shim of the MPI whose mpirun has started this process. Fails outside of an mpirun, and with
/// the command that builds the shim if there is none.
base::expected<Library> load();

}  // namespace daqloom::live::mpi
