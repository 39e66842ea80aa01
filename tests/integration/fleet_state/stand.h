/* States of one fleet on one loop of this process, each with a member of its own: of memory:, of a
 * group of raft: over real sockets, of a server of Redis, or by an agent that is a group of one. */
#ifndef TESTS_INTEGRATION_FLEET_STATE_STAND_H
#define TESTS_INTEGRATION_FLEET_STATE_STAND_H

#include "base/clock.h"
#include "base/error.h"
#include "cmocka_all.h"
#include "fleet/state/state.h"
#include "lib/await.h"
#include "member/store.h"

enum { PEERS = 3, EVENTS_MAX = 64, TEXT_MAX = 512 };

/* An event, as it was told. */
struct heard {
    enum fleet_change change;
    enum fleet_kind kind;
    char id[FLEET_ID_MAX + 1];
    bool has_before;
    char reason[TEXT_MAX];
};

struct peer {
    struct member *member; /* NULL: it is closed */
    struct fleet_state *state;
    struct fleet_observer observer;
    struct heard heard[EVENTS_MAX]; /* the first ones */
    size_t heard_count;
    bool is_ready, is_closed;
};

extern uv_loop_t loop;
extern struct peer peers[PEERS];

/* "memory", "raft", "redis" or "agent", for all tests of the program; stand_end() after them. */
bool stand_choose(const char *provider);
void stand_end(void);
int stand_set_up(void **state);
int stand_tear_down(void **state);

/* The members of all peers, of which a quorum is up. */
void stand_open_members(void);
/* The fleet "yard" at this peer: begins to load; stand_ready() waits for it too. */
void stand_open(int number);
void stand_ready(int number);
void stand_close(int number);

/* Reads an object of JSON text. */
struct fleet_object *object_of(enum fleet_kind kind, const char *json);

/* What a `done` of a write gets. */
struct written {
    int count, code;
    uint64_t revision;
    char message[TEXT_MAX];
};
void on_written(void *written, int code, uint64_t revision, const struct baton_error *error);

/* Writes and waits; returns the code, and *ret_revision unless it is NULL. */
int put(int number, enum fleet_kind kind, const char *json, uint64_t revision,
        uint64_t *ret_revision);
/* Any bytes under a key of the provider, "yard/…"; text NULL deletes. */
void put_raw(int number, const char *key, const char *text);

/* An event of this change and id that the peer has heard; NULL: none. */
const struct heard *heard_of(int number, enum fleet_change change, const char *id);

#define STAND_TEST(test) cmocka_unit_test_setup_teardown(test, stand_set_up, stand_tear_down)

#endif
