/* Which worker has which subscription: from today's assignments to the next ones. Pure.
 *
 *   subscriptions ─┐   work/placement.h        rule of two        for each worker its next lists
 *   workers       ─┼──▶ where each should be ──▶ what may be ──▶  `subscriptions` and `leaving`;
 *   today's lists ─┘                             given now        for each without a worker, why
 *
 * The rule of two: no two online workers have a subscription at once. So a move has two steps, each
 * of them an answer of its own:
 *
 *            worker A                     worker B
 *   before   subscriptions: s             —
 *   step 1   leaving: s                   —             A is to let s go
 *            (A is in sync: A's report shows exactly its list; or A is offline)
 *   step 2   —                            subscriptions: s
 *
 * In between its place at B is kept, if the caller says where it was headed for. If B dies, a
 * worker A that gets nothing new (it is draining) takes s back.
 *
 * Of an offline worker everything is free at once. Its list keeps what no other worker has room
 * for: if it comes back, it goes on at once, and its cameras never stopped.
 *
 * Subscriptions with the same camera are at one worker, which opens the camera once. If no worker
 * has room for all of them, they are divided, first in halves.
 *
 * Of workers with equal load, a new subscription goes to one whose list has its model today.
 *
 * Nothing moves without a need but for balance, and only if the options say so. The load of a
 * worker is the greater of two: how much of its room is taken, and what it reports (load.h). A
 * move for balance must help even if each subscription costs its new worker as much as it cost, on
 * average, the old one; and a worker whose reports do not show its present list yet gives only
 * because of its room. So neither noise nor a late report moves a camera.
 */
#ifndef FLEET_PLAN_PLAN_H
#define FLEET_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All texts and lists are borrowed during the call. */
struct plan_worker {
    const char *id;
    const char *labels;         /* different words, separated by spaces; NULL: none */
    uint32_t subscriptions_max; /* 0: that of the options */
    uint32_t other_permille;    /* load that its subscriptions do not cause (load.h) */
    bool is_settled;            /* its reports show the load of its present list (load.h) */
    bool is_online;
    bool is_cordoned;            /* keeps what it has, and gets nothing new */
    bool is_draining;            /* gets nothing new, and gives away what has room elsewhere */
    bool is_deleted;             /* gets nothing new, and gives away all, once it has let it go */
    bool is_in_sync;             /* has confirmed its present list: what was leaving has left */
    const char *const *assigned; /* its list `subscriptions` */
    size_t assigned_count;
    const char *const *leaving;
    size_t leaving_count;
};

struct plan_subscription {
    const char *id;       /* no other one has it */
    const char *camera;   /* the same text for the same stream: its URL; NULL: alone */
    const char *model;    /* the same text for the same model; NULL: none */
    const char *needs;    /* labels that its worker must have; NULL: none */
    const char *withheld; /* why no worker is to have it: "paused"; NULL: one is to have it */
    /* A person moves it, and all of its camera, to the worker of this id; NULL: nobody does. Has no
     * effect if that worker takes nothing new, lacks what they need, or has no room. */
    const char *wanted;
    /* The worker of this id was to get it by the latest answer, as soon as another one has let it
     * go: plan_unplaced.target. Its place there is kept, so the second step of a move is what the
     * first one was made for. NULL: none, or forgotten; then it is placed anew. */
    const char *headed;
    int32_t priority; /* if there is no room for all, higher ones displace lower ones */
};

struct plan_options {
    uint32_t subscriptions_max; /* of workers without a limit of their own */
    bool balances;
    uint32_t hysteresis_permille; /* the difference of two loads that causes no move */
};

struct plan_problem {
    const struct plan_worker *workers;
    size_t worker_count; /* at most INT32_MAX, as subscription_count */
    const struct plan_subscription *subscriptions;
    size_t subscription_count;
    struct plan_options options;
};

/* Of one worker. The ids are those of the problem. What stays keeps its order. */
struct plan_list {
    bool is_changed;
    bool gives; /* it gets a subscription that it does not have */
    const char *const *subscriptions;
    size_t count;
    const char *const *leaving;
    size_t leaving_count;
};

/* It has no worker, with the reason as placement_reason_text() has it, or `withheld`. Or it has a
 * place at the worker `target`, but another one, `leaves`, has not let it go yet: reason NULL. */
struct plan_unplaced {
    size_t subscription; /* its index; so are these: */
    const char *reason;
    size_t target, leaves;
};

struct plan_answer {
    struct plan_list *lists;        /* of each worker, in the order of the workers */
    struct plan_unplaced *unplaced; /* in the order of the subscriptions */
    size_t unplaced_count;
    size_t moved;     /* that leave an online worker, with this answer, for another one */
    const char **ids; /* memory of the lists */
};

/* BATON_ENOMEM: the answer is unchanged. Free it by plan_answer_fini(). */
int plan_solve(const struct plan_problem *problem, struct plan_answer *ret);
void plan_answer_fini(struct plan_answer *answer);

/* Whether each word of `needs` is one of `labels`; words are separated by blanks, NULL is none. */
bool plan_has_labels(const char *labels, const char *needs);

#endif
