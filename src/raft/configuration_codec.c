/* A configuration as the log and messages hold it, little-endian:
 *
 *   u8 version = 2 | u8 flags (1: joint) | u16 count | u64 group | count members:
 *     u64 id | u64 birth | u8 kind | u8 flags (1: leaving)
 *     u32 weight | u32 old_weight | u32 priority
 *     u8 name length | name | u8 address length | address
 *
 * The decoder accepts only what the encoder writes: members in the order of their ids, and no bytes
 * after them.
 */
#include "base/buffer.h"
#include "raft/raft.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 2, FLAG_JOINT = 1, FLAG_LEAVING = 1, ENCODED_MAX = 1024 * 1024 };

static void put_text(struct buffer *buffer, const char *text)
{
    buffer_put_u8(buffer, (uint8_t)strlen(text));
    buffer_put_text(buffer, text);
}

int raft_configuration_encode(const struct raft_configuration *configuration, void **ret,
                              size_t *ret_bytes)
{
    struct buffer buffer;

    buffer_init(&buffer, ENCODED_MAX);
    buffer_put_u8(&buffer, VERSION);
    buffer_put_u8(&buffer, configuration->is_joint ? FLAG_JOINT : 0);
    buffer_put_u16(&buffer, (uint16_t)configuration->count);
    buffer_put_u64(&buffer, configuration->group);
    for (size_t i = 0; i < configuration->count; i++) {
        const struct raft_member *member = &configuration->members[i];
        buffer_put_u64(&buffer, member->id);
        buffer_put_u64(&buffer, member->birth);
        buffer_put_u8(&buffer, (uint8_t)member->kind);
        buffer_put_u8(&buffer, member->is_leaving ? FLAG_LEAVING : 0);
        buffer_put_u32(&buffer, member->weight);
        buffer_put_u32(&buffer, member->old_weight);
        buffer_put_u32(&buffer, (uint32_t)member->priority);
        put_text(&buffer, member->name);
        put_text(&buffer, member->address);
    }
    if (buffer.failed) {
        buffer_fini(&buffer);
        return BATON_ENOMEM;
    }
    *ret = buffer.data;
    *ret_bytes = buffer.bytes;
    return BATON_OK;
}

static void take_text(struct reader *reader, char *ret, size_t size)
{
    size_t length = reader_u8(reader);
    const uint8_t *text = reader_take(reader, length);

    if (!text || length >= size || memchr(text, '\0', length)) {
        reader->failed = true;
        return;
    }
    memcpy(ret, text, length);
}

static void take_member(struct reader *reader, struct raft_member *member)
{
    uint8_t kind;
    uint8_t flags;

    member->id = reader_u64(reader);
    member->birth = reader_u64(reader);
    kind = reader_u8(reader);
    flags = reader_u8(reader);
    member->kind = (enum raft_kind)kind;
    member->is_leaving = flags & FLAG_LEAVING;
    member->weight = reader_u32(reader);
    member->old_weight = reader_u32(reader);
    member->priority = (int32_t)reader_u32(reader);
    take_text(reader, member->name, sizeof(member->name));
    take_text(reader, member->address, sizeof(member->address));
    if (kind > RAFT_LEARNER || flags > FLAG_LEAVING) {
        reader->failed = true;
    }
}

static bool is_in_order(const struct raft_configuration *configuration)
{
    raft_id before = RAFT_NOBODY;
    for (size_t i = 0; i < configuration->count; i++) {
        if (configuration->members[i].id <= before) {
            return false;
        }
        before = configuration->members[i].id;
    }
    return true;
}

int raft_configuration_decode(struct raft_configuration *ret, const void *data, size_t bytes)
{
    struct reader reader = reader_of(data, bytes);
    struct raft_configuration decoded = {0};
    uint8_t version = reader_u8(&reader);
    uint8_t flags = reader_u8(&reader);
    size_t count = reader_u16(&reader);
    uint64_t group = reader_u64(&reader);

    if (reader.failed || version != VERSION || flags > FLAG_JOINT || count > RAFT_MEMBERS_MAX) {
        return BATON_ECORRUPT;
    }
    decoded.group = group;
    decoded.is_joint = flags & FLAG_JOINT;
    decoded.members = calloc(count + 1, sizeof(*decoded.members));
    if (!decoded.members) {
        return BATON_ENOMEM;
    }
    for (; decoded.count < count && !reader.failed; decoded.count++) {
        take_member(&reader, &decoded.members[decoded.count]);
    }
    if (reader.failed || reader.bytes > 0 || !is_in_order(&decoded)) {
        raft_configuration_fini(&decoded);
        return BATON_ECORRUPT;
    }
    *ret = decoded;
    return BATON_OK;
}
