#include "cli/bench_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PACKET_MAX = 65536,
    PING_PORT = 7,
    NODE_PORT = 7400,
    PINGS = 100,
    PING_LIMIT_MS = 200,
    LATE_KEPT = 65536, /* of the latest packets */
    STOP_LOOK_MS = 50,
    NETWORK = 0x0a4d0000, /* 10.77.0.0 */
};

struct host {
    int space; /* its network namespace */
    int tun;
    int ping;
    atomic_bool is_cut_off;
};

struct bench_network {
    struct host hosts[DELAY_HOSTS_MAX];
    unsigned count;
    pthread_t thread;
    bool has_thread;
    atomic_bool is_ending;
    struct delay delay; /* the thread's own while it runs */
    atomic_uint_fast64_t packets, lost;
    atomic_uint late_count;
    atomic_uint_least32_t late_us[LATE_KEPT];
};

/* ---- The hosts ------------------------------------------------------------------------------- */

static struct sockaddr_in address_of(unsigned host, uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(NETWORK + host + 1)};
}

void bench_network_address(unsigned host, char *ret, size_t bytes)
{
    struct sockaddr_in address = address_of(host, NODE_PORT);
    char text[INET_ADDRSTRLEN] = "";

    (void)inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
    (void)snprintf(ret, bytes, "%s:%d", text, NODE_PORT);
}

static int write_map(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t written = fd >= 0 ? write(fd, text, strlen(text)) : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    return written == (ssize_t)strlen(text) ? 0 : -1;
}

/* So that a user who is not root may make networks. */
static int become_root_of_a_space(void)
{
    char uid[64], gid[64];

    (void)snprintf(uid, sizeof(uid), "0 %u 1", (unsigned)geteuid());
    (void)snprintf(gid, sizeof(gid), "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER) == 0 && write_map("/proc/self/uid_map", uid) == 0 &&
                   write_map("/proc/self/setgroups", "deny") == 0 &&
                   write_map("/proc/self/gid_map", gid) == 0
               ? 0
               : -1;
}

static int raise_device(int fd, const char *name, const struct sockaddr_in *address)
{
    struct ifreq request = {0};
    struct sockaddr_in mask = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xffffff00)};

    (void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (address) {
        memcpy(&request.ifr_addr, address, sizeof(*address));
        if (ioctl(fd, SIOCSIFADDR, &request) != 0) {
            return -1;
        }
        memcpy(&request.ifr_netmask, &mask, sizeof(mask));
        if (ioctl(fd, SIOCSIFNETMASK, &request) != 0) {
            return -1;
        }
    }
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    return ioctl(fd, SIOCSIFFLAGS, &request);
}

static int open_ping(unsigned host)
{
    struct sockaddr_in address = address_of(host, PING_PORT);
    struct timeval limit = {.tv_usec = PING_LIMIT_MS * 1000L};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
                    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Leaves the process at this host. */
static int make_host(struct host *host, unsigned number)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "wire"};
    struct sockaddr_in address = address_of(number, 0);
    int control, rc;

    if (unshare(CLONE_NEWNET) != 0) {
        return -1;
    }
    host->space = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    host->tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    rc = host->space < 0 || host->tun < 0 || control < 0 ||
                 ioctl(host->tun, TUNSETIFF, &request) != 0 ||
                 raise_device(control, "lo", NULL) != 0 ||
                 raise_device(control, "wire", &address) != 0
             ? -1
             : 0;
    if (control >= 0) {
        (void)close(control);
    }
    host->ping = rc == 0 ? open_ping(number) : -1;
    return host->ping >= 0 ? 0 : -1;
}

bool bench_network_enter(const struct bench_network *network, unsigned host)
{
    return setns(network->hosts[host].space, CLONE_NEWNET) == 0;
}

void bench_network_cut_off(struct bench_network *network, unsigned host, bool on)
{
    atomic_store(&network->hosts[host].is_cut_off, on);
}

/* ---- The wire -------------------------------------------------------------------------------- */

/* The destination of a packet of IPv4; the network's count: none of its hosts. */
static unsigned destination(const struct bench_network *network, const uint8_t *packet,
                            size_t bytes)
{
    uint32_t to;

    if (bytes < 20 || packet[0] >> 4 != 4) {
        return network->count;
    }
    memcpy(&to, packet + 16, sizeof(to));
    to = ntohl(to) - NETWORK - 1;
    return to < network->count ? to : network->count;
}

static void take_packets(struct bench_network *network, unsigned from)
{
    static _Thread_local uint8_t packet[PACKET_MAX];
    ssize_t bytes;

    while ((bytes = read(network->hosts[from].tun, packet, sizeof(packet))) > 0) {
        unsigned to = destination(network, packet, (size_t)bytes);
        if (to < network->count && !atomic_load(&network->hosts[from].is_cut_off) &&
            !atomic_load(&network->hosts[to].is_cut_off)) {
            delay_put(&network->delay, from, to, packet, (size_t)bytes, clock_now());
        }
    }
    atomic_store(&network->packets, network->delay.taken);
    atomic_store(&network->lost, network->delay.lost);
}

static void pass_on_what_is_due(struct bench_network *network)
{
    struct delayed *packet;

    while ((packet = delay_take(&network->delay, clock_now()))) {
        int64_t late_ns = instant_since(clock_now(), packet->due).ns;
        unsigned at = atomic_load(&network->late_count);
        atomic_store(&network->late_us[at % LATE_KEPT], (uint32_t)(late_ns / 1000));
        atomic_store(&network->late_count, at + 1);
        if (!atomic_load(&network->hosts[packet->to].is_cut_off)) {
            (void)!write(network->hosts[packet->to].tun, packet->data, packet->bytes);
        }
        free(packet);
    }
}

static void *carry(void *argument)
{
    struct bench_network *network = argument;
    struct pollfd fds[DELAY_HOSTS_MAX];

    /* A wire waits for no processor. Without the privilege for it the figures show what it waited.
     */
    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO,
                                &(struct sched_param){.sched_priority = 1});
    (void)prctl(PR_SET_TIMERSLACK, 1);
    for (unsigned i = 0; i < network->count; i++) {
        fds[i] = (struct pollfd){.fd = network->hosts[i].tun, .events = POLLIN};
    }
    while (!atomic_load(&network->is_ending)) {
        span left = instant_since(delay_next(&network->delay), clock_now());
        struct timespec wait = {.tv_nsec = STOP_LOOK_MS * 1000000L};
        if (left.ns < wait.tv_nsec) {
            wait.tv_nsec = left.ns > 0 ? left.ns : 0;
        }
        int ready = ppoll(fds, network->count, &wait, NULL);
        for (unsigned i = 0; ready > 0 && i < network->count; i++) {
            if (fds[i].revents) {
                take_packets(network, i);
            }
        }
        pass_on_what_is_due(network);
    }
    return NULL;
}

/* ---- Figures --------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double first = *(const double *)a;
    double second = *(const double *)b;
    return (first > second) - (first < second);
}

/* From the first host to the second and back; below 0: it was lost. */
static double ping_ms(const struct bench_network *network, unsigned number)
{
    struct sockaddr_in to = address_of(1, PING_PORT), back = address_of(0, PING_PORT);
    instant sent = clock_now();
    unsigned got = 0;

    (void)sendto(network->hosts[0].ping, &number, sizeof(number), 0, (struct sockaddr *)&to,
                 sizeof(to));
    if (recv(network->hosts[1].ping, &got, sizeof(got), 0) != sizeof(got) ||
        sendto(network->hosts[1].ping, &got, sizeof(got), 0, (struct sockaddr *)&back,
               sizeof(back)) != sizeof(got) ||
        recv(network->hosts[0].ping, &got, sizeof(got), 0) != sizeof(got) || got != number) {
        return -1;
    }
    return (double)instant_since(clock_now(), sent).ns / 1e6;
}

void bench_network_figures(struct bench_network *network, struct bench_network_figures *ret)
{
    double *late = calloc(LATE_KEPT, sizeof(*late));
    unsigned kept = atomic_load(&network->late_count);
    double rtt[PINGS];
    size_t count = 0;

    *ret = (struct bench_network_figures){.packets = atomic_load(&network->packets),
                                          .lost = atomic_load(&network->lost)};
    kept = kept < LATE_KEPT ? kept : LATE_KEPT;
    for (unsigned i = 0; late && i < kept; i++) {
        late[i] = (double)atomic_load(&network->late_us[i]) / 1e3;
    }
    if (late && kept > 0) {
        qsort(late, kept, sizeof(*late), by_size);
        ret->late_p99_ms = late[kept - 1 - kept / 100];
    }
    free(late);
    for (unsigned i = 0; network->count > 1 && i < PINGS; i++) {
        double ms = ping_ms(network, i + 1);
        if (ms >= 0) {
            rtt[count++] = ms;
        }
    }
    if (count > 0) {
        qsort(rtt, count, sizeof(rtt[0]), by_size);
        ret->rtt_p50_ms = rtt[count / 2];
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

int bench_network_open(struct bench_network **ret, unsigned hosts,
                       const struct delay_settings *settings, struct baton_error *reterr)
{
    struct bench_network *network = calloc(1, sizeof(*network));
    int rc = network ? 0 : -1;

    if (network) {
        delay_init(&network->delay, settings);
        for (unsigned i = 0; i < DELAY_HOSTS_MAX; i++) {
            network->hosts[i].space = network->hosts[i].tun = network->hosts[i].ping = -1;
        }
    }
    if (rc == 0 && geteuid() != 0) {
        rc = become_root_of_a_space();
    }
    while (rc == 0 && network->count < hosts) {
        rc = make_host(&network->hosts[network->count], network->count);
        network->count += rc == 0;
    }
    if (rc == 0 && pthread_create(&network->thread, NULL, carry, network) == 0) {
        network->has_thread = true;
        *ret = network;
        return BATON_OK;
    }
    rc = error_set(reterr, BATON_EAUTH,
                   "--rtt: a network namespace with a TUN device: %s; run as root, or allow users "
                   "namespaces (sysctl user.max_user_namespaces) and /dev/net/tun",
                   strerror(errno));
    bench_network_close(network);
    return rc;
}

static void close_one(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

void bench_network_close(struct bench_network *network)
{
    if (!network) {
        return;
    }
    atomic_store(&network->is_ending, true);
    if (network->has_thread) {
        (void)pthread_join(network->thread, NULL);
    }
    for (unsigned i = 0; i < DELAY_HOSTS_MAX; i++) {
        close_one(network->hosts[i].tun);
        close_one(network->hosts[i].ping);
        close_one(network->hosts[i].space);
    }
    delay_fini(&network->delay);
    free(network);
}
