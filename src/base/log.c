#include "base/log.h"

#include "base/buffer.h"
#include "base/text.h"

#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 16384 };

struct logger {
    int fd;
    enum log_format format;
    _Atomic int level;
    _Atomic uint64_t left_out; /* lines, since the last one that was written */
};

static const char *const level_names[] = {"error", "warning", "notice", "info", "debug"};
static const int journal_priorities[] = {3, 4, 5, 6, 7};

struct logger *logger_new(int fd, enum log_format format, enum log_level level)
{
    struct logger *logger = calloc(1, sizeof(*logger));
    if (logger) {
        logger->fd = fd;
        logger->format = format;
        atomic_init(&logger->level, (int)level);
    }
    return logger;
}

void logger_free(struct logger *logger)
{
    free(logger);
}

/* What a service starts inherits the variable, and may write elsewhere. */
static bool is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat status;
    char own[64];

    if (!stream || fstat(fd, &status) != 0) {
        return false;
    }
    (void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(stream, own) == 0;
}

enum log_format log_format_for(int fd, bool json)
{
    return json ? LOG_FORMAT_JSON : is_journal(fd) ? LOG_FORMAT_JOURNAL : LOG_FORMAT_HUMAN;
}

const char *log_prefix(int fd, enum log_level level)
{
    return !is_journal(fd) ? "" : level == LOG_ERROR ? "<3>" : "<4>";
}

void log_set_level(struct logger *logger, enum log_level level)
{
    if (logger) {
        atomic_store_explicit(&logger->level, (int)level, memory_order_relaxed);
    }
}

int log_level_parse(const char *word)
{
    for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (strcmp(word, level_names[i]) == 0) {
            return (int)i;
        }
    }
    return -1;
}

bool log_wants(const struct logger *logger, enum log_level level)
{
    return logger && (int)level <= atomic_load_explicit(&logger->level, memory_order_relaxed);
}

/* Escapes as JSON does; that is readable in the human format too. */
static void put_quoted(struct buffer *line, const char *text)
{
    buffer_put_u8(line, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            buffer_put_u8(line, '\\');
            buffer_put_u8(line, c);
        } else if (text_control(text) > 0) {
            text += text_control(text) - 1;
            buffer_printf(line, "\\u%04x", (unsigned char)*text);
        } else {
            buffer_put_u8(line, c);
        }
    }
    buffer_put_u8(line, '"');
}

static bool is_plain_word(const char *text)
{
    if (!*text) {
        return false;
    }
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '=') {
            return false;
        }
    }
    return true;
}

static void put_value(struct buffer *line, const struct log_field *field, bool json)
{
    switch (field->type) {
    case LOG_FIELD_STR:
        if (!json && is_plain_word(field->str)) {
            buffer_put_text(line, field->str);
        } else {
            put_quoted(line, field->str);
        }
        break;
    case LOG_FIELD_I64:
        buffer_printf(line, "%" PRId64, field->i64);
        break;
    case LOG_FIELD_U64:
        buffer_printf(line, "%" PRIu64, field->u64);
        break;
    case LOG_FIELD_F64:
        buffer_printf(line, "%.6g", field->f64);
        break;
    case LOG_FIELD_BOOL:
        buffer_put_text(line, field->boolean ? "true" : "false");
        break;
    }
}

static bool is_absent(const struct log_field *field)
{
    return field->type == LOG_FIELD_STR && !field->str;
}

static void put_time(struct buffer *line, bool with_date)
{
    struct timespec now;
    struct tm parts;
    char text[40];

    (void)clock_gettime(CLOCK_REALTIME, &now); /* for people; nothing is decided by it */
    (void)gmtime_r(&now.tv_sec, &parts);
    (void)strftime(text, sizeof(text), with_date ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &parts);
    buffer_printf(line, "%s.%03ld", text, now.tv_nsec / 1000000);
}

static void put_json(struct buffer *line, enum log_level level, const char *event,
                     const struct log_field *fields, size_t count)
{
    buffer_put_text(line, "{\"time\":\"");
    put_time(line, true);
    buffer_printf(line, "Z\",\"level\":\"%s\",\"event\":", level_names[level]);
    put_quoted(line, event);
    for (size_t i = 0; i < count; i++) {
        if (is_absent(&fields[i])) {
            continue;
        }
        buffer_put_u8(line, ',');
        put_quoted(line, fields[i].key);
        buffer_put_u8(line, ':');
        put_value(line, &fields[i], true);
    }
    buffer_put_text(line, "}\n");
}

static void put_text(struct buffer *line, const char *event, const struct log_field *fields,
                     size_t count)
{
    buffer_put_text(line, event);
    for (size_t i = 0; i < count; i++) {
        if (!is_absent(&fields[i])) {
            buffer_printf(line, " %s=", fields[i].key);
            put_value(line, &fields[i], false);
        }
    }
    buffer_put_u8(line, '\n');
}

static void put_line(struct buffer *line, const struct logger *logger, enum log_level level,
                     const char *event, const struct log_field *fields, size_t count)
{
    switch (logger->format) {
    case LOG_FORMAT_JSON:
        put_json(line, level, event, fields, count);
        break;
    case LOG_FORMAT_JOURNAL:
        buffer_printf(line, "<%d>", journal_priorities[level]);
        put_text(line, event, fields, count);
        break;
    case LOG_FORMAT_HUMAN:
        put_time(line, false);
        buffer_printf(line, " %-7s ", level_names[level]);
        put_text(line, event, fields, count);
        break;
    }
}

/* False: the reader of this pipe, socket or terminal does not keep up, and a write would wait. */
static bool has_room(int fd)
{
    struct pollfd writable = {.fd = fd, .events = POLLOUT};

    return poll(&writable, 1, 0) != 0;
}

void log_emit(struct logger *logger, enum log_level level, const char *event,
              const struct log_field *fields, size_t count)
{
    struct buffer line;
    uint64_t left_out;

    if (!log_wants(logger, level)) {
        return;
    }
    if (!has_room(logger->fd)) {
        (void)atomic_fetch_add(&logger->left_out, 1);
        return;
    }
    buffer_init(&line, LINE_MAX_BYTES);
    left_out = atomic_exchange(&logger->left_out, 0);
    if (left_out > 0) {
        put_line(&line, logger, LOG_WARNING, "log-lines-left-out", &LOG_U64("count", left_out), 1);
    }
    put_line(&line, logger, level, event, fields, count);
    if (line.bytes > 0) {
        ssize_t written = write(logger->fd, line.data, line.bytes);
        (void)written; /* a log that cannot be written has nowhere to say so */
    }
    buffer_fini(&line);
}
