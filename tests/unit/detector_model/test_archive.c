/* What a model archive may hold, and that nothing else gets out of one: its child is confined, and
 * what that says is not believed. */
#include "cmocka_all.h"

#include "detector/model/archive.h"
#include "detector/model/archive_scan.h"
#include "lib/assert_ok.h"
#include "lib/process.h"
#include "unit/detector_model/sample.h"
#include "unit/detector_model/unpack_liar.h"
#include "unit/detector_model/zip_maker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zip.h>

enum { ARCHIVE_BYTES = 1 << 20, TEXT_BYTES = 8192, LARGE_BYTES = 8 << 20, KEPT_US = 50000 };

static const struct zip_part good_parts[] = {{.name = "pipeline.json", .text = SAMPLE_PIPELINE},
                                             {.name = SAMPLE_MODEL, .text = "a model"}};

static struct {
    char path[64];
    int fd;
    struct buffer archive;
    struct archive_rules rules;
    struct unpacked unpacked; /* what came of the last good one */
} place;

static void forget(void)
{
    unpacked_fini(&place.unpacked);
    memset(place.unpacked.files, -1, sizeof(place.unpacked.files));
}

static int unpack(int archive_fd, struct baton_error *error)
{
    forget();
    return archive_unpack(&place.unpacked, archive_fd, place.fd, &place.rules, error);
}

static int set_up(void **state)
{
    process_make_folder(place.path, sizeof(place.path));
    place.fd = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place.fd >= 0);
    buffer_init(&place.archive, ARCHIVE_BYTES);
    place.rules = archive_rules_default();
    memset(place.unpacked.files, -1, sizeof(place.unpacked.files));
    return 0;
}

static int tear_down(void **state)
{
    forget();
    process_remove_folder(place.path);
    close(place.fd);
    buffer_fini(&place.archive);
    return 0;
}

/* No file, also while one is open, and no child. */
static void assert_empty(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(process_count_entries(place.path), 0);
}

static int unpack_bytes(const void *bytes, size_t count, struct baton_error *error)
{
    int fd = zip_file_of(bytes, count);
    int rc = unpack(fd, error);

    close(fd);
    return rc;
}

static int read_file(struct buffer *text, zip_t *zip, const char *name)
{
    char bytes[TEXT_BYTES];
    struct archive_file file;
    ssize_t got = 1;
    int rc = archive_file(&file, zip, name, NULL);

    if (rc != 0) {
        return rc;
    }
    while (got > 0) {
        got = archive_read(&file, bytes, sizeof(bytes), NULL);
        buffer_put(text, bytes, got > 0 ? (size_t)got : 0);
    }
    (void)zip_fclose(file.file);
    return (int)got;
}

/* Reads what the child would send, without a child: a sanitizer takes longer to start one. */
static int read_here(size_t count)
{
    zip_t *zip = NULL;
    struct buffer text;
    int rc = archive_open(&zip, fdopen(zip_file_of(place.archive.data, count), "r"), NULL);

    buffer_init(&text, ARCHIVE_BYTES);
    rc = rc ? rc : read_file(&text, zip, PIPELINE_FILE);
    rc = rc ? rc : read_file(&text, zip, SAMPLE_MODEL);
    if (rc == 0) {
        assert_string_equal(buffer_text(&text), SAMPLE_PIPELINE "a model");
    }
    if (zip != NULL) {
        zip_discard(zip);
    }
    buffer_fini(&text);
    return rc;
}

static int unpack_parts(const struct zip_part *parts, size_t count, const struct zip_lies *lies,
                        struct baton_error *error)
{
    buffer_clear(&place.archive);
    zip_make(&place.archive, parts, count, lies);
    return unpack_bytes(place.archive.data, place.archive.bytes, error);
}

/* It leaves nothing, and says so. */
static void assert_refused(const struct zip_part *parts, size_t count, const struct zip_lies *lies,
                           const char *says)
{
    ASSERT_FAILS(unpack_parts(parts, count, lies, failure), BATON_EPROTO, says);
    assert_empty();
}

static void assert_taken(const struct zip_part *parts, size_t count, const struct zip_lies *lies)
{
    const struct unpacked *unpacked = &place.unpacked;
    char text[TEXT_BYTES];

    ASSERT_OK(unpack_parts(parts, count, lies, failure));
    assert_int_equal(unpacked->pipeline.model_count, 1);
    assert_string_equal(unpacked->pipeline.models[0].file, SAMPLE_MODEL);
    assert_string_equal(unpacked->pipeline.stages[0].fields[0].name, "n");
    assert_int_equal(pread(unpacked->files[0], text, sizeof(text), 0), strlen("a model"));
    assert_memory_equal(text, "a model", strlen("a model"));
    assert_int_equal(fcntl(unpacked->files[0], F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_int_equal(unpacked->files[1], -1);
    assert_int_equal(unpacked->bytes, strlen(SAMPLE_PIPELINE) + strlen("a model"));
    assert_empty();
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

static void each_hostile_entry_is_refused_by_name_and_leaves_nothing(void **state)
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
    static const int lies[] = {-19, -1, 1, 1 << 30};
    struct zip_part parts[] = {good_parts[0],
                               {.name = SAMPLE_MODEL,
                                .text = deflated,
                                .method = 8,
                                .wrong_crc = 0x995ac97d, /* that of the text, not of these bytes */
                                .extra_bytes = 19 - (sizeof(deflated) - 1)}};
    uint32_t honest = parts[1].extra_bytes;

    ASSERT_OK(unpack_parts(parts, 2, NULL, failure));
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        parts[1].extra_bytes = honest + (uint32_t)lies[i];
        unpacked_fini(&place.unpacked);
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
    assert_empty();
    assert_taken(parts, ARCHIVE_ENTRIES_MAX, NULL);
}

static void a_pipeline_that_is_missing_or_wrong_is_refused(void **state)
{
    static const struct hostile rows[] = {
        {{.name = "readme", .text = "x"}, "there is no pipeline.json in it"},
        {{.name = "cars/pipeline.json", .text = SAMPLE_PIPELINE},
         "pipeline.json must be at its top, not in a folder: zip what is in the folder \"cars\""},
        {{.name = "pipeline.json", .text = "{}"}, "pipeline.json: version is missing"},
        {{.name = "pipeline.json", .text = ""}, "pipeline.json: not valid JSON"},
    };
    const struct zip_part misspelt[] = {good_parts[0], {.name = "models/car.onnx", .text = "x"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct zip_part parts[] = {rows[i].part, good_parts[1]};

        assert_refused(parts, 2, NULL, rows[i].says);
    }
    assert_refused(misspelt, 2, NULL,
                   "pipeline.json: models.cars.file: \"models/cars.onnx\" is not in the archive; "
                   "did you mean \"models/car.onnx\"?");
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

static void a_bomb_is_refused_while_it_is_unpacked(void **state)
{
    int fd = bomb(ARCHIVE_RATIO_FREE + 1);

    ASSERT_FAILS(unpack(fd, failure), BATON_ETOOBIG, "more than 100 times as many");
    assert_empty();
    close(fd);

    fd = bomb(ARCHIVE_RATIO_FREE / 2); /* small ones are what a model of zeroes may be */
    ASSERT_OK(unpack(fd, failure));
    place.rules.unpacked_bytes_max = ARCHIVE_RATIO_FREE / 2;
    ASSERT_FAILS(unpack(fd, failure), BATON_ETOOBIG, "unpacks to more than 8388608 bytes");
    place.rules.archive_bytes_max = 100;
    ASSERT_FAILS(unpack(fd, failure), BATON_ETOOBIG, "at most 100 are allowed");
    assert_empty();
    close(fd);
}

static void a_torn_archive_is_refused_wherever_it_is_torn(void **state)
{
    zip_make(&place.archive, good_parts, 2, NULL);
    for (size_t i = 0; i < place.archive.bytes; i++) {
        if (read_here(i) != BATON_EPROTO) {
            fail_msg("%zu bytes of it", i);
        }
    }
    assert_int_equal(unpack_bytes(place.archive.data, place.archive.bytes / 2, NULL), BATON_EPROTO);
    assert_empty();
}

static void a_flipped_bit_never_gets_into_a_model(void **state)
{
    size_t refused = 0;

    zip_make(&place.archive, good_parts, 2, NULL);
    for (size_t i = 0; i < place.archive.bytes * 8; i++) {
        place.archive.data[i / 8] ^= (uint8_t)(1U << i % 8);
        refused += read_here(place.archive.bytes) != 0; /* else in a date or the like */
        place.archive.data[i / 8] ^= (uint8_t)(1U << i % 8);
    }
    assert_true(refused > place.archive.bytes * 4);
}

/* In a child: the limit is of the process. */
static void a_disk_that_is_full_leaves_nothing(void **state)
{
    struct rlimit limit = {4, 4};
    int status = 0;
    pid_t child;

    zip_make(&place.archive, good_parts, 2, NULL);
    child = fork();
    if (child == 0) {
        int fd = zip_file_of(place.archive.data, place.archive.bytes);
        struct baton_error error = {0};
        (void)signal(SIGXFSZ, SIG_IGN);
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        _exit(unpack(fd, &error) != 0 && strstr(error.message, "make room for it") != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_empty();
}

/* ---- Its child ------------------------------------------------------------------------------- */

static int lie(enum lie which, struct baton_error *error)
{
    const char first = (char)which;

    place.rules.program = BATON_LIAR_PROGRAM;
    place.rules.unpacked_bytes_max = 4 << 20;
    return unpack_bytes(&first, 1, error);
}

static void what_the_child_says_is_not_believed(void **state)
{
    static const struct {
        enum lie lie;
        int code;
        const char *said;
    } cases[] = {
        {LIE_NOTHING, BATON_EUNAVAILABLE, "without a word"},
        {LIE_CRASH, BATON_EPROTO, "signal 11"},
        {LIE_CLOSED, BATON_EUNAVAILABLE, "without a word"},
        {LIE_HALF_HEAD, BATON_EPROTO, "nonsense"},
        {LIE_ERROR, BATON_EPROTO, "a?[31m?b"},
        {LIE_CODE, BATON_EPROTO, "nonsense"},
        {LIE_LONG_ERROR, BATON_EPROTO, "nonsense"},
        {LIE_BAD_PIPELINE, BATON_EPROTO, "pipeline.json"},
        {LIE_LONG_PIPELINE, BATON_ETOOBIG, "pipeline.json has more than 1048576 bytes"},
        {LIE_ENDLESS, BATON_ETOOBIG, "limit"},
        {LIE_TORN, BATON_EUNAVAILABLE, "without a word"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("lie %d\n", (int)cases[i].lie);
        ASSERT_FAILS(lie(cases[i].lie, failure), cases[i].code, cases[i].said);
        assert_empty();
    }
    assert_int_equal(lie(LIE_NONE, NULL), 0);
}

static void a_silent_child_is_given_up_with_its_order(void **state)
{
    atomic_bool is_canceled = true;

    place.rules.is_canceled = &is_canceled;
    assert_int_equal(lie(LIE_SILENT, NULL), BATON_ECANCELED);
    assert_empty();
}

static void a_child_that_is_missing_is_named(void **state)
{
    place.rules.program = "/nonexistent/baton-unpack";
    ASSERT_FAILS(unpack_bytes("", 0, failure), BATON_EUNAVAILABLE, "/nonexistent/baton-unpack");
    assert_empty();
}

/* The file of /proc of that process. */
static void read_proc(pid_t pid, const char *name, char text[TEXT_BYTES])
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    (void)process_read_file(path, text, TEXT_BYTES);
}

/* Nobody reads what it says, and its archive is too large to be told at once, so it waits in the
 * middle of its work. */
static void start_waiting(struct helper *ret)
{
    char *large = calloc(1, LARGE_BYTES + 1);
    struct pollfd fd = {.events = POLLIN};
    int archive_fd;

    assert_non_null(large);
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        large[i] = (char)(1 + i * 2654435761U % 251);
    }
    archive_fd = zip_sample(large);
    free(large);
    assert_int_equal(unpack_child_start(ret, archive_fd, &place.rules, NULL), 0);
    assert_int_equal(send(ret->socket, SAMPLE_MODEL, strlen(SAMPLE_MODEL), 0),
                     (ssize_t)strlen(SAMPLE_MODEL));
    fd.fd = ret->socket;
    assert_int_equal(poll(&fd, 1, 20000), 1); /* it begins to tell: the fences stand */
    close(archive_fd);
}

static void the_child_is_confined_when_it_reads(void **state)
{
    struct helper child;
    char text[TEXT_BYTES];

    start_waiting(&child);
    read_proc(child.pid, "status", text);
    assert_non_null(strstr(text, "\nNoNewPrivs:\t1\n"));
    assert_non_null(strstr(text, "\nSeccomp:\t2\n"));
    assert_non_null(strstr(text, "\nCapEff:\t0000000000000000\n"));
    assert_non_null(strstr(text, "\nThreads:\t1\n"));
    if (geteuid() == 0) {
        assert_non_null(strstr(text, "\nUid:\t65534\t65534\t65534\t65534\n"));
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they map terabytes */
    read_proc(child.pid, "limits", text);
    assert_non_null(strstr(text, "\nMax address space         268435456 "));
#endif
    unpack_child_end(&child);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static int begun[2]; /* a pipe */

/* Is told of its end first, and keeps it for a moment, as strace does, or a leak checker. */
static int trace(void *userdata)
{
    const pid_t *child = userdata;

    if (ptrace(PTRACE_SEIZE, *child, NULL, NULL) != 0 || write(begun[1], "", 1) != 1) {
        return EXIT_FAILURE;
    }
    (void)waitid(P_PID, (id_t)*child, &(siginfo_t){0}, WEXITED | WNOWAIT);
    (void)usleep(KEPT_US);
    return EXIT_SUCCESS;
}

static void a_child_that_is_traced_is_waited_for(void **state)
{
    struct helper child;
    char byte;
    pid_t tracer;
    int status;

    start_waiting(&child);
    assert_int_equal(pipe(begun), 0);
    tracer = process_fork(trace, &child.pid);
    close(begun[1]);
    if (read(begun[0], &byte, 1) == 1) {
        status = helper_kill(&child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_int_equal(process_wait(tracer), 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    } else {
        print_message("not tested: tracing takes root\n");
        process_end(tracer);
    }
    unpack_child_end(&child);
    close(begun[0]);
}

static pid_t start(void *userdata)
{
    struct helper child;

    start_waiting(&child);
    return child.pid;
}

/* One that is stopped does not notice that nobody listens any more. */
static void a_child_that_hangs_dies_with_who_started_it(void **state)
{
    process_must_die_with_starter(start, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_pipeline_does_not_name_stays_inside),
        TEST(each_hostile_entry_is_refused_by_name_and_leaves_nothing),
        TEST(a_wrong_length_or_checksum_is_found),
        TEST(a_deflated_file_of_another_length_than_it_says_is_refused),
        TEST(an_end_that_lies_is_refused),
        TEST(too_many_entries_are_refused),
        TEST(a_pipeline_that_is_missing_or_wrong_is_refused),
        TEST(a_bomb_is_refused_while_it_is_unpacked),
        TEST(a_torn_archive_is_refused_wherever_it_is_torn),
        TEST(a_flipped_bit_never_gets_into_a_model),
        TEST(a_disk_that_is_full_leaves_nothing),
        TEST(what_the_child_says_is_not_believed),
        TEST(a_silent_child_is_given_up_with_its_order),
        TEST(a_child_that_is_missing_is_named),
        TEST(the_child_is_confined_when_it_reads),
        TEST(a_child_that_is_traced_is_waited_for),
        TEST(a_child_that_hangs_dies_with_who_started_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
