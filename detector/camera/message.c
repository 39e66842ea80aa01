/*   datagram   version u8 · type u8 · the type's fields, little-endian
 *   text       length u16 · bytes
 *
 *   OPENED     width u32 · height u32 · fps_milli u32 · duration_ms u32 · codec text ·
 *              hardware text
 *   RING       width u32 · height u32
 *   FRAME      slot u8 · flags u8 · sequence u64 · pts u64 · captured u64 · counts
 *   PROGRESS   counts: received u64 · decoded u64 · dropped u64
 *   ERROR      code u32 · text
 *   END        nothing
 */
#include "detector/camera/message.h"

#include "detector/camera/ring.h"

#include <string.h>

static void put_text(struct buffer *buffer, const char *text, size_t max)
{
    size_t bytes = strnlen(text, max);

    buffer_put_u16(buffer, (uint16_t)bytes);
    buffer_put(buffer, text, bytes);
}

/* `ret` has room for max + 1 bytes. */
static void take_text(struct reader *reader, char *ret, size_t max)
{
    size_t bytes = reader_u16(reader);
    const uint8_t *text = bytes <= max ? reader_take(reader, bytes) : NULL;

    ret[0] = '\0';
    if (text == NULL) {
        reader->failed = true;
        return;
    }
    memcpy(ret, text, bytes);
    ret[bytes] = '\0';
}

static void put_counts(struct buffer *buffer, const struct camera_counts *counts)
{
    buffer_put_u64(buffer, counts->received);
    buffer_put_u64(buffer, counts->decoded);
    buffer_put_u64(buffer, counts->dropped);
}

static void take_counts(struct reader *reader, struct camera_counts *ret)
{
    ret->received = reader_u64(reader);
    ret->decoded = reader_u64(reader);
    ret->dropped = reader_u64(reader);
}

void message_encode(struct buffer *buffer, const struct camera_message *message)
{
    buffer_put_u8(buffer, MESSAGE_VERSION);
    buffer_put_u8(buffer, (uint8_t)message->type);
    switch (message->type) {
    case MESSAGE_OPENED:
    case MESSAGE_RING:
        buffer_put_u32(buffer, message->width);
        buffer_put_u32(buffer, message->height);
        if (message->type == MESSAGE_OPENED) {
            buffer_put_u32(buffer, message->fps_milli);
            buffer_put_u32(buffer, message->duration_ms);
            put_text(buffer, message->codec, MESSAGE_NAME_MAX);
            put_text(buffer, message->hardware, MESSAGE_NAME_MAX);
        }
        break;
    case MESSAGE_FRAME:
        buffer_put_u8(buffer, message->slot);
        buffer_put_u8(buffer, message->flags);
        buffer_put_u64(buffer, message->sequence);
        buffer_put_u64(buffer, (uint64_t)message->pts_us);
        buffer_put_u64(buffer, (uint64_t)message->captured_ns);
        put_counts(buffer, &message->counts);
        break;
    case MESSAGE_PROGRESS:
        put_counts(buffer, &message->counts);
        break;
    case MESSAGE_ERROR:
        buffer_put_u32(buffer, (uint32_t)message->code);
        put_text(buffer, message->text, MESSAGE_TEXT_MAX);
        break;
    case MESSAGE_END:
        break;
    }
}

static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e) {
            *text = '?';
        }
    }
}

/* Reads a name or text of the child, up to the first NUL. */
static void take_words(struct reader *reader, char *ret, size_t max)
{
    take_text(reader, ret, max);
    make_printable(ret);
}

static void take_fields(struct reader *reader, struct camera_message *message)
{
    switch (message->type) {
    case MESSAGE_OPENED:
    case MESSAGE_RING:
        message->width = reader_u32(reader);
        message->height = reader_u32(reader);
        if (message->type == MESSAGE_OPENED) {
            message->fps_milli = reader_u32(reader);
            message->duration_ms = reader_u32(reader);
            take_words(reader, message->codec, MESSAGE_NAME_MAX);
            take_words(reader, message->hardware, MESSAGE_NAME_MAX);
        }
        break;
    case MESSAGE_FRAME:
        message->slot = reader_u8(reader);
        message->flags = reader_u8(reader);
        message->sequence = reader_u64(reader);
        message->pts_us = (int64_t)reader_u64(reader);
        message->captured_ns = (int64_t)reader_u64(reader);
        take_counts(reader, &message->counts);
        break;
    case MESSAGE_PROGRESS:
        take_counts(reader, &message->counts);
        break;
    case MESSAGE_ERROR:
        message->code = (int32_t)reader_u32(reader);
        take_words(reader, message->text, MESSAGE_TEXT_MAX);
        break;
    case MESSAGE_END:
        break;
    default:
        reader->failed = true;
    }
}

/* Returns NULL, or the fault of a message that has all its fields. */
static const char *find_fault(const struct camera_message *message)
{
    struct ring_layout layout;

    switch (message->type) {
    case MESSAGE_RING:
        return ring_layout(&layout, message->width, message->height) ? NULL : "its size";
    case MESSAGE_FRAME:
        if (message->slot >= RING_SLOTS) {
            return "its slot";
        }
        if ((message->flags & ~FRAME_FLAGS) != 0) {
            return "its flags";
        }
        return message->sequence != 0 ? NULL : "its sequence";
    case MESSAGE_ERROR:
        return message->code < 0 ? NULL : "its code";
    default:
        return NULL;
    }
}

int message_decode(struct camera_message *ret, const void *data, size_t bytes,
                   struct baton_error *reterr)
{
    struct reader reader = reader_of(data, bytes);
    struct camera_message message = {0};
    const char *fault;

    if (reader_u8(&reader) != MESSAGE_VERSION) {
        return error_set(reterr, BATON_EPROTO, "message of %zu bytes: not of version %d", bytes,
                         MESSAGE_VERSION);
    }
    message.type = (enum message_type)reader_u8(&reader);
    take_fields(&reader, &message);
    if (reader.failed || reader.bytes != 0) {
        return error_set(reterr, BATON_EPROTO, "message of type %d: %zu bytes do not fit it",
                         (int)message.type, bytes);
    }
    fault = find_fault(&message);
    if (fault != NULL) {
        return error_set(reterr, BATON_EPROTO, "message of type %d: %s is not allowed",
                         (int)message.type, fault);
    }
    *ret = message;
    return 0;
}

void config_encode(struct buffer *buffer, const struct camera_config *config)
{
    buffer_put_u8(buffer, MESSAGE_VERSION);
    buffer_put_u8(buffer, (uint8_t)config->kind);
    buffer_put_u8(buffer, (uint8_t)(config->uses_udp | config->is_paced << 1 |
                                    config->is_lossless << 2 | config->trusts_any << 3));
    buffer_put_u32(buffer, config->open_ms);
    buffer_put_u32(buffer, config->stall_ms);
    put_text(buffer, config->hardware, MESSAGE_NAME_MAX);
    put_text(buffer, config->ca_file, MESSAGE_PATH_MAX);
    put_text(buffer, config->url, MESSAGE_URL_MAX);
}

int config_decode(struct camera_config *ret, const void *data, size_t bytes,
                  struct baton_error *reterr)
{
    struct reader reader = reader_of(data, bytes);
    struct camera_config config = {0};
    bool is_ours = reader_u8(&reader) == MESSAGE_VERSION;
    uint8_t flags;

    config.kind = (enum source_kind)reader_u8(&reader);
    flags = reader_u8(&reader);
    config.uses_udp = (flags & 1) != 0;
    config.is_paced = (flags & 2) != 0;
    config.is_lossless = (flags & 4) != 0;
    config.trusts_any = (flags & 8) != 0;
    config.open_ms = reader_u32(&reader);
    config.stall_ms = reader_u32(&reader);
    take_text(&reader, config.hardware, MESSAGE_NAME_MAX);
    take_text(&reader, config.ca_file, MESSAGE_PATH_MAX);
    take_text(&reader, config.url, MESSAGE_URL_MAX);
    if (!is_ours || reader.failed || reader.bytes != 0 || config.kind >= SOURCE_KINDS ||
        config.url[0] == '\0') {
        return error_set(reterr, BATON_EPROTO,
                         "config of %zu bytes: not of this build; are baton-camera and "
                         "baton-detector of one version?",
                         bytes);
    }
    *ret = config;
    return 0;
}
