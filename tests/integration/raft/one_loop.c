#include "one_loop.h"

#include "lib/process.h"
#include "provider/raft/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

uv_loop_t loop;
char folder[64];
int ports[NODES];
struct node nodes[NODES];
struct fake fake;

static uv_timer_t wake;
static const char *mode;
static const char *settings;
static char peers[256];

/* ---- Nodes ----------------------------------------------------------------------------------- */

void ignore_event(void *userdata, const struct baton_event *event)
{
}

void open_node_with(int number, const char *metadata)
{
    struct node *node = &nodes[number];
    char url[1024], name[8], data[80];
    const struct provider_config config = {.loop = &loop, .url = url, .node = name};
    struct provider_campaign campaign = {.election = "race",
                                         .eligible = true,
                                         .metadata = metadata,
                                         .on_event = ignore_event,
                                         .userdata = node};

    (void)snprintf(name, sizeof(name), "n%d", number);
    (void)snprintf(data, sizeof(data), "%s/%s", folder, name);
    (void)mkdir(data, 0700);
    (void)snprintf(url, sizeof(url),
                   "raft://127.0.0.1:%d?%s=test&preset=fast&heartbeat-timeout=3s&lease=3s"
                   "&guardian=no&data=%s%s&peers=%s",
                   ports[number], mode, data, settings, peers);
    ASSERT_OK(provider_open(&node->provider, &config, failure));
    node->cell = campaign.cell = lease_cell_new();
    ASSERT_OK(node->provider->ops->campaign(&node->election, node->provider, &campaign, failure));
}

void open_node(int number)
{
    open_node_with(number, NULL);
}

void on_node_closed(void *node)
{
    ((struct node *)node)->is_closed = true;
}

void close_node(int number)
{
    struct node *node = &nodes[number];

    if (node->provider) {
        node->is_closed = false;
        node->provider->ops->close(node->provider, on_node_closed, node);
        AWAIT(node->is_closed);
        lease_cell_free(node->cell);
        *node = (struct node){0};
    }
}

json_int_t counter(int number, const char *name)
{
    json_t *status = raft_provider_status(nodes[number].provider);
    json_int_t value =
        json_integer_value(json_object_get(json_object_get(status, "counters"), name));

    json_decref(status);
    return value;
}

void await_links(void)
{
    for (int i = 0; i < NODES; i++) {
        AWAIT(counter(i, "connects") >= NODES - 1);
    }
}

bool one_leads(void)
{
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].cell && lease_cell_is_leader(nodes[i].cell, NULL)) {
            return true;
        }
    }
    return false;
}

void open_all(const char *with_mode, const char *with_settings)
{
    mode = with_mode;
    settings = with_settings;
    (void)snprintf(peers, sizeof(peers), "n0@127.0.0.1:%d,n1@127.0.0.1:%d,n2@127.0.0.1:%d",
                   ports[0], ports[1], ports[2]);
    for (int i = 0; i < NODES; i++) {
        open_node(i);
    }
    await_links();
    AWAIT(one_leads());
}

static void on_wake(uv_timer_t *timer)
{
}

int one_loop_set_up(void **state)
{
    (void)signal(SIGPIPE, SIG_IGN);
    fake.listener = fake.fd = -1;
    process_make_folder(folder, sizeof(folder));
    process_free_ports(ports, NODES);
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)uv_timer_init(&loop, &wake);
    (void)uv_timer_start(&wake, on_wake, 1, 1);
    return 0;
}

/* ---- The member that is the test ------------------------------------------------------------- */

static struct greeting fake_greeting(const char *expected)
{
    struct greeting ours = fake.theirs; /* the group's identity and settings */

    (void)snprintf(ours.name, sizeof(ours.name), "%s", fake.name);
    (void)snprintf(ours.expected, sizeof(ours.expected), "%s", expected);
    ours.id = raft_id_of(fake.name);
    ours.birth = 77;
    ours.incarnation = fake.incarnation;
    ours.term = ours.last_index = ours.commit_index = 0;
    ours.pid = 1;
    ours.pid_namespace = 1;
    ours.flags = 0;
    memset(ours.boot_id, 0, sizeof(ours.boot_id));
    memset(ours.commitment, (int)fake.incarnation, sizeof(ours.commitment));
    return ours;
}

/* The loop runs meanwhile: what the socket does not take now waits for the node to read. */
void fake_write(int fd, const struct buffer *buffer)
{
    size_t sent = 0;

    assert_false(buffer->failed);
    while (sent < buffer->bytes) {
        ssize_t bytes = send(fd, buffer->data + sent, buffer->bytes - sent, MSG_NOSIGNAL);
        if (bytes < 0 && errno != EAGAIN) {
            return; /* the node has closed it */
        }
        sent += bytes > 0 ? (size_t)bytes : 0;
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
}

void fake_greet(int fd, const char *expected)
{
    struct greeting ours = fake_greeting(expected);
    struct buffer buffer;

    buffer_init(&buffer, 4096);
    frame_put_greeting(&buffer, frame_cluster_of("test"), &ours);
    fake_write(fd, &buffer);
    buffer_fini(&buffer);
}

static void fake_take(const struct frame *frame)
{
    const void *data;

    if (frame->type == FRAME_GREETING) {
        fake.theirs = frame->greeting;
    } else if (frame->type == FRAME_DESCRIPTION) {
        fake.descriptions++;
    } else if (frame->type == FRAME_PART) {
        fake.parts++;
        if (assembly_take(&fake.assembly, &frame->part, &data)) {
            fake.messages++;
            assembly_clear(&fake.assembly);
        }
    } else if (frame->type == FRAME_MESSAGE && frame->message.type == RAFT_MSG_HEARTBEAT) {
        fake.heartbeats++;
        if (fake.parts > 0 && fake.parts_before_heartbeat < 0) {
            fake.parts_before_heartbeat = fake.parts;
        }
    }
}

bool fake_read(int fd)
{
    ssize_t bytes;
    int used;

    do {
        struct frame frame;
        uint8_t data[65536];
        bytes = recv(fd, data, sizeof(data), MSG_DONTWAIT);
        fake.is_ended |= bytes == 0 || (bytes < 0 && errno == ECONNRESET);
        buffer_put(&fake.input, data, bytes > 0 ? (size_t)bytes : 0);
        while ((used = frame_take(&frame, &fake.scratch, frame_cluster_of("test"), fake.input.data,
                                  fake.input.bytes)) > 0) {
            fake_take(&frame);
            buffer_consume(&fake.input, (size_t)used);
        }
        assert_int_equal(used, 0);
    } while (bytes > 0);
    return true;
}

void fake_begin(void)
{
    const int room = 8192; /* little waits in the kernel */

    memset(&fake, 0, sizeof(fake));
    fake.parts_before_heartbeat = -1;
    fake.name = "n1";
    fake.incarnation = 5;
    fake.fd = -1;
    buffer_init(&fake.input, 2 * FRAME_BYTES_MAX);
    assembly_init(&fake.assembly);
    fake.listener = process_listen(&ports[1]);
    assert_int_equal(setsockopt(fake.listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
    assert_int_equal(fcntl(fake.listener, F_SETFL, O_NONBLOCK), 0);
    mode = "cluster";
    settings = "";
    (void)snprintf(peers, sizeof(peers), "n0@127.0.0.1:%d*9,n1@127.0.0.1:%d,n2@127.0.0.1:%d",
                   ports[0], ports[1], ports[2]);
    open_node(0);
    AWAIT((fake.fd = accept(fake.listener, NULL, NULL)) >= 0);
    AWAIT(fake_read(fake.fd) && fake.theirs.id != 0);
    assert_string_equal(fake.theirs.name, "n0");
}

int fake_dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((uint16_t)ports[0])};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    fake_greet(fd, "n0");
    return fd;
}

void fake_await_refusal(int fd, json_int_t refusals)
{
    fake.is_ended = false;
    buffer_clear(&fake.input);
    AWAIT(fake_read(fd) && fake.is_ended);
    assert_int_equal(counter(0, "refused_content"), refusals);
    (void)close(fd);
}

static void fake_end(void)
{
    if (fake.listener < 0) {
        return;
    }
    if (fake.fd >= 0) {
        (void)close(fake.fd);
    }
    (void)close(fake.listener);
    buffer_fini(&fake.input);
    assembly_fini(&fake.assembly);
    frame_scratch_fini(&fake.scratch);
}

/* ---- The end --------------------------------------------------------------------------------- */

int one_loop_tear_down(void **state)
{
    fake_end();
    for (int i = 0; i < NODES; i++) {
        close_node(i);
    }
    uv_close((uv_handle_t *)&wake, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    process_remove_folder(folder);
    return 0;
}
