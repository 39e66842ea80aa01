/* A script of tests/detector that serves a camera: a process that says what happens to it. */
#ifndef TESTS_INTEGRATION_CAMERA_SERVER_H
#define TESTS_INTEGRATION_CAMERA_SERVER_H

#include <stddef.h>
#include <sys/types.h>

struct server {
    pid_t pid;
    int input, output; /* it ends when its input does */
    int port;
    char said[4096]; /* since it started */
    size_t said_bytes;
};

/* Starts the script and waits until it is ready. Its arguments are texts that a NULL ends. */
void server_start(struct server *server, const char *script, ...);
/* Kills it. */
void server_end(struct server *server);
/* How often it has said this line so far. */
unsigned server_count(struct server *server, const char *line);

#endif
