#ifndef COFFER_CURL_H
#define COFFER_CURL_H

#include <stddef.h>
#include <stdint.h>

/// Sends requests of HTTP by libcurl.
///
/// libcurl is loaded when it is needed: a program links and starts without it. Its functions take
/// variable arguments, which Swift cannot call.

/// The functions of a libcurl that was loaded, for as long as the process lives.
typedef struct coffer_curl coffer_curl;

/// Requests that are under way, and the connections that they use one after the other. One thread
/// at a time may use it, but for `coffer_curl_multi_wake`.
typedef struct coffer_curl_multi coffer_curl_multi;

/// One request. It belongs to the thread that uses its `coffer_curl_multi`.
typedef struct coffer_curl_request coffer_curl_request;

/// The owner of a request, which the functions get as their first argument. They are called by
/// `coffer_curl_multi_perform` only.
typedef struct {
    void *owner;
    /// Takes a line of the head of an answer, with its end.
    void (*take_header)(void *owner, const void *bytes, size_t count);
    /// Takes bytes of the body of an answer. Returns 0 to end the request.
    int (*take_body)(void *owner, const void *bytes, size_t count);
    /// Copies bytes of the body of the request, from an offset on. Returns how many.
    size_t (*give_body)(void *owner, size_t offset, void *buffer, size_t count);
} coffer_curl_owner;

enum {
    /// The result of a function that was successful.
    COFFER_CURL_OK = 0,
    COFFER_CURL_URL_MALFORMAT = 3,
    COFFER_CURL_OUT_OF_MEMORY = 27,
    COFFER_CURL_TIMED_OUT = 28,
    COFFER_CURL_CERTIFICATE = 60,
};

/// Loads libcurl 7.68 or later, if it is not loaded yet. Any thread may call it.
///
/// - Parameter name: The file name of the library.
/// - Returns: NULL if it cannot be loaded, or lacks a function.
const coffer_curl *coffer_curl_load(const char *name);

/// What a code means: a text of libcurl's own, without anything of the request.
const char *coffer_curl_error_text(const coffer_curl *curl, int code);

/// Makes a request, which has the given headers and no others but `Host` and `Content-Length`.
///
/// - Parameter body_count: The size of the body; -1 for none.
/// - Returns: NULL without memory.
coffer_curl_request *coffer_curl_request_make(const coffer_curl *curl, const char *method,
                                              const char *url, int64_t body_count,
                                              coffer_curl_owner owner);

/// Adds a header. The name and the value have no control character.
///
/// - Returns: 0 without memory.
int coffer_curl_request_add_header(coffer_curl_request *request, const char *name,
                                   const char *value);

/// Sets the certificates that are trusted in the place of those that libcurl was built with.
///
/// - Parameter file: A file of certificates; NULL for libcurl's own.
/// - Parameter folder: A folder of certificates; NULL for libcurl's own.
/// - Returns: A code of libcurl.
int coffer_curl_request_set_trust(coffer_curl_request *request, const char *file,
                                  const char *folder);

/// Frees a request that no `coffer_curl_multi` has, and wipes its headers.
void coffer_curl_request_free(coffer_curl_request *request);

/// - Parameter connection_count: How many connections are kept for later requests.
/// - Returns: NULL without memory.
coffer_curl_multi *coffer_curl_multi_make(const coffer_curl *curl, int connection_count);

/// Begins a request.
///
/// - Returns: A code of libcurl. If it is not 0, the request is not under way.
int coffer_curl_multi_add(coffer_curl_multi *multi, coffer_curl_request *request);

/// Ends a request, also one that has no answer yet.
void coffer_curl_multi_remove(coffer_curl_multi *multi, coffer_curl_request *request);

/// Reads and writes what is possible without waiting.
///
/// - Returns: 0 if libcurl failed, and with it all requests.
int coffer_curl_multi_perform(coffer_curl_multi *multi);

/// The owner of a request that has its answer or failed, and is still to be removed. Each is
/// returned once.
///
/// - Parameter code: Set to a code of libcurl: `COFFER_CURL_OK` for a whole answer.
/// - Returns: NULL if there is no further one.
void *coffer_curl_multi_next_ended(coffer_curl_multi *multi, int *code);

/// Waits until there is something to read or to write, or for `coffer_curl_multi_wake`.
///
/// - Returns: 0 if libcurl failed.
int coffer_curl_multi_poll(coffer_curl_multi *multi, int milliseconds);

/// Ends the wait of `coffer_curl_multi_poll`, or the next one. Any thread may call it.
void coffer_curl_multi_wake(coffer_curl_multi *multi);

/// Closes all connections. No request may be under way.
void coffer_curl_multi_free(coffer_curl_multi *multi);

/// Whether the calling thread had blocked SIGPIPE.
typedef struct {
    int was_blocked;
    int was_pending;
} coffer_curl_pipe_signal;

/// Blocks SIGPIPE for the calling thread. TLS libraries may write to a connection that the other
/// side has closed, which ends the process otherwise.
coffer_curl_pipe_signal coffer_curl_block_pipe_signal(void);

/// Undoes `coffer_curl_block_pipe_signal`, and drops the signals that came in between.
void coffer_curl_restore_pipe_signal(coffer_curl_pipe_signal before);

#endif
