// SQLCipher as pkg-config finds it, for Swift written by hand on the C API.
#ifndef SQLITE_HAS_CODEC
#define SQLITE_HAS_CODEC 1
#endif
#include <sqlite3.h>
