/* Nodes that reach each other through forwarders on loopback, as tunnels, sidecars and port
 * forwards are: what is refused at the dialled address says nothing about the process behind it. */
#include "base/clock.h"
#include "lib/process.h"
#include "provider/group.h"
#include "provider/witness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LEASE_MS = 1000, PAIRS_MAX = 32 };

static struct witnesses witnesses;
static char directory[64];
static char urls[WITNESS_NODES][1024];
static int ports[WITNESS_NODES];   /* where each node listens */
static int tunnels[WITNESS_NODES]; /* where the others dial it */
static pid_t forwarders[WITNESS_NODES];

/* ---- A forwarder ----------------------------------------------------------------------------- */

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr = {htonl(INADDR_LOOPBACK)},
                                .sin_port = htons((uint16_t)port)};
}

/* Connects what was accepted to the node; the two are fds[at] and fds[at + 1]. */
static nfds_t add_pair(struct pollfd *fds, nfds_t count, int accepted, int port)
{
    struct sockaddr_in address = loopback(port);
    int onward = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (count + 2 > 1 + 2 * PAIRS_MAX ||
        connect(onward, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(accepted);
        close(onward);
        return count;
    }
    fds[count] = (struct pollfd){.fd = accepted, .events = POLLIN};
    fds[count + 1] = (struct pollfd){.fd = onward, .events = POLLIN};
    return count + 2;
}

static void pass_on(struct pollfd *from, struct pollfd *to)
{
    char bytes[65536];
    ssize_t got = read(from->fd, bytes, sizeof(bytes));

    if (got <= 0 || send(to->fd, bytes, (size_t)got, MSG_NOSIGNAL) != got) {
        close(from->fd);
        close(to->fd);
        from->fd = to->fd = -1; /* poll() leaves them out */
    }
}

static int forward(void *userdata)
{
    const int *number = userdata;
    struct pollfd fds[1 + 2 * PAIRS_MAX] = {{.events = POLLIN}};
    struct sockaddr_in address = loopback(tunnels[*number]);
    nfds_t count = 1;

    fds[0].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fds[0].fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fds[0].fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fds[0].fd, 16) != 0) {
        return 1;
    }
    for (;;) {
        if (poll(fds, count, -1) < 0 && errno != EINTR) {
            return 1;
        }
        for (nfds_t i = 1; i < count; i++) {
            if (fds[i].fd >= 0 && fds[i].revents) {
                pass_on(&fds[i], &fds[i % 2 ? i + 1 : i - 1]);
            }
        }
        if (fds[0].revents) {
            count = add_pair(fds, count, accept(fds[0].fd, NULL, NULL), ports[*number]);
        }
    }
}

/* ---- The group ------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    process_make_folder(directory, sizeof(directory));
    process_free_ports(ports, WITNESS_NODES);
    process_free_ports(tunnels, WITNESS_NODES);
    for (int i = 0; i < WITNESS_NODES; i++) {
        forwarders[i] = process_fork(forward, &i);
        snprintf(urls[i], sizeof(urls[i]),
                 "raft://127.0.0.1:%d?cluster=test&preset=fast&heartbeat-timeout=%dms&lease=%dms"
                 "&guardian=no&data=%s/n%d&peers=n0@127.0.0.1:%d,n1@127.0.0.1:%d,n2@127.0.0.1:%d",
                 ports[i], LEASE_MS, LEASE_MS, directory, i, tunnels[0], tunnels[1], tunnels[2]);
        witness_start(&witnesses, i, urls[i]);
    }
    return 0;
}

static int tear_down(void **state)
{
    witnesses_end(&witnesses);
    for (int i = 0; i < WITNESS_NODES; i++) {
        process_end(forwarders[i]);
    }
    process_remove_folder(directory);
    return 0;
}

static bool has_led_since(int number, instant since)
{
    const struct witness *witness = witnesses.of[number];
    return witness->seen[witness->count - 1].last_ns > since.ns;
}

static bool another_leads(int leader)
{
    bool found = false;

    for (int i = 0; i < WITNESS_NODES; i++) {
        found |= i != leader && witnesses.of[i]->leads;
    }
    return found;
}

/* The leader still reaches the others by its own dials: it renews its lease, and leads on. */
static void a_dead_tunnel_to_the_leader_deposes_nobody(void **state)
{
    int leader = witnesses_await_leader(&witnesses, 0);
    uint64_t epoch = witnesses.of[leader]->epoch;
    instant later;

    /* All have heard of it, and dialled it, before its first lease is over. */
    later = instant_add(clock_now(), SPAN_MS(LEASE_MS));
    GROUP_AWAIT(has_led_since(leader, later));

    process_end(forwarders[leader]);
    later = instant_add(clock_now(), SPAN_MS(LEASE_MS));
    GROUP_AWAIT(has_led_since(leader, later) || another_leads(leader));

    assert_false(another_leads(leader));
    assert_int_equal(witnesses.of[leader]->epoch, epoch);
    witnesses_check(&witnesses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dead_tunnel_to_the_leader_deposes_nobody, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
