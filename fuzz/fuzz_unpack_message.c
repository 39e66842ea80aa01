/* What baton-unpack says, if a hostile archive has taken it over: whatever it is, no file comes of
 * it but those that pipeline.json names, whole, and of no more bytes than are allowed.
 *
 * The input: for each message two bytes of length, then the message. */
#include "detector/model/archive_int.h"
#include "place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNPACKED_BYTES = 1 << 16 };

struct input {
    const uint8_t *data;
    size_t size;
};

/* Each message lies in memory of its own size, so that a read beyond it is seen. */
static int next_file(void *userdata, const char *name, const struct archive_sink *sink,
                     struct baton_error *reterr)
{
    struct input *input = userdata;
    bool is_done = false;
    int rc = 0;

    (void)name;
    while (rc == 0 && !is_done && input->size >= 2) {
        size_t bytes = (size_t)input->data[0] | (size_t)input->data[1] << 8;
        struct unpack_message *message;

        bytes = bytes > input->size - 2 ? input->size - 2 : bytes;
        message = malloc(bytes > UNPACK_HEAD_BYTES ? bytes : UNPACK_HEAD_BYTES);
        assert(message != NULL);
        memcpy(message, input->data + 2, bytes);
        rc = archive_accept(sink, message, bytes, &is_done, reterr);
        free(message);
        input->data += 2 + bytes;
        input->size -= 2 + bytes;
    }
    return rc != 0 || is_done ? rc : BATON_EPROTO;
}

static void read_pipeline(struct pipeline *ret, int parent_fd)
{
    struct buffer text;

    buffer_init(&text, ARCHIVE_TEXT_MAX);
    assert(archive_text(&text, parent_fd, "model", NULL) == 0);
    assert(pipeline_parse(ret, (const char *)text.data, text.bytes, NULL) == 0);
    buffer_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct archive_rules rules = {.unpacked_bytes_max = UNPACKED_BYTES};
    struct input input = {data, size};
    const struct archive_source source = {next_file, &input};
    int parent_fd = open_place();

    if (archive_write(&source, parent_fd, "model", &rules, NULL) == 0) {
        struct pipeline pipeline;
        uint64_t bytes;
        read_pipeline(&pipeline, parent_fd);
        pipeline_fini(&pipeline);
        assert(folder_bytes(parent_fd, "model", &bytes, NULL) == 0 && bytes <= UNPACKED_BYTES);
        assert(folder_remove(parent_fd, "model", NULL) == 0);
    }
    assert(drafts_sweep(parent_fd, NULL) == 0);
    return 0;
}
