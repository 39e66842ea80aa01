/* Nodes of one group on one loop of this process, over real sockets; and in their midst one member
 * that is the test itself, which says and reads what it likes. */
#ifndef TESTS_INTEGRATION_RAFT_ONE_LOOP_H
#define TESTS_INTEGRATION_RAFT_ONE_LOOP_H

#include "lib/await.h"
#include "provider/provider.h"
#include "provider/raft/frame.h"
#include "provider/raft/parcels.h"
#include "provider/raft/raft_provider.h"

enum { NODES = 3 };

struct node {
    struct provider *provider; /* NULL: it is closed */
    struct provider_election *election;
    struct lease_cell *cell;
    bool is_closed;
};

extern uv_loop_t loop;
extern char folder[64]; /* for the nodes' data directories */
extern int ports[NODES];
extern struct node nodes[NODES];

int one_loop_set_up(void **state);
int one_loop_tear_down(void **state);

/* n0 to n2, as the election "race" of a cluster or in a group; they are connected, and one leads.
 * mode: "cluster" or "group"; settings: "&key=value…". */
void open_all(const char *mode, const char *settings);
/* With the metadata, or NULL. */
void open_node_with(int number, const char *metadata);
void open_node(int number);
void close_node(int number);
/* For a campaign that the test begins itself. */
void ignore_event(void *userdata, const struct baton_event *event);
/* For a node that is being closed otherwise. */
void on_node_closed(void *node);
/* Each has greeted each on the connection that it dialed, so that both ways are there. */
void await_links(void);
bool one_leads(void);
/* Of raft.counters in the status. */
json_int_t counter(int number, const char *name);

/* ---- The member that is the test ------------------------------------------------------------- */

/* n1 of a group in which n0 is a quorum by itself. */
struct fake {
    int listener;     /* -1: this test has none */
    int fd;           /* the connection that n0 dialed */
    const char *name; /* this and the next one: in the next greeting */
    uint64_t incarnation;
    struct greeting theirs;
    struct frame_scratch scratch;
    struct buffer input;
    struct assembly assembly;
    int parts, heartbeats, messages, descriptions;
    int parts_before_heartbeat; /* of the first one behind a part; -1: none yet */
    bool is_ended;
};
extern struct fake fake;

/* Opens n0, and has its greeting. */
void fake_begin(void);
/* Greets; expected: "n0" on a connection that was dialed here, else "". */
void fake_greet(int fd, const char *expected);
/* Connects to n0, and greets. */
int fake_dial(void);
void fake_write(int fd, const struct buffer *buffer);
/* Reads what is there, without waiting. Always true. */
bool fake_read(int fd);
/* Waits until n0 has refused the content of a frame, for the `refusals`th time, and closes. */
void fake_await_refusal(int fd, json_int_t refusals);

#define ONE_LOOP_TEST(test)                                                                        \
    cmocka_unit_test_setup_teardown(test, one_loop_set_up, one_loop_tear_down)

#endif
