#include "cmocka_all.h"

#include "detector/program/canvas.h"

#include <string.h>

enum { WIDTH = 40, HEIGHT = 20 };

static const uint8_t ink[CANVAS_CHANNELS] = {1, 2, 3};
static const uint8_t paper[CANVAS_CHANNELS] = {9, 9, 9};

static struct canvas blank(int width, int height)
{
    struct canvas canvas;

    assert_int_equal(canvas_new(&canvas, width, height, NULL), 0);
    return canvas;
}

static const uint8_t *at(const struct canvas *canvas, int x, int y)
{
    return canvas->pixels + (y * canvas->width + x) * CANVAS_CHANNELS;
}

/* A letter's rows as text, '#' for ink. */
static void read_letter(const struct canvas *canvas, char ret[5 * 4 + 1])
{
    for (int i = 0; i < 20; i++) {
        bool is_ink = memcmp(at(canvas, 1 + i % 4, 1 + i / 4), ink, CANVAS_CHANNELS) == 0;
        ret[i] = i % 4 == 3 ? '/' : is_ink ? '#' : '.';
    }
    ret[20] = '\0';
}

static void a_letter_is_dots_on_paper(void **state)
{
    struct canvas canvas = blank(WIDTH, HEIGHT);
    char letter[21];

    (void)state;
    canvas_text(&canvas, 0, 0, 1, "T", ink, paper);
    read_letter(&canvas, letter);
    assert_string_equal(letter, "###/.#./.#./.#./.#./");
    assert_memory_equal(at(&canvas, 0, 0), paper, CANVAS_CHANNELS);
    assert_memory_equal(at(&canvas, 4, 6), paper, CANVAS_CHANNELS);
    assert_int_equal(*at(&canvas, 5, 0), 0);
    assert_int_equal(*at(&canvas, 0, 7), 0);
    canvas_text(&canvas, 0, 0, 1, "h", ink, paper);
    read_letter(&canvas, letter);
    assert_string_equal(letter, "#.#/#.#/###/#.#/#.#/");
    canvas_text(&canvas, 0, 0, 1, "\xc3", ink, paper);
    read_letter(&canvas, letter);
    assert_string_equal(letter, ".../.../.#./.../.../");
    canvas_free(&canvas);
}

static void every_letter_and_digit_looks_different(void **state)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:-_#/+()%?";
    char seen[sizeof(all)][21];
    struct canvas canvas = blank(WIDTH, HEIGHT);

    (void)state;
    for (size_t i = 0; all[i] != '\0'; i++) {
        const char text[] = {all[i], '\0'};
        canvas_text(&canvas, 0, 0, 1, text, ink, paper);
        read_letter(&canvas, seen[i]);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(seen[i], seen[k]) == 0) {
                fail_msg("'%c' looks like '%c'", all[i], all[k]);
            }
        }
    }
    canvas_free(&canvas);
}

static void what_lies_outside_is_left_out(void **state)
{
    struct canvas canvas = blank(WIDTH, HEIGHT);
    struct canvas tile = blank(30, 15);

    (void)state;
    memset(tile.pixels, 7, 30 * 15 * CANVAS_CHANNELS);
    canvas_text(&canvas, -10, -5, 3, "outside", ink, paper);
    canvas_text(&canvas, WIDTH - 2, HEIGHT - 2, 3, "outside", ink, paper);
    canvas_text(&canvas, 10 * WIDTH, 10 * HEIGHT, 3, "outside", ink, paper);
    canvas_paste(&canvas, &tile, 30, 10);
    canvas_paste(&canvas, &tile, WIDTH, HEIGHT);
    assert_int_equal(*at(&canvas, 29, 19), 0);
    assert_int_equal(*at(&canvas, 30, 10), 7);
    assert_int_equal(*at(&canvas, WIDTH - 1, HEIGHT - 1), 7);
    canvas_free(&canvas);
    canvas_free(&tile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_letter_is_dots_on_paper),
        cmocka_unit_test(every_letter_and_digit_looks_different),
        cmocka_unit_test(what_lies_outside_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
