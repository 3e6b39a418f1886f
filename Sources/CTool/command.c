#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/// - Returns: The number of the process, or an error number, negated.
static int start(const char *command, int input, char *const *environment, int output) {
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
    if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (!error && input >= 0) error = posix_spawn_file_actions_adddup2(&actions, input, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!error) {
        char *const arguments[] = {"/bin/sh", "-c", (char *)command, NULL};
        error = posix_spawn(&process, arguments[0], &actions, &attributes, arguments,
                            environment ? environment : environ);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error ? -error : process;
}

int coffer_start_command(const char *command, int input, char *const *environment, int *output) {
    int ends[2];
    if (pipe(ends) != 0) return -errno;
    // A command that had the reading end itself would never learn that nobody reads.
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    int process = start(command, input, environment, ends[1]);
    close(ends[1]);
    if (process > 0) {
        *output = ends[0];
    } else {
        close(ends[0]);
    }
    return process;
}

int coffer_wait_for_command(int process) {
    int status = 0;
    while (waitpid(process, &status, 0) < 0) {
        if (errno != EINTR) return -errno;
    }
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}
