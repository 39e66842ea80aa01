/* What refuses whoever is late: a file, and SQL in a real SQLite. */
#include "cmocka_all.h"

#include <baton.h>

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];
static char path[96];

static int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/baton-token-XXXXXX");
    if (!mkdtemp(folder)) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/epoch", folder);
    return 0;
}

static int drop_folder(void **state)
{
    (void)unlink(path);
    return rmdir(folder);
}

static int check(uint64_t epoch)
{
    struct baton_error error;
    return baton_token_check_file(path, epoch, NULL, &error);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* ---- File ------------------------------------------------------------------------------------ */

static void epochs_only_grow(void **state)
{
    struct baton_error error;
    struct stat about;

    assert_int_equal(check(7), BATON_OK);
    assert_int_equal(check(7), BATON_OK); /* the same leadership writes again */
    assert_int_equal(check(9), BATON_OK);
    assert_int_equal(baton_token_check_file(path, 8, NULL, &error), BATON_ECONFLICT);
    assert_non_null(strstr(error.message, "epoch 8"));
    assert_non_null(strstr(error.message, "9"));
    assert_int_equal(check(UINT64_MAX), BATON_OK);
    assert_int_equal(check(UINT64_MAX - 1), BATON_ECONFLICT);
    assert_int_equal(check(0), BATON_EINVAL);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
}

static void what_is_no_epoch_is_left_alone(void **state)
{
    static const char *const foreign[] = {
        "hello",
        "7\n",
        "00000000000000000007",
        "00000000000000000007\nmore",
        "99999999999999999999\n", /* more than there are */
        "0000000000000000000x\n",
        "-0000000000000000007\n",
    };
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        char text[64] = "";
        FILE *file;

        write_file(foreign[i]);
        assert_int_equal(check(8), BATON_ECORRUPT);
        file = fopen(path, "r");
        assert_non_null(file);
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        assert_string_equal(text, foreign[i]);
    }
    write_file(""); /* whoever made it died before it wrote: nobody was let pass */
    assert_int_equal(check(8), BATON_OK);
}

static void trouble_has_a_name(void **state)
{
    struct baton_error error;

    assert_int_equal(baton_token_check_file("/nowhere/epoch", 1, NULL, &error), BATON_EIO);
    assert_non_null(strstr(error.message, "/nowhere/epoch"));
    assert_int_equal(baton_token_check_file("/dev/full", 1, NULL, &error), BATON_ECORRUPT);
    assert_int_equal(symlink("/dev/null", path), 0); /* not where somebody else points to */
    assert_int_equal(check(1), BATON_EIO);
}

static void a_guard_keeps_others_out_until_it_is_closed(void **state)
{
    int guard;
    int status;
    pid_t child;
    int other;

    assert_int_equal(baton_token_check_file(path, 5, &guard, NULL), BATON_OK);
    other = open(path, O_RDONLY);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
    child = fork();
    if (child == 0) {
        close(guard);
        _exit(check(6) == BATON_OK ? 0 : 1); /* waits */
    }
    assert_int_equal(waitpid(child, &status, WNOHANG), 0);
    close(guard);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(other);
    assert_int_equal(check(5), BATON_ECONFLICT);
}

/* What each was let pass with, in the order in which it happened, never goes down. */
static void many_at_once_pass_in_the_order_of_their_epochs(void **state)
{
    enum { CHILDREN = 4, EACH = 200 };
    char log[96];
    FILE *file;
    unsigned long long last = 0;
    unsigned long long now;
    int passed = 0;

    snprintf(log, sizeof(log), "%s/log", folder);
    for (unsigned i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            unsigned seed = i;
            for (uint64_t n = 1; n <= EACH; n++) {
                uint64_t epoch = n * 3 + (uint64_t)rand_r(&seed) % 50;
                char line[32];
                int guard;
                if (baton_token_check_file(path, epoch, &guard, NULL) == BATON_OK) {
                    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
                    int bytes = snprintf(line, sizeof(line), "%llu\n", (unsigned long long)epoch);
                    if (write(fd, line, (size_t)bytes) != bytes) {
                        _exit(1);
                    }
                    close(fd);
                    close(guard);
                }
            }
            _exit(0);
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    file = fopen(log, "r");
    assert_non_null(file);
    while (fscanf(file, "%llu", &now) == 1) {
        assert_true(now >= last);
        last = now;
        passed++;
    }
    fclose(file);
    unlink(log);
    assert_true(passed > 0);
}

/* ---- SQL ------------------------------------------------------------------------------------- */

static int changed(sqlite3 *db, const char *name, int64_t epoch)
{
    sqlite3_stmt *statement;

    assert_int_equal(sqlite3_prepare_v2(db, baton_token_sql_check(), -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC), SQLITE_OK);
    assert_int_equal(sqlite3_bind_int64(statement, 2, epoch), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    return sqlite3_changes(db);
}

static void sql_changes_a_row_or_none(void **state)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sqlite3_exec(db, baton_token_sql_schema(), NULL, NULL, NULL), SQLITE_OK);
    }
    assert_int_equal(changed(db, "billing", 1763712000000), 1);
    assert_int_equal(changed(db, "billing", 1763712000000), 1);
    assert_int_equal(changed(db, "billing", 1763712000001), 1);
    assert_int_equal(changed(db, "billing", 1763712000000), 0);
    assert_int_equal(changed(db, "cleanup", 1), 1); /* each name has its own */
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* For programs in other languages, which cannot ask the library for them. */
static void the_guide_shows_the_checks_as_they_are(void **state)
{
    enum { PAGE_BYTES_MAX = 65536 };
    char *page = calloc(1, PAGE_BYTES_MAX);
    FILE *file = fopen(API_PAGE, "re");

    assert_non_null(page);
    assert_non_null(file);
    assert_true(fread(page, 1, PAGE_BYTES_MAX - 1, file) < PAGE_BYTES_MAX - 1);
    (void)fclose(file);
    assert_non_null(strstr(page, baton_token_sql_schema()));
    assert_non_null(strstr(page, baton_token_sql_check()));
    assert_non_null(strstr(page, baton_token_redis_script()));
    free(page);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)
    const struct CMUnitTest tests[] = {
        CASE(epochs_only_grow),
        CASE(what_is_no_epoch_is_left_alone),
        CASE(trouble_has_a_name),
        CASE(a_guard_keeps_others_out_until_it_is_closed),
        CASE(many_at_once_pass_in_the_order_of_their_epochs),
        cmocka_unit_test(sql_changes_a_row_or_none),
        cmocka_unit_test(the_guide_shows_the_checks_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
