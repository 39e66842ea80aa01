/* The guardian with real processes: a leader that dies in every way, and peers that listen. */
#include "base/addresses.h"
#include "cmocka_all.h"
#include "guardian/certificate.h"
#include "guardian/fatal.h"
#include "guardian/guardian.h"
#include "guardian/protocol.h"
#include "guardian/spawn.h"
#include "lib/process.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PEERS = 2, HEIR = 102, RESIDENT_BYTES = 256 << 20 };

static const struct certificate truth = {
    .cluster = 77, .node = 9, .incarnation = 12345, .secret = {1, 2, 3, 0xff}};

/* What a leader is told to be, and what it tells back. */
struct scene {
    int listeners[PEERS];
    int ports[PEERS];
    int report[2];  /* the leader writes struct report */
    int command[2]; /* the test writes a letter */
    bool kills_outliving;
    bool has_victims;
    bool forks;          /* a child inherits everything and stays */
    bool waits_in_crash; /* its own handler, after ours, waits for a letter */
    bool is_big;
    bool has_names; /* the peers' addresses are "localhost:PORT" */
    span lease;
    pid_t leader;
};

struct report {
    pid_t guardian;
    pid_t victim;
};

static struct scene *in_leader;
static struct guardian *guardian;
static struct report report;
static pid_t reported;
static bool is_void;

/* ---- The name service ------------------------------------------------------------------------ */

int __real_addresses_ask(struct addresses **ret, uv_loop_t *loop, const char *host, int port,
                         addresses_done *done, void *userdata);
int __wrap_addresses_ask(struct addresses **ret, uv_loop_t *loop, const char *host, int port,
                         addresses_done *done, void *userdata);

static addresses_done *on_lookup;
static int lookups, found;

static void pass_on(void *userdata, struct addrinfo *result, const char *fault)
{
    bool is_found = result != NULL;

    on_lookup(userdata, result, fault);
    found += is_found;
}

/* Comes up after the first lookup of each peer. */
int __wrap_addresses_ask(struct addresses **ret, uv_loop_t *loop, const char *host, int port,
                         addresses_done *done, void *userdata)
{
    on_lookup = done;
    return lookups++ < PEERS
               ? UV_EAGAIN
               : __real_addresses_ask(ret, loop, "127.0.0.1", port, pass_on, userdata);
}

/* ---- The leader's process -------------------------------------------------------------------- */

static void void_lease(void *lease)
{
    *(bool *)lease = true;
}

static void wait_for_letter(int number)
{
    char letter;
    /* libuv made the pipe non-blocking. */
    while (read(in_leader->command[0], &letter, 1) < 0 && (errno == EINTR || errno == EAGAIN)) {
        (void)poll(&(struct pollfd){.fd = in_leader->command[0], .events = POLLIN}, 1, -1);
    }
    _exit(is_void ? 42 : 43);
}

/* Tells of each new guardian that knows the peers. */
static void on_tick(uv_timer_t *timer)
{
    if (in_leader->has_names && found < PEERS) {
        return;
    }
    report.guardian = guardian_pid(guardian);
    if (report.guardian != reported && report.guardian != 0) {
        reported = report.guardian;
        (void)!write(in_leader->report[1], &report, sizeof(report));
    }
}

static void on_stopped(void *userdata)
{
    _exit(0);
}

static void on_command(uv_poll_t *poll_handle, int status, int events)
{
    char letter = 0;
    (void)!read(in_leader->command[0], &letter, 1);
    if (letter == 'f') {
        guardian_stop(guardian, on_stopped, NULL);
    } else if (letter == 'a') {
        (void)raise(SIGSEGV);
    }
}

static int sleep_for_ever(void *userdata)
{
    (void)setpgid(0, 0);
    while (pause() < 0) {
    }
    return 0;
}

/* Stands for the supervisor of `baton run`: starts the victim, and ends it when it is asked to. */
static void hold_victim(int orders)
{
    pid_t victim = fork();
    char byte;

    if (victim == 0) {
        _exit(sleep_for_ever(NULL));
    }
    (void)!send(orders, &victim, sizeof(victim), 0);
    (void)!recv(orders, &byte, 1, 0);
    (void)kill(victim, SIGKILL);
    (void)waitpid(victim, NULL, 0);
    byte = VICTIMS_NONE_LEFT;
    (void)!send(orders, &byte, 1, 0);
    _exit(0);
}

static void start_victim(void)
{
    int pair[2];
    pid_t supervisor;

    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    supervisor = fork();
    if (supervisor == 0) {
        hold_victim(pair[1]);
    }
    (void)close(pair[1]);
    (void)!recv(pair[0], &report.victim, sizeof(report.victim), 0);
    guardian_set_victims(
        guardian, &(struct victims){.supervisor = pair[0], .process = pidfd_open(supervisor, 0)});
}

static void grow(void)
{
    static char *memory; /* to the end */

    memory = malloc(RESIDENT_BYTES);
    if (memory != NULL) {
        memset(memory, 1, RESIDENT_BYTES);
    }
}

static int lead(void *userdata)
{
    static uv_loop_t loop;
    static uv_timer_t tick;
    static uv_poll_t commands_poll;
    struct scene *scene = userdata;
    char addresses[PEERS][32];
    struct guardian_peer peers[PEERS];
    struct guardian_options options = {.loop = &loop,
                                       .certificate = truth,
                                       .kills_outliving = scene->kills_outliving,
                                       .program = GUARDIAN_PROGRAM};

    in_leader = scene;
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    (void)uv_loop_init(&loop);
    (void)signal(SIGSEGV, scene->waits_in_crash ? wait_for_letter : SIG_DFL);
    if (guardian_start(&guardian, &options, NULL) != 0 || fatal_install(NULL) != 0 ||
        guardian_arm(guardian, void_lease, &is_void, NULL) != 0) {
        return 99;
    }
    for (int i = 0; i < PEERS; i++) {
        /* Mostly numbers: a name may not have been found when the leader is killed at once. */
        (void)snprintf(addresses[i], sizeof(addresses[i]), "%s:%d",
                       scene->has_names ? "localhost" : "127.0.0.1", scene->ports[i]);
        peers[i] = (struct guardian_peer){.node = (uint64_t)(101 + i), .address = addresses[i]};
    }
    guardian_set_peers(guardian, peers, PEERS);
    guardian_set_heir(guardian, HEIR);
    if (scene->has_victims) {
        start_victim();
    }
    if (scene->is_big) {
        grow();
    }
    if (scene->forks) {
        report.victim = fork();
        if (report.victim == 0) {
            return sleep_for_ever(NULL);
        }
    }
    if (scene->lease.ns > 0) {
        guardian_publish(guardian, instant_add(clock_now(), scene->lease));
    }
    (void)uv_timer_init(&loop, &tick);
    (void)uv_timer_start(&tick, on_tick, 0, 1);
    (void)uv_poll_init(&loop, &commands_poll, scene->command[0]);
    (void)uv_poll_start(&commands_poll, UV_READABLE, on_command);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return 98;
}

/* ---- The test's side ------------------------------------------------------------------------- */

static struct report start(struct scene *scene)
{
    struct report first;
    for (int i = 0; i < PEERS; i++) {
        scene->listeners[i] = process_listen(&scene->ports[i]);
    }
    assert_int_equal(pipe2(scene->report, O_CLOEXEC) | pipe2(scene->command, O_CLOEXEC), 0);
    scene->leader = process_fork(lead, scene);
    process_read(scene->report[0], &first, sizeof(first));
    return first;
}

static void finish(struct scene *scene)
{
    for (int i = 0; i < 2; i++) {
        close(scene->report[i]);
        close(scene->command[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        close(scene->listeners[i]);
    }
}

/* Reads what comes on one connection until its end: it must be one certificate, the true one. */
static void expect_certificate_on(int fd, uint64_t heir)
{
    uint8_t frame[CERTIFICATE_BYTES + 1];
    struct certificate certificate;
    assert_int_equal(process_read_all(fd, frame, sizeof(frame)), CERTIFICATE_BYTES);
    assert_true(certificate_decode(&certificate, frame, CERTIFICATE_BYTES));
    assert_int_equal(certificate.cluster, truth.cluster);
    assert_int_equal(certificate.node, truth.node);
    assert_int_equal(certificate.incarnation, truth.incarnation);
    assert_int_equal(certificate.heir, heir);
    assert_memory_equal(certificate.secret, truth.secret, sizeof(truth.secret));
    close(fd);
}

static void expect_certificates(struct scene *scene)
{
    for (int i = 0; i < PEERS; i++) {
        expect_certificate_on(process_accept(scene->listeners[i]), HEIR);
    }
}

static void expect_silence(struct scene *scene)
{
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(poll(&(struct pollfd){.fd = scene->listeners[i], .events = POLLIN}, 1, 0),
                         0);
    }
}

static void say(struct scene *scene, char letter)
{
    assert_int_equal(write(scene->command[1], &letter, 1), 1);
}

/* ---- Deaths ---------------------------------------------------------------------------------- */

static void a_killed_leader_is_certified_to_every_peer(void **state)
{
    struct scene scene = {0};
    struct report first = start(&scene);
    process_end(scene.leader);
    expect_certificates(&scene);
    process_wait_gone(first.guardian);
    finish(&scene);
}

static void a_peer_whose_name_is_not_found_at_first_gets_the_certificate(void **state)
{
    struct scene scene = {.has_names = true};
    (void)start(&scene);
    process_end(scene.leader);
    expect_certificates(&scene);
    finish(&scene);
}

static void a_clean_end_certifies_nothing(void **state)
{
    struct scene scene = {0};
    struct report first = start(&scene);
    say(&scene, 'f');
    assert_int_equal(process_wait(scene.leader), 0);
    process_wait_gone(first.guardian);
    expect_silence(&scene);
    finish(&scene);
}

static void a_child_that_keeps_the_sockets_open_changes_nothing(void **state)
{
    struct scene scene = {.forks = true};
    struct report first = start(&scene);
    process_end(scene.leader);
    expect_certificates(&scene);
    process_wait_gone(first.guardian);
    assert_true(process_lives(first.victim));
    (void)kill(first.victim, SIGKILL);
    finish(&scene);
}

static void signals_of_the_terminal_do_not_reach_the_guardian(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct scene scene = {0};
    struct report first = start(&scene);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(kill(first.guardian, numbers[i]), 0);
    }
    assert_int_equal(getsid(first.guardian), first.guardian);
    process_end(scene.leader);
    expect_certificates(&scene);
    finish(&scene);
}

static void a_guardian_that_dies_is_replaced_and_leadership_goes_on(void **state)
{
    struct scene scene = {0};
    struct report first = start(&scene), second;
    assert_int_equal(kill(first.guardian, SIGKILL), 0);
    process_read(scene.report[0], &second, sizeof(second));
    assert_int_not_equal(second.guardian, first.guardian);
    assert_true(process_lives(scene.leader));
    expect_silence(&scene);
    process_end(scene.leader);
    expect_certificates(&scene);
    finish(&scene);
}

static void whoever_acts_for_the_leader_is_dead_before_it_is_certified(void **state)
{
    struct scene scene = {.has_victims = true};
    struct report first = start(&scene);
    assert_true(process_lives(first.victim));
    process_end(scene.leader);
    for (int i = 0; i < PEERS; i++) {
        int fd = process_accept(scene.listeners[i]);
        uint8_t byte;
        process_wait_readable(fd);
        assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), 1);
        assert_false(process_lives(first.victim));
        expect_certificate_on(fd, HEIR);
    }
    finish(&scene);
}

static void a_leader_that_outlives_its_lease_is_killed_and_certified(void **state)
{
    struct scene scene = {.kills_outliving = true, .has_victims = true, .lease = SPAN_MS(200)};
    struct report first = start(&scene);
    int status;
    (void)kill(scene.leader, SIGSTOP);
    expect_certificates(&scene);
    status = process_wait(scene.leader);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_false(process_lives(first.victim));
    finish(&scene);
}

/* The leader is held in its own handler: it is not dead yet, but it will never lead again. */
static void a_crash_is_certified_before_the_kernel_tells_of_the_death(void **state)
{
    struct scene scene = {.is_big = true, .waits_in_crash = true};
    int pidfd;
    start(&scene);
    pidfd = pidfd_open(scene.leader, 0);
    say(&scene, 'a');
    expect_certificates(&scene);
    assert_int_equal(poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0), 0);
    say(&scene, 'x');
    assert_int_equal(WEXITSTATUS(process_wait(scene.leader)), 42);
    expect_silence(&scene); /* said once */
    close(pidfd);
    finish(&scene);
}

static void a_crash_keeps_its_signal(void **state)
{
    struct scene scene = {0};
    int status;
    start(&scene);
    say(&scene, 'a');
    expect_certificates(&scene);
    status = process_wait(scene.leader);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    finish(&scene);
}

/* ---- The program alone ----------------------------------------------------------------------- */

struct alone {
    int socket;
    pid_t parent; /* whose death it waits for */
    int pidfd;
    int shared;
    pid_t pid;
};

static void tell(struct alone *alone, struct guardian_message message, uint16_t type)
{
    message.version = GUARDIAN_VERSION;
    message.type = type;
    assert_int_equal(send(alone->socket, &message, sizeof(message), 0), sizeof(message));
}

static void start_alone(struct alone *alone, int port)
{
    struct guardian_message hello;
    struct guardian_message peer = {.peer = {.node = 1}};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int pair[2];
    pid_t first;

    alone->parent = process_fork(sleep_for_ever, NULL); /* before there is a socket to inherit */
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    alone->pidfd = pidfd_open(alone->parent, 0);
    alone->shared = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(alone->shared, sizeof(struct guardian_shared)), 0);
    assert_int_equal(guardian_spawn(&first, GUARDIAN_PROGRAM,
                                    &(struct spawn_descriptors){.socket = pair[1],
                                                                .parent = alone->pidfd,
                                                                .shared = alone->shared},
                                    NULL),
                     0);
    close(pair[1]);
    alone->socket = pair[0];
    process_read(alone->socket, &hello, sizeof(hello));
    assert_int_equal(hello.type, GUARDIAN_HELLO);
    alone->pid = hello.pid;
    assert_int_equal(process_wait(first), 0);
    memcpy(&peer.peer.address, &address, sizeof(address));
    peer.peer.address_bytes = sizeof(address);
    tell(alone, peer, GUARDIAN_PEER);
    tell(alone, (struct guardian_message){.configure = {.certificate = truth}}, GUARDIAN_CONFIGURE);
}

static void the_end_of_the_socket_proves_nothing(void **state)
{
    struct alone alone;
    int port, listener = process_listen(&port), fd;
    char byte;
    start_alone(&alone, port);
    close(alone.socket);
    fd = process_accept(listener); /* it makes ready */
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    process_end(alone.parent);
    expect_certificate_on(fd, 0);
    close(alone.pidfd);
    close(alone.shared);
    close(listener);
}

static void the_certificate_goes_as_a_datagram_too(void **state)
{
    struct alone alone;
    struct certificate certificate;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint8_t frame[CERTIFICATE_BYTES + 1];
    int port, listener = process_listen(&port);
    int datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)port);
    assert_int_equal(bind(datagrams, (struct sockaddr *)&address, sizeof(address)), 0);
    start_alone(&alone, port);
    process_end(alone.parent);
    assert_int_equal(recv(datagrams, frame, sizeof(frame), 0), CERTIFICATE_BYTES);
    assert_true(certificate_decode(&certificate, frame, CERTIFICATE_BYTES));
    assert_memory_equal(certificate.secret, truth.secret, sizeof(truth.secret));
    expect_certificate_on(process_accept(listener), 0);
    close(datagrams);
    close(alone.socket);
    close(alone.pidfd);
    close(alone.shared);
    close(listener);
}

static void words_sent_before_the_death_are_heard_after_it(void **state)
{
    struct alone alone;
    int port, listener = process_listen(&port);
    start_alone(&alone, port);
    assert_int_equal(kill(alone.pid, SIGSTOP), 0);
    tell(&alone, (struct guardian_message){0}, GUARDIAN_FAREWELL);
    process_end(alone.parent);
    assert_int_equal(kill(alone.pid, SIGCONT), 0);
    process_wait_gone(alone.pid);
    assert_int_equal(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 0), 0);
    close(alone.socket);
    close(alone.pidfd);
    close(alone.shared);
    close(listener);
}

static void a_peer_that_refuses_is_tried_again(void **state)
{
    struct alone alone;
    int port, other_port, closed = process_listen(&port), other = process_listen(&other_port);
    struct guardian_message peer = {
        .peer = {.node = 2, .address_bytes = sizeof(struct sockaddr_in)}};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)other_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, again;
    close(closed);
    start_alone(&alone, port);
    memcpy(&peer.peer.address, &address, sizeof(address));
    tell(&alone, peer, GUARDIAN_PEER);
    process_end(alone.parent);
    expect_certificate_on(process_accept(other), 0); /* the other was refused by now */
    again = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(again, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    address.sin_port = htons((uint16_t)port);
    assert_int_equal(bind(again, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(again, 4), 0);
    expect_certificate_on(process_accept(again), 0);
    close(again);
    close(other);
    close(alone.socket);
    close(alone.pidfd);
    close(alone.shared);
}

/* How many dials of this port have had no answer yet. */
static unsigned unanswered_dials(int port)
{
    FILE *table = fopen("/proc/net/tcp", "re");
    unsigned count = 0, remote, status;
    char line[256];

    assert_non_null(table);
    while (fgets(line, sizeof(line), table)) {
        count += sscanf(line, " %*d: %*x:%*x %*x:%x %x", &remote, &status) == 2 &&
                 remote == (unsigned)port && status == TCP_SYN_SENT;
    }
    fclose(table);
    return count;
}

/* A listener whose queue is full drops first packets, as a network does that loses them. */
/* Of two dials that are answered at once, one is given up. */
static int accept_the_one_that_is_used(int listener)
{
    int fd = process_accept(listener);
    char byte;

    while (recv(fd, &byte, 1, MSG_PEEK) <= 0) {
        close(fd);
        fd = process_accept(listener);
    }
    return fd;
}

static void a_peer_that_does_not_answer_is_dialled_a_second_time(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct alone alone;
    int port, listener = process_listen(&port),
              other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)port);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(connect(other, (struct sockaddr *)&address, sizeof(address)), 0);
    start_alone(&alone, port);
    process_end(alone.parent);
    for (int looks = 0; unanswered_dials(port) < 2; looks++) {
        assert_true(looks < 4000); /* the guardian ends after 5 s */
        (void)poll(NULL, 0, 1);
    }
    close(process_accept(listener));
    expect_certificate_on(accept_the_one_that_is_used(listener), 0);
    close(other);
    close(listener);
    close(alone.socket);
    close(alone.pidfd);
    close(alone.shared);
}

static void it_is_small(void **state)
{
    struct alone alone;
    int port, listener = process_listen(&port);
    char path[64], line[256];
    long resident_kb = -1;
    FILE *file;
    start_alone(&alone, port);
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)alone.pid);
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        (void)sscanf(line, "VmRSS: %ld", &resident_kb);
    }
    (void)fclose(file);
    print_message("guardian: %ld kB resident\n", resident_kb);
    assert_true(resident_kb > 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(resident_kb < 2048);
#endif
    tell(&alone, (struct guardian_message){0}, GUARDIAN_FAREWELL);
    process_wait_gone(alone.pid);
    process_end(alone.parent);
    close(alone.socket);
    close(alone.pidfd);
    close(alone.shared);
    close(listener);
}

static void a_missing_program_is_named(void **state)
{
    struct baton_error error;
    struct guardian *none = NULL;
    uv_loop_t loop;
    struct guardian_options options = {.loop = &loop, .program = "/nowhere/baton-guardian"};
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(guardian_start(&none, &options, &error), BATON_ENOENT);
    assert_non_null(strstr(error.message, "/nowhere/baton-guardian"));
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_leader_is_certified_to_every_peer),
        cmocka_unit_test(a_peer_whose_name_is_not_found_at_first_gets_the_certificate),
        cmocka_unit_test(a_clean_end_certifies_nothing),
        cmocka_unit_test(a_child_that_keeps_the_sockets_open_changes_nothing),
        cmocka_unit_test(signals_of_the_terminal_do_not_reach_the_guardian),
        cmocka_unit_test(a_guardian_that_dies_is_replaced_and_leadership_goes_on),
        cmocka_unit_test(whoever_acts_for_the_leader_is_dead_before_it_is_certified),
        cmocka_unit_test(a_leader_that_outlives_its_lease_is_killed_and_certified),
        cmocka_unit_test(a_crash_is_certified_before_the_kernel_tells_of_the_death),
        cmocka_unit_test(a_crash_keeps_its_signal),
        cmocka_unit_test(the_end_of_the_socket_proves_nothing),
        cmocka_unit_test(the_certificate_goes_as_a_datagram_too),
        cmocka_unit_test(words_sent_before_the_death_are_heard_after_it),
        cmocka_unit_test(a_peer_that_refuses_is_tried_again),
        cmocka_unit_test(a_peer_that_does_not_answer_is_dialled_a_second_time),
        cmocka_unit_test(it_is_small),
        cmocka_unit_test(a_missing_program_is_named),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
