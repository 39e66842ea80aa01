/* What an agent says to libbaton: after a hello that is right, any bytes. */
#include "provider/provider.h"

#include "provider/lease_cell.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { TURNS = 8 };

static const char greeting[] =
    "{\"id\":3,\"ok\":true,\"version\":1,\"name\":\"n\",\"lifetime_ms\":1e6,\"renew_ms\":1e5}\n"
    "{\"event\":\"session\",\"session\":\"1\"}\n";

static uv_loop_t loop;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listener;
static char url[160];

static void expect(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void clean_up(void)
{
    (void)unlink(address.sun_path);
}

static void begin(void)
{
    expect(uv_loop_init(&loop) == 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/baton-fuzz-reply-%d.sock",
                   (int)getpid());
    (void)snprintf(url, sizeof(url), "agent:%s", address.sun_path);
    (void)unlink(address.sun_path);
    (void)atexit(clean_up);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    expect(bind(listener, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
           listen(listener, 16) == 0);
}

static void on_event(void *userdata, const struct baton_event *event)
{
    (void)userdata;
    (void)event;
}

static void on_values(void *userdata, int code, const struct provider_value *values, size_t count)
{
    (void)userdata;
    for (size_t i = 0; code == BATON_OK && i < count; i++) {
        expect(values[i].key != NULL && (values[i].data != NULL || values[i].bytes == 0));
    }
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    (void)userdata;
    (void)revision;
    expect(error != NULL && error->code == code);
}

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    (void)userdata;
    (void)code;
    (void)members;
    (void)count;
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    (void)userdata;
    expect(strcmp(channel, "c") == 0 && (data != NULL || bytes == 0));
}

static void on_closed(void *userdata)
{
    *(bool *)userdata = true;
}

/* The provider of the input before may have connected once more before it closed. */
static void leave_nothing_waiting(void)
{
    int left;

    while ((left = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        (void)close(left);
    }
}

static void turn(void)
{
    for (int i = 0; i < TURNS; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct provider_config config = {.loop = &loop, .url = url, .node = "n"};
    struct lease_cell *cell = lease_cell_new();
    const struct provider_campaign campaign = {
        .election = "e", .eligible = true, .cell = cell, .on_event = on_event};
    struct provider_election *election;
    struct provider *provider;
    struct baton_error error;
    bool is_closed = false;
    int client;

    if (!listener) {
        begin();
    }
    leave_nothing_waiting();
    expect(provider_open(&provider, &config, &error) == BATON_OK);
    expect(provider->ops->campaign(&election, provider, &campaign, &error) == BATON_OK);
    expect(provider->ops->watch(provider, "k", on_values, NULL, &error) == BATON_OK);
    expect(provider->ops->subscribe(provider, "c", on_message, NULL, &error) == BATON_OK);
    expect(provider->ops->members(election, on_members, NULL, &error) == BATON_OK);
    expect(provider->ops->get(provider, "k", on_values, NULL, &error) == BATON_OK);
    turn();
    client = accept(listener, NULL, NULL);
    expect(client >= 0 && send(client, greeting, sizeof(greeting) - 1, MSG_NOSIGNAL) > 0);
    turn();
    expect(provider->ops->put(provider, "k", "v", 1, 0, SPAN_NS(0), on_put, NULL, &error) == 0);
    expect(provider->ops->list(provider, "k", on_values, NULL, &error) == BATON_OK);
    if (bytes < (64u << 10)) {
        (void)send(client, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    turn();
    (void)close(client);
    turn();
    provider->ops->close(provider, on_closed, &is_closed);
    while (!is_closed) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    lease_cell_free(cell);
    return 0;
}
