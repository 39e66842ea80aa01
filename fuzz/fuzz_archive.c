/* Model archives: whatever the bytes are, reading them ends, and gives bytes of the files that are
 * asked for, or an error. */
#include "base/buffer.h"
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

/* True: all of the file is in the text. */
static bool read_file(struct buffer *text, zip_t *zip, const char *name, struct baton_error *error)
{
    static unsigned char chunk[UNPACK_DATA_MAX];
    struct archive_file file;
    ssize_t got = 1;

    if (archive_file(&file, zip, name, error) != 0) {
        return false;
    }
    while (got > 0 && !text->failed) {
        got = archive_read(&file, chunk, sizeof(chunk), error);
        assert(got <= UNPACK_DATA_MAX);
        buffer_put(text, chunk, got > 0 ? (size_t)got : 0);
    }
    (void)zip_fclose(file.file);
    return got == 0;
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

        if (read_file(&text, zip, PIPELINE_FILE, &error) &&
            pipeline_parse(&pipeline, (const char *)text.data, text.bytes, NULL) == 0) {
            for (size_t i = 0; i < pipeline.model_count; i++) {
                buffer_clear(&text);
                (void)read_file(&text, zip, pipeline.models[i].file, &error);
            }
        }
        pipeline_fini(&pipeline);
        zip_discard(zip);
    }
    buffer_fini(&text);
    return 0;
}
