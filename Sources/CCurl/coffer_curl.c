// explicit_bzero, SOCK_CLOEXEC, sigtimedwait and memset_s.
#define _GNU_SOURCE
#define __STDC_WANT_LIB_EXT1__ 1

#include "coffer_curl.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

// Types and numbers of <curl/curl.h> and <curl/multi.h>, which need not be installed where this is
// compiled. libcurl promises to keep them:
// > libcurl will keep the ABI intact
// https://curl.se/libcurl/abi.html
// https://github.com/curl/curl/blob/master/include/curl/curl.h
// https://github.com/curl/curl/blob/master/include/curl/multi.h
typedef void CURL;
typedef void CURLM;

struct curl_slist {
    char *data;
    struct curl_slist *next;
};

struct curl_sockaddr {
    int family;
    int socktype;
    int protocol;
    unsigned int addrlen;
    struct sockaddr addr;
};

typedef struct {
    int msg;
    CURL *easy;
    union {
        void *whatever;
        int result;
    } data;
} CURLMsg;

enum {
    CURL_GLOBAL_DEFAULT = 3,
    CURLE_UNKNOWN_OPTION = 48,
    CURLE_SEND_ERROR = 55,
    CURLMSG_DONE = 1,
    CURLMOPT_MAXCONNECTS = 6,
    CURLINFO_PRIVATE = 0x100000 + 21,
    CURLINFO_NUM_CONNECTS = 0x200000 + 26,
    CURL_SEEKFUNC_OK = 0,
    CURL_SEEKFUNC_FAIL = 1,
    CURLPROTO_HTTP_AND_HTTPS = 3,
    CURL_HTTP_VERSION_1_1 = 2,

    // Of type long.
    CURLOPT_UPLOAD = 46,
    CURLOPT_FOLLOWLOCATION = 52,
    CURLOPT_SSL_VERIFYPEER = 64,
    CURLOPT_FRESH_CONNECT = 74,
    CURLOPT_HTTPGET = 80,
    CURLOPT_SSL_VERIFYHOST = 81,
    CURLOPT_HTTP_VERSION = 84,
    CURLOPT_BUFFERSIZE = 98,
    CURLOPT_NOSIGNAL = 99,
    CURLOPT_CONNECTTIMEOUT_MS = 156,
    CURLOPT_PROTOCOLS = 181,
    CURLOPT_PATH_AS_IS = 234,
    CURLOPT_SUPPRESS_CONNECT_HEADERS = 265,
    CURLOPT_DISALLOW_USERNAME_IN_URL = 278,
    CURLOPT_UPLOAD_BUFFERSIZE = 280,
    CURLOPT_HTTP09_ALLOWED = 285,
    CURLOPT_QUICK_EXIT = 322,

    // Pointers.
    CURLOPT_WRITEDATA = 10001,
    CURLOPT_URL = 10002,
    CURLOPT_READDATA = 10009,
    CURLOPT_HTTPHEADER = 10023,
    CURLOPT_HEADERDATA = 10029,
    CURLOPT_CUSTOMREQUEST = 10036,
    CURLOPT_CAINFO = 10065,
    CURLOPT_CAPATH = 10097,
    CURLOPT_PRIVATE = 10103,
    CURLOPT_SEEKDATA = 10168,
    CURLOPT_PROTOCOLS_STR = 10318,

    // Functions.
    CURLOPT_WRITEFUNCTION = 20011,
    CURLOPT_READFUNCTION = 20012,
    CURLOPT_HEADERFUNCTION = 20079,
    CURLOPT_OPENSOCKETFUNCTION = 20163,
    CURLOPT_SEEKFUNCTION = 20167,

    // Of a type with 64 bits.
    CURLOPT_INFILESIZE_LARGE = 30115,
};

struct coffer_curl {
    void *library;
    coffer_curl *next;

    int (*global_init)(long);
    const char *(*easy_strerror)(int);
    CURL *(*easy_init)(void);
    int (*easy_setopt)(CURL *, int, ...);
    int (*easy_getinfo)(CURL *, int, ...);
    void (*easy_cleanup)(CURL *);
    CURLM *(*multi_init)(void);
    int (*multi_setopt)(CURLM *, int, ...);
    int (*multi_add_handle)(CURLM *, CURL *);
    int (*multi_remove_handle)(CURLM *, CURL *);
    int (*multi_perform)(CURLM *, int *);
    CURLMsg *(*multi_info_read)(CURLM *, int *);
    int (*multi_poll)(CURLM *, void *, unsigned int, int, int *);
    int (*multi_wakeup)(CURLM *);
    int (*multi_cleanup)(CURLM *);
};

struct coffer_curl_multi {
    const coffer_curl *curl;
    CURLM *handle;
};

struct coffer_curl_request {
    const coffer_curl *curl;
    CURL *handle;
    coffer_curl_owner owner;
    struct curl_slist *headers;
    size_t given_count;
    int has_answer;
    int has_accept;
    int has_expect;
};

// MARK: The library

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
/// Never unloaded. There is more than one only if two names were different files.
static coffer_curl *libraries;

/// - Returns: NULL if a function is missing, or if libcurl cannot begin.
static coffer_curl *begin(void *library) {
    coffer_curl *curl = calloc(1, sizeof *curl);
    if (!curl) return NULL;
    curl->library = library;
    const struct {
        void *place;
        const char *name;
    } functions[] = {
        {&curl->global_init, "curl_global_init"},
        {&curl->easy_strerror, "curl_easy_strerror"},
        {&curl->easy_init, "curl_easy_init"},
        {&curl->easy_setopt, "curl_easy_setopt"},
        {&curl->easy_getinfo, "curl_easy_getinfo"},
        {&curl->easy_cleanup, "curl_easy_cleanup"},
        {&curl->multi_init, "curl_multi_init"},
        {&curl->multi_setopt, "curl_multi_setopt"},
        {&curl->multi_add_handle, "curl_multi_add_handle"},
        {&curl->multi_remove_handle, "curl_multi_remove_handle"},
        {&curl->multi_perform, "curl_multi_perform"},
        {&curl->multi_info_read, "curl_multi_info_read"},
        {&curl->multi_poll, "curl_multi_poll"},
        {&curl->multi_wakeup, "curl_multi_wakeup"},
        {&curl->multi_cleanup, "curl_multi_cleanup"},
    };
    int is_whole = 1;
    for (size_t index = 0; index < sizeof functions / sizeof *functions; index++) {
        void *function = dlsym(library, functions[index].name);
        if (!function) is_whole = 0;
        memcpy(functions[index].place, &function, sizeof function);
    }
    // libcurl counts its beginnings, so a program that uses it as well is not disturbed.
    if (!is_whole || curl->global_init(CURL_GLOBAL_DEFAULT) != COFFER_CURL_OK) {
        free(curl);
        return NULL;
    }
    curl->next = libraries;
    libraries = curl;
    return curl;
}

const coffer_curl *coffer_curl_load(const char *name) {
    pthread_mutex_lock(&gate);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    coffer_curl *curl = library ? libraries : NULL;
    while (curl && curl->library != library) curl = curl->next;
    if (library && !curl) curl = begin(library);
    pthread_mutex_unlock(&gate);
    return curl;
}

const char *coffer_curl_error_text(const coffer_curl *curl, int code) {
    return curl->easy_strerror(code);
}

// MARK: A request

/// Opens the socket of a connection, which programs that this one starts do not inherit.
static int open_socket(void *data, int purpose, struct curl_sockaddr *address) {
    (void)data;
    (void)purpose;
#ifdef SOCK_CLOEXEC
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
#else
    int descriptor = socket(address->family, address->socktype, address->protocol);
    if (descriptor >= 0) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    return descriptor;
#endif
}

static size_t take_header(char *bytes, size_t size, size_t count, void *data) {
    coffer_curl_request *request = data;
    request->has_answer = 1;
    request->owner.take_header(request->owner.owner, bytes, size * count);
    return size * count;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *data) {
    coffer_curl_request *request = data;
    size_t total = size * count;
    // Another number than that of the bytes ends the request.
    return request->owner.take_body(request->owner.owner, bytes, total) ? total : total + 1;
}

static size_t give_body(char *buffer, size_t size, size_t count, void *data) {
    coffer_curl_request *request = data;
    size_t given = request->owner.give_body(request->owner.owner, request->given_count, buffer,
                                            size * count);
    request->given_count += given;
    return given;
}

/// Begins the body again. A connection that was kept may turn out to be closed, and libcurl then
/// sends the request over a new one.
static int seek_body(void *data, int64_t offset, int origin) {
    coffer_curl_request *request = data;
    if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_FAIL;
    request->given_count = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/// Sets what all requests have in common.
static int set_rules(coffer_curl_request *request) {
    CURL *handle = request->handle;
    int (*set)(CURL *, int, ...) = request->curl->easy_setopt;
    int code = set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    // Before 7.85 a number says the same.
    if (code == CURLE_UNKNOWN_OPTION) {
        code = set(handle, CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTP_AND_HTTPS);
    }
    const struct {
        int option;
        long value;
    } numbers[] = {
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_SSL_VERIFYPEER, 1},
        {CURLOPT_SSL_VERIFYHOST, 2},
        // A name in the URL would become a header.
        {CURLOPT_DISALLOW_USERNAME_IN_URL, 1},
        // The signature is of the path as it is written.
        {CURLOPT_PATH_AS_IS, 1},
        // With HTTP/2 all requests would share one connection. Services of storage do not offer it.
        {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
        {CURLOPT_HTTP09_ALLOWED, 0},
        // The head of a proxy's answer is none of the service.
        {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
        // The caller ends a request that takes too long. libcurl's own limit is 300 s.
        {CURLOPT_CONNECTTIMEOUT_MS, 0x7fffffff},
        {CURLOPT_BUFFERSIZE, 256 << 10},
        {CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10},
    };
    for (size_t index = 0; index < sizeof numbers / sizeof *numbers && !code; index++) {
        code = set(handle, numbers[index].option, numbers[index].value);
    }
    // The end of a request does not wait for the end of its look-up of a name. Since 7.87.
    set(handle, CURLOPT_QUICK_EXIT, 1L);
    if (!code) code = set(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    return code;
}

static int set_content(coffer_curl_request *request, const char *method, const char *url,
                       int64_t body_count) {
    CURL *handle = request->handle;
    int (*set)(CURL *, int, ...) = request->curl->easy_setopt;
    int code = set(handle, CURLOPT_URL, url);
    if (body_count >= 0) {
        if (!code) code = set(handle, CURLOPT_UPLOAD, 1L);
        if (!code) code = set(handle, CURLOPT_INFILESIZE_LARGE, body_count);
        if (!code) code = set(handle, CURLOPT_READFUNCTION, give_body);
        if (!code) code = set(handle, CURLOPT_READDATA, request);
        if (!code) code = set(handle, CURLOPT_SEEKFUNCTION, seek_body);
        if (!code) code = set(handle, CURLOPT_SEEKDATA, request);
    } else if (!code) {
        code = set(handle, CURLOPT_HTTPGET, 1L);
    }
    if (!code) code = set(handle, CURLOPT_CUSTOMREQUEST, method);
    if (!code) code = set(handle, CURLOPT_HEADERFUNCTION, take_header);
    if (!code) code = set(handle, CURLOPT_HEADERDATA, request);
    if (!code) code = set(handle, CURLOPT_WRITEFUNCTION, take_body);
    if (!code) code = set(handle, CURLOPT_WRITEDATA, request);
    if (!code) code = set(handle, CURLOPT_PRIVATE, request);
    return code;
}

coffer_curl_request *coffer_curl_request_make(const coffer_curl *curl, const char *method,
                                              const char *url, int64_t body_count,
                                              coffer_curl_owner owner) {
    coffer_curl_request *request = calloc(1, sizeof *request);
    if (!request) return NULL;
    request->curl = curl;
    request->owner = owner;
    request->handle = curl->easy_init();
    if (!request->handle || set_rules(request) || set_content(request, method, url, body_count)) {
        coffer_curl_request_free(request);
        return NULL;
    }
    return request;
}

/// Adds a line, which libcurl does not copy.
static int add_line(coffer_curl_request *request, const char *name, const char *separator,
                    const char *value) {
    size_t size = strlen(name) + strlen(separator) + strlen(value) + 1;
    struct curl_slist *line = malloc(sizeof *line);
    char *text = malloc(size);
    if (!line || !text) {
        free(line);
        free(text);
        return 0;
    }
    char *end = stpcpy(stpcpy(text, name), separator);
    memcpy(end, value, strlen(value) + 1);
    *line = (struct curl_slist){.data = text, .next = request->headers};
    request->headers = line;
    return 1;
}

int coffer_curl_request_add_header(coffer_curl_request *request, const char *name,
                                   const char *value) {
    if (strcmp(name, "accept") == 0) request->has_accept = 1;
    if (strcmp(name, "expect") == 0) request->has_expect = 1;
    // libcurl takes a header that is written without a value for one that it must leave out.
    return add_line(request, name, *value ? ": " : ";", value);
}

int coffer_curl_request_set_trust(coffer_curl_request *request, const char *file,
                                  const char *folder) {
    int (*set)(CURL *, int, ...) = request->curl->easy_setopt;
    int code = file ? set(request->handle, CURLOPT_CAINFO, file) : COFFER_CURL_OK;
    return code || !folder ? code : set(request->handle, CURLOPT_CAPATH, folder);
}

static void wipe(char *text) {
    size_t size = strlen(text);
#ifdef __APPLE__
    memset_s(text, size, 0, size);
#else
    explicit_bzero(text, size);
#endif
}

void coffer_curl_request_free(coffer_curl_request *request) {
    if (request->handle) request->curl->easy_cleanup(request->handle);
    while (request->headers) {
        struct curl_slist *line = request->headers;
        request->headers = line->next;
        wipe(line->data);
        free(line->data);
        free(line);
    }
    free(request);
}

// MARK: Requests that are under way

coffer_curl_multi *coffer_curl_multi_make(const coffer_curl *curl, int connection_count) {
    coffer_curl_multi *multi = calloc(1, sizeof *multi);
    if (!multi) return NULL;
    multi->curl = curl;
    multi->handle = curl->multi_init();
    if (!multi->handle
        || curl->multi_setopt(multi->handle, CURLMOPT_MAXCONNECTS, (long)connection_count)) {
        coffer_curl_multi_free(multi);
        return NULL;
    }
    return multi;
}

int coffer_curl_multi_add(coffer_curl_multi *multi, coffer_curl_request *request) {
    // What libcurl would add by itself.
    if ((!request->has_accept && !add_line(request, "Accept", ":", ""))
        || (!request->has_expect && !add_line(request, "Expect", ":", ""))) {
        return COFFER_CURL_OUT_OF_MEMORY;
    }
    int code = multi->curl->easy_setopt(request->handle, CURLOPT_HTTPHEADER, request->headers);
    if (code) return code;
    return multi->curl->multi_add_handle(multi->handle, request->handle)
        ? COFFER_CURL_OUT_OF_MEMORY : COFFER_CURL_OK;
}

void coffer_curl_multi_remove(coffer_curl_multi *multi, coffer_curl_request *request) {
    multi->curl->multi_remove_handle(multi->handle, request->handle);
}

int coffer_curl_multi_perform(coffer_curl_multi *multi) {
    int count = 0;
    return multi->curl->multi_perform(multi->handle, &count) == 0;
}

/// Sends a request again over a new connection if a kept one broke before any answer.
///
/// libcurl does the same where the connection breaks before the body. The server closed it while
/// it was idle:
/// > When an inbound connection is closed prematurely, a client MAY open a new connection and
/// > automatically retransmit an aborted sequence of requests if all of those requests have
/// > idempotent methods.
/// https://www.rfc-editor.org/rfc/rfc9112#section-9.3.1
///
/// - Returns: Whether it is under way. A request over a new connection is not sent again.
static int send_again(coffer_curl_multi *multi, coffer_curl_request *request, int code) {
    const coffer_curl *curl = multi->curl;
    long connection_count = 1;
    if (code != CURLE_SEND_ERROR || request->has_answer) return 0;
    curl->easy_getinfo(request->handle, CURLINFO_NUM_CONNECTS, &connection_count);
    if (connection_count > 0) return 0;
    curl->multi_remove_handle(multi->handle, request->handle);
    request->given_count = 0;
    return curl->easy_setopt(request->handle, CURLOPT_FRESH_CONNECT, 1L) == 0
        && curl->multi_add_handle(multi->handle, request->handle) == 0;
}

void *coffer_curl_multi_next_ended(coffer_curl_multi *multi, int *code) {
    CURLMsg *message;
    int count = 0;
    while ((message = multi->curl->multi_info_read(multi->handle, &count))) {
        coffer_curl_request *request = NULL;
        if (message->msg != CURLMSG_DONE) continue;
        *code = message->data.result;
        multi->curl->easy_getinfo(message->easy, CURLINFO_PRIVATE, &request);
        if (request && !send_again(multi, request, *code)) return request->owner.owner;
    }
    return NULL;
}

int coffer_curl_multi_poll(coffer_curl_multi *multi, int milliseconds) {
    return multi->curl->multi_poll(multi->handle, NULL, 0, milliseconds, NULL) == 0;
}

void coffer_curl_multi_wake(coffer_curl_multi *multi) {
    multi->curl->multi_wakeup(multi->handle);
}

void coffer_curl_multi_free(coffer_curl_multi *multi) {
    if (multi->handle) multi->curl->multi_cleanup(multi->handle);
    free(multi);
}

// MARK: Signals

coffer_curl_pipe_signal coffer_curl_block_pipe_signal(void) {
    coffer_curl_pipe_signal before = {0, 0};
    sigset_t pipe, blocked, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &blocked);
    before.was_blocked = sigismember(&blocked, SIGPIPE) == 1;
    sigpending(&pending);
    before.was_pending = sigismember(&pending, SIGPIPE) == 1;
    return before;
}

void coffer_curl_restore_pipe_signal(coffer_curl_pipe_signal before) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    // libcurl sets SO_NOSIGPIPE on Apple's systems.
#ifndef __APPLE__
    const struct timespec now = {0, 0};
    if (!before.was_pending) sigtimedwait(&pipe, NULL, &now);
#endif
    if (!before.was_blocked) pthread_sigmask(SIG_UNBLOCK, &pipe, NULL);
}
