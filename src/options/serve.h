/* What a program that serves until a signal ends it does beside its work. */
#ifndef OPTIONS_SERVE_H
#define OPTIONS_SERVE_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { SERVE_SIGNALS = 3 };

struct serve {
    uv_signal_t signals[SERVE_SIGNALS];
    uv_timer_t alive;
};

/* A peer that is gone and a file that may not grow become ordinary errors. Returns how many files
 * may be open: as many as the hard limit allows. (Service managers set the soft one to 1024
 * because of select(), which is not used here.) */
uint64_t serve_prepare(void);
uint64_t serve_raise_files(void); /* that alone */

/* Hears the first `count` of SIGTERM, SIGINT and SIGHUP, and tells systemd that the loop runs. */
void serve_begin(struct serve *serve, uv_loop_t *loop, size_t count, uv_signal_cb heard,
                 void *userdata);
/* The latter alone: the timer is the caller's to close. */
void serve_alive(uv_timer_t *timer, uv_loop_t *loop);
void serve_end(struct serve *serve); /* {0}, which has not begun: nothing */

#endif
