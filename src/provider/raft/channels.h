/* Channels: a message goes from its publisher to every member that is connected, in parts (part.h),
 * and there to the functions that subscribe; at most once, and those of one publisher in order.
 *
 *   publish ─┬─▶ parcels of each connection ── a part whenever the socket has taken all ──▶ peer
 *            └─▶ parcels to deliver ── a turn of the loop ──▶ subscribers      (so there as well)
 *
 * The core's messages wait for one part at most. A connection has NODE_PARCELS_BYTES_MAX of
 * messages waiting; the next ones for that peer are dropped, counted and logged. Nobody forwards
 * another's message. Inside of this folder only.
 */
#ifndef PROVIDER_RAFT_CHANNELS_H
#define PROVIDER_RAFT_CHANNELS_H

#include "provider/raft/node.h"

/* Before the first campaign too: one may subscribe then. NULL: out of memory. */
struct channels *channels_new(void);
void channels_free(struct channels *channels);
/* Gives the sockets what they take; no function is called any more. */
void channels_end(struct node *node);

/* Functions of the provider. */
int channels_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                     provider_done_cb done, void *userdata, struct baton_error *reterr);
int channels_subscribe(struct provider *provider, const char *channel,
                       provider_message_cb on_message, void *userdata, struct baton_error *reterr);
void channels_unsubscribe(struct provider *provider, const char *channel, void *userdata);

/* A part has arrived. BATON_EPROTO: its parcel is no message. */
int channels_receive(struct connection *connection, const struct part *part);
/* The connection's socket has taken all that waited for it. */
void channels_drained(struct connection *connection);

#endif
