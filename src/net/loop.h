/* The start of a loop of libuv. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <uv.h>

/* uv_loop_init(), without its one way to end the process: the first loop of a process needs a pipe,
 * for signals, and libuv calls abort() where there is none. Returns 0 or libuv's error; then the
 * loop must not be used. */
int loop_init(uv_loop_t *ret);

#endif
