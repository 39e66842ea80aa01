#include "history.h"

#include "acts.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    CLIENTS = 3,
    KEYS = 3,     /* in use at a time */
    WINDOW_S = 4, /* for so long, and then read for as long */
    REST_NS = 20000000,
    READS_OF_10 = 4, /* of ten requests; the rest writes */
    SWAPS_OF_10 = 4, /* on the condition that the value is the one read last */
    LATE_OF_10 = 2,  /* of the keys of the window before */
};

/* Little-endian, as linear.py reads it. One at the beginning of a request, one at its end. */
struct record {
    uint64_t client; /* a thread of one process: it has one request at a time */
    int64_t at_ns;
    uint64_t value;    /* to be written; of a read: what was there, 0: no such key */
    uint64_t expected; /* swap: the value that must be there, 0: no such key */
    uint64_t revision; /* of a value that was read, or that a swap expects */
    uint32_t key;
    uint8_t kind;  /* 'r', 'w', 's' */
    uint8_t phase; /* 'b': begins; 'y': done; 'n': a swap was refused; '?': not known */
    uint8_t unused[2];
};

struct client {
    struct baton *baton;
    uint64_t name, written;
    unsigned dice;
    uint32_t read_key; /* what was read last */
    uint64_t read_value, read_revision;
};

static int records_fd = -1;

static void record(const struct client *client, struct record *record, char phase)
{
    record->client = client->name;
    record->at_ns = acts_clock();
    record->phase = (uint8_t)phase;
    if (write(records_fd, record, sizeof(*record)) != (ssize_t)sizeof(*record)) {
        perror("history");
        _exit(1);
    }
}

static bool is_drawn(struct client *client, int of_10)
{
    return rand_r(&client->dice) % 10 < of_10;
}

static uint32_t draw_key(struct client *client)
{
    uint32_t window = (uint32_t)(acts_clock() / 1000000000 / WINDOW_S);

    window -= is_drawn(client, LATE_OF_10);
    return window * KEYS + (uint32_t)rand_r(&client->dice) % KEYS;
}

static void read_key(struct client *client, uint32_t key, const char *name)
{
    struct record asked = {.key = key, .kind = 'r'};
    struct baton_value *found = NULL;
    int code;

    record(client, &asked, 'b');
    code = baton_get(client->baton, name, &found, NULL);
    if (code == BATON_OK && found->bytes == sizeof(asked.value)) {
        memcpy(&asked.value, found->data, sizeof(asked.value));
        asked.revision = found->revision;
    }
    if (code == BATON_OK || code == BATON_ENOENT) {
        client->read_key = key;
        client->read_value = asked.value;
        client->read_revision = asked.revision;
    }
    record(client, &asked, code == BATON_OK || code == BATON_ENOENT ? 'y' : '?');
    baton_values_free(found, found ? 1 : 0);
}

static void write_key(struct client *client, uint32_t key, const char *name)
{
    struct record asked = {.key = key, .kind = 'w', .value = client->name + ++client->written};
    uint64_t revision = BATON_ANY_REVISION;
    int code;

    if (client->read_key == key && is_drawn(client, SWAPS_OF_10)) {
        asked.kind = 's';
        asked.expected = client->read_value;
        asked.revision = revision = client->read_revision;
    }
    record(client, &asked, 'b');
    code = baton_put(client->baton, name, &asked.value, sizeof(asked.value), revision, 0, NULL);
    record(client, &asked, code == BATON_OK ? 'y' : code == BATON_ECONFLICT ? 'n' : '?');
}

static void *request_on_and_on(void *argument)
{
    struct client *client = argument;

    for (;;) {
        uint32_t key = draw_key(client);
        struct timespec rest = {.tv_nsec = rand_r(&client->dice) % REST_NS};
        char name[32];
        (void)snprintf(name, sizeof(name), "history/%u", key);
        if (is_drawn(client, READS_OF_10)) {
            read_key(client, key, name);
        } else {
            write_key(client, key, name);
        }
        (void)nanosleep(&rest, NULL);
    }
    return NULL;
}

void history_begin(struct baton *baton, const char *records)
{
    static struct client clients[CLIENTS];
    uint64_t names[CLIENTS];
    pthread_t thread;

    records_fd = open(records, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (records_fd < 0 || getrandom(names, sizeof(names), 0) != (ssize_t)sizeof(names)) {
        perror(records);
        _exit(1);
    }
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){
            .baton = baton, .name = names[i] << 24, .dice = (unsigned)(names[i] >> 32)};
        if (pthread_create(&thread, NULL, request_on_and_on, &clients[i]) != 0) {
            perror("history");
            _exit(1);
        }
    }
}
