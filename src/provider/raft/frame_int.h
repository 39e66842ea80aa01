/* The payloads of the core's messages; for frame.c alone. */
#ifndef PROVIDER_RAFT_FRAME_INT_H
#define PROVIDER_RAFT_FRAME_INT_H

#include "provider/raft/frame.h"

void message_put(struct buffer *buffer, const struct raft_message *message);
/* The message's type is set. Shortage shows in reader->failed; BATON_EPROTO, BATON_ENOMEM. */
int message_take(struct reader *reader, struct raft_message *message,
                 struct frame_scratch *scratch);

#endif
