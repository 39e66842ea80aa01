#include "detector/camera/message.h"

#include "detector/camera/ring.h"

static void make_printable(char *text, size_t bytes_max)
{
    text[bytes_max - 1] = '\0';
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e) {
            *text = '?';
        }
    }
}

static const char *find_fault(const struct camera_message *message)
{
    struct ring_layout layout;

    switch (message->type) {
    case MESSAGE_OPENED:
    case MESSAGE_PROGRESS:
        return NULL;
    case MESSAGE_FRAME:
        if (ring_layout(&layout, message->width, message->height, NULL) != 0) {
            return "its size";
        }
        if (message->slot >= RING_SLOTS) {
            return "its slot";
        }
        if ((message->flags & ~FRAME_FLAGS) != 0) {
            return "its flags";
        }
        return message->sequence != 0 ? NULL : "its sequence";
    case MESSAGE_END:
        return message->code <= 0 ? NULL : "its code";
    default:
        return "its type";
    }
}

int message_check(struct camera_message *message, size_t bytes, struct baton_error *reterr)
{
    const char *fault;

    if (bytes != sizeof(*message)) {
        return error_set(reterr, BATON_EPROTO, "message of %zu bytes: must have %zu", bytes,
                         sizeof(*message));
    }
    fault = find_fault(message);
    if (fault != NULL) {
        return error_set(reterr, BATON_EPROTO, "message of type %u: %s is not allowed",
                         message->type, fault);
    }
    make_printable(message->codec, sizeof(message->codec));
    make_printable(message->hardware, sizeof(message->hardware));
    make_printable(message->text, sizeof(message->text));
    return 0;
}
