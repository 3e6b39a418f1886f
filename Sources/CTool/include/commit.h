#ifndef COFFER_COMMIT_H
#define COFFER_COMMIT_H

/// The commit that the tool was built from, as its build says in `COFFER_COMMIT`; empty if it does
/// not.
const char *coffer_commit(void);

#endif
