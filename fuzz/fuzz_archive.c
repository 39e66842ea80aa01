/* Model archives: whatever the bytes are, reading them ends, and gives bytes of the files that are
 * asked for, or an error. */
#include "base/error.h"
#include "detector/model/archive.h"
#include "detector/model/archive_scan.h"
#include "detector/model/unpack_wire.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNPACKED_BYTES = 1 << 20 };

static int keep(void *userdata, const void *bytes, size_t count, struct baton_error *error)
{
    assert(count <= UNPACK_DATA_MAX);
    buffer_put(userdata, bytes, count);
    return ((struct buffer *)userdata)->failed ? error_set(error, BATON_ETOOBIG, "too large") : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);
    struct baton_error error;
    struct buffer text;
    zip_t *zip;

    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    buffer_init(&text, UNPACKED_BYTES);
    if (archive_open(&zip, fdopen(fd, "r"), &error) == 0) {
        struct pipeline pipeline = {0};

        if (archive_file(zip, PIPELINE_FILE, keep, &text, &error) == 0 &&
            pipeline_parse(&pipeline, (const char *)text.data, text.bytes, NULL) == 0) {
            for (size_t i = 0; i < pipeline.model_count; i++) {
                buffer_clear(&text);
                (void)archive_file(zip, pipeline.models[i].file, keep, &text, &error);
            }
        }
        pipeline_fini(&pipeline);
        zip_discard(zip);
    }
    buffer_fini(&text);
    return 0;
}
