#include "provider/raft/frame.h"

#include "base/crc32c.h"
#include "guardian/certificate.h"
#include "net/digest.h"
#include "provider/raft/frame_int.h"

#include <stdlib.h>
#include <string.h>

/* No correct peer sends a term or index beyond this (the core refuses them too). */
#define SANE_MAX ((uint64_t)1 << 56)

uint32_t frame_cluster_of(const char *cluster_name)
{
    uint8_t digest[32];
    struct reader reader;

    digest_sha256(digest, cluster_name, strlen(cluster_name));
    reader = reader_of(digest, sizeof(digest));
    return reader_u32(&reader);
}

void frame_scratch_fini(struct frame_scratch *scratch)
{
    free(scratch->entries);
    raft_configuration_fini(&scratch->configuration);
    *scratch = (struct frame_scratch){0};
}

/* ---- Writing --------------------------------------------------------------------------------- */

static size_t begin(struct buffer *buffer, uint32_t cluster, unsigned type)
{
    size_t start = buffer->bytes;

    buffer_put_u32(buffer, 0); /* the length, set by end() */
    buffer_put_u8(buffer, FRAME_VERSION);
    buffer_put_u8(buffer, (uint8_t)type);
    buffer_put_u32(buffer, cluster);
    return start;
}

static void end(struct buffer *buffer, size_t start)
{
    size_t bytes = buffer->bytes - start + 4;

    if (bytes > FRAME_BYTES_MAX) {
        buffer->failed = true;
    }
    if (!buffer->failed) {
        uint8_t *length = buffer->data + start;
        for (int i = 0; i < 4; i++) {
            length[i] = (uint8_t)(bytes >> (8 * i));
        }
        buffer_put_u32(buffer, crc32c(0, buffer->data + start, bytes - 4));
    }
}

static void put_name(struct buffer *buffer, const char *name)
{
    buffer_put_u8(buffer, (uint8_t)strlen(name));
    buffer_put_text(buffer, name);
}

void frame_put_greeting(struct buffer *buffer, uint32_t cluster, const struct greeting *greeting)
{
    size_t start = begin(buffer, cluster, FRAME_GREETING);

    put_name(buffer, greeting->cluster);
    put_name(buffer, greeting->name);
    put_name(buffer, greeting->expected);
    buffer_put_u64(buffer, greeting->id);
    buffer_put_u64(buffer, greeting->birth);
    buffer_put_u64(buffer, greeting->group);
    buffer_put_u64(buffer, greeting->founders);
    buffer_put_u64(buffer, greeting->incarnation);
    buffer_put_u64(buffer, greeting->term);
    buffer_put_u64(buffer, greeting->last_index);
    buffer_put_u64(buffer, greeting->commit_index);
    buffer_put_u64(buffer, (uint64_t)greeting->lease.ns);
    buffer_put_u64(buffer, (uint64_t)greeting->heartbeat_timeout.ns);
    buffer_put_u32(buffer, greeting->clock_drift_ppm);
    buffer_put_u32(buffer, greeting->pid);
    buffer_put_u64(buffer, greeting->pid_namespace);
    buffer_put(buffer, greeting->boot_id, sizeof(greeting->boot_id));
    buffer_put(buffer, greeting->commitment, sizeof(greeting->commitment));
    buffer_put_u8(buffer, greeting->flags);
    end(buffer, start);
}

void frame_put_message(struct buffer *buffer, uint32_t cluster, const struct raft_message *message)
{
    size_t start = begin(buffer, cluster, FRAME_MESSAGE + (unsigned)message->type);

    message_put(buffer, message);
    end(buffer, start);
}

void frame_put_bare(struct buffer *buffer, uint32_t cluster, enum frame_type type)
{
    end(buffer, begin(buffer, cluster, (unsigned)type));
}

void frame_put_part(struct buffer *buffer, uint32_t cluster, const struct part *part)
{
    size_t start = begin(buffer, cluster, FRAME_PART);

    part_put(buffer, part);
    end(buffer, start);
}

void frame_put_description(struct buffer *buffer, uint32_t cluster, uint64_t number, uint8_t flags,
                           const char *metadata)
{
    size_t start = begin(buffer, cluster, FRAME_DESCRIPTION);

    buffer_put_u64(buffer, number);
    buffer_put_u8(buffer, flags);
    buffer_put_text(buffer, metadata);
    end(buffer, start);
}

void frame_put_text(struct buffer *buffer, uint32_t cluster, enum frame_type type,
                    uint64_t request_id, const void *text, size_t bytes)
{
    size_t start = begin(buffer, cluster, (unsigned)type);

    buffer_put_u64(buffer, request_id);
    buffer_put(buffer, text, bytes);
    end(buffer, start);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void take_name(struct reader *reader, char ret[RAFT_NAME_MAX], size_t least)
{
    size_t length = reader_u8(reader);
    const uint8_t *text = reader_take(reader, length);

    if (!text || length < least || length >= RAFT_NAME_MAX) {
        reader->failed = true;
        return;
    }
    for (size_t i = 0; i < length; i++) {
        reader->failed |= text[i] <= 0x20 || text[i] >= 0x7f; /* names are printable */
    }
    memcpy(ret, text, length);
    ret[length] = '\0';
}

static void take_raw(struct reader *reader, uint8_t *ret, size_t bytes)
{
    const uint8_t *raw = reader_take(reader, bytes);
    if (raw) {
        memcpy(ret, raw, bytes);
    }
}

static void take_greeting(struct reader *reader, struct greeting *greeting)
{
    take_name(reader, greeting->cluster, 1);
    take_name(reader, greeting->name, 1);
    take_name(reader, greeting->expected, 0);
    greeting->id = reader_u64(reader);
    greeting->birth = reader_u64(reader);
    greeting->group = reader_u64(reader);
    greeting->founders = reader_u64(reader);
    greeting->incarnation = reader_u64(reader);
    greeting->term = reader_u64(reader);
    greeting->last_index = reader_u64(reader);
    greeting->commit_index = reader_u64(reader);
    greeting->lease = SPAN_NS(reader_u64(reader));
    greeting->heartbeat_timeout = SPAN_NS(reader_u64(reader));
    greeting->clock_drift_ppm = reader_u32(reader);
    greeting->pid = reader_u32(reader);
    greeting->pid_namespace = reader_u64(reader);
    take_raw(reader, greeting->boot_id, sizeof(greeting->boot_id));
    take_raw(reader, greeting->commitment, sizeof(greeting->commitment));
    greeting->flags = reader_u8(reader);
    if (greeting->id == RAFT_NOBODY || greeting->birth == 0 || greeting->incarnation == 0 ||
        (greeting->incarnation | greeting->term | greeting->last_index | greeting->commit_index) >=
            SANE_MAX ||
        greeting->lease.ns <= 0 || greeting->heartbeat_timeout.ns <= 0) {
        reader->failed = true;
    }
}

static int take_payload(struct frame *ret, struct frame_scratch *scratch, unsigned type,
                        struct reader *reader)
{
    int r = BATON_OK;

    ret->type = (enum frame_type)type;
    switch (type) {
    case FRAME_GREETING:
        take_greeting(reader, &ret->greeting);
        break;
    case FRAME_PIN:
    case FRAME_PINNED:
        break;
    case FRAME_DESCRIPTION:
        ret->request_id = reader_u64(reader);
        ret->flags = reader_u8(reader);
        ret->text_bytes = reader->bytes;
        reader->failed |= ret->text_bytes > FRAME_METADATA_MAX;
        ret->text = reader_take(reader, reader->bytes);
        break;
    case FRAME_PART:
        reader->failed |= !part_take(&ret->part, reader);
        break;
    case FRAME_REQUEST:
    case FRAME_REPLY:
    case FRAME_ORDER:
    case FRAME_REFUSED:
    case FRAME_TURNED_AWAY:
    case FRAME_RENEWAL:
    case FRAME_RENEWED:
    case FRAME_FENCE:
        ret->request_id = reader_u64(reader);
        ret->text_bytes = reader->bytes;
        reader->failed |= ret->text_bytes > FRAME_TEXT_MAX &&
                          (type == FRAME_REQUEST || type == FRAME_TURNED_AWAY);
        reader->failed |= ret->text_bytes > FRAME_ORDER_MAX;
        ret->text = reader_take(reader, reader->bytes);
        break;
    default:
        if (type <= FRAME_MESSAGE || type > FRAME_MESSAGE + RAFT_MSG_READ_REPLY) {
            return BATON_EPROTO;
        }
        ret->type = FRAME_MESSAGE;
        ret->message.type = (enum raft_message_type)(type - FRAME_MESSAGE);
        r = message_take(reader, &ret->message, scratch);
        reader->failed |= ret->message.term >= SANE_MAX;
        break;
    }
    if (r != BATON_OK) {
        return r;
    }
    return reader->failed || reader->bytes > 0 ? BATON_EPROTO : BATON_OK;
}

int frame_take(struct frame *ret, struct frame_scratch *scratch, uint32_t cluster, const void *data,
               size_t bytes)
{
    struct reader reader = reader_of(data, bytes);
    uint32_t length = reader_u32(&reader);
    uint8_t version = reader_u8(&reader);
    uint8_t type = reader_u8(&reader);
    uint32_t whose = reader_u32(&reader);
    struct reader tail;
    int r;

    if (bytes >= 4 && (length < FRAME_OVERHEAD || length > FRAME_BYTES_MAX)) {
        return BATON_ETOOBIG;
    }
    if (bytes >= 5 && version != FRAME_VERSION) {
        return BATON_ENOTSUP;
    }
    if (bytes >= 10 && whose != cluster) {
        return BATON_EAUTH;
    }
    if (reader.failed || bytes < length) {
        return 0;
    }
    tail = reader_of((const uint8_t *)data + length - 4, 4);
    if (reader_u32(&tail) != crc32c(0, data, length - 4)) {
        return BATON_ECORRUPT;
    }
    *ret = (struct frame){.type = FRAME_CERTIFICATE, .whole = data};
    if (type == FRAME_CERTIFICATE) {
        return length == CERTIFICATE_BYTES ? (int)length : BATON_EPROTO;
    }
    reader.bytes = length - FRAME_OVERHEAD;
    r = take_payload(ret, scratch, type, &reader);
    return r == BATON_OK ? (int)length : r;
}
