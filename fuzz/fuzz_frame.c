/* Whatever a peer sends: taken as a frame, or refused; and what is taken can be written again. */
#include "base/crc32c.h"
#include "provider/raft/identity.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Whatever is greeted, the verdict is one of the known ones, and has its reason. */
static void judge(const struct greeting *theirs)
{
    struct raft_member member = {.id = theirs->id, .birth = 1, .weight = 1, .name = "c"};
    struct raft_configuration members = {.group = 1, .members = &member, .count = 1};
    struct greeting ours = {.cluster = "jobs", .name = "a", .group = 1, .founders = 1};
    struct storage_peer known = {.id = theirs->id, .birth = 1, .incarnation = 1, .term = 1};
    struct identity_view view = {.ours = &ours, .members = &members, .known = &known};
    char why[IDENTITY_WHY_MAX] = "";
    struct raft_settings settings;
    enum refusal refusal = identity_check(&view, theirs, why);

    if (refusal > REFUSAL_FORMED || (refusal != REFUSAL_NONE && !why[0])) {
        abort();
    }
    (void)identity_is_sound(theirs);
    if (raft_settings_preset(&settings, "fast", NULL) == 0) {
        identity_compare(&settings, theirs, why);
    }
}

static void write_again(uint32_t cluster, const struct frame *frame, size_t used)
{
    struct buffer buffer;

    buffer_init(&buffer, FRAME_BYTES_MAX + 64);
    if (frame->type == FRAME_MESSAGE) {
        frame_put_message(&buffer, cluster, &frame->message);
    } else if (frame->type == FRAME_PART) {
        frame_put_part(&buffer, cluster, &frame->part);
    } else {
        judge(&frame->greeting);
        frame_put_greeting(&buffer, cluster, &frame->greeting);
    }
    if (buffer.failed || buffer.bytes != used) {
        abort();
    }
    buffer_fini(&buffer);
}

static void take(const uint8_t *data, size_t bytes)
{
    static struct frame_scratch scratch;
    struct frame frame;
    uint32_t cluster = 0;
    int used;

    if (bytes >= 10) { /* nobody guesses the cluster: take the one that the bytes name */
        struct reader reader = reader_of(data + 6, 4);
        cluster = reader_u32(&reader);
    }
    used = frame_take(&frame, &scratch, cluster, data, bytes);
    if (used > 0 &&
        (frame.type == FRAME_MESSAGE || frame.type == FRAME_GREETING || frame.type == FRAME_PART)) {
        write_again(cluster, &frame, (size_t)used);
    }
}

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint8_t *whole;

    take(data, bytes);
    if (bytes < FRAME_OVERHEAD || bytes > FRAME_BYTES_MAX || !(whole = malloc(bytes))) {
        return 0;
    }
    memcpy(whole, data, bytes); /* the same as one whole frame: nobody guesses a checksum either */
    put_u32(whole, (uint32_t)bytes);
    whole[4] = FRAME_VERSION;
    put_u32(whole + bytes - 4, crc32c(0, whole, bytes - 4));
    take(whole, bytes);
    free(whole);
    return 0;
}
