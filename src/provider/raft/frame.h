/* The frames between the nodes of a group, to the byte.
 *
 * Every frame, little-endian:
 *
 *   offset 0   u32 length       of the whole frame, 14 to FRAME_BYTES_MAX
 *          4   u8  version = 3
 *          5   u8  type         enum frame_type; FRAME_MESSAGE + a raft_message_type
 *          6   u32 cluster      first bytes of SHA-256 of the cluster's name
 *         10   payload
 *   length-4   u32 CRC-32C      of all before it
 *
 * The connection's greeting gives sender, incarnation and receiver; a message does not repeat them.
 * So a vote request is 62 bytes and its answer 23: a round of votes among ten nodes is 765 bytes.
 * docs/protocol.md has a table of all payloads.
 */
#ifndef PROVIDER_RAFT_FRAME_H
#define PROVIDER_RAFT_FRAME_H

#include "base/buffer.h"
#include "raft/raft.h"

enum {
    FRAME_VERSION = 3,
    FRAME_OVERHEAD = 14,
    FRAME_BYTES_MAX = 2 * 1024 * 1024,
    FRAME_ENTRIES_MAX = 65536,
    FRAME_TEXT_MAX = 4096,
    FRAME_ORDER_MAX = 256 * 1024,
};

enum frame_type {
    FRAME_GREETING = 1,    /* first on every connection, from both ends */
    FRAME_CERTIFICATE = 2, /* see guardian/certificate.h */
    FRAME_PIN = 3,         /* are you still there? asked after your pidfd was opened */
    FRAME_PINNED = 4,
    FRAME_REQUEST = 5, /* of an operator, for the leader: JSON */
    FRAME_REPLY = 6,
    FRAME_ORDER = 7,    /* for the leader's log, see keys.h */
    FRAME_REFUSED = 8,  /* that order was not taken */
    FRAME_CORDONED = 9, /* since the greeting; for the list of members */
    FRAME_UNCORDONED = 10,
    FRAME_TURNED_AWAY = 11, /* your greeting is refused: enum refusal, and why */
    FRAME_MESSAGE = 16,
};

enum greeting_flag {
    GREETING_GUARDIAN_ONLY = 1, /* of my death only my guardian is to be believed */
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
    span lease; /* settings that the others should know */
    span heartbeat_timeout;
    uint32_t clock_drift_ppm;
    uint32_t pid;
    uint64_t pid_namespace; /* inode */
    uint8_t boot_id[16];
    uint8_t commitment[32]; /* SHA-256 of the secret in my death certificate */
    uint8_t flags;
};

/* A parsed frame. Pointers are into the frame's bytes or `scratch`. */
struct frame {
    enum frame_type type;
    struct greeting greeting;
    struct raft_message message; /* from, to, incarnation: for the caller to fill in */
    const void *text;            /* REQUEST, REPLY, ORDER, REFUSED, TURNED_AWAY */
    size_t text_bytes;
    uint64_t request_id; /* TURNED_AWAY: enum refusal */
    const void *whole;   /* CERTIFICATE */
};

/* Room for what a message points to; reused from frame to frame. */
struct frame_scratch {
    struct raft_entry *entries;
    size_t entry_capacity;
    struct raft_configuration configuration;
};
void frame_scratch_fini(struct frame_scratch *scratch);

uint32_t frame_cluster_of(const char *cluster_name);

/* Each appends one frame; out of room shows in buffer->failed. */
void frame_put_greeting(struct buffer *buffer, uint32_t cluster, const struct greeting *greeting);
void frame_put_message(struct buffer *buffer, uint32_t cluster, const struct raft_message *message);
void frame_put_bare(struct buffer *buffer, uint32_t cluster, enum frame_type type);
void frame_put_text(struct buffer *buffer, uint32_t cluster, enum frame_type type,
                    uint64_t request_id, const void *text, size_t bytes);

/* Takes the first frame of `data`.
 *   above 0         bytes used; *ret is filled
 *   0               more bytes are needed
 *   BATON_ETOOBIG   a length that no frame has
 *   BATON_ENOTSUP   another version of the protocol
 *   BATON_EAUTH     another cluster
 *   BATON_ECORRUPT  its checksum does not fit
 *   BATON_EPROTO    its content makes no sense
 *   BATON_ENOMEM */
int frame_take(struct frame *ret, struct frame_scratch *scratch, uint32_t cluster, const void *data,
               size_t bytes);

#endif
