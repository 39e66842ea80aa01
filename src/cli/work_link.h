/* A member of the provider that holds a pool, for commands that ask one thing and end: `baton
 * work`. It has a loop of its own, which runs while a request is waited for. */
#ifndef CLI_WORK_LINK_H
#define CLI_WORK_LINK_H

#include "member/member.h"
#include "options/option.h"

struct work_link {
    uv_loop_t loop;
    uv_timer_t timer;
    struct member *member;
    const char *pool;
    bool is_done, is_late;
    int code;
    struct baton_error error;
};

/* The URL of --provider; the agent of this host if it is not given. */
const char *work_url(const struct options *options);

int work_link_open(struct work_link *link, const struct options *options,
                   struct baton_error *reterr);
void work_link_close(struct work_link *link);

/* Ends the wait. As a provider_done_cb, with the link for userdata. */
void work_link_done(void *userdata, int code, const struct baton_error *error);
/* Runs the loop until work_link_done(), SIGINT or SIGTERM, or for `time` (0: without an end), and
 * returns its code, BATON_ECANCELED or BATON_ETIMEDOUT. `code`: of the call that began it; if it is
 * not 0, it is returned at once. */
int work_link_wait(struct work_link *link, int code, span time, struct baton_error *reterr);

#endif
