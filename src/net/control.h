/* The control socket: how the commands of a machine speak with a node on it.
 *
 * A Unix stream socket in the node's data directory, mode 0600; a caller of another user than the
 * node's (root apart) is turned away by its credentials as well. One request is one line of JSON,
 * one answer is one line of JSON; a client that was subscribed is sent lines until it hangs up.
 *
 *   client ──▶ {"do":"status"}\n                      server
 *          ◀── {"ok":true, …}\n
 *
 * Bounds: CONTROL_CLIENTS_MAX clients, CONTROL_LINE_MAX bytes a request, CONTROL_QUEUE_MAX bytes
 * not yet read by a subscriber, which is dropped beyond that. The server runs on one libuv loop and
 * is used on its thread only; the client's functions block and need no loop.
 */
#ifndef NET_CONTROL_H
#define NET_CONTROL_H

#include "base/clock.h"
#include "base/error.h"

#include <jansson.h>
#include <uv.h>

enum {
    CONTROL_CLIENTS_MAX = 64,
    CONTROL_LINE_MAX = 64 * 1024,
    CONTROL_ANSWER_MAX = 4 * 1024 * 1024,
    CONTROL_QUEUE_MAX = 1024 * 1024,
};

struct control_server; /* opaque */
struct logger;

/* A request has come from the client `id`, which is answered by that number: it may have gone by
 * the time the answer is there. `request` is an object, borrowed during the call. */
typedef void (*control_request_cb)(void *userdata, uint64_t id, const json_t *request);

/* Listens at `path`; logger: or NULL. Errors as listener_open_unix(). */
int control_server_open(struct control_server **ret, uv_loop_t *loop, const char *path,
                        struct logger *logger, control_request_cb on_request, void *userdata,
                        struct baton_error *reterr);
/* Removes the socket and ends all clients; the memory goes with the loop's close callbacks. */
void control_server_close(struct control_server *server); /* NULL allowed */

/* Answers and lets the client go. Takes the reference to `answer`. */
void control_server_answer(struct control_server *server, uint64_t id, json_t *answer);
/* Sends the client every line that is published from now on. */
void control_server_subscribe(struct control_server *server, uint64_t id);
void control_server_publish(struct control_server *server, const json_t *line);

/* ---- Client ---------------------------------------------------------------------------------- */

/* Sends a request and waits for the answer. The caller owns *ret_answer, an object.
 * BATON_EUNAVAILABLE: no process listens; BATON_ETIMEDOUT; BATON_EPROTO; BATON_EAUTH. */
int control_call(const char *path, const json_t *request, span timeout, json_t **ret_answer,
                 struct baton_error *reterr);

/* Sends a request and hands each line that comes to `each`, until that returns false (0) or the
 * node ends (BATON_ECLOSED). */
int control_follow(const char *path, const json_t *request, span timeout,
                   bool (*each)(void *userdata, const json_t *line), void *userdata,
                   struct baton_error *reterr);

#endif
