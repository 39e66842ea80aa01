/* The usage of this process's living children, one by one, for machines without a cgroup. A child
 * that has been waited for counts in RUSAGE_CHILDREN instead.
 *
 * All files are read below `root` ("" on a real machine), so that tests can show other machines.
 */
#ifndef DETECTOR_DESCENT_H
#define DETECTOR_DESCENT_H

#include <stdint.h>

struct descent {
    uint64_t cpu_ns;
    uint64_t memory_bytes; /* their own only: what they share with us would count twice */
};

/* Never fails: what cannot be read counts as nothing. */
struct descent descent_measure(const char *root);

#endif
