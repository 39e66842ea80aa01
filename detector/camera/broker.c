#include "detector/camera/broker.h"

#include "detector/camera/dial.h"
#include "detector/camera/tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    DNS_PORT = 53,
    DATAGRAM_MAX = 1 << 16,
    FAREWELL_MS = 400,
    STREAM_DIALS_MAX = 16,          /* to the addresses of a name, and along redirects */
    DIALLED_MAX = STREAM_DIALS_MAX, /* each of them may send by UDP */
};

/* What baton-camera is shown; the broker does not read it there. */
static struct findings {
    bool has_dialled;
    atomic_bool has_tunnel;
    struct baton_error fault;
} nothing;

static struct {
    const struct camera_config *config;
    int memory;                /* of baton-camera, to be read */
    int bell[2];               /* baton-camera writes into the second */
    struct findings *findings; /* in memory of both */
    struct __res_state names;  /* of /etc/resolv.conf */
    struct tunnel tunnel;
    unsigned dials;                       /* of streams */
    struct in6_addr dialled[DIALLED_MAX]; /* the last few hosts, without their ports */
    unsigned dialled_count;
} broker = {.memory = -1, .bell = {-1, -1}, .findings = &nothing, .tunnel = TUNNEL_NONE};

struct destination {
    struct sockaddr_storage address;
    socklen_t bytes;
    bool has_host; /* it is an address of the internet; else the two below are 0 */
    struct in6_addr host;
    uint16_t port;
};

static bool read_memory(void *ret, uint64_t from, size_t count)
{
    return pread(broker.memory, ret, count, (off_t)from) == (ssize_t)count;
}

static int read_destination(struct destination *ret, uint64_t from, uint64_t bytes)
{
    *ret = (struct destination){.bytes = (socklen_t)bytes};
    if (ret->bytes < sizeof(ret->address.ss_family) || ret->bytes > sizeof(ret->address)) {
        return -EINVAL;
    }
    if (!read_memory(&ret->address, from, ret->bytes)) {
        return -EFAULT;
    }
    ret->has_host = dial_host(&ret->host, (const struct sockaddr *)&ret->address, ret->bytes);
    if (ret->has_host) { /* the port is at one place in both families */
        ret->port = ntohs(((const struct sockaddr_in *)&ret->address)->sin_port);
    }
    return 0;
}

static bool is_same_host(const struct destination *to, const struct in6_addr *host)
{
    return to->has_host && memcmp(&to->host, host, sizeof(*host)) == 0;
}

/* Some of them are link-local. */
static bool is_nameserver(const struct destination *to)
{
    bool is_one = false;

    for (int i = 0; i < broker.names.nscount; i++) {
        const struct sockaddr_in6 *v6 = broker.names._u._ext.nsaddrs[i];
        const void *known = v6 != NULL ? (const void *)v6 : &broker.names.nsaddr_list[i];
        struct in6_addr host;
        is_one = is_one || (dial_host(&host, known, sizeof(*v6)) && is_same_host(to, &host));
    }
    return is_one && to->port == DNS_PORT;
}

static bool was_dialled(const struct destination *to)
{
    bool was = false;

    for (unsigned i = 0; i < DIALLED_MAX && i < broker.dialled_count; i++) {
        was = was || is_same_host(to, &broker.dialled[i]);
    }
    return was;
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t bytes = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
}

static int open_tunnel(int fd)
{
    struct baton_error fault = {0};
    int rc = tunnel_open(&broker.tunnel, broker.config, fd, &fault);

    broker.findings->fault = fault;
    atomic_store(&broker.findings->has_tunnel, rc == 0);
    return rc;
}

/* The C library connects a datagram socket, too, to learn which address of a camera is reachable,
 * and takes the connection away with AF_UNSPEC. */
static int64_t connect_for(const struct seccomp_data *call)
{
    int fd = (int)call->args[0];
    const struct url *url = &broker.config->parts;
    struct destination to;
    const struct sockaddr *address = (const struct sockaddr *)&to.address;
    int rc = read_destination(&to, call->args[1], call->args[2]);

    if (rc != 0) {
        return rc;
    }
    if (dial_is_allowed(address, to.bytes) && to.port == url->port) {
        if (is_stream(fd)) {
            if (strncmp(url->scheme, "rtsp", 4) == 0 && ++broker.dials > STREAM_DIALS_MAX) {
                (void)error_set(&broker.findings->fault, BATON_EPROTO,
                                "the camera redirects again and again");
                return -ELOOP;
            }
            broker.findings->has_dialled = true;
            broker.dialled[broker.dialled_count++ % DIALLED_MAX] = to.host;
            if (strcmp(url->scheme, "rtsps") == 0) {
                return open_tunnel(fd);
            }
        }
    } else if (address->sa_family != AF_UNSPEC && !is_nameserver(&to)) {
        return -EACCES;
    }
    return connect(fd, address, to.bytes) == 0 ? 0 : -errno;
}

/* The C library asks the kernel for the machine's addresses. */
static bool is_kernel(const struct destination *to)
{
    const struct sockaddr_nl *address = (const struct sockaddr_nl *)&to->address;

    return to->bytes == sizeof(*address) && address->nl_family == AF_NETLINK &&
           address->nl_pid == 0 && address->nl_groups == 0;
}

/* Media over UDP need no connection, and a camera may name any host that they come from: to another
 * one than the camera's own nothing is sent. Of the flags none is kept: one would connect. */
static int64_t send_for(const struct seccomp_data *call)
{
    static char data[DATAGRAM_MAX];
    struct destination to;
    const struct sockaddr *address = (const struct sockaddr *)&to.address;
    int rc = read_destination(&to, call->args[4], call->args[5]);
    ssize_t sent;

    if (rc != 0) {
        return rc;
    }
    if (!is_kernel(&to) && !was_dialled(&to)) {
        return -EACCES;
    }
    if (call->args[2] > sizeof(data)) {
        return -EMSGSIZE;
    }
    if (!read_memory(data, call->args[1], (size_t)call->args[2])) {
        return -EFAULT;
    }
    sent = sendto((int)call->args[0], data, (size_t)call->args[2], MSG_DONTWAIT | MSG_NOSIGNAL,
                  address, to.bytes);
    return sent >= 0 ? sent : -errno;
}

static void answer(int listener)
{
    struct seccomp_notif asked = {0};
    struct seccomp_notif_resp result = {0};
    int64_t value;

    if (seccomp_notify_receive(listener, &asked) != 0) {
        return; /* it was killed meanwhile */
    }
    value = asked.data.nr == SCMP_SYS(connect) ? connect_for(&asked.data) : send_for(&asked.data);
    result.id = asked.id;
    result.val = value >= 0 ? value : 0;
    result.error = value < 0 ? (int)value : 0;
    (void)seccomp_notify_respond(listener, &result);
}

/* No connection any more. True: neither is there a tunnel, nor are datagrams to be sent. */
static bool settle(const struct confinement *confinement)
{
    (void)close(broker.bell[0]);
    broker.bell[0] = -1;
    return (broker.tunnel.curl == NULL && !confinement->uses_udp) ||
           confine_stream(confinement, NULL) != 0;
}

static void serve(const struct confinement *confinement, int listener)
{
    for (;;) {
        struct pollfd ready[] = {{.fd = listener, .events = POLLIN},
                                 {.fd = broker.bell[0], .events = POLLIN},
                                 {.fd = broker.tunnel.inner, .events = POLLIN},
                                 {.fd = broker.tunnel.outer, .events = POLLIN}};
        (void)poll(ready, sizeof(ready) / sizeof(ready[0]), -1); /* on failure: nothing is ready */
        if ((ready[0].revents & POLLIN) != 0) {
            answer(listener);
        } else if (ready[0].revents != 0 || /* baton-camera has gone */
                   (ready[1].revents != 0 && settle(confinement))) {
            return;
        } else if (ready[2].revents != 0 || ready[3].revents != 0) {
            tunnel_pump(&broker.tunnel, ready[2].revents != 0);
            atomic_store(&broker.findings->has_tunnel, broker.tunnel.curl != NULL);
        }
    }
}

static void run(const struct confinement *served, pid_t parent)
{
    const struct confinement confinement = {.port = served->port,
                                            .readable = served->readable,
                                            .uses_udp = served->uses_udp,
                                            .is_broker = true};
    int listener;

    (void)prctl(PR_SET_NAME, BROKER_NAME);
    if (confine_process(&confinement, NULL) == 0 && getppid() == parent &&
        res_ninit(&broker.names) == 0 &&
        read(broker.bell[0], &listener, sizeof(listener)) == sizeof(listener)) {
        serve(&confinement, listener);
    }
}

static int refuse(const char *what, struct baton_error *reterr)
{
    return error_set(reterr, BATON_EUNAVAILABLE, "%s: %s; a camera is not opened unconfined", what,
                     strerror(errno));
}

/* Of a process that is not dumpable, this file is root's. */
void broker_prepare(void)
{
    (void)prctl(PR_SET_DUMPABLE, 1);
    broker.memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    (void)prctl(PR_SET_DUMPABLE, 0);
}

int broker_start(const struct camera_config *config, struct confinement *confinement,
                 struct baton_error *reterr)
{
    pid_t parent = getpid();
    long pid;

    if (broker.memory < 0) {
        errno = ENOENT;
        return refuse("/proc/self/mem", reterr);
    }
    broker.config = config;
    broker.findings = mmap(NULL, sizeof(*broker.findings), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (broker.findings == MAP_FAILED || pipe2(broker.bell, O_CLOEXEC) != 0) {
        return refuse("broker", reterr);
    }
    (void)signal(SIGCHLD, SIG_IGN); /* it may end first, and is not waited for */
    landlock_restrict(confinement);
    pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        run(confinement, parent);
        _exit(EXIT_SUCCESS);
    }
    confinement->broker = broker.bell[1];
    return pid > 0 ? 0 : refuse("broker", reterr);
}

void broker_settle(void)
{
    (void)close(broker.bell[1]);
}

void broker_farewell(void)
{
    for (int ms = 0; ms < FAREWELL_MS && atomic_load(&broker.findings->has_tunnel); ms++) {
        (void)poll(NULL, 0, 1);
    }
}

bool broker_has_dialled(void)
{
    return broker.findings->has_dialled;
}

const struct baton_error *broker_fault(void)
{
    return &broker.findings->fault;
}
