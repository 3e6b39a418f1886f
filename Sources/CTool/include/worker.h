#ifndef COFFER_WORKER_H
#define COFFER_WORKER_H

#include <stdint.h>

/// Starts a program as `coffer_start_program` does, with a socket as its standard input and
/// `/dev/null` as its outputs.
///
/// - Parameter socket: Set to the caller's end of the socket, which the caller closes.
/// - Returns: The number of the process, or an error number, negated.
int coffer_start_worker(char *const *arguments, int *socket);

/// Whether a descriptor is a socket: 1 or 0.
int coffer_is_socket(int descriptor);

/// Sends bytes over a socket, and with them three descriptors, which the receiver gets copies of.
///
/// - Returns: 0, or an error number: EPIPE if nobody receives any more.
int coffer_send_run(int socket, const void *bytes, uint32_t count, const int descriptors[3]);

/// Waits for what `coffer_send_run` sends. No program that this process starts inherits the
/// descriptors under their numbers.
///
/// - Parameter bytes: Set to the bytes, with a NUL behind them, which the caller frees.
/// - Returns: 1; 0 if nothing more comes; or an error number, negated.
int coffer_receive_run(int socket, char **bytes, uint32_t *count, int descriptors[3]);

/// The end of a run.
typedef struct {
    int32_t code;
    /// Whether the process takes no further run.
    int32_t is_last;
} coffer_run_end;

/// Sends the end of a run.
///
/// - Returns: 0, or an error number.
int coffer_send_end(int socket, coffer_run_end end);

#endif
