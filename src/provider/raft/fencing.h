/* Fences of silent hosts, by the rule of fence.h: signs of life, the agreement of a quorum, and the
 * command (docs/fencing.md).
 *
 *   PROBE ──▶ ALIVE                           between any two members that have not spoken lately
 *   ASK ──▶ ANSWER … RELEASE                  before a command is run, and after it
 *
 * Each function does nothing where `fence-after` is not set, but that a probe is answered, and a
 * request refused. One thread; for the files of this folder only.
 */
#ifndef PROVIDER_RAFT_FENCING_H
#define PROVIDER_RAFT_FENCING_H

#include "provider/raft/frame.h"

#include <jansson.h>

struct node;

void fencing_begin(struct node *node);
void fencing_end(struct node *node); /* ends a command that runs */
void fencing_follow_membership(struct node *node);
void fencing_widen_drift(struct node *node, uint32_t drift_ppm);
/* A process of that member, or the kernel of its host, has sent something. */
void fencing_heard(struct node *node, raft_id id);
void fencing_take(struct node *node, raft_id from, uint64_t incarnation, const struct frame *frame);
json_t *fencing_status(const struct node *node); /* null where it is off */

#endif
