#include "commit.h"

#ifndef COFFER_COMMIT
#define COFFER_COMMIT ""
#endif

const char *coffer_commit(void) { return COFFER_COMMIT; }
