/* Model archives: whatever the bytes are, reading them ends, and gives bytes of the files that are
 * asked for, or an error. */
#include "detector/model/archive.h"
#include "detector/model/pipeline.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MODEL_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);
    struct archive archive;
    void *bytes;
    size_t count;

    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    if (archive_open(&archive, fdopen(fd, "r"), 0, NULL) == 0) {
        struct pipeline pipeline = {0};

        if (archive_unpack(&archive, PIPELINE_FILE, PIPELINE_BYTES_MAX, &bytes, &count, NULL) ==
            0) {
            assert(count > 0 && count <= PIPELINE_BYTES_MAX);
            (void)pipeline_parse(&pipeline, bytes, count, NULL);
            (void)munmap(bytes, count);
        }
        for (size_t i = 0; i < pipeline.model_count; i++) {
            if (archive_unpack(&archive, pipeline.models[i].file, MODEL_BYTES, &bytes, &count,
                               NULL) == 0) {
                assert(count > 0 && count <= MODEL_BYTES);
                (void)munmap(bytes, count);
            }
        }
        assert(archive.unpacked <= archive.unpacked_max);
        pipeline_fini(&pipeline);
        zip_discard(archive.zip);
    }
    return 0;
}
