#include "detector/program/findings.h"

#include "base/error.h"
#include "detector/program/drawing.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    FILE *stream; /* NULL: not wanted */
    char path[PATH_MAX];
};

struct findings {
    const char *folder; /* borrowed; NULL: none */
    struct file detections, objects, sheet;
    bool has_sheet; /* it is written */
    struct drawing tiles[FINDINGS_TILES];
    int tile_count;
    uint64_t distance; /* in frames, between two tiles */
    struct findings_counts counts;
};

static int refused(const char *path, struct baton_error *reterr)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum), "%s: %s", path, strerror(errnum));
}

/* `folder` NULL: `name` is a path. */
static int open_file(struct file *file, const char *folder, const char *name,
                     struct baton_error *reterr)
{
    int length = snprintf(file->path, sizeof(file->path), "%s%s%s", folder ? folder : "",
                          folder ? "/" : "", name);

    if (length < 0 || (size_t)length >= sizeof(file->path)) {
        return error_set(reterr, BATON_ETOOBIG, "%s: is too long", name);
    }
    file->stream = fopen(file->path, "we");
    return file->stream ? 0 : refused(file->path, reterr);
}

static int open_all(struct findings *findings, const char *sheet, struct baton_error *reterr)
{
    const char *folder = findings->folder;
    int code = 0;

    if (folder && mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return refused(folder, reterr);
    }
    if (folder) {
        code = open_file(&findings->detections, folder, "detections.jsonl", reterr);
        code = code ? code : open_file(&findings->objects, folder, "objects.jsonl", reterr);
    } else {
        findings->detections = (struct file){stdout, "standard output"};
    }
    if (!code && (folder || sheet)) {
        code =
            open_file(&findings->sheet, sheet ? NULL : folder, sheet ? sheet : "sheet.svg", reterr);
    }
    return code;
}

int findings_open(struct findings **ret, const char *folder, const char *sheet,
                  struct baton_error *reterr)
{
    struct findings *findings = calloc(1, sizeof(*findings));
    int code;

    if (!findings) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    findings->folder = folder;
    findings->distance = 1;
    code = open_all(findings, sheet, reterr);
    if (code) {
        findings_free(findings);
        return code;
    }
    *ret = findings;
    return 0;
}

void findings_free(struct findings *findings)
{
    struct stat info;

    if (!findings) {
        return;
    }
    for (int i = 0; i < findings->tile_count; i++) {
        drawing_free(&findings->tiles[i]);
    }
    /* The path may name a device. */
    if (findings->sheet.stream && !findings->has_sheet &&
        fstat(fileno(findings->sheet.stream), &info) == 0 && S_ISREG(info.st_mode)) {
        (void)unlink(findings->sheet.path);
    }
    FILE *const streams[] = {findings->detections.stream, findings->objects.stream,
                             findings->sheet.stream};
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        if (streams[i] && streams[i] != stdout) {
            (void)fclose(streams[i]);
        }
    }
    free(findings);
}

/* ---- Lines ---------------------------------------------------------------------------------- */

static json_t *line_of(const struct camera_frame *frame, const struct sighting *sighting)
{
    const struct box *box = sighting->box;
    json_t *line = json_pack(
        "{s:I, s:s?, s:[f, f, f, f], s:f, s:I}", "frame", (json_int_t)frame->number, "class",
        sighting->class_name, "box", (double)box->x, (double)box->y, (double)box->width,
        (double)box->height, "score", (double)box->score, "track", (json_int_t)sighting->track);

    if (line && sighting->is_unsure) {
        (void)json_object_set_new(line, "unsure", json_true());
    }
    if (line && sighting->attributes) {
        (void)json_object_set(line, "detection", sighting->attributes);
    }
    if (line && frame->pts_us != CAMERA_NO_PTS) {
        (void)json_object_set_new(line, "seconds", json_real((double)frame->pts_us / 1e6));
    }
    return line;
}

static int write_line(const struct file *file, const json_t *line, struct baton_error *reterr)
{
    if (json_dumpf(line, file->stream, JSON_COMPACT | JSON_REAL_PRECISION(6)) != 0 ||
        putc('\n', file->stream) == EOF) {
        return refused(file->path, reterr);
    }
    return 0;
}

/* An object is seen in many frames and written in few: its line is made only when it is written. */
static int write_sighting(const struct findings *findings, const struct camera_frame *frame,
                          const struct sighting *sighting, struct baton_error *reterr)
{
    bool is_object = findings->objects.stream && !sighting->is_lost;
    json_t *line;
    int code = 0;

    if (!is_object && !sighting->attributes) {
        return 0;
    }
    line = line_of(frame, sighting);
    if (!line) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    code = is_object ? write_line(&findings->objects, line, reterr) : 0;
    if (!code && sighting->attributes) {
        code = write_line(&findings->detections, line, reterr);
    }
    json_decref(line);
    return code;
}

/* ---- Pictures ------------------------------------------------------------------------------- */

/* The number of frames is not known beforehand: when the sheet is full, every second one goes, and
 * the distance doubles. */
static void thin_out(struct findings *findings)
{
    int kept = 0;

    for (int i = 0; i < findings->tile_count; i++) {
        if (i % 2 == 0) {
            findings->tiles[kept++] = findings->tiles[i];
        } else {
            drawing_free(&findings->tiles[i]);
        }
    }
    findings->tile_count = kept;
    findings->distance *= 2;
}

static int add_tile(struct findings *findings, const struct inference_result *result,
                    struct baton_error *reterr)
{
    int code;

    if (!findings->sheet.stream || (findings->counts.frames - 1) % findings->distance != 0) {
        return 0;
    }
    if (findings->tile_count == FINDINGS_TILES) {
        thin_out(findings); /* this frame is the next one at the new distance */
    }
    code =
        drawing_make(&findings->tiles[findings->tile_count], result, FINDINGS_TILE_WIDTH, reterr);
    findings->tile_count += code == 0;
    return code;
}

static int add_shot(const struct findings *findings, const struct inference_result *result,
                    struct baton_error *reterr)
{
    struct drawing drawing = {0};
    struct file file = {0};
    char name[64];
    int code;

    if (!findings->folder || findings->counts.shots > FINDINGS_SHOTS_MAX) {
        return 0;
    }
    (void)snprintf(name, sizeof(name), "frame-%06llu.svg",
                   (unsigned long long)result->frame->number);
    code = open_file(&file, findings->folder, name, reterr);
    if (code) {
        return code;
    }
    code = drawing_make(&drawing, result, 0, reterr);
    code = code ? code : drawings_write(file.stream, file.path, &drawing, 1, 1, reterr);
    (void)fclose(file.stream);
    drawing_free(&drawing);
    return code;
}

int findings_add(struct findings *findings, const struct inference_result *result,
                 struct baton_error *reterr)
{
    struct findings_counts *counts = &findings->counts;
    uint64_t before = counts->detections;
    int code = 0;

    counts->frames++;
    for (int i = 0; i < result->count && !code; i++) {
        const struct sighting *sighting = &result->sightings[i];
        counts->objects += !sighting->is_lost;
        counts->unsure += !sighting->is_lost && sighting->is_unsure;
        counts->detections += sighting->attributes != NULL;
        code = write_sighting(findings, result->frame, sighting, reterr);
    }
    code = code ? code : add_tile(findings, result, reterr);
    if (!code && counts->detections > before) {
        counts->shots++;
        code = add_shot(findings, result, reterr);
    }
    return code;
}

struct findings_counts findings_counts(const struct findings *findings)
{
    return findings->counts;
}

int findings_finish(struct findings *findings, struct baton_error *reterr)
{
    const struct file *const files[] = {&findings->detections, &findings->objects};
    int code = 0;

    for (int i = 0; i < 2; i++) {
        if (files[i]->stream && fflush(files[i]->stream) != 0) {
            return refused(files[i]->path, reterr);
        }
    }
    if (findings->sheet.stream && findings->tile_count > 0) {
        code = drawings_write(findings->sheet.stream, findings->sheet.path, findings->tiles,
                              findings->tile_count, FINDINGS_COLUMNS, reterr);
        findings->has_sheet = code == 0;
    }
    return code;
}
