/* Masters of one fleet on one loop, each with a member and a state of its own, of memory: or Redis.
 * The workers are a stand-in for the table: the test says what their owners would publish; each is
 * claimed (fleet/workers/claim.h) by the peer that owns it, and gets the lists that this one knows.
 * Time can be put forward.
 *
 * Whatever a test does, the yard watches what workers may run: each list that was stored since the
 * worker confirmed one. Two online workers that may run the same subscription fail the test.
 */
#ifndef TESTS_INTEGRATION_FLEET_MASTER_YARD_H
#define TESTS_INTEGRATION_FLEET_MASTER_YARD_H

#include "base/clock.h"
#include "base/error.h"
#include "cmocka_all.h"
#include "fleet/master/master.h"
#include "fleet/workers/discovery.h"
#include "lib/patience.h"

enum { PEERS = 3, YARD_WORKERS = 6, EVENTS_MAX = 256 };

struct peer {
    const char *name;
    struct member *member; /* NULL: it is closed */
    struct fleet_state *state;
    struct worker_table *table;
    struct master *master;
    bool is_leaving, has_left; /* its master */
    bool is_closed;
};

extern uv_loop_t loop;
extern struct peer peers[PEERS];
extern char yard_events[EVENTS_MAX][32]; /* names, of all masters */
extern size_t yard_event_count;
extern int yard_put_fails;        /* so many writes fail from now on */
extern int yard_list_fails;       /* so many lists of the processes */
extern int yard_state_list_fails; /* so many lists of the state's keys */
extern bool yard_marks_fail;      /* owners cannot write theirs */
extern bool yard_puts_linger;     /* writes reach the provider some turns of the loop later */

/* "memory" or "redis", once. */
bool yard_choose(const char *provider);
void yard_end(void);
int yard_set_up(void **state);
int yard_tear_down(void **state);

/* A process of the fleet; `urls`: workers to discover, NULL-terminated, or NULL. */
void yard_open(int number, const char *const *urls);
void yard_open_as(int number, const char *name, const char *const *urls);
void yard_close(int number);
/* Only its master begins to leave; yard_close() is to follow. */
void yard_leave(int number);
/* What others write reaches the peer so many turns of the yard's clock (2 ms) late. */
void yard_lag(int number, size_t lag);
/* Writes of workers' lists by the peer do not reach the provider; -1: nobody's are kept. */
void yard_keep(int number);
const char *yard_kept(void); /* the first one's key; "": none */
/* The one that leads; -1: none. */
int yard_leader(void);
/* Puts the clock forward, and lets masters look at it. */
void yard_pass(span time);
bool yard_has_event(const char *name);

/* Writes at the revision that is there, and waits. By peer 0 unless that is closed. */
void yard_put(const char *key, const char *json); /* NULL: deletes */
void yard_display(const char *id);
void yard_subscribe(const char *display, const char *camera); /* makes what it refers to */
void yard_unsubscribe(const char *display, const char *camera);
void yard_worker(const char *id, const char *more); /* registered; more fields: ",\"…\":…" */

/* What the owner of a worker publishes. */
void yard_hear(const char *id, bool is_online);
void yard_report(const char *id, double cpu);
/* It confirms its list as it is; `always`: from now on at once. */
void yard_confirm(const char *id);
void yard_confirm_always(bool always);

/* What is known at the open peer of the lowest number. */
struct fleet_state *yard_state(void);
const char *yard_worker_of(const char *subscription); /* "": none */
bool yard_is_leaving(const char *worker, const char *subscription);
size_t yard_assigned(const char *worker);
const char *yard_reason(const char *subscription);         /* "": it is not unplaced */
const char *yard_owner(const char *worker, size_t number); /* "": none */

/* What discovery finds from now on, of all masters; discovery_open() refuses a URL "bad". */
void yard_find(const struct discovered *found, size_t count, bool is_whole);

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        instant until_ = instant_add(yard_real_now(), SPAN_S(PATIENCE_S));                         \
        while (!(condition)) {                                                                     \
            if (!instant_before(yard_real_now(), until_)) {                                        \
                fail_msg("not in time: %s", #condition);                                           \
            }                                                                                      \
            (void)uv_run(&loop, UV_RUN_ONCE);                                                      \
        }                                                                                          \
    } while (0)

instant yard_real_now(void);
/* Until no master has anything to do for a while. */
void yard_settle(void);

#endif
