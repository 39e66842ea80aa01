/* How status, members, watch and the operating commands reach a node: its control socket, or (for
 * questions only) its status server. */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include "cli/command.h"

#include <jansson.h>

/* Sends `request` to the node that the options name; *ret_answer is owned by the caller. A refusal
 * of the node's ("ok": false) comes back as its code and text. */
int ask_node(const struct options *options, const json_t *request, json_t **ret_answer,
             struct baton_error *reterr);

/* --timeout in milliseconds, and never 0, which is the usual time to a node. */
long ask_timeout_ms(const struct options *options);

/* The control socket of the data directory. BATON_EINVAL: no directory is given. */
int ask_socket_path(const struct options *options, char *ret, size_t bytes,
                    struct baton_error *reterr);

#endif
