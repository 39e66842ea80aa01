#include "guardian/teller.h"

#include "base/clock.h"
#include "guardian/line.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

enum { DELIVERY_MAX_MS = 5000, RETRY_MS = 25, STACK_BYTES = 512 * 1024 };

/* One server, and the thread that tells it. */
struct errand {
    const struct teller *teller;
    struct line line;
    pthread_t thread;
    bool has_thread;
};

void teller_init(struct teller *teller)
{
    *teller = (struct teller){0};
    for (size_t i = 0; i < WORDS_SERVERS_MAX; i++) {
        teller->fds[i] = -1;
    }
}

/* How many there are to be told. What the process wrote may be damaged, or even change: each number
 * is read once, and then looked at. */
static uint32_t servers_of(const struct teller *teller)
{
    const struct words *words = teller->words;
    uint32_t count = words && atomic_load(&words->is_whole) == 1 ? words->server_count : 0;

    return count <= WORDS_SERVERS_MAX ? count : 0;
}

static bool wants_tls(const struct teller *teller)
{
    return teller->words->tls.is_wanted != 0;
}

void teller_connect(struct teller *teller)
{
    uint32_t count = servers_of(teller);

    for (uint32_t i = 0; i < count; i++) {
        if (teller->fds[i] < 0) {
            teller->fds[i] = line_dial(&teller->words->servers[i]);
        }
    }
    if (count > 0 && wants_tls(teller) && !teller->secure) {
        teller->secure = secure_new(&teller->words->tls); /* which takes longer than to connect */
    }
}

/* Requests gathered into few writes. */
struct batch {
    struct line *line;
    size_t used;
    char bytes[4 * WORDS_RENDERED_MAX];
};

static bool flush(struct batch *batch)
{
    bool sent = line_say(batch->line, batch->bytes, batch->used);
    batch->used = 0;
    return sent;
}

static bool say(struct batch *batch, const struct words_text *text, const char *name,
                uint64_t epoch)
{
    if (sizeof(batch->bytes) - batch->used < WORDS_RENDERED_MAX && !flush(batch)) {
        return false;
    }
    batch->used += words_render(batch->bytes + batch->used, WORDS_RENDERED_MAX, text, name, epoch);
    return true;
}

static bool say_all(const struct teller *teller, struct line *line)
{
    const struct words *words = teller->words;
    uint32_t count = atomic_load(&words->slot_count);
    struct batch batch = {.line = line, .used = words->greeting_bytes};

    if (batch.used > sizeof(words->greeting)) {
        return false;
    }
    memcpy(batch.bytes, words->greeting, batch.used);
    count = count < teller->slots_max ? count : teller->slots_max;
    /* Leases before seats: somebody waits for them. */
    for (uint32_t i = 0; i < count; i++) {
        const struct words_slot *slot = &words->slots[i];
        uint64_t epoch = atomic_load(&slot->epoch);
        if (atomic_load(&slot->is_used) == 1 && epoch > 0 &&
            !say(&batch, &words->lease, slot->name, epoch)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct words_slot *slot = &words->slots[i];
        if (atomic_load(&slot->is_used) == 1 && !say(&batch, &words->seat, slot->name, 0)) {
            return false;
        }
    }
    return flush(&batch);
}

static void *deliver(void *argument)
{
    struct errand *errand = argument;
    struct line *line = &errand->line;

    while (instant_before(clock_now(), line->end)) {
        if (line_open(line) && say_all(errand->teller, line) && line_end(line)) {
            break;
        }
        line_drop(line);
        (void)poll(NULL, 0, RETRY_MS);
    }
    line_drop(line);
    return NULL;
}

static void begin(struct errand *errand, struct teller *teller, uint32_t number, instant end)
{
    *errand = (struct errand){.teller = teller,
                              .line = {.server = &teller->words->servers[number],
                                       .wants_tls = wants_tls(teller),
                                       .secure = teller->secure,
                                       .fd = teller->fds[number],
                                       .end = end}};
    teller->fds[number] = -1;
}

/* The last one is told by this thread, and so is whoever gets none of its own. */
void teller_deliver(struct teller *teller)
{
    struct errand errands[WORDS_SERVERS_MAX];
    instant end = instant_add(clock_now(), SPAN_MS(DELIVERY_MAX_MS));
    uint32_t count = servers_of(teller);
    pthread_attr_t attributes;
    bool may_part;

    teller_connect(teller);
    if (count > 0 && wants_tls(teller) && !teller->secure) {
        return; /* never in the clear */
    }
    may_part = pthread_attr_init(&attributes) == 0 &&
               pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0;
    for (uint32_t i = 0; i < count; i++) {
        struct errand *errand = &errands[i];
        begin(errand, teller, i, end);
        errand->has_thread = may_part && i + 1 < count &&
                             pthread_create(&errand->thread, &attributes, deliver, errand) == 0;
    }
    for (uint32_t i = count; i > 0; i--) {
        if (!errands[i - 1].has_thread) {
            (void)deliver(&errands[i - 1]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (errands[i].has_thread) {
            (void)pthread_join(errands[i].thread, NULL);
        }
    }
}
