#include "cmocka_all.h"

#include "detector/camera/picture.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 96, HEIGHT = 64, TARGET_MAX = 128, PLANE = TARGET_MAX * TARGET_MAX };

static struct {
    uint8_t luma[WIDTH * HEIGHT], blue[WIDTH * HEIGHT / 4], red[WIDTH * HEIGHT / 4];
    struct frame frame;
    struct picture_scaler scaler;
    float values[3 * PLANE];
    struct picture_target target;
} bench;

/* The place of a number in `values`: planes beside each other, or pixels. */
static int place_of(int colour, int x, int y)
{
    return bench.target.to_pixel == 1 ? colour * PLANE + y * TARGET_MAX + x
                                      : (y * TARGET_MAX + x) * 3 + colour;
}

static void lay_out(bool is_planar)
{
    bench.target.to_pixel = is_planar ? 1 : 3;
    bench.target.to_row = (is_planar ? 1 : 3) * TARGET_MAX;
    for (int i = 0; i < 3; i++) {
        bench.target.colours[i] = bench.values + place_of(i, 0, 0);
    }
}

/* A picture in which every sample differs from its neighbours, reproducibly. */
static int begin(void **state)
{
    memset(&bench, 0, sizeof(bench));
    for (unsigned i = 0; i < WIDTH * HEIGHT; i++) {
        bench.luma[i] = (uint8_t)(i * 2654435761U >> 24);
    }
    for (unsigned i = 0; i < WIDTH * HEIGHT / 4; i++) {
        bench.blue[i] = (uint8_t)(i * 2246822519U >> 24);
        bench.red[i] = (uint8_t)(i * 3266489917U >> 24);
    }
    bench.frame = (struct frame){.width = WIDTH,
                                 .height = HEIGHT,
                                 .stride = {WIDTH, WIDTH / 2, WIDTH / 2},
                                 .plane = {bench.luma, bench.blue, bench.red}};
    lay_out(true);
    return 0;
}

static int end(void **state)
{
    picture_scaler_fini(&bench.scaler);
    return 0;
}

static void make(const int rect[4], int width, int height)
{
    bench.target.width = width;
    bench.target.height = height;
    assert_int_equal(picture_convert(&bench.scaler, &bench.frame, rect, &bench.target, NULL), 0);
}

/* The formulas of ITU-R BT.601 and BT.709 in their own words: with luma's weights, each colour is
 * luma plus a difference. Red, green and blue of 0 to 1. */
static void colour_formula(double ret[3], bool is_bt709, bool is_full_range, const double yuv[3])
{
    double red = is_bt709 ? 0.2126 : 0.299;
    double blue = is_bt709 ? 0.0722 : 0.114;
    double luma = is_full_range ? yuv[0] / 255 : (yuv[0] - 16) / 219;
    double by = (yuv[1] - 128) / (is_full_range ? 255 : 224) * 2 * (1 - blue);
    double ry = (yuv[2] - 128) / (is_full_range ? 255 : 224) * 2 * (1 - red);

    ret[0] = luma + ry;
    ret[2] = luma + by;
    ret[1] = (luma - red * ret[0] - blue * ret[2]) / (1 - red - blue);
    for (int i = 0; i < 3; i++) {
        ret[i] = fmin(1, fmax(0, ret[i]));
    }
}

/* The mean of a box, or of every second of its rows. */
static double mean(const uint8_t *plane, int stride, int x, int y, int side, bool has_all_rows)
{
    double sum = 0;
    int count = 0;

    for (int row = has_all_rows ? y : y + 1; row < y + side; row += has_all_rows ? 1 : 2) {
        for (int column = x; column < x + side; column++) {
            sum += plane[row * stride + column];
            count++;
        }
    }
    return sum / count;
}

/* Each pixel of a picture that is 1/`side` of the cut, beside the formula on the mean of its box.
 * The means are rounded to whole samples, which is what the difference allows for. */
static void compare(const int rect[4], int side)
{
    double wanted[3], difference = 0;

    make(rect, rect[2] / side, rect[3] / side);
    for (int y = 0; y < bench.target.height; y++) {
        for (int x = 0; x < bench.target.width; x++) {
            int left = rect[0] + x * side;
            int top = rect[1] + y * side;
            bool all = side < 4;
            const double yuv[3] = {mean(bench.luma, WIDTH, left, top, side, all),
                                   mean(bench.blue, WIDTH / 2, left / 2, top / 2, side / 2, all),
                                   mean(bench.red, WIDTH / 2, left / 2, top / 2, side / 2, all)};
            colour_formula(wanted, bench.frame.is_bt709, bench.frame.is_full_range, yuv);
            for (int i = 0; i < 3; i++) {
                difference =
                    fmax(difference, fabs(wanted[i] - (double)bench.values[place_of(i, x, y)]));
            }
        }
    }
    assert_true(difference < 2.5 / 255);
}

static void halves_and_quarters_are_the_means_in_every_matrix_and_range(void **state)
{
    const int whole[4] = {0, 0, WIDTH, HEIGHT};
    const int part[4] = {16, 8, 48, 24};

    for (int i = 0; i < 4; i++) {
        bench.frame.is_bt709 = i & 1;
        bench.frame.is_full_range = i & 2;
        compare(whole, 2);
        compare(whole, 4);
        compare(part, 2);
    }
}

/* The mean of the part of the luma that is one pixel of a picture of this size. */
static double box_mean(int x, int y, int width, int height)
{
    double wide = (double)WIDTH / width, high = (double)HEIGHT / height, sum = 0;

    for (int row = 0; row < HEIGHT; row++) {
        double rows = fmin(row + 1, (y + 1) * high) - fmax(row, y * high);
        for (int column = 0; column < WIDTH && rows > 0; column++) {
            double columns = fmin(column + 1, (x + 1) * wide) - fmax(column, x * wide);
            sum += columns > 0 ? rows * columns * bench.luma[row * WIDTH + column] : 0;
        }
    }
    return sum / (wide * high);
}

/* Of noise, in which a sample is 74 of 255 away from the mean of all, by the root of squares. */
static void between_halves_and_quarters_pixels_are_nearly_the_mean_of_what_they_cover(void **state)
{
    static const int sizes[][2] = {{42, 28}, {40, 30}, {38, 25}};
    const int whole[4] = {0, 0, WIDTH, HEIGHT};

    memset(bench.blue, 128, sizeof(bench.blue));
    memset(bench.red, 128, sizeof(bench.red));
    bench.frame.is_full_range = true;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double sum = 0;
        make(whole, sizes[i][0], sizes[i][1]);
        for (int at = 0; at < sizes[i][0] * sizes[i][1]; at++) {
            int x = at % sizes[i][0], y = at / sizes[i][0];
            double is = 255 * (double)bench.values[place_of(1, x, y)];
            double away = is - box_mean(x, y, sizes[i][0], sizes[i][1]);
            sum += away * away;
        }
        assert_true(sqrt(sum / (sizes[i][0] * sizes[i][1])) < 13);
    }
}

/* One colour stays that colour at every size, edges too, whatever the cut and in planes as well as
 * in pixels; and what is beside the target stays as it was. The library cuts off what is less than
 * a whole sample, and a picture of a pixel is made in two steps. */
static void one_colour_stays_it_at_every_size_and_nothing_else_is_written(void **state)
{
    static const int sizes[] = {1, 2, 3, 7, 16, 31, 33, 47, 95, 100};
    static const int cuts[][4] = {{0, 0, WIDTH, HEIGHT}, {1, 1, 1, 1},   {95, 63, 1, 1},
                                  {3, 5, 20, 11},        {94, 0, 2, 64}, {11, 13, 85, 51}};
    double wanted[3];

    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        bench.luma[i] = 120;
        bench.blue[i / 4] = 90;
        bench.red[i / 4] = 150;
    }
    colour_formula(wanted, bench.frame.is_bt709, bench.frame.is_full_range,
                   (const double[]){120, 90, 150});
    for (size_t i = 0; i < 200 * sizeof(cuts) / sizeof(cuts[0]); i++) {
        int width = sizes[i % 10];
        int height = sizes[i / 10 % 10];
        lay_out(i / 100 % 2 == 0);
        for (int at = 0; at < 3 * PLANE; at++) {
            bench.values[at] = 7;
        }
        make(cuts[i / 200], width, height);
        for (int at = 0; at < 3 * PLANE; at++) {
            int place = at % PLANE;
            int x = place % TARGET_MAX, y = place / TARGET_MAX;
            bool is_ours = x < width && y < height;
            double is = (double)bench.values[place_of(at / PLANE, x, y)];
            if (fabs(is - (is_ours ? wanted[at / PLANE] : 7)) > (is_ours ? 7.0 / 255 : 0)) {
                fail_msg("cut %zu to %dx%d: %f at %d", i / 200, width, height, is, at);
            }
        }
    }
}

enum { SAMPLES = 256, FEW = 7 /* too few for vectors: the plain way */ };

/* Every luma beside every pair of differences that is a multiple of five, in every matrix and
 * range, many at once and few at once: what a processor's vectors do is what the plain loop does.
 * A picture that has its size already is not scaled, and one colour difference stays what it is. */
static void every_sample_is_the_standards_colour_in_a_long_row_and_in_a_short_one(void **state)
{
    static uint8_t y[SAMPLES], u[SAMPLES], v[SAMPLES];
    static float values[3][SAMPLES];
    struct picture_target target = {.height = 1, .to_pixel = 1};
    double wanted[3], worst = 0;

    bench.frame = (struct frame){.width = SAMPLES, .height = 1, .plane = {y, u, v}};
    for (int k = 0; k < SAMPLES; k++) {
        y[k] = (uint8_t)k;
    }
    for (int i = 0; i < 4 * 52 * 52; i++) {
        int step = i / 4 % 5 == 0 ? FEW : SAMPLES;

        bench.frame.is_bt709 = i % 2;
        bench.frame.is_full_range = i / 2 % 2;
        memset(u, i / 4 % 52 * 5, sizeof(u));
        memset(v, i / 4 / 52 * 5, sizeof(v));
        for (int at = 0; at < SAMPLES; at += step) {
            const int rect[4] = {at, 0, SAMPLES - at < step ? SAMPLES - at : step, 1};
            target.width = rect[2];
            for (int colour = 0; colour < 3; colour++) {
                target.colours[colour] = values[colour] + at;
            }
            assert_int_equal(picture_convert(&bench.scaler, &bench.frame, rect, &target, NULL), 0);
        }
        for (int k = 0; k < SAMPLES; k++) {
            colour_formula(wanted, bench.frame.is_bt709, bench.frame.is_full_range,
                           (const double[]){y[k], u[k], v[k]});
            for (int colour = 0; colour < 3; colour++) {
                worst = fmax(worst, fabs((double)values[colour][k] - wanted[colour]));
            }
        }
    }
    assert_true(worst < 1e-6);
}

/* A bright edge in the middle of the picture stays there when it is made larger or smaller. */
static void an_edge_stays_where_it_is(void **state)
{
    const int whole[4] = {0, 0, WIDTH, HEIGHT};

    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        bench.luma[i] = i % WIDTH < WIDTH / 2 ? 16 : 235;
        bench.blue[i / 4] = bench.red[i / 4] = 128;
    }
    for (int width = 8; width <= TARGET_MAX; width++) {
        float sum = 0;
        make(whole, width, 9);
        for (int x = 0; x < width; x++) {
            sum += bench.values[place_of(1, x, 4)];
        }
        assert_true(fabsf(sum - (float)width / 2) <= 0.6F);
    }
}

static void a_cut_outside_or_a_size_beyond_is_refused(void **state)
{
    static const struct {
        int rect[4], width;
    } rows[] = {{{-1, 0, 10, 10}, 16},
                {{0, 0, WIDTH + 1, 10}, 16},
                {{0, 0, 0, 10}, 16},
                {{WIDTH - 5, 0, 6, 10}, 16},
                {{0, HEIGHT, 1, 1}, 16},
                {{10, 10, 2147483647, 4}, 16},
                {{0, 0, 8, 8}, IMAGE_PIXELS_MAX + 1},
                {{0, 0, 8, 8}, 0}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bench.target.width = rows[i].width;
        bench.target.height = 16;
        assert_int_equal(
            picture_convert(&bench.scaler, &bench.frame, rows[i].rect, &bench.target, NULL),
            BATON_EINVAL);
    }
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(halves_and_quarters_are_the_means_in_every_matrix_and_range),
        CASE(between_halves_and_quarters_pixels_are_nearly_the_mean_of_what_they_cover),
        CASE(one_colour_stays_it_at_every_size_and_nothing_else_is_written),
        CASE(every_sample_is_the_standards_colour_in_a_long_row_and_in_a_short_one),
        CASE(an_edge_stays_where_it_is),
        CASE(a_cut_outside_or_a_size_beyond_is_refused),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_picture", tests, NULL, NULL);
}
