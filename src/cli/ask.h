/* Sends requests of status, members, watch and the operating commands to a node: through its
 * control socket or, for queries, its status server. */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include "cli/command.h"

#include <jansson.h>

/* Sends `request` to the node that the options name; the caller owns *ret_answer. If the node
 * refuses ("ok": false), returns the refusal's code and text. */
int ask_node(const struct options *options, const json_t *request, json_t **ret_answer,
             struct baton_error *reterr);

/* Returns --timeout in milliseconds; 0 means the default, so the result is never 0. */
long ask_timeout_ms(const struct options *options);

/* Of that, what the work may take: the rest is for the answer, which says why it took so long. */
long ask_wait_ms(const struct options *options);

/* Returns the path of the control socket in the data directory. BATON_EINVAL: no directory is
 * given. */
int ask_socket_path(const struct options *options, char *ret, size_t bytes,
                    struct baton_error *reterr);

#endif
