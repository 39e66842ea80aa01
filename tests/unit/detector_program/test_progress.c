#include "cmocka_all.h"

#include "detector/program/progress.h"

#include <pty.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct progress_state state_at(int64_t seconds, int64_t of)
{
    return (struct progress_state){.frames = (uint64_t)seconds * 10,
                                   .detections = 3,
                                   .position = SPAN_MS(seconds * 1000),
                                   .duration = SPAN_MS(of * 1000),
                                   .spent = SPAN_MS(seconds * 500)};
}

static void a_bar_says_how_far_how_fast_and_how_long(void **state)
{
    struct progress_state now = state_at(30, 120);
    char bar[PROGRESS_LINE_MAX];

    (void)state;
    progress_bar(bar, 79, &now);
    assert_string_equal(bar, "[#####---------------]  25 %  20 frames/s, 3 detections, 45 s left");
    now = state_at(120, 120);
    progress_bar(bar, 79, &now);
    assert_string_equal(bar, "[####################] 100 %  20 frames/s, 3 detections, 0 s left");
}

static void a_clip_that_is_longer_than_it_says_is_at_its_end(void **state)
{
    struct progress_state now = state_at(500, 120);
    char bar[PROGRESS_LINE_MAX];

    (void)state;
    progress_bar(bar, 79, &now);
    assert_non_null(strstr(bar, "100 %"));
    assert_non_null(strstr(bar, " 0 s left"));
}

static void a_narrow_terminal_gets_the_beginning(void **state)
{
    struct progress_state now = state_at(30, 120);
    char bar[PROGRESS_LINE_MAX];

    (void)state;
    progress_bar(bar, 12, &now);
    assert_string_equal(bar, "[#####------");
}

static void numbers_of_any_size_fit(void **state)
{
    struct progress_state now = {.frames = UINT64_MAX,
                                 .detections = UINT64_MAX,
                                 .position = {1},
                                 .duration = {INT64_MAX},
                                 .spent = {INT64_MAX}};
    char bar[PROGRESS_LINE_MAX];

    (void)state;
    progress_bar(bar, 79, &now);
    assert_true(strlen(bar) < PROGRESS_LINE_MAX);
}

static char *lines_of(FILE *file, char *ret, size_t bytes)
{
    size_t count;

    rewind(file);
    count = fread(ret, 1, bytes - 1, file);
    ret[count] = '\0';
    return ret;
}

static void elsewhere_each_tenth_is_a_line_once(void **state)
{
    FILE *file = tmpfile();
    struct progress progress = progress_of(file);
    char text[1024];

    (void)state;
    assert_false(progress.is_terminal);
    for (int64_t i = 0; i <= 30; i++) {
        struct progress_state now = state_at(i, 30);
        progress_step(&progress, &now);
        progress_step(&progress, &now);
        progress_draw(&progress, &now);
    }
    progress_hide(&progress);
    assert_string_equal(lines_of(file, text, sizeof(text)),
                        "10 %: 30 frames, 3 detections\n20 %: 60 frames, 3 detections\n"
                        "30 %: 90 frames, 3 detections\n40 %: 120 frames, 3 detections\n"
                        "50 %: 150 frames, 3 detections\n60 %: 180 frames, 3 detections\n"
                        "70 %: 210 frames, 3 detections\n80 %: 240 frames, 3 detections\n"
                        "90 %: 270 frames, 3 detections\n");
    (void)fclose(file);
}

static void a_clip_of_unknown_length_gives_a_line_for_a_thousand_frames(void **state)
{
    FILE *file = tmpfile();
    struct progress progress = progress_of(file);
    char text[1024];

    (void)state;
    for (uint64_t i = 1; i <= 2500; i++) {
        struct progress_state now = {.frames = i};
        progress_step(&progress, &now);
    }
    assert_string_equal(lines_of(file, text, sizeof(text)),
                        "1000 frames, 0 detections\n2000 frames, 0 detections\n");
    (void)fclose(file);
}

static void a_terminal_gets_a_bar_and_no_lines(void **state)
{
    struct winsize size = {.ws_row = 24, .ws_col = 41};
    struct progress_state now = state_at(30, 120);
    char wanted[256], text[256];
    int terminal, program;
    struct progress progress;
    FILE *file;
    size_t bytes = 0;

    (void)state;
    assert_int_equal(openpty(&terminal, &program, NULL, NULL, &size), 0);
    file = fdopen(program, "w");
    assert_non_null(file);
    progress = progress_of(file);
    assert_true(progress.is_terminal);
    progress_hide(&progress); /* nothing is there yet */
    progress_step(&progress, &now);
    progress_draw(&progress, &now);
    progress_hide(&progress);
    progress_hide(&progress);
    /* One column stays empty, and the bar is wiped out by as many spaces. */
    (void)snprintf(wanted, sizeof(wanted), "\r%s\r%40s\r",
                   "[#####---------------]  25 %  20 frames/", "");
    while (bytes < strlen(wanted)) {
        ssize_t count = read(terminal, text + bytes, sizeof(text) - 1 - bytes);
        assert_true(count > 0);
        bytes += (size_t)count;
    }
    text[bytes] = '\0';
    assert_string_equal(text, wanted);
    (void)fclose(file);
    (void)close(terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bar_says_how_far_how_fast_and_how_long),
        cmocka_unit_test(a_clip_that_is_longer_than_it_says_is_at_its_end),
        cmocka_unit_test(a_narrow_terminal_gets_the_beginning),
        cmocka_unit_test(numbers_of_any_size_fit),
        cmocka_unit_test(elsewhere_each_tenth_is_a_line_once),
        cmocka_unit_test(a_terminal_gets_a_bar_and_no_lines),
        cmocka_unit_test(a_clip_of_unknown_length_gives_a_line_for_a_thousand_frames),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
