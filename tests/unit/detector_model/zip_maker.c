#include "unit/detector_model/zip_maker.h"

#include "cmocka_all.h"
#include "unit/detector_model/sample.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAMPLE_ROOM = 4096 }; /* for all but the model */

static uint32_t crc_of(const char *text)
{
    uint32_t crc = UINT32_MAX;

    for (; *text != '\0'; text++) {
        crc ^= (unsigned char)*text;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
        }
    }
    return ~crc;
}

/* What a local header and the directory have in common. */
static void put_common(struct buffer *ret, const struct zip_part *part)
{
    const char *text = part->text != NULL ? part->text : "";
    uint32_t bytes = (uint32_t)strlen(text);

    buffer_put_u16(ret, 20); /* version that is needed */
    buffer_put_u16(ret, (uint16_t)part->flags);
    buffer_put_u16(ret, (uint16_t)part->method);
    buffer_put_u32(ret, 0x21 << 16); /* a time and a day */
    buffer_put_u32(ret, crc_of(text) ^ part->wrong_crc);
    buffer_put_u32(ret, part->packed_bytes != 0 ? part->packed_bytes : bytes);
    buffer_put_u32(ret, bytes + part->extra_bytes);
    buffer_put_u16(ret, (uint16_t)strlen(part->name));
    buffer_put_u16(ret, 0); /* no extra field */
}

static void put_central(struct buffer *ret, const struct zip_part *part, uint32_t offset)
{
    buffer_put_text(ret, "PK\1\2");
    buffer_put_u16(ret, 3 << 8 | 20); /* made on UNIX */
    put_common(ret, part);
    buffer_put_u16(ret, 0); /* no comment */
    buffer_put_u16(ret, 0); /* disk */
    buffer_put_u16(ret, 0);
    buffer_put_u32(ret, (part->mode != 0 ? part->mode : S_IFREG | 0644) << 16);
    buffer_put_u32(ret, offset);
    buffer_put_text(ret, part->name);
}

void zip_make(struct buffer *ret, const struct zip_part *parts, size_t count,
              const struct zip_lies *lies)
{
    static uint32_t offsets[ZIP_MAKER_ENTRIES_MAX];
    size_t start = ret->bytes, directory;
    unsigned entries = (unsigned)count;

    for (size_t i = 0; i < count; i++) {
        offsets[i] = (uint32_t)(ret->bytes - start);
        buffer_put_text(ret, "PK\3\4");
        put_common(ret, &parts[i]);
        buffer_put_text(ret, parts[i].name);
        buffer_put_text(ret, parts[i].text != NULL ? parts[i].text : "");
    }
    directory = ret->bytes;
    for (size_t i = 0; i < count; i++) {
        put_central(ret, &parts[i], offsets[i]);
    }
    entries = lies != NULL && lies->entries != 0 ? lies->entries : entries;
    uint32_t bytes = (uint32_t)(ret->bytes - directory);
    if (lies != NULL && lies->has_zip64) {
        uint8_t nothing[16] = {0};
        buffer_put_text(ret, "PK\6\7");
        buffer_put(ret, nothing, sizeof(nothing));
    }
    buffer_put_text(ret, "PK\5\6");
    buffer_put_u32(ret, 0); /* disks */
    buffer_put_u16(ret, (uint16_t)entries);
    buffer_put_u16(ret, (uint16_t)entries);
    buffer_put_u32(ret, lies != NULL && lies->directory_bytes != 0 ? lies->directory_bytes : bytes);
    buffer_put_u32(ret, (uint32_t)(directory - start));
    const char *comment = lies != NULL && lies->comment != NULL ? lies->comment : "";
    buffer_put_u16(ret, (uint16_t)strlen(comment));
    buffer_put_text(ret, comment);
    assert_false(ret->failed);
}

int zip_file_of(const void *bytes, size_t count)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), (ssize_t)count);
    return fd;
}

int zip_sample(const char *model)
{
    const struct zip_part parts[] = {{.name = "pipeline.json", .text = SAMPLE_PIPELINE},
                                     {.name = SAMPLE_MODEL, .text = model}};
    struct buffer bytes;
    int fd;

    buffer_init(&bytes, strlen(model) + SAMPLE_ROOM);
    zip_make(&bytes, parts, 2, NULL);
    fd = zip_file_of(bytes.data, bytes.bytes);
    buffer_fini(&bytes);
    return fd;
}
