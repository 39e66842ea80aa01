/* Where a process with a broker can send anything, and whom a confined process can send a signal.
 * Each check does what a decoder would that was taken over; the kernel knows no Landlock, so that
 * the broker and seccomp alone hold. */
#include "detector/camera/broker.h"
#include "detector/camera/confine.h"
#include "unit/detector_camera/fenced.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3000 };

static const char any[] = "127.0.0.1", other[] = "127.0.0.2", secrets[] = "169.254.169.254";

/* The camera listens and receives datagrams; so does a port that is none of the camera's. */
static struct {
    int camera, elsewhere, datagrams, astray;
    uint16_t camera_port, elsewhere_port, datagrams_port, astray_port;
} world;

void landlock_restrict(const struct confinement *confinement)
{
}

static int bound(const char *host, int type, uint16_t *port)
{
    struct sockaddr_in address = at(host, 0);
    socklen_t bytes = sizeof(address);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    assert_int_equal(type == SOCK_STREAM ? listen(fd, ROUNDS) : 0, 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int set_up(void **state)
{
    world.camera = bound(any, SOCK_STREAM, &world.camera_port);
    world.elsewhere = bound(any, SOCK_STREAM, &world.elsewhere_port);
    world.datagrams = bound(any, SOCK_DGRAM, &world.datagrams_port);
    world.astray = bound(other, SOCK_DGRAM, &world.astray_port);
    return 0;
}

static struct camera_config config = {.options.uses_udp = true, .parts.scheme = "rtsp"};

static bool uses_hardware;

static int begin_brokered(void)
{
    struct confinement confinement = {
        .port = world.camera_port, .uses_hardware = uses_hardware, .uses_udp = true};

    config.parts.port = world.camera_port;
    broker_prepare();
    return broker_start(&config, &confinement, NULL) || confine_process(&confinement, NULL);
}

static int begin_with_hardware(void)
{
    uses_hardware = true;
    return begin_brokered();
}

/* Many connections, which no stream makes. */
static int begin_for_http(void)
{
    config.parts = (struct url){.scheme = "http"};
    return begin_brokered();
}

static int the_port_of_the_camera_is_connected_to_and_no_address_that_is_refused(void)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/run/baton"};
    struct sockaddr_in camera = at(any, world.camera_port);

    CHECK(!broker_has_dialled());
    CHECK(dial_at(SOCK_STREAM, secrets, world.camera_port) == EACCES);
    CHECK(!broker_has_dialled());
    CHECK(dial_at(SOCK_STREAM, any, world.camera_port) == 0);
    CHECK(broker_has_dialled());
    CHECK(dial_at(SOCK_STREAM, any, world.elsewhere_port) == EACCES);
    CHECK(dial_at(SOCK_DGRAM, other, world.astray_port) == EACCES);
    CHECK(dial_at(SOCK_DGRAM, any, 53) == EACCES);
    CHECK(dial(SOCK_STREAM, &local, sizeof(local)) == EACCES);
    CHECK(dial(SOCK_STREAM, &camera, 1) == EINVAL);
    CHECK(dial(SOCK_STREAM, &camera, 4096) == EINVAL);
    CHECK(dial(SOCK_STREAM, (const void *)8, sizeof(camera)) == EFAULT); /* NOLINT */
    return 0;
}

/* It is known to the C library alone; nothing is sent. */
static int the_name_servers_of_this_machine_are_reached(void)
{
    struct __res_state names = {0};
    const struct sockaddr_in6 *v6;
    int error;

    CHECK(res_ninit(&names) == 0 && names.nscount > 0);
    v6 = names._u._ext.nsaddrs[0];
    error = v6 != NULL ? dial(SOCK_DGRAM, v6, sizeof(*v6))
                       : dial(SOCK_DGRAM, &names.nsaddr_list[0], sizeof(names.nsaddr_list[0]));
    CHECK(error != EACCES && error != EPERM);
    names.nsaddr_list[0].sin_port = htons(54);
    CHECK(v6 != NULL ||
          dial(SOCK_DGRAM, &names.nsaddr_list[0], sizeof(struct sockaddr_in)) == EACCES);
    return 0;
}

static int send_at(int type, int flags, const char *host, uint16_t port, sa_family_t family)
{
    struct sockaddr_in address = at(host, port);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    int error;

    address.sin_family = family;
    error =
        sendto(fd, "word", 4, flags, (struct sockaddr *)&address, sizeof(address)) == 4 ? 0 : errno;
    (void)close(fd);
    return error;
}

static int send_all(void)
{
    uint16_t port = world.datagrams_port, astray = world.astray_port;

    CHECK(send_at(SOCK_DGRAM, 0, any, port, AF_INET) == EACCES); /* not dialled yet */
    CHECK(dial_at(SOCK_STREAM, any, world.camera_port) == 0);
    CHECK(send_at(SOCK_DGRAM, 0, any, port, AF_INET) == 0);
    CHECK(send_at(SOCK_DGRAM, 0, other, astray, AF_INET) == EACCES);
    CHECK(send_at(SOCK_DGRAM, 0, other, astray, AF_UNSPEC) == EACCES);
    CHECK(send_at(SOCK_STREAM, MSG_FASTOPEN, any, world.elsewhere_port, AF_INET) != 0);
    return 0;
}

static int no_other_call_takes_an_address(void)
{
    struct sockaddr_in address = at(other, world.astray_port);
    struct iovec part = {.iov_base = (char *)"word", .iov_len = 4};
    struct mmsghdr message = {.msg_hdr = {.msg_name = &address,
                                          .msg_namelen = sizeof(address),
                                          .msg_iov = &part,
                                          .msg_iovlen = 1}};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    CHECK(sendmsg(fd, &message.msg_hdr, 0) < 0 && errno == EPERM);
    CHECK(sendmmsg(fd, &message, 1, 0) < 0 && errno == EPERM);
    return 0;
}

static int other_sockets_are_refused(void)
{
    static const char route[24];
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);

    CHECK(setsockopt(fd, IPPROTO_IPV6, IPV6_RTHDR, route, sizeof(route)) < 0 && errno == EPERM);
    CHECK(socket(AF_INET, SOCK_SEQPACKET, 0) < 0 && errno == EPERM);
    CHECK(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) < 0 && errno == EPERM);
    CHECK(socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDPLITE) < 0 && errno == EPERM);
    CHECK(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) < 0 && errno == EPERM);
    /* Those of other programs on the machine are reached by the kernel's files, whatever their
     * port. */
    CHECK(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
    CHECK(socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EPERM);
    CHECK(socket(AF_VSOCK, SOCK_STREAM, 0) < 0 && errno == EPERM);
    CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT) < 0 && errno == EPERM);
    return 0;
}

static int what_the_broker_is_asked_only_the_broker_answers(void)
{
    struct seccomp_notif asked = {0};
    struct seccomp_notif_resp result = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    unsigned long receive = SECCOMP_IOCTL_NOTIF_RECV | 1UL << 32;

    for (int fd = 0; fd < 64; fd++) {
        CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0 && errno == EPERM);
        CHECK(ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &result) < 0 && errno == EPERM);
        CHECK(syscall(SYS_ioctl, fd, receive, &asked) < 0 && errno == EPERM);
    }
    return 0;
}

static int a_ring_of_calls_is_the_end(void)
{
    (void)syscall(SYS_io_uring_setup, 1, NULL);
    return 1;
}

static atomic_bool is_over;
static struct sockaddr_in target; /* written by one thread while another passes it to the kernel */

static void *change_target(void *userdata)
{
    for (bool is_camera = false; !atomic_load(&is_over); is_camera = !is_camera) {
        in_port_t port = htons(is_camera ? world.camera_port : world.elsewhere_port);
        __atomic_store_n(&target.sin_port, port, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* On a busy machine the other thread may not run for thousands of rounds: what sleeps lets it. */
static int an_address_that_changes_during_the_call_leads_nowhere_else(void)
{
    const struct timespec turn = {.tv_nsec = 1000000};
    unsigned refused = 0, connected = 0;
    pthread_t changer;

    target = at(any, world.camera_port);
    CHECK(pthread_create(&changer, NULL, change_target, NULL) == 0);
    while (refused == 0 || connected == 0 || refused + connected < ROUNDS) {
        int error = dial(SOCK_STREAM, &target, sizeof(target));
        CHECK(error == 0 || error == EACCES);
        refused += error == EACCES;
        connected += error == 0;
        if (refused == 0 || connected == 0) {
            (void)nanosleep(&turn, NULL);
        }
    }
    atomic_store(&is_over, true);
    CHECK(pthread_join(changer, NULL) == 0);
    return 0;
}

static void *dial_elsewhere(void *userdata)
{
    *(int *)userdata = dial_at(SOCK_STREAM, any, world.elsewhere_port);
    return NULL;
}

static int a_thread_dials_no_other_port_either(void)
{
    pthread_t thread;
    int error = 0;

    CHECK(pthread_create(&thread, NULL, dial_elsewhere, &error) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && error == EACCES);
    return 0;
}

/* The last test, after all attempts. */
static void what_was_allowed_came_to_the_camera_and_nothing_elsewhere(void **state)
{
    char byte;

    assert_true(accept(world.camera, NULL, NULL) >= 0);
    assert_int_equal(accept(world.elsewhere, NULL, NULL), -1);
    assert_int_equal(recv(world.astray, &byte, 1, 0), -1);
}

static void datagrams_go_to_a_host_that_was_dialled(void **state)
{
    char word[8];

    assert_int_equal(run_fenced(begin_brokered, send_all), 0);
    assert_int_equal(recv(world.datagrams, word, sizeof(word), 0), 4);
    assert_memory_equal(word, "word", 4);
}

static int listen_first(void)
{
    struct sock_filter pass[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = pass};

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program) < 0;
}

/* As within some containers. */
static int where_the_runtime_listens_already_the_error_says_so(void)
{
    const struct confinement confinement = {.port = 8554, .broker = STDERR_FILENO};
    struct baton_error error;

    CHECK(confine_process(&confinement, &error) == BATON_EUNAVAILABLE);
    CHECK(strstr(error.message, "container") != NULL);
    return 0;
}

/* ---- without a broker ---- */

enum { SOMEBODY = 12345 };

static const struct confinement alone = {.port = 8554};
static pid_t victim;

/* With a victim of its own user: as a service is whose user is not root. The victim dies with this
 * process, or by what is tried. */
static int begin_beside_victim(void)
{
    pid_t parent = getpid();

    if (geteuid() == 0 && setresuid(SOMEBODY, SOMEBODY, SOMEBODY) != 0) {
        return -1;
    }
    victim = fork();
    if (victim == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            (void)pause();
        }
        _exit(0);
    }
    return victim < 0 || confine_process(&alone, NULL) || confine_stream(&alone, NULL);
}

/* Whoever owns a descriptor is sent a signal of one's choice when there is something to read. */
static int no_other_process_can_be_sent_a_signal(void)
{
    int pipes[2];

    CHECK(syscall(SYS_tgkill, victim, victim, SIGKILL) < 0 && errno == EPERM);
    CHECK(syscall(SYS_tkill, victim, SIGKILL) < 0 && errno == EPERM);
    CHECK(kill(victim, SIGKILL) < 0 && errno == EPERM);
    CHECK(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0) == 0); /* abort() needs it */
    CHECK(pipe2(pipes, O_CLOEXEC) == 0);
    CHECK(fcntl(pipes[0], F_SETOWN, victim) < 0 && errno == EPERM);
    CHECK(fcntl(pipes[0], F_SETSIG, SIGKILL) < 0 && errno == EPERM);
    CHECK(fcntl(pipes[0], F_SETFL, fcntl(pipes[0], F_GETFL) | O_NONBLOCK) == 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FENCED(the_port_of_the_camera_is_connected_to_and_no_address_that_is_refused,
               begin_brokered, 0),
        FENCED(a_thread_dials_no_other_port_either, begin_brokered, 0),
        FENCED(the_name_servers_of_this_machine_are_reached, begin_brokered, 0),
        cmocka_unit_test(datagrams_go_to_a_host_that_was_dialled),
        FENCED(no_other_call_takes_an_address, begin_brokered, 0),
        FENCED(other_sockets_are_refused, begin_brokered, 0),
        FENCED(a_ring_of_calls_is_the_end, begin_brokered, -SIGSYS),
        FENCED(an_address_that_changes_during_the_call_leads_nowhere_else, begin_for_http, 0),
        FENCED(what_the_broker_is_asked_only_the_broker_answers, begin_brokered, 0),
        FENCED(what_the_broker_is_asked_only_the_broker_answers, begin_with_hardware, 0),
        FENCED(where_the_runtime_listens_already_the_error_says_so, listen_first, 0),
        FENCED(no_other_process_can_be_sent_a_signal, begin_beside_victim, 0),
        cmocka_unit_test(what_was_allowed_came_to_the_camera_and_nothing_elsewhere),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_broker", tests, set_up, NULL);
}
