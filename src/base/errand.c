#include "base/errand.h"

#include "base/thread.h"

static void let_go(struct errand *errand)
{
    if (atomic_fetch_sub(&errand->holders, 1) == 1) {
        (void)pthread_mutex_destroy(&errand->turn);
        errand->free(errand);
    }
}

static void on_closed(uv_handle_t *ended)
{
    let_go(ended->data);
}

void errand_leave(struct errand *errand)
{
    (void)pthread_mutex_lock(&errand->turn);
    errand->is_left = true;
    (void)pthread_mutex_unlock(&errand->turn);
    uv_close((uv_handle_t *)&errand->ended, on_closed);
}

static void on_ended(uv_async_t *ended)
{
    struct errand *errand = ended->data;

    errand_leave(errand);
    errand->done(errand); /* the handle, and with it the memory, ends later */
}

static void *thread_main(void *userdata)
{
    struct errand *errand = userdata;

    errand->run(errand);
    (void)pthread_mutex_lock(&errand->turn);
    if (!errand->is_left) {
        (void)uv_async_send(&errand->ended); /* cannot fail */
    }
    (void)pthread_mutex_unlock(&errand->turn);
    let_go(errand);
    return NULL;
}

int errand_begin(struct errand *errand, uv_loop_t *loop)
{
    int code = uv_async_init(loop, &errand->ended, on_ended);

    if (code != 0) {
        errand->free(errand);
        return code;
    }
    errand->ended.data = errand;
    (void)pthread_mutex_init(&errand->turn, NULL); /* cannot fail: no attributes */
    errand->is_left = false;
    errand->holders = 2;
    code = -thread_start_detached(thread_main, errand);
    if (code != 0) {
        errand->holders = 1;
        errand_leave(errand);
    }
    return code;
}
