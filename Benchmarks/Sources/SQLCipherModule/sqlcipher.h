// SQLCipher as pkg-config finds it, under the name by which SQLite.swift imports it.
#ifndef SQLITE_HAS_CODEC
#define SQLITE_HAS_CODEC 1
#endif
#include <sqlite3.h>
