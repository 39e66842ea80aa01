/* How far a command is, by the lines that it writes. */
#include "cli/job_progress.h"
#include "cmocka_all.h"

#include <string.h>
#include <unistd.h>

static uv_loop_t loop;
static struct job_progress *progress;
static int writer; /* the command's own descriptor, as after a fork */
static int latest;
static unsigned wrong;

static void on_permille(void *userdata, int permille)
{
    latest = permille;
}

static void on_wrong(void *userdata)
{
    wrong++;
}

static int begin(void **state)
{
    const struct job_progress_calls calls = {on_permille, on_wrong, NULL};
    int end;

    latest = -1;
    wrong = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(job_progress_open(&progress, &loop, &end, &calls, NULL), BATON_OK);
    writer = dup(end);
    assert_true(writer >= 0);
    job_progress_started(progress);
    return 0;
}

static int end(void **state)
{
    close(writer);
    job_progress_close(progress);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static void put(const char *text)
{
    assert_int_equal(write(writer, text, strlen(text)), strlen(text));
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void a_number_counts_once_its_line_is_whole(void **state)
{
    static const struct {
        const char *text;
        int permille;
    } rows[] = {{"0\n", 0},        {"7\n", 70},   {"40%\n", 400},         {"40.55%\n", 405},
                {"100.0\n", 1000}, {"1", 1000},   {"2\n", 120},           {"3\n\n5\n9", 50},
                {"0\n", 900},      {"007\n", 70}, {"1.000000000%\n", 10}, {"2\n3\n", 30}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        put(rows[i].text);
        if (latest != rows[i].permille) {
            fail_msg("after \"%s\": %d", rows[i].text, latest);
        }
    }
}

static void what_is_no_number_from_0_to_100_is_left_out_and_told_once(void **state)
{
    static const char *const rows[] = {"\n",
                                       " 5\n",
                                       "-1\n",
                                       "+1\n",
                                       "101\n",
                                       "100.1\n",
                                       "5.\n",
                                       "5 %\n",
                                       "5%%\n",
                                       "0x5\n",
                                       "5,5\n",
                                       "half\n",
                                       "1e1\n",
                                       "nan\n",
                                       "0.4.\n",
                                       "99999999999999999999\n",
                                       "0000000000000005\n"};

    put("30\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        put(rows[i]);
        if (latest != 300) {
            fail_msg("after \"%s\": %d", rows[i], latest);
        }
    }
    assert_int_equal(wrong, 1);
    assert_int_equal(write(writer, "5\0\n6\0000\n", 7), 7);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(latest, 300);
    put("31\n");
    assert_int_equal(latest, 310);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_number_counts_once_its_line_is_whole, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_number_from_0_to_100_is_left_out_and_told_once,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
