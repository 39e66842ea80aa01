/* What a model archive may hold, and that nothing else gets out of one. */
#include "cmocka_all.h"

#include "detector/model/archive.h"
#include "detector/model/pipeline.h"
#include "lib/assert_ok.h"
#include "unit/detector_model/sample.h"
#include "unit/detector_model/zip_maker.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARCHIVE_BYTES = 1 << 20, MODEL_BYTES = 64 << 20 };

static const struct zip_part good_parts[] = {{.name = "pipeline.json", .text = SAMPLE_PIPELINE},
                                             {.name = SAMPLE_MODEL, .text = "a model"}};

static struct buffer made;
static const char *model; /* that comes out if it is a good one */

static int set_up(void **state)
{
    buffer_init(&made, ARCHIVE_BYTES);
    model = good_parts[1].text;
    return 0;
}

static int tear_down(void **state)
{
    buffer_fini(&made);
    return 0;
}

/* Unpacks both files. Whatever comes out is what was put in, and is no more than was counted. */
static int unpack_both(struct archive *archive, struct baton_error *error)
{
    const char *const texts[] = {SAMPLE_PIPELINE, model};
    size_t count = 0;
    int rc = 0;

    for (int i = 0; i < 2 && rc == 0; i++) {
        void *bytes = NULL;

        rc = archive_unpack(archive, good_parts[i].name, MODEL_BYTES, &bytes, &count, error);
        if (rc == 0 && count < MODEL_BYTES / 8) { /* else it is a bomb of zeroes */
            assert_int_equal(count, strlen(texts[i]));
            assert_memory_equal(bytes, texts[i], count);
        }
        if (rc == 0) {
            (void)munmap(bytes, count);
        }
    }
    return rc;
}

/* `unpacked_max`: 0: as the archive allows. */
static int unpack_file(int fd, uint64_t bytes_max, uint64_t unpacked_max, struct baton_error *error)
{
    struct archive archive;
    int rc = archive_open(&archive, fdopen(fd, "r"), bytes_max, error);

    if (rc == 0) {
        archive.unpacked_max = unpacked_max > 0 ? unpacked_max : archive.unpacked_max;
        rc = unpack_both(&archive, error);
        zip_discard(archive.zip);
    }
    return rc;
}

/* The first bytes of what was made. */
static int unpack(size_t count, struct baton_error *error)
{
    return unpack_file(zip_file_of(made.data, count), 0, 0, error);
}

static int unpack_parts(const struct zip_part *parts, size_t count, const struct zip_lies *lies,
                        struct baton_error *error)
{
    buffer_clear(&made);
    zip_make(&made, parts, count, lies);
    return unpack(made.bytes, error);
}

static void assert_refused(const struct zip_part *parts, size_t count, const struct zip_lies *lies,
                           const char *says)
{
    ASSERT_FAILS(unpack_parts(parts, count, lies, failure), BATON_EPROTO, says);
}

static void assert_taken(const struct zip_part *parts, size_t count, const struct zip_lies *lies)
{
    ASSERT_OK(unpack_parts(parts, count, lies, failure));
}

/* Also what other systems and programs put into archives by themselves. */
static void what_the_pipeline_does_not_name_stays_inside(void **state)
{
    const struct zip_part parts[] = {
        good_parts[0],
        good_parts[1],
        {.name = "run.py", .text = "import os"},
        {.name = "nested.mpta", .text = "PK"},
        {.name = "models/", .mode = S_IFDIR | 0755},
        {.name = "models/other.onnx", .text = "x", .mode = S_IFREG | 04777},
        {.name = ".DS_Store", .text = "x"},
        {.name = "__MACOSX/models/._cars.onnx", .text = "x"},
        {.name = "models/Thumbs.db ", .text = "x"},
        {.name = "Gr\x81n.txt", .text = "x"},
        {.name = "a/b/c/d/e/f", .text = "x"},
        {.name = "MODELS/CARS.onnx", .text = "x"},
        {.name = "...", .text = "x"},
        {.name = "..a/ b*(1)~", .text = "x"},
    };

    assert_taken(parts, sizeof(parts) / sizeof(parts[0]),
                 &(struct zip_lies){.comment = "made by hand"});
}

static const struct hostile {
    struct zip_part part;
    const char *says;
} hostile[] = {
    {{.name = "../evil", .text = "x"}, "entry \"../evil\" has a name that"},
    {{.name = "models/../../evil", .text = "x"}, "has a name that is absolute"},
    {{.name = "/etc/evil", .text = "x"}, "has a name that is absolute"},
    {{.name = "a\\..\\evil", .text = "x"}, "has a name that is absolute"},
    {{.name = "C:evil", .text = "x"}, "has a name that is absolute"},
    {{.name = "a//b", .text = "x"}, "has a name that is absolute"},
    {{.name = "a/./b", .text = "x"}, "has a name that is absolute"},
    {{.name = "a\x7f", .text = "x"}, "has a name that is absolute"},
    {{.name = "a\n\x1b[2J", .text = "x"}, "entry \"a??[2J\" has a name"},
    {{.name = "caf\xe9\\x", .text = "x"}, "entry \"caf?\\x\" has a name"},
    {{.name = "/", .mode = S_IFDIR | 0755}, "has a name that is absolute"},
    {{.name = "../", .mode = S_IFDIR | 0755}, "has a name that is absolute"},
    {{.name = "a/b/c/d/..", .text = "x"}, "has a name that is absolute"},
    {{.name = ".hidden", .text = "/etc/passwd", .mode = S_IFLNK | 0777},
     "entry \".hidden\" is a link"},
    {{.name = "link/", .mode = S_IFLNK | 0777}, "is a link"},
    {{.name = "pipe", .mode = S_IFIFO | 0644}, "or no file at all"},
    {{.name = "disk", .mode = S_IFBLK | 0644}, "or no file at all"},
    {{.name = "null", .mode = S_IFCHR | 0644}, "or no file at all"},
    {{.name = "door", .mode = S_IFSOCK | 0644}, "or no file at all"},
    {{.name = "file", .mode = S_IFDIR | 0755}, "or no file at all"},
    {{.name = "folder/", .mode = S_IFREG | 0644}, "or no file at all"},
    {{.name = "models/cars.onnx", .text = "another"}, "a name is there twice"},
    {{.name = "secret", .text = "x", .flags = 1}, "is encrypted: make the archive"},
    {{.name = "a.bz2", .text = "x", .method = 12}, "is compressed in a way that"},
    {{.name = "a.xz", .text = "x", .method = 95}, "is compressed in a way that"},
    {{.name = "a", .text = "x", .method = 99}, "cannot be opened"},
    {{.name = "a", .text = "x", .packed_bytes = 1 << 20}, "cannot be opened"},
};

static void each_hostile_entry_is_refused_by_name(void **state)
{
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        const struct zip_part parts[] = {good_parts[0], good_parts[1], hostile[i].part};

        assert_refused(parts, 3, NULL, hostile[i].says);
    }
}

/* The named model itself, wrong. */
static void a_wrong_length_or_checksum_is_found(void **state)
{
    static const struct hostile rows[] = {
        {{.wrong_crc = 1}, "models/cars.onnx: CRC error"},
        {{.extra_bytes = 1}, "models/cars.onnx"},
        {{.extra_bytes = UINT32_MAX}, "models/cars.onnx"}, /* one less */
        {{.method = 8}, "models/cars.onnx"},               /* no deflate stream */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct zip_part parts[] = {good_parts[0], rows[i].part};

        parts[1].name = good_parts[1].name;
        parts[1].text = good_parts[1].text;
        assert_refused(parts, 2, NULL, rows[i].says);
    }
}

/* "a model, a model, !" as deflate writes it: the library knows how long it is at its end. */
static void a_deflated_file_of_another_length_than_it_says_is_refused(void **state)
{
    static const char deflated[] = "KT\xc8\xcdOI\xcd\xd1QH\x84\x31\x14\x01";
    static const int lies[] = {-18, -1, 1, 1 << 20};
    struct zip_part parts[] = {good_parts[0],
                               {.name = SAMPLE_MODEL,
                                .text = deflated,
                                .method = 8,
                                .wrong_crc = 0x995ac97d, /* that of the text, not of these bytes */
                                .extra_bytes = 19 - (sizeof(deflated) - 1)}};
    uint32_t honest = parts[1].extra_bytes;

    model = "a model, a model, !";
    ASSERT_OK(unpack_parts(parts, 2, NULL, failure));
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        parts[1].extra_bytes = honest + (uint32_t)lies[i];
        assert_refused(parts, 2, NULL, "models/cars.onnx has another length than the archive says");
    }
}

static void an_end_that_lies_is_refused(void **state)
{
    static const struct zip_lies rows[] = {
        {.entries = 1},
        {.entries = 3},
        {.entries = 65535},
        {.has_zip64 = 1},
        {.directory_bytes = 5 << 20},
        {.directory_bytes = UINT32_MAX},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_refused(good_parts, 2, &rows[i], "it cannot be opened");
    }
}

static void too_many_entries_are_refused(void **state)
{
    static struct zip_part parts[ARCHIVE_ENTRIES_MAX + 1];
    static char names[ARCHIVE_ENTRIES_MAX + 1][16];

    for (size_t i = 0; i < ARCHIVE_ENTRIES_MAX + 1; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "file-%zu", i);
        parts[i] = i < 2 ? good_parts[i] : (struct zip_part){.name = names[i], .text = "x"};
    }
    assert_int_equal(unpack_parts(parts, ARCHIVE_ENTRIES_MAX + 1, NULL, NULL), BATON_ETOOBIG);
    assert_taken(parts, ARCHIVE_ENTRIES_MAX, NULL);
}

static void a_file_that_is_missing_or_empty_is_refused(void **state)
{
    static const struct hostile rows[] = {
        {{.name = "readme", .text = "x"}, "there is no pipeline.json in it"},
        {{.name = "cars/pipeline.json", .text = SAMPLE_PIPELINE},
         "pipeline.json must be at its top, not in a folder: zip what is in the folder \"cars\""},
        {{.name = "pipeline.json", .text = ""}, "pipeline.json: a file of 0 bytes: must be 1 to"},
    };
    const struct zip_part misspelt[] = {good_parts[0], {.name = "models/car.onnx", .text = "x"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct zip_part parts[] = {rows[i].part, good_parts[1]};

        assert_refused(parts, 2, NULL, rows[i].says);
    }
    assert_refused(misspelt, 2, NULL,
                   "\"models/cars.onnx\" is not in the archive; did you mean "
                   "\"models/car.onnx\"?");
}

/* An archive that a library made, deflated, with that many zeroes for a model. */
static int bomb(size_t zeroes)
{
    char path[] = "/tmp/baton-bomb-XXXXXX";
    int fd = mkstemp(path), code = 0;
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    void *bytes = calloc(1, zeroes);

    assert_non_null(zip);
    assert_non_null(bytes);
    close(fd);
    assert_true(zip_file_add(zip, "pipeline.json",
                             zip_source_buffer(zip, SAMPLE_PIPELINE, strlen(SAMPLE_PIPELINE), 0),
                             0) >= 0);
    assert_true(zip_file_add(zip, SAMPLE_MODEL, zip_source_buffer(zip, bytes, zeroes, 0), 0) >= 0);
    assert_int_equal(zip_close(zip), 0);
    free(bytes);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

static void a_bomb_is_refused_before_it_is_unpacked(void **state)
{
    int fd = bomb(ARCHIVE_RATIO_FREE + 1);

    ASSERT_FAILS(unpack_file(fd, 0, 0, failure), BATON_ETOOBIG,
                 "unpacks to more than 16777216 bytes");
    fd = bomb(ARCHIVE_RATIO_FREE / 2); /* small ones are what a model of zeroes may be */
    ASSERT_OK(unpack_file(dup(fd), 0, 0, failure));
    ASSERT_FAILS(unpack_file(dup(fd), 0, ARCHIVE_RATIO_FREE / 2, failure), BATON_ETOOBIG,
                 "unpacks to more than 8388608 bytes");
    ASSERT_FAILS(unpack_file(fd, 100, 0, failure), BATON_ETOOBIG, "at most 100 are allowed");
    fd = bomb(MODEL_BYTES + 1);
    ASSERT_FAILS(unpack_file(fd, 0, UINT64_MAX, failure), BATON_ETOOBIG,
                 "models/cars.onnx: a file of 67108865 bytes: must be 1 to 67108864");
}

static void a_torn_archive_is_refused_wherever_it_is_torn(void **state)
{
    zip_make(&made, good_parts, 2, NULL);
    for (size_t i = 0; i < made.bytes; i++) {
        if (unpack(i, NULL) != BATON_EPROTO) {
            fail_msg("%zu bytes of it", i);
        }
    }
}

static void a_flipped_bit_never_gets_into_a_model(void **state)
{
    size_t refused = 0;

    zip_make(&made, good_parts, 2, NULL);
    for (size_t i = 0; i < made.bytes * 8; i++) {
        made.data[i / 8] ^= (uint8_t)(1U << i % 8);
        refused += unpack(made.bytes, NULL) != 0; /* else in a date or the like */
        made.data[i / 8] ^= (uint8_t)(1U << i % 8);
    }
    assert_true(refused > made.bytes * 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_pipeline_does_not_name_stays_inside),
        TEST(each_hostile_entry_is_refused_by_name),
        TEST(a_wrong_length_or_checksum_is_found),
        TEST(a_deflated_file_of_another_length_than_it_says_is_refused),
        TEST(an_end_that_lies_is_refused),
        TEST(too_many_entries_are_refused),
        TEST(a_file_that_is_missing_or_empty_is_refused),
        TEST(a_bomb_is_refused_before_it_is_unpacked),
        TEST(a_torn_archive_is_refused_wherever_it_is_torn),
        TEST(a_flipped_bit_never_gets_into_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
