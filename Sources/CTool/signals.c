#include "signals.h"

#include <signal.h>
#include <stddef.h>

int coffer_ignores_signal(int number) {
    struct sigaction found;
    return sigaction(number, NULL, &found) == 0 && found.sa_handler == SIG_IGN;
}
