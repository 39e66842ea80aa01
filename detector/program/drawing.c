#include "detector/program/drawing.h"

#include "base/error.h"

#include <errno.h>
#include <libavutil/base64.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

enum {
    GAP = 4,           /* between drawings */
    HUE_STEP = 137,    /* degrees from one class to the next */
    LETTER_WIDTH = 36, /* pixels of the frame's width for each pixel of a letter */
    LINE_WIDTH = 400,
};

static void put_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (strchr("<>&\"", *text)) {
            (void)fprintf(file, "&#%d;", *text);
        } else {
            (void)fputc(*text, file);
        }
    }
}

static void put_object(FILE *file, const struct sighting *sighting, int width)
{
    const struct box *box = sighting->box;
    int letter = width / LETTER_WIDTH + 1, line = width / LINE_WIDTH + 1;
    int hue = box->label * HUE_STEP % 360;
    float y = box->y >= (float)letter ? box->y - (float)line
                                      : box->y + box->height + (float)letter; /* above or below */

    (void)fprintf(file,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" "
                  "stroke=\"hsl(%d,95%%,60%%)\" stroke-width=\"%d\"%s/>",
                  (double)box->x, (double)box->y, (double)box->width, (double)box->height, hue,
                  sighting->attributes ? 3 * line : line,
                  sighting->is_unsure ? " stroke-dasharray=\"6\"" : "");
    (void)fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" fill=\"hsl(%d,95%%,60%%)\">",
                  (double)box->x, (double)y, letter, hue);
    put_text(file, sighting->class_name ? sighting->class_name : "");
    (void)fprintf(file, " %.2f", (double)box->score);
    if (sighting->track != 0) {
        (void)fprintf(file, " #%llu", (unsigned long long)sighting->track);
    }
    (void)fputs("</text>\n", file);
}

/* Writes the frame as the text of a URL. */
static int put_picture(FILE *file, const struct frame *frame, int width, struct baton_error *reterr)
{
    struct image_shape shape;
    uint8_t *jpeg = NULL;
    char *text;
    size_t bytes = 0;
    int code;

    image_shape(&shape, frame, NULL, width);
    code = image_compress(frame, &shape, NULL, &jpeg, &bytes, reterr);
    if (code) {
        return code;
    }
    text = malloc(AV_BASE64_SIZE(bytes));
    if (text && av_base64_encode(text, (int)AV_BASE64_SIZE(bytes), jpeg, (int)bytes)) {
        (void)fprintf(file,
                      "<image width=\"%d\" height=\"%d\" preserveAspectRatio=\"none\" "
                      "href=\"data:image/jpeg;base64,%s\"/>\n",
                      frame->width, frame->height, text);
    } else {
        code = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    free(text);
    tjFree(jpeg);
    return code;
}

static int draw(FILE *file, const struct inference_result *result, int width,
                struct baton_error *reterr)
{
    const struct camera_frame *frame = result->frame;
    int letter = frame->picture.width / LETTER_WIDTH + 1;
    int code = put_picture(file, &frame->picture, width, reterr);

    for (int i = 0; i < result->count && !code; i++) {
        if (!result->sightings[i].is_lost) {
            put_object(file, &result->sightings[i], frame->picture.width);
        }
    }
    (void)fprintf(file, "<text x=\"%d\" y=\"%d\" font-size=\"%d\" fill=\"#fff\">%llu", letter / 2,
                  frame->picture.height - letter / 2, letter, (unsigned long long)frame->number);
    if (frame->pts_us != CAMERA_NO_PTS) {
        (void)fprintf(file, ": %.2f s", (double)frame->pts_us / 1e6);
    }
    (void)fputs("</text>", file);
    return code;
}

int drawing_make(struct drawing *ret, const struct inference_result *result, int width,
                 struct baton_error *reterr)
{
    const struct frame *picture = &result->frame->picture;
    struct drawing drawing = {.width = width > 0 ? width : picture->width};
    size_t bytes = 0;
    FILE *file = open_memstream(&drawing.svg, &bytes);
    int code;

    if (!file) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    drawing.height = (int)((int64_t)drawing.width * picture->height / picture->width);
    drawing.height += drawing.height == 0;
    (void)fprintf(file, "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", drawing.width,
                  drawing.height, picture->width, picture->height);
    code = draw(file, result, width, reterr);
    if (fclose(file) != 0 && !code) {
        code = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (code) {
        free(drawing.svg);
        return code;
    }
    *ret = drawing;
    return 0;
}

void drawing_free(struct drawing *drawing)
{
    free(drawing->svg);
    drawing->svg = NULL;
}

int drawings_write(FILE *file, const char *path, const struct drawing *all, int count, int columns,
                   struct baton_error *reterr)
{
    int width = 0, height = 0;

    for (int i = 0; i < count; i++) {
        width = all[i].width > width ? all[i].width : width;
        height = all[i].height > height ? all[i].height : height;
    }
    columns = count < columns ? count : columns;
    (void)fprintf(file,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "font-family=\"sans-serif\" font-weight=\"bold\">\n"
                  "<style>text{stroke:#000;stroke-width:.15em;paint-order:stroke}</style>\n",
                  columns * (width + GAP) - GAP,
                  (count + columns - 1) / columns * (height + GAP) - GAP);
    for (int i = 0; i < count; i++) {
        (void)fprintf(file, "<svg x=\"%d\" y=\"%d\" %s</svg>\n", i % columns * (width + GAP),
                      i / columns * (height + GAP), all[i].svg);
    }
    (void)fputs("</svg>\n", file);
    return fflush(file) == 0 && !ferror(file)
               ? 0
               : error_set(reterr, error_from_errno(errno), "%s: %s", path, strerror(errno));
}
