/* The embedded provider with real sockets, real disks and real deaths, on loopback. */
#include "cmocka_all.h"
#include "guardian/certificate.h"
#include "lib/process.h"
#include "provider/provider.h"
#include "provider/raft/frame.h"
#include "provider/raft/identity.h"
#include "provider/raft/options.h"
#include "provider/raft/raft_provider.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES = 3 };

static char directory[64];
static int ports[NODES];
static pid_t pids[NODES + 1]; /* by a node's number; 0: it does not run */

/* What each node process says of itself, in memory that all of them share. */
struct report {
    _Atomic uint64_t epoch; /* of its leadership now; 0: follows */
    _Atomic int leader_seen;
    _Atomic int loss;
    _Atomic uint64_t acquired;
    _Atomic int64_t acquired_ns;
    struct lease_watch lease;
    _Atomic int command; /* 1: resign; 2: a fatal signal that the program survives */
};
static struct report *reports;

static void end(int number)
{
    if (pids[number]) {
        process_end(pids[number]);
        pids[number] = 0;
        reports[number].epoch = 0;
    }
}

static int set_up(void **state)
{
    process_make_folder(directory, sizeof(directory));
    process_free_ports(ports, NODES);
    reports = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return reports == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
    for (int i = 1; i <= NODES; i++) {
        end(i);
    }
    munmap(reports, 4096);
    process_remove_folder(directory);
    return 0;
}

struct one {
    int number;
    uv_loop_t *loop;
    struct provider *provider;
    struct provider_election *election;
    struct lease_cell *cell;
};

static void on_event(void *userdata, const struct baton_event *event)
{
    struct one *one = userdata;
    struct report *report = &reports[one->number];

    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        assert_true(lease_cell_is_leader(one->cell, NULL));
        report->acquired++;
        report->acquired_ns = clock_now().ns;
        report->epoch = event->epoch;
        break;
    case BATON_EVENT_LOST:
        report->epoch = 0;
        report->loss = (int)event->loss + 1;
        break;
    case BATON_EVENT_LEADER:
        report->leader_seen = event->member.id[0] ? event->member.id[1] - '0' : 0;
        break;
    default:
        break;
    }
}

static void url_of(char *ret, size_t bytes, int number, const char *more)
{
    const char *times = strstr(more, "lease=") ? "" : "&heartbeat-timeout=3s&lease=3s";
    int used = snprintf(
        ret, bytes, "raft://127.0.0.1:%d?node=n%d&cluster=test&preset=fast%s&data=%s/n%d&peers=",
        ports[number - 1], number, times, directory, number);
    for (int i = 1; i <= NODES; i++) {
        used += snprintf(ret + used, bytes - (size_t)used, "%sn%d@127.0.0.1:%d", i > 1 ? "," : "",
                         i, ports[i - 1]);
    }
    snprintf(ret + used, bytes - (size_t)used, "%s", more);
}

static void begin(struct one *one, uv_loop_t *loop, int number, const char *more)
{
    char url[1024];
    struct baton_error error = {0};
    struct provider_config config = {.loop = loop, .url = url};
    struct provider_campaign campaign = {
        .election = "job", .eligible = true, .on_event = on_event, .userdata = one};

    url_of(url, sizeof(url), number, more);
    one->number = number;
    one->loop = loop;
    one->cell = campaign.cell = lease_cell_new();
    reports[number].lease.wake_fd = -1;
    lease_cell_watch(one->cell, &reports[number].lease);
    if (raft_provider_ops.open(&one->provider, &config, &error) != 0 ||
        one->provider->ops->campaign(&one->election, one->provider, &campaign, &error) != 0) {
        fail_msg("%s", error.message);
    }
}

/* What guardian_arm has the handler do; the program's own handler then jumps back to life. */
static void survive_fatal_signal(struct one *one)
{
    lease_cell_poison(one->cell);
}

static void on_poll_command(uv_timer_t *timer)
{
    struct one *one = timer->data;
    struct report *report = &reports[one->number];
    if (report->command == 1) {
        report->command = 0;
        (void)one->provider->ops->resign(one->election, NULL, instant_add(clock_now(), SPAN_S(1)),
                                         NULL);
    } else if (report->command == 2) {
        report->command = 0;
        survive_fatal_signal(one);
    }
}

struct order {
    int number;
    const char *more;
};

static int run(void *userdata)
{
    const struct order *order = userdata;
    uv_loop_t loop;
    uv_timer_t commands;
    struct one one;

    uv_loop_init(&loop);
    begin(&one, &loop, order->number, order->more);
    uv_timer_init(&loop, &commands);
    commands.data = &one;
    uv_timer_start(&commands, on_poll_command, 5, 5);
    uv_run(&loop, UV_RUN_DEFAULT);
    return 0;
}

/* A node in a process of its own. */
static void spawn(int number, const char *more)
{
    struct order order = {number, more};

    pids[number] = process_fork(run, &order);
}

static void spawn_all(const char *more)
{
    for (int i = 1; i <= NODES; i++) {
        spawn(i, more);
    }
}

/* The number of the node that leads; fails the test if none does in time. */
static int wait_for_leader_other_than(int other)
{
    instant deadline = instant_add(clock_now(), SPAN_MS(PATIENCE_MS));
    while (instant_before(clock_now(), deadline)) {
        for (int i = 1; i <= NODES; i++) {
            if (i != other && reports[i].epoch > 0) {
                return i;
            }
        }
        poll(NULL, 0, 1);
    }
    fail_msg("nobody leads");
    return 0;
}

static void wait_until_all_follow(int leader)
{
    instant deadline = instant_add(clock_now(), SPAN_MS(PATIENCE_MS));
    for (int i = 1; i <= NODES; i++) {
        while (reports[i].leader_seen != leader) {
            assert_true(instant_before(clock_now(), deadline));
            poll(NULL, 0, 1);
        }
    }
}

static void wait_for_loss(int number)
{
    instant deadline = instant_add(clock_now(), SPAN_MS(PATIENCE_MS));
    while (reports[number].loss == 0 && instant_before(clock_now(), deadline)) {
        poll(NULL, 0, 1);
    }
    assert_int_not_equal(reports[number].loss, 0);
}

static void a_killed_leader_is_replaced_with_a_higher_epoch(void **state)
{
    spawn_all("");
    uint64_t epoch = 0;
    int leader = wait_for_leader_other_than(0);
    for (int round = 0; round < 3; round++) {
        assert_true(reports[leader].epoch > epoch);
        epoch = reports[leader].epoch;
        end(leader);
        int next = wait_for_leader_other_than(leader);
        spawn(leader, "");
        leader = next;
    }
}

static void a_stopped_leader_follows_when_it_wakes_up(void **state)
{
    spawn_all("");
    int old = wait_for_leader_other_than(0);
    uint64_t epoch = reports[old].epoch;
    kill(pids[old], SIGSTOP);
    int next = wait_for_leader_other_than(old);
    assert_true(reports[next].epoch > epoch);
    kill(pids[old], SIGCONT);
    wait_for_loss(old);
    assert_int_equal(reports[old].loss - 1, BATON_LOSS_EXPIRED);
}

/* Heirs are named by how near they are: over some rounds the survivor would be one. */
static void who_survived_its_announced_crash_steps_down_and_never_leads_again(void **state)
{
    spawn_all("&proofs=none");
    int survivor = wait_for_leader_other_than(0);
    uint64_t times = reports[survivor].acquired;
    wait_until_all_follow(survivor);
    reports[survivor].command = 2;
    for (int round = 0; round < 6; round++) {
        int leader = wait_for_leader_other_than(survivor);
        wait_until_all_follow(leader);
        assert_int_equal(reports[survivor].acquired, times);
        assert_int_equal(reports[survivor].epoch, 0);
        reports[leader].command = 1;
        wait_for_loss(leader);
        reports[leader].loss = 0;
    }
}

static void a_resignation_hands_over(void **state)
{
    spawn_all("&proofs=none");
    int old = wait_for_leader_other_than(0);
    wait_until_all_follow(old); /* an heir is needed */
    reports[old].command = 1;
    wait_for_loss(old);
    assert_int_equal(reports[old].loss - 1, BATON_LOSS_RESIGNED);
    (void)wait_for_leader_other_than(old);
}

static void without_any_proof_the_lease_decides(void **state)
{
    spawn_all("&proofs=none");
    int leader = wait_for_leader_other_than(0);
    end(leader);
    int next = wait_for_leader_other_than(leader);
    assert_true(reports[leader].lease.end_ns > 0);
    assert_true(reports[next].acquired_ns >= reports[leader].lease.end_ns);
}

/* The others elect one of them and keep to it; the stranger hears of nobody. */
static int wait_for_leader_without(int stranger)
{
    int leader = wait_for_leader_other_than(0);
    uint64_t epoch = reports[leader].epoch;

    assert_int_not_equal(leader, stranger);
    poll(NULL, 0, 500); /* it knocks all the while */
    assert_true(reports[leader].epoch == epoch);
    assert_true(reports[stranger].epoch == 0);
    assert_int_equal(reports[stranger].leader_seen, 0);
    return leader;
}

static void a_shared_key_protects_and_a_wrong_one_is_kept_out(void **state)
{
    char options[2][128];
    for (int i = 0; i < 2; i++) {
        char path[96];
        FILE *file;
        snprintf(path, sizeof(path), "%s/key%d", directory, i);
        file = fopen(path, "w");
        fprintf(file, "a shared key, number %d\n", i);
        fclose(file);
        chmod(path, 0600);
        snprintf(options[i], sizeof(options[i]), "&key-file=%s", path);
    }
    spawn(3, options[1]); /* has another key: never to be a part of it */
    spawn(1, options[0]);
    spawn(2, options[0]);
    (void)wait_for_leader_without(3);
}

/* An authority and a certificate for each of the names, made by the openssl command. */
static void make_certificates(const char *const names[NODES])
{
    char command[2048];

    snprintf(command, sizeof(command),
             "cd '%s' && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
             "-keyout ca.key -out ca.pem -subj /CN=authority -days 2 2>/dev/null",
             directory);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < NODES; i++) {
        snprintf(command, sizeof(command),
                 "cd '%s' && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
                 "-keyout %d.key -out %d.csr -subj /CN=%s 2>/dev/null && "
                 "printf 'subjectAltName=DNS:%s' > %d.ext && "
                 "openssl x509 -req -in %d.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
                 "-out %d.pem -days 2 -extfile %d.ext 2>/dev/null",
                 directory, i + 1, i + 1, names[i], names[i], i + 1, i + 1, i + 1, i + 1);
        assert_int_equal(system(command), 0);
    }
}

static void spawn_certified(int number)
{
    char options[512];
    snprintf(options, sizeof(options), "&tls-cert=%s/%d.pem&tls-key=%s/%d.key&tls-ca=%s/ca.pem",
             directory, number, directory, number, directory);
    spawn(number, options);
}

static void certificates_bind_names_and_a_wrong_one_is_kept_out(void **state)
{
    static const char *const names[NODES] = {"n1", "n2", "somebody-else"};

    make_certificates(names);
    spawn_certified(3); /* the right authority, another name */
    spawn_certified(1);
    spawn_certified(2);
    int leader = wait_for_leader_without(3);
    end(3);
    end(leader); /* and among those who belong, a death is noticed */
    spawn_certified(leader);
    (void)wait_for_leader_other_than(0);
}

static void a_node_in_the_clear_has_no_say_among_those_who_speak_tls(void **state)
{
    static const char *const names[NODES] = {"n1", "n2", "n3"};

    make_certificates(names);
    spawn(3, "");
    spawn_certified(1);
    spawn_certified(2);
    (void)wait_for_leader_without(3);
}

/* Whoever learns a node's name and incarnation still cannot say that it is dead. */
static void a_forged_certificate_changes_nothing(void **state)
{
    uint8_t raw[CERTIFICATE_BYTES];

    spawn_all("&heartbeat-timeout=5s&lease=5s"); /* a busy machine is no reason */
    int leader = wait_for_leader_other_than(0);
    wait_until_all_follow(leader); /* so all of them listen */
    uint64_t epoch = reports[leader].epoch;
    char name[3] = {'n', (char)('0' + leader), 0};
    struct certificate forged = {.cluster = frame_cluster_of("test"),
                                 .node = raft_id_of(name),
                                 .incarnation = 1,
                                 .secret = {1, 2, 3}};
    certificate_encode(raw, &forged);
    for (int i = 0; i < NODES; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr = {htonl(INADDR_LOOPBACK)},
                                      .sin_port = htons((uint16_t)ports[i])};
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(write(fd, raw, sizeof(raw)), sizeof(raw));
        assert_int_equal(write(fd, "\xff\xff\xff\xff garbage", 12), 12);
        char byte;
        assert_true(read(fd, &byte, 1) <= 0); /* closed, since garbage is no frame */
        close(fd);
    }
    poll(NULL, 0, 300);
    assert_true(reports[leader].epoch == epoch);
}

/* Greets the node of that number, and gives the socket. */
static int greet(int number, const struct greeting *greeting)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((uint16_t)ports[number - 1])};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    struct buffer buffer;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    buffer_init(&buffer, 4096);
    frame_put_greeting(&buffer, frame_cluster_of("test"), greeting);
    assert_false(buffer.failed);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(write(fd, buffer.data, buffer.bytes), buffer.bytes);
    buffer_fini(&buffer);
    return fd;
}

/* The next frame of that type; anything else that comes first is of no interest here. */
static struct frame await_frame(int fd, enum frame_type type)
{
    static struct frame_scratch scratch;
    static struct buffer input;
    struct frame frame = {0};
    int used = 0;

    buffer_init(&input, FRAME_BYTES_MAX);
    do {
        uint8_t byte;
        ssize_t got;
        buffer_consume(&input, used > 0 ? (size_t)used : 0);
        while ((used = frame_take(&frame, &scratch, frame_cluster_of("test"), input.data,
                                  input.bytes)) == 0) {
            while ((got = read(fd, &byte, 1)) < 0 && errno == EINTR) {
            }
            assert_int_equal(got, 1);
            buffer_put(&input, &byte, 1);
        }
        assert_true(used > 0);
    } while (frame.type != type);
    frame.text = NULL; /* the bytes go */
    buffer_fini(&input);
    frame_scratch_fini(&scratch);
    return frame;
}

/* Whoever has the cluster's key, or is on its loopback, knows all that is in a greeting. */
static void a_forged_greeting_ends_no_promise_to_the_living(void **state)
{
    struct greeting forged = {.cluster = "test",
                              .birth = 1,
                              .incarnation = 1,
                              .lease = SPAN_S(5),
                              .heartbeat_timeout = SPAN_S(5)};

    spawn_all("&heartbeat-timeout=5s&lease=5s");
    int leader = wait_for_leader_other_than(0);
    int follower = leader % NODES + 1;
    wait_until_all_follow(leader);
    uint64_t epoch = reports[leader].epoch;
    snprintf(forged.name, sizeof(forged.name), "n%d", follower);
    snprintf(forged.expected, sizeof(forged.expected), "n%d", leader);
    forged.id = raft_id_of(forged.name);
    int fd = greet(leader, &forged); /* refused, but answered: so the leader's identity is known */
    struct greeting real = await_frame(fd, FRAME_GREETING).greeting;
    assert_int_equal(await_frame(fd, FRAME_TURNED_AWAY).request_id, REFUSAL_BIRTH);
    close(fd);
    forged = real;
    memset(forged.commitment, 7, sizeof(forged.commitment));
    snprintf(forged.expected, sizeof(forged.expected), "n%d", follower);
    for (int i = 0; i < 2; i++) { /* as the process that lives, and as one that started after it */
        fd = greet(follower, &forged);
        assert_int_equal(await_frame(fd, FRAME_TURNED_AWAY).request_id, REFUSAL_TWIN);
        close(fd);
        forged.incarnation++;
    }
    assert_true(reports[leader].epoch == epoch);
}

static void on_closed(void *userdata)
{
    *(int *)userdata += 1;
}

static void one_node_alone_leads_and_closes_in_order(void **state)
{
    uv_loop_t loop;
    struct one one;
    char url[512];
    struct baton_error error = {0};
    struct provider_config config = {.loop = &loop, .url = url};
    struct provider_campaign campaign = {
        .election = "job", .eligible = true, .on_event = on_event, .userdata = &one};
    int closed = 0;

    uv_loop_init(&loop);
    one.number = 1;
    snprintf(url, sizeof(url), "raft://127.0.0.1:0?node=alone&data=%s/alone", directory);
    one.cell = campaign.cell = lease_cell_new();
    if (raft_provider_ops.open(&one.provider, &config, &error) != 0 ||
        raft_provider_ops.campaign(&one.election, one.provider, &campaign, &error) != 0) {
        fail_msg("%s", error.message);
    }
    assert_true(lease_cell_is_leader(one.cell, NULL));
    assert_int_equal(reports[1].epoch, 0); /* told by the loop, not from inside campaign() */
    while (reports[1].epoch == 0) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    json_t *status = raft_provider_status(one.provider);
    assert_string_equal(json_string_value(json_object_get(status, "role")), "leader");
    json_decref(status);
    assert_int_equal(raft_provider_ops.campaign(&one.election, one.provider, &campaign, &error),
                     BATON_EEXIST);
    raft_provider_ops.close(one.provider, on_closed, &closed);
    assert_false(lease_cell_is_leader(one.cell, NULL));
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, 1);
    assert_int_equal(reports[1].loss - 1, BATON_LOSS_SHUTDOWN);
    assert_int_equal(uv_loop_close(&loop), 0);
    lease_cell_free(one.cell);
}

static void a_start_that_fails_leaves_no_election(void **state)
{
    struct sockaddr_in taken = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int closed = 0, other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = sizeof(taken);
    uv_loop_t loop;
    struct one one = {.number = 1};
    char url[512];
    struct baton_error error = {0};
    struct provider_config config = {.loop = &loop, .url = url};
    struct provider_campaign campaign = {
        .election = "job", .cell = lease_cell_new(), .on_event = on_event, .userdata = &one};

    assert_int_equal(bind(other, (struct sockaddr *)&taken, bytes) | listen(other, 1), 0);
    assert_int_equal(getsockname(other, (struct sockaddr *)&taken, &bytes), 0);
    uv_loop_init(&loop);
    snprintf(url, sizeof(url), "raft://127.0.0.1:%d?node=n&guardian=no&data=%s/taken",
             ntohs(taken.sin_port), directory);
    assert_int_equal(raft_provider_ops.open(&one.provider, &config, NULL), 0);
    assert_int_not_equal(raft_provider_ops.campaign(&one.election, one.provider, &campaign, &error),
                         0);
    assert_non_null(strstr(error.message, "listening on 127.0.0.1"));
    assert_null(one.election); /* its owner may be asked until it has closed */
    raft_provider_ops.close(one.provider, on_closed, &closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    lease_cell_free(campaign.cell);
    (void)close(other);
}

static void three_in_one_process_elect_and_close_without_a_leak(void **state)
{
    uv_loop_t loop;
    struct one ones[NODES];
    int closed = 0;
    int leader = 0;

    uv_loop_init(&loop);
    for (int i = 0; i < NODES; i++) {
        begin(&ones[i], &loop, i + 1, "");
    }
    instant deadline = instant_add(clock_now(), SPAN_MS(PATIENCE_MS));
    while (leader == 0 && instant_before(clock_now(), deadline)) {
        uv_run(&loop, UV_RUN_ONCE);
        for (int i = 1; i <= NODES; i++) {
            leader = reports[i].epoch > 0 ? i : leader;
        }
    }
    assert_int_not_equal(leader, 0);
    for (int i = 0; i < NODES; i++) {
        ones[i].provider->ops->close(ones[i].provider, on_closed, &closed);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, NODES);
    assert_int_equal(uv_loop_close(&loop), 0);
    for (int i = 0; i < NODES; i++) {
        lease_cell_free(ones[i].cell);
    }
}

#define WITH_NODES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_NODES(one_node_alone_leads_and_closes_in_order),
        WITH_NODES(a_start_that_fails_leaves_no_election),
        WITH_NODES(three_in_one_process_elect_and_close_without_a_leak),
        WITH_NODES(a_killed_leader_is_replaced_with_a_higher_epoch),
        WITH_NODES(a_stopped_leader_follows_when_it_wakes_up),
        WITH_NODES(a_resignation_hands_over),
        WITH_NODES(without_any_proof_the_lease_decides),
        WITH_NODES(a_shared_key_protects_and_a_wrong_one_is_kept_out),
        WITH_NODES(certificates_bind_names_and_a_wrong_one_is_kept_out),
        WITH_NODES(a_node_in_the_clear_has_no_say_among_those_who_speak_tls),
        WITH_NODES(who_survived_its_announced_crash_steps_down_and_never_leads_again),
        WITH_NODES(a_forged_certificate_changes_nothing),
        WITH_NODES(a_forged_greeting_ends_no_promise_to_the_living),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
