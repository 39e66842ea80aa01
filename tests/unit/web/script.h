/* A server that plays a script: it takes one connection, reads the head of the request, sends what
 * the script says, and hangs up. It runs on a thread of its own, with blocking sockets. */
#ifndef TESTS_WEB_SCRIPT_H
#define TESTS_WEB_SCRIPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { SCRIPT_REQUEST_MAX = 65536 };

struct script {
    const char *bytes; /* NULL: nothing; "%s" in it is the answer to the WebSocket key */
    size_t count;      /* 0: strlen(bytes) */
    const char *again; /* then this without an end, until the client hangs up; or NULL */
    size_t piece;      /* bytes of each write; 0: all */
    bool is_slow;      /* a write every few milliseconds */
    bool resets;       /* hangs up by a reset */
    bool holds;        /* waits until the client hangs up */
    /* The script's own. */
    int port;
    int listener;
    pthread_t thread;
    char request[SCRIPT_REQUEST_MAX]; /* all that the client sent, a NUL behind it */
    size_t request_bytes;
};

/* Listens: `port` is known. */
void script_start(struct script *script);
/* Waits for its end: `request` is complete as far as the server read. */
void script_join(struct script *script);

#endif
