/* Last words: what the guardian says, when its process has died, to the servers that keep the
 * process's leases, so that they need not run out. Requests in the Redis protocol, made of texts
 * that the library knows and this file does not understand. Every server is told everything: one
 * that has nothing to do with a lease refuses, and that does no harm.
 *
 *   text   EVALSHA · 3a… · 4 · \1:master · \1:heartbeat · …       \1 is the name,
 *   slot   name "billing", epoch 1795243031863                     \2 the epoch
 *
 * All of it lies in memory that the process and its guardian share, so that a lease taken or lost
 * is one word written, and no call. A process that is dying may have stopped in the middle of
 * writing: what is not marked as whole is not said, and that lease runs out as it would have.
 */
#ifndef GUARDIAN_WORDS_H
#define GUARDIAN_WORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    WORDS_NAME_MAX = 64,       /* with the NUL */
    WORDS_TEXT_MAX = 1024,     /* of one request, before it is filled in */
    WORDS_GREETING_MAX = 2048, /* who we are, said once at first */
    WORDS_RENDERED_MAX = 4096, /* of one request */
    WORDS_SLOTS_MAX = 16384,
    WORDS_SERVERS_MAX = 64,
    WORDS_HOST_MAX = 256,
    WORDS_FILE_MAX = 1024,
};

struct words_text {
    uint32_t count; /* of words; 0: nothing is said */
    uint32_t bytes;
    char words[WORDS_TEXT_MAX]; /* one after another, a NUL after each */
};

struct words_slot {
    _Atomic uint64_t epoch; /* 0: no lease is held */
    _Atomic uint32_t is_used;
    char name[WORDS_NAME_MAX];
};

struct words_server {
    socklen_t address_bytes;
    struct sockaddr_storage address;
    char name[WORDS_HOST_MAX]; /* that its certificate must have; "": none */
};

/* Names of files, from the root; "": none. */
struct words_tls {
    uint32_t is_wanted;
    uint32_t is_unverified; /* whoever answers is taken for the server */
    char ca[WORDS_FILE_MAX];
    char certificate[WORDS_FILE_MAX];
    char key[WORDS_FILE_MAX];
};

struct words {
    _Atomic uint32_t is_whole; /* what follows, up to the slots, may be said */
    uint32_t server_count;
    struct words_server servers[WORDS_SERVERS_MAX];
    struct words_tls tls;
    uint32_t greeting_bytes;
    char greeting[WORDS_GREETING_MAX];
    struct words_text lease; /* said for each slot that holds one */
    struct words_text seat;  /* said for each slot in use */
    _Atomic uint32_t slot_count;
    struct words_slot slots[];
};

/* Shared memory that `slots` fit into. */
size_t words_bytes(uint32_t slots);

/* False: no room. */
bool words_set_text(struct words_text *ret, const char *const *words, size_t count);

/* The request as bytes to send; how many. 0: it does not fit, or the text is not sound: the
 * process may have died of memory that was written over. */
size_t words_render(char *ret, size_t ret_bytes, const struct words_text *text, const char *name,
                    uint64_t epoch);

#endif
