/* Hosts on a network that delays and loses packets, for `baton bench failover --rtt`.
 *
 * Each host is a network namespace of its own with one TUN device; a thread passes the packets on
 * (delay.h). All of it ends with this process. It needs root, or a kernel that gives users
 * namespaces of their own.
 */
#ifndef CLI_BENCH_NETWORK_H
#define CLI_BENCH_NETWORK_H

#include "base/error.h"
#include "cli/delay.h"

struct bench_network; /* opaque */

struct bench_network_figures {
    uint64_t packets, lost;
    double rtt_p50_ms;  /* measured, by packets of our own; 0: none came back */
    double late_p99_ms; /* packets left so much later than they were due */
};

/* Before any thread was started. The process itself is then at the last host. BATON_EAUTH: the
 * kernel refuses namespaces; BATON_EIO. */
int bench_network_open(struct bench_network **ret, unsigned hosts,
                       const struct delay_settings *settings, struct baton_error *reterr);
void bench_network_close(struct bench_network *network); /* NULL allowed */

/* Of the node at this host: "10.77.0.1:7400" … */
void bench_network_address(unsigned host, char *ret, size_t bytes);
/* Moves the calling process to that host; async-signal-safe. False: it stays. */
bool bench_network_enter(const struct bench_network *network, unsigned host);
/* Packets to and from that host are dropped. */
void bench_network_cut_off(struct bench_network *network, unsigned host, bool on);
void bench_network_figures(struct bench_network *network, struct bench_network_figures *ret);

#endif
