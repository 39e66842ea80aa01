/* The commands that the guardian sends to the servers when its process has died: they release the
 * process's locks, so that no lease has to run out, and remove its entries from the registry. The
 * commands are requests in the Redis protocol; the library provides their arguments, and this file
 * does not interpret them. Every server gets every command: a server without that lock refuses,
 * which does no harm.
 *
 *   text   EVALSHA · 3a… · 4 · \1:master · \1:heartbeat · …       \1 is the name,
 *   slot   name "billing", epoch 1795243031863                     \2 the epoch
 *
 * All of it lies in memory that the process and its guardian share: taking or losing a lease writes
 * one machine word, and makes no call. A dying process may have stopped in the middle of writing:
 * the guardian does not send what is not marked as whole, and that lease runs out.
 */
#ifndef GUARDIAN_COMMANDS_H
#define GUARDIAN_COMMANDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    COMMANDS_NAME_MAX = 64,       /* with the NUL */
    COMMANDS_TEXT_MAX = 1024,     /* bytes of one template */
    COMMANDS_GREETING_MAX = 2048, /* the first commands of a connection: AUTH, SELECT */
    COMMANDS_RENDERED_MAX = 4096, /* bytes of one command with its placeholders filled in */
    COMMANDS_SLOTS_MAX = 16384,
    COMMANDS_SERVERS_MAX = 64,
    COMMANDS_HOST_MAX = 256,
    COMMANDS_FILE_MAX = 1024,
};

struct commands_text {
    uint32_t count; /* of arguments; 0: no command is sent */
    uint32_t bytes;
    char arguments[COMMANDS_TEXT_MAX]; /* each followed by a NUL */
};

struct commands_slot {
    _Atomic uint64_t epoch; /* 0: no lease is held */
    _Atomic uint32_t is_used;
    char name[COMMANDS_NAME_MAX];
};

struct commands_server {
    socklen_t address_bytes;
    struct sockaddr_storage address;
    char name[COMMANDS_HOST_MAX]; /* that its certificate must have; "": any */
};

/* Absolute paths of files; "": none. */
struct commands_tls {
    uint32_t is_wanted;
    uint32_t is_unverified; /* any server that answers is accepted */
    char ca[COMMANDS_FILE_MAX];
    char certificate[COMMANDS_FILE_MAX];
    char key[COMMANDS_FILE_MAX];
};

struct commands {
    _Atomic uint32_t is_whole; /* 1: the fields below, up to the slots, are complete */
    uint32_t server_count;
    struct commands_server servers[COMMANDS_SERVERS_MAX];
    struct commands_tls tls;
    uint32_t greeting_bytes;
    char greeting[COMMANDS_GREETING_MAX];
    struct commands_text release; /* sent for each slot that holds a lease */
    struct commands_text leave;   /* sent for each slot in use */
    _Atomic uint32_t slot_count;
    struct commands_slot slots[];
};

/* The size of the shared memory for so many slots. */
size_t commands_bytes(uint32_t slots);

/* False: the arguments do not fit. */
bool commands_set_text(struct commands_text *ret, const char *const *arguments, size_t count);

/* Writes the command as bytes to send, and returns how many. 0: it does not fit, or the text is
 * invalid: the process may have died of overwritten memory. */
size_t commands_render(char *ret, size_t ret_bytes, const struct commands_text *text,
                       const char *name, uint64_t epoch);

/* ---- As the library gives them ------------------------------------------------------------------
 */

/* The TLS options of the process itself; relative paths are resolved from its present directory. */
struct guardian_tls {
    const char *ca, *certificate, *key; /* "": the system's CAs; no certificate */
    bool is_unverified;
};

struct guardian_commands {
    const char *const *addresses;   /* of each server: "HOST:PORT", numeric, or a socket's path */
    size_t address_count;           /* at most COMMANDS_SERVERS_MAX */
    const struct guardian_tls *tls; /* NULL: no TLS. Only with .speaks_tls */
    const char *const *names;       /* with TLS: the name in each certificate; "": any */
    const void *greeting;
    size_t greeting_bytes;
    const char *const *release; /* the arguments of the command for a lease that is held */
    size_t release_count;
    const char *const *leave; /* the arguments of the command for each slot in use */
    size_t leave_count;
};

enum { GUARDIAN_NO_SLOT = -1 }; /* accepted by the functions that take a slot */

#endif
