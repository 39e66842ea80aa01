/* Work that may block for long, as the look-up of a name does, in a thread of its own. Nobody has
 * to wait for its end: a loop that ends leaves it behind, and so does a process. (Of the threads of
 * libuv's pool there are few, and a process that exits waits for them.)
 *
 *   errand_begin() ──▶ run, in the thread ──▶ done, on the loop ──▶ free
 *        └──errand_leave()──▶ the thread comes to its end ────────▶ free
 */
#ifndef BASE_ERRAND_H
#define BASE_ERRAND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

/* The first member of what belongs to it. */
struct errand {
    void (*run)(struct errand *errand); /* uses the errand's memory only */
    void (*done)(struct errand *errand);
    void (*free)(struct errand *errand); /* on the loop or in the thread, whichever is last */
    /* Its own: */
    uv_async_t ended;
    pthread_mutex_t turn; /* for `is_left`, and `ended` while that is false */
    bool is_left;
    atomic_int holders; /* of the memory: the thread and the loop */
};

/* Takes the memory, also on failure. The loop runs until `done`, as for a request of libuv's.
 * Fails by libuv's codes, and then without `done`. */
int errand_begin(struct errand *errand, uv_loop_t *loop);

/* `done` is not called any more; the memory is not the caller's any more. */
void errand_leave(struct errand *errand);

#endif
