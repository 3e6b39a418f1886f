#define _GNU_SOURCE // posix_spawn_file_actions_addclosefrom_np
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#if defined(__APPLE__)
static const short apart_flags = POSIX_SPAWN_SETSID | POSIX_SPAWN_CLOEXEC_DEFAULT;
#else
static const short apart_flags = POSIX_SPAWN_SETSID;
#endif

/// Closes every descriptor but the standard ones: a secret may be behind one of them. On Apple's
/// systems `apart_flags` does that.
///
/// - Returns: 0, or an error number.
static int close_others(posix_spawn_file_actions_t *actions) {
#if defined(__APPLE__)
    (void)actions;
    return 0;
#elif defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    return posix_spawn_file_actions_addclosefrom_np(actions, 3);
#else
    // Closing what is not open is not an error of the action.
    for (int descriptor = 3; descriptor < 256; descriptor++) {
        int error = posix_spawn_file_actions_addclose(actions, descriptor);
        if (error) return error;
    }
    return 0;
#endif
}

/// - Parameter arguments: The path of the program first.
/// - Parameter error_output: -1 for the caller's own standard error.
/// - Returns: The number of the process, or an error number, negated.
static int start(char *const *arguments, int input, char *const *environment, int is_apart,
                 int output, int error_output) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t process = 0;

    int error = posix_spawn_file_actions_init(&actions);
    if (error) return -error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return -error;
    }
    sigemptyset(&none);
    if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error) {
        short flags = POSIX_SPAWN_SETSIGMASK | (is_apart ? apart_flags : 0);
        error = posix_spawnattr_setflags(&attributes, flags);
    }
    if (!error && input >= 0) error = posix_spawn_file_actions_adddup2(&actions, input, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!error && error_output >= 0) {
        error = posix_spawn_file_actions_adddup2(&actions, error_output, 2);
    }
    if (!error && is_apart) error = close_others(&actions);
    if (!error) {
        error = posix_spawn(&process, arguments[0], &actions, &attributes, arguments, environment);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error ? -error : process;
}

/// Whether a variable is one of the three that name a store or a slot. A command does not inherit
/// them, because they may name another store than the one it runs for.
static int names_store(const char *variable) {
    static const char *const names[] = {"COFFER_PATH=", "COFFER_STORE_ID=", "COFFER_SLOT_ID="};
    for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
        if (strncmp(variable, names[index], strlen(names[index])) == 0) return 1;
    }
    return 0;
}

/// Joins the variables of this process, without those that name a store or a slot, and the given
/// ones.
///
/// - Returns: An array to free, whose texts belong to others; NULL without memory.
static char **own_and(char *const *variables) {
    size_t count = 1;
    for (char **own = environ; own && *own; own++) count++;
    for (char *const *other = variables; *other; other++) count++;
    char **all = calloc(count, sizeof(char *));
    if (!all) return NULL;
    char **next = all;
    for (char **own = environ; own && *own; own++) {
        if (!names_store(*own)) *next++ = *own;
    }
    for (char *const *other = variables; *other; other++) *next++ = *other;
    return all;
}

int coffer_start_command(const char *command, int input, char *const *variables, int is_apart,
                         int *output) {
    int ends[2];
    char **all = is_apart ? NULL : own_and(variables);
    if (!is_apart && !all) return -ENOMEM;
    if (pipe(ends) != 0) {
        free(all);
        return -errno;
    }
    // A command that had the reading end itself would never learn that nobody reads.
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    char *const arguments[] = {"/bin/sh", "-c", (char *)command, NULL};
    int process = start(arguments, input, all ? all : variables, is_apart, ends[1], -1);
    free(all);
    close(ends[1]);
    if (process > 0) {
        *output = ends[0];
    } else {
        close(ends[0]);
    }
    return process;
}

int coffer_start_program(char *const *arguments, int input, int output, int error_output) {
    return start(arguments, input, environ, 1, output, error_output);
}

void coffer_signal_command(int process, int is_apart, int number) {
    // kill(2) takes a negative number as that of a process group, which a session begins with.
    kill(is_apart ? -process : process, number);
}

int coffer_wait_for_command(int process, int is_apart, int milliseconds) {
    int status = 0;
    int step = 1;
    while (1) {
        int ended = waitpid(process, &status, milliseconds < 0 ? 0 : WNOHANG);
        if (ended == process) break;
        if (ended < 0 && errno != EINTR) return -errno;
        if (ended < 0 || milliseconds < 0) continue;
        if (milliseconds == 0) {
            coffer_signal_command(process, is_apart, SIGKILL);
            milliseconds = -1;
            continue;
        }
        if (step > milliseconds) step = milliseconds;
        usleep((useconds_t)step * 1000);
        milliseconds -= step;
        if (step < 50) step *= 2;
    }
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}
