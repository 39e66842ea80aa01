#include "unit/detector_model/zip_maker.h"

#include "cmocka_all.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint32_t bytes_of(const struct zip_part *part)
{
    return (uint32_t)(part->bytes > 0 || part->text == NULL ? part->bytes : strlen(part->text));
}

static uint32_t crc_of(const struct zip_part *part)
{
    uint32_t crc = UINT32_MAX, bytes = bytes_of(part);

    for (uint32_t i = 0; i < bytes; i++) {
        crc ^= (unsigned char)part->text[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
        }
    }
    return ~crc;
}

/* What a local header and the directory have in common. */
static void put_common(struct buffer *ret, const struct zip_part *part)
{
    uint32_t bytes = bytes_of(part);

    buffer_put_u16(ret, 20); /* version that is needed */
    buffer_put_u16(ret, (uint16_t)part->flags);
    buffer_put_u16(ret, (uint16_t)part->method);
    buffer_put_u32(ret, 0x21 << 16); /* a time and a day */
    buffer_put_u32(ret, crc_of(part) ^ part->wrong_crc);
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
        buffer_put(ret, parts[i].text, bytes_of(&parts[i]));
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

int zip_promise(uint64_t entries)
{
    uint64_t directory = entries * 46;
    struct buffer end;
    int fd;

    buffer_init(&end, 256);
    buffer_put_text(&end, "PK\6\6"); /* with numbers of 64 bits */
    buffer_put_u64(&end, 44);
    buffer_put_u32(&end, 45 << 16 | 45);
    buffer_put_u64(&end, 0);
    buffer_put_u64(&end, entries);
    buffer_put_u64(&end, entries);
    buffer_put_u64(&end, directory);
    buffer_put_u64(&end, 0);
    buffer_put_text(&end, "PK\6\7");
    buffer_put_u32(&end, 0);
    buffer_put_u64(&end, directory);
    buffer_put_u32(&end, 1);
    buffer_put_text(&end, "PK\5\6");
    buffer_put_u32(&end, 0);
    buffer_put_u32(&end, UINT32_MAX);
    buffer_put_u32(&end, (uint32_t)directory);
    buffer_put_u32(&end, 0);
    buffer_put_u16(&end, 0);
    fd = memfd_create("archive", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, end.data, end.bytes, (off_t)directory), (ssize_t)end.bytes);
    buffer_fini(&end);
    return fd;
}
