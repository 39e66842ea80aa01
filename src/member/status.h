/* The status of a process's part in an election: JSON, and metrics for Prometheus. docs/cli.md has
 * the fields. */
#ifndef MEMBER_STATUS_H
#define MEMBER_STATUS_H

#include "base/buffer.h"
#include "member/election.h"

#include <jansson.h>

struct status; /* opaque */

/* Observes the election from here on, so it is made before election_join(). `node`: this process's
 * name. NULL when out of memory. */
struct status *status_new(struct member *member, struct election *election, const char *node);
/* After the election has ended. NULL is nothing. */
void status_free(struct status *status);

/* New references; NULL when out of memory. */
json_t *status_json(struct status *status);
json_t *status_event_json(const struct baton_event *event);
/* Appends the metrics in the text format of Prometheus. */
void status_metrics(const struct status *status, struct buffer *ret);

/* Asks the provider for the members; JSON and metrics show the latest reply. `done` comes
 * once, with 0 or a code, perhaps before the function returns. */
int status_refresh(struct status *status, void (*done)(void *userdata, int code), void *userdata,
                   struct baton_error *reterr);
json_t *status_members(const struct status *status); /* an array, borrowed */

const char *status_node(const struct status *status);
const struct election *status_election(const struct status *status);
/* Of the status server, which the JSON names. */
void status_set_http_port(struct status *status, int port);

#endif
