/* Pools in this process: members on one loop, each with a candidate and a worker. What runs is only
 * noted, and every start and end is judged as it happens: an item runs in one place at a time. */
#ifndef TESTS_INTEGRATION_POOL_CREW_H
#define TESTS_INTEGRATION_POOL_CREW_H

#include "cmocka_all.h"
#include "lib/await.h"
#include "pool/client.h"
#include "pool/pool.h"
#include "pool/submit.h"
#include "pool/wait.h"

enum { CREW_MAX = 8, CREW_ITEMS_MAX = 1024, CREW_SLOTS = 8 };

/* An item, as all workers of the crew have it. */
struct task {
    char id[WORK_ID_MAX];
    int runs_on; /* number of the hand; -1: it does not run */
    uint64_t epoch;
    uint32_t attempt;
    int starts, halts, completions;
    int completed_by; /* a hand; -1: nobody, or it died: perhaps before the leader knew */
    int completed_in; /* the number of its session */
    bool is_service;
    instant halt_by;     /* of the latest on_halt, */
    span lease_left;     /* when that came, */
    instant lease_end;   /* which was then */
    char checkpoint[64]; /* with which it was started last; "": none */
};

/* A process's part. */
struct hand {
    int number;
    struct member *member;
    struct pool *pool; /* NULL: it is closed */
    bool ends_jobs;    /* a job that was started ends by itself soon */
    bool fails_jobs;   /* without success */
    bool ignores_halts;
    bool is_ready; /* it leads, and places items */
    int sessions;  /* that its worker has had */
    int gone;      /* workers whose sessions ended under its leadership */
    bool is_closed;
    bool is_member_closed;
    int left;                            /* the code of pool_leave(); 1: it has not come */
    char error[BATON_ERROR_MESSAGE_MAX]; /* of the latest POOL_ERROR */
};

extern uv_loop_t crew_loop;
extern struct hand crew[CREW_MAX];
extern struct task crew_tasks[CREW_ITEMS_MAX];
extern size_t crew_task_count;

/* The provider of all tests: "memory", "redis" or "agent", which is a group of one node. False: it
 * is none of them. */
bool crew_choose(const char *provider);
extern pid_t crew_server; /* of all tests; 0: the provider has none */
extern span crew_worker_lease;
int crew_set_up(void **state);
int crew_tear_down(void **state);

/* A member "hN" of the crew's provider, and the pool "pool" as a candidate if it `leads`, and as
 * worker "wN" if it `works`. */
void crew_open(int number, bool leads, bool works);
void crew_open_member(int number);
/* The end of a process as the group sees it when it is proved: nothing of it runs any more. */
void crew_kill(int number);
/* The number of the hand that leads and is ready; -1: none does. */
int crew_leader(void);

struct task *crew_task(const char *id); /* NULL: it has never run */
size_t crew_completed(void);
bool crew_runs(const char *id);
/* Ends a copy that runs, with this outcome. */
void crew_end(struct task *task, bool is_success);

/* Asks the leader of the election to hand over, as an operator does: by the agent, if that is the
 * provider; else false. */
bool crew_pass(const char *election);

/* A provider_done_cb: its userdata is the int for the code. */
void crew_on_done(void *userdata, int code, const struct baton_error *error);

/* Submits by a hand's member, waits until it is stored, and returns the code. `items`: JSON. */
int crew_submit(int number, const char *name, const char *items);
/* "[{"body":…}, …]" of `count` jobs, or services, to be freed. */
char *crew_items(size_t count, const char *members);

#define CREW_AWAIT(condition) AWAIT_ON(crew_loop, condition)
#define CREW_TEST(test)       cmocka_unit_test_setup_teardown(test, crew_set_up, crew_tear_down)

#endif
