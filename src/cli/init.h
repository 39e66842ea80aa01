/* A process 1 of our own, for `baton` as the first program of a container.
 *
 *   process 1 ──fork──▶ elector (baton node, run, once) ─▶ guardian, supervisor, CMD
 *      │ forwards signals, takes the exit statuses of orphans, passes the elector's own on
 *
 * The kernel kills every process of a PID namespace together with its process 1. If the elector
 * were that process, its guardian would die with it and certify nothing. So process 1 does so
 * little that nothing but the end of the namespace ends it: it has one thread, allocates no memory,
 * and cannot be killed from inside. It outlives the elector until the guardian has finished.
 */
#ifndef CLI_INIT_H
#define CLI_INIT_H

#include "base/error.h"
#include "options/option.h"

/* Splits this process in two if --init says so, and returns in the elector, or in the undivided
 * process. Call it before there are threads, children or files that only one may have. BATON_EIO:
 * the system refused. */
int init_enter(const struct options *options, struct baton_error *reterr);

#endif
