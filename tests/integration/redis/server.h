/* Real Redis servers for tests: started with arguments of the test's own, ended by pid. */
#ifndef TESTS_INTEGRATION_REDIS_SERVER_H
#define TESTS_INTEGRATION_REDIS_SERVER_H

#include "lib/patience.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <sys/types.h>

enum {
    SERVER_WORDS_MAX = 40,
    SERVER_HISTORY_BYTES = 41, /* forty digits and the end of the string */
};

struct server {
    pid_t pid; /* 0: not running */
    int port;  /* stays the same across restarts; 0: it has no port in the clear */
    char folder[128];
    char socket[160]; /* a Unix socket, always there */
    char *words[SERVER_WORDS_MAX];
    int count;
    char texts[SERVER_WORDS_MAX][256];
};

/* Adds an option to the command line: a name without "--", and its value. */
void server_set(struct server *server, const char *name, const char *value);
/* The server stores nothing on disk, and its folder is new. Call server_set next, then
 * server_start. */
void server_init(struct server *server);
/* Makes a Sentinel instead of a server: it monitors the master at this port as "ours". `more` is
 * added to its configuration; may be NULL. */
void server_init_sentinel(struct server *server, int master_port, int quorum, const char *more);
/* Starts it and waits until it answers. */
void server_start(struct server *server);
void server_kill(struct server *server); /* kill -9 */
/* Ends it and removes its folder. */
void server_fini(struct server *server);

/* Fixtures of a test whose state is a server: server_setup makes one that is not started. */
int server_setup(void **state);
int server_teardown(void **state);

/* Sends one command over the Unix socket; the caller frees the reply. */
redisReply *server_ask(const struct server *server, const char *command, ...)
    __attribute__((format(printf, 2, 3)));
/* Does the same; an error fails the test. */
void server_tell(const struct server *server, const char *command, ...)
    __attribute__((format(printf, 2, 3)));
/* The name of its data's history, which a server that lost the data does not have. */
void server_history(const struct server *server, char ret[SERVER_HISTORY_BYTES]);
/* Makes a new server grant locks of this election at once, as if it had waited for a lease. */
void server_trust(const struct server *server, const char *election);
/* Whether the reply contains the text. */
bool server_says(const struct server *server, const char *command, const char *text);

/* The value behind this name in an answer that is a list of names and values; 0: not there. */
long server_number(const struct server *server, const char *command, const char *name);

/* Waits a moment between two looks at a condition of servers. */
#define SERVER_AWAIT(condition)                                                                    \
    do {                                                                                           \
        int looks_ = 0;                                                                            \
        while (!(condition)) {                                                                     \
            assert_true(looks_++ < PATIENCE_MS / 5);                                               \
            server_pause();                                                                        \
        }                                                                                          \
    } while (0)
void server_pause(void);

#endif
