#ifndef COFFER_LIBFUZZER_H
#define COFFER_LIBFUZZER_H

#include <stddef.h>
#include <stdint.h>

/// Runs libFuzzer, which calls `test` with bytes of its choice until it crashes or time is up.
/// https://llvm.org/docs/LibFuzzer.html#using-libfuzzer-as-a-library
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*test)(const uint8_t *bytes, size_t count));

#endif
