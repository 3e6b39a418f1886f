#ifndef COFFER_SIGNALS_H
#define COFFER_SIGNALS_H

/// Whether the process ignores a signal: 1 or 0. Swift does not see `SIG_IGN` everywhere.
int coffer_ignores_signal(int number);

#endif
