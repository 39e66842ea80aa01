#include "cli/print.h"

#include "cmocka_all.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static void columns_fit_their_widest_cell_and_nothing_forges_a_line(void **state)
{
    static const char *const cells[] = {"NODE",      "ROLE",          NULL, "é", "leader", NULL,
                                        "long-name", "x\ny\xc2\x9bz", NULL, NULL};
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    print_table(file, cells);
    fclose(file);
    assert_string_equal(text, "NODE       ROLE\né          leader\nlong-name  x?y?z\n");
    free(text);
}

/* What the terminal gets of one bar and of its removal. */
static void draw(unsigned short columns, const char *what, char ret[512])
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    ssize_t bytes;
    FILE *file;

    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    file = fopen(ptsname(terminal), "r+");
    assert_non_null(file);
    assert_int_equal(ioctl(fileno(file), TIOCSWINSZ, &size), 0);
    print_progress(file, what, 0.5);
    print_progress(file, NULL, 0);
    bytes = read(terminal, ret, 511);
    assert_true(bytes > 0);
    ret[bytes] = '\0';
    (void)fclose(file);
    (void)close(terminal);
}

static void a_bar_stays_in_its_line_however_narrow_the_terminal_is(void **state)
{
    static const unsigned short columns[] = {1, 10, 20, 40, 79, 80, 81, 200, 0 /* unknown */};
    char text[512];
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        size_t room = columns[i] ? columns[i] : 80;
        draw(columns[i], "1234 of 5678, 1234.5 a second, 99 s left", text);
        for (char *part = strtok(text, "\r"); part; part = strtok(NULL, "\r")) {
            char *erased = strstr(part, "\033[K");
            assert_true((erased ? (size_t)(erased - part) : strlen(part)) < room);
        }
    }
}

static void a_bar_says_how_much_is_done_and_what(void **state)
{
    char text[512];
    draw(80, "5 of 10", text);
    assert_non_null(strstr(text, "[####################                    ]  50 %  5 of 10"));
    draw(40, "5 of 10", text);
    assert_non_null(strstr(text, "[###########           ]  50 %  5 of 10"));
    draw(20, "5 of 10", text);
    assert_non_null(strstr(text, "\r 50 %  5 of 10\033[K"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bar_stays_in_its_line_however_narrow_the_terminal_is),
        cmocka_unit_test(a_bar_says_how_much_is_done_and_what),
        cmocka_unit_test(columns_fit_their_widest_cell_and_nothing_forges_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
