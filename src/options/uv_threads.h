/* The threads of libuv's pool, which it starts with the first work that is queued; if it cannot, it
 * ends the process by abort(). */
#ifndef OPTIONS_UV_THREADS_H
#define OPTIONS_UV_THREADS_H

#include "base/error.h"

#include <uv.h>

enum { UV_THREADS_MAX = 64 };

/* Starts so many, once in a process, before any work and other threads. BATON_EUNAVAILABLE: no more
 * can be started, and what to raise. */
int uv_threads_start(uv_loop_t *loop, int count, struct baton_error *reterr);

#endif
