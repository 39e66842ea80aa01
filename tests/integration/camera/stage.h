/* What most tests of cameras have: one gallery, and one server whose cameras are opened in it. */
#ifndef TESTS_INTEGRATION_CAMERA_STAGE_H
#define TESTS_INTEGRATION_CAMERA_STAGE_H

#include "server.h"
#include "viewer.h"

extern struct gallery gallery;
extern struct server server;

/* The streams cam, hevc, jpeg and resized, on `port` or, for 0, one that the kernel chooses; `auth`
 * is a word of rtsp_server.py, or NULL. */
void server_start_streams(struct server *ret, int port, const char *auth);
/* A teardown: ends both; the server need not be there. */
int stage_end(void **state);

/* Opens in the gallery what that server has at the path. `scheme` may have a user:
 * "rtsp://name:password@". */
void stage_open(struct viewer *viewer, const struct server *at, const char *scheme,
                const char *path, const struct camera_options *options);
/* Runs until it failed, for such a reason, which must not contain the tests' password "canary". */
void stage_run_failed(const struct viewer *viewer, const char *reason);

#endif
