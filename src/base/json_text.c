#include "base/json_text.h"

static int append(const char *text, size_t bytes, void *userdata)
{
    struct buffer *buffer = userdata;

    buffer_put(buffer, text, bytes);
    return buffer->failed ? -1 : 0;
}

void json_put_to(struct buffer *buffer, const json_t *json, size_t flags)
{
    if ((json_dump_callback)(json, append, buffer, flags) != 0) {
        buffer->failed = true;
    }
}

char *json_text(const json_t *json, size_t flags)
{
    struct buffer buffer;

    buffer_init(&buffer, SIZE_MAX / 2);
    json_put_to(&buffer, json, flags);
    if (buffer_text(&buffer) == NULL) {
        buffer_fini(&buffer);
    }
    return (char *)buffer.data;
}
