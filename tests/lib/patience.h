/* How long a test waits for an event before it fails: on a machine of two cores that compiles
 * beside a dozen of tests, too. It ends a hang and measures nothing. */
#ifndef TESTS_LIB_PATIENCE_H
#define TESTS_LIB_PATIENCE_H

enum { PATIENCE_S = 240, PATIENCE_MS = 1000 * PATIENCE_S };

#endif
