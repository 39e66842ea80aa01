/* Encodes and decodes the payloads of the core's messages; for frame.c only. */
#ifndef PROVIDER_RAFT_FRAME_INT_H
#define PROVIDER_RAFT_FRAME_INT_H

#include "provider/raft/frame.h"

void message_put(struct buffer *buffer, const struct raft_message *message);
/* The caller has set the message's type. Sets reader->failed if bytes are missing; BATON_EPROTO,
 * BATON_ENOMEM. */
int message_take(struct reader *reader, struct raft_message *message,
                 struct frame_scratch *scratch);

#endif
