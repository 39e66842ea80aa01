/* The description of a member: whether it is cordoned, and its metadata in a group that is one
 * election. (With `group` the metadata are the sessions'.) Each member sends its own to every peer
 * that it has accepted, on each of their connections, and again when it changes; nobody stores it
 * or passes it on. For the list of members only: no vote and no lease depends on it.
 *
 * Descriptions of one process are numbered: one that was overtaken on another connection is
 * ignored. The same one counts again: it comes behind a greeting, which may have been made before
 * it. Inside of this folder only.
 */
#ifndef PROVIDER_RAFT_METADATA_H
#define PROVIDER_RAFT_METADATA_H

#include "provider/raft/node.h"

/* Replaces this member's; NULL: none. BATON_ETOOBIG, BATON_ENOMEM: it stays as it is. */
int metadata_set(struct node *node, const char *metadata, struct baton_error *reterr);
/* This member was cordoned or uncordoned, or its metadata have changed. */
void metadata_send_to_all(struct node *node);
/* The peer's greeting was accepted on this connection. */
void metadata_send(struct connection *connection);
void metadata_receive(struct connection *connection, const struct frame *frame);
/* A JSON object, borrowed until the loop turns; NULL: none, or not known. */
const char *metadata_of(const struct node *node, raft_id id);

#endif
