/* What baton-unpack says, if a hostile archive has taken it over: whatever it is, no file comes of
 * it but those that pipeline.json names, whole, and of no more bytes than are allowed.
 *
 * The input: for each message two bytes of length, then the message. */
#include "detector/model/archive.h"
#include "detector/model/archive_int.h"
#include "place.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNPACKED_BYTES = 1 << 16 };

/* Each message lies in memory of its own size, so that a read beyond it is seen. */
static int accept_all(struct archive_draft *to, const uint8_t *data, size_t size, bool *is_done)
{
    int rc = 0;

    while (rc == 0 && !*is_done && size >= 2) {
        size_t bytes = (size_t)data[0] | (size_t)data[1] << 8;
        struct unpack_message *message;

        bytes = bytes > size - 2 ? size - 2 : bytes;
        message = malloc(bytes > UNPACK_HEAD_BYTES ? bytes : UNPACK_HEAD_BYTES);
        assert(message != NULL);
        memcpy(message, data + 2, bytes);
        rc = archive_accept(to, message, bytes, is_done, NULL);
        free(message);
        data += 2 + bytes;
        size -= 2 + bytes;
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct archive_rules rules = {.unpacked_bytes_max = UNPACKED_BYTES};
    int parent_fd = open_place();
    struct archive_draft to;
    bool is_done = false;

    assert(archive_draft_open(&to, parent_fd, &rules, NULL) == 0);
    if (accept_all(&to, data, size, &is_done) == 0 && is_done &&
        archive_draft_end(&to, "model", NULL) == 0) {
        struct pipeline pipeline;
        uint64_t bytes;
        assert(archive_pipeline(&pipeline, parent_fd, "model", NULL) == 0);
        pipeline_fini(&pipeline);
        assert(folder_bytes(parent_fd, "model", &bytes, NULL) == 0 && bytes <= UNPACKED_BYTES);
        assert(folder_remove(parent_fd, "model", NULL) == 0);
    }
    archive_draft_close(&to);
    assert(drafts_sweep(parent_fd, NULL) == 0);
    return 0;
}
