/* The calls of MPI that the transport `mpi` makes, with one binary interface for every MPI: their own
   interfaces differ, so that this file is compiled once for each MPI, by its mpicc. One thread at a
   time calls these functions. A request or message is 64 bits. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= 8 && sizeof(MPI_Message) <= 8, "handles of at most 64 bits");

enum { MOST_AT_ONCE = 512 };

/* Communicators for records (0) and for the bytes of writes (1). */
static MPI_Comm channels[2];

static MPI_Request request_of(uint64_t bits) {
    MPI_Request request;
    memcpy(&request, &bits, sizeof request);
    return request;
}

/* Starts MPI together with all other ranks. Returns 0, or 1 if MPI refuses. */
int daqloom_mpi_open(int* rank, int* ranks) {
    int level = 0;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS ||
        level < MPI_THREAD_SERIALIZED) {
        return 1;
    }
    for (int i = 0; i < 2; ++i) {
        if (MPI_Comm_dup(MPI_COMM_WORLD, &channels[i]) != MPI_SUCCESS) {
            return 1;
        }
        MPI_Comm_set_errhandler(channels[i], MPI_ERRORS_RETURN);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, ranks);
    return 0;
}

/* Ends MPI together with all other ranks. */
void daqloom_mpi_close(void) { MPI_Finalize(); }

/* Ends all ranks. */
void daqloom_mpi_abort(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

/* Starts to send; `waits`: complete only when the receiver has begun to receive. */
int daqloom_mpi_send(int channel, const void* bytes, int count, int to, int tag, int waits,
                     uint64_t* bits) {
    MPI_Request request;
    const int code =
        waits ? MPI_Issend(bytes, count, MPI_BYTE, to, tag, channels[channel], &request)
              : MPI_Isend(bytes, count, MPI_BYTE, to, tag, channels[channel], &request);
    memcpy(bits, &request, sizeof request);
    return code;
}

int daqloom_mpi_receive(int channel, void* bytes, int count, int from, int tag, uint64_t* bits) {
    MPI_Request request;
    const int code = MPI_Irecv(bytes, count, MPI_BYTE, from, tag, channels[channel], &request);
    memcpy(bits, &request, sizeof request);
    return code;
}

/* Starts to receive the next message of any rank, if there is one: returns its length, or -1. */
int daqloom_mpi_next(int channel, void* bytes, int most, int* from, int* tag, uint64_t* bits) {
    MPI_Message message;
    MPI_Status status;
    MPI_Request request;
    int is_there = 0;
    int count = 0;
    if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, channels[channel], &is_there, &message, &status) !=
            MPI_SUCCESS ||
        !is_there) {
        return -1;
    }
    MPI_Get_count(&status, MPI_BYTE, &count);
    *from = status.MPI_SOURCE;
    *tag = status.MPI_TAG;
    if (MPI_Imrecv(bytes, most, MPI_BYTE, &message, &request) != MPI_SUCCESS) {
        return -1;
    }
    memcpy(bits, &request, sizeof request);
    return count;
}

/* Puts the places of complete requests into `places`. Returns their number; -1: one has failed. */
int daqloom_mpi_completed(int count, uint64_t* bits, int* places) {
    static MPI_Request requests[MOST_AT_ONCE];
    static MPI_Status statuses[MOST_AT_ONCE];
    int done = 0;
    for (int i = 0; i < count; ++i) {
        requests[i] = request_of(bits[i]);
    }
    if (MPI_Testsome(count, requests, &done, places, statuses) != MPI_SUCCESS) {
        return -1;
    }
    return done == MPI_UNDEFINED ? 0 : done;
}
