// Named by GNUstep's headers when blocks are on, and missing in GCC's Objective-C runtime.
#include <Block.h>
