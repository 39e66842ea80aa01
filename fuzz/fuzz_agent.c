/* A client of the agent: it sends the bytes, after a hello if the first of them is odd, and hangs
 * up. Whatever it sends, each line that it gets is a JSON object, and another client is answered.
 */
#include "agent/agent.h"
#include "net/local.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { TURNS_MAX = 64, ROOM = 1 << 20 };

static const char hello[] = "{\"id\":1,\"do\":\"hello\",\"version\":1,\"name\":\"fuzz\"}\n";
static const char bye[] = "\n{\"id\":4711,\"do\":\"bye\"}\n";
static const char question[] = "{\"id\":1,\"do\":\"status\"}\n";

static uv_loop_t loop;
static struct agent *agent;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int witness;

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

static int dial(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    expect(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

static void begin(void)
{
    static struct provider_config config = {.loop = &loop, .url = "memory:fuzz", .node = "agent"};
    struct provider *provider;
    struct agent_config about = {.loop = &loop,
                                 .provider_config = &config,
                                 .name = "agent",
                                 .place = {address.sun_path, 0600, (gid_t)-1},
                                 .client_lease = SPAN_MS(200)};

    expect(uv_loop_init(&loop) == 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/baton-fuzz-agent-%d.sock",
                   (int)getpid());
    (void)atexit(clean_up);
    expect(provider_open(&provider, &config, NULL) == 0);
    about.provider = provider;
    expect(agent_open(&agent, &about, NULL) == 0);
    witness = dial();
}

static void run(void)
{
    for (int i = 0; i < 4; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
}

/* A last line may be cut short by the end of the connection. */
static void check_lines(const char *text, size_t bytes)
{
    const char *end;

    while (bytes > 0 && (end = memchr(text, '\n', bytes)) != NULL) {
        size_t length = (size_t)(end - text);
        json_t *json = json_loadb(text, length, JSON_ALLOW_NUL, NULL);
        long raw = local_raw_bytes(json);
        expect(json_is_object(json) && raw >= 0);
        json_decref(json);
        length += 1 + ((size_t)raw < bytes - length - 1 ? (size_t)raw : bytes - length - 1);
        text += length;
        bytes -= length;
    }
}

static void read_all(int fd)
{
    static char reply[ROOM];
    size_t used = 0;
    ssize_t count = 1;

    for (int i = 0; i < TURNS_MAX && count != 0 && used < sizeof(reply); i++) {
        run();
        count = recv(fd, reply + used, sizeof(reply) - used, MSG_DONTWAIT);
        used += count > 0 ? (size_t)count : 0;
    }
    check_lines(reply, used);
}

static void ask_as_another(void)
{
    char reply[4096];

    expect(send(witness, question, sizeof(question) - 1, MSG_NOSIGNAL) > 0);
    run();
    expect(recv(witness, reply, sizeof(reply), MSG_DONTWAIT) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int fd;

    if (!agent) {
        begin();
    }
    fd = dial();
    if (bytes > 0 && data[0] % 2 == 1) {
        (void)send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL);
        run();
    }
    if (bytes > 1) {
        (void)send(fd, data + 1, bytes - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    run();
    (void)send(fd, bye, sizeof(bye) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    read_all(fd);
    (void)close(fd);
    ask_as_another();
    return 0;
}
