/* A member of the provider that holds a pool or other state, for commands that ask one thing and
 * end: `baton work`, `baton cron ls`. It has a loop of its own, which runs while a request is
 * waited for. */
#ifndef CLI_WORK_LINK_H
#define CLI_WORK_LINK_H

#include "member/member.h"
#include "options/option.h"

struct work_link {
    uv_loop_t loop;
    uv_timer_t timer;
    struct member *member;
    const char *pool; /* NULL: none */
    bool is_done;
    bool is_closed; /* the member is */
    bool is_asking; /* for a status: that ends a moment after the member */
    int code;
    struct baton_error error;
    struct baton_error failure; /* of the provider, for good: its server refuses the credentials */
};

/* The URL of --provider; the agent of this host if it is not given. */
const char *work_url(const struct options *options);

/* BATON_EINVAL: no other process could have part in a pool there. */
int work_check_url(const char *url, struct baton_error *reterr);

/* BATON_EUNAVAILABLE: no agent is there; BATON_EINVAL names what is wrong with the URL. */
int work_link_open(struct work_link *link, const struct options *options,
                   struct baton_error *reterr);
void work_link_close(struct work_link *link);

/* Ends the wait. As a provider_done_cb, with the link for userdata. */
void work_link_done(void *userdata, int code, const struct baton_error *error);
/* Runs the loop until work_link_done(), SIGINT or SIGTERM, or for `time` (0: without an end), and
 * returns its code, BATON_ECANCELED or BATON_ETIMEDOUT. After these two the member is closed: what
 * was asked has had its callback, and no other comes. `code`: of the call that began it; if it is
 * not 0, it is returned at once. */
int work_link_wait(struct work_link *link, int code, span time, struct baton_error *reterr);
/* Runs the loop for `time`. BATON_ECANCELED: a signal came. */
int work_link_pause(struct work_link *link, span time, struct baton_error *reterr);

#endif
