/* `baton fleet apply FILE`: makes the fleet what the file says. */
#include "base/buffer.h"
#include "base/json_load.h"
#include "cli/fleet.h"
#include "cli/print.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX = 32 << 20, READ_BYTES = 65536, SILENCE_S = 60 };

static int read_file(struct buffer *ret, const char *name, struct baton_error *reterr)
{
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    size_t count = 1;
    int code = BATON_OK;

    if (!file) {
        return error_set(reterr, BATON_EINVAL, "%s: %s", name, strerror(errno));
    }
    while (count > 0 && code == BATON_OK) {
        uint8_t *space = buffer_reserve(ret, READ_BYTES);
        count = space ? fread(space, 1, READ_BYTES, file) : 0;
        ret->bytes += count;
        if (!space) {
            code = error_set(reterr, BATON_EINVAL, "%s: must have at most %d MiB", name,
                             FILE_MAX >> 20);
        }
    }
    if (code == BATON_OK && ferror(file)) {
        code = error_set(reterr, BATON_EINVAL, "%s: %s", name, strerror(errno));
    }
    if (file != stdin) {
        (void)fclose(file);
    }
    return code;
}

/* Whether a URL in it has one: ://USER:PASSWORD@. */
static bool has_password(const char *text)
{
    while ((text = strstr(text, "://"))) {
        const char *at;

        text += strlen("://");
        at = memchr(text, '@', strcspn(text, "/?# \t\r\n\"'"));
        if (at && memchr(text, ':', (size_t)(at - text))) {
            return true;
        }
    }
    return false;
}

/* baton-fleet refuses such a file of --config; here it is too late for that. */
static void warn_of_readers(const struct invocation *invocation, struct buffer *file,
                            const char *name)
{
    struct baton_error error;
    struct stat status;
    const char *text = buffer_text(file);

    if (text && has_password(text) && strcmp(name, "-") != 0 && stat(name, &status) == 0 &&
        (status.st_mode & S_IROTH)) {
        (void)error_set(&error, BATON_EAUTH,
                        "%s: a URL in it has a password, and everybody may read the file (mode "
                        "%04o): chmod o-r",
                        name, (unsigned)status.st_mode & 07777);
        command_tell(invocation, &error);
    }
}

/* The last line is the result, or the error; those before it are progress. */
struct applying {
    json_t *last;
};

static void on_line(void *userdata, const char *line)
{
    struct applying *applying = userdata;
    json_t *json = json_load_text(line, 0, NULL);
    double of = json_number_value(json_object_get(json, "of"));

    if (of > 0) {
        print_progress(stderr, "writing", json_number_value(json_object_get(json, "written")) / of);
    }
    if (json) {
        json_decref(applying->last);
        applying->last = json;
    }
}

static int send_file(struct fleet_link *link, const struct options *options,
                     const struct buffer *file, json_t **ret, struct baton_error *reterr)
{
    struct applying applying = {NULL};
    char path[64];
    struct fleet_stream stream = {.method = "POST",
                                  .path = path,
                                  .headers = "content-type: application/yaml\r\n"
                                             "accept: application/x-ndjson\r\n",
                                  .body = file->bytes > 0 ? (const void *)file->data : "",
                                  .bytes = file->bytes,
                                  .silence = SPAN_S(SILENCE_S),
                                  .on_line = on_line,
                                  .userdata = &applying};
    const char *reason;
    int code;

    (void)snprintf(path, sizeof(path), "/api/apply?prune=%d&dry-run=%d",
                   options_flag(options, "prune"), options_flag(options, "dry-run"));
    code = fleet_read_lines(link, &stream, reterr);
    print_progress(stderr, NULL, 0);
    reason = json_string_value(json_object_get(applying.last, "error"));
    if (code == BATON_OK && reason) {
        code = error_set(reterr, BATON_ECONFLICT, "%s", reason);
    }
    if (code != BATON_OK) {
        json_decref(applying.last);
        return code;
    }
    *ret = applying.last;
    return BATON_OK;
}

static void print_result(const json_t *result)
{
    static const char *const keys[] = {"created", "changed", "deleted", "same"};
    json_int_t workers = json_integer_value(json_object_get(result, "workers"));
    json_int_t skipped = json_integer_value(json_object_get(result, "workersSkipped"));

    if (json_is_true(json_object_get(result, "dryRun"))) {
        printf("would be: ");
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        printf("%s%lld %s", i ? ", " : "",
               (long long)json_integer_value(json_object_get(result, keys[i])),
               i == 3 ? "unchanged" : keys[i]);
    }
    if (workers > 0) {
        printf(", %lld worker%s registered", (long long)workers, workers == 1 ? "" : "s");
    }
    if (skipped > 0) {
        printf(
            "; left out: %lld workers whose names are to be resolved, which baton-fleet takes as "
            "--worker",
            (long long)skipped);
    }
    (void)putchar('\n');
}

/* To the fleet the file is the body of a request. */
static void name_file(struct baton_error *error, const char *name)
{
    const struct baton_error before = *error;

    if (strncmp(before.message, "body:", 5) == 0 && strcmp(name, "-") != 0) {
        (void)error_set(error, before.code, "%s:%s", name, before.message + 5);
    }
}

int fleet_apply(const struct invocation *invocation, struct fleet_link *link)
{
    struct baton_error error = {0};
    json_t *result = NULL;
    struct buffer file;
    int code;

    buffer_init(&file, FILE_MAX + READ_BYTES);
    code = read_file(&file, invocation->argv[1], &error);
    if (code == BATON_OK) {
        warn_of_readers(invocation, &file, invocation->argv[1]);
    }
    code = code ? code : send_file(link, invocation->options, &file, &result, &error);
    buffer_fini(&file);
    if (code) {
        name_file(&error, invocation->argv[1]);
        return command_fail(invocation, &error);
    }
    if (options_flag(invocation->options, "json")) {
        print_json(stdout, result);
    } else {
        print_result(result);
    }
    json_decref(result);
    return EXIT_OK;
}
