#include "detector/program/findings.h"

#include "base/error.h"

#include <errno.h>
#include <libavutil/base64.h>
#include <limits.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <turbojpeg.h>

enum {
    HUE_STEP = 137,    /* degrees from one class to the next */
    LETTER_WIDTH = 36, /* pixels of the frame's width for each pixel of a letter */
    LINE_WIDTH = 400,
};

static const char page_head[] =
    "<!doctype html><meta charset=\"utf-8\"><title>Frames of a try</title>\n"
    "<style>body{background:#222}svg{width:32%;font:bold 1px sans-serif}"
    "text{stroke:#000;stroke-width:.15em;paint-order:stroke}</style>\n";

static int refused(const char *path, struct baton_error *reterr)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum), "%s: %s", path, strerror(errnum));
}

static int open_file(FILE **ret, const char *folder, const char *name, struct baton_error *reterr)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) {
        return error_set(reterr, BATON_ETOOBIG, "%s: is too long", folder);
    }
    *ret = fopen(path, "we");
    return *ret ? 0 : refused(path, reterr);
}

int findings_open(struct findings *ret, const char *folder, struct baton_error *reterr)
{
    int code;

    *ret = (struct findings){0};
    if (!folder) {
        ret->detections = stdout;
        return 0;
    }
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return refused(folder, reterr);
    }
    code = open_file(&ret->detections, folder, "detections.jsonl", reterr);
    code = code ? code : open_file(&ret->objects, folder, "objects.jsonl", reterr);
    code = code ? code : open_file(&ret->page, folder, "seen.html", reterr);
    if (code) {
        (void)findings_close(ret, NULL);
        return code;
    }
    (void)fputs(page_head, ret->page);
    return 0;
}

int findings_close(struct findings *findings, struct baton_error *reterr)
{
    FILE *const files[] = {findings->detections, findings->objects, findings->page};
    int errnum = 0;

    errno = 0;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        bool has_failed = files[i] && (fflush(files[i]) != 0 || ferror(files[i]));
        if (files[i] && files[i] != stdout) {
            has_failed |= fclose(files[i]) != 0;
        } else if (has_failed) { /* program_end() shall not report it once more */
            __fpurge(stdout);
            clearerr(stdout);
        }
        if (has_failed && errnum == 0) {
            errnum = errno ? errno : EIO; /* an earlier write's is gone */
        }
    }
    findings->detections = findings->objects = findings->page = NULL;
    return errnum == 0
               ? 0
               : error_set(reterr, error_from_errno(errnum), "the results: %s", strerror(errnum));
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static json_t *line_of(const struct frame *frame, const struct sighting *sighting)
{
    const struct box *box = &sighting->box;
    bool has_time = frame->pts_us != CAMERA_NO_PTS;

    return json_pack("{s:I, s:s?, s:[f, f, f, f], s:f, s:I, s:o*, s:O*, s:o*}", "frame",
                     (json_int_t)frame->number, "class", sighting->class_name, "box",
                     (double)box->x, (double)box->y, (double)box->width, (double)box->height,
                     "score", (double)box->score, "track", (json_int_t)sighting->track, "unsure",
                     sighting->is_unsure ? json_true() : NULL, "detection", sighting->attributes,
                     "seconds", has_time ? json_real((double)frame->pts_us / 1e6) : NULL);
}

/* An object is seen in many frames and reported in few: its line is made only if it is written. */
static int write_sighting(const struct findings *findings, const struct frame *frame,
                          const struct sighting *sighting, struct baton_error *reterr)
{
    FILE *const files[] = {sighting->is_lost ? NULL : findings->objects,
                           sighting->attributes ? findings->detections : NULL};
    json_t *line = files[0] || files[1] ? line_of(frame, sighting) : NULL;
    int code = 0;

    if (!line) {
        return files[0] || files[1] ? error_set(reterr, BATON_ENOMEM, "out of memory") : 0;
    }
    for (int i = 0; i < 2 && !code; i++) {
        if (files[i] && (json_dumpf(line, files[i], JSON_COMPACT | JSON_REAL_PRECISION(6)) != 0 ||
                         putc('\n', files[i]) == EOF)) {
            code = refused("the results", reterr);
        }
    }
    json_decref(line);
    return code;
}

/* ---- Pictures ------------------------------------------------------------------------------- */

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

static void draw_object(FILE *file, const struct sighting *sighting, int width)
{
    const struct box *box = &sighting->box;
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

size_t findings_boxes(struct image_box ret[IMAGE_BOXES_MAX], const struct inference_result *result)
{
    size_t count = 0;

    for (int i = 0; i < result->count && count < IMAGE_BOXES_MAX; i++) {
        const struct box *box = &result->sightings[i].box;
        if (!result->sightings[i].is_lost) {
            ret[count++] = (struct image_box){(int)box->x, (int)box->y, (int)box->width,
                                              (int)box->height, box->label};
        }
    }
    return count;
}

/* Writes the frame as the text of a URL. */
static int draw_frame(FILE *file, const struct frame *frame, struct baton_error *reterr)
{
    struct image_shape shape;
    uint8_t *jpeg = NULL;
    size_t bytes = 0;
    char *text;
    int code;

    image_shape(&shape, frame, NULL, FINDINGS_WIDTH_MAX, NULL);
    code = image_compress(frame, &shape, &jpeg, &bytes, reterr);
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

static int draw(FILE *file, const struct inference_result *result, struct baton_error *reterr)
{
    const struct frame *frame = result->frame;
    int width = frame->width, height = frame->height;
    int letter = width / LETTER_WIDTH + 1;
    int code;

    (void)fprintf(file, "<svg viewBox=\"0 0 %d %d\">\n", width, height);
    code = draw_frame(file, frame, reterr);
    for (int i = 0; i < result->count && !code; i++) {
        if (!result->sightings[i].is_lost) {
            draw_object(file, &result->sightings[i], width);
        }
    }
    (void)fprintf(file, "<text x=\"%d\" y=\"%d\" font-size=\"%d\" fill=\"#fff\">%llu", letter / 2,
                  height - letter / 2, letter, (unsigned long long)frame->number);
    if (frame->pts_us != CAMERA_NO_PTS) {
        (void)fprintf(file, ": %.2f s", (double)frame->pts_us / 1e6);
    }
    (void)fputs("</text></svg>\n", file);
    return code;
}

/* True if the page shall have this frame. */
static bool takes_picture(struct findings *findings, bool is_reported, double position)
{
    bool is_even = findings->even == 0 ||
                   (findings->even < FINDINGS_EVEN && position * FINDINGS_EVEN >= findings->even);

    is_reported = is_reported && findings->reported < FINDINGS_REPORTED;
    findings->even += is_even;
    findings->reported += is_reported;
    return is_even || is_reported;
}

int findings_add(struct findings *findings, const struct inference_result *result, double position,
                 struct baton_error *reterr)
{
    uint64_t before = findings->counts.detections;
    int code = 0;

    findings->counts.frames++;
    for (int i = 0; i < result->count && !code; i++) {
        const struct sighting *sighting = &result->sightings[i];
        findings->counts.objects += !sighting->is_lost;
        findings->counts.detections += sighting->attributes != NULL;
        code = write_sighting(findings, result->frame, sighting, reterr);
    }
    if (!code && findings->page &&
        takes_picture(findings, findings->counts.detections > before, position)) {
        code = draw(findings->page, result, reterr);
    }
    return code;
}
