#include "guardian/releaser.h"

#include "base/clock.h"
#include "guardian/line.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

enum { DELIVERY_MAX_MS = 5000, RETRY_MS = 25, STACK_BYTES = 512 * 1024 };

/* One server, and the thread that sends to it. */
struct delivery {
    const struct releaser *releaser;
    struct line line;
    pthread_t thread;
    bool has_thread;
};

void releaser_init(struct releaser *releaser)
{
    *releaser = (struct releaser){0};
    for (size_t i = 0; i < COMMANDS_SERVERS_MAX; i++) {
        releaser->fds[i] = -1;
    }
}

/* The number of servers. The process's memory may be damaged, or even change: each number is read
 * once, and then checked. */
static uint32_t servers_of(const struct releaser *releaser)
{
    const struct commands *commands = releaser->commands;
    uint32_t count = commands && atomic_load(&commands->is_whole) == 1 ? commands->server_count : 0;

    return count <= COMMANDS_SERVERS_MAX ? count : 0;
}

static bool wants_tls(const struct releaser *releaser)
{
    return releaser->commands->tls.is_wanted != 0;
}

void releaser_connect(struct releaser *releaser)
{
    uint32_t count = servers_of(releaser);

    for (uint32_t i = 0; i < count; i++) {
        if (releaser->fds[i] < 0) {
            releaser->fds[i] = line_dial(&releaser->commands->servers[i]);
        }
    }
    if (count > 0 && wants_tls(releaser) && !releaser->secure) {
        releaser->secure =
            secure_new(&releaser->commands->tls); /* takes longer than connecting does */
    }
}

/* Commands gathered into few writes. */
struct batch {
    struct line *line;
    size_t used;
    char bytes[4 * COMMANDS_RENDERED_MAX];
};

static bool flush(struct batch *batch)
{
    bool sent = line_send(batch->line, batch->bytes, batch->used);
    batch->used = 0;
    return sent;
}

static bool put_command(struct batch *batch, const struct commands_text *text, const char *name,
                        uint64_t epoch)
{
    if (sizeof(batch->bytes) - batch->used < COMMANDS_RENDERED_MAX && !flush(batch)) {
        return false;
    }
    batch->used +=
        commands_render(batch->bytes + batch->used, COMMANDS_RENDERED_MAX, text, name, epoch);
    return true;
}

static bool send_all(const struct releaser *releaser, struct line *line)
{
    const struct commands *commands = releaser->commands;
    uint32_t count = atomic_load(&commands->slot_count);
    struct batch batch = {.line = line, .used = commands->greeting_bytes};

    if (batch.used > sizeof(commands->greeting)) {
        return false;
    }
    memcpy(batch.bytes, commands->greeting, batch.used);
    count = count < releaser->slots_max ? count : releaser->slots_max;
    /* Releases first: other processes wait for the locks. */
    for (uint32_t i = 0; i < count; i++) {
        const struct commands_slot *slot = &commands->slots[i];
        uint64_t epoch = atomic_load(&slot->epoch);
        if (atomic_load(&slot->is_used) == 1 && epoch > 0 &&
            !put_command(&batch, &commands->release, slot->name, epoch)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct commands_slot *slot = &commands->slots[i];
        if (atomic_load(&slot->is_used) == 1 &&
            !put_command(&batch, &commands->leave, slot->name, 0)) {
            return false;
        }
    }
    return flush(&batch);
}

static void *deliver(void *argument)
{
    struct delivery *delivery = argument;
    struct line *line = &delivery->line;

    while (instant_before(clock_now(), line->end)) {
        if (line_open(line) && send_all(delivery->releaser, line) && line_end(line)) {
            break;
        }
        line_drop(line);
        (void)poll(NULL, 0, RETRY_MS);
    }
    line_drop(line);
    return NULL;
}

static void begin(struct delivery *delivery, struct releaser *releaser, uint32_t number,
                  instant end)
{
    *delivery = (struct delivery){.releaser = releaser,
                                  .line = {.server = &releaser->commands->servers[number],
                                           .wants_tls = wants_tls(releaser),
                                           .secure = releaser->secure,
                                           .fd = releaser->fds[number],
                                           .end = end}};
    releaser->fds[number] = -1;
}

/* This thread serves the last server, and every server without a thread of its own. */
void releaser_deliver(struct releaser *releaser)
{
    struct delivery deliveries[COMMANDS_SERVERS_MAX];
    instant end = instant_add(clock_now(), SPAN_MS(DELIVERY_MAX_MS));
    uint32_t count = servers_of(releaser);
    pthread_attr_t attributes;
    bool may_part;

    releaser_connect(releaser);
    if (count > 0 && wants_tls(releaser) && !releaser->secure) {
        return; /* never in plain text */
    }
    may_part = pthread_attr_init(&attributes) == 0 &&
               pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0;
    for (uint32_t i = 0; i < count; i++) {
        struct delivery *delivery = &deliveries[i];
        begin(delivery, releaser, i, end);
        delivery->has_thread =
            may_part && i + 1 < count &&
            pthread_create(&delivery->thread, &attributes, deliver, delivery) == 0;
    }
    for (uint32_t i = count; i > 0; i--) {
        if (!deliveries[i - 1].has_thread) {
            (void)deliver(&deliveries[i - 1]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (deliveries[i].has_thread) {
            (void)pthread_join(deliveries[i].thread, NULL);
        }
    }
}
