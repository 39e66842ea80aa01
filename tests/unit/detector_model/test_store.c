/* The cache of models: bound, order, what is held. What the next process finds, also after crashes:
 * tests/integration/detector_model. */
#include "cmocka_all.h"

#include "detector/model/store.h"
#include "lib/assert_ok.h"
#include "lib/process.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    EACH = 10000,
    ROOM = 3 * EACH + 1,
};

static struct {
    char path[64];
    struct store *store;
} place;

static int set_up(void **state)
{
    process_make_folder(place.path, sizeof(place.path));
    ASSERT_OK(store_open(&place.store, place.path, ROOM, failure));
    return 0;
}

static int tear_down(void **state)
{
    store_close(place.store);
    process_remove_folder(place.path);
    return 0;
}

/* An archive is that letter, many times. */
static int add(char letter, struct model **model, struct baton_error *error)
{
    int fd = memfd_create("archive", MFD_CLOEXEC), rc;
    char text[EACH];

    memset(text, letter, EACH);
    assert_int_equal(write(fd, text, EACH), EACH);
    rc = store_add(place.store, fd, NULL, model, error);
    close(fd);
    return rc;
}

static struct model *added(char letter)
{
    struct model *model = NULL;

    ASSERT_OK(add(letter, &model, failure));
    return model;
}

/* The letter of a model that is held, if it is whole; else 0. */
static char letter_of(const struct model *model)
{
    char text[EACH + 1];
    ssize_t got = pread(model->fd, text, sizeof(text), 0);

    return got == EACH && memcmp(text, text + 1, EACH - 1) == 0 ? text[0] : '\0';
}

static const char *path_of(const char *name, char ret[PATH_MAX])
{
    (void)snprintf(ret, PATH_MAX, "%s/archives/%s", place.path, name);
    return ret;
}

static bool has(const char *digest)
{
    char path[PATH_MAX];

    return access(path_of(digest, path), F_OK) == 0;
}

/* Its last use was so many seconds ago: two of the same tick of the clock have no order. */
static void age(const char *digest, int s)
{
    const struct timespec used = {.tv_sec = time(NULL) - s};
    char path[PATH_MAX];

    assert_int_equal(
        utimensat(AT_FDCWD, path_of(digest, path), (const struct timespec[]){used, used}, 0), 0);
}

/* How many names its file has: without one it would take room that nobody counts. */
static unsigned names_of(int fd)
{
    struct stat status;

    assert_int_equal(fstat(fd, &status), 0);
    return (unsigned)status.st_nlink;
}

/* With what is there beside them. */
static unsigned count_archives(void)
{
    char path[PATH_MAX];

    return process_count_entries(path_of("", path));
}

static void what_is_not_there_is_not_found(void **state)
{
    struct model *model = NULL;
    char digest[DIGEST_BYTES];

    assert_int_equal(digest_of("abc", 3, digest), 0);
    assert_string_equal(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(store_find(place.store, digest, &model, NULL), BATON_ENOENT);
    assert_int_equal(store_find(place.store, "../../etc", &model, NULL), BATON_ENOENT);
    assert_int_equal(store_find(place.store, "", &model, NULL), BATON_ENOENT);
    assert_null(model);
}

static void the_one_used_longest_ago_goes_first(void **state)
{
    char digests[4][DIGEST_BYTES];
    struct model *model;

    for (int i = 0; i < 3; i++) {
        model = added((char)('a' + i));
        (void)snprintf(digests[i], sizeof(digests[i]), "%s", model->digest);
        model_release(model);
        age(digests[i], 9 - i);
    }
    /* Used again: */
    assert_int_equal(store_find(place.store, digests[0], &model, NULL), 0);
    model_release(model);
    model_release(added('d'));
    assert_true(has(digests[0]));
    assert_false(has(digests[1]));
    assert_true(has(digests[2]));
    assert_int_equal(count_archives(), 3);
}

static void what_is_held_is_used_until_it_is_released(void **state)
{
    struct model *held = added('a'), *model;
    char digests[2][DIGEST_BYTES];

    model = added('b');
    (void)snprintf(digests[0], DIGEST_BYTES, "%s", held->digest);
    (void)snprintf(digests[1], DIGEST_BYTES, "%s", model->digest);
    model_release(model);
    age(digests[0], 9);
    age(digests[1], 8);
    model_release(added('c'));
    model_release(held);
    model_release(added('d'));
    assert_true(has(digests[0]));
    assert_false(has(digests[1]));
}

static void what_is_no_archive_keeps_none_out(void **state)
{
    char path[PATH_MAX], digest[DIGEST_BYTES];

    assert_int_equal(digest_of("abc", 3, digest), 0);
    assert_int_equal(mkdir(path_of(digest, path), 0700), 0);
    for (int letter = 'a'; letter < 'f'; letter++) {
        model_release(added((char)letter));
    }
    assert_int_equal(count_archives(), 1 + 3);
}

static void what_is_held_stays_and_a_cache_full_of_it_says_so(void **state)
{
    struct model *held[3], *model = NULL;

    for (int i = 0; i < 3; i++) {
        held[i] = added((char)('a' + i));
    }
    ASSERT_FAILS(add('d', &model, failure), BATON_EFULL, "models in use leave no room");
    assert_null(model);
    assert_int_equal(count_archives(), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(letter_of(held[i]), 'a' + i);
    }
    model_release(added('a')); /* it is there already */
    assert_int_equal(names_of(held[0]->fd), 1);
    model_release(held[0]);
    store_set_max(place.store, ROOM - 2);
    assert_int_equal(add('d', &model, NULL), BATON_EFULL);
    assert_int_equal(count_archives(), 3); /* none was removed in vain */
    store_set_max(place.store, ROOM);
    held[0] = added('d');
    assert_int_equal(letter_of(held[0]), 'd');
    for (int i = 0; i < 3; i++) {
        model_release(held[i]);
    }
}

/* Also if nobody has noticed it. That it is fetched again: test_supply.c. */
static void an_archive_that_was_damaged_is_replaced(void **state)
{
    struct model *model = added('a'), *found = NULL;
    char path[PATH_MAX];

    assert_int_equal(truncate(path_of(model->digest, path), 7), 0);
    assert_int_equal(store_find(place.store, model->digest, &found, NULL), BATON_ECORRUPT);
    model_release(added('a'));
    assert_int_equal(store_find(place.store, model->digest, &found, NULL), 0);
    assert_int_equal(letter_of(found), 'a');
    model_release(found);
    model_release(model);
}

static void an_origin_is_remembered_as_long_as_its_model(void **state)
{
    struct model *model = added('a');
    struct origin found = {0};
    char key[DIGEST_BYTES];

    assert_int_equal(digest_of("7 https://models.example/a", 26, key), 0);
    assert_int_equal(store_origin(place.store, key, &found), BATON_ENOENT);
    assert_int_equal(store_origin_set(place.store, key, model->digest, "\"e-1\""), 0);
    assert_int_equal(store_origin(place.store, key, &found), 0);
    assert_string_equal(found.digest, model->digest);
    assert_string_equal(found.etag, "\"e-1\"");
    model_release(added('b'));
    assert_int_equal(store_origin(place.store, key, &found), 0);
    model_release(model);
    for (int letter = 'c'; letter < 'f'; letter++) { /* 'a' is evicted */
        model_release(added((char)letter));
    }
    assert_int_equal(store_origin(place.store, key, &found), BATON_ENOENT);
}

static void a_file_to_fetch_into_has_no_name(void **state)
{
    char left[PATH_MAX];
    int fd;

    /* A process was killed between the two steps. */
    fd = open(path_of(".file", left), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    fd = store_file(place.store, NULL);
    assert_int_not_equal(access(left, F_OK), 0);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(names_of(fd), 0);
    close(fd);
}

static void a_folder_that_was_removed_is_made_again(void **state)
{
    struct model *model;
    int fd;

    process_remove_folder(place.path);
    fd = store_file(place.store, NULL);
    assert_true(fd >= 0);
    close(fd);
    model = added('a');
    assert_true(has(model->digest));
    model_release(model);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_there_is_not_found),
        TEST(the_one_used_longest_ago_goes_first),
        TEST(what_is_held_is_used_until_it_is_released),
        TEST(what_is_no_archive_keeps_none_out),
        TEST(what_is_held_stays_and_a_cache_full_of_it_says_so),
        TEST(an_archive_that_was_damaged_is_replaced),
        TEST(an_origin_is_remembered_as_long_as_its_model),
        TEST(a_file_to_fetch_into_has_no_name),
        TEST(a_folder_that_was_removed_is_made_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
