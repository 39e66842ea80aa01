/* The payloads of the core's messages: for each type, the encoder is beside the decoder. */
#include "provider/raft/frame_int.h"

#include <stdlib.h>
#include <string.h>

static void put_time(struct buffer *buffer, int64_t ns)
{
    buffer_put_u64(buffer, (uint64_t)ns);
}

static int64_t take_time(struct reader *reader)
{
    return (int64_t)reader_u64(reader);
}

static bool take_bool(struct reader *reader)
{
    uint8_t value = reader_u8(reader);
    reader->failed |= value > 1;
    return value == 1;
}

/* term | last_index | last_term | proof: node | incarnation | through_term = 48 bytes */
static void put_vote(struct buffer *buffer, const struct raft_message *message)
{
    buffer_put_u64(buffer, message->vote.last_index);
    buffer_put_u64(buffer, message->vote.last_term);
    buffer_put_u64(buffer, message->vote.proof.node);
    buffer_put_u64(buffer, message->vote.proof.incarnation);
    buffer_put_u64(buffer, message->vote.proof.through_term);
}

static void take_vote(struct reader *reader, struct raft_message *message)
{
    message->vote.last_index = reader_u64(reader);
    message->vote.last_term = reader_u64(reader);
    message->vote.proof.node = reader_u64(reader);
    message->vote.proof.incarnation = reader_u64(reader);
    message->vote.proof.through_term = reader_u64(reader);
}

static void put_heartbeat(struct buffer *buffer, const struct raft_message *message)
{
    put_time(buffer, message->heartbeat.sent.ns);
    put_time(buffer, message->heartbeat.lease.ns);
    buffer_put_u64(buffer, message->heartbeat.commit);
    buffer_put_u64(buffer, message->heartbeat.heir);
    buffer_put_u64(buffer, message->heartbeat.heir_term);
    buffer_put_u64(buffer, message->heartbeat.read_round);
}

static void take_heartbeat(struct reader *reader, struct raft_message *message)
{
    message->heartbeat.sent.ns = take_time(reader);
    message->heartbeat.lease.ns = take_time(reader);
    message->heartbeat.commit = reader_u64(reader);
    message->heartbeat.heir = reader_u64(reader);
    message->heartbeat.heir_term = reader_u64(reader);
    message->heartbeat.read_round = reader_u64(reader);
}

static void put_heartbeat_reply(struct buffer *buffer, const struct raft_message *message)
{
    put_time(buffer, message->heartbeat_reply.sent.ns);
    put_time(buffer, message->heartbeat_reply.granted.ns);
    buffer_put_u64(buffer, message->heartbeat_reply.read_round);
    buffer_put_u8(buffer, message->heartbeat_reply.may_lead);
    put_time(buffer, message->heartbeat_reply.silence.ns);
}

static void take_heartbeat_reply(struct reader *reader, struct raft_message *message)
{
    message->heartbeat_reply.sent.ns = take_time(reader);
    message->heartbeat_reply.granted.ns = take_time(reader);
    message->heartbeat_reply.read_round = reader_u64(reader);
    message->heartbeat_reply.may_lead = take_bool(reader);
    message->heartbeat_reply.silence.ns = take_time(reader);
}

/* … | u32 count | count entries: term | u8 kind | u32 bytes | data */
static void put_append(struct buffer *buffer, const struct raft_message *message)
{
    buffer_put_u64(buffer, message->append.prev_index);
    buffer_put_u64(buffer, message->append.prev_term);
    buffer_put_u64(buffer, message->append.commit);
    buffer_put_u8(buffer, message->append.is_awaited);
    buffer_put_u32(buffer, (uint32_t)message->append.entry_count);
    for (size_t i = 0; i < message->append.entry_count; i++) {
        const struct raft_entry *entry = &message->append.entries[i];
        buffer_put_u64(buffer, entry->term);
        buffer_put_u8(buffer, (uint8_t)entry->kind);
        buffer_put_u32(buffer, (uint32_t)entry->bytes);
        buffer_put(buffer, entry->data, entry->bytes);
    }
}

static int reserve_entries(struct frame_scratch *scratch, size_t count)
{
    if (count > scratch->entry_capacity) {
        struct raft_entry *grown = realloc(scratch->entries, count * sizeof(*grown));
        if (!grown) {
            return BATON_ENOMEM;
        }
        scratch->entries = grown;
        scratch->entry_capacity = count;
    }
    return BATON_OK;
}

static int take_append(struct reader *reader, struct raft_message *message,
                       struct frame_scratch *scratch)
{
    enum { ENTRY_BYTES_MIN = 13 };
    size_t count;

    message->append.prev_index = reader_u64(reader);
    message->append.prev_term = reader_u64(reader);
    message->append.commit = reader_u64(reader);
    message->append.is_awaited = take_bool(reader);
    count = reader_u32(reader);
    if (count > FRAME_ENTRIES_MAX || count > reader->bytes / ENTRY_BYTES_MIN) {
        return BATON_EPROTO; /* before memory is allocated for them */
    }
    if (reserve_entries(scratch, count) != BATON_OK) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        struct raft_entry *entry = &scratch->entries[i];
        uint8_t kind;
        entry->term = reader_u64(reader);
        kind = reader_u8(reader);
        entry->kind = (enum raft_entry_kind)kind;
        entry->bytes = reader_u32(reader);
        entry->data = reader_take(reader, entry->bytes);
        reader->failed |= kind > RAFT_ENTRY_CONFIGURATION;
    }
    message->append.entries = scratch->entries;
    message->append.entry_count = count;
    return BATON_OK;
}

static void put_append_reply(struct buffer *buffer, const struct raft_message *message)
{
    buffer_put_u8(buffer, message->append_reply.rejected);
    buffer_put_u64(buffer, message->append_reply.index);
    buffer_put_u64(buffer, message->append_reply.hint);
    buffer_put_u64(buffer, message->append_reply.hint_term);
}

static void take_append_reply(struct reader *reader, struct raft_message *message)
{
    message->append_reply.rejected = take_bool(reader);
    message->append_reply.index = reader_u64(reader);
    message->append_reply.hint = reader_u64(reader);
    message->append_reply.hint_term = reader_u64(reader);
}

/* … | u32 configuration bytes (0: none) | configuration | data to the end */
static void put_snapshot(struct buffer *buffer, const struct raft_message *message)
{
    void *configuration = NULL;
    size_t bytes = 0;

    buffer_put_u64(buffer, message->snapshot.index);
    buffer_put_u64(buffer, message->snapshot.snapshot_term);
    buffer_put_u64(buffer, message->snapshot.offset);
    buffer_put_u64(buffer, message->snapshot.total_bytes);
    if (message->snapshot.configuration &&
        raft_configuration_encode(message->snapshot.configuration, &configuration, &bytes) !=
            BATON_OK) {
        buffer->failed = true;
        return;
    }
    buffer_put_u32(buffer, (uint32_t)bytes);
    buffer_put(buffer, configuration, bytes);
    buffer_put(buffer, message->snapshot.data, message->snapshot.bytes);
    free(configuration);
}

static int take_snapshot(struct reader *reader, struct raft_message *message,
                         struct frame_scratch *scratch)
{
    size_t bytes;
    const uint8_t *configuration;

    message->snapshot.index = reader_u64(reader);
    message->snapshot.snapshot_term = reader_u64(reader);
    message->snapshot.offset = reader_u64(reader);
    message->snapshot.total_bytes = reader_u64(reader);
    bytes = reader_u32(reader);
    configuration = reader_take(reader, bytes);
    if (configuration && bytes > 0) {
        struct raft_configuration decoded;
        int r = raft_configuration_decode(&decoded, configuration, bytes);
        if (r != BATON_OK) {
            return r == BATON_ENOMEM ? r : BATON_EPROTO;
        }
        raft_configuration_fini(&scratch->configuration);
        scratch->configuration = decoded;
        message->snapshot.configuration = &scratch->configuration;
    }
    message->snapshot.bytes = reader->bytes;
    message->snapshot.data = reader_take(reader, reader->bytes);
    return BATON_OK;
}

void message_put(struct buffer *buffer, const struct raft_message *message)
{
    buffer_put_u64(buffer, message->term);
    switch (message->type) {
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        put_vote(buffer, message);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
        buffer_put_u8(buffer, message->vote_reply.granted);
        break;
    case RAFT_MSG_VOTE_REPLY:
        buffer_put_u8(buffer, message->vote_reply.granted);
        put_time(buffer, message->vote_reply.promised.ns);
        buffer_put_u64(buffer, message->vote_reply.promised_to);
        break;
    case RAFT_MSG_HEARTBEAT:
        put_heartbeat(buffer, message);
        break;
    case RAFT_MSG_HEARTBEAT_REPLY:
        put_heartbeat_reply(buffer, message);
        break;
    case RAFT_MSG_APPEND:
        put_append(buffer, message);
        break;
    case RAFT_MSG_APPEND_REPLY:
        put_append_reply(buffer, message);
        break;
    case RAFT_MSG_SNAPSHOT:
        put_snapshot(buffer, message);
        break;
    case RAFT_MSG_SNAPSHOT_REPLY:
        buffer_put_u64(buffer, message->snapshot_reply.index);
        buffer_put_u64(buffer, message->snapshot_reply.next_offset);
        buffer_put_u8(buffer, message->snapshot_reply.rejected);
        buffer_put_u32(buffer, message->snapshot_reply.format);
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_RESIGN:
        buffer_put_u64(buffer, message->resign.heir);
        break;
    case RAFT_MSG_READ:
    case RAFT_MSG_READ_REPLY:
        buffer_put_u64(buffer, message->read.context);
        buffer_put_u64(buffer, message->read.index);
        break;
    }
}

int message_take(struct reader *reader, struct raft_message *message, struct frame_scratch *scratch)
{
    message->term = reader_u64(reader);
    switch (message->type) {
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        take_vote(reader, message);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
        message->vote_reply.granted = take_bool(reader);
        break;
    case RAFT_MSG_VOTE_REPLY:
        message->vote_reply.granted = take_bool(reader);
        message->vote_reply.promised.ns = take_time(reader);
        message->vote_reply.promised_to = reader_u64(reader);
        break;
    case RAFT_MSG_HEARTBEAT:
        take_heartbeat(reader, message);
        break;
    case RAFT_MSG_HEARTBEAT_REPLY:
        take_heartbeat_reply(reader, message);
        break;
    case RAFT_MSG_APPEND:
        return take_append(reader, message, scratch);
    case RAFT_MSG_APPEND_REPLY:
        take_append_reply(reader, message);
        break;
    case RAFT_MSG_SNAPSHOT:
        return take_snapshot(reader, message, scratch);
    case RAFT_MSG_SNAPSHOT_REPLY:
        message->snapshot_reply.index = reader_u64(reader);
        message->snapshot_reply.next_offset = reader_u64(reader);
        message->snapshot_reply.rejected = take_bool(reader);
        message->snapshot_reply.format = reader_u32(reader);
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_RESIGN:
        message->resign.heir = reader_u64(reader);
        break;
    case RAFT_MSG_READ:
    case RAFT_MSG_READ_REPLY:
        message->read.context = reader_u64(reader);
        message->read.index = reader_u64(reader);
        break;
    }
    return BATON_OK;
}
