// What FMDB takes for granted and Apple's headers declare. Included before its sources.

#ifndef COFFER_BENCH_APPLE_H
#define COFFER_BENCH_APPLE_H

#include <Block.h>
#import <Foundation/Foundation.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define __deprecated_msg(words) __attribute__((deprecated(words)))
#define NS_SWIFT_NAME(name)

// GNUstep's is an object, which FMDB also passes for a pointer to a function.
#undef nil
#define nil NULL

// Only +[FMDatabase FMDBVersion] calls it, from one thread here.
typedef bool dispatch_once_t;
static inline void dispatch_once(dispatch_once_t *once, void (^body)(void)) {
    if (*once) return;
    *once = true;
    body();
}

typedef int32_t SInt32;

#endif
