#include "worker.h"
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

// Without MSG_NOSIGNAL, as on Apple's systems, the socket itself has the option.
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum { descriptor_count = 3 };

/// The memory of a message with descriptors, aligned for its header.
typedef union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(descriptor_count * sizeof(int))];
} ancillary;

int coffer_start_worker(char *const *arguments, int *socket) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -errno;
    for (int end = 0; end < 2; end++) {
        fcntl(ends[end], F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
        int on = 1;
        setsockopt(ends[end], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    }
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int process = nowhere < 0 ? -errno : coffer_start_program(arguments, ends[1], nowhere, nowhere);
    if (nowhere >= 0) close(nowhere);
    close(ends[1]);
    if (process > 0) {
        *socket = ends[0];
    } else {
        close(ends[0]);
    }
    return process;
}

int coffer_is_socket(int descriptor) {
    struct stat facts;
    return fstat(descriptor, &facts) == 0 && S_ISSOCK(facts.st_mode);
}

/// Sends all bytes. Returns 0, or an error number.
static int send_all(int socket, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno;
        bytes += sent;
        count -= (size_t)sent;
    }
    return 0;
}

/// Receives all bytes. Returns 1, 0 at the end of the stream, or an error number, negated.
static int receive_all(int socket, char *bytes, size_t count) {
    while (count > 0) {
        ssize_t received = recv(socket, bytes, count, 0);
        if (received < 0 && errno == EINTR) continue;
        if (received < 0) return -errno;
        if (received == 0) return 0;
        bytes += received;
        count -= (size_t)received;
    }
    return 1;
}

int coffer_send_run(int socket, const void *bytes, uint32_t count, const int descriptors[3]) {
    ancillary control = {0};
    struct iovec head = {&count, sizeof count};
    struct msghdr message = {0};
    message.msg_iov = &head;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptor_count * sizeof(int));
    memcpy(CMSG_DATA(rights), descriptors, descriptor_count * sizeof(int));
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) return errno;
    // Four bytes are sent as a whole: an empty socket has room for them.
    if (sent != sizeof count) return EIO;
    return send_all(socket, bytes, count);
}

int coffer_receive_run(int socket, char **bytes, uint32_t *count, int descriptors[3]) {
    ancillary control = {0};
    struct iovec head = {count, sizeof *count};
    struct msghdr message = {0};
    message.msg_iov = &head;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    int flags = 0;
#ifdef MSG_CMSG_CLOEXEC
    flags = MSG_CMSG_CLOEXEC;
#endif
    ssize_t received;
    do {
        received = recvmsg(socket, &message, flags);
    } while (received < 0 && errno == EINTR);
    if (received < 0) return -errno;
    if (received == 0) return 0;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (received != sizeof *count || !rights || rights->cmsg_type != SCM_RIGHTS ||
        rights->cmsg_len != CMSG_LEN(descriptor_count * sizeof(int))) {
        return -EPROTO;
    }
    memcpy(descriptors, CMSG_DATA(rights), descriptor_count * sizeof(int));
    for (int index = 0; index < descriptor_count; index++) {
        fcntl(descriptors[index], F_SETFD, FD_CLOEXEC);
    }
    *bytes = malloc((size_t)*count + 1);
    int result = *bytes ? receive_all(socket, *bytes, *count) : -ENOMEM;
    if (result == 1) {
        (*bytes)[*count] = 0;
        return 1;
    }
    free(*bytes);
    for (int index = 0; index < descriptor_count; index++) close(descriptors[index]);
    return result == 0 ? -EPROTO : result;
}

int coffer_send_end(int socket, coffer_run_end end) {
    return send_all(socket, (const char *)&end, sizeof end);
}
