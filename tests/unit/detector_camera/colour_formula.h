/* The formulas of ITU-R BT.601 and BT.709 in their own words, to compare with. */
#ifndef TESTS_COLOUR_FORMULA_H
#define TESTS_COLOUR_FORMULA_H

#include <math.h>
#include <stdbool.h>

/* With luma's weights, each colour is luma plus a difference. Red, green and blue of 0 to 1. */
static inline void colour_formula(double ret[3], bool is_bt709, bool is_full_range,
                                  const double yuv[3])
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

#endif
