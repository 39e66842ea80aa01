/* The frames between the nodes of a group, to the byte.
 *
 * Every frame, little-endian:
 *
 *   offset 0   u32 length       of the whole frame, 14 to FRAME_BYTES_MAX
 *          4   u8  version = 7
 *          5   u8  type         enum frame_type; FRAME_MESSAGE + a raft_message_type
 *          6   u32 cluster      first bytes of SHA-256 of the cluster's name
 *         10   payload
 *   length-4   u32 CRC-32C      of all before it
 *
 * The connection's greeting gives sender, incarnation and receiver; a message does not repeat them.
 * So a vote request is 62 bytes and its answer 39: a round of votes among ten nodes is 909 bytes.
 * docs/protocol.md has a table of all payloads.
 */
#ifndef PROVIDER_RAFT_FRAME_H
#define PROVIDER_RAFT_FRAME_H

#include "base/buffer.h"
#include "provider/raft/part.h"
#include "raft/raft.h"

enum {
    FRAME_VERSION = 7,
    FRAME_OVERHEAD = 14,
    FRAME_BYTES_MAX = 2 * 1024 * 1024,
    FRAME_ENTRIES_MAX = 65536,
    FRAME_TEXT_MAX = 4096,
    FRAME_ORDER_MAX = 256 * 1024,
    FRAME_METADATA_MAX = 4096, /* as that of a session */
};

enum frame_type {
    FRAME_GREETING = 1,    /* first on every connection, from both ends */
    FRAME_CERTIFICATE = 2, /* see guardian/certificate.h */
    FRAME_PIN = 3,         /* asks for an answer after the peer's pidfd was opened */
    FRAME_PINNED = 4,
    FRAME_REQUEST = 5, /* an operator's request to the leader: JSON */
    FRAME_REPLY = 6,
    FRAME_ORDER = 7,        /* for the leader's log, see keys.h and sessions/order.h */
    FRAME_REFUSED = 8,      /* the leader did not accept the order */
    FRAME_DESCRIPTION = 9,  /* of the sender, for the list of members; see metadata.h */
    FRAME_TURNED_AWAY = 11, /* refuses the greeting: enum refusal, and the reason */
    FRAME_RENEWAL = 12,     /* of a session, to the leader of the log */
    FRAME_RENEWED = 13,     /* its reply; see session_host.c */
    FRAME_PART = 14,        /* of a channel's message; see part.h */
    FRAME_FENCE = 15,       /* signs of life, and the agreement on a fence; see fencing.c */
    FRAME_MESSAGE = 16,
};

enum greeting_flag {
    GREETING_GUARDIAN_ONLY = 1, /* only the guardian's certificate proves the sender's death */
    GREETING_CORDONED = 2,
};

struct greeting {
    char cluster[RAFT_NAME_MAX];
    char name[RAFT_NAME_MAX];
    char expected[RAFT_NAME_MAX]; /* the member that the dialer expects; "" in the answer */
    raft_id id;
    uint64_t birth; /* see identity.h */
    uint64_t group;
    uint64_t founders;
    uint64_t incarnation;
    raft_term term; /* stored, or pledged */
    raft_index last_index;
    raft_index commit_index;
    span lease; /* this and the next fields: settings to compare */
    span heartbeat_timeout;
    uint32_t clock_drift_ppm;
    uint32_t pid;
    uint64_t pid_namespace; /* inode */
    uint8_t boot_id[16];
    uint8_t commitment[32]; /* SHA-256 of the secret in the sender's certificate */
    uint8_t flags;
};

/* A parsed frame. Pointers are into the frame's bytes or `scratch`. */
struct frame {
    enum frame_type type;
    struct greeting greeting;
    struct raft_message message; /* the caller sets from, to and incarnation */
    const void *text;            /* REQUEST, REPLY, ORDER, REFUSED, TURNED_AWAY, RENEWAL, RENEWED,
                                FENCE, DESCRIPTION */
    size_t text_bytes;
    uint64_t request_id; /* TURNED_AWAY: enum refusal; DESCRIPTION: its number */
    uint8_t flags;       /* DESCRIPTION: enum greeting_flag */
    struct part part;
    const void *whole; /* CERTIFICATE */
};

/* Memory for what a message points to; reused for the next frame. */
struct frame_scratch {
    struct raft_entry *entries;
    size_t entry_capacity;
    struct raft_configuration configuration;
};
void frame_scratch_fini(struct frame_scratch *scratch);

uint32_t frame_cluster_of(const char *cluster_name);

/* Each appends one frame; sets buffer->failed if it does not fit. */
void frame_put_greeting(struct buffer *buffer, uint32_t cluster, const struct greeting *greeting);
void frame_put_message(struct buffer *buffer, uint32_t cluster, const struct raft_message *message);
void frame_put_bare(struct buffer *buffer, uint32_t cluster, enum frame_type type);
void frame_put_part(struct buffer *buffer, uint32_t cluster, const struct part *part);
void frame_put_description(struct buffer *buffer, uint32_t cluster, uint64_t number, uint8_t flags,
                           const char *metadata);
void frame_put_text(struct buffer *buffer, uint32_t cluster, enum frame_type type,
                    uint64_t request_id, const void *text, size_t bytes);

/* Parses the first frame of `data`.
 *
 *   above 0         bytes used; *ret is filled in
 *   0               more bytes are needed
 *   BATON_ETOOBIG   the length is invalid
 *   BATON_ENOTSUP   another version of the protocol
 *   BATON_EAUTH     another cluster
 *   BATON_ECORRUPT  the checksum is wrong
 *   BATON_EPROTO    the content is invalid
 *   BATON_ENOMEM */
int frame_take(struct frame *ret, struct frame_scratch *scratch, uint32_t cluster, const void *data,
               size_t bytes);

#endif
