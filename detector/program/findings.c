#include "detector/program/findings.h"

#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct lines {
    FILE *file; /* NULL: not wanted */
    char path[PATH_MAX];
};

struct findings {
    struct lines detections, objects;
    struct findings_counts counts;
};

static int refused(const char *path, struct baton_error *reterr)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum), "%s: %s", path, strerror(errnum));
}

static int lines_open(struct lines *lines, const char *folder, const char *name,
                      struct baton_error *reterr)
{
    int length = snprintf(lines->path, sizeof(lines->path), "%s/%s", folder, name);

    if (length < 0 || (size_t)length >= sizeof(lines->path)) {
        return error_set(reterr, BATON_ETOOBIG, "--out %s: is too long", folder);
    }
    lines->file = fopen(lines->path, "we");
    return lines->file ? 0 : refused(lines->path, reterr);
}

static int open_folder(struct findings *findings, const char *folder, struct baton_error *reterr)
{
    int code;

    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return refused(folder, reterr);
    }
    code = lines_open(&findings->detections, folder, "detections.jsonl", reterr);
    return code ? code : lines_open(&findings->objects, folder, "objects.jsonl", reterr);
}

int findings_open(struct findings **ret, const char *folder, struct baton_error *reterr)
{
    struct findings *findings = calloc(1, sizeof(*findings));
    int code = 0;

    if (!findings) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (folder) {
        code = open_folder(findings, folder, reterr);
    } else {
        findings->detections.file = stdout;
        (void)snprintf(findings->detections.path, sizeof(findings->detections.path),
                       "standard output");
    }
    if (code) {
        findings_free(findings);
        return code;
    }
    *ret = findings;
    return 0;
}

void findings_free(struct findings *findings)
{
    if (findings) {
        if (findings->detections.file && findings->detections.file != stdout) {
            (void)fclose(findings->detections.file);
        }
        if (findings->objects.file) {
            (void)fclose(findings->objects.file);
        }
        free(findings);
    }
}

static json_t *line_of(const struct camera_frame *frame, const struct sighting *sighting)
{
    const struct box *box = sighting->box;
    json_t *line = json_pack(
        "{s:I, s:s?, s:[f, f, f, f], s:f, s:I}", "frame", (json_int_t)frame->number, "class",
        sighting->class_name, "box", (double)box->x, (double)box->y, (double)box->width,
        (double)box->height, "score", (double)box->score, "track", (json_int_t)sighting->track);

    if (line && sighting->attributes) {
        (void)json_object_set(line, "detection", sighting->attributes);
    }
    if (line && frame->pts_us != CAMERA_NO_PTS) {
        (void)json_object_set_new(line, "seconds", json_real((double)frame->pts_us / 1e6));
    }
    return line;
}

static int write_line(const struct lines *lines, const json_t *line, struct baton_error *reterr)
{
    if (json_dumpf(line, lines->file, JSON_COMPACT | JSON_REAL_PRECISION(6)) != 0 ||
        putc('\n', lines->file) == EOF) {
        return refused(lines->path, reterr);
    }
    return 0;
}

/* An object is seen in many frames and written in few: its line is made only when it is written. */
static int write_sighting(const struct findings *findings, const struct camera_frame *frame,
                          const struct sighting *sighting, struct baton_error *reterr)
{
    bool is_object = findings->objects.file && !sighting->is_lost;
    bool is_detection = findings->detections.file && sighting->attributes;
    json_t *line;
    int code = 0;

    if (!is_object && !is_detection) {
        return 0;
    }
    line = line_of(frame, sighting);
    if (!line) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    code = is_object ? write_line(&findings->objects, line, reterr) : 0;
    code = code || !is_detection ? code : write_line(&findings->detections, line, reterr);
    json_decref(line);
    return code;
}

int findings_add(struct findings *findings, const struct inference_result *result,
                 struct baton_error *reterr)
{
    int code = 0;

    findings->counts.frames++;
    for (int i = 0; i < result->count && !code; i++) {
        const struct sighting *sighting = &result->sightings[i];
        findings->counts.objects += !sighting->is_lost;
        findings->counts.detections += sighting->attributes != NULL;
        code = write_sighting(findings, result->frame, sighting, reterr);
    }
    return code;
}

struct findings_counts findings_counts(const struct findings *findings)
{
    return findings->counts;
}

int findings_flush(struct findings *findings, struct baton_error *reterr)
{
    if (fflush(findings->detections.file) != 0) {
        return refused(findings->detections.path, reterr);
    }
    if (findings->objects.file && fflush(findings->objects.file) != 0) {
        return refused(findings->objects.path, reterr);
    }
    return 0;
}
