/* The worker of a spread run: it computes the steps that the pool gives it. */
#ifndef SOFTBODY_WORKER_H
#define SOFTBODY_WORKER_H

#include <baton/work.h>

/* Steps run on threads of their own, WORKER_SLOTS at a time, and end within milliseconds. Each
 * prints "batch B on NAME attempt N". `name` is borrowed until the handle is closed, by
 * baton_work_close(). Errors as baton_work_open(). */
int worker_open(struct baton_work **ret, struct baton *baton, const char *pool, const char *name,
                struct baton_error *reterr);

enum { WORKER_SLOTS = 2 };

#endif
